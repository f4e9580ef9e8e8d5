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
import operator
from collections.abc import Sequence
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
from privsql.errors import Place
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.counts_beside_sums import Columns, columns_beside
from privsql.planning.aggregates.estimates import (
    ALL_ROWS,
    PARTS_OF_A_ROW,
    Estimate,
    Linear,
    Ratio,
    Spread,
    Variable,
)
from privsql.planning.aggregates.parts import Beside, Part, clean, grid_for, helper, value_of
from privsql.planning.aggregates.release_parts import ReleaseParts, is_about
from privsql.planning.aggregates.sums import heights_estimate
from privsql.planning.grids.grid import Grid
from privsql.planning.measurements.noised import in_words

MOST_STEPS = 2**14  # a grid has at most twice as many, so products of four heights fit in 63 bits
LARGEST_ROW = 2**30  # the most a row may add to a column, so that a cell of a billion rows fits in 64 bits

# whether each function needs squares of its first and of its second argument
_SQUARED: dict[str, tuple[bool, bool | None]] = {
    "var_pop": (True, None), "var_samp": (True, None), "stddev_pop": (True, None),
    "stddev_samp": (True, None), "covar_pop": (False, False), "covar_samp": (False, False),
    "corr": (True, True), "regr_r2": (True, True), "regr_slope": (False, True),
    "regr_intercept": (False, True),
}  # fmt: skip


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
    aggregates: list[tuple[str, Aggregate]],
    context: AggregationContext,
    beside: Sequence[Beside] = (),
) -> tuple[Part, dict[str, Estimate]]:
    """One measurement for all spreads of the same arguments and condition, which also gives their SUM, AVG
    and COUNT.

    `beside`: what is counted jointly with them, at no further cost.
    """
    lead = next(each for _, each in aggregates if is_spread(each))
    assert lead.argument is not None
    needs = [
        _SQUARED[each.function] if each.argument == lead.argument else _SQUARED[each.function][::-1]
        for _, each in aggregates
        if is_spread(each)
    ]
    first, grid, what = _variable(
        lead.argument, lead.condition, context, lead.place, any(a for a, _ in needs)
    )
    if lead.by is None and context.rows_are_public and lead.condition is None and not grid.nullable:
        return _with_public_rows(number, lead.argument, aggregates, first, grid, context, what)
    second, second_grid = None, None
    if lead.by is not None:
        second, second_grid, also = _variable(
            lead.by, lead.condition, context, lead.place, any(b for _, b in needs)
        )
        what = f"{what}; {also}"
    part = _part(number, lead, first, grid, second, second_grid, context, what, beside)
    sums = part.columns[: len(part.columns) - len(beside)]
    whole = _whole(grid, first, second_grid, second)
    one = Fraction(whole, _scaling(whole))
    estimates = {
        name: Spread(each.function, sums, first, second, one, each.argument != lead.argument)
        if is_spread(each)
        else _beside(each, sums, grid)
        for name, each in aggregates
    }
    return part, estimates


