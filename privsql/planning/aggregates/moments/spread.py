"""Noisy sums of features go in; VAR, COVAR, CORR and REGR come out, with intervals.

In units of rows, A, B, C are the sums of u^2, 2u(1-u), (1-u)^2, and n = A + B + C. Then the variance of u is
(AC - B^2/4) / n^2. With a, b, c, d the sums of uv, u(1-v), (1-u)v, (1-u)(1-v) the covariance is (ad - bc) /
n^2.

Intervals: every exact sum lies in a box, all at once, so surely; what is computed from sums lies between its
extremes over the box (moment_boxes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privsql.planning.aggregates.estimate import (
    LEVEL,
    ONE_SIDED,
    PARTS_OF_A_ROW,
    TINY,
    Estimate,
    Laws,
    NoisyColumns,
)
from privsql.planning.aggregates.moments.moment_boxes import (
    Box,
    anything,
    at_points,
    covariance,
    covariance_box,
    variance,
    variance_box,
    variance_of_public_rows,
)
from privsql.planning.precision.interval_arithmetic import Floats, Interval, Mask, product, quotient
from privsql.privacy.weighted_sums import half_width

_RISING = {2: np.array([1.0, 0.0]), 3: np.array([1.0, 0.5, 0.0])}  # u, from its features
_FALLING = {2: np.array([0.0, 1.0]), 3: np.array([0.0, 0.5, 1.0])}  # 1 - u

_FIRST, _SECOND, _MIXED = ("A1", "B1", "C1"), ("A2", "B2", "C2"), ("a", "b", "c", "d")
# the sums that each function is computed from
SUMS: dict[str, tuple[str, ...]] = {
    "var_pop": _FIRST,
    "var_samp": _FIRST,
    "stddev_pop": _FIRST,
    "stddev_samp": _FIRST,
    "covar_pop": _MIXED,
    "covar_samp": _MIXED,
    "corr": (*_FIRST, *_SECOND, *_MIXED),
    "regr_r2": (*_FIRST, *_SECOND, *_MIXED),
    "regr_slope": (*_SECOND, *_MIXED),
    "regr_intercept": (*_SECOND, *_MIXED),
}
# the arguments exchanged
_TURNED = dict(zip((*_FIRST, *_SECOND, *_MIXED), (*_SECOND, *_FIRST, "a", "c", "b", "d"), strict=True))


@dataclass(frozen=True)
class Variable:
    """One argument of a spread: u, its height above `low` divided by `width`, is between 0 and 1.

    `squared`: the features are u^2, 2u(1-u), (1-u)^2; otherwise u, 1-u.
    """

    low: Fraction
    width: Fraction
    squared: bool

    @property
    def features(self) -> int:
        return 3 if self.squared else 2


@dataclass(frozen=True)
class Spread(Estimate):
    """VAR, STDDEV, COVAR, CORR, REGR: from sums of products of the features of one or two variables,
    row-major in the first.
    """

    function: str
    moments: tuple[str, ...]  # the columns
    first: Variable
    second: Variable | None
    one: Fraction  # what a row adds to all columns together
    swapped: bool = False  # the function's first argument is the second variable

    @property
    def columns(self) -> tuple[str, ...]:
        return self.moments

    @property
    def formula(self) -> str:
        return f"{self.function} of {self.columns[0]} to {self.columns[-1]}"

    def value(self, noisy: NoisyColumns) -> Floats:
        """A variance is never negative, a correlation never beyond 1."""
        sums = self._sums(noisy)
        points = {name: Interval(each, each) for name, each in sums.items()}
        return self._computed(points, at_points(variance), at_points(covariance)).low

    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        with np.errstate(all="ignore"):  # where nothing is known, extremes may exceed all floats
            return self._computed(self._boxes(noisy, noise, level), variance_box, covariance_box)

    def undetermined(self, noisy: NoisyColumns, noise: Laws) -> Mask:
        """Where there may well be too few rows, or where the interval contains every possible value."""
        needed = 0.0 if self.function.endswith("_pop") else 1.0
        counted = self._counted
        rows = np.sum([noisy[column] / one for column, one in counted], axis=0)
        width = half_width([(1.0 / one, noise[column]) for column, one in counted], ONE_SIDED)
        few = rows <= needed + width + TINY
        found, possible = self.interval(noisy, noise, LEVEL), self._possible(noisy, noise)
        return np.asarray(
            few | (found.low <= possible.low) & (found.high >= possible.high) & (possible.low < possible.high)
        )

    def squared_error(self, variances: Mapping[str, float]) -> float:
        return max(variances[column] for column in self.columns) / float(self.one) ** 2

    @property
    def _counted(self) -> list[tuple[str, float]]:
        """The columns that make up the number of rows, each with what one row adds."""
        return [(each, float(self.one)) for each in self.columns]

    def _possible(self, noisy: NoisyColumns, noise: Laws) -> Interval:
        """Every value that the function may have, whatever the variances and covariances."""
        with np.errstate(all="ignore"):
            boxes = self._boxes(noisy, noise, LEVEL)
            return self._computed(boxes, anything(0.0, 0.25), anything(-0.25, 0.25))

    @property
    def _needed(self) -> list[str]:
        """The sums that the function uses, by name, in the columns' own order of variables."""
        return [_TURNED[name] if self.swapped else name for name in SUMS[self.function]]

    def _weights(self, name: str) -> Floats:
        """The weights of the columns in a sum."""
        rows = self.first.features
        columns = self.second.features if self.second is not None else 1
        every = np.ones(columns)
        match name:
            case "A1" | "B1" | "C1":
                return np.outer(np.eye(rows)["ABC".index(name[0])], every).ravel()
            case "A2" | "B2" | "C2":
                return np.outer(np.ones(rows), np.eye(columns)["ABC".index(name[0])]).ravel()
            case _:
                first = _RISING if name in "ab" else _FALLING
                second = _RISING if name in "ac" else _FALLING
                return np.outer(first[rows], second[columns]).ravel()

    def _sums(self, noisy: NoisyColumns) -> dict[str, Floats]:
        """The sums that the function uses, in rows."""
        columns = np.array([noisy[column] for column in self.columns], dtype=np.float64) / float(self.one)
        return {name: self._weights(name) @ columns for name in self._needed}

    def _boxes(self, noisy: NoisyColumns, noise: Laws, level: float) -> dict[str, Interval]:
        """Boxes for these sums, which hold all at once."""
        each_level, law = 1.0 - (1.0 - level) / len(self._needed), noise[self.columns[0]]
        boxes = {}
        for name, found in self._sums(noisy).items():
            weights = [(float(weight) / float(self.one), law) for weight in self._weights(name)]
            boxes[name] = _around(found, half_width(weights, each_level))
        return boxes

    def _computed(self, sums: Mapping[str, Interval], var: Box, cov: Box) -> Interval:
        """The function, of points or of boxes."""
        if self.swapped:
            assert self.second is not None
            turned = replace(self, first=self.second, second=self.first, swapped=False)
            return turned._computed({_TURNED[name]: each for name, each in sums.items()}, var, cov)
        first = float(self.first.width)
        second = float(self.second.width) if self.second is not None else 1.0
        top, bottom, mixed = (
            [sums[name] for name in names if name in sums] for names in (_FIRST, _SECOND, _MIXED)
        )
        match self.function:
            case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
                return self._of_one(var(*top), _total(top))
            case "covar_pop" | "covar_samp":
                found = _times(cov(*mixed), first * second)
                return _sampled(found, _total(mixed)) if self.function == "covar_samp" else found
            case "corr" | "regr_r2":
                spreads = product(var(*top), var(*bottom))
                found = quotient(cov(*mixed), Interval(np.sqrt(spreads.low), np.sqrt(spreads.high)))
                found = Interval(np.clip(found.low, -1.0, 1.0), np.clip(found.high, -1.0, 1.0))
                return found if self.function == "corr" else _squared(found)
            case _:
                slope = _times(quotient(cov(*mixed), var(*bottom)), first / second)
                return slope if self.function == "regr_slope" else self._intercept(slope, mixed)

    def _of_one(self, variance: Interval, rows: Interval) -> Interval:
        """A function of one variable, from its variance scaled to [0, 1]."""
        function, _, kind = self.function.rpartition("_")
        found = _times(variance, float(self.first.width) ** 2)
        found = _sampled(found, rows) if kind == "samp" else found
        return Interval(np.sqrt(found.low), np.sqrt(found.high)) if function == "stddev" else found

    def _intercept(self, slope: Interval, mixed: Sequence[Interval]) -> Interval:
        """The mean of the first variable, less the slope times that of the second."""
        assert self.second is not None
        a, b, c, d = mixed
        height = _times(_share(_total([a, b]), _total([c, d])), float(self.first.width))
        across = _times(_share(_total([a, c]), _total([b, d])), float(self.second.width))
        start = float(self.second.low)
        down = product(slope, Interval(across.low + start, across.high + start))
        low = float(self.first.low)
        return Interval(low + height.low - down.high, low + height.high - down.low)


