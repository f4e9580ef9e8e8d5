"""A falling function and a level go in; a place where it is no higher comes out, as near to the first as
floats tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_NEAR = 1e-10
_STEP = _NEAR / 2.0  # no step is shorter, so that the end that is there already is not asked again and again
_MOST = 100


def first_below(function: Callable[[float], float], level: float, low: float, high: float) -> float:
    """The first place in low .. high where the function is at most `level`, as it is at `high`; rounded up.

    Tails fall about exponentially, so that the line through two points of their logarithm nearly meets the
    level: some ten evaluations do what halving does in forty. An end that stays twice has its value halved
    (the Illinois rule).
    """

    def above(place: float) -> float:
        return math.log(max(function(place), 1e-300) / level)

    left, right = above(low), above(high)
    if left <= 0.0:
        return low
    moved = 0  # which end the last step moved
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
