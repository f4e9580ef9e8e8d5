"""VAR, COVAR, CORR and similar aggregates go in; one joint measurement of moments comes out, with their
estimates.

Let u in [0, 1] be the clamped argument, scaled. A row adds u^2, 2u(1-u), (1-u)^2: together 1, whatever u is.
So all three cost as much as a count, and contain the number of rows, the mean and the variance. With a second
argument v a row adds the products of the features of u and of v, which again add up to 1: u, 1-u where only
the mean of u is needed.

Where the number of rows is public, the sums of u and 2u(1-u) are enough. One row replaced, from u to u' = u +
d, moves them by |d| and 2|d||1 - u - u'|, and |1 - u - u'| <= 1 - |d|: together by |d| (3 - 2|d|), which is
at most 9/8.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.exact import (
    WIDE,
    Cases,
    Cast,
    Fold,
    Name,
    Operation,
    Scalar,
    Value,
    added,
    coalesced,
    nonzero,
    op,
    total,
)
from privsql.algebra.expressions import SPREAD, Aggregate, Expression
from privsql.analysis.facts import Facts
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.counts_beside_sums import Columns, columns_beside
from privsql.planning.aggregates.estimate import ALL_ROWS, Estimate
from privsql.planning.aggregates.means import heights_estimate, mean_estimate
from privsql.planning.aggregates.moments.spread import SUMS, Spread, SpreadOfPublicRows, Variable
from privsql.planning.aggregates.parts import Beside, Part, clean, grid_for, helper, value_of
from privsql.planning.aggregates.release_parts import Named, ReleaseParts, is_about
from privsql.planning.grids.grid import Grid
from privsql.planning.measurements.noised import in_words

MOST_STEPS = 2**14  # a grid has at most twice as many, so products of four heights fit in 63 bits
LARGEST_ROW = 2**30  # the most a row may add to a column, so that a cell of a billion rows fits in 64 bits


def is_spread(aggregate: Aggregate) -> bool:
    return aggregate.function in SPREAD


def add_moments(found: ReleaseParts) -> None:
    """Add a joint part for all spreads of the same arguments and condition, which also gives their SUM, AVG
    and COUNT.
    """
    spreads = [
        (frozenset((each.argument, each.by)), each.condition) for _, each in found.left if is_spread(each)
    ]
    for arguments, condition in dict.fromkeys(spreads):
        same = [
            (name, each)
            for name, each in found.left
            if each.condition == condition and _goes_with(each, arguments, found.context.facts)
        ]
        known = [each for each in arguments if each is not None]
        kinds = found.wanted.kinds(known, condition, found.context)
        part, estimates = spread_part(found.number, same, found.context, kinds)
        found.add_carrier(part, estimates, known, condition)


def _goes_with(aggregate: Aggregate, arguments: frozenset[Expression | None], facts: Facts) -> bool:
    """Whether an aggregate follows from the moments of these arguments: of one (the other is None)
    or of two.
    """
    if is_spread(aggregate):
        return frozenset((aggregate.argument, aggregate.by)) == arguments
    alone = next((each for each in arguments if each is not None), None) if None in arguments else None
    return alone is not None and is_about(aggregate, alone, facts)


def spread_part(
    number: int,
    aggregates: Sequence[Named],
    context: AggregationContext,
    beside: Sequence[Beside] = (),
) -> tuple[Part, dict[str, Estimate]]:
    """One measurement for all spreads of the same arguments and condition, which also gives their SUM, AVG
    and COUNT.

    `beside`: what is counted jointly with them, at no further cost.
    """
    spreads = [each for _, each in aggregates if is_spread(each)]
    lead = spreads[0]
    axes = []
    for place, argument in enumerate(each for each in (lead.argument, lead.by) if each is not None):
        grid, what = grid_for(argument, lead.condition, context, lead.place, MOST_STEPS)
        squared = any(_squares(each, each.argument != lead.argument, place) for each in spreads)
        axes.append(_Axis(argument, grid, squared, what))
    grid = axes[0].grid
    if lead.by is None and context.rows_are_public and lead.condition is None and not grid.nullable:
        return _with_public_rows(number, axes[0], aggregates, context)
    part = _part(number, lead, axes, context, beside)
    sums = part.columns[: len(part.columns) - len(beside)]
    first, second = (*(each.variable for each in axes), None)[:2]
    assert first is not None
    whole = _whole(axes)
    one = Fraction(whole, _scaling(whole))
    estimates = {
        name: Spread(each.function, sums, first, second, one, each.argument != lead.argument)
        if is_spread(each)
        else _beside(each, sums, grid)
        for name, each in aggregates
    }
    return part, estimates


@dataclass(frozen=True)
class _Axis:
    """An argument of a spread on its grid, and whether squares of it are needed. `what`: for EXPLAIN."""

    argument: Expression
    grid: Grid
    squared: bool
    what: str

    @property
    def variable(self) -> Variable:
        return Variable(self.grid.low * self.grid.step, self.grid.steps * self.grid.step, self.squared)

    def value(self, height: Name) -> tuple[str, Scalar]:
        """The helper column: the height above the low end."""
        return height.name, self.grid.clamped(Value(self.argument)) - self.grid.low

    def features(self, height: Scalar) -> list[Scalar]:
        rest = self.grid.steps - height
        return [height * height, 2 * height * rest, rest * rest] if self.squared else [height, rest]


def _squares(aggregate: Aggregate, swapped: bool, place: int) -> bool:
    """Whether it uses squares of the variable in this place. `swapped`: it names the second one first."""
    return ("A2" if bool(place) != swapped else "A1") in SUMS[aggregate.function]


def _with_public_rows(
    number: int, axis: _Axis, aggregates: Sequence[Named], context: AggregationContext
) -> tuple[Part, dict[str, Estimate]]:
    height, grid = Name(helper(number)), axis.grid
    one = grid.steps**2
    columns = (f"moment_{number}", f"moment_{number + 1}")
    products = (height * grid.steps, axis.features(height)[1])
    size = -(-9 * one // 8)
    step = grid.extent**2 / one
    most = f"and one replaced moves both sums together by at most {in_words(size * step)}"
    bound = context.bound(size, size, 1, f"{axis.what}; a row adds products of heights and depths, {most}")
    cells, title = tuple(clean(total(each)) for each in products), f"moments of {describe(axis.argument)}"
    part = Part(columns, cells, bound, title, (axis.value(height),), step=step)
    estimates = {
        name: SpreadOfPublicRows(each.function, (*columns, ALL_ROWS), axis.variable, None, Fraction(one))
        if is_spread(each)
        else heights_estimate(each, columns[0], one, grid)
        for name, each in aggregates
    }
    return part, estimates


def _whole(axes: Sequence[_Axis]) -> int:
    """What a row adds to all columns together."""
    return math.prod(each.grid.steps ** (each.variable.features - 1) for each in axes)


def _scaling(whole: int) -> int:
    """The divisor of the columns, so that a row adds no more than LARGEST_ROW."""
    return 1 << max(0, (whole - 1).bit_length() - LARGEST_ROW.bit_length() + 1)


def _part(
    number: int,
    lead: Aggregate,
    axes: Sequence[_Axis],
    context: AggregationContext,
    beside: Sequence[Beside],
) -> Part:
    heights = [Name(helper(number + place)) for place in range(len(axes))]
    features = [axis.features(height) for axis, height in zip(axes, heights, strict=True)]
    products = [functools.reduce(operator.mul, each) for each in itertools.product(*features)]
    whole = _whole(axes)
    scaling = _scaling(whole)
    columns = tuple(f"moment_{number + place}" for place in range(len(products)))
    also = columns_beside(number + len(products), beside, whole)
    every = (*columns, *also.names)
    # divide after summing: each column of a cell is then off by less than 1, for every row that moves
    one = Fraction(whole, scaling)
    step = math.prod(each.grid.extent ** (each.variable.features - 1) for each in axes) / one
    size = -(-whole // scaling) + (len(every) if scaling > 1 else 0)
    width = -(-whole // scaling) + (1 if scaling > 1 else 0)
    what = "; ".join(each.what for each in axes)
    reason = f"{what}; a row adds products of heights and depths, together {in_words(size * step)}"
    bound = context.bound(size, width, len(every), reason + also.reason("as much"))
    both = " and ".join(describe(each.argument) for each in axes)
    only = f" where {describe(lead.condition)}" if lead.condition is not None else ""
    title = f"moments of {both}{only}{also.title(lead.condition)}"
    most = context.limits.max_rows if context.limits is not None else None
    cells, of_unit = _cells(products, columns, also, whole, scaling, value_of(lead.condition), most)
    values = tuple(axis.value(height) for axis, height in zip(axes, heights, strict=True))
    all_rows, nulls = also.all_rows(columns, one), also.nulls(one)
    return Part(
        every, cells, bound, title, values, of_unit=of_unit, all_rows=all_rows, nulls=nulls, step=step
    )


def _cells(
    products: Sequence[Scalar],
    columns: Sequence[str],
    also: Columns,
    whole: int,
    scaling: int,
    where: Scalar | None,
    most: int | None,
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The cells, and the columns of a unit in a key. `most`: the row limit, where units are bounded."""
    every, rows = (Cast(Fold("count", each, where), WIDE, total=False) for each in (None, products[0]))
    sums = [total(each, where) for each in products]
    if most is None:
        return tuple(clean(_divided(each, scaling)) for each in (*sums, *also.cells(every, rows))), ()
    moments = [Name(each) for each in columns]
    count = added(moments) // whole
    held: list[Scalar]
    # of the rows that count, n' are not NULL: every column is scaled by n' / n, the last one takes the rest
    if also.names:
        kept, others = also.held(count, most)
        cut = [coalesced(each * kept // nonzero(count)) for each in moments[:-1]]
        held = [*cut, functools.reduce(operator.sub, cut, whole * kept), *others]
    else:  # at most R of a unit's c rows count, at their mean: every column is scaled by R / c
        many = op(Operation.GREATER, count, most)
        held = [Cases(((many, each * most // nonzero(count)),), each) for each in moments]
    return tuple(clean(_divided(total(each), scaling)) for each in held), (
        *sums,
        *(every for _ in also.names),
    )


def _divided(value: Scalar, scaling: int) -> Scalar:
    return value if scaling == 1 else value // scaling


def _beside(aggregate: Aggregate, columns: tuple[str, ...], grid: Grid) -> Estimate:
    """COUNT, SUM and AVG of the single argument whose three moments are measured."""
    square, mixed, rest = columns
    one, half = Fraction(1), Fraction(1, 2)
    above, below = ((square, one), (mixed, half)), ((rest, one), (mixed, half))
    return mean_estimate(aggregate, above, below, grid, grid.steps**2, grid.whole and grid.step == 1)
