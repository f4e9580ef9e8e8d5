"""Exact fractions, a price and a source go in; noisy numbers, an index or flipped bits come out. No SQL and
no plan is involved.

Discrete noise is added on a grid. Its step depends only on public parameters: epsilon, the sensitivity and
the number of values. Rounding is x -> floor(x/step + c). It preserves the order and maps whole steps to
themselves, so that values at most m steps apart are at most ceil(m) whole steps apart afterwards; a
sensitivity of 2^b steps stays what it is. Over k values, where the sum of |x_i - x'_i| is at most 2^b steps,
the sum in whole steps is at most 2^b + k - 1: a value that moves by x moves by at most ceil(x) < x + 1 steps,
and an integer below 2^b + k is at most 2^b + k - 1.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import expm1, floor

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import logistic_probability
from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import LEAST_RATE, bernoulli, discrete_laplace, geometric
from privsql.noise.selection import GREATEST_SCORE, select
from privsql.privacy.bounds import root_bounds
from privsql.privacy.gaussian import least_variance

# steps per sensitivity, and more for many values: the k - 1 above is then one part in a million
_GRID_BITS = 20
_MOST_GRID_BITS = 30  # at the smallest epsilon the rate is still above 2^-52
_HALF = Fraction(1, 2)
_SHARE_STEPS = 5  # e2 : e1 is a multiple of a fifth, whatever floats make of a power
_BATCH = 64


def laplace(
    exact_values: Sequence[Fraction], whole: bool, epsilon: Fraction, l1: Fraction, source: Randomness
) -> list[Fraction]:
    """Add discrete Laplace noise to each value; epsilon-private if neighbours' values differ by at most l1 in
    sum.

    `whole` values get integer noise of rate epsilon/l1. Others are rounded to the grid described above. Noise
    beyond 2^61 steps is clamped, which happens with probability below exp(-512).
    """
    size = len(exact_values)
    if whole and epsilon / l1 >= LEAST_RATE:
        noise = discrete_laplace(epsilon / l1, size, source).tolist()
        return [exact_value + each for exact_value, each in zip(exact_values, noise, strict=True)]
    steps = _steps(size)
    noise = discrete_laplace(epsilon / l1_steps(steps, size), size, source).tolist()
    return _on_grid(exact_values, l1 / steps, noise, whole)


def gaussian(
    exact_values: Sequence[Fraction],
    whole: bool,
    epsilon: Fraction,
    delta: Fraction,
    l2: Fraction,
    source: Randomness,
) -> list[Fraction]:
    """Add Gaussian noise rounded to a grid to each value; (epsilon, delta)-private if neighbours' values
    differ by at most l2 in Euclidean distance. `whole` values are rounded to integers afterwards.
    """
    size = len(exact_values)
    steps = _steps(size)
    noise = rounded_gaussian(
        least_variance(l2_steps(steps, size) ** 2, epsilon, delta), size, source
    ).tolist()
    return _on_grid(exact_values, l2 / steps, noise, whole)


def _steps(size: int) -> int:
    """The number of grid steps in one sensitivity, for this many values."""
    return 1 << min(_GRID_BITS + size.bit_length(), _MOST_GRID_BITS)


def l1_steps(steps: int, size: int) -> int:
    """The l1 distance in whole steps, after rounding, of `size` values that were `steps` apart (see
    above).
    """
    return steps + size - 1


def l2_steps(steps: int, size: int) -> Fraction:
    """The same in Euclidean distance: rounding moves each of the two vectors by at most half a step per
    value. A single value moves no further apart.
    """
    return steps + root_bounds(Fraction(size))[1] if size > 1 else Fraction(steps)


def _on_grid(
    exact_values: Sequence[Fraction], step: Fraction, noise: list[int], whole: bool
) -> list[Fraction]:
    noisy = [
        step * (floor(exact_value / step + _HALF) + each)
        for exact_value, each in zip(exact_values, noise, strict=True)
    ]
    return [Fraction(floor(each + _HALF)) for each in noisy] if whole else noisy


def laplace_max(
    exact_scores: Sequence[Fraction], epsilon: Fraction, linf: Fraction, monotone: bool, source: Randomness
) -> int:
    """The index of the greatest score with discrete Laplace noise on a grid of 2^20 steps per sensitivity;
    the first of several.

    The privacy proof is that of selection.py. Only differences count, so the greatest score is shifted to 0.
    A score further down is raised to 2^62 steps below the greatest, which moves no score by more than one of
    the two scores it is computed from moves.
    """
    exact_steps = [floor(score / linf * 2**_GRID_BITS) for score in exact_scores]
    greatest = max(exact_steps)
    exact_places = np.array([max(each - greatest, -GREATEST_SCORE) for each in exact_steps], dtype=np.int64)
    return select(exact_places, epsilon / ((1 if monotone else 2) << _GRID_BITS), "laplace", source)


def those_above(
    exact_values: Iterable[Fraction],
    threshold: Fraction,
    epsilon: Fraction,
    linf: Fraction,
    monotone: bool,
    count: int,
    source: Randomness,
) -> Iterator[int]:
    """The indices of the first `count` values that reach the threshold, all with noise; values after the last
    of these are not looked at.

    Values less the threshold, v, are whole steps of a grid, m = 2^20 to a sensitivity. Value i is above iff
    v_i + Y_i >= Z, with Z and Y >= 0 geometric, P(Z = z) ~ exp(-e1 z/m), P(Y = y) ~ exp(-e2 y/(2cm)), where
    c = count and e1 + e2 = epsilon. There is one Z for all. An outcome says which values are above, c of them
    at most. Given Z = z it has the probability of the product of P(v_i + Y_i < z) over those below and of
    P(v_i + Y_i >= z) over those above. On a neighbour every v moves by at most m. Put z + m for z: that is
    exp(e1) times less likely; no factor of those below falls; and those above need y + 2m for y, which is
    exp(e2/c) times less likely for each. So the outcome is at most exp(e1 + c e2/c) = exp(epsilon) times less
    likely. If monotone, z + m and y + m will do where all v rise, z and y + m where all fall; so Y has
    P(Y = y) ~ exp(-e2 y/(cm)). Z and Y are only ever shifted upwards, and need no other half: half the
    variance of the textbook's Laplace noise. A constant is added, so that the noise has mean 0.
    """
    of_threshold, of_value = threshold_rates(epsilon, monotone, count)
    exact_steps = (floor((value - threshold) / linf * 2**_GRID_BITS) for value in exact_values)
    bar = int(geometric(of_threshold, 1, source)[0]) + comparison_shift(of_threshold, of_value)
    left = count
    for index, (exact_step, noise) in enumerate(zip(exact_steps, _noises(of_value, source), strict=False)):
        if exact_step + noise >= bar:
            yield index
            left -= 1
            if not left:
                return


def threshold_rates(epsilon: Fraction, monotone: bool, count: int) -> tuple[Fraction, Fraction]:
    """Of the noise on the threshold and on each value. e1 : e2 is next to 1 : (2c)^(2/3), or 1 : c^(2/3) if
    monotone, which makes 1/e1^2 + (2c/e2)^2 least (Lyu, Su, Li 2017): 5 : 8 and 1 : 1 for c = 1.
    """
    moves = (1 if monotone else 2) * count
    of_values = Fraction(round(_SHARE_STEPS * moves ** (2.0 / 3.0)), _SHARE_STEPS)
    per_step = epsilon / (1 + of_values) / 2**_GRID_BITS
    return per_step, per_step * of_values / moves


def comparison_shift(of_threshold: Fraction, of_value: Fraction) -> int:
    """The mean of Y - Z, in whole steps; it depends on public parameters alone."""
    return round(1.0 / expm1(of_value) - 1.0 / expm1(of_threshold))


def _noises(rate: Fraction, source: Randomness) -> Iterator[int]:
    while True:
        yield from geometric(rate, _BATCH, source).tolist()


def flip(exact_bits: NDArray[np.bool_], epsilon: Fraction, source: Randomness) -> NDArray[np.bool_]:
    """Flip each bit with probability 1/(1 + exp(epsilon)): the true bit is exp(epsilon) times as likely."""
    noisy: NDArray[np.bool_] = exact_bits ^ bernoulli(logistic_probability(epsilon), exact_bits.size, source)
    return noisy
