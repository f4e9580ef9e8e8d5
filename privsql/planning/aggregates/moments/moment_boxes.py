"""Sums of features go in, as points or as boxes; the variance or covariance comes out, between its extremes.

(AC - B^2/4)/n^2, where positive, falls as B grows, and as a function of A rises and then falls; so its least
value is at a corner, and its greatest at a corner or where A = B + C + B^2/(2C), or the same with A and C
exchanged. (Inside, both would have to hold, and their sum says 0 = 2B + B^2/(2A) + B^2/(2C), so B = 0 and A =
C, a ray that ends at an edge.) (ad - bc)/n^2 rises and falls in a and in d, likewise, and its negative in b
and in c.

Where the number of rows n is public: of the sums S of u and D of 2u(1-u) the variance is m(1 - m) - D / 2n, m
= S / n.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from privsql.planning.precision.interval_arithmetic import Floats, Interval

Box = Callable[..., Interval]  # some sums, as points or as boxes, to what is computed from them


# -- points: a total below one row becomes one row, and impossible values are cut off -------------------
def at_points(function: Callable[..., Floats]) -> Box:
    """The function, of boxes that are points."""

    def found(*sums: Interval) -> Interval:
        value = function(*(each.low for each in sums))
        return Interval(value, value)

    return found


def variance(a: Floats, b: Floats, c: Floats) -> Floats:
    found: Floats = np.clip((a * c - b**2 / 4.0) / np.maximum(a + b + c, 1.0) ** 2, 0.0, 0.25)
    return found


def covariance(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    found: Floats = np.clip((a * d - b * c) / np.maximum(a + b + c + d, 1.0) ** 2, -0.25, 0.25)
    return found


# -- boxes ---------------------------------------------------------------------------------------------------
def anything(low: float, high: float) -> Box:
    """Every value between these, whatever the sums are."""
    return lambda *sums: Interval(np.full_like(sums[0].low, low), np.full_like(sums[0].low, high))


def variance_box(a: Interval, b: Interval, c: Interval) -> Interval:
    corners = list(itertools.product((a.low, a.high), (c.low, c.high)))
    least = np.minimum.reduce([variance(x, b.high, z) for x, z in corners])
    edges = [(_top(z, b.low, a), z) for z in (c.low, c.high)] + [
        (x, _top(x, b.low, c)) for x in (a.low, a.high)
    ]
    most = np.maximum.reduce([variance(x, b.low, z) for x, z in (*corners, *edges)])
    few = a.low + b.low + c.low < 1.0  # perhaps no rows: nothing is known
    return Interval(np.where(few, 0.0, least), np.where(few, 0.25, most))


def _top(other: Floats, b: Floats, within: Interval) -> Floats:
    """Where the variance is greatest as one outer sum moves, while the other one and the middle one are
    fixed.
    """
    best = b + other + b**2 / (2.0 * np.maximum(other, 1e-300))
    return np.clip(best, within.low, within.high)


def covariance_box(a: Interval, b: Interval, c: Interval, d: Interval) -> Interval:
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
        found += [covariance(x, y, z, w) for x, w in (*corners, *edges)]
    greatest: Floats = np.maximum.reduce(found)
    return greatest


def _peak(other: Floats, b: Floats, c: Floats, within: Interval) -> Floats:
    best = b + c + other + 2.0 * b * c / np.maximum(other, 1e-300)
    return np.clip(best, within.low, within.high)


# -- where the number of rows is public ---------------------------------------------------------------------
def variance_of_public_rows(heights: Interval, mixed: Interval, rows: Interval) -> Interval:
    most, least = np.maximum(rows.high, 1.0), np.maximum(rows.low, 1.0)
    mean = Interval(np.clip(heights.low / most, 0.0, 1.0), np.clip(heights.high / least, 0.0, 1.0))
    ends = mean.low * (1.0 - mean.low), mean.high * (1.0 - mean.high)
    top = np.where((mean.low < 0.5) & (mean.high > 0.5), 0.25, np.maximum(*ends))
    low, high = np.minimum(*ends) - mixed.high / least / 2.0, top - mixed.low / most / 2.0
    few = rows.low < 0.5  # perhaps no rows: nothing is known
    return Interval(
        np.where(few, 0.0, np.clip(low, 0.0, 0.25)), np.where(few, 0.25, np.clip(high, 0.0, 0.25))
    )
