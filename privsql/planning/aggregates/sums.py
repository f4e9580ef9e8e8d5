"""SUM: a clamped argument goes in; the measurement of its sum comes out, and the estimate that COUNT and SUM
have: a weighted sum of noisy columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.algebra.exact import WIDE, Cast, Fold, Name, Scalar, Value, clamped, total
from privsql.algebra.expressions import Column, Expression
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.estimate import (
    ALL_ROWS,
    PARTS_OF_A_ROW,
    Estimate,
    Laws,
    NoisyColumns,
    Terms,
    weighted,
    weighted_half_width,
    weighted_variance,
)
from privsql.planning.aggregates.parts import Adds, Feature, Part, clean, helper, titled, value_of
from privsql.planning.grids.grid import Grid
from privsql.planning.precision.interval_arithmetic import Interval, Mask
from privsql.planning.rewrites.outliers import Outliers

LARGEST_WHOLE = float(2**63 - 1024)  # the last double below 2^63, where larger integer sums stop


@dataclass(frozen=True)
class Linear(Estimate):
    """COUNT and SUM: a weighted sum of one or two noisy columns, rounded if the result is an integer."""

    terms: Terms
    whole: bool
    signed: bool = False  # its columns may be negative

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.terms)

    @property
    def nonnegative(self) -> bool:
        """Whether the measured number cannot be negative."""
        return not self.signed and all(weight >= 0 for _, weight in self.terms)

    @property
    def formula(self) -> str:
        terms = [(column, weight) for column, weight in self.terms if weight]
        parts = [_times(column, weight) for column, weight in terms]
        text = " + ".join(parts) or "0"
        if self.whole and any(weight.denominator > 1 for _, weight in terms):
            return f"round({text})"
        return text if len(terms) < 2 else f"({text})"

    def value(self, noisy: NoisyColumns) -> npt.NDArray[Any]:
        match self.terms:
            case ((column, weight),) if weight == 1:
                return noisy[column]
        total = weighted(self.terms, noisy)
        if not self.whole:
            return total
        return np.rint(np.clip(total, -LARGEST_WHOLE, LARGEST_WHOLE)).astype(np.int64)

    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        width = self.half_width(noise, level)
        value = self.value(noisy).astype(np.float64)
        if self.whole:  # counts are integers, so fractions at the ends can be dropped
            return Interval(np.ceil(value - width), np.floor(value + width))
        return Interval(value - width, value + width)

    def undetermined(self, noisy: NoisyColumns, noise: Laws) -> Mask:
        """Nowhere: 0 is a meaningful count or sum."""
        return np.zeros(len(noisy[self.columns[0]]), dtype=np.bool_)

    def half_width(self, noise: Laws, level: float, rows: int = 0, corners: int = 0) -> float:
        width = weighted_half_width(self.terms, noise, level)
        if not self.whole:
            return width
        if corners:  # integers that add up are rounded together
            return float(math.floor(width + corners / 2.0 + 1e-9)) if width else width
        rounds = any(weight.denominator > 1 for _, weight in self.terms)
        return float(math.floor(width + 0.5 + 1e-9)) if rounds else width

    def squared_error(self, variances: Mapping[str, float]) -> float:
        return weighted_variance(self.terms, variances)


def _times(column: str, weight: Fraction) -> str:
    if column == ALL_ROWS:
        return f"{_times('', weight * PARTS_OF_A_ROW)}{column} / {PARTS_OF_A_ROW}"
    return column if weight == 1 else f"{float(weight):.6g} * {column}"


@dataclass(frozen=True)
class ClampedSum:
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


def clamped_sum(
    number: int,
    argument: Expression,
    condition: Expression | None,
    grid: Grid,
    context: AggregationContext,
    beside: bool = False,
) -> ClampedSum:
    """`beside`: the number of all rows is wanted as well, NULLs included."""
    value, where = helper(number), value_of(condition)
    if not context.raw:
        computed = (value, grid.value(Value(argument)))
        rows, every = (Cast(Fold("count", each, where), WIDE, total=False) for each in (Name(value), None))
        return ClampedSum(Fold("sum", Name(value), where), rows, every, grid, values=(computed,))
    assert isinstance(argument, Column)
    counted = f"privsql_all_{number}" if beside else None
    outliers = Outliers(value, f"privsql_rows_{number}", argument, grid, where, counted)
    rows, every = (
        Cast(Fold("sum", Name(each)), WIDE, total=False) for each in (outliers.rows, outliers.every or "")
    )
    raw = replace(grid, narrow=False)
    return ClampedSum(Fold("sum", Name(value)), rows, every, raw, outliers=(outliers,))


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
    added = clamped_sum(int(name.rpartition("_")[2]), argument, condition, grid, context)
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
