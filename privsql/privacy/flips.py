"""Randomised responses go in (how many, how many yes); an estimate of the true share of yes comes out, with
an interval.

Everybody flips their own answer with probability q = 1/(1 + exp(epsilon)). Of n people, of whom t would say
yes, A = Bin(t, 1-q) + Bin(n-t, q) do. E[A] = t (1-q) + (n-t) q, so (A/n - q)/(1 - 2q) is an unbiased estimate
of t/n. This only informs and protects nobody, so floats will do.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

_SLACK = 1e-9  # for rounding errors in sums of probabilities


def flip_chance(epsilon: float) -> float:
    """q, the probability of flipping an answer."""
    return math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def contrast(epsilon: float) -> float:
    """1 - 2q: by this factor the share of yes among the answers is closer to 1/2 than the true share."""
    return math.tanh(epsilon / 2.0)


def share_estimate(yes: int, people: int, epsilon: float) -> float:
    """An unbiased estimate of t/n, which may fall outside [0, 1]."""
    return (yes / people - flip_chance(epsilon)) / contrast(epsilon)


def share_interval(yes: int, people: int, epsilon: float, level: float) -> tuple[float, float]:
    """An interval that contains t/n with probability at least `level`, whatever t is.

    It has every t for which neither P_t(A >= yes) nor P_t(A <= yes) is below (1-level)/2 (Clopper, Pearson):
    for the true t, A falls on a value that excludes it on one side with at most that probability. A is
    stochastically increasing in t, so these t form a range, whose ends are found by bisection.
    """
    missing = (1.0 - level) / 2.0 * (1.0 - _SLACK)
    truths = range(people + 1)
    low = bisect_left(
        truths, True, key=lambda true: _at_most(people - yes, people - true, people, epsilon) > missing
    )
    high = bisect_left(truths, True, key=lambda true: _at_most(yes, true, people, epsilon) <= missing) - 1
    return min(low, people) / people, max(high, 0) / people


def _at_most(yes: int, true: int, people: int, epsilon: float) -> float:
    """P_true(A <= yes). For P_true(A >= yes), count the noes."""
    first, kept = _binomial(true, epsilon)
    second, turned = _binomial(people - true, -epsilon)
    reached = np.concatenate([[0.0], np.cumsum(kept)])  # P(Bin(t, 1-q) < first + place)
    places = np.clip(yes - second - np.arange(turned.size) + 1 - first, 0, kept.size)
    return float(np.sum(turned * reached[places]))


def _binomial(count: int, log_odds: float) -> tuple[int, NDArray[np.float64]]:
    """(first, probabilities of first, first + 1, ...) of a binomial with these log-odds, as far as they
    matter.
    """
    chance = (
        1.0 / (1.0 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1.0 + math.exp(log_odds))
    )
    middle = min(count, int((count + 1) * chance))
    # the rest has a probability below 1e-20
    reach = math.ceil(10.0 * math.sqrt(count * chance * (1.0 - chance))) + 60
    first, last = max(0, middle - reach), min(count, middle + reach)
    before = np.arange(first, last, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((count - before) / (before + 1.0)) + log_odds)])
    weights = np.exp(logs - logs.max())
    return first, weights / weights.sum()
