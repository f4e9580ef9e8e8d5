"""A variance (an exact fraction) and a source of words go in; exact samples of rounded Gaussian noise come
out.

Floats decide only what their rounding errors cannot change; everything else is decided exactly, by drawing
further digits. Proposals are rejected, but the number of rejections is independent of the accepted samples.
So the running time does not reveal the noise, except in events of probability 2^-24 per draw.
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import exponential_interval
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import GREATEST_NOISE

GREATEST_VARIANCE = Fraction(2**104)
"""Noise then exceeds GREATEST_NOISE, to which it is clamped, with probability below exp(-2^16)."""

_LAST_WORD = 2**32 - 1
_MOST_AT_ONCE = 1 << 14  # proposals: they stay in the processor's cache
_WORD_BITS = 32
_PLACE_BITS = 63  # binary digits of X drawn at first
_GUARD_BITS = 32
_DEGREE = 15
_MARGIN = 2.0**-7  # bound on the floats' error, with a lot to spare: see _scaled_chances


def rounded_gaussian(variance: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """The integer nearest to Y, for Y normal with this variance and mean 0, clamped to +-GREATEST_NOISE.

    Y = +-2^m (K + X) is proposed with a random sign, P(K = k) ~ exp(-c k^2) for c = 4^m/(2 variance), X
    uniform in [0, 1), and accepted with probability exp(-c X (2K + X)). The product is exp(-Y^2/(2 variance))
    up to a constant. Any m is correct; the m chosen here rejects at most a twentieth. |Y| + 1/2 is rounded
    down: for m < 0 this needs K alone, otherwise the first m + 1 binary digits of X.
    """
    law = _law(variance)
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        kept = _kept(law, min(missing + missing // 16 + 32, _MOST_AT_ONCE), source)[:missing]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


@dataclass(frozen=True, eq=False)
class _Law:
    """The constants of a proposal. A uniform U gives K = k if k is the number of i >= 1 with P(K < i) <= U.

    `least` and `most` bound the first word of P(K < i), i = 1, 2, ...: a first word of U below `least` or
    above `most` decides on which side of P(K < i) U lies. From some i on, that word is 2^32 - 1; the tables
    end there, and such a first word leaves K undecided.
    """

    shift: int  # m
    rate: Fraction  # c
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    starts: NDArray[np.int64]  # |Y| rounded, for X = 0


@lru_cache(maxsize=256)
def _law(variance: Fraction) -> _Law:
    if variance <= 0:
        raise ValueError(f"the variance must be positive, not {variance}")
    if variance > GREATEST_VARIANCE:
        raise ValueError(f"the variance {variance} is above 2^104: its noise would not fit into 64 bits")
    # the greatest m for which the bit lengths prove 2^m <= sigma/8; c is then between 1/512 and 1/128
    shift = (variance.numerator.bit_length() - variance.denominator.bit_length()) // 2 - 3
    while 64 * Fraction(4) ** shift > variance:
        shift -= 1
    rate = Fraction(4) ** shift / (2 * variance)
    first_words = [(low >> _WORD_BITS, high >> _WORD_BITS) for low, high in _cumulated(rate, 2 * _WORD_BITS)]
    table = [(low, min(high, _LAST_WORD)) for low, high in first_words if low < _LAST_WORD] + [
        (_LAST_WORD, _LAST_WORD)
    ]
    least, most = np.array(table, dtype=np.int64).T.copy()
    starts = np.array([_size(shift, strip, 0) for strip in range(len(table))], dtype=np.int64)
    return _Law(shift, rate, least, most, starts)


def _cumulated(rate: Fraction, bits: int) -> list[tuple[int, int]]:
    """Integers with low <= P(K < i) 2^bits <= high, for i = 1, 2, ... until low is next to 2^bits.

    The tail of the sum of exp(-rate k^2) from k = n on is at most exp(-rate n^2) (1 + q + q^2 + ...) for q =
    exp(-2 rate n) <= exp(-rate) <= 1/(1 + rate), that is exp(-rate n^2) (1 + 1/rate).
    """
    work = bits + _GUARD_BITS
    sums = [(0, 0)]
    while True:
        low, high = exponential_interval(rate * (len(sums) - 1) ** 2, work)
        if high <= 2 and len(sums) > 1:
            break
        sums.append((sums[-1][0] + low, sums[-1][1] + high))
    total_low, total_high = sums[-1][0], sums[-1][1] + 2 * (1 + -(-rate.denominator // rate.numerator))
    return [((low << bits) // total_high, -(-(high << bits) // total_low)) for low, high in sums[1:]]


def _kept(law: _Law, count: int, source: Randomness) -> NDArray[np.int64]:
    """The accepted ones of `count` proposals, in order."""
    strip_words, high_words, low_words, words = source.integers(4 * count).reshape(4, count).astype(np.int64)
    strips = np.searchsorted(law.most, strip_words)  # the number of edges below the word
    strips_open = law.least[strips] <= strip_words
    places = high_words << _WORD_BITS - 1 | low_words >> 1
    positive = (low_words & 1).astype(np.bool_)
    sizes = law.starts[strips]
    if law.shift >= 0:
        sizes += (places >> _PLACE_BITS - 1 - law.shift) + 1 >> 1
    # V lies between words and words + 1, in units of 2^-32
    ahead = _scaled_chances(law, strips, places) - words
    accepted = ahead >= 1.0 + _MARGIN
    for index in np.flatnonzero(strips_open | ~accepted & (ahead > -_MARGIN)):
        strip = (
            _strip(law.rate, int(strip_words[index]), source) if strips_open[index] else int(strips[index])
        )
        accepted[index] = _accepts(law.rate, strip, int(places[index]), int(words[index]), source)
        sizes[index] = min(_size(law.shift, strip, int(places[index])), GREATEST_NOISE)
    noise: NDArray[np.int64] = np.where(positive, sizes, -sizes)[accepted]
    return noise


def _scaled_chances(law: _Law, strips: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """exp(-t) 2^32 for t = c X (2K + X), X = place/2^63, with an error below 2^-10.

    Within the tables t is below 1. The recursion r(n) = 1 - t r(n+1)/n leads from r(16) to r(1) = exp(-t),
    and all r are between 0 and 1. Starting with r(16) = 1 is wrong by at most 1/16, so the result is wrong by
    at most 1/16! < 2^-44. Each step adds three roundings of at most 2^-53 and divides the error so far by n;
    t itself has fewer than six roundings. Digits of X that are not drawn yet change t by less than 2^-62.
    """
    fractions = places * 2.0**-_PLACE_BITS
    exponents = fractions * (2 * strips + fractions) * float(law.rate)
    chances = np.ones(strips.size)
    for divisor in range(_DEGREE, 0, -1):
        chances *= exponents
        chances /= -divisor
        chances += 1.0
    return chances * 2.0**_WORD_BITS


def _strip(rate: Fraction, digits: int, source: Randomness) -> int:
    """K, from the first word of U and as many further words as are needed."""
    bits = _WORD_BITS
    while True:
        bounds = _cumulated(rate, bits)
        strip = bisect_right(bounds, digits, key=lambda bound: bound[1])
        if strip < len(bounds) and digits < bounds[strip][0]:
            return strip
        digits, bits = digits << _WORD_BITS | int(source.integers(1)[0]), bits + _WORD_BITS


def _accepts(rate: Fraction, strip: int, place: int, digits: int, source: Randomness) -> bool:
    """Whether V < exp(-rate X (2K + X)), from the first digits of X and V and as many more as are needed."""
    place_bits, bits = _PLACE_BITS, _WORD_BITS
    while True:
        near, far = Fraction(place, 1 << place_bits), Fraction(place + 1, 1 << place_bits)
        if digits < exponential_interval(rate * far * (2 * strip + far), bits)[0]:
            return True
        if digits >= exponential_interval(rate * near * (2 * strip + near), bits)[1]:
            return False
        words = source.integers(2)
        place, place_bits = place << _WORD_BITS | int(words[0]), place_bits + _WORD_BITS
        digits, bits = digits << _WORD_BITS | int(words[1]), bits + _WORD_BITS


def _size(shift: int, strip: int, place: int) -> int:
    """2^shift (strip + place/2^63) + 1/2, rounded down."""
    if shift < 0:
        return strip + (1 << -shift - 1) >> -shift
    return (strip << shift) + ((place >> _PLACE_BITS - 1 - shift) + 1 >> 1)
