"""Noise rates and a confidence level go in; how far an answer may be off comes out.

Half-widths are either from the exact discrete tail, or from the continuous one plus a step per noise:
discrete Laplace noise is a difference of two floored exponentials and so lies less than one step from the
continuous one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privsql.privacy.falling import first_below
from privsql.privacy.gaussian import half_width as gaussian_half_width


def laplace_half_width(rate: float, level: float) -> int:
    """The smallest whole h with P(|noise| <= h) >= level for discrete Laplace noise of this rate."""
    # P(|X| > h) = 2 e^{-rate (h+1)} / (1 + e^{-rate})
    missing = 1.0 - level
    return max(0, math.ceil(math.log(2.0 / (missing * (1.0 + math.exp(-rate)))) / rate - 1.0 - 1e-12))


@dataclass(frozen=True)
class LaplaceLaw:
    """Discrete Laplace noise: P(x) ~ exp(-rate |x|)."""

    rate: float

    def half_width(self, level: float) -> int:
        return laplace_half_width(self.rate, level)


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise of this variance, rounded to whole numbers."""

    variance: Fraction

    def half_width(self, level: float) -> int:
        return gaussian_half_width(self.variance, level)


Law = LaplaceLaw | GaussianLaw
Terms = Sequence[tuple[float, Law]]  # a weighted sum of independent noises


def combined_half_width(terms: Terms, level: float) -> float:
    """h with P(|sum of w X| <= h) >= level.

    Of the continuous noises, by their characteristic function, plus what each can differ by from its whole
    number: less than a step for Laplace, half a step for Gaussian noise.
    """
    used = [(abs(weight), law) for weight, law in terms if weight]
    if not used:
        return 0.0
    if len(used) == 1:
        ((weight, law),) = used
        return weight * law.half_width(level)
    scales = [weight / law.rate for weight, law in used if isinstance(law, LaplaceLaw)]
    deviation = math.sqrt(
        sum(weight**2 * float(law.variance) for weight, law in used if isinstance(law, GaussianLaw))
    )
    steps = sum(weight * (1.0 if isinstance(law, LaplaceLaw) else 0.5) for weight, law in used)
    largest = max([*scales, deviation])
    ratios = tuple(sorted(round(scale / largest, 9) for scale in scales))
    return largest * _standard_half_width(ratios, round(deviation / largest, 9), level) + steps


@lru_cache(maxsize=1024)
def _standard_half_width(scales: tuple[float, ...], deviation: float, level: float) -> float:
    """The same for continuous Laplace noises of these scales and a normal one, the largest of which is 1."""
    missing = 1.0 - level
    high = (sum(scales) + deviation) * (math.log(2.0 * (len(scales) + 1) / missing) + 2.0)
    if missing > 1e-9:
        step = math.pi / (3.0 * high)  # the sum repeats itself only far beyond what is looked at
        points = (np.arange(200_000) + 0.5) * step
        weight = np.exp(-0.5 * (points * deviation) ** 2)
        for scale in scales:
            weight /= 1.0 + (points * scale) ** 2
        points, weight = points[weight > 1e-13], weight[weight > 1e-13]

        def tail(width: float) -> float:
            return (
                float(1.0 - 2.0 / math.pi * step * np.sum(np.sin(points * width) / points * weight)) + 1e-11
            )
    else:  # too far out for sums of floats: the bound of Chernoff
        rates = np.linspace(0.0, 1.0, 401)[1:-1] / max([*scales, 1e-9])

        def tail(width: float) -> float:
            logs = 0.5 * (rates * deviation) ** 2 - rates * width
            for scale in scales:
                logs = logs - np.log1p(-((rates * scale) ** 2))
            return 2.0 * math.exp(float(np.min(logs)))

    return first_below(tail, missing, 0.0, high)


def selection_epsilon_of_histogram(candidates: int, histogram: int, choice: int) -> float:
    """How many times the epsilon a noisy histogram of scale histogram / epsilon needs to name the winner as
    surely as a choice by exponential noise of scale choice / epsilon does.

    Union bound over the candidates: exponential noise of scale b overturns a gap g with probability
    exp(-g/b)/2, a pair of Laplace noises with (1/2 + g/4b) exp(-g/b). Both are set to 5%.
    """
    if candidates < 2:
        return 1.0
    wrong = 0.05 / (candidates - 1)
    gap = -math.log(min(2.0 * wrong, 0.999))  # in units of the choice's scale
    low, high = 1e-9, 1e9
    for _ in range(200):
        ratio = math.sqrt(low * high)  # gap in units of the Laplace scale
        low, high = (ratio, high) if (0.5 + ratio / 4.0) * math.exp(-ratio) > wrong else (low, ratio)
    return high * histogram / (gap * choice)
