"""A rate (an exact fraction) and a source of words go in; exact samples of integer noise come out.

Nothing is rounded: a uniform number is compared with a probability digit by digit, as far as it takes. The
running time of a call depends on its size and rate but not on the noise, except in events of probability
2^-32 per draw: a table search takes the same number of steps whatever it finds, and the number of rejected
proposals is independent of the accepted ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import Probability, exponential_interval
from privsql.noise.randomness import Randomness

LEAST_RATE = Fraction(1, 2**52)
"""The smallest rate: noise then exceeds GREATEST_NOISE with probability exp(-2^-52 * 2^61) = exp(-512)."""

GREATEST_NOISE = 2**61
"""Noise is clamped to this, so that an exact value within 2^62 plus its noise stays within 64 bits.

If exact values and published values are both held within 2^60, the clamp changes no published value, and
privacy is pure as it stands. Otherwise it alters the distribution by at most exp(-512) < 2^-738.
"""

Interval = tuple[int, int]  # integers below and above a number, in units of 2^-bits

_BLOCK = 1 << 14  # how many are drawn at once: they stay in the processor's cache
_WORD_BITS = 32
_EDGE_BITS = 64  # the digits of an edge that the table holds
_EDGES_END = Fraction(694 * _EDGE_BITS, 1000)  # exp(-x) < 2^-64 from here on, since ln 2 = 0.6931...
_LEAST_STEP = Fraction(1, 4)
_MARGIN = 2.0**-7  # far above the error of chances * 2^32 computed in floats


def bernoulli(probability: Probability, size: int, source: Randomness) -> NDArray[np.bool_]:
    """True with exactly the given probability, `size` times, independently.

    The words w0, w1, ... are the digits of a uniform U in [0, 1), and U < p iff U has the smaller digit at
    the first place where they differ. Only values still tied draw a further word: one in 2^32.
    """
    words, digit, place = source.integers(size), probability.digit(0), 0
    outcomes: NDArray[np.bool_] = words < digit
    tied = np.flatnonzero(words == digit)
    while tied.size:
        place += 1
        words, digit = source.integers(tied.size), probability.digit(place)
        outcomes[tied] = words < digit
        tied = tied[words == digit]
    return outcomes


def geometric(rate: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """G >= 0 with P(G = g) proportional to exp(-rate g), clamped to GREATEST_NOISE.

    Write G = low + 2^k high with 0 <= low < 2^k. Then exp(-rate G) = exp(-rate low) exp(-rate 2^k high), so
    that low and high are independent: high is geometric with rate 2^k, and is found in a table (_Edges); low
    is proposed uniformly, and accepted with probability exp(-rate low).
    """
    return _sampled(rate, False, size, source)


def discrete_laplace(rate: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """X with P(X = x) = tanh(rate/2) exp(-rate |x|), clamped to +-GREATEST_NOISE.

    With q = exp(-rate), X is G with probability 1/(1+q) and -1 - G with probability q/(1+q), for a geometric
    G: for x >= 0, (1-q) q^x / (1+q) = tanh(rate/2) q^x, and for x < 0 likewise q (1-q) q^(-1-x) / (1+q).
    Added to an integer of sensitivity l1, rate = epsilon/l1 gives epsilon-privacy.
    """
    return _sampled(rate, True, size, source)


def _sampled(rate: Fraction, signed: bool, size: int, source: Randomness) -> NDArray[np.int64]:
    edges = _edges(rate, signed)
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = noise[start : start + _BLOCK]
        block[:] = _joined(
            _low_parts(rate, edges.shift, block.size, source), _places(edges, block.size, source), edges.shift
        )
    return noise


def _joined(low: NDArray[np.int64], place: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """low + 2^shift place for place >= 0, and -1 - (low + 2^shift (-1 - place)) for place < 0, clamped to
    +-GREATEST_NOISE, for 0 <= low < 2^shift <= 2^58, without overflow.
    """
    # From this limit on the result is beyond the clamp for every low, so clipping here changes nothing; and
    # 2^shift (limit + 1) is at most 2^61 + 2^60.
    limit = (GREATEST_NOISE >> shift) + 1
    negative = place >> 63  # -1 or 0: -1 - x is x with all its bits turned, ~x
    joined: NDArray[np.int64] = low + (np.minimum(place ^ negative, limit) << shift)
    joined = np.minimum(np.maximum(joined ^ negative, -GREATEST_NOISE), GREATEST_NOISE)
    return joined


# -- the upper part: a place in a table ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Edges:
    """The unit interval, cut into a piece for each place: a uniform U is at the last place with edge <= U.

    With q = exp(-rate) and Q = exp(-rate 2^shift), the edges are 1 - Q^i for i >= 0 if only nonnegative
    places are wanted (not signed). Signed, place i >= 0 stands for upper part i of G, and place -1 - i for
    upper part i of -1 - G: the edges are 1 - Q^i/(1+q) for i >= 0, and q Q^-i/(1+q) for i <= 0, which agree
    at 0.

    `first_digits` has 64 binary digits of each edge, filled up to 2^n - 1 of them; it begins and ends where
    these are all 0, or all 1.
    """

    rate: Fraction
    shift: int
    signed: bool
    before: int  # the place before all edges in the table
    first_digits: NDArray[np.uint64]

    def interval(self, place: int, bits: int) -> Interval:
        """low <= 2^bits edge <= high."""
        if not self.signed and place <= 0:
            return 0, 0
        power = _exponential(self.rate * abs(place) * 2**self.shift, bits)
        return _edge(place, power, _exponential(self.rate, bits) if self.signed else None, bits)


def _edge(place: int, power: Interval, ratio: Interval | None, bits: int) -> Interval:
    """The edge at a place, from Q^|place| and, if signed, q. Edges are between 0 and 1."""
    one, (least, most) = 1 << bits, power
    if ratio is None:
        low, high = one - most, one - least
    elif place <= 0:
        low = least * ratio[0] // (one + ratio[0])
        high = -(-most * ratio[1] // (one + ratio[1]))
    else:
        low = one + (-(most << bits) // (one + ratio[0]))
        high = one - (least << bits) // (one + ratio[1])
    return max(low, 0), min(high, one)


@lru_cache(maxsize=256)
def _edges(rate: Fraction, signed: bool) -> _Edges:
    if rate <= 0:
        raise ValueError(f"the rate must be positive, not {rate}")
    if rate < LEAST_RATE:
        raise ValueError(f"the rate {rate} is below 2^-52: its noise would not fit into 64 bits")
    shift = 0
    while rate * 2**shift < _LEAST_STEP:
        shift += 1
    reach = -int(-_EDGES_END // (rate * 2**shift))
    places = range(-reach if signed else 1, reach + 1)
    guard_bits = _EDGE_BITS
    while (digits := _first_digits(rate, shift, signed, places, guard_bits)) is None:
        guard_bits *= 2
    filled = np.full((1 << len(digits).bit_length()) - 1, 2**_EDGE_BITS - 1, dtype=np.uint64)
    filled[: len(digits)] = digits
    return _Edges(rate, shift, signed, places[0] - 1, filled)


def _first_digits(
    rate: Fraction, shift: int, signed: bool, places: range, guard_bits: int
) -> list[int] | None:
    """The first 64 binary digits of each edge, or None where this many guard bits leave one undecided.

    Some number of them decides all: edges other than 0 are irrational (Lindemann and Weierstrass).
    """
    bits = _EDGE_BITS + guard_bits
    ratio = _exponential(rate, bits) if signed else None
    least, most = _exponential(rate * 2**shift, bits)
    powers = [(1 << bits, 1 << bits)]
    for _ in range(places[-1]):
        powers.append((powers[-1][0] * least >> bits, (powers[-1][1] * most >> bits) + 1))
    found = []
    for place in places:
        low, high = (each >> guard_bits for each in _edge(place, powers[abs(place)], ratio, bits))
        if low != min(high, 2**_EDGE_BITS - 1):  # an edge is below 1
            return None
        found.append(low)
    return found


def _exponential(exponent: Fraction, bits: int) -> Interval:
    """low <= 2^bits exp(-exponent) <= high, for an exponent of 0 or more."""
    if not exponent:
        return 1 << bits, 1 << bits
    if exponent > bits:  # exp(-bits) < 2^-bits; computing the digits would take long
        return 0, 1
    return exponential_interval(exponent, bits)


def _places(edges: _Edges, size: int, source: Randomness) -> NDArray[np.int64]:
    """A place for each of `size` uniform numbers. 64 digits of each are drawn, and more only where these
    equal the digits of an edge, which happens once in 2^54.
    """
    words = source.integers(2 * size).view(np.uint64)
    found = np.zeros(size, dtype=np.int64)  # how many edges are at or below the number
    width = edges.first_digits.size + 1 >> 1
    while width:
        found += (edges.first_digits[found + (width - 1)] <= words) * width
        width >>= 1
    places: NDArray[np.int64] = found + edges.before
    for index in np.flatnonzero(edges.first_digits[found - 1] == words).tolist():
        places[index] = _place(edges, int(places[index]), _Uniform(int(words[index]), _EDGE_BITS, source))
    return places


def _place(edges: _Edges, place: int, uniform: _Uniform) -> int:
    """The last place with an edge at or below a number, searched from the given place on."""

    def reached(place: int) -> bool:
        return not uniform.is_below(partial(edges.interval, place))

    while not reached(place):
        place -= 1
    while reached(place + 1):
        place += 1
    return place


# -- the lower part: proposed, and accepted or rejected ------------------------------------------------------


def _low_parts(rate: Fraction, shift: int, size: int, source: Randomness) -> NDArray[np.int64]:
    """low < 2^shift with P(low) proportional to exp(-rate low); at most every second proposal is rejected.

    exp(-rate low) is computed in floats, times 2^32: the errors of rate, product and exp are below 2^-47
    together, 2^8 times less than the margin. What lies within the margin is decided exactly.
    """
    low = np.zeros(size, dtype=np.int64)
    pending = np.arange(size if shift else 0)
    while pending.size:
        proposed = _uniform(shift, pending.size, source)
        words = source.integers(pending.size)
        ahead = np.exp(proposed * -float(rate)) * 2.0**_WORD_BITS - words
        accepted = ahead >= 1.0 + _MARGIN
        for index in np.flatnonzero(~accepted & (ahead > -_MARGIN)).tolist():
            uniform = _Uniform(int(words[index]), _WORD_BITS, source)
            accepted[index] = uniform.is_below(partial(_exponential, rate * int(proposed[index])))
        low[pending] = proposed
        pending = pending[~accepted]
    return low


def _uniform(bits: int, size: int, source: Randomness) -> NDArray[np.int64]:
    """Integers from 0 to 2^bits - 1, uniformly, for bits from 1 to 63."""
    if bits <= _WORD_BITS:
        return (source.integers(size) >> np.uint32(_WORD_BITS - bits)).astype(np.int64)
    return (source.integers(2 * size).view(np.uint64) >> np.uint64(64 - bits)).astype(np.int64)


# -- numbers that 64 digits leave undecided ------------------------------------------------------------------


@dataclass
class _Uniform:
    """A uniform number in [0, 1), of which only the first binary digits are drawn so far."""

    digits: int
    bits: int
    source: Randomness

    def is_below(self, interval: Callable[[int], Interval]) -> bool:
        """Whether it is below the number in the interval; draws further digits until that is decided."""
        while True:
            low, high = interval(self.bits + _WORD_BITS)
            if self.digits + 1 << _WORD_BITS <= low:
                return True
            if self.digits << _WORD_BITS >= high:
                return False
            self.digits = self.digits << _WORD_BITS | int(self.source.integers(1)[0])
            self.bits += _WORD_BITS
