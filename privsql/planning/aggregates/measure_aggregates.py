"""A release and what surrounds it go in; the measurements it needs come out, each with its SQL and its
sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from privsql.algebra.expressions import Aggregate, Call, Column, Expression, Literal, calls_of
from privsql.algebra.relations import Release
from privsql.analysis.derive import Facts, domain_of
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import (
    as_count,
    counted,
    disjoint_groups,
    normal,
    shares_of,
    without,
)
from privsql.planning.aggregates.counts import all_rows_part, counts_part, distinct_part
from privsql.planning.aggregates.counts_beside_sums import Wanted, shared_counts, wanted_beside
from privsql.planning.aggregates.estimates import ALL_ROWS, PARTS_OF_A_ROW, Estimate, Linear, Ratio
from privsql.planning.aggregates.moments import is_spread, spread_part
from privsql.planning.aggregates.parts import Part, filtered, grid_for
from privsql.planning.aggregates.quantiles import ORDER, order_parts
from privsql.planning.aggregates.sums import (
    heights,
    heights_estimate,
    one_sided,
    two_sided,
    two_sided_estimate,
)
from privsql.types import NUMBERS

# also of quotients, which are known better
Measured = tuple[list[Part], dict[str, Estimate], dict[tuple[str, str], Ratio]]


def release_parts(
    release: Release,
    context: AggregationContext,
    divided: Collection[tuple[str, str]] = (),
    beside: bool = False,
) -> Measured:
    """One joint measurement per argument whose spread is asked for, one two-sided per averaged argument, one
    per lone sum, one per set of disjoint counts. `divided`: counts that are divided by other counts; the
    shares of a whole come last. Where the number of rows is public, it takes the place of what would be
    measured for it. `beside`: COUNT(*), and the number of NULLs, are measured together with sums of what may
    be NULL (counts_beside_sums.py).
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
    ordered = [(name, each) for name, each in aggregates if each.function in ORDER]
    aggregates = [(name, each) for name, each in aggregates if each.function not in ORDER]
    parts: list[Part] = []
    estimates: dict[str, Estimate] = {}

    def number() -> int:
        return sum(len(part.columns) for part in parts) + 1

    wanted = _wanted_beside(aggregates, context, divided) if beside else Wanted({})
    carrying: list[tuple[int, Collection[Expression], Expression | None]] = []
    spread = [(frozenset((a.argument, a.by)), a.condition) for _, a in aggregates if is_spread(a)]
    for arguments, condition in dict.fromkeys(spread):
        same = [
            (name, each)
            for name, each in aggregates
            if name not in estimates
            and each.condition == condition
            and _goes_with(each, arguments, context.facts)
        ]
        known = [each for each in arguments if each is not None]
        part, found = spread_part(number(), same, context, wanted.kinds(known, condition, context))
        carrying.append((len(parts), known, condition))
        parts.append(part)
        estimates |= found
    averaged = (
        (a.argument, a.condition)
        for n, a in aggregates
        if n not in estimates and a.function in ("sum", "avg")
    )
    for argument, condition in dict.fromkeys(averaged):
        assert argument is not None
        same = [
            (name, each)
            for name, each in aggregates
            if name not in estimates
            and each.condition == condition
            and _counts_with(each, argument, context.facts)
        ]
        functions, kinds = {a.function for _, a in same}, wanted.kinds([argument], condition, context)
        place = next(a.place for _, a in same if a.argument == argument)
        grid, what = grid_for(argument, condition, context, place)
        if functions == {"sum"} and not kinds:
            part = one_sided(f"sum_{number()}", argument, condition, grid, context, what)
            estimates[same[0][0]] = Linear(((part.columns[0], grid.step),), grid.whole, signed=grid.low < 0)
        elif context.rows_are_public and condition is None and not grid.nullable:
            part = heights(number(), argument, grid, context, what)
            for name, aggregate in same:
                estimates[name] = heights_estimate(aggregate, part.columns[0], grid.steps, grid)
        else:
            part = two_sided(number(), argument, condition, grid, context, what, kinds)
            for name, aggregate in same:
                estimates[name] = two_sided_estimate(aggregate, part.columns, grid)
        carrying.append((len(parts), [argument], condition))
        parts.append(part)
    estimates |= shared_counts(wanted, parts, carrying)
    if parts:
        estimates |= dict.fromkeys(
            wanted.public, Linear(((ALL_ROWS, Fraction(1, PARTS_OF_A_ROW)),), whole=True)
        )
    for name, each in aggregates:
        if each.function == "count_distinct":
            part = distinct_part(number(), each, context)
            parts.append(part)
            estimates[name] = Linear(((part.columns[0], Fraction(1)),), whole=True)
    quotients: dict[tuple[str, str], Ratio] = {}
    counts = {name: a for name, a in aggregates if name not in estimates}
    for whole, shares in shares_of(counts, divided):
        if context.rows_are_public and counted(counts[whole]) is None and len(shares) == 1:
            part = counts_part(number(), [counts[shares[0]]], context)
            parts.append(part)
            (column,), all_rows = part.columns, (ALL_ROWS, Fraction(1, PARTS_OF_A_ROW))
            estimates[shares[0]] = Linear(((column, Fraction(1)),), whole=True)
            estimates[whole] = Linear((all_rows,), whole=True)
            above, below = ((column, Fraction(1)),), (all_rows, (column, Fraction(-1)))
            quotients[shares[0], whole] = Ratio(above, below, Fraction(0), Fraction(1), 1)
            continue
        rest = without(counts[whole], [counts[name] for name in shares])
        part = counts_part(number(), [*(counts[name] for name in shares), rest], context)
        parts.append(part)
        terms = tuple((column, Fraction(1)) for column in part.columns)
        estimates[whole] = Linear(terms, whole=True)
        for name, term in zip(shares, terms, strict=False):
            estimates[name] = Linear((term,), whole=True)
            others = tuple(each for each in terms if each != term)
            quotients[name, whole] = Ratio((term,), others, Fraction(0), Fraction(1), 1)
    for group in disjoint_groups([(name, a) for name, a in counts.items() if name not in estimates]):
        part = counts_part(number(), [a for _, a in group], context)
        parts.append(part)
        for (name, _), column in zip(group, part.columns, strict=True):
            estimates[name] = Linear(((column, Fraction(1)),), whole=True)
    sought, found = order_parts(ordered, number(), context)
    used = any(ALL_ROWS in each.columns for each in (*estimates.values(), *quotients.values()))
    return [*parts, *sought, *([all_rows_part(context)] if used else [])], estimates | found, quotients


