"""Exact counts of the keys that occur and a release rule go in; which keys are shown, and noisy counts, come
out.

The proofs are in privacy/key_selection.py. Counts are clamped to 0..2^62: an error here would depend on the
data, and clamping moves neighbours no further apart. A hidden key has the noisy count 0.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import discrete_laplace
from privsql.privacy.key_selection import GaussianThreshold, OptimalSelection, TruncatedGeometric

GREATEST_COUNT = 2**62

_WORD_BITS = 32


def release_keys(
    exact_counts: NDArray[np.int64], release: TruncatedGeometric | GaussianThreshold, source: Randomness
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """(shown, noisy counts): n + X where that exceeds the threshold and n is above the floor, 0 where the key
    is hidden.

    Every key gets its noise and its coin, shown or not, so the running time depends on the number of keys
    alone.
    """
    exact_counts = _checked(exact_counts)
    if isinstance(release, TruncatedGeometric):
        bounds = release.bound - (source.integers(exact_counts.size) < release.lesser)
        noise = truncated_laplace(release.rate, bounds, source)
        thresholds = bounds + release.shift
    else:
        noise = rounded_gaussian(release.variance, exact_counts.size, source)
        thresholds = np.full(exact_counts.size, release.threshold)
    noisy_counts = exact_counts + noise
    shown = (noisy_counts > thresholds) & (exact_counts > release.shift)
    return shown, np.where(shown, noisy_counts, 0)


def select_keys(
    exact_counts: NDArray[np.int64], release: OptimalSelection, source: Randomness
) -> NDArray[np.bool_]:
    """Show each key with exactly the probability that belongs to its number of units.

    A uniform number, one word per digit of the probability, is compared with the probability: smaller means
    shown.
    """
    exact_counts = _checked(exact_counts)
    digits = _digits(release.scaled, release.bits)
    places = np.minimum(np.maximum(exact_counts - release.shift, 0), digits.shape[1])
    # probability 1 has no digits after the point
    shown: NDArray[np.bool_] = places == digits.shape[1]
    tied = ~shown
    places = np.minimum(places, digits.shape[1] - 1)
    for digit in digits:
        words = source.integers(exact_counts.size)
        shown |= tied & (words < digit[places])
        tied &= words == digit[places]
    return shown


def truncated_laplace(rate: Fraction, bounds: NDArray[np.int64], source: Randomness) -> NDArray[np.int64]:
    """For each bound, X in -bound..bound with P(X = x) proportional to exp(-rate |x|): discrete Laplace
    noise, redrawn while it exceeds the bound.
    """
    if (bounds < 0).any():
        raise ValueError("a bound must be at least 0")
    noise = discrete_laplace(rate, bounds.size, source)
    beyond = np.flatnonzero(np.abs(noise) > bounds)
    while beyond.size:
        noise[beyond] = discrete_laplace(rate, beyond.size, source)
        beyond = beyond[np.abs(noise[beyond]) > bounds[beyond]]
    return noise


def _checked(exact_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    if exact_counts.ndim != 1:
        raise ValueError("the counts must be a one-dimensional array")
    if exact_counts.dtype != np.int64:
        raise TypeError(f"counts are 64-bit integers, not {exact_counts.dtype}")
    return np.clip(exact_counts, 0, GREATEST_COUNT)


@lru_cache(maxsize=16)
def _digits(scaled: tuple[int, ...], bits: int) -> NDArray[np.uint32]:
    """One row per base-2^32 digit, the most significant first; one column per probability but the last, which
    is 1.
    """
    rows = [
        [value >> position & (1 << _WORD_BITS) - 1 for value in scaled[:-1]]
        for position in range(bits - _WORD_BITS, -1, -_WORD_BITS)
    ]
    return np.array(rows, dtype=np.uint32)