@dataclass(frozen=True)
class SpreadOfPublicRows(Spread):
    """VAR and STDDEV of one variable, from the sums of u and 2u(1-u), and the public number of rows."""

    row: int = PARTS_OF_A_ROW  # what a row adds to the last column; to the others at most `one`

    @property
    def formula(self) -> str:
        return f"{self.function} of {', '.join(self.columns)}"

    def value(self, noisy: NoisyColumns) -> Floats:
        found = [noisy[column] / size for column, size in self._sizes]
        points = [Interval(each, each) for each in found]
        return self._of_one(variance_of_public_rows(*points), points[2]).low

    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        boxes = self._boxes_of_columns(noisy, noise, level)
        return self._of_one(variance_of_public_rows(*boxes), boxes[2])

    @property
    def _sizes(self) -> list[tuple[str, float]]:
        """The most a row adds to each column."""
        return list(zip(self.columns, (float(self.one), float(self.one), float(self.row)), strict=True))

    @property
    def _counted(self) -> list[tuple[str, float]]:
        return self._sizes[2:]

    def _possible(self, noisy: NoisyColumns, noise: Laws) -> Interval:
        rows = self._boxes_of_columns(noisy, noise, LEVEL)[2]
        return self._of_one(anything(0.0, 0.25)(rows), rows)

    def _boxes_of_columns(self, noisy: NoisyColumns, noise: Laws, level: float) -> list[Interval]:
        missed = (0.495, 0.495, 0.01)  # almost nothing is known about the number of rows
        boxes = []
        for (column, size), share in zip(self._sizes, missed, strict=True):
            width = half_width([(1.0 / size, noise[column])], 1.0 - (1.0 - level) * share)
            boxes.append(_around(noisy[column] / size, width))
        return boxes


