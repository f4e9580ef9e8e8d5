"""Noisy sums of features go in; VAR, COVAR, CORR and REGR come out, with intervals.

In units of rows, A, B, C are the sums of u^2, 2u(1-u), (1-u)^2, and n = A + B + C. Then the variance of u is
(AC - B^2/4) / n^2. With a, b, c, d the sums of uv, u(1-v), (1-u)v, (1-u)(1-v) the covariance is (ad - bc) /
n^2.

Intervals: every exact sum lies in a box, all at once, so surely; what is computed from sums lies between its
extremes over the box. (AC - B^2/4)/n^2, where positive, falls as B grows, and as a function of A rises and
then falls; so its least value is at a corner, and its greatest at a corner or where A = B + C + B^2/(2C), or
the same with A and C exchanged. (Inside, both would have to hold, and their sum says 0 = 2B + B^2/(2A) +
B^2/(2C), so B = 0 and A = C, a ray that ends at an edge.) (ad - bc)/n^2 rises and falls in a and in d,
likewise, and its negative in b and in c.

Where the number of rows n is public: of the sums S of u and D of 2u(1-u) the variance is m(1 - m) - D / 2n, m
= S / n.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from privsql.planning.aggregates.estimates import Spread
from privsql.privacy.weighted_sums import Noise, half_width
from privsql.results.intervals import LEVEL, ONE_SIDED, TINY, Floats, Interval, Mask, product, quotient
from privsql.tables import Integers

_RISING = {2: np.array([1.0, 0.0]), 3: np.array([1.0, 0.5, 0.0])}  # u, from its features
_FALLING = {2: np.array([0.0, 1.0]), 3: np.array([0.0, 0.5, 1.0])}  # 1 - u

_FIRST, _SECOND, _MIXED = ("A1", "B1", "C1"), ("A2", "B2", "C2"), ("a", "b", "c", "d")
_NEEDS: dict[str, tuple[str, ...]] = {
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
Box = Callable[..., Interval]  # some sums, as points or as boxes, to what is computed from them


def _needed(how: Spread) -> list[str]:
    """The sums that the function uses, by name, in the columns' own order of variables."""
    return [_TURNED[name] if how.swapped else name for name in _NEEDS[how.function]]


def _weights(how: Spread, name: str) -> Floats:
    """The weights of the columns in a sum."""
    rows = how.first.features
    columns = how.second.features if how.second is not None else 1
    every = np.ones(columns)
    match name:
        case "A1" | "B1" | "C1":
            return np.outer(np.eye(rows)["ABC".index(name[0])], every).ravel()
        case "A2" | "B2" | "C2":
            return np.outer(np.ones(rows), np.eye(columns)["ABC".index(name[0])]).ravel()
        case _:
            first, second = (_RISING if name in "ab" else _FALLING), (_RISING if name in "ac" else _FALLING)
            return np.outer(first[rows], second[columns]).ravel()


def spread(how: Spread, noisy: Mapping[str, Integers]) -> Floats:
    """The value in every cell; a variance is never negative, a correlation never beyond 1."""
    if how.row is not None:
        found = [noisy[column] / size for column, size in _sizes(how)]
        return _of_one(
            how, _variance_of_rows(*(Interval(each, each) for each in found)), Interval(found[2], found[2])
        ).low
    columns = np.array([noisy[column] for column in how.columns], dtype=np.float64) / float(how.one)
    sums = {name: _weights(how, name) @ columns for name in _needed(how)}
    points = {name: Interval(each, each) for name, each in sums.items()}
    return _computed(how, points, _variance_at, _covariance_at).low


def spread_interval(
    how: Spread, noisy: Mapping[str, Integers], noise: Mapping[str, Noise], level: float
) -> Interval:
    """An interval that covers the exact value with at least this probability, cell by cell."""
    if how.row is not None:
        of_rows = _boxes_of_rows(how, noisy, noise, level)
        return _of_one(how, _variance_of_rows(*of_rows), of_rows[2])
    with np.errstate(all="ignore"):  # where nothing is known, extremes may exceed all floats
        return _computed(how, _boxes(how, noisy, noise, level), _variance_box, _covariance_box)


