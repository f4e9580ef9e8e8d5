"""A decreasing function and a level go in; the first point at which it is no higher comes out, as precisely
as floats allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_NEAR = 1e-10
_STEP = _NEAR / 2.0  # the shortest step, so that the current end is not evaluated again and again
_MOST = 100


def first_below(function: Callable[[float], float], level: float, low: float, high: float) -> float:
    """The first point in low .. high at which the function is at most `level`, as it is at `high`; rounded
    up.

    Tails fall roughly exponentially, so the line through two points of their logarithm almost meets the
    level:
    ten evaluations or so do what bisection does in forty. The value of an end that stays twice is halved (the
    Illinois rule).
    """

    def above(place: float) -> float:
        return math.log(max(function(place), 1e-300) / level)

    left, right = above(low), above(high)
    if left <= 0.0:
        return low
    moved = 0  # which end the previous step moved
    for _ in range(_MOST):
        if high - low <= _NEAR * high:
            break
        share = left / (left - right) if right < 0.0 else 0.5
        middle = min(max(low + (high - low) * share, low + _STEP * high), high - _STEP * high)
        found = above(middle)
        if found <= 0.0:
            high, right, left, moved = middle, found, left / (2.0 if moved > 0 else 1.0), 1
        else:
            low, left, right, moved = middle, found, right / (2.0 if moved < 0 else 1.0), -1
    return high
