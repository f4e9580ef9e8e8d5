"""Selection against winning probabilities summed from the definition, and those against the privacy bound."""

import itertools
import math
import time
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from privsql.mechanisms import permute_and_flip_probabilities
from privsql.noise.selection import GREATEST_SCORE, _accepted, _uniform_indices, in_fine_steps, select, winner
from tests.noise.statistics import FALSE_ALARM, SOURCE, Buffered, Script, p_value

NOISES = ["exponential", "laplace", "gumbel"]
RATE = Fraction(1, 2)


def scores_of(*values):
    return np.array(values, dtype=np.int64)


# --- the winner ---


def test_the_figures_of_note_000():
    likes = scores_of(1, 4, 3)  # apple, orange, banana
    assert winner(likes + scores_of(1, -1, -1)) == 1
    assert winner(likes + scores_of(0, -1, 1)) == 2


def test_ties_go_to_the_first():
    assert winner(scores_of(2, 5, 5, 5)) == 1
    assert winner(scores_of(0, 0)) == 0
    for noise in ("exponential", "laplace"):  # at this rate the noise is 0
        assert select(scores_of(3, 7, 7), Fraction(10**6), noise, SOURCE) == 1


@pytest.mark.parametrize("noise", NOISES)
def test_extremes(noise):
    assert select(scores_of(-5), RATE, noise, SOURCE) == 0
    assert select(scores_of(-(2**62), 2**62, 0), RATE, noise, SOURCE) == 1
    assert select(scores_of(-(2**63), 0, 2**63 - 1), RATE, noise, SOURCE) == 2
    assert select(scores_of(0, 2**40, 0), Fraction(1, 2**20), noise, SOURCE) == 1


def test_gumbel_takes_rates_that_geometric_noise_refuses():
    assert select(scores_of(0, 2**62), Fraction(1, 2**54), "gumbel", SOURCE) == 1
    with pytest.raises(ValueError):
        select(scores_of(0, 2**62), Fraction(1, 2**54), "exponential", SOURCE)


@pytest.mark.parametrize("noise", NOISES)
def test_refusals(noise):
    with pytest.raises(ValueError):
        select(scores_of(), RATE, noise, SOURCE)
    with pytest.raises(ValueError):
        select(scores_of(1, 2).reshape(1, 2), RATE, noise, SOURCE)
    with pytest.raises(TypeError):
        select(np.array([1.0, 2.0]), RATE, noise, SOURCE)
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError):
            select(scores_of(1, 2), rate, noise, SOURCE)


@pytest.mark.parametrize("noise", NOISES)
def test_scores_are_not_modified(noise):
    exact_scores = scores_of(-(2**63), 5, 2**63 - 1)
    before = exact_scores.copy()
    select(exact_scores, RATE, noise, SOURCE)
    assert (exact_scores == before).all()


# --- exact winning probabilities ---


def at_most(noise, rate, value):
    """P(N <= value) for the integer noise N."""
    q = math.exp(-rate)
    if noise == "exponential":
        return 1 - q ** (value + 1) if value >= 0 else 0.0
    return 1 - q ** (value + 1) / (1 + q) if value >= 0 else q**-value / (1 + q)


def equal_to(noise, rate, value):
    q = math.exp(-rate)
    if noise == "exponential":
        return (1 - q) * q**value if value >= 0 else 0.0
    return (1 - q) / (1 + q) * q ** abs(value)


@cache
def winning(noise, scores, rate):
    """P(i wins) for each i: the sum over i's noisy score v of P(those before < v, those after <= v)."""
    if noise == "gumbel":
        weights = [math.exp(rate * score) for score in scores]
        return tuple(weight / sum(weights) for weight in weights)
    reach = math.ceil(40 / rate)  # what lies beyond weighs exp(-40)
    chances = []
    for index, score in enumerate(scores):
        chance = 0.0
        for value in range(min(scores) - reach, max(scores) + reach):
            weight = equal_to(noise, rate, value - score)
            for other, other_score in enumerate(scores):
                if other != index and weight:
                    weight *= at_most(noise, rate, value - other_score - (other < index))
            chance += weight
        chances.append(chance)
    assert abs(sum(chances) - 1) < 1e-12
    return tuple(chances)


def test_exact_probabilities_match_known_values():
    # Two geometrics of equal score: the first wins ties, P = (1 + P(tie))/2 with P(tie) = (1-q)/(1+q).
    q = math.exp(-0.5)
    assert winning("exponential", (0, 0), 0.5)[0] == pytest.approx(1 / (1 + q), rel=1e-12)
    # Note 000's pumpkins: epsilon 0.2, sensitivity of the revenue 2: rate 0.2/(2*2).
    assert winning("gumbel", (3, 2), 0.05)[0] == pytest.approx(0.5125, abs=5e-5)
    assert winning("gumbel", (100, 20), 0.05)[0] == pytest.approx(0.9820, abs=5e-5)
    # With a fine grid the discrete mechanism nears permute-and-flip: P(worse of two) = exp(-rate gap)/2.
    assert winning("exponential", (200, 0), 0.005)[1] == pytest.approx(math.exp(-1) / 2, rel=0.01)


# So chosen that every wrong law has a non-centrality above 190: 7 standard deviations past the threshold.
DRAWS = 9000
VECTORS = [(3, 0, 2), (2, 0, 0)]


def chi_square(draws, chances):
    return p_value(np.bincount(draws, minlength=len(chances)), chances)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scores", VECTORS, ids=str)