def _with_public_rows(
    number: int,
    argument: Expression,
    aggregates: list[tuple[str, Aggregate]],
    variable: Variable,
    grid: Grid,
    context: AggregationContext,
    what: str,
) -> tuple[Part, dict[str, Estimate]]:
    height, one = Name(helper(number)), grid.steps**2
    columns = (f"moment_{number}", f"moment_{number + 1}")
    products = (height * grid.steps, _features(height, grid.steps, squared=True)[1])
    size = -(-9 * one // 8)
    step = grid.extent**2 / one
    most = f"and one replaced moves both sums together by at most {in_words(size * step)}"
    reason = f"{what}; a row adds products of heights and depths, {most}"
    bound = context.bound(size, size, 1, reason)
    value = (height.name, grid.clamped(Value(argument)) - grid.low)
    cells = tuple(clean(total(each)) for each in products)
    part = Part(columns, cells, bound, f"moments of {describe(argument)}", (value,), step=step)
    estimates = {
        name: Spread(each.function, (*columns, ALL_ROWS), variable, None, Fraction(one), row=PARTS_OF_A_ROW)
        if is_spread(each)
        else heights_estimate(each, columns[0], one, grid)
        for name, each in aggregates
    }
    return part, estimates


def _variable(
    argument: Expression,
    condition: Expression | None,
    context: AggregationContext,
    place: Place | None,
    squared: bool,
) -> tuple[Variable, Grid, str]:
    grid, what = grid_for(argument, condition, context, place, MOST_STEPS)
    return Variable(grid.low * grid.step, grid.steps * grid.step, squared), grid, what


def _whole(grid: Grid, first: Variable, other: Grid | None, second: Variable | None) -> int:
    """What a row adds to all columns together."""
    whole: int = grid.steps ** (first.features - 1)
    return whole if other is None or second is None else int(whole * other.steps ** (second.features - 1))


def _worth(grid: Grid, first: Variable, other: Grid | None, second: Variable | None) -> Fraction:
    """The same in the units of the values, or of their squares and products."""
    worth = grid.extent ** (first.features - 1)
    return worth if other is None or second is None else worth * other.extent ** (second.features - 1)


def _scaling(whole: int) -> int:
    """The divisor of the columns, so that a row adds no more than LARGEST_ROW."""
    return 1 << max(0, (whole - 1).bit_length() - LARGEST_ROW.bit_length() + 1)


def _features(height: Scalar, steps: int, squared: bool) -> list[Scalar]:
    rest = steps - height
    return [height * height, 2 * height * rest, rest * rest] if squared else [height, rest]


def _part(
    number: int,
    lead: Aggregate,
    first: Variable,
    grid: Grid,
    second: Variable | None,
    other: Grid | None,
    context: AggregationContext,
    what: str,
    beside: Sequence[Beside],
) -> Part:
    assert lead.argument is not None
    heights = [Name(helper(number)), Name(helper(number + 1))]
    arguments = [(lead.argument, grid)]
    products = _features(heights[0], grid.steps, first.squared)
    if lead.by is not None and second is not None and other is not None:
        arguments.append((lead.by, other))
        others = _features(heights[1], other.steps, second.squared)
        products = [a * b for a, b in itertools.product(products, others)]
    values = tuple(
        (height.name, each.clamped(Value(argument)) - each.low)
        for height, (argument, each) in zip(heights, arguments, strict=False)
    )
    whole = _whole(grid, first, other, second)
    scaling = _scaling(whole)
    columns = tuple(f"moment_{number + place}" for place in range(len(products)))
    also = columns_beside(number + len(products), beside, whole)
    every = (*columns, *also.names)
    # divide after summing: each column of a cell is then off by less than 1, for every row that moves
    step = _worth(grid, first, other, second) / Fraction(whole, scaling)
    size = -(-whole // scaling) + (len(every) if scaling > 1 else 0)
    width = -(-whole // scaling) + (1 if scaling > 1 else 0)
    reason = f"{what}; a row adds products of heights and depths, together {in_words(size * step)}"
    bound = context.bound(size, width, len(every), reason + also.reason("as much"))
    both = f" and {describe(lead.by)}" if lead.by is not None else ""
    only = f" where {describe(lead.condition)}" if lead.condition is not None else ""
    title = f"moments of {describe(lead.argument)}{both}{only}{also.title(lead.condition)}"
    one, most = Fraction(whole, scaling), context.limits.max_rows if context.limits is not None else None
    cells, of_unit = _cells(products, columns, also, whole, scaling, value_of(lead.condition), most)
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
    one = Fraction(1, grid.steps**2)
    low, high = grid.low * grid.step, (grid.low + grid.steps) * grid.step
    match aggregate.function:
        case "count":
            return Linear(((square, one), (mixed, one), (rest, one)), whole=True)
        case "sum":
            terms = ((square, high * one), (mixed, (low + high) / 2 * one), (rest, low * one))
            return Linear(terms, whole=grid.whole and grid.step == 1)
        case _:
            half = Fraction(1, 2)
            above, below = ((square, Fraction(1)), (mixed, half)), ((rest, Fraction(1)), (mixed, half))
            return Ratio(above, below, low, high, grid.steps**2)
