"""Noise rates and a confidence level go in; how far an answer may be off comes out.

All noise here is discrete Laplace: P(x) ~ exp(-rate |x|). Half-widths are rigorous: either the exact discrete
tail, or the continuous tail plus one grid step per noise, because the discrete variable is a difference of two
floored exponentials and so lies less than one step from the continuous one.
"""

from __future__ import annotations

import math


def laplace_half_width(rate: float, level: float) -> int:
    """The smallest whole h with P(|noise| <= h) >= level for discrete Laplace noise of this rate."""
    # P(|X| > h) = 2 e^{-rate (h+1)} / (1 + e^{-rate})
    missing = 1.0 - level
    return max(0, math.ceil(math.log(2.0 / (missing * (1.0 + math.exp(-rate)))) / rate - 1.0 - 1e-12))


def weighted_half_width(first: tuple[float, float], second: tuple[float, float], level: float) -> float:
    """h with P(|w1 X1 + w2 X2| <= h) >= level for two independent discrete Laplace, each given as (weight, rate)."""
    (weight_1, rate_1), (weight_2, rate_2) = first, second
    scale_1, scale_2 = abs(weight_1) / rate_1, abs(weight_2) / rate_2
    steps = abs(weight_1) + abs(weight_2)
    if min(scale_1, scale_2) == 0.0:
        return max(scale_1, scale_2) * math.log(1.0 / (1.0 - level)) + steps

    def tail(width: float) -> float:
        # the two-sided tail of a sum of two independent continuous Laplace variables
        if abs(scale_1 - scale_2) <= 1e-6 * max(scale_1, scale_2):
            scale = max(scale_1, scale_2)
            return (1.0 + width / (2.0 * scale)) * math.exp(-width / scale)
        square_1, square_2 = scale_1**2, scale_2**2
        return (square_1 * math.exp(-width / scale_1) - square_2 * math.exp(-width / scale_2)) / (square_1 - square_2)

    low, high = 0.0, (scale_1 + scale_2) * (math.log(4.0 / (1.0 - level)) + 2.0)
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if tail(middle) > 1.0 - level else (low, middle)
    return high + steps


def selection_epsilon_of_histogram(candidates: int, l1: int, linf: int, factor: int) -> float:
    """How many times the epsilon a noisy histogram needs to name the winner as surely as noisy max does.

    Union bound over the candidates: exponential noise of scale b overturns a gap g with probability
    exp(-g/b)/2, a pair of Laplace noises with (1/2 + g/4b) exp(-g/b). Both are set to 5%.
    """
    if candidates < 2:
        return 1.0
    wrong = 0.05 / (candidates - 1)
    gap = -math.log(min(2.0 * wrong, 0.999))  # in units of the selection's scale, factor * linf / epsilon
    low, high = 1e-9, 1e9
    for _ in range(200):
        ratio = math.sqrt(low * high)  # gap in units of the Laplace scale
        low, high = (ratio, high) if (0.5 + ratio / 4.0) * math.exp(-ratio) > wrong else (low, ratio)
    return high * l1 / (gap * factor * linf)
