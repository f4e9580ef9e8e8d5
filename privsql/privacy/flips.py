"""Answers by randomised response go in (how many, how many yes); what share of the truth is yes comes out,
with an interval.

Everyone turns their answer round with probability q = 1/(1 + exp(epsilon)), by themselves. Of n people t of
whom are "yes", A = Bin(t, 1-q) + Bin(n-t, q) say yes. E[A] = t (1-q) + (n-t) q, so (A/n - q)/(1 - 2q)
estimates t/n without bias. All of this informs and protects nobody: floats do.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

_SLACK = 1e-9  # for rounding in sums of chances


def flip_chance(epsilon: float) -> float:
    """q."""
    return math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def contrast(epsilon: float) -> float:
    """1 - 2q, by which the share of yes among the answers is less apart from 1/2 than the truth."""
    return math.tanh(epsilon / 2.0)


def share_estimate(yes: int, people: int, epsilon: float) -> float:
    """Without bias; it may fall outside [0, 1]."""
    return (yes / people - flip_chance(epsilon)) / contrast(epsilon)


def share_interval(yes: int, people: int, epsilon: float, level: float) -> tuple[float, float]:
    """Holds t/n with probability at least `level`, whatever t is.

    The t for which neither P_t(A >= yes) nor P_t(A <= yes) is below (1-level)/2 (Clopper, Pearson): for the
    true t, A falls on a value that leaves it out on a side with at most that chance. A grows with t,
    stochastically, so they are a range, and its ends are found by halving.
    """
    missing = (1.0 - level) / 2.0 * (1.0 - _SLACK)
    truths = range(people + 1)
    low = bisect_left(
        truths, True, key=lambda true: _at_most(people - yes, people - true, people, epsilon) > missing
    )
    high = bisect_left(truths, True, key=lambda true: _at_most(yes, true, people, epsilon) <= missing) - 1
    return min(low, people) / people, max(high, 0) / people


def _at_most(yes: int, true: int, people: int, epsilon: float) -> float:
    """P_true(A <= yes). For P_true(A >= yes) ask for the noes."""
    first, kept = _binomial(true, epsilon)
    second, turned = _binomial(people - true, -epsilon)
    reached = np.concatenate([[0.0], np.cumsum(kept)])  # P(Bin(t, 1-q) < first + place)
    places = np.clip(yes - second - np.arange(turned.size) + 1 - first, 0, kept.size)
    return float(np.sum(turned * reached[places]))


def _binomial(count: int, log_odds: float) -> tuple[int, NDArray[np.float64]]:
    """(first, chances of first, first + 1, ...) of a binomial whose chance has these log-odds, as far as they
    count.
    """
    chance = (
        1.0 / (1.0 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1.0 + math.exp(log_odds))
    )
    middle = min(count, int((count + 1) * chance))
    # what lies beyond weighs below 1e-20
    reach = math.ceil(10.0 * math.sqrt(count * chance * (1.0 - chance))) + 60
    first, last = max(0, middle - reach), min(count, middle + reach)
    before = np.arange(first, last, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((count - before) / (before + 1.0)) + log_odds)])
    weights = np.exp(logs - logs.max())
    return first, weights / weights.sum()