def spread_undetermined(how: Spread, noisy: Mapping[str, Integers], noise: Mapping[str, Noise]) -> Mask:
    """Where there may well be too few rows, or where the interval contains every possible value."""
    needed = 0.0 if how.function.endswith("_pop") else 1.0
    counted = (
        [(how.columns[2], float(how.row))]
        if how.row is not None
        else [(each, float(how.one)) for each in how.columns]
    )
    rows = np.sum([noisy[column] / one for column, one in counted], axis=0)
    few = (
        rows <= needed + half_width([(1.0 / one, noise[column]) for column, one in counted], ONE_SIDED) + TINY
    )
    found = spread_interval(how, noisy, noise, LEVEL)
    if how.row is not None:
        any_variance = Interval(np.zeros(len(rows)), np.full(len(rows), 0.25))
        possible = _of_one(how, any_variance, _boxes_of_rows(how, noisy, noise, LEVEL)[2])
    else:
        with np.errstate(all="ignore"):
            possible = _computed(how, _boxes(how, noisy, noise, LEVEL), _any_variance, _any_covariance)
    return np.asarray(
        few | (found.low <= possible.low) & (found.high >= possible.high) & (possible.low < possible.high)
    )


def _boxes_of_rows(
    how: Spread, noisy: Mapping[str, Integers], noise: Mapping[str, Noise], level: float
) -> list[Interval]:
    missed = (0.495, 0.495, 0.01)  # almost nothing is known about the number of rows
    return [
        _around(noisy[column] / size, half_width([(1.0 / size, noise[column])], 1.0 - (1.0 - level) * share))
        for (column, size), share in zip(_sizes(how), missed, strict=True)
    ]


def _boxes(
    how: Spread, noisy: Mapping[str, Integers], noise: Mapping[str, Noise], level: float
) -> dict[str, Interval]:
    """Boxes for the sums that the function uses, which hold all at once."""
    columns = np.array([noisy[column] for column in how.columns], dtype=np.float64) / float(how.one)
    each_level = 1.0 - (1.0 - level) / len(_needed(how))
    boxes = {}
    for name in _needed(how):
        weights = _weights(how, name)
        law = noise[how.columns[0]]
        width = half_width([(float(weight) / float(how.one), law) for weight in weights], each_level)
        boxes[name] = _around(weights @ columns, width)
    return boxes


def _around(value: Floats, width: float) -> Interval:
    return Interval(np.maximum(value - width, 0.0), np.maximum(value + width, 0.0))


def _sizes(how: Spread) -> list[tuple[str, float]]:
    """The most a row adds to each column, if one of them counts rows."""
    assert how.row is not None
    return list(zip(how.columns, (float(how.one), float(how.one), float(how.row)), strict=True))


def _variance_of_rows(heights: Interval, mixed: Interval, rows: Interval) -> Interval:
    most, least = np.maximum(rows.high, 1.0), np.maximum(rows.low, 1.0)
    mean = Interval(np.clip(heights.low / most, 0.0, 1.0), np.clip(heights.high / least, 0.0, 1.0))
    ends = mean.low * (1.0 - mean.low), mean.high * (1.0 - mean.high)
    top = np.where((mean.low < 0.5) & (mean.high > 0.5), 0.25, np.maximum(*ends))
    low, high = np.minimum(*ends) - mixed.high / least / 2.0, top - mixed.low / most / 2.0
    few = rows.low < 0.5  # perhaps no rows: nothing is known
    return Interval(
        np.where(few, 0.0, np.clip(low, 0.0, 0.25)), np.where(few, 0.25, np.clip(high, 0.0, 0.25))
    )


def _of_one(how: Spread, variance: Interval, rows: Interval) -> Interval:
    """A function of one variable, from its variance scaled to [0, 1]."""
    function, _, kind = how.function.rpartition("_")
    found = _times(variance, float(how.first.width) ** 2)
    found = _sampled(found, rows) if kind == "samp" else found
    return Interval(np.sqrt(found.low), np.sqrt(found.high)) if function == "stddev" else found


