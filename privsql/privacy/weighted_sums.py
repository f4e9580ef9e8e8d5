"""The weights of many independent noises of one law and a confidence level go in; the half-width of their
weighted sum comes out.

Let E be the sum of w_j N_j, with N_j independent discrete Laplace noise of rate a, and q = exp(-a). Every
bound here is rigorous, and the smallest is used:
- smoothed: if E + d U is within h - d/2, with U uniform on [-1/2, 1/2], then E is within h. For d the
  greatest weight, that sum has a density, whose Fourier series is summed; the omitted terms are bounded and
  added.
- dominated: P(N >= u) <= q^u / (1 + q) for every u, so P(E > h) <= q^(h/d) E[q^(-R/d)] / (1 + q), where R is
  E without one noise of the greatest weight d. Exact for a single noise, and close if one weight dominates.
- Chernoff: P(E > h) <= exp(-t h) E[exp(t E)] for any t > 0.
- all at once: |E| <= k sum |w_j| if no |N_j| exceeds k; for noise so small that most of it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privsql.privacy.accuracy import GaussianLaw, LaplaceLaw, Law, combined_half_width
from privsql.privacy.falling import first_below

Floats = npt.NDArray[np.float64]
Weights = tuple[tuple[float, int], ...]  # nonnegative weights, and how many noises have each

_CAREFUL = 100.0  # the omitted terms of the Fourier series are this many times below the error probability
_LEAST_MISSING = 1e-9  # sums of floats cannot resolve smaller probabilities
_MOST_STEPS = 2**16
_GREATEST_RATE = 50.0  # beyond it the noise is 0
_FEW = 24  # up to so many draws of several laws, their density is computed
_DIGITS = 11  # weights that differ only beyond this digit of the greatest count as equal


@dataclass(frozen=True)
class Fitted:
    """The noise of a least-squares estimate: a weighted sum of independent noises of one law.

    `known` is false if the weights were not computed; then their squares sum to at most the square of the
    single weight given.
    """

    law: Law
    weights: Weights
    known: bool = True


@dataclass(frozen=True)
class Summed:
    """A sum of noises of several measurements, rounded by at most `rounding`. Parts of the same origin may
    share draws; all others are independent.
    """

    parts: tuple[tuple[tuple[int, str], Fitted], ...]  # by their origins
    rounding: float = 0.0


Noise = Law | Fitted | Summed


def variance(noise: Noise) -> float:
    match noise:
        case Summed():
            return sum(variance(part) for _, part in noise.parts)
        case Fitted():
            return variance(noise.law) * sum(count * weight**2 for weight, count in noise.weights)
        case LaplaceLaw(rate=rate):
            return 1.0 / _steepness(min(rate, 700.0))
        case GaussianLaw():
            return float(noise.variance)


def half_width(terms: Sequence[tuple[float, Noise]], level: float) -> float:
    """h with P(|sum of w X| <= h) >= level, for independent noises."""
    if any(isinstance(noise, Summed) for _, noise in terms):
        return _summed_half_width(
            [(weight, noise) for weight, noise in terms if isinstance(noise, Summed)], level
        )
    plain = [(weight, noise) for weight, noise in terms if not isinstance(noise, Fitted | Summed)]
    fitted = [(abs(weight), noise) for weight, noise in terms if isinstance(noise, Fitted) and weight]
    if not fitted:
        return combined_half_width(plain, level)
    assert not plain, "of one release, all noise is fitted or none"
    if len({noise.law for _, noise in fitted}) > 1:  # of several measurements, each a sum of draws of its own
        own = [
            (weight, Summed((((place, "measurement"), noise),)))
            for place, (weight, noise) in enumerate(fitted)
        ]
        return _summed_half_width(own, level)
    law, known = fitted[0][1].law, all(noise.known for _, noise in fitted)
    sizes = [(weight * size, count) for weight, noise in fitted for size, count in noise.weights]
    weights = counted([size for size, _ in sizes], [count for _, count in sizes])
    match law:
        case LaplaceLaw(rate=rate):
            return (
                laplace_combination(weights, rate, level) if known else _largest_laplace(weights, rate, level)
            )
        case GaussianLaw(variance=variance):
            return gaussian_combination(weights, math.sqrt(float(variance)), level, known)


def _summed_half_width(terms: Sequence[tuple[float, Summed]], level: float) -> float:
    """Independent draws of one law are combined; the half-widths of the others add up, each at a higher
    confidence.
    """
    used = [(weight, noise) for weight, noise in terms if weight]
    rounding = sum(abs(weight) * noise.rounding for weight, noise in used)
    together: dict[Law, list[tuple[float, Fitted]]] = {}
    alone: list[list[tuple[float, Fitted]]] = []
    seen: set[tuple[int, str]] = set()
    for weight, noise in used:
        for origin, part in noise.parts:
            if origin in seen:
                alone.append([(weight, part)])
            else:
                together.setdefault(part.law, []).append((weight, part))
            seen.add(origin)
    groups = [*together.values(), *alone]
    found = [sum(half_width(each, 1.0 - (1.0 - level) / len(groups)) for each in groups)]
    if len(groups) > 1 and not alone:
        parts = [(abs(weight), part) for each in groups for weight, part in each]
        sizes = [(weight * size, part.law, count) for weight, part in parts for size, count in part.weights]
        found.append(_mixed_chernoff(tuple(sizes), 1.0 - level))
        if all(part.known for _, part in parts) and sum(count for *_, count in sizes) <= _FEW:
            found.append(
                combined_half_width([(size, law) for size, law, count in sizes for _ in range(count)], level)
            )
    return min(found) + rounding


@lru_cache(maxsize=1024)  # of numbers alone
def _mixed_chernoff(sizes: tuple[tuple[float, Law, int], ...], missing: float) -> float:
    """Chernoff's bound for independent draws of several laws, given as (weight, law, count): moments
    multiply.
    """
    longest = min(
        [law.rate / size for size, law, _ in sizes if isinstance(law, LaplaceLaw)], default=math.inf
    )
    spread = math.sqrt(sum(count * size**2 * variance(law) for size, law, count in sizes))
    most = min(longest, 8.0 * math.sqrt(math.log(2.0 / missing)) / spread)
    found = math.inf
    for share in range(1, 64):
        tilt, total = most * share / 64.0, 0.0
        for size, law, count in sizes:
            match law:
                case LaplaceLaw(rate=rate):
                    total += _log_moment(((size, count),), rate, tilt)
                case GaussianLaw():  # by Hölder's inequality, as below
                    total += count * (tilt * size * (math.sqrt(float(law.variance)) + 0.5)) ** 2 / 2.0
        found = min(found, (math.log(2.0 / missing) + total) / tilt)
    return found


def counted(weights: Sequence[float] | Floats, counts: Sequence[int] | None = None) -> Weights:
    """Count equal weights, ignoring rounding differences, and leave out those that are as good as 0."""
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    largest = float(sizes.max(initial=0.0))
    if largest == 0.0:
        return ()
    values, places = np.unique(np.round(sizes / largest, _DIGITS), return_inverse=True)
    many = np.bincount(
        places, np.ones(len(sizes)) if counts is None else np.asarray(counts, dtype=np.float64)
    )
    return tuple(
        (float(value) * largest, int(count)) for value, count in zip(values, many, strict=True) if value > 0.0
    )


@lru_cache(maxsize=4096)
def laplace_combination(weights: Weights, rate: float, level: float) -> float:
    """h with P(|sum of w_j N_j| <= h) >= level, for discrete Laplace noise of this rate."""
    if not weights:
        return 0.0
    missing = 1.0 - level
    largest = max(weight for weight, _ in weights)
    scaled = tuple((weight / largest, count) for weight, count in weights)
    count = sum(each for _, each in weights)
    total = sum(weight * each for weight, each in scaled)
    # every noise at once is within this
    within = math.log(2.0 * count / (missing * (1.0 + math.exp(-rate)))) / rate - 1.0
    found = [
        max(0, math.ceil(within - 1e-12)) * total,
        _chernoff(scaled, rate, missing),
        _dominated(scaled, rate, missing),
    ]
    if missing > _LEAST_MISSING and rate < _GREATEST_RATE:
        found.append(_smoothed(scaled, rate, missing))
    return largest * min(found)


def _largest_laplace(weights: Weights, rate: float, level: float) -> float:
    """The same for any weights whose squares sum to at most as much as those of these.

    ln E[exp(t N)] is a power series in t^2 without constant term and with coefficients >= 0, so it is at most
    w^2 times as large at w t as at t, for |w| <= 1: Chernoff's bound for one noise of the whole weight holds
    for all.
    """
    whole = math.sqrt(sum(count * weight**2 for weight, count in weights))
    return whole * _chernoff(((1.0, 1),), rate, 1.0 - level)


def _log_moment(scaled: Weights, rate: float, tilt: float) -> float:
    """ln E[exp(tilt E)], infinite if it does not exist."""
    total = 0.0
    for weight, count in scaled:
        left, right = rate - tilt * weight, rate + tilt * weight
        if left <= 1e-12 * rate:
            return math.inf
        total += count * (2.0 * _log_of_rest(rate) - _log_of_rest(left) - _log_of_rest(right))
    return total


def _log_of_rest(rate: float) -> float:
    """ln(1 - exp(-rate))"""
    return math.log(-math.expm1(-rate))


def _chernoff(scaled: Weights, rate: float, missing: float) -> float:
    tilts = (rate * share / 64.0 for share in range(1, 64))  # every tilt gives a bound
    return min((math.log(2.0 / missing) + _log_moment(scaled, rate, tilt)) / tilt for tilt in tilts)


def _dominated(scaled: Weights, rate: float, missing: float) -> float:
    """The dominated bound, for weights of which the greatest is 1."""
    rest = tuple((weight, count - (weight == 1.0)) for weight, count in scaled if count - (weight == 1.0))
    log_moment = _log_moment(rest, rate, rate)
    return (math.log(2.0 / (missing * (1.0 + math.exp(-rate)))) + log_moment) / rate


def _smoothed(scaled: Weights, rate: float, missing: float) -> float:
    """The smoothed bound: the Fourier series of the density of E + U, wrapped around a circle so long that
    its tails do not meet.

    If that takes too long, U is the sum of two uniform variables (`order` 2), whose transform falls faster.
    """
    deviation = math.sqrt(sum(count * weight**2 for weight, count in scaled) / _steepness(rate) + 1.0)
    length, left_out = 2.0 * (40.0 / rate + 12.0 * deviation), missing / _CAREFUL
    needed = [math.ceil(_last(rate, order, left_out) * length / (2.0 * math.pi)) for order in (1, 2)]
    if min(needed) > _MOST_STEPS:
        return math.inf
    order, steps = (1, needed[0]) if needed[0] <= _MOST_STEPS else (2, needed[1])
    places = np.arange(1, steps + 1, dtype=np.float64)
    tilts = places * (2.0 * math.pi / length)
    log_transform = np.zeros(steps)
    for weight, count in scaled:
        log_transform -= count * np.log1p((np.sin(weight * tilts / 2.0) / math.sinh(rate / 2.0)) ** 2)
    parts = np.exp(log_transform) * np.sinc(tilts / (2.0 * math.pi)) ** order * (2.0 / (math.pi * places))

    def outside(width: float) -> float:
        return 1.0 - 2.0 * width / length - float(np.sum(parts * np.sin(tilts * width)))

    return first_below(outside, missing - 2.0 * left_out, 0.0, length / 4.0) + 0.5 * order


def _steepness(rate: float) -> float:
    return 2.0 * math.sinh(rate / 2.0) ** 2  # cosh(rate) - 1; the noise's variance is its inverse


def _last(rate: float, order: int, left_out: float) -> float:
    """Where the series may stop: the terms beyond sum to at most `left_out`.

    With s the distance of t to the next multiple of 2 pi, the transform of a noise of weight 1 is at most
    min(1, 2.7 rate^2 / s^2) for rate <= 1, and that of U at most (|s| / t)^order. The part beyond some t is
    2/pi times the integral of their product over t; `peak` is that integral over one period, without
    1/t^(order + 1).
    """
    small = rate < 1.0
    if order == 1:
        peak = min(math.pi**2, rate**2 * (2.7 + 5.4 * math.log(1.9 / rate))) if small else math.pi**2
        beyond, periods = 0.08 * peak, math.ceil(peak / (2.0 * math.pi**3 * left_out))
    else:
        peak = min(2.0 * math.pi**3 / 3.0, 17.0 * rate**2) if small else 2.0 * math.pi**3 / 3.0
        beyond, periods = 0.022 * peak, math.ceil(math.sqrt(peak / (8.0 * math.pi**4 * left_out)))
    if small and beyond < left_out / 2.0:
        return min(math.pi, rate * math.sqrt(1.72 / left_out))
    return math.pi * (2 * periods + 1)


def gaussian_combination(weights: Weights, deviation: float, level: float, known: bool = True) -> float:
    """The same for normal noise of this standard deviation, rounded to whole numbers: each moves by at most
    1/2.

    Not `known`: E[exp(t N)] <= exp(t^2 (deviation + 1/2)^2 / 2) by Hölder's inequality, so that
    Chernoff's bound holds for any weights whose squares sum to so much.
    """
    size = math.sqrt(sum(count * weight**2 for weight, count in weights))
    if not known:
        return size * (deviation + 0.5) * math.sqrt(2.0 * math.log(2.0 / (1.0 - level)))
    spread = deviation * size
    rounding = 0.5 * sum(count * weight for weight, count in weights)
    return (
        first_below(lambda width: math.erfc(width / math.sqrt(2.0)), 1.0 - level, 0.0, 40.0) * spread
        + rounding
    )
