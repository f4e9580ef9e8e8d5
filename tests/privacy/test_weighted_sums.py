"""Half-widths of weighted sums of many noises: never too small, by the exact distribution, and not much too large."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privsql.privacy.accuracy import GaussianLaw, LaplaceLaw
from privsql.privacy.weighted_sums import (
    Fitted,
    counted,
    gaussian_combination,
    half_width,
    laplace_combination,
    variance,
)

# weights as whole multiples of a unit, so that the sum lives on a lattice and its distribution can be added up
COMBINATIONS: list[tuple[list[int], int]] = [
    ([1], 1), ([2, 1, 1], 3), ([1, 1], 2), ([10, *[1] * 10], 11), ([1] * 25, 5), ([18, 18, *[1] * 30], 20), ([5, 4, 3, 2, 1], 6),
]  # fmt: skip


def law(weights: list[int], rate: float) -> np.ndarray:
    """P(sum = x) for x = -n..n, in units of the lattice."""
    total = np.ones(1)
    for weight in weights:
        most = math.ceil(45.0 / rate) + 2
        noise = math.tanh(rate / 2.0) * np.exp(-rate * np.abs(np.arange(-most, most + 1)))
        spaced = np.zeros(2 * most * weight + 1)
        spaced[::weight] = noise
        size = 1 << (len(total) + len(spaced) - 1).bit_length()
        total = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(spaced, size), size)[
            : len(total) + len(spaced) - 1
        ]
    return np.maximum(total, 0.0)


@pytest.mark.parametrize("rate", [0.05, 0.25, 1.0, 4.0])
@pytest.mark.parametrize(("weights", "unit"), COMBINATIONS)
def test_laplace_against_the_exact_distribution(weights: list[int], unit: int, rate: float) -> None:
    exact = law(weights, rate)
    middle = len(exact) // 2
    for level in (0.5, 0.8, 0.95, 0.99, 0.9999, 1 - 1e-7):
        found = laplace_combination(counted([weight / unit for weight in weights]), rate, level)
        reach = math.floor(found * unit + 1e-9)
        inside = exact[max(0, middle - reach) : middle + reach + 1].sum()
        assert inside >= level - 1e-10, (weights, rate, level)
        cover = np.cumsum(exact[middle:] + np.concatenate([[0.0], exact[middle + 1 :]]))
        least = int(np.searchsorted(cover, level)) / unit
        step = max(weights) / unit
        assert found <= 1.35 * least + 1.3 * step, (weights, rate, level, found, least)


@pytest.mark.parametrize("rate", [1e-15, 1e-9, 1e-4])
def test_bounds_scale_at_small_rates(rate: float) -> None:
    for level in (0.5, 0.95, 1 - 1e-6):
        wide = laplace_combination(((1.0, 1), (0.1, 10)), rate, level) * rate
        assert wide == pytest.approx(laplace_combination(((1.0, 1), (0.1, 10)), 1e-3, level) * 1e-3, rel=0.01)


def test_noise_that_is_nearly_always_zero() -> None:
    assert laplace_combination(((1.0, 1), (0.01, 100)), 60.0, 0.999) == 0.0
    assert laplace_combination((), 1.0, 0.95) == 0.0


def test_gaussian() -> None:
    alone = gaussian_combination(((1.0, 1),), 10.0, 0.95)
    assert alone == pytest.approx(10.0 * stats.norm.ppf(0.975) + 0.5)
    many = gaussian_combination(((0.1, 100),), 10.0, 0.99)
    assert many == pytest.approx(10.0 * stats.norm.ppf(0.995) + 5.0)


def test_unknown_weights_are_bounded_by_their_squares() -> None:
    """Whatever they are, if their squares sum to at most 1."""
    for rate in (0.05, 0.5, 2.0):
        for level in (0.5, 0.95, 0.999):
            bound = half_width([(1.0, Fitted(LaplaceLaw(rate), ((1.0, 1),), known=False))], level)
            for weights in ([1.0], [0.5] * 4, [0.1] * 100, [0.9, *[0.05] * 60], [0.6, 0.6, 0.5]):
                assert laplace_combination(counted(weights), rate, level) <= bound + 1e-9
    for weights in ([1.0], [0.5] * 4, [0.02] * 2500):
        known = half_width([(1.0, Fitted(GaussianLaw(Fraction(100)), counted(weights)))], 0.95)
        unknown = half_width([(1.0, Fitted(GaussianLaw(Fraction(100)), ((1.0, 1),), known=False))], 0.95)
        assert known - 0.5 * sum(weights) <= unknown  # but for rounding, which adds up here at its worst


def test_columns_add_up_and_unfitted_values_are_unchanged() -> None:
    fitted = Fitted(LaplaceLaw(0.25), ((0.75, 1), (0.25, 3)))
    both = half_width([(0.5, fitted), (0.5, fitted)], 0.95)
    assert both == laplace_combination(counted([0.375, 0.375, *[0.125] * 6]), 0.25, 0.95)
    assert half_width([(2.0, LaplaceLaw(0.25))], 0.95) == 2 * LaplaceLaw(0.25).half_width(0.95)
    assert variance(fitted) == pytest.approx(variance(LaplaceLaw(0.25)) * (0.75**2 + 3 * 0.25**2))
    assert variance(LaplaceLaw(0.25)) == pytest.approx(1.0 / (math.cosh(0.25) - 1.0))
