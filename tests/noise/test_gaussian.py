"""Gaussian noise against its exact law, its calibration against privacy computed in full. False alarms: near 1e-9."""

import itertools
import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from privsql.noise import gaussian
from privsql.noise.gaussian import GREATEST_VARIANCE, _kept, _Law, _law, _uniform, _wins, discrete_gaussian
from privsql.noise.randomness import SystemRandomness
from privsql.noise.samplers import GREATEST_NOISE
from privsql.privacy.bounds import exponential_bounds, logarithm_bounds, root_bounds
from privsql.privacy.gaussian import (
    greatest_rho,
    half_width,
    least_variance,
    rounded_up,
    tail_above,
    zcdp,
    zcdp_delta,
)

SOURCE = SystemRandomness()
FALSE_ALARM = 1e-9
SIZE = 40_000
LAST_WORD = 2**32 - 1


class Script:
    """Answers each call with the next list of words, and insists that so many were asked for."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def integers(self, count):
        words = self.answers.pop(0)
        assert len(words) == count
        return np.array(words, dtype=np.uint32)


# --- the sampler: structure, exactly ---

VARIANCES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(2),
    Fraction(15),
    Fraction(16),
    Fraction(1000, 7),
    Fraction(2**20 + 1),
    Fraction(2**46),
    Fraction(2**52 - 1),
    Fraction(2**52),
    Fraction(2**71),
    GREATEST_VARIANCE,
]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_proposal_times_acceptance_is_the_gaussian_law(variance):
    law = _law(variance)
    # -ln of the chance to propose and accept |x| = 2^m k + j, less u x^2, must be the same for all k and j
    rest = set()
    for high in [*range(12), 255]:
        for low in {0, 1 % 2**law.shift, 2**law.shift // 3, 2**law.shift - 1}:
            distance = 4**law.shift * (high - law.centre) * (high - law.centre - 1)
            distance += low * (2 ** (law.shift + 1) * high + low)
            assert distance >= 0
            x = 2**law.shift * high + low
            rest.add(law.high_rate * high + law.unit * distance - Fraction(x * x) / (2 * variance))
    assert len(rest) == 1
    assert law.high_rate >= Fraction(7, 64) and 0 <= law.shift - law.dropped <= 23 and law.shift <= 50


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_distances_are_those_of_whole_numbers_and_bracket_what_was_dropped(variance):
    law = _law(variance)
    highs = np.array([0, 1, 5, 40, 255], dtype=np.int64)
    for part in (Fraction(0), Fraction(1, 3), Fraction(999, 1000)):
        low = int(part * 2**law.shift)
        coarse = np.full(highs.size, low >> law.dropped, dtype=np.int64)
        least, beyond = gaussian._distance(law, highs, coarse), gaussian._distance(law, highs, coarse + 1)
        for place, high in enumerate(highs.tolist()):
            exact = 4**law.shift * (high - law.centre) * (high - law.centre - 1)
            exact += low * (2 ** (law.shift + 1) * high + low)
            assert int(least[place]) * 4**law.dropped <= exact < int(beyond[place]) * 4**law.dropped
            if law.dropped == 0:
                assert int(least[place]) == exact


def test_a_race_is_decided_at_the_first_digit_that_differs():
    law = _Law(unit=Fraction(1, 100), shift=0, centre=0, dropped=0, race_shift=3)
    # high 4: d = 4 * 3 = 12 = 1|100 in binary; the race above the third digit is 1 for a tie
    assert _wins(law, 4, 0, 2, Script())
    assert not _wins(law, 4, 0, 0, Script())
    one, zero = [0], [LAST_WORD]
    assert not _wins(law, 4, 0, 1, Script(zero))
    assert _wins(law, 4, 0, 1, Script(one, one))
    assert _wins(law, 4, 0, 1, Script(one, zero, one))
    assert _wins(law, 4, 0, 1, Script(one, zero, zero))  # G = d: at least d
    assert _wins(law, 300, 0, 300 * 299 // 8 + 1, Script())  # beyond what the table holds


def test_uniform_bits():
    assert _uniform(0, 3, Script()).tolist() == [0, 0, 0]
    assert _uniform(5, 2, Script([LAST_WORD, 1 << 27])).tolist() == [31, 1]
    assert _uniform(32, 1, Script([7])).tolist() == [7]
    assert _uniform(50, 1, Script([LAST_WORD], [LAST_WORD])).tolist() == [2**50 - 1]
    assert _uniform(33, 1, Script([3], [0])).tolist() == [6]


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), GREATEST_VARIANCE + 1], ids=str)
def test_variances_without_noise_or_beyond_64_bits_are_refused(variance):
    with pytest.raises(ValueError):
        discrete_gaussian(variance, 1, SOURCE)


def test_edges_of_size_and_variance():
    assert discrete_gaussian(Fraction(1), 0, SOURCE).size == 0
    noise = discrete_gaussian(GREATEST_VARIANCE, 1000, SOURCE)
    assert noise.dtype == np.int64 and noise.size == 1000
    assert 2**50 < np.abs(noise).mean() < 2**53 < GREATEST_NOISE
    assert not discrete_gaussian(Fraction(1, 10**6), 1000, SOURCE).any()
    assert discrete_gaussian(Fraction(4), 1, SOURCE).shape == (1,)


# --- the sampler: frequencies ---


def weights(variance):
    """P(X = x) for x = -reach..reach, and reach."""
    reach = math.ceil(40 * math.sqrt(variance)) + 5
    chances = np.exp(-(np.arange(-reach, reach + 1) ** 2.0) / (2 * float(variance)))
    return chances / chances.sum(), reach


def at_least(variance, values):
    """P(X >= value) for each value; from variance 10,000 on by the normal law, which differs by 1e-6 at most."""
    values = np.asarray(values, dtype=np.float64)
    if variance >= 10_000:
        return stats.norm.sf((values - 0.5) / math.sqrt(variance))
    chances, reach = weights(variance)
    return np.append(np.cumsum(chances[::-1])[::-1], 0.0)[(values + reach).astype(int)]


def chi_square(sample, variance):
    """p-value under the law of that variance, over cells between about a hundred quantiles."""
    quantiles = stats.norm.ppf(np.linspace(0, 1, 41)[1:-1]) * math.sqrt(variance)
    edges = np.unique(np.round(quantiles)).astype(np.int64)
    if variance < 4:
        edges = np.arange(-1, 3) if variance <= 1 else np.arange(-3, 5)
    chances = -np.diff([1.0, *at_least(variance, edges), 0.0])
    assert chances.min() * sample.size >= 50
    counts = np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(chances))
    return stats.chisquare(counts, chances * sample.size).pvalue


SAMPLED = [*map(Fraction, ("1/3", "1", "2", "7/2", "15", "1000/7", "2000001/2")), Fraction(2**46), Fraction(2**75)]


@pytest.mark.parametrize("variance", [*SAMPLED, GREATEST_VARIANCE / 2], ids=str)
def test_the_right_scale_passes_and_others_fail(variance):
    assert chi_square(discrete_gaussian(variance, SIZE, SOURCE), variance) > FALSE_ALARM
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert chi_square(discrete_gaussian(variance * wrong**2, SIZE, SOURCE), variance) < FALSE_ALARM


@pytest.mark.parametrize(("dropped", "race_shift"), [(0, 4), (1, 5), (2, 4), (2, 9), (0, 12)])
def test_the_rare_ways_give_the_same_law(dropped, race_shift):
    """So coarse a first comparison leaves many proposals open."""
    variance = Fraction(300)
    law = _law(variance)
    assert law.shift == 2 and law.race_shift == 0
    coarse = _Law(law.unit, law.shift, law.centre, dropped, race_shift)
    sample = _kept(coarse, 6_000, SOURCE)
    assert abs(sample.size / 6_000 - _kept(law, 60_000, SOURCE).size / 60_000) < 0.05
    assert chi_square(sample, variance) > FALSE_ALARM


def test_what_is_dropped_from_the_first_comparison_still_counts(monkeypatch):
    law = replace(_law(Fraction(300 * 64)), dropped=5, race_shift=10)
    assert (law.shift, law.centre) == (5, 3)
    # k = 4 and j = 31: d = 31 * (64 * 4 + 31) = 8 * 1024 + ...; what is left of j, 0, tells only that it is from 0 to 9 * 1024
    for race, accepted in ((0, []), (5, []), (7, []), (9, [159]), (10, [159])):
        draws = [np.array([4]), np.array([race])]
        monkeypatch.setattr(gaussian, "geometric", lambda *_, draws=draws: draws.pop(0))
        assert _kept(law, 1, Script([LAST_WORD], [0])).tolist() == accepted


def test_proposals_beyond_the_table_are_decided_one_by_one(monkeypatch):
    monkeypatch.setattr(gaussian, "_GREATEST_HIGH", 2)
    sample = _kept(_law(Fraction(10)), 20_000, SOURCE)
    assert chi_square(sample, Fraction(10)) > FALSE_ALARM


def test_the_chi_square_tells_a_laplace_law_and_a_doubled_zero():
    sample = discrete_gaussian(Fraction(15), SIZE, SOURCE)
    assert chi_square(np.where(np.arange(SIZE) % 10 == 0, 0, sample), Fraction(15)) < FALSE_ALARM
    laplace = np.round(stats.laplace.rvs(scale=math.sqrt(7.5), size=SIZE, random_state=1)).astype(np.int64)
    assert chi_square(laplace, Fraction(15)) < FALSE_ALARM


def test_neighbouring_draws_and_low_digits_are_independent():
    sample = discrete_gaussian(Fraction(2**70), SIZE, SOURCE)
    signs, digits = (sample > 0).astype(int), (sample & 3).astype(int)
    assert stats.chi2_contingency(np.bincount(2 * signs[:-1:2] + signs[1::2]).reshape(2, 2)).pvalue > FALSE_ALARM
    assert stats.chi2_contingency(np.bincount(4 * signs + digits).reshape(2, 4)).pvalue > FALSE_ALARM
    assert stats.chisquare(np.bincount(digits)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("variance", [Fraction(20), Fraction(2**80)], ids=str)
def test_many_draws_are_quick(variance):
    started = time.perf_counter()
    discrete_gaussian(variance, 100_000, SOURCE)
    assert time.perf_counter() - started < 2  # about 0.1 s; generous, for a busy machine


# --- bounds ---


def exponential_series(exponent: Fraction, bits: int = 700) -> int:
    """exp(exponent) 2^bits, give or take less than 2^(bits - 400), by halving, series and squaring in integers."""
    halvings = 12 + math.ceil(abs(exponent)).bit_length()
    argument = (exponent.numerator << bits) // (exponent.denominator << halvings)
    term = total = 1 << bits
    index = 0
    while term not in (0, -1):
        index += 1
        term = (term * argument >> bits) // index
        total += term
    for _ in range(halvings):
        total = total * total >> bits
    return total


EXPONENTS = list(map(Fraction, ("0", "1", "-1", "1/3", "-22/7", "1e-30", "-1e-30", "100", "-100", "12345/678")))


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_exponentials_and_logarithms_lie_within_close_bounds(exponent):
    low, high = exponential_bounds(exponent)
    series = Fraction(exponential_series(exponent), 2**700)
    assert low <= series <= high
    assert high - low < high / 10**45
    log_low, log_high = logarithm_bounds(series)  # whose logarithm is the exponent, but for less than 2^-300 or so
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
def test_roots(number):
    low, high = root_bounds(number)
    assert low**2 <= number < high**2
    assert high - low == Fraction(1, 2**160)


# --- calibration ---

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
    assert zcdp_delta(rho, epsilon) <= delta * (1 + Fraction(1, 10**6))
    assert zcdp_delta(rho, epsilon) >= delta * (1 - Fraction(1, 10**6))
    assert zcdp_delta(rho * Fraction(101, 100), epsilon) > delta


def test_extreme_losses():
    assert greatest_rho(Fraction(1, 10**9), Fraction(1, 10**30)) > 0
    assert greatest_rho(Fraction(1000), Fraction(1, 10**400)) > 0
    assert greatest_rho(Fraction(1), Fraction(999, 1000)) > 1
    assert zcdp_delta(Fraction(0), Fraction(1)) == 0
    assert 0 < zcdp_delta(Fraction(1, 10**12), Fraction(1)) < Fraction(1, 10**4000)
    assert Fraction(99, 100) < zcdp_delta(Fraction(10**6), Fraction(1)) <= 1
    for epsilon, delta in ((0, Fraction(1, 2)), (1, Fraction(0)), (1, Fraction(1)), (-1, Fraction(1, 2))):
        with pytest.raises(ValueError):
            greatest_rho(Fraction(epsilon), delta)
    with pytest.raises(ValueError):
        least_variance(0, Fraction(1), Fraction(1, 10))
    with pytest.raises(ValueError):
        zcdp(1, Fraction(0))


@pytest.mark.parametrize("variance", ["1/1000", "1", "4095/4096", "4097", "123456789/1000", "1e30"])
def test_variances_are_rounded_up_a_little(variance):
    variance = Fraction(variance)
    up = rounded_up(variance)
    assert variance <= up < variance * (1 + Fraction(1, 2**11))
    assert up.numerator.bit_length() <= 13 or up.denominator == 1
    assert rounded_up(up) == up


def hockey_stick(variance, moves, epsilon):
    """sup over A of P(A) - exp(epsilon) Q(A) for discrete Gaussian noise on 0 and on the vector of moves.

    The loss depends on the noise only through S = sum of moves times noise: it is (S - |moves|^2/2)/variance for
    Q = P + moves, up to sign, so that the laws of S and of S + |moves|^2 decide.
    """
    chances, _ = weights(variance)
    law = np.ones(1)
    for move in moves:
        spread = np.zeros((len(chances) - 1) * move + 1)
        spread[::move] = chances
        law = np.convolve(law, spread)
    square = sum(move**2 for move in moves)
    shifted = np.concatenate([np.zeros(square), law])
    law = np.concatenate([law, np.zeros(square)])
    return np.maximum(0.0, shifted - math.exp(epsilon) * law).sum()


@pytest.mark.parametrize("moves", [(1,), (3,), (1, 1), (3, 4), (1, 1, 1, 1, 1), (2, 1, 1)], ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-3"), ("1", "1e-6"), ("1", "1e-2"), ("4", "1e-6")])
def test_calibrated_noise_is_private_and_little_less_is_not(moves, epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    variance = least_variance(sum(move**2 for move in moves), epsilon, delta)
    assert hockey_stick(variance, moves, epsilon) <= delta
    assert hockey_stick(variance * Fraction(7, 10), moves, epsilon) > delta  # 0.84 of sigma


# --- tails ---


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1), Fraction(37, 3), Fraction(900)], ids=str)
def test_tails_are_never_too_small(variance):
    chances, reach = weights(variance)
    sigma = math.sqrt(variance)
    for bound in range(-2, math.ceil(12 * sigma)):
        exact = chances[reach + bound + 1 :][::-1].sum()
        stated = tail_above(variance, bound)
        assert stated >= Fraction(exact) * (1 - Fraction(1, 10**9))
        if variance > 100 and sigma < bound < 7 * sigma:
            assert stated < exact * (1 + 2 * (bound / sigma) ** 2 / (24 * sigma**2)) + 1e-12 * exact


def test_tails_far_out_and_at_great_variances():
    for z in (1, 2, 5, 30):
        variance = Fraction(10**24)
        assert float(tail_above(variance, z * 10**12)) == pytest.approx(stats.norm.sf(z), rel=2e-3 if z == 1 else 1e-5)
    assert 0 < tail_above(Fraction(1), 10**6) < Fraction(1, 10**4000)


@pytest.mark.parametrize("variance", ["1/100000", "1/10", "1", "5", "37", "900", "1025", "4000"])
def test_half_widths_cover_and_are_no_wider_than_needed(variance):
    variance = Fraction(variance)
    chances, reach = weights(variance)
    for level in (0.05, 0.3, 0.5, 0.68, 0.9, 0.95, 0.99, 0.999999):
        width = half_width(variance, level)
        assert chances[reach - width : reach + width + 1].sum() >= level
        assert chances[reach - width + 2 : reach + width - 1].sum() < level
        if width >= 1 and variance <= 1024:
            assert chances[reach - width + 1 : reach + width].sum() < level
    with pytest.raises(ValueError):
        half_width(variance, 1.0)


def test_half_widths_at_great_variances():
    assert half_width(Fraction(10**20), 0.95) == pytest.approx(1.959964 * 10**10, rel=1e-6)
