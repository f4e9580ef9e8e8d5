"""A clamped argument goes in; the measurement of its SUM comes out, or of the pair from which SUM, AVG and
COUNT are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.exact import (
    WIDE,
    Cases,
    Cast,
    Fold,
    Name,
    Operation,
    Scalar,
    Value,
    clamped,
    coalesced,
    least,
    nonzero,
    op,
    total,
)
from privsql.algebra.expressions import Aggregate, Column, Expression
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.counts_beside_sums import columns_beside
from privsql.planning.aggregates.estimates import ALL_ROWS, PARTS_OF_A_ROW, Estimate, Linear, Ratio
from privsql.planning.aggregates.parts import (
    Adds,
    Beside,
    Feature,
    Part,
    clean,
    grid_for,
    helper,
    titled,
    value_of,
)
from privsql.planning.aggregates.release_parts import Named, ReleaseParts, is_about
from privsql.planning.grids.grid import Grid
from privsql.planning.measurements.noised import in_words
from privsql.planning.rewrites.outliers import Outliers


@dataclass(frozen=True)
class _Added:
    """A clamped argument, added up: the sum and the number of its values, and what they are computed from.

    Either each value is clamped in a helper column (`values`), or the column is added up as it is and
    corrected for what lies outside its range (`outliers`).
    """

    total: Scalar
    rows: Scalar
    every: Scalar  # the number of rows, NULLs included
    grid: Grid  # the grid of the total
    values: tuple[tuple[str, Scalar], ...] = ()
    outliers: tuple[Outliers, ...] = ()


def _added(
    number: int,
    argument: Expression,
    condition: Expression | None,
    grid: Grid,
    context: AggregationContext,
    beside: bool = False,
) -> _Added:
    """`beside`: the number of all rows is wanted as well, NULLs included."""
    value, where = helper(number), value_of(condition)
    if not context.raw:
        computed = (value, grid.value(Value(argument)))
        rows, every = (Cast(Fold("count", each, where), WIDE, total=False) for each in (Name(value), None))
        return _Added(Fold("sum", Name(value), where), rows, every, grid, values=(computed,))
    assert isinstance(argument, Column)
    counted = f"privsql_all_{number}" if beside else None
    outliers = Outliers(value, f"privsql_rows_{number}", argument, grid, where, counted)
    rows, every = (
        Cast(Fold("sum", Name(each)), WIDE, total=False) for each in (outliers.rows, outliers.every or "")
    )
    raw = replace(grid, narrow=False)
    return _Added(Fold("sum", Name(value)), rows, every, raw, outliers=(outliers,))


def one_sided(
    name: str,
    argument: Expression,
    condition: Expression | None,
    grid: Grid,
    context: AggregationContext,
    what: str,
) -> Part:
    """One column: the sum of the clamped values, for a SUM that stands alone. `what` says so in EXPLAIN."""
    always = context.always_counts and condition is None
    bound = context.bound(
        max(grid.magnitude, 1), max(grid.width(always), 1), 1, what, monotone=grid.low >= 0 or grid.high <= 0
    )
    added = _added(int(name.rpartition("_")[2]), argument, condition, grid, context)
    summed = added.grid.total(added.total, added.rows)
    title = titled("SUM", argument, condition)
    if context.limits is None:
        feature = Feature(Adds.VALUE, argument, condition, grid)
        cells, outliers = (clean(summed),), added.outliers
        return Part(
            (name,), cells, bound, title, added.values, features=(feature,), outliers=outliers, step=grid.step
        )
    # a unit's total in a key is clamped to the range that so many rows can reach
    most = context.limits.max_rows
    held = clamped(Name(name), most * min(grid.low, 0), most * max(grid.high, 0))
    cells = (clean(total(held)),)
    return Part((name,), cells, bound, title, added.values, of_unit=(summed,), step=grid.step)


def two_sided(
    number: int,
    argument: Expression,
    condition: Expression | None,
    grid: Grid,
    context: AggregationContext,
    what: str,
    beside: Sequence[Beside] = (),
) -> Part:
    """A = sum of u and B = sum of (M - u), where u is the clamped value above the low end, and M the width of
    the range.

    Then (A + B) / M is COUNT, low + M A / (A + B) is AVG, and SUM is their product. A row that comes adds M
    in all, whatever its value: under add-remove both cost no more than one sum of values up to M.

    `beside`: what is counted together with them, at no further cost.
    """
    extent = in_words(grid.extent)
    reason = f"{what}; a row adds u, its height above {float(grid.low * grid.step):g}, and {extent} - u"
    also = columns_beside(number + 2, beside, grid.steps)
    bound = context.bound(grid.steps, grid.steps, 2 + len(beside), reason + also.reason(extent))
    sums = (f"above_{number}", f"below_{number + 1}")
    added = _added(number, argument, condition, grid, context, bool(beside))
    above, below = added.grid.sides(added.total, added.rows)
    part = Part(
        (*sums, *also.names),
        (),
        bound,
        titled("AVG, SUM and COUNT", argument, condition) + also.title(condition),
        added.values,
        outliers=added.outliers,
        all_rows=also.all_rows(sums, Fraction(grid.steps)),
        nulls=also.nulls(Fraction(grid.steps)),
        step=grid.step,
    )
    if context.limits is None:
        pair = [Feature(adds, argument, condition, grid) for adds in (Adds.HEIGHT, Adds.DEPTH)]
        cells = (above, below, *also.cells(added.every, added.rows))
        return replace(
            part, cells=tuple(map(clean, cells)), features=(*pair, *also.features(argument, condition))
        )
    height, count = (Name(each) for each in sums)
    most = context.limits.max_rows
    if beside:  # of the rows that count, n' are not NULL: A' = A n' / n, B' = M n' - A'
        kept, others = also.held(count, most)
        high = coalesced(height * kept // nonzero(count))
        held = [high, grid.steps * kept - high, *others]
    # at most R of a unit's c rows count, at their mean height: A' = A min(c, R) / c, B' = M min(c, R) - A'
    else:
        many = op(Operation.GREATER, count, most)
        high = Cases(((many, height * most // nonzero(count)),), height)
        held = [high, grid.steps * least(count, most) - high]
    own = (above, added.rows, *(added.every for _ in beside))
    return replace(part, cells=tuple(clean(total(each)) for each in held), of_unit=own)


def heights(number: int, argument: Expression, grid: Grid, context: AggregationContext, what: str) -> Part:
    """A = sum of u, the clamped value above the low end: with the public number of rows, this is all that AVG
    needs.
    """
    reason = f"{what}; a row adds u, its height above {float(grid.low * grid.step):g}"
    added = _added(number, argument, None, grid, context)
    above, _ = added.grid.sides(added.total, added.rows)
    bound = context.bound(grid.steps, grid.steps, 1, reason)
    title = titled("AVG and SUM", argument, None)
    column, cells = (f"above_{number}",), (clean(above),)
    return Part(column, cells, bound, title, added.values, outliers=added.outliers, step=grid.step)


def heights_estimate(aggregate: Aggregate, column: str, one: int, grid: Grid) -> Estimate:
    """Estimate from a column to which a row adds its height, scaled to [0, `one`], and the public number of
    rows.
    """
    rows = Fraction(1, PARTS_OF_A_ROW)
    low, width = grid.low * grid.step, grid.steps * grid.step
    match aggregate.function:
        case "count":
            return Linear(((ALL_ROWS, rows),), whole=True)
        case "sum":
            start = ((ALL_ROWS, low * rows),) if low else ()
            return Linear(((column, width / one), *start), grid.whole)
        case _:
            return Ratio(
                ((column, Fraction(1)),),
                ((ALL_ROWS, one * rows), (column, Fraction(-1))),
                low,
                low + width,
                one,
            )


def two_sided_estimate(aggregate: Aggregate, columns: tuple[str, ...], grid: Grid) -> Estimate:
    above, below, *_ = columns
    one = Fraction(1, grid.steps)
    match aggregate.function:
        case "count":
            return Linear(((above, one), (below, one)), whole=True)
        case "sum":
            high = grid.low + grid.steps
            return Linear(((above, high * one * grid.step), (below, grid.low * one * grid.step)), grid.whole)
        case _:
            ends = grid.low * grid.step, (grid.low + grid.steps) * grid.step
            return Ratio(((above, Fraction(1)),), ((below, Fraction(1)),), *ends, grid.steps)


# -- as a family ---------------------------------------------------------------------------------------------
def add_sums(found: ReleaseParts) -> None:
    """Add a two-sided part for every averaged argument, and a one-sided one for every other sum."""
    averaged = [(each.argument, each.condition) for _, each in found.left if each.function in ("sum", "avg")]
    for argument, condition in dict.fromkeys(averaged):
        assert argument is not None
        same = [
            (name, each)
            for name, each in found.left
            if each.condition == condition and is_about(each, argument, found.context.facts)
        ]
        kinds = found.wanted.kinds([argument], condition, found.context)
        part, estimates = _summed(found.number, argument, condition, same, kinds, found.context)
        found.add_carrier(part, estimates, [argument], condition)


def _summed(
    number: int,
    argument: Expression,
    condition: Expression | None,
    same: Sequence[Named],
    kinds: Sequence[Beside],
    context: AggregationContext,
) -> tuple[Part, dict[str, Estimate]]:
    """The part of an argument, and the estimates from it. A public number of rows replaces the column that
    would measure it.
    """
    place = next(each.place for _, each in same if each.argument == argument)
    grid, what = grid_for(argument, condition, context, place)
    if {each.function for _, each in same} == {"sum"} and not kinds:
        part = one_sided(f"sum_{number}", argument, condition, grid, context, what)
        lone = Linear(((part.columns[0], grid.step),), grid.whole, signed=grid.low < 0)
        return part, {same[0][0]: lone}
    if context.rows_are_public and condition is None and not grid.nullable:
        part = heights(number, argument, grid, context, what)
        return part, {name: heights_estimate(each, part.columns[0], grid.steps, grid) for name, each in same}
    part = two_sided(number, argument, condition, grid, context, what, kinds)
    return part, {name: two_sided_estimate(each, part.columns, grid) for name, each in same}
