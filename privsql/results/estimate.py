"""Noisy columns go in; aggregates and their intervals come out, computed from noisy and public
numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.planning.aggregates.estimates import Estimate, Linear, QuantilePoint, Ratio, Spread, Terms
from privsql.planning.precision.half_widths import linear_half_width, terms_half_width
from privsql.privacy.weighted_sums import Noise
from privsql.results.intervals import LEVEL, ONE_SIDED, TINY, Floats, Interval, Mask
from privsql.results.moments import spread, spread_interval, spread_undetermined
from privsql.tables import Integers
from privsql.types import MOMENTS, Kind

LARGEST_WHOLE = float(2**63 - 1024)  # the last double below 2^63, where larger integer sums stop


def estimate(how: Estimate, noisy: Mapping[str, Integers]) -> npt.NDArray[Any]:
    """The value of an aggregate in every cell."""
    match how:
        case Linear(terms=((column, weight),)) if weight == 1:
            return noisy[column]
        case Linear():
            total = weighted(how.terms, noisy)
            return (
                np.rint(np.clip(total, -LARGEST_WHOLE, LARGEST_WHOLE)).astype(np.int64)
                if how.whole
                else total
            )
        case Ratio():
            above, below = weighted(how.above, noisy), weighted(how.below, noisy)
            # a noisy count below 1 becomes 1, so the answer stays in the declared range whatever the noise
            share = np.clip(above / np.maximum(above + below, float(how.one)), 0.0, 1.0)
            return float(how.low) + float(how.high - how.low) * share
        case Spread():
            return spread(how, noisy)
        case QuantilePoint():
            return _placed(how, grid_points(noisy[how.column]))


def grid_points(noisy: Integers) -> Integers:
    """The selected points. p below 0 stands for the point -1 - p, drawn from the prior because there are too
    few rows.
    """
    return np.where(noisy < 0, -1 - noisy, noisy)


def _placed(how: QuantilePoint, noisy_points: Integers) -> npt.NDArray[Any]:
    """The value of a grid point."""
    if how.on in MOMENTS:
        unit = "D" if how.on is Kind.DATE else "us"
        moments = int(how.low) + noisy_points * int(how.step)
        return moments.astype(f"datetime64[{unit}]").astype("datetime64[us]")
    if how.kind is Kind.INTEGER:
        return int(how.low) + noisy_points * int(how.step)
    # the low end is a multiple of the step, so that 36.6 is 366 / 10 and not 366 * 0.1
    steps = int(how.low / how.step) + noisy_points
    return steps.astype(np.float64) * float(how.step.numerator) / float(how.step.denominator)


def weighted(terms: Terms, noisy: Mapping[str, npt.NDArray[Any]]) -> Floats:
    """A weighted sum of columns, as floats."""
    total = np.zeros(len(noisy[terms[0][0]]), dtype=np.float64)
    for column, weight in terms:
        total += noisy[column].astype(np.float64) * float(weight)
    return total


def leaf_interval(
    how: Estimate, noisy: Mapping[str, Integers], noise: Mapping[str, Noise], level: float
) -> Interval:
    """An interval that covers the exact aggregate (of the clamped values) with at least this probability,
    cell by cell.
    """
    match how:
        case Linear():
            width = linear_half_width(how, noise, level)
            value = estimate(how, noisy).astype(np.float64)
            if how.whole:  # counts are integers, so fractions at the ends can be dropped
                return Interval(np.ceil(value - width), np.floor(value + width))
            return Interval(value - width, value + width)
        case Ratio():
            return _ratio_interval(how, noisy, noise, level)
        case Spread():
            return spread_interval(how, noisy, noise, level)
        case QuantilePoint():  # how far apart ranks are in values depends on the data
            size = len(noisy[how.column])
            return Interval(np.full(size, float(how.low)), np.full(size, float(how.high)))


def undetermined(how: Estimate, noisy: Mapping[str, Integers], noise: Mapping[str, Noise]) -> Mask:
    """Where an aggregate is undetermined: the cell may well be empty, or every value is possible.

    The noise is symmetric, so an empty cell is found undetermined with at least probability LEVEL. Counts and
    sums are never undetermined; for a quantile its mechanism decides.
    """
    match how:
        case Linear():
            return np.zeros(len(noisy[how.columns[0]]), dtype=np.bool_)
        case Ratio():
            empty = weighted(how.total, noisy) <= _upwards(how.total, noise) + TINY
            found = leaf_interval(how, noisy, noise, LEVEL)
            whole = (found.low <= float(how.low)) & (found.high >= float(how.high)) & (how.low < how.high)
            return np.asarray(empty | whole)
        case Spread():
            return spread_undetermined(how, noisy, noise)
        case QuantilePoint():
            return np.asarray(noisy[how.column] < 0)


def _upwards(terms: Terms, noise: Mapping[str, Noise]) -> float:
    """What the noise of a sum exceeds with probability at most 1 - LEVEL. Bounds on its parts are tighter
    where it is almost 0.
    """
    each_level = 1.0 - (1.0 - ONE_SIDED) / len(terms)
    apart = sum(terms_half_width((term,), noise, each_level) for term in terms)
    return min(terms_half_width(terms, noise, ONE_SIDED), apart)


def _ratio_interval(
    how: Ratio, noisy: Mapping[str, Integers], noise: Mapping[str, Noise], level: float
) -> Interval:
    """The r that the noisy pair does not contradict: |(1 - r) A - r B| <= the noise of (1 - r) X - r Y.

    That noise is no larger than max(|X|, |Y|), whatever r is, so a half-width h that holds for both at once
    keeps the solution closed: r = (A -+ h) / (A + B). Nor is it larger than |X| + |X + Y|, which is less
    where A + B is all but known.
    """
    each_level = 1.0 - (1.0 - level) / 2.0
    width = max(
        terms_half_width(how.above, noise, each_level), terms_half_width(how.below, noise, each_level)
    )
    nearly, rarely = 1.0 - 0.99 * (1.0 - level), 1.0 - 0.01 * (1.0 - level)
    width = min(
        width, terms_half_width(how.above, noise, nearly) + terms_half_width(how.total, noise, rarely)
    )
    above, below = weighted(how.above, noisy), weighted(how.below, noisy)
    total = above + below
    usable = total > 0
    safe = np.where(usable, total, 1.0)
    low = np.where(usable, np.clip((above - width) / safe, 0.0, 1.0), 0.0)
    high = np.where(usable, np.clip((above + width) / safe, 0.0, 1.0), 1.0)
    # too few rows: the exact pair may be (0, 0) or have the other sign
    nothing = total <= 2 * width
    low, high = np.where(nothing, 0.0, low), np.where(nothing, 1.0, high)
    span = float(how.high - how.low)
    return Interval(float(how.low) + span * low, float(how.low) + span * high)
