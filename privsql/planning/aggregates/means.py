"""AVG: a clamped argument goes in; the pair of measured sums comes out from which SUM, AVG and COUNT are
computed, and the estimate of AVG: their ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from privsql.algebra.exact import Cases, Name, Operation, coalesced, least, nonzero, op, total
from privsql.algebra.expressions import Aggregate, Expression
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.counts_beside_sums import columns_beside
from privsql.planning.aggregates.estimate import (
    ALL_ROWS,
    LEVEL,
    ONE_SIDED,
    PARTS_OF_A_ROW,
    TINY,
    Estimate,
    Laws,
    NoisyColumns,
    Terms,
    weighted,
    weighted_half_width,
    weighted_variance,
)
from privsql.planning.aggregates.parts import Adds, Beside, Feature, Part, clean, grid_for, titled
from privsql.planning.aggregates.release_parts import Named, ReleaseParts, is_about
from privsql.planning.aggregates.sums import Linear, clamped_sum, one_sided
from privsql.planning.grids.grid import Grid
from privsql.planning.measurements.noised import in_words
from privsql.planning.precision.interval_arithmetic import Floats, Interval, Mask


@dataclass(frozen=True)
class Ratio(Estimate):
    """AVG: low + (high - low) * above / (above + below), where above = sum of u, below = sum of (1 - u)."""

    above: Terms
    below: Terms
    low: Fraction
    high: Fraction
    one: int  # what a row adds to above + below

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for column, _ in (*self.above, *self.below)))

    @property
    def formula(self) -> str:
        above, total = Linear(self.above, whole=False).formula, Linear(self.total, whole=False).formula
        start = f"{float(self.low):.6g} + " if self.low else ""
        total = f"({total})" if len(self.total) == 1 and total not in self.columns else total
        ratio = f"{float(self.high - self.low):.6g} * {above} / {total}"
        return f"({start}{ratio})" if start else ratio

    @cached_property
    def total(self) -> Terms:
        """The terms of above + below."""
        weights: dict[str, Fraction] = {}
        for column, weight in (*self.above, *self.below):
            weights[column] = weights.get(column, Fraction(0)) + weight
        return tuple((column, weight) for column, weight in weights.items() if weight)

    def value(self, noisy: NoisyColumns) -> Floats:
        above, below = weighted(self.above, noisy), weighted(self.below, noisy)
        # a noisy count below 1 becomes 1, so the answer stays in the declared range whatever the noise
        share = np.clip(above / np.maximum(above + below, float(self.one)), 0.0, 1.0)
        found: Floats = float(self.low) + float(self.high - self.low) * share
        return found

    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        """The r that the noisy pair does not contradict: |(1 - r) A - r B| <= the noise of (1 - r) X - r Y.

        That noise is no larger than max(|X|, |Y|), whatever r is, so a half-width h that holds for both at
        once keeps the solution closed: r = (A -+ h) / (A + B). Nor is it larger than |X| + |X + Y|, which is
        less where A + B is all but known.
        """
        each_level = 1.0 - (1.0 - level) / 2.0
        width = max(weighted_half_width(side, noise, each_level) for side in (self.above, self.below))
        nearly, rarely = 1.0 - 0.99 * (1.0 - level), 1.0 - 0.01 * (1.0 - level)
        apart = weighted_half_width(self.above, noise, nearly) + weighted_half_width(
            self.total, noise, rarely
        )
        width = min(width, apart)
        above, below = weighted(self.above, noisy), weighted(self.below, noisy)
        total = above + below
        usable = total > 0
        safe = np.where(usable, total, 1.0)
        low = np.where(usable, np.clip((above - width) / safe, 0.0, 1.0), 0.0)
        high = np.where(usable, np.clip((above + width) / safe, 0.0, 1.0), 1.0)
        # too few rows: the exact pair may be (0, 0) or have the other sign
        nothing = total <= 2 * width
        low, high = np.where(nothing, 0.0, low), np.where(nothing, 1.0, high)
        span = float(self.high - self.low)
        return Interval(float(self.low) + span * low, float(self.low) + span * high)

    def undetermined(self, noisy: NoisyColumns, noise: Laws) -> Mask:
        empty = weighted(self.total, noisy) <= _upwards(self.total, noise) + TINY
        found = self.interval(noisy, noise, LEVEL)
        whole = (found.low <= float(self.low)) & (found.high >= float(self.high)) & (self.low < self.high)
        return np.asarray(empty | whole)

    def half_width(self, noise: Laws, level: float, rows: int = 0, corners: int = 0) -> float | None:
        """A - r(A + B) has the most noise at r = 0 or 1, where only one side counts."""
        if not rows:
            return None
        width = max(weighted_half_width(side, noise, level) for side in (self.above, self.below))
        return float(self.high - self.low) * width / (rows * self.one)

    def squared_error(self, variances: Mapping[str, float]) -> float:
        sides = (weighted_variance(side, variances) for side in (self.above, self.below))
        return max(sides) / self.one**2


def _upwards(terms: Terms, noise: Laws) -> float:
    """What the noise of a sum exceeds with probability at most 1 - LEVEL. Bounds on its parts are tighter
    where it is almost 0.
    """
    each_level = 1.0 - (1.0 - ONE_SIDED) / len(terms)
    apart = sum(weighted_half_width((term,), noise, each_level) for term in terms)
    return min(weighted_half_width(terms, noise, ONE_SIDED), apart)


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
    added = clamped_sum(number, argument, condition, grid, context, bool(beside))
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
    added = clamped_sum(number, argument, None, grid, context)
    above, _ = added.grid.sides(added.total, added.rows)
    bound = context.bound(grid.steps, grid.steps, 1, reason)
    title = titled("AVG and SUM", argument, None)
    column, cells = (f"above_{number}",), (clean(above),)
    return Part(column, cells, bound, title, added.values, outliers=added.outliers, step=grid.step)


def heights_estimate(aggregate: Aggregate, column: str, one: int, grid: Grid) -> Estimate:
    """Estimate from a column to which a row adds its height, scaled to [0, `one`], and the public number of
    rows.
    """
    above, rows = (column, Fraction(1)), (ALL_ROWS, Fraction(one, PARTS_OF_A_ROW))
    return mean_estimate(aggregate, (above,), (rows, (column, Fraction(-1))), grid, one, grid.whole)


def mean_estimate(
    aggregate: Aggregate, above: Terms, below: Terms, grid: Grid, one: int, whole: bool
) -> Estimate:
    """COUNT, SUM or AVG from heights and depths, which add up to `one` for each row."""
    ratio = Ratio(above, below, grid.low * grid.step, (grid.low + grid.steps) * grid.step, one)
    match aggregate.function:
        case "count":
            return Linear(tuple((column, weight / one) for column, weight in ratio.total), whole=True)
        case "sum":
            terms = dict.fromkeys(ratio.columns, Fraction(0))
            for end, side in ((ratio.high, above), (ratio.low, below)):
                for column, weight in side:
                    terms[column] += end * weight / one
            # the public number of rows is measured only if something uses it
            used = (each for each in terms.items() if each[1] or each[0] != ALL_ROWS)
            return Linear(tuple(used), whole)
        case _:
            return ratio


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
    above, below = (((column, Fraction(1)),) for column in part.columns[:2])
    return part, {
        name: mean_estimate(each, above, below, grid, grid.steps, grid.whole) for name, each in same
    }