def _around(value: Floats, width: float) -> Interval:
    return Interval(np.maximum(value - width, 0.0), np.maximum(value + width, 0.0))


def _times(a: Interval, factor: float) -> Interval:
    return Interval(a.low * factor, a.high * factor)


def _total(parts: Sequence[Interval]) -> Interval:
    return Interval(
        np.sum([each.low for each in parts], axis=0), np.sum([each.high for each in parts], axis=0)
    )


def _squared(a: Interval) -> Interval:
    ends = a.low**2, a.high**2
    return Interval(np.where((a.low < 0) & (a.high > 0), 0.0, np.minimum(*ends)), np.maximum(*ends))


def _share(part: Interval, rest: Interval) -> Interval:
    """part / (part + rest); anything from 0 to 1 where both may be 0."""
    low = part.low / np.maximum(part.low + rest.high, 1.0)
    high = np.where(part.high + rest.low > 0, part.high / np.maximum(part.high + rest.low, 1e-300), 1.0)
    return Interval(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def _sampled(a: Interval, rows: Interval) -> Interval:
    """n / (n - 1) of it, for n from 2 on: a factor between 1 and 2 that falls as n grows."""
    most, least = np.maximum(rows.high, 2.0), np.maximum(rows.low, 2.0)
    return product(a, Interval(most / (most - 1.0), least / (least - 1.0)))
