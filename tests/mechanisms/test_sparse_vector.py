"""above_threshold(count=c): its exact law over neighbours, the sampler against the law, and the epsilon that can be measured."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql import mechanisms
from privsql.mechanisms.noisy_choice import _above
from privsql.noise import plain
from tests.noise.statistics import FALSE_ALARM, Buffered, p_value, without_rare

POINTS = 5_000
Outcomes = dict[tuple[int, ...], float]
RATES = plain.threshold_rates


def law(values, epsilon, count, monotone=False, charged=None) -> Outcomes:
    """The probability of every set of indices, at threshold 0 and sensitivity 1; noise as for `charged` values."""
    rates = RATES(Fraction(epsilon), monotone, charged or count)
    of_threshold, of_value = map(float, rates)
    stride = 60 / of_threshold / POINTS
    noise = (np.arange(POINTS) + 0.5) * stride
    weights = np.exp(-of_threshold * noise)
    states = {(): weights / weights.sum()}
    for place, value in enumerate(values):
        needed = noise + plain.comparison_shift(*rates) - float(value) * 2**20
        reaches = np.exp(-of_value * np.maximum(needed, 0))
        after = {}
        for found, mass in states.items():
            if len(found) == count:
                after[found] = mass
            else:
                after[found], after[(*found, place)] = mass * (1 - reaches), mass * reaches
        states = after
    return {found: float(mass.sum()) for found, mass in states.items()}


def greatest_loss(one: Outcomes, other: Outcomes) -> float:
    return max(abs(math.log(one[key] / other[key])) for key in one if min(one[key], other[key]) > 1e-30)


MIXED = [(-1, -1, 1, 1), (1, 1, -1, -1), (1, -1, -1, -1), (-1, 1, 1, 1), (1, 1, 1, 1), (-1, -1, -1, -1)]
ONE_WAY = [(1, 1, 1, 1), (0, 1, 1, 1), (1, 0, 0, 0), (1, 1, 0, 0)]


@pytest.mark.parametrize(
    ("monotone", "moves", "tight"), [(False, MIXED, 0.999), (True, ONE_WAY, 0.75)], ids=["any", "monotone"]
)
def test_neighbours_are_hard_to_tell_apart(monotone, moves, tight):
    """With the noise of one value to find, three would cost more than twice as much."""
    epsilon, count = 3, 3
    worst = wrong = 0.0
    for one in itertools.product((0.0, 1.0, 2.5), repeat=4):
        here, here_wrong = law(one, epsilon, count, monotone), law(one, epsilon, count, monotone, charged=1)
        assert sum(here.values()) == pytest.approx(1, abs=1e-9)
        for move in moves:
            there = [a + b for a, b in zip(one, move, strict=True)]
            worst = max(worst, greatest_loss(here, law(there, epsilon, count, monotone)))
            wrong = max(wrong, greatest_loss(here_wrong, law(there, epsilon, count, monotone, charged=1)))
    assert tight * epsilon < worst <= epsilon + 1e-4  # the law is summed, not integrated
    assert wrong > (2 if not monotone else 1.3) * epsilon


def test_scales_of_the_noise():
    """Threshold: sensitivity/e1; values: 2 c sensitivity/e2; e1 + e2 = epsilon, all c charged at once."""
    for count in (1, 2, 7, 100):
        for monotone, moves in ((False, 2), (True, 1)):
            of_threshold, of_value = RATES(Fraction(1, 2), monotone, count)
            e1, e2 = of_threshold * 2**20, of_value * 2**20 * moves * count
            assert e1 + e2 == Fraction(1, 2)
            assert float(e2 / e1) == pytest.approx((moves * count) ** (2 / 3), abs=0.1)


def test_frequencies_are_the_law():
    source, values = Buffered(), (1, Fraction(1, 2), 3, -1)
    exact = law(values, 4, 2)
    keys = list(exact)
    found = [keys.index(tuple(_above(values, 0, 4, 1, False, 2, source))) for _ in range(6000)]
    cells = without_rare(list(exact.values()), len(found))
    counts = cells @ np.bincount(found, minlength=len(keys))
    assert p_value(counts, cells @ list(exact.values())) > FALSE_ALARM
    for wrong in (law(values, 4, 2, charged=1), law(values, 6, 2), law(values, 2.8, 2)):
        assert p_value(counts, cells @ [wrong[key] for key in keys]) < FALSE_ALARM


EPSILON, COUNT, RUNS = 3, 3, 20_000
HERE, THERE, EVENT = (0, 0, 0, 0), (1, -1, -1, -1), [1, 2, 3]


def measured_epsilon() -> float:
    """A lower bound of the privacy loss, from how often the event was met on either side (Clopper, Pearson)."""
    source = Buffered()
    met = [
        sum(_above(values, 0, EPSILON, 1, False, COUNT, source) == EVENT for _ in range(RUNS))
        for values in (HERE, THERE)
    ]
    low = stats.beta.ppf(FALSE_ALARM, met[0], RUNS - met[0] + 1)
    high = stats.beta.ppf(1 - FALSE_ALARM, met[1] + 1, RUNS - met[1])
    return math.log(low / high)


@pytest.mark.slow
def test_the_epsilon_that_is_measured_stays_below_the_price(monkeypatch):
    assert measured_epsilon() <= EPSILON
    monkeypatch.setattr(
        plain, "threshold_rates", lambda epsilon, monotone, count: RATES(epsilon, monotone, 1)
    )
    assert measured_epsilon() > EPSILON  # the noise of one value to find is not enough for three


def test_what_is_found():
    values = [0, 10**6, 5, 10**6, 10**6, 0]
    assert mechanisms.above_threshold(values, 1000, 1, count=2) == [1, 3]
    assert mechanisms.above_threshold(values, 1000, 1, count=10) == [1, 3, 4]
    assert mechanisms.above_threshold(values, 10**9, 1, count=3) == []
    assert mechanisms.above_threshold(values, 1000, 1, count=1) == [1]
    assert mechanisms.above_threshold(dict(zip("abcdef", values)), 1000, 1, count=2) == ["b", "d"]
    assert mechanisms.above_threshold(pd.Series(values, index=list("abcdef")), 1000, 1, count=2) == ["b", "d"]


def test_none_is_read_after_the_last_one_found():
    def values():
        yield from (0, 10**6, 0, 10**6)
        raise AssertionError("looked further")

    assert mechanisms.above_threshold(values(), 1000, 1, count=2) == [1, 3]


def test_a_count_that_is_none():
    for count in (0, -1, 1.5, True, "3"):
        with pytest.raises(privsql.ArgumentError) as refused:
            mechanisms.above_threshold([1], 0, 1, count=count)
        assert refused.value.code == "argument-count"
    with pytest.raises(privsql.ArgumentError) as refused:
        mechanisms.above_threshold([1], 0, 1e-6, count=10**9)
    assert refused.value.code == "argument-count" and "64 bits" in refused.value.message