def _wanted_beside(
    aggregates: Sequence[tuple[str, Aggregate]],
    context: AggregationContext,
    divided: Collection[tuple[str, str]],
) -> Wanted:
    """The counts that no sums of this release tell by themselves."""
    sums = {
        (a.argument, a.condition)
        for _, a in aggregates
        if a.function in ("sum", "avg") or (is_spread(a) and a.by is None)
    }
    told = {
        name
        for name, each in aggregates
        for argument, condition in sums
        if argument is not None
        and each.condition == condition
        and _counts_with(each, argument, context.facts)
    }
    counts = {name: each for name, each in aggregates if each.function == "count" and name not in told}
    return wanted_beside(counts, divided, context)


def _goes_with(aggregate: Aggregate, arguments: frozenset[Expression | None], facts: Facts) -> bool:
    """Whether an aggregate is told by the moments of these arguments: of one (the other is None), or of
    two.
    """
    if is_spread(aggregate):
        return frozenset((aggregate.argument, aggregate.by)) == arguments
    alone = next((each for each in arguments if each is not None), None) if None in arguments else None
    return alone is not None and _counts_with(aggregate, alone, facts)


def _counts_with(aggregate: Aggregate, argument: Expression, facts: Facts) -> bool:
    """Whether this aggregate is about the same argument: SUM, AVG and COUNT of it, or COUNT(*) where it is
    never NULL.
    """
    if aggregate.function == "count_distinct":
        return False
    if aggregate.argument == argument:
        return True
    known = domain_of(argument, filtered(facts, aggregate.condition))
    return aggregate.function == "count" and aggregate.argument is None and not known.nullable


def divisions(shown: Iterable[Expression]) -> list[tuple[str, str]]:
    """Which column of a release is divided by which, anywhere in the outputs."""
    found: dict[tuple[str, str], None] = {}
    for expression in shown:
        for call in calls_of(expression):
            if call.function == "/":
                (above, _), (below, factor) = (scaled_column(each) for each in call.args)
                if above is not None and below is not None and factor == 1:
                    found[above, below] = None
    return list(found)


def scaled_column(expression: Expression) -> tuple[str | None, Fraction]:
    """A column times a constant, casts left out; None where it is something else."""
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
