"""Gaussian noise against its exact law: every part of the sampler, then frequencies. False alarms: near 1e-9."""

import itertools
import math
import time
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from privsql.noise import gaussian_sampler
from privsql.noise.gaussian_sampler import (
    GREATEST_VARIANCE,
    _accepts,
    _cumulated,
    _kept,
    _law,
    _scaled_chances,
    _size,
    _strip,
    rounded_gaussian,
)
from privsql.noise.samplers import GREATEST_NOISE
from tests.noise.statistics import FALSE_ALARM, LAST_WORD, SOURCE, Script, p_value_between, scaled_exponential

SIZE = 40_000
BITS = 200

# --- structure, exactly ---

VARIANCES = [
    *(Fraction(1, 10**700), Fraction(1, 10**6), Fraction(1, 3), Fraction(64, 65), Fraction(1), Fraction(16)),
    *(Fraction(1000, 7), Fraction(2**20 + 1), Fraction(2**52 - 1), Fraction(2**71), GREATEST_VARIANCE),
]
EACH_VARIANCE = pytest.mark.parametrize(
    "variance", VARIANCES, ids=[f"variance{place}" for place in range(len(VARIANCES))]
)


@EACH_VARIANCE
def test_proposal_times_acceptance_is_the_gaussian_law(variance):
    law = _law(variance)
    for strip, place in itertools.product((0, 1, 7, 40), (Fraction(0), Fraction(1, 3), Fraction(999, 1000))):
        size = Fraction(2) ** law.shift * (strip + place)
        assert law.rate * strip**2 + law.rate * place * (2 * strip + place) == size**2 / (2 * variance)
    assert Fraction(1, 512) <= law.rate <= Fraction(1, 128)
    assert law.shift <= 49
    assert law.rate * 2 * (law.least.size + 1) < 1  # what _scaled_chances assumes


@EACH_VARIANCE
def test_the_tables_bracket_the_law_of_the_strips(variance):
    law = _law(variance)
    weights = [
        scaled_exponential(-law.rate * strip**2, BITS) for strip in range(400)
    ]  # beyond, below exp(-300)
    sums, total = list(itertools.accumulate(weights)), sum(weights)
    tiny = 1 << 60  # what these are off by, at most, in units of 2^-200
    for strip, (least, most) in enumerate(zip(law.least.tolist(), law.most.tolist(), strict=True)):
        assert least << BITS <= (sums[strip] << 32) * (1 << BITS) // total + tiny
        assert (sums[strip] << 32) * (1 << BITS) // total - tiny < most + 1 << BITS
        assert most - least <= 1
        assert law.starts[strip] == _size(law.shift, strip, 0)
    assert law.least[-1] == law.most[-1] == LAST_WORD
    for bits in (32, 96):
        for strip, (low, high) in enumerate(_cumulated(law.rate, bits)):
            exact = (sums[strip] << BITS) // total
            assert low << BITS - bits <= exact + tiny and exact - tiny <= high << BITS - bits
            assert high - low <= 2


