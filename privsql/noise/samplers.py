"""A rate (an exact fraction) and a source of words go in; exact samples of integer noise come out.

Nothing is rounded: a uniform number is compared with a probability digit by digit, as far as it takes. How
long a call takes depends on its size and rate but, save for events of chance 2^-32 a draw, not on the noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import Probability, exponential_probability, logistic_probability
from privsql.noise.randomness import Randomness

LEAST_RATE = Fraction(1, 2**52)
"""The smallest rate: noise then exceeds GREATEST_NOISE with probability exp(-2^-52 * 2^61) = exp(-512)."""

GREATEST_NOISE = 2**61
"""Noise is clamped to this, so that an exact value within 2^62 plus its noise stays within 64 bits.

If exact values and published values are both held within 2^60, the clamp changes no published value, and
privacy is pure as it stands. Otherwise it alters the distribution by at most exp(-512) < 2^-738.
"""

_BLOCK = 1 << 12
# the tail is drawn in one round but for a chance of exp(-64): time does not show the noise
_TAIL_EXPONENT = 64


def bernoulli(probability: Probability, size: int, source: Randomness) -> NDArray[np.bool_]:
    """True with exactly the given probability, `size` times, independently."""
    outcomes: NDArray[np.bool_] = _drawn((probability,), size, source)[0]
    return outcomes


def _drawn(probabilities: Sequence[Probability], size: int, source: Randomness) -> NDArray[np.bool_]:
    """For each probability p a row of `size` outcomes that are True with exactly that probability, all
    independent.

    The words w0, w1, ... are the digits of a uniform U in [0, 1), and U < p iff U has the smaller digit at
    the first place where they differ. Only values still tied draw a further word: one in 2^32.
    """
    words = source.integers(len(probabilities) * size).reshape(len(probabilities), size)
    digits = np.array([each.digit(0) for each in probabilities], dtype=np.uint32)[:, None]
    outcomes: NDArray[np.bool_] = words < digits
    ties = words == digits
    for row in np.flatnonzero(ties.any(axis=1)).tolist():
        tied, place = np.flatnonzero(ties[row]), 0
        while tied.size:
            place += 1
            more = source.integers(tied.size)
            digit = probabilities[row].digit(place)
            outcomes[row, tied] = more < digit
            tied = tied[more == digit]
    return outcomes


def geometric(rate: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """G >= 0 with P(G = g) proportional to exp(-rate g), clamped to GREATEST_NOISE.

    Write g = sum of b_i 2^i. Then exp(-rate g) = product of exp(-rate 2^i b_i), so the binary digits of G are
    independent, and digit i is 1 with probability q/(1+q) = 1/(1+exp(rate 2^i)), where q = exp(-rate 2^i).
    The digits from K upwards together are one number H, P(H = h) proportional to exp(-rate 2^K h): the number
    of successes, each with probability exp(-rate 2^K), before the first failure. G = low + 2^K H.
    """
    low, high, shift = _geometric_parts(rate, size, source)
    return _joined(low, high, shift)


def discrete_laplace(rate: Fraction, size: int, source: Randomness) -> NDArray[np.int64]:
    """X with P(X = x) = tanh(rate/2) exp(-rate |x|), clamped to +-GREATEST_NOISE.

    X = G - G' for independent geometrics: for x >= 0, with q = exp(-rate), P(X = x) = sum over g of
    (1-q)^2 q^(g+x) q^g = (1-q)/(1+q) q^x, and likewise for x < 0. Added to an integer of sensitivity l1,
    rate = epsilon/l1 gives epsilon-privacy.
    """
    low, high, shift = _geometric_parts(rate, size, source)
    other_low, other_high, _ = _geometric_parts(rate, size, source)
    return _joined(low - other_low, high - other_high, shift)


def _geometric_parts(
    rate: Fraction, size: int, source: Randomness
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(low, high, shift): the geometric is low + 2^shift high, with 0 <= low < 2^shift <= 2^58."""
    lower_digits, tail = _digit_probabilities(rate)
    low = np.zeros(size, dtype=np.int64)
    # all digits of some numbers at once, within a cache's size
    for start in range(0, size if lower_digits else 0, _BLOCK):
        block = low[start : start + _BLOCK]
        for place, byte in enumerate(
            np.packbits(_drawn(lower_digits, block.size, source), axis=0, bitorder="little")
        ):
            block |= byte.astype(np.int64) << 8 * place
    high = np.zeros(size, dtype=np.int64)
    running = np.arange(size)
    while running.size:
        running = running[bernoulli(tail, running.size, source)]
        high[running] += 1
    return low, high, len(lower_digits)


def _joined(low: NDArray[np.int64], high: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """low + 2^shift high, clamped to +-GREATEST_NOISE, for |low| < 2^shift <= 2^58, without overflow."""
    # From this limit on low cannot bring the sum back within the clamp, so that clipping here alters nothing;
    # and limit 2^shift + |low| <= 2^61 + 2 * 2^58.
    limit = (GREATEST_NOISE >> shift) + 1
    joined: NDArray[np.int64] = low + (np.clip(high, -limit, limit) << shift)
    return np.clip(joined, -GREATEST_NOISE, GREATEST_NOISE)


@lru_cache(maxsize=256)
def _digit_probabilities(rate: Fraction) -> tuple[tuple[Probability, ...], Probability]:
    """For the binary digits below K of a geometric, and for the tail above; K least with rate 2^K >= 64."""
    if rate <= 0:
        raise ValueError(f"the rate must be positive, not {rate}")
    if rate < LEAST_RATE:
        raise ValueError(f"the rate {rate} is below 2^-52: its noise would not fit into 64 bits")
    exponent = rate
    lower_digits = []
    while exponent < _TAIL_EXPONENT:
        lower_digits.append(logistic_probability(exponent))
        exponent *= 2
    return tuple(lower_digits), exponential_probability(exponent)
