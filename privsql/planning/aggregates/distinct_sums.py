"""SUM(DISTINCT x) and AVG(DISTINCT x) go in; the sums of different values come out as one measurement.

Values are different or the same after clamping. A row adds its own value to the set of its cell, or nothing,
where another row has it: so a cell moves by at most the greatest magnitude of a value, and by at most the
span of the range and 0 where a row is replaced: the old value may go alone, and the new one come alone. The
span of the range by itself is not enough (proofs.md, 3.9a).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privsql.algebra.choices import UNIT, FairChoice
from privsql.algebra.exact import (
    WIDE,
    Cast,
    Constant,
    CountDistinctIn,
    Fold,
    Name,
    Scalar,
    SomeDistinct,
    SumDistinctIn,
    Value,
    coalesced,
    fair_hash,
)
from privsql.algebra.expressions import Expression, columns_of
from privsql.errors import Refused
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.means import mean_estimate
from privsql.planning.aggregates.parts import Part, clean, grid_for, titled, value_of
from privsql.planning.aggregates.release_parts import Named, ReleaseParts
from privsql.planning.aggregates.sums import Linear
from privsql.planning.grids.grid import Grid
from privsql.types import BIGINT

SUMS = {"sum_distinct": "sum", "avg_distinct": "avg"}


def add_distinct_sums(found: ReleaseParts) -> None:
    """Add a part for all sums and means of the different values of one argument."""
    asked = [(each.argument, each.condition) for _, each in found.left if each.function in SUMS]
    for argument, condition in dict.fromkeys(asked):
        assert argument is not None
        same = [
            (name, each)
            for name, each in found.left
            if each.function in SUMS and (each.argument, each.condition) == (argument, condition)
        ]
        found.add(*_measured(found.number, argument, condition, same, found.context))


def _measured(
    number: int,
    argument: Expression,
    condition: Expression | None,
    same: list[Named],
    context: AggregationContext,
) -> tuple[Part, dict[str, Estimate]]:
    place = same[0][1].place
    grid, what = grid_for(argument, condition, context, place)
    if grid.whole and grid.step != 1:
        raise Refused(
            "refused-too-large",
            "so wide a range needs a grid of steps greater than 1, on which different values would be equal",
            "declare a narrower range",
            place,
        )
    if {column.name for column in columns_of(argument)} <= context.owner.fixed:
        context = context.counting_units()  # all rows of a unit have the same value
    alone = all(each.function == "sum_distinct" for _, each in same)
    columns = (f"sum_{number}",) if alone else (f"above_{number}", f"below_{number + 1}")
    many, total, of_unit = _different(columns[0], argument, condition, grid, context)
    once = f"{what}; a value is added once, however many rows have it"
    if alone:
        one_sign = grid.low >= 0 or grid.high <= 0
        # always=False: the value of a replaced row may stay, in another row, or have been there
        bound = context.bound(max(grid.magnitude, 1), max(grid.width(False), 1), 1, once, monotone=one_sign)
        title = titled("SUM DISTINCT", argument, condition)
        part = Part(columns, (clean(total),), bound, title, of_unit=of_unit, step=grid.step)
        lone = Linear(((columns[0], grid.step),), grid.whole, signed=grid.low < 0)
        return part, {name: lone for name, _ in same}
    bound = context.bound(grid.steps, grid.steps, 2, once)
    cells = (total - many * grid.low, many * (grid.low + grid.steps) - total)
    title = titled("AVG and SUM DISTINCT", argument, condition)
    both = (*of_unit, Constant(0)) if of_unit else ()  # both columns come from one list of values
    part = Part(columns, tuple(map(clean, cells)), bound, title, of_unit=both, step=grid.step)
    above, below = (((column, Fraction(1)),) for column in columns)
    return part, {
        name: mean_estimate(
            replace(each, function=SUMS[each.function]), above, below, grid, grid.steps, grid.whole
        )
        for name, each in same
    }


def _different(
    listed: str,
    argument: Expression,
    condition: Expression | None,
    grid: Grid,
    context: AggregationContext,
) -> tuple[Scalar, Scalar, tuple[Scalar, ...]]:
    """The number of different values of a cell and their sum, on the grid; and the values that a unit
    contributes, in the column `listed`.
    """
    value, where = Cast(grid.clamped(Value(argument)), BIGINT, total=False), value_of(condition)
    if context.limits is None:
        many = Cast(Fold("count", value, where, distinct=True), WIDE, total=False)
        return many, coalesced(Fold("sum", value, where, distinct=True)), ()
    some = SomeDistinct(value, fair_hash(FairChoice.DISTINCT, UNIT, value), context.limits.max_rows, where)
    lists = Name(listed)
    many = Cast(coalesced(CountDistinctIn(lists)), WIDE, total=False)
    return many, coalesced(SumDistinctIn(lists)), (some,)