def test_frequencies_are_the_exact_probabilities(noise, scores):
    source = Buffered()
    draws = [select(scores_of(*scores), RATE, noise, source) for _ in range(DRAWS)]
    assert chi_square(draws, winning(noise, scores, float(RATE))) > FALSE_ALARM
    # Power: the same draws belong to no other mechanism, nor to this one at 0.7 or 1.3 of the rate.
    for other in NOISES:
        if other != noise:
            assert chi_square(draws, winning(other, scores, float(RATE))) < FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert chi_square(draws, winning(noise, scores, wrong * float(RATE))) < FALSE_ALARM


# --- privacy, computed ---


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", [0.3, 1.5])
def test_winners_are_private_on_neighbours(noise, rate):
    vectors = list(itertools.product(range(4), repeat=3))
    worst = worst_monotone = 0.0
    for one, other in itertools.product(vectors, repeat=2):
        moves = [b - a for a, b in zip(one, other, strict=True)]
        if max(map(abs, moves)) > 1:
            continue
        pairs = zip(winning(noise, one, rate), winning(noise, other, rate), strict=True)
        loss = max(abs(math.log(a / b)) for a, b in pairs)
        worst = max(worst, loss)
        if min(moves) >= 0 or max(moves) <= 0:
            worst_monotone = max(worst_monotone, loss)
    assert worst <= 2 * rate + 1e-9
    assert worst_monotone <= rate + 1e-9
    assert worst > 1.2 * rate  # without the factor 2 it would not be private: the bound is not idle


# --- the parts of the exponential mechanism ---


def test_uniform_indices_reject_instead_of_wrapping():
    words = [0, 1, 2, 3, 4, 5, 6, 7, 8, 2**32 - 1]
    assert _uniform_indices(5, 10, Script(words)).tolist() == [0, 1, 2, 3, 4, 0]
    assert _uniform_indices(8, 10, Script(words)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 7]
    assert _uniform_indices(1, 10, Script(words)).tolist() == [0] * 10


def test_uniform_indices_are_uniform():
    indices = _uniform_indices(11, 100_000, SOURCE)
    assert stats.chisquare(np.bincount(indices, minlength=11)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 5, 7, 12])
def test_acceptance_has_probability_exp_of_minus_rate_times_distance(distance):
    size = 100_000
    exact_distances = np.full(size, distance, dtype=np.uint64)
    passed = _accepted(exact_distances, Fraction(1, 4), SOURCE)
    assert (np.diff(passed) > 0).all()
    if distance == 0:
        assert passed.size == size
    else:
        assert stats.binomtest(passed.size, size, math.exp(-distance / 4)).pvalue > FALSE_ALARM
        assert stats.binomtest(passed.size, size, math.exp(-0.7 * distance / 4)).pvalue < FALSE_ALARM


def test_acceptance_treats_distances_independently():
    size = 200_000
    exact_distances = np.arange(size, dtype=np.uint64) % np.uint64(4)
    passed = _accepted(exact_distances, Fraction(1, 2), SOURCE) % 4
    for distance, count in enumerate(np.bincount(passed, minlength=4)):
        expected = math.exp(-distance / 2)
        assert stats.binomtest(int(count), size // 4, expected).pvalue > FALSE_ALARM


def test_acceptance_of_the_greatest_distance():
    exact_distances = np.array([2**63, 0, 2 * GREATEST_SCORE], dtype=np.uint64)
    assert _accepted(exact_distances, Fraction(1, 2**50), SOURCE).tolist() == [1]
    assert _accepted(np.array([], dtype=np.uint64), RATE, SOURCE).size == 0


@pytest.mark.parametrize("noise", NOISES)
def test_many_candidates_are_fast(noise):
    exact_scores = np.zeros(100_000, dtype=np.int64)
    exact_scores[77_777] = 1000
    started = time.process_time()
    assert select(exact_scores, RATE, noise, SOURCE) == 77_777
    assert time.process_time() - started < 2  # about 0.02 s; generous, for a busy machine


def test_rejected_batches_are_redrawn():
    """Of 64 candidates one is accepted: a batch of 128 proposals misses it every seventh time."""
    exact_scores = np.zeros(64, dtype=np.int64)
    exact_scores[33] = 10**6
    assert {select(exact_scores, RATE, "gumbel", SOURCE) for _ in range(150)} == {33}


# --- smaller steps ---


@pytest.mark.parametrize("rate", list(map(Fraction, ("1/1048576", "1/1024", "1/3", "2", "10000"))))
def test_smaller_steps_keep_the_noise_of_a_whole_score(rate):
    exact_scores = scores_of(-7, 0, 12)
    fine_scores, fine_rate = in_fine_steps(exact_scores, rate)
    steps = rate / fine_rate
    assert fine_rate <= Fraction(1, 2**10)
    assert steps == 1 or fine_rate > Fraction(1, 2**11)
    assert fine_scores.tolist() == [int(steps * each) for each in exact_scores.tolist()]


def test_smaller_steps_do_not_overflow():
    fine_scores, _ = in_fine_steps(scores_of(-(2**63), 2**63 - 1), Fraction(10**4))
    assert fine_scores[0] == -fine_scores[1]
    assert 2**61 <= fine_scores[1] <= 2**62


@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 0, 1)])
def test_small_steps_approach_permute_and_flip_in_any_order(scores):
    fine_scores, fine_rate = in_fine_steps(scores_of(*scores), Fraction(2))
    chances = winning("exponential", tuple(fine_scores.tolist()), float(fine_rate))
    flips = [float(each) for each in permute_and_flip_probabilities(scores, epsilon=4)]
    assert chances == pytest.approx(flips, abs=0.002)
    assert winning("exponential", scores, 2.0)[0] > 1.5 * flips[0]  # whole scores favour the first
