"""A variance (an exact fraction) and a source of words go in; exact samples of discrete Gaussian noise come out.

Nothing is rounded. Proposals are rejected, but how many were rejected says nothing of those kept, so that, save
for events of chance 2^-20 a draw, time does not show the noise.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import logistic_probability
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import GREATEST_NOISE, bernoulli, geometric

GREATEST_VARIANCE = Fraction(2**104)
"""Noise then exceeds GREATEST_NOISE, to which it is clamped, with probability below exp(-2^16)."""

_FINEST_RACE = Fraction(1, 2**24)  # so rarely is a proposal left undecided by what is drawn for all of them
_GREATEST_SHIFT = 23  # with high < 2^8: 2^(2*23) * 2^16 and what comes on top stay within 63 bits
_GREATEST_HIGH = 255  # exceeded with probability exp(-28) or less: the rate of the high part is 7/64 or more


def discrete_gaussian(variance: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """X with P(X = x) proportional to exp(-x^2 / (2 variance)), clamped to +-GREATEST_NOISE.

    Let u = 1/(2 variance). |x| = 2^m k + j is proposed with a random sign, k geometric at rate u 4^m (2h+1), j
    uniform below 2^m, and accepted with probability exp(-u d), d = 4^m (k-h)(k-h-1) + j (2^(m+1) k + j) >= 0.
    Rate times k and u times d add up to u (2^m k + j)^2 + u 4^m h(h+1): the law of |x|, but for a constant.
    "Minus 0" is rejected, lest 0 come up twice as often. Any m and h are right; those here reject about a third.
    Added to integers of squared l2-sensitivity s this is s/(2 variance)-zCDP (Canonne, Kamath, Steinke 2020).
    """
    law = _law(variance)
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        kept = _kept(law, missing + missing // 2 + 32, source)[:missing]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


@dataclass(frozen=True)
class _Law:
    """The parts of a proposal, and of the race that accepts it if G >= d, G geometric at rate u: P(G >= d) = exp(-u d).

    Only race = floor(G / 2^race_shift), again geometric, is drawn for all; G's lower binary digits, which are
    independent of it (see `geometric`), only where race leaves the outcome open.
    """

    unit: Fraction  # u
    shift: int  # m
    centre: int  # h
    dropped: int  # digits of j left out of the first comparison, lest d pass 63 bits
    race_shift: int

    @property
    def high_rate(self) -> Fraction:
        return self.unit * ((2 * self.centre + 1) << 2 * self.shift)


@lru_cache(maxsize=256)
def _law(variance: Fraction) -> _Law:
    if variance <= 0:
        raise ValueError(f"the variance must be positive, not {variance}")
    if variance > GREATEST_VARIANCE:
        raise ValueError(f"the variance {variance} is above 2^104: its noise would not fit into 64 bits")
    # m greatest with 2^m <= sigma/4, but at least 0; h = floor(sigma / 2^m - 1/2), but at least 0.
    shift = max(0, isqrt(int(variance)).bit_length() - 3)
    centre = max(0, (isqrt(int(4 * variance / 4**shift)) - 1) // 2)
    unit = 1 / (2 * variance)
    dropped = max(0, shift - _GREATEST_SHIFT)
    race_shift = 2 * dropped
    while unit * 2 ** (race_shift + 1) <= _FINEST_RACE:
        race_shift += 1
    return _Law(unit, shift, centre, dropped, race_shift)


def _kept(law: _Law, count: int, source: Randomness) -> NDArray[np.int64]:
    """Those of `count` proposals that are accepted, in order."""
    high = geometric(law.high_rate, count, source)
    low = _uniform(law.shift, count, source)
    positive = source.integers(count) < 2**31
    race = geometric(law.unit * 2**law.race_shift, count, source)
    open_still = high > _GREATEST_HIGH
    if law.race_shift == 0:
        accepted = race >= _distance(law, high, low)
    else:
        # d grows with j, so that it is at least the first of these, and below the second where digits were dropped.
        units = law.race_shift - 2 * law.dropped
        coarse = low >> law.dropped
        least = _distance(law, high, coarse) >> units
        most = _distance(law, high, coarse + 1) >> units if law.dropped else least
        accepted = race > most
        open_still |= (race >= least) & ~accepted
    for place in np.flatnonzero(open_still):
        accepted[place] = _wins(law, int(high[place]), int(low[place]), int(race[place]), source)
    sizes = np.minimum((np.minimum(high, GREATEST_NOISE >> law.shift) << law.shift) + low, GREATEST_NOISE)
    accepted &= positive | (sizes != 0)
    noise: NDArray[np.int64] = np.where(positive, sizes, -sizes)[accepted]
    return noise


def _distance(law: _Law, high: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.int64]:
    """d in units of 4^dropped, for `low` in units of 2^dropped."""
    high = np.minimum(high, _GREATEST_HIGH)
    shift = law.shift - law.dropped
    distance: NDArray[np.int64] = ((high - law.centre) * (high - law.centre - 1) << 2 * shift) + low * (
        (high << (shift + 1)) + low
    )
    return distance


def _wins(law: _Law, high: int, low: int, race: int, source: Randomness) -> bool:
    """Whether G >= d: by the digits above race_shift, which are drawn, then digit by digit downwards."""
    distance = ((high - law.centre) * (high - law.centre - 1) << 2 * law.shift) + low * ((high << law.shift + 1) + low)
    if race != distance >> law.race_shift:
        return race > distance >> law.race_shift
    for position in reversed(range(law.race_shift)):
        digit = bool(bernoulli(logistic_probability(law.unit * 2**position), 1, source)[0])
        if digit != bool(distance >> position & 1):
            return digit
    return True


def _uniform(bits: int, size: int, source: Randomness) -> NDArray[np.int64]:
    """Independent uniform integers below 2^bits, bits <= 50."""
    values = np.zeros(size, dtype=np.int64)
    for taken in (min(bits, 32), max(bits - 32, 0)):
        if taken:
            values = values << taken | (source.integers(size) >> np.uint32(32 - taken)).astype(np.int64)
    return values
