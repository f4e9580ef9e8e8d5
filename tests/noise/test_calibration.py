"""Calibration of Gaussian noise against privacy computed in full, and the bounds it rests on."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special, stats

from privsql.privacy import normal
from privsql.privacy.bounds import exponential_bounds, logarithm_bounds, root_bounds
from privsql.privacy.gaussian import (
    analytic_delta,
    greatest_ratio,
    greatest_rho,
    half_width,
    least_variance,
    rounded_up,
    tail_above,
    zcdp,
)
from tests.noise.statistics import gaussian_excess, gaussian_weights, normal_excess, scaled_exponential

# --- exponential, logarithm, root ---

EXPONENTS = list(
    map(Fraction, ("0", "1", "-1", "1/3", "-22/7", "1e-30", "-1e-30", "100", "-100", "12345/678"))
)


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_exponentials_and_logarithms_lie_within_close_bounds(exponent):
    low, high = exponential_bounds(exponent)
    series = Fraction(scaled_exponential(exponent, 700), 2**700)
    assert low <= series <= high
    assert high - low < high / 10**45
    log_low, log_high = logarithm_bounds(
        series
    )  # whose logarithm is the exponent, but for less than 2^-300 or so
    assert log_low - Fraction(1, 2**250) <= exponent <= log_high + Fraction(1, 2**250)
    assert log_high - log_low < max(1, abs(exponent)) / Fraction(10**44)


def test_extreme_bounds():
    low, high = exponential_bounds(Fraction(-(10**12)))
    assert low == 0 < high < Fraction(1, 10**4000)
    with pytest.raises(ValueError):
        exponential_bounds(Fraction(10**5))
    for number in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError):
            logarithm_bounds(number)


@pytest.mark.parametrize(
    "number", [Fraction(2), Fraction(4), Fraction(1, 3), Fraction(10**40, 7), Fraction(0)], ids=str
)
def test_square_roots_are_bounded_exactly(number):
    low, high = root_bounds(number)
    assert low**2 <= number < high**2
    assert high - low == Fraction(1, 2**160)


# --- the normal law ---


def test_pi_is_bounded_exactly():
    def inverse_tangent(divisor):  # of 1/divisor, times 10^60
        power, total, odd = 10**60 // divisor, 0, 1
        while power:
            total += power // odd if odd % 4 == 1 else -(power // odd)
            power, odd = power // divisor**2, odd + 2
        return total

    pi = Fraction(16 * inverse_tangent(5) - 4 * inverse_tangent(239), 10**60)  # Machin
    assert pi - Fraction(1, 10**55) > normal._PI and pi + Fraction(1, 10**55) < normal._PI_ABOVE


@pytest.mark.parametrize(
    "number", ["0", "1e-12", "1/3", "1", "2", "3", "399/100", "4", "9/2", "6", "9", "37", "1000", "1e6"]
)
def test_mills_ratio_lies_within_close_bounds(number):
    number = Fraction(number)
    low, high = normal.mills_bounds(number)
    assert 0 < low < high < low * (1 + Fraction(1, 10**21))
    assert float(low) == pytest.approx(
        math.sqrt(math.pi / 2) * special.erfcx(float(number) / math.sqrt(2)), rel=1e-14
    )
    density_low, density_high = normal.density_bounds(number)
    assert density_low < density_high
    assert float(density_low) == pytest.approx(stats.norm.pdf(float(number)), rel=1e-10)


@pytest.mark.parametrize("number", ["4", "9/2", "5", "11/2", "6", "13/2"])
def test_series_and_continued_fraction_agree(number):
    """They share nothing, so that a slip in one would part them."""
    number = Fraction(number)
    least = math.floor(number * 2**192)
    low, high = normal._by_series(number, least)
    other_low, other_high = normal._by_fraction(least)
    assert max(low, other_low) < min(high, other_high)
    assert max(high - low, other_high - other_low) < Fraction(1, 10**22)


def test_mills_ratio_has_no_negative_numbers():
    with pytest.raises(ValueError):
        normal.mills_bounds(Fraction(-1, 10))


# --- analytic calibration ---

EXTREMES = list(
    itertools.product(
        ("1e-9", "1e-6", "1e-3", "1/10", "1/2", "1", "3", "10", "100", "1e4", "1e9"),
        ("1e-300", "1e-100", "1e-30", "1e-12", "1e-6", "1e-3", "1/10", "1/2", "9/10", "999/1000"),
    )
)


@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0, 4.0, 15.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 40.0])
def test_the_oracle_is_the_formula_of_balle_and_wang(ratio, epsilon):
    first, second = special.log_ndtr([ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio])
    assert normal_excess(ratio, epsilon) == pytest.approx(
        math.exp(first) - math.exp(epsilon + second), rel=1e-9
    )
    assert normal_excess(ratio, epsilon) == pytest.approx(
        float(analytic_delta(1, 1 / Fraction(ratio) ** 2, Fraction(epsilon))), rel=1e-7
    )


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
def test_variances_are_sufficient_and_tight(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    variance = least_variance(1, epsilon, delta)
    needed = normal_excess(math.sqrt(1 / variance), float(epsilon))
    assert needed <= float(delta) * (1 + 1e-9)
    assert normal_excess(math.sqrt(1 / (variance * Fraction(9992, 10_000))), float(epsilon)) > float(delta)
    assert analytic_delta(1, variance, epsilon) <= delta
    assert float(analytic_delta(1, variance, epsilon)) == pytest.approx(
        needed, rel=1e-6 if epsilon < 10**6 else 1e-2
    )
    for squared in (2, 7, 1000, Fraction(1, 3)):
        assert variance * squared * Fraction(9995, 10_000) < least_variance(squared, epsilon, delta)
        assert least_variance(squared, epsilon, delta) >= squared / greatest_ratio(epsilon, delta) ** 2


def test_calibrated_variances_match_known_figures():
    assert math.sqrt(least_variance(1, Fraction(1), Fraction("1e-6"))) == pytest.approx(4.2247, rel=5e-4)
    assert math.sqrt(least_variance(4, Fraction(1, 2), Fraction("1e-5"))) == pytest.approx(
        2 * 7.0319, rel=5e-4
    )
    rho = greatest_rho(Fraction(1), Fraction("1e-6"))  # what zCDP would need, and the classical formula
    assert math.sqrt(1 / (2 * rho)) == pytest.approx(4.53, rel=1e-3)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.30, rel=1e-3)


def test_impossible_calibrations_are_refused():
    wrong = [(0, "1/2"), (1, 0), (1, 1), (-1, "1/2"), ("1e-400", "1e-6"), ("1e400", "1e-6")]
    for epsilon, delta in wrong:
        with pytest.raises(ValueError):
            least_variance(1, Fraction(epsilon), Fraction(delta))
    with pytest.raises(ValueError):
        least_variance(0, Fraction(1), Fraction(1, 10))
    with pytest.raises(ValueError):  # not found, hence refused
        least_variance(1, Fraction(1, 10**40), Fraction(1, 10**300))
    with pytest.raises(ValueError):
        least_variance(1, Fraction(1), Fraction(1, 10**5000))
    for squared, variance, epsilon in ((-1, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError):
            analytic_delta(squared, Fraction(variance), Fraction(epsilon))
    assert analytic_delta(0, Fraction(1), Fraction(1)) == 0
    assert 0 < analytic_delta(1, Fraction(10**12), Fraction(1)) < Fraction(1, 10**4000)
    assert Fraction(99, 100) < analytic_delta(10**6, Fraction(1), Fraction(1)) <= 1


@pytest.mark.parametrize("variance", ["1/1000", "1", "4095/4096", "4097", "123456789/1000", "1e30"])
def test_variances_are_rounded_up_a_little(variance):
    variance = Fraction(variance)
    up = rounded_up(variance)
    assert variance <= up < variance * (1 + Fraction(1, 2**11))
    assert up.numerator.bit_length() <= 13 or up.denominator == 1
    assert rounded_up(up) == up


# --- privacy of what is published, outcome by outcome ---

PRICES = pytest.mark.parametrize(
    ("epsilon", "delta"), [("1/2", "1e-3"), ("1", "1e-6"), ("1", "1e-2"), ("4", "1e-6")]
)


@pytest.mark.parametrize("moves", [(1,), (3,), (1, 1), (3, 4), (2, 1)], ids=str)
@PRICES
def test_calibrated_noise_is_private_and_little_less_is_not(moves, epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    variance = least_variance(sum(move**2 for move in moves), epsilon, delta)
    assert gaussian_excess([variance] * len(moves), moves, epsilon) <= delta
    less = variance * Fraction(8, 10)  # 0.89 of sigma
    assert gaussian_excess([less] * len(moves), moves, epsilon) > delta


@pytest.mark.parametrize("shares", [("1/2", "1/2"), ("1/4", "3/4"), ("1/10", "9/10")], ids=str)
@PRICES
def test_parts_of_one_release_are_private_together(shares, epsilon, delta):
    """Two measurements of different sensitivities: variances s_i V / w_i."""
    epsilon, delta, moves = Fraction(epsilon), Fraction(delta), (1, 2)
    unit = least_variance(1, epsilon, delta)
    variances = [
        rounded_up(move**2 * unit / Fraction(share)) for move, share in zip(moves, shares, strict=True)
    ]
    assert gaussian_excess(variances, moves, epsilon) <= delta
    assert gaussian_excess([each * Fraction(8, 10) for each in variances], moves, epsilon) > delta


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(9)], ids=str)
def test_rounded_noise_is_concentrated_as_zcdp_says(variance):
    chances, _ = gaussian_weights(variance, deviations=30)
    for move, order in itertools.product((1, 2), (1.5, 2, 5, 20)):
        one, other = np.concatenate([np.zeros(move), chances]), np.concatenate([chances, np.zeros(move)])
        both = (one > 0) & (other > 0)  # what is left out weighs nothing
        power = order * np.log(one[both]) + (1 - order) * np.log(other[both])
        divergence = special.logsumexp(power) / (order - 1)
        allowed = order * float(zcdp(move**2, variance))
        assert divergence <= allowed * (1 + 1e-9)
        assert divergence > allowed * (0.95 if variance > 1 else 0.2)


# --- zCDP ---

LOSSES = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon, delta in itertools.product(("1/100", "1/2", "1", "4", "30"), ("1e-3", "1e-6", "1e-12"))
]


def least_log_delta(rho, epsilon):
    """Corollary 13 of Canonne, Kamath, Steinke as it stands: the infimum over the order."""

    def log_delta(log_above):
        order = 1 + math.exp(log_above)
        factor = order * math.log1p(-1 / order) if order > 1 + 1e-15 else -math.inf
        return (order - 1) * (order * rho - epsilon) - log_above + factor

    grid = np.linspace(-12, 12, 4001)
    start = grid[np.argmin([log_delta(each) for each in grid])]
    return optimize.minimize_scalar(log_delta, bounds=(start - 0.1, start + 0.1), method="bounded").fun


@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
def test_zcdp_conversion_is_the_published_one(epsilon, delta):
    rho = greatest_rho(epsilon, delta)
    assert least_log_delta(float(rho), float(epsilon)) == pytest.approx(math.log(delta), abs=1e-5)


def test_extreme_losses():
    assert greatest_rho(Fraction(1, 10**9), Fraction(1, 10**30)) > 0
    assert greatest_rho(Fraction(1000), Fraction(1, 10**400)) > 0
    assert greatest_rho(Fraction(1), Fraction(999, 1000)) > 1
    for epsilon, delta in ((0, Fraction(1, 2)), (1, Fraction(0)), (1, Fraction(1)), (-1, Fraction(1, 2))):
        with pytest.raises(ValueError):
            greatest_rho(Fraction(epsilon), delta)
    with pytest.raises(ValueError):
        zcdp(1, Fraction(0))


# --- tails ---


@pytest.mark.parametrize(
    "variance", [Fraction(1, 100), Fraction(1), Fraction(37, 3), Fraction(900), Fraction(10**24)], ids=str
)
def test_tails_are_never_too_small(variance):
    sigma = math.sqrt(variance)
    for bound in {-2, -1, 0, 1, *(math.ceil(z * sigma) for z in (0.1, 0.5, 1, 2, 3, 5, 8, 12, 30))}:
        stated, exact = tail_above(variance, bound), stats.norm.sf((bound + 0.5) / sigma)
        assert stated >= Fraction(exact) * (1 - Fraction(1, 10**9))
        assert stated <= exact * (1 + 1e-6) or bound < 0
    assert tail_above(variance, -1) == 1
    assert 0 < tail_above(variance, 10**6 * math.ceil(sigma)) < Fraction(1, 10**4000)


@pytest.mark.parametrize("variance", ["1/100000", "1/10", "1", "5", "37", "900", "1025", "4000"])
def test_half_widths_are_the_least_that_cover(variance):
    variance = Fraction(variance)
    chances, reach = gaussian_weights(variance)
    for level in (0.05, 0.3, 0.5, 0.68, 0.9, 0.95, 0.99, 0.999999):
        width = half_width(variance, level)
        assert chances[reach - width : reach + width + 1].sum() >= level
        if width >= 1:
            assert chances[reach - width + 1 : reach + width].sum() < level
    with pytest.raises(ValueError):
        half_width(variance, 1.0)


def test_half_widths_at_great_variances():
    assert half_width(Fraction(10**20), 0.95) == pytest.approx(1.959964 * 10**10, rel=1e-6)
    assert half_width(Fraction(2**104), 0.5) == pytest.approx(0.6744898 * 2**52, rel=1e-6)