def test_sizes_are_rounded_to_the_nearest():
    for shift in (-2000, -70, -5, -1, 0, 1, 20, 49):
        for strip, place in itertools.product(
            (0, 1, 15, 16, 47), (0, 1, 2**62 - 1, 2**62, 2**63 // 3, 2**63 - 1)
        ):
            exact = Fraction(2) ** shift * (strip + Fraction(place, 2**63))
            assert _size(shift, strip, place) == math.floor(exact + Fraction(1, 2))


@EACH_VARIANCE
def test_float_errors_are_far_below_the_margin(variance):
    law = _law(variance)
    last = law.least.size - 1
    for strip, place in itertools.product((0, 1, last // 2, last), (0, 1, 2**60 + 12345, 2**62, 2**63 - 1)):
        scaled = _scaled_chances(law, np.array([strip]), np.array([place]))[0]
        x = Fraction(place, 2**63)
        exact = Fraction(scaled_exponential(-law.rate * x * (2 * strip + x), BITS), 2 ** (BITS - 32))
        assert abs(Fraction(float(scaled)) - exact) < Fraction(1, 2**11)
    assert gaussian_sampler._MARGIN == 2**-7


class Words:
    """Fixed words: two runs see the same."""

    def __init__(self):
        self.generator = np.random.default_rng(7)

    def integers(self, count):
        return self.generator.integers(0, 2**32, count, dtype=np.uint32)


@EACH_VARIANCE
def test_exact_arithmetic_gives_the_same_samples(variance, monkeypatch):
    law = _law(variance)
    quick = _kept(law, 4000, Words())
    assert 0.93 * 4000 < quick.size < 4000
    monkeypatch.setattr(gaussian_sampler, "_MARGIN", 2.0**40)
    assert (_kept(law, 4000, Words()) == quick).all()  # whether they are accepted
    monkeypatch.setattr(gaussian_sampler, "_cumulated", lru_cache(_cumulated))
    assert (
        _kept(replace(law, least=np.zeros_like(law.least)), 4000, Words()) == quick
    ).all()  # and their strips


def test_a_strip_is_decided_by_the_first_differing_word():
    rate = _law(Fraction(20)).rate
    bounds = _cumulated(rate, 96)
    low = bounds[0][0]
    first, second, third = low >> 64, low >> 32 & LAST_WORD, low & LAST_WORD
    assert _strip(rate, first - 1, Script()) == 0
    assert _strip(rate, first + 2, Script()) == 1
    assert _strip(rate, first, Script([second - 2])) == 0
    assert _strip(rate, first, Script([second + 2])) == 1
    assert _strip(rate, first, Script([second], [third - 4])) == 0
    assert _strip(rate, first, Script([second], [third + 4])) == 1
    # far out, where no word has told yet
    assert _strip(rate, LAST_WORD, Script([0])) == sum(high <= LAST_WORD << 64 for _, high in bounds)
    beyond = _strip(rate, LAST_WORD, Script([LAST_WORD], [LAST_WORD], [LAST_WORD], [7]))
    assert 80 < rate * beyond**2 < 110  # about 128 ln 2


def test_acceptance_is_decided_by_the_first_differing_word():
    rate, strip, place = Fraction(1, 200), 9, 2**62 + 11
    x = Fraction(place, 2**63)
    chance = scaled_exponential(-rate * x * (2 * strip + x), 64)
    first, second = chance >> 32, chance & LAST_WORD
    assert _accepts(rate, strip, place, first - 3, Script())
    assert not _accepts(rate, strip, place, first + 3, Script())
    assert _accepts(rate, strip, place, first, Script([0, second // 2]))
    assert not _accepts(rate, strip, place, first, Script([0, second + (LAST_WORD - second) // 2]))
    # X = 0 is accepted for sure, whatever V; but X's further digits are not known to be 0
    assert _accepts(rate, 0, 0, LAST_WORD, Script([0, LAST_WORD], [0, 0]))


def test_six_bit_words_give_the_same_law(monkeypatch):
    """So the ways that are hardly ever gone are gone thousands of times."""

    class SixBits:
        def integers(self, count):
            return SOURCE.integers(count) >> np.uint32(26)

    monkeypatch.setattr(gaussian_sampler, "_WORD_BITS", 6)
    monkeypatch.setattr(gaussian_sampler, "_LAST_WORD", 63)
    monkeypatch.setattr(gaussian_sampler, "_PLACE_BITS", 11)
    monkeypatch.setattr(gaussian_sampler, "_MARGIN", 0.25)
    monkeypatch.setattr(gaussian_sampler, "_cumulated", lru_cache(_cumulated))
    variance = Fraction(300)
    law = _law.__wrapped__(variance)
    assert law.shift == 1 and law.least.size < 40
    sample = _kept(law, 16_000, SixBits())
    assert chi_square(sample, variance, cells=20) > FALSE_ALARM
    assert chi_square(sample, variance * Fraction(9, 10) ** 2, cells=20) < FALSE_ALARM


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), GREATEST_VARIANCE + 1], ids=str)
def test_variances_without_noise_or_beyond_64_bits_are_refused(variance):
    with pytest.raises(ValueError):
        rounded_gaussian(variance, 1, SOURCE)


def test_edges_of_size_and_variance():
    assert rounded_gaussian(Fraction(1), 0, SOURCE).size == 0
    noise = rounded_gaussian(GREATEST_VARIANCE, 1000, SOURCE)
    assert noise.dtype == np.int64 and noise.size == 1000
    assert 2**50 < np.abs(noise).mean() < 2**53 < GREATEST_NOISE
    for tiny in (Fraction(1, 10**4), Fraction(1, 10**300), Fraction(1, 10**700)):
        assert not rounded_gaussian(tiny, 1000, SOURCE).any()
    assert rounded_gaussian(Fraction(4), 1, SOURCE).shape == (1,)


def test_noise_beyond_the_clamp_is_clamped(monkeypatch):
    monkeypatch.setattr(gaussian_sampler, "_strip", lambda *_: 10**9)
    monkeypatch.setattr(gaussian_sampler, "_accepts", lambda *_: True)
    law = _law(GREATEST_VARIANCE)
    assert _kept(law, 1, Script([LAST_WORD, 0, 1, 0])).tolist() == [GREATEST_NOISE]
    assert _kept(law, 1, Script([LAST_WORD, 0, 0, 0])).tolist() == [-GREATEST_NOISE]


# --- frequencies ---


def chi_square(sample, variance, cells=40):
    """p-value under the law of that variance, over cells between its quantiles."""
    sigma = math.sqrt(variance)
    edges = np.unique(np.round(stats.norm.ppf(np.linspace(0, 1, cells + 1)[1:-1]) * sigma)).astype(np.int64)
    if variance < 4:
        edges = (
            np.arange(0, 2) if variance < 1 / 4 else np.arange(-1, 3) if variance <= 1 else np.arange(-3, 5)
        )
    return p_value_between(sample, edges, stats.norm.sf((edges - 0.5) / sigma))


SAMPLED = [
    *map(Fraction, ("1/20", "1/3", "1", "2", "7/2", "15", "1000/7", "2000001/2")),
    Fraction(2**46),
    Fraction(2**75),
]


@pytest.mark.parametrize("variance", [*SAMPLED, GREATEST_VARIANCE / 2], ids=str)
def test_the_right_scale_passes_and_others_fail(variance):
    assert chi_square(rounded_gaussian(variance, SIZE, SOURCE), variance) > FALSE_ALARM
    for wrong in (Fraction(9, 10), Fraction(11, 10)):
        assert chi_square(rounded_gaussian(variance * wrong**2, SIZE, SOURCE), variance) < FALSE_ALARM


def test_the_chi_square_test_detects_other_laws():
    sample = rounded_gaussian(Fraction(15), SIZE, SOURCE)
    assert chi_square(np.where(np.arange(SIZE) % 10 == 0, 0, sample), Fraction(15)) < FALSE_ALARM
    generator = np.random.default_rng(1)
    laplace = np.round(generator.laplace(scale=math.sqrt(7.5), size=SIZE)).astype(np.int64)
    assert chi_square(laplace, Fraction(15)) < FALSE_ALARM
    floored = np.floor(generator.normal(scale=math.sqrt(15), size=SIZE)).astype(np.int64)
    assert chi_square(floored, Fraction(15)) < FALSE_ALARM
    weights = np.exp(-(np.arange(-9, 10) ** 2.0) / 2)  # the discrete Gaussian, with P(x) ~ exp(-x^2/2)
    discrete = generator.choice(np.arange(-9, 10), size=SIZE, p=weights / weights.sum())
    assert chi_square(discrete, Fraction(1)) < FALSE_ALARM


def test_neighbouring_draws_and_low_digits_are_independent():
    sample = rounded_gaussian(Fraction(2**70), SIZE, SOURCE)
    signs, digits = (sample > 0).astype(int), (sample & 3).astype(int)
    assert (
        stats.chi2_contingency(np.bincount(2 * signs[:-1:2] + signs[1::2]).reshape(2, 2)).pvalue > FALSE_ALARM
    )
    assert stats.chi2_contingency(np.bincount(4 * signs + digits).reshape(2, 4)).pvalue > FALSE_ALARM
    assert stats.chisquare(np.bincount(digits)).pvalue > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(37, 3), Fraction(2**60)], ids=str)
def test_ten_million_draws_follow_the_law(variance):
    sample = rounded_gaussian(variance, 10_000_000, SOURCE)
    assert chi_square(sample, variance) > FALSE_ALARM
    assert chi_square(sample, variance * Fraction(995, 1000) ** 2) < FALSE_ALARM


@pytest.mark.parametrize("variance", [Fraction(20), Fraction(2**80)], ids=str)
def test_many_draws_are_fast(variance):
    started = time.process_time()
    rounded_gaussian(variance, 100_000, SOURCE)
    assert time.process_time() - started < 1  # about 0.015 s; generous, for a busy machine