def _computed(how: Spread, sums: Mapping[str, Interval], variance: Box, covariance: Box) -> Interval:
    """The function, of points or of boxes."""
    if how.swapped:
        assert how.second is not None
        how = replace(how, first=how.second, second=how.first, swapped=False)
        sums = {_TURNED[name]: each for name, each in sums.items()}
    first = float(how.first.width)
    second = float(how.second.width) if how.second is not None else 1.0
    top, bottom, mixed = (
        [sums[name] for name in names if name in sums] for names in (_FIRST, _SECOND, _MIXED)
    )
    match how.function:
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _of_one(how, variance(*top), _total(top))
        case "covar_pop" | "covar_samp":
            found = _times(covariance(*mixed), first * second)
            return _sampled(found, _total(mixed)) if how.function == "covar_samp" else found
        case "corr" | "regr_r2":
            spreads = product(variance(*top), variance(*bottom))
            found = quotient(covariance(*mixed), Interval(np.sqrt(spreads.low), np.sqrt(spreads.high)))
            found = Interval(np.clip(found.low, -1.0, 1.0), np.clip(found.high, -1.0, 1.0))
            return found if how.function == "corr" else _squared(found)
        case _:
            slope = _times(quotient(covariance(*mixed), variance(*bottom)), first / second)
            if how.function == "regr_slope":
                return slope
            assert how.second is not None
            a, b, c, d = mixed
            height = _times(_share(_total([a, b]), _total([c, d])), first)
            across = _times(_share(_total([a, c]), _total([b, d])), second)
            down = product(
                slope, Interval(across.low + float(how.second.low), across.high + float(how.second.low))
            )
            return Interval(
                float(how.first.low) + height.low - down.high, float(how.first.low) + height.high - down.low
            )


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


# -- points: a total below one row becomes one row, and impossible values are cut off -------------------
def _variance_at(a: Interval, b: Interval, c: Interval) -> Interval:
    found = _variance(a.low, b.low, c.low)
    return Interval(found, found)


def _variance(a: Floats, b: Floats, c: Floats) -> Floats:
    found: Floats = np.clip((a * c - b**2 / 4.0) / np.maximum(a + b + c, 1.0) ** 2, 0.0, 0.25)
    return found


def _covariance_at(a: Interval, b: Interval, c: Interval, d: Interval) -> Interval:
    found = _covariance(a.low, b.low, c.low, d.low)
    return Interval(found, found)


def _covariance(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    found: Floats = np.clip((a * d - b * c) / np.maximum(a + b + c + d, 1.0) ** 2, -0.25, 0.25)
    return found


# -- boxes ---------------------------------------------------------------------------------------------------
def _variance_box(a: Interval, b: Interval, c: Interval) -> Interval:
    corners = list(itertools.product((a.low, a.high), (c.low, c.high)))
    least = np.minimum.reduce([_variance(x, b.high, z) for x, z in corners])
    edges = [(_top(z, b.low, a), z) for z in (c.low, c.high)] + [
        (x, _top(x, b.low, c)) for x in (a.low, a.high)
    ]
    most = np.maximum.reduce([_variance(x, b.low, z) for x, z in (*corners, *edges)])
    few = a.low + b.low + c.low < 1.0  # perhaps no rows: nothing is known
    return Interval(np.where(few, 0.0, least), np.where(few, 0.25, most))


def _top(other: Floats, b: Floats, within: Interval) -> Floats:
    """Where the variance is greatest as one outer sum moves, while the other one and the middle one are
    fixed.
    """
    best = b + other + b**2 / (2.0 * np.maximum(other, 1e-300))
    return np.clip(best, within.low, within.high)


def _any_variance(a: Interval, b: Interval, c: Interval) -> Interval:
    return Interval(np.zeros_like(a.low), np.full_like(a.low, 0.25))


def _any_covariance(a: Interval, b: Interval, c: Interval, d: Interval) -> Interval:
    return Interval(np.full_like(a.low, -0.25), np.full_like(a.low, 0.25))


def _covariance_box(a: Interval, b: Interval, c: Interval, d: Interval) -> Interval:
    most = _greatest(a, b, c, d)
    least = -_greatest(b, a, d, c)  # the negative is the same with a, b and d, c exchanged
    few = a.low + b.low + c.low + d.low < 1.0
    return Interval(np.where(few, -0.25, least), np.where(few, 0.25, most))


def _greatest(a: Interval, b: Interval, c: Interval, d: Interval) -> Floats:
    found = []
    for y, z in itertools.product((b.low, b.high), (c.low, c.high)):
        corners = list(itertools.product((a.low, a.high), (d.low, d.high)))
        # d/da of (ad - bc)/n^2 is 0 where a d = d (b + c + d) + 2 b c
        edges = [(_peak(w, y, z, a), w) for w in (d.low, d.high)] + [
            (x, _peak(x, y, z, d)) for x in (a.low, a.high)
        ]
        found += [_covariance(x, y, z, w) for x, w in (*corners, *edges)]
    greatest: Floats = np.maximum.reduce(found)
    return greatest


def _peak(other: Floats, b: Floats, c: Floats, within: Interval) -> Floats:
    best = b + c + other + 2.0 * b * c / np.maximum(other, 1e-300)
    return np.clip(best, within.low, within.high)
