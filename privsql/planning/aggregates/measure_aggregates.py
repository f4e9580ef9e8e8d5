"""A release and its context go in; the parts to measure come out, family by family, with an estimate for
every aggregate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from fractions import Fraction

from privsql.algebra.expressions import Call, Column, Expression, Literal, calls_of
from privsql.algebra.relations import Release
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import as_count, normal
from privsql.planning.aggregates.counts import add_counts, add_distinct_counts, add_public_rows, add_shares
from privsql.planning.aggregates.counts_beside_sums import add_carried_counts, wanted_beside
from privsql.planning.aggregates.distinct_sums import add_distinct_sums
from privsql.planning.aggregates.means import add_sums
from privsql.planning.aggregates.moments.moment_sums import add_moments, is_spread
from privsql.planning.aggregates.quantile_points import add_quantiles
from privsql.planning.aggregates.release_parts import MeasuredAggregates, ReleaseParts, Wanted
from privsql.types import NUMBERS

# every family takes the aggregates it can measure from those that earlier families left
FAMILIES: tuple[Callable[[ReleaseParts], None], ...] = (
    add_moments,
    add_sums,
    add_carried_counts,
    add_distinct_counts,
    add_distinct_sums,
    add_shares,
    add_counts,
    add_quantiles,
    add_public_rows,
)


def measure_aggregates(
    release: Release,
    context: AggregationContext,
    divided: Collection[tuple[str, str]] = (),
    beside: bool = False,
) -> MeasuredAggregates:
    """Choose what to measure, and how to compute every aggregate from it.

    `divided`: counts that are divided by other counts. `beside`: measure COUNT(*) and the number of NULLs
    jointly with sums of nullable arguments (counts_beside_sums.py).
    """
    together = {
        (each.argument, each.condition)
        for _, each in release.aggregates
        if each.function == "avg" or is_spread(each)
    }
    aggregates = [
        (name, normal(each if (each.argument, each.condition) in together else as_count(each), context.facts))
        for name, each in release.aggregates
    ]
    wanted = wanted_beside(aggregates, divided, context) if beside else Wanted({})
    found = ReleaseParts(aggregates, context, divided, wanted)
    for add in FAMILIES:
        add(found)
    assert not found.left, "every aggregate that SQL may contain has a family"
    return found.measured()


def divisions(shown: Iterable[Expression]) -> list[tuple[str, str]]:
    """The pairs of columns of which one is divided by the other, anywhere in the outputs."""
    found: dict[tuple[str, str], None] = {}
    for expression in shown:
        for call in calls_of(expression):
            if call.function == "/":
                (above, _), (below, factor) = (scaled_column(each) for each in call.args)
                if above is not None and below is not None and factor == 1:
                    found[above, below] = None
    return list(found)


def scaled_column(expression: Expression) -> tuple[str | None, Fraction]:
    """A column times a constant, without casts; None for anything else."""
    match expression:
        case Column(name=name):
            return name, Fraction(1)
        case Call(function="cast", args=(inner,)) if (
            inner.type.kind in NUMBERS and expression.type.kind in NUMBERS
        ):
            return scaled_column(inner)
        case Call(function="*", args=(left, right)):
            for inner, factor in ((left, right), (right, left)):
                column, already = scaled_column(inner)
                constant = _constant(factor)
                if column is not None and constant is not None:
                    return column, already * constant
    return None, Fraction(1)


def _constant(expression: Expression) -> Fraction | None:
    match expression:
        case Literal(value=bool() | None):
            return None
        case Literal(value=int() | float() | Decimal() as value) if math.isfinite(value):
            return Fraction(value)
        case Call(function="cast", args=(inner,)) if expression.type.kind in NUMBERS:
            return _constant(inner)
    return None
