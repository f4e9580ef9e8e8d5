"""Keys that nobody declared: privacy computed outcome by outcome, samplers against exact laws. False alarms: near 1e-9."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privsql.noise.key_release import GREATEST_COUNT, release_keys, select_keys, truncated_laplace
from privsql.privacy.key_selection import (
    COIN,
    Contribution,
    GaussianThreshold,
    OptimalSelection,
    TruncatedGeometric,
    best,
    gaussian_threshold,
    optimal_selection,
    truncated_geometric,
)
from tests.noise import statistics
from tests.noise.statistics import FALSE_ALARM, SOURCE, Script, p_value

SIZE = 40_000
BITS = 240  # of the integers that stand for probabilities here
TINY = 1 << 40  # what rounding may add up to in units of 2^-240
HALF = Fraction(1, 2)


def counts_of(*values):
    return np.array(values, dtype=np.int64)


def scaled_exponential(exponent: Fraction) -> int:
    return statistics.scaled_exponential(exponent, BITS)


LOSSES = [
    (Fraction(epsilon), Fraction(delta)) for epsilon, delta in (("1/2", "1e-5"), ("2", "1e-3"), ("6", "1e-9"))
]
CONTRIBUTIONS = [
    Contribution(groups, rows, groups * times) for groups in (1, 3) for rows in (1, 3, 10) for times in (1, 2)
]


def name(contribution):
    return f"{contribution.groups}-{contribution.rows}-{contribution.changes}"


GRID = pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=name)
EACH_LOSS = pytest.mark.parametrize(("epsilon", "delta"), LOSSES)


# --- (a) truncated geometric: every outcome of every pair ---


def truncated_law(rate, bound):
    """P(X = x) 2^240 for x = -k..k as a list."""
    one = 1 << BITS
    step = scaled_exponential(-rate)
    half = [one]
    for _ in range(bound):
        half.append(half[-1] * step >> BITS)
    law = [*half[:0:-1], *half]
    total = sum(law)
    return [(weight << BITS) // total for weight in law]


def laws_of(release):
    """(k, chance of the coin, law of X) for both sides of the coin."""
    sides = ((release.bound, 1 - release.share), (release.bound - 1, release.share))
    return [(bound, chance, truncated_law(release.rate, bound)) for bound, chance in sides if chance]


def published(release, laws, count):
    """{published number, or None: chance}"""
    outcomes = {None: 0}
    for bound, coin, law in laws:
        for x, chance in zip(range(-bound, bound + 1), law, strict=True):
            shown = count > release.shift and count + x > bound + release.shift
            key = count + x if shown else None
            outcomes[key] = outcomes.get(key, 0) + (coin.numerator * chance // coin.denominator)
    return outcomes


def excess(one, other, growth):
    """The hockey-stick divergence: what `one` has beyond exp(epsilon) times `other`."""
    return sum(max(0, chance - (growth * other.get(outcome, 0) >> BITS)) for outcome, chance in one.items())


@GRID
@EACH_LOSS
@pytest.mark.parametrize("min_units", [1, 3])
def test_truncated_noise_is_private_outcome_by_outcome(contribution, epsilon, delta, min_units):
    release = truncated_geometric(epsilon, delta, contribution, min_units)
    laws = laws_of(release)
    growth = scaled_exponential(epsilon / contribution.changes)
    allowed = math.floor(delta / contribution.changes * 2**BITS) + TINY
    k, top = release.bound, release.threshold
    counts = {
        0,
        1,
        contribution.rows,
        release.shift,
        release.shift + 1,
        k,
        top,
        top + 1,
        top + k,
        top + k + 1,
        2 * top,
    }
    worst = 0
    for count in counts:
        one = published(release, laws, count)
        for move in {1, contribution.rows}:
            other = published(release, laws, count + move)
            worst = max(worst, excess(one, other, growth), excess(other, one, growth))
    assert worst <= allowed
    # delta is used up: the last steps weigh as much as it allows, so that neither a narrower law nor another coin would do
    last = sum(coin * sum(law[-contribution.rows :]) for _, coin, law in laws)
    narrower = sum(truncated_law(release.rate, k - 1)[-contribution.rows :])
    assert allowed - Fraction(narrower, COIN) - 2 * TINY <= last <= allowed < narrower
    for wrong in (
        {"bound": k - 1},
        {"bound": k - 1, "lesser": 0},
        *({"lesser": w} for w in (release.lesser + 1, -1, COIN)),
    ):
        with pytest.raises(ValueError):
            replace(release, **wrong)
    replace(release, lesser=0), replace(release, bound=k + 1)  # more than is needed


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("rows", [1, 3])
def test_two_keys_changed_at_once_are_private_together(rows, times):
    """One unit in `groups` keys, as pairs of outcomes: the composition is not taken on trust."""
    epsilon, delta = Fraction(3), Fraction(1, 100)
    contribution = Contribution(2 // times, rows, 2)
    release = truncated_geometric(epsilon, delta, contribution)
    sides = laws_of(release)
    laws = {
        count: published(release, sides, count)
        for count in (0, 1, 2, rows, 3 * release.bound, 3 * release.bound + rows)
    }
    growth = scaled_exponential(epsilon)
    pairs = [(0, rows), (rows, 0), (3 * release.bound, 3 * release.bound + rows), (1, 2)]
    allowed = math.floor(delta * 2**BITS) + TINY
    for (a, b), (c, d) in itertools.product(pairs, repeat=2):
        one = {(x, y): p * q >> BITS for x, p in laws[a].items() for y, q in laws[c].items()}
        other = {(x, y): p * q >> BITS for x, p in laws[b].items() for y, q in laws[d].items()}
        assert excess(one, other, growth) <= allowed


def test_the_published_formula_for_one_row():
    release = truncated_geometric(Fraction(1), Fraction(1, 10**5), Contribution(1, 1, 1))
    e, d = math.e, 1e-5
    assert release.bound == math.ceil(math.log((e + 2 * d - 1) / (d * (e + 1)))) == 11
    assert truncated_geometric(Fraction(1), Fraction(1, 10**5), Contribution(1, 1, 2)).bound == 22


def test_large_and_small_epsilons():
    each = Contribution(1, 7, 1)
    assert truncated_geometric(Fraction(5000), Fraction(1, 10**5), each).bound == 7  # never below rows
    small = truncated_geometric(Fraction(1, 10**9), Fraction(1, 10**12), each)
    assert small.bound == pytest.approx(7e9 * math.log((1e-9 + 2e-12) / 2e-12), rel=1e-6)
    for epsilon, delta in (
        (Fraction(1, 10**20), Fraction(1, 10**22)),
        (Fraction(1), HALF),
        (Fraction(1), Fraction(0)),
    ):
        with pytest.raises(ValueError):
            truncated_geometric(epsilon, delta, each)
    with pytest.raises(ValueError):
        truncated_geometric(Fraction(1, 100), Fraction(1, 100), each)
    with pytest.raises(ValueError):
        truncated_geometric(Fraction(1), Fraction(1, 100), each, min_units=0)
    for groups, rows, changes in ((0, 1, 0), (1, 0, 1), (2, 1, 3), (1, 1, 3)):
        with pytest.raises(ValueError):
            Contribution(groups, rows, changes)


# --- (b) Gaussian threshold: every way to share the changed keys ---


def gaussian_weights(variance):
    return statistics.gaussian_weights(variance, deviations=14)


def worst_excess(release, variance, limit):
    """The greatest excess over e keys in P's table only, f in Q's only, the rest in both and moved by rows.

    A key in P's table only that is shown is all excess; that keys are hidden scales what is left, which is the excess of
    the noise on the rest, at an epsilon that the scales alter. Of one key or two the excess is that of the published
    numbers, outcome by outcome; of more, that of continuous noise, which is no less.
    """
    contribution, sigma = release.contribution, math.sqrt(variance)
    hidden = math.log1p(-stats.norm.sf((limit - contribution.rows + 0.5) / sigma))
    worst = 0.0
    for e, f in itertools.product(range(contribution.groups + 1), repeat=2):
        if e + f > contribution.changes or (contribution.changes == contribution.groups and e and f):
            continue
        common = contribution.changes - e - f
        epsilon = float(release.epsilon) + (f - e) * hidden
        if common <= 2:
            rest = statistics.gaussian_excess([variance] * common, [contribution.rows] * common, epsilon)
        else:
            rest = statistics.normal_excess(math.sqrt(common) * contribution.rows / sigma, epsilon)
        worst = max(worst, -math.expm1(e * hidden) + math.exp(e * hidden) * rest)
    return worst


@pytest.mark.parametrize("contribution", [each for each in CONTRIBUTIONS if each.rows < 10], ids=name)
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-3"), ("2", "1e-5"), ("6", "1e-7")])
def test_gaussian_thresholds_are_private_however_the_changed_keys_are_shared(contribution, epsilon, delta):
    release = gaussian_threshold(Fraction(epsilon), Fraction(delta), contribution)
    assert worst_excess(release, release.variance, release.limit) <= release.delta
    # and not by far: with less noise, or a lower threshold, they are not
    assert worst_excess(release, release.variance * Fraction(7, 10), release.limit) > release.delta
    lower = release.limit - math.ceil(math.sqrt(release.variance) / 2)
    assert worst_excess(release, release.variance, lower) > release.delta
    for other in (
        {"limit": release.limit - 2},
        {"limit": contribution.rows - 1},
        {"variance": release.variance * Fraction(9, 10)},
    ):
        with pytest.raises(ValueError):
            replace(release, **other)
    assert replace(release, limit=release.limit + 5).threshold == release.threshold + 5


def test_a_unit_may_change_many_keys():
    contribution = Contribution(1000, 2, 2000)
    release = gaussian_threshold(Fraction(1), Fraction(1, 10**6), contribution)
    assert release.limit < 2300 and math.sqrt(release.variance) < 380
    with pytest.raises(ValueError):
        replace(release, limit=release.limit - 2)
    release = gaussian_threshold(Fraction(2), Fraction(1, 5), Contribution(20, 20, 40))
    with pytest.raises(ValueError):  # neither the noise nor the tail alone is too much, but their sum
        replace(release, limit=release.limit - 5)


def test_noise_that_no_sampler_can_draw_is_refused_beforehand():
    assert GaussianThreshold(Fraction(1), Fraction(49, 100), Contribution(1, 1, 1), 1, Fraction(2**99), 2**50)
    with pytest.raises(ValueError):
        GaussianThreshold(Fraction(1), Fraction(49, 100), Contribution(1, 1, 1), 1, Fraction(2**101), 2**50)


# --- (c) selection without counts ---


@pytest.mark.parametrize("contribution", [each for each in CONTRIBUTIONS if each.rows == 1], ids=name)
@pytest.mark.parametrize(("epsilon", "delta"), [*LOSSES, (Fraction(1), Fraction(1, 10**30))])
def test_selection_is_private_and_next_to_optimal(contribution, epsilon, delta):
    release = optimal_selection(epsilon, delta, contribution)
    each_epsilon, each_delta = epsilon / contribution.changes, delta / contribution.changes
    growth = Fraction(scaled_exponential(each_epsilon) - TINY, 2**BITS)  # a little below exp(epsilon')
    chances = [Fraction(value, 1 << release.bits) for value in release.scaled]
    assert chances[0] == 0 and chances[-1] == 1 and chances[-2] < 1
    ideal = 0.0
    for less, more in itertools.pairwise(chances):
        for p, q in ((more, less), (less, more), (1 - less, 1 - more), (1 - more, 1 - less)):
            assert p <= growth * q + each_delta
        ideal = min(
            math.exp(each_epsilon) * ideal + float(each_delta),
            1 - math.exp(-each_epsilon) * (1 - ideal - float(each_delta)),
            1.0,
        )
        assert float(more) == pytest.approx(ideal, rel=1e-9)


def test_selection_refuses_what_is_not_private():
    release = optimal_selection(Fraction(1), Fraction(1, 1000), Contribution(1, 1, 1))
    one, scaled = 1 << release.bits, list(release.scaled)
    for place in range(1, len(scaled) - 1):
        for wrong in (
            scaled[place] + scaled[place] // 10**6 + (1 << release.bits - 40),
            scaled[place - 1] - 1,
        ):
            with pytest.raises(ValueError):
                replace(release, scaled=(*scaled[:place], wrong, *scaled[place + 1 :]))
    for wrong_table in ((), (0,), (one, one), tuple(scaled[:-1])):
        with pytest.raises(ValueError):
            replace(release, scaled=wrong_table)
    with pytest.raises(ValueError):
        replace(release, contribution=Contribution(1, 2, 1))
    with pytest.raises(ValueError):
        replace(release, contribution=Contribution(1, 1, 2))
    with pytest.raises(ValueError):
        optimal_selection(Fraction(1), Fraction(1, 1000), Contribution(1, 3, 1))
    with pytest.raises(ValueError):
        optimal_selection(Fraction(1, 10**7), Fraction(1, 10**20), Contribution(1, 1, 1))


def test_truncated_noise_with_its_coin_shows_what_optimal_selection_shows():
    """Optimal means no other mechanism shows a key with a greater chance. The coin gets there, and publishes a count besides."""
    for (epsilon, delta), changes in itertools.product([*LOSSES, (Fraction(1), Fraction(1, 10**6))], (1, 2)):
        selection = optimal_selection(epsilon, delta, Contribution(1, 1, changes))
        noise = truncated_geometric(epsilon, delta, Contribution(1, 1, changes))
        for count in range(2 * noise.bound + 3):
            behind = selection.chance(count) - noise.chance(count)
            assert -1e-12 <= behind <= (1e-8 if count < 2 * noise.bound - 1 else float(delta))
        without = replace(noise, lesser=0)
        assert any(selection.chance(count) > without.chance(count) + 0.01 for count in range(2 * noise.bound))


# --- when keys show, and which way is best ---


@pytest.mark.parametrize("min_units", [1, 4])
def test_shows_at_is_the_least_count(min_units):
    releases = [
        make(Fraction(1), Fraction(1, 10**5), Contribution(2, 1, 4), min_units)
        for make in (truncated_geometric, gaussian_threshold, optimal_selection)
    ]
    for release in releases:
        assert release.chance(min_units - 1) == release.chance(0) == 0.0
        chances = [release.chance(count) for count in range(400)]
        assert chances == sorted(chances) and chances[-1] > 0.9999
        for probability in (0.001, 0.5, 0.95, 0.999):
            least = release.shows_at(probability)
            assert chances[least] >= probability > chances[least - 1]
        for wrong in (0.0, 1.0):
            with pytest.raises(ValueError):
                release.shows_at(wrong)
    truncated, gaussian, _ = releases
    assert gaussian.shows_at(0.5) == gaussian.threshold + 1
    assert truncated.shows_at(0.5) == truncated.threshold + (truncated.share < HALF)


def test_probabilities_match_their_law():
    release = truncated_geometric(Fraction(1), Fraction(1, 100), Contribution(1, 2, 2), min_units=2)
    laws = laws_of(release)
    for count in range(2 * release.threshold + 5):
        hidden = published(release, laws, count)[None] / 2**BITS
        assert release.chance(count) == pytest.approx(1 - hidden, abs=1e-12)
    gaussian = gaussian_threshold(Fraction(1), Fraction(1, 100), Contribution(1, 2, 2), min_units=2)
    chances, reach = gaussian_weights(gaussian.variance)
    for count in range(3, 60):
        exact = chances[max(0, reach + gaussian.threshold - count + 1) :].sum()
        assert gaussian.chance(count) == pytest.approx(exact, abs=1e-12)


def test_the_best_release_shows_keys_earliest():
    epsilon, delta = Fraction(1), Fraction(1, 10**5)
    assert isinstance(best(epsilon, delta, Contribution(1, 1, 1)), TruncatedGeometric)
    assert isinstance(best(epsilon, delta, Contribution(1, 10, 2)), TruncatedGeometric)
    for groups in (4, 20):
        contribution = Contribution(groups, 1, groups)
        chosen = best(epsilon, delta, contribution, min_units=3)
        assert isinstance(chosen, GaussianThreshold) and chosen.min_units == 3
        other = truncated_geometric(epsilon, delta, contribution, min_units=3)
        assert chosen.shows_at(0.5) < other.shows_at(0.5)


# --- sampling ---


def chi_square(sample, chances, first):
    """p-value of a sample of whole numbers from `first` on, rare ones put together."""
    counts = np.bincount(sample - first, minlength=len(chances)).astype(float)
    assert len(counts) == len(chances)
    often = chances * sample.size >= 100
    expected = np.append(chances[often], chances[~often].sum()) * sample.size
    observed = np.append(counts[often], counts[~often].sum())
    if expected[-1] < 50:  # too few for the approximation
        expected, observed = expected[:-1], observed[:-1]
    return p_value(observed, expected / expected.sum())


def truncated_chances(rate, bound):
    chances = np.exp(-float(rate) * np.abs(np.arange(-bound, bound + 1)))
    return chances / chances.sum()


@pytest.mark.parametrize(("rate", "bound"), [("1/2", 20), ("1/2", 2), ("2", 3), ("1/30", 400), ("1/20", 5)])
def test_truncated_noise_follows_its_law(rate, bound):
    rate = Fraction(rate)
    bounds = np.full(SIZE, bound)
    assert (
        chi_square(truncated_laplace(rate, bounds, SOURCE), truncated_chances(rate, bound), -bound)
        > FALSE_ALARM
    )
    if bound * rate >= 1:
        for wrong in (Fraction(7, 10), Fraction(13, 10)):
            sample = truncated_laplace(rate * wrong, bounds, SOURCE)
            assert chi_square(sample, truncated_chances(rate, bound), -bound) < FALSE_ALARM


@pytest.mark.parametrize("size", [3_000, pytest.param(SIZE, marks=pytest.mark.slow)])
def test_edges_of_truncated_noise(size):
    assert not truncated_laplace(Fraction(1, 3), np.zeros(100, dtype=np.int64), SOURCE).any()
    assert truncated_laplace(Fraction(1), counts_of(), SOURCE).size == 0
    with pytest.raises(ValueError):
        truncated_laplace(Fraction(1), counts_of(1, -1), SOURCE)
    mixed = truncated_laplace(Fraction(1, 50), np.arange(size) % 3, SOURCE)
    assert [np.abs(mixed[place::3]).max() for place in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("min_units", [1, 3])
@pytest.mark.parametrize("offset", [-4, 0, 6])
def test_released_counts_follow_the_proved_law(min_units, offset):
    release = truncated_geometric(Fraction(2), Fraction(1, 1000), Contribution(1, 2, 2), min_units)
    count = release.threshold + offset
    law = published(release, laws_of(release), count)
    shown, noisy_counts = release_keys(np.full(SIZE, count), release, SOURCE)
    assert shown.dtype == np.bool_ and noisy_counts.dtype == np.int64
    assert 0 < release.share < 1
    assert not noisy_counts[~shown].any() and (noisy_counts[shown] >= release.threshold).all()
    chances = np.zeros(count + release.bound + 1)
    for number, chance in law.items():
        chances[number or 0] = chance / 2**BITS
    assert chi_square(noisy_counts, chances, 0) > FALSE_ALARM
    for wrong in (release.lesser // 4, 0):  # the coin is seen, where counts are near the threshold
        _, others = release_keys(np.full(SIZE, count), replace(release, lesser=wrong), SOURCE)
        assert offset or chi_square(others, chances, 0) < FALSE_ALARM
    for wrong in (0.7, 1.3):  # of the rate
        other = replace(release, epsilon=release.epsilon * Fraction(wrong), bound=99)
        _, noisy_counts = release_keys(np.full(SIZE, 300), other, SOURCE)
        clipped = np.clip(noisy_counts - 300, -release.bound, release.bound)
        assert (
            chi_square(clipped, truncated_chances(release.rate, release.bound), -release.bound) < FALSE_ALARM
        )


@pytest.mark.parametrize("offset", [-5, 0, 12])
def test_gaussian_releases_follow_their_law(offset):
    release = gaussian_threshold(Fraction(2), Fraction(1, 1000), Contribution(4, 1, 4), min_units=2)
    count = release.threshold + offset
    shown, noisy_counts = release_keys(np.full(SIZE, count), release, SOURCE)
    assert not noisy_counts[~shown].any() and (noisy_counts[shown] > release.threshold).all()
    for scale, passes in ((1.0, True), (0.7, False), (1.3, False)):
        weights, reach = gaussian_weights(float(release.variance) * scale**2)
        numbers = count + np.arange(-reach, reach + 1)
        chances = np.zeros(count + reach + 40)
        visible = numbers > release.threshold
        chances[numbers[visible]] = weights[visible]
        chances[0] = weights[~visible].sum()
        assert (chi_square(noisy_counts, chances, 0) > FALSE_ALARM) == passes


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("make", [truncated_geometric, gaussian_threshold, optimal_selection])
def test_absent_keys_and_keys_of_too_few_units_are_never_shown(make, rows):
    if make is optimal_selection and rows > 1:
        return
    for min_units in (1, 4):
        release = make(Fraction(1), Fraction(1, 10), Contribution(1, rows, 1), min_units)
        most = rows * (min_units - 1)  # what one unit too few can bring together
        exact_counts = np.repeat(counts_of(-(2**63), -1, 0, *range(1, most + 1)), 10_000)
        if isinstance(release, OptimalSelection):
            shown = select_keys(exact_counts, release, SOURCE)
        else:
            shown, noisy_counts = release_keys(exact_counts, release, SOURCE)
            assert not noisy_counts.any()
        assert not shown.any()
        assert release.chance(most) == 0.0 and release.chance(most + 1) > 0.01  # the next might be


def test_large_counts_do_not_overflow():
    exact_counts = counts_of(2**63 - 1, 2**62, -(2**63))
    before = exact_counts.copy()
    for release in (
        truncated_geometric(Fraction(1, 10**9), Fraction(1, 10**12), Contribution(1, 1, 1)),
        gaussian_threshold(Fraction(1, 10**6), Fraction(1, 10**9), Contribution(1, 10**4, 2)),
    ):
        shown, noisy_counts = release_keys(exact_counts, release, SOURCE)
        assert shown.tolist() == [True, True, False]
        assert (np.abs(noisy_counts[:2] - GREATEST_COUNT) < 2**55).all()
    selection = optimal_selection(Fraction(1), Fraction(1, 10**5), Contribution(1, 1, 1), min_units=2)
    assert select_keys(exact_counts, selection, SOURCE).tolist() == [True, True, False]
    assert (exact_counts == before).all()


def test_refusals():
    release = truncated_geometric(Fraction(1), Fraction(1, 10**5), Contribution(1, 1, 1))
    selection = optimal_selection(Fraction(1), Fraction(1, 10**5), Contribution(1, 1, 1))
    for call in (
        lambda counts: release_keys(counts, release, SOURCE),
        lambda counts: select_keys(counts, selection, SOURCE),
    ):
        with pytest.raises(TypeError):
            call(np.array([1.0]))
        with pytest.raises(ValueError):
            call(counts_of(1, 2).reshape(1, 2))
        call(counts_of())


def test_selection_frequencies():
    release = optimal_selection(Fraction(2), Fraction(1, 5), Contribution(1, 1, 1), min_units=3)
    top = len(release.scaled) + 3
    exact_counts = np.tile(np.arange(top + 1), SIZE)
    shown = select_keys(exact_counts, release, SOURCE).reshape(SIZE, top + 1).sum(axis=0)
    for count in range(top + 1):
        if release.chance(count) in (0.0, 1.0):
            assert shown[count] == SIZE * release.chance(count)
        else:
            assert stats.binomtest(int(shown[count]), SIZE, release.chance(count)).pvalue > FALSE_ALARM
            for wrong in (0.7, 1.3):
                chance = min(1.0, release.chance(count) * wrong)
                assert stats.binomtest(int(shown[count]), SIZE, chance).pvalue < FALSE_ALARM


def test_selection_compares_digit_by_digit():
    table = (0, 3 << 32 | 5, 7 << 32, 1 << 64)
    release = object.__new__(OptimalSelection)
    fields = {"contribution": Contribution(1, 1, 1), "min_units": 1, "bits": 64, "scaled": table}
    for field, value in fields.items():
        object.__setattr__(release, field, value)
    exact_counts = counts_of(0, 1, 1, 1, 1, 2, 2, 3, 9)
    source = Script([0, 2, 3, 3, 4, 7, 6, 2**32 - 1, 5], [0, 9, 4, 5, 0, 0, 9, 2**32 - 1, 5])
    assert select_keys(exact_counts, release, source).tolist() == [
        False,  # nothing is below 0
        True,  # 2 < 3
        True,  # 3 = 3, 4 < 5
        False,  # equal throughout is not below
        False,
        False,
        True,
        True,  # probability 1 whatever the words
        True,
    ]
    assert source.answers == []
