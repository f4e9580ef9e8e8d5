"""exponential_interval: its law over neighbours, draws against the law, points within their part; what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import privsql
from privsql import mechanisms
from privsql.mechanisms.interval_choice import _choose
from tests.noise.statistics import FALSE_ALARM, Buffered, p_value

EDGES = [0, 0.1, 0.5, Fraction(3, 4), 1]


def law(edges, scores, epsilon, sensitivity=1.0, factor=2.0) -> np.ndarray:
    widths = np.diff(np.array(edges, dtype=float))
    weights = widths * np.exp(epsilon * np.array(scores, dtype=float) / (factor * sensitivity))
    return weights / weights.sum()


def test_the_law_is_that_of_the_definition():
    scores = [3, 1, 2.5, Fraction(-1, 3)]
    for epsilon, sensitivity in ((1, 1), (0.2, 2), (3, 0.5)):
        found = mechanisms.exponential_interval_probabilities(EDGES, scores, epsilon, sensitivity)
        assert found == pytest.approx(law(EDGES, scores, epsilon, sensitivity), rel=1e-6)
        monotone = mechanisms.exponential_interval_probabilities(EDGES, scores, epsilon, sensitivity, True)
        assert monotone == pytest.approx(law(EDGES, scores, epsilon, sensitivity, 1), rel=1e-6)


def test_neighbours_are_hard_to_tell_apart():
    """Density against density is chance against chance, as the widths do not change."""
    worst = wrong = 0.0
    vectors = list(itertools.product((0, 1, 2), repeat=3))
    edges = [0, 0.2, 0.9, 1]
    for one, other in itertools.product(vectors, repeat=2):
        if max(abs(a - b) for a, b in zip(one, other)) <= 1:
            for epsilon, rising in ((0.8, False), (1.6, True)):
                here, there = (
                    mechanisms.exponential_interval_probabilities(edges, list(scores), epsilon)
                    for scores in (one, other)
                )
                loss = max(abs(math.log(a / b)) for a, b in zip(here, there))
                worst, wrong = (worst, max(wrong, loss)) if rising else (max(worst, loss), wrong)
    assert 0.7 * 0.8 < worst <= 0.8 + 1e-9 < wrong


def test_draws_follow_the_law_and_are_even_within_a_part():
    source, scores = Buffered(), [3, 1, 2.5, 0]
    drawn = np.array([_choose(EDGES, scores, 2, 1, False, source) for _ in range(6000)])
    edges = np.array(EDGES, dtype=float)
    parts = np.searchsorted(edges, drawn) - 1
    counts = np.bincount(parts, minlength=4)
    assert p_value(counts, law(EDGES, scores, 2)) > FALSE_ALARM
    for epsilon in (1.2, 3.2):
        assert p_value(counts, law(EDGES, scores, epsilon)) < FALSE_ALARM
    within = (drawn - edges[parts]) / np.diff(edges)[parts]
    quarters = np.bincount(np.minimum((within * 4).astype(int), 3), minlength=4)
    assert p_value(quarters, [0.25] * 4) > FALSE_ALARM
    assert len(np.unique(drawn)) > 5990  # of 2^50 points


def test_a_function_is_asked_in_the_middle_of_each_part():
    asked = []

    def score(x: float) -> float:
        asked.append(x)
        return 1000 * (0.4 < x < 0.6)

    drawn = mechanisms.exponential_interval(np.linspace(0, 1, 6), score, 1)
    assert asked == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert 0.4 < drawn < 0.6


@pytest.mark.parametrize("far", [1e5, 1e300])
def test_scores_far_apart(far):
    assert 1 < mechanisms.exponential_interval([0, 1, 2], [0, far], 1) < 2
    assert mechanisms.exponential_interval_probabilities([0, 1, 2], [0, far], 1) == [0.0, 1.0]


def test_a_narrow_part_that_is_best():
    edges = [-1, -0.5, -0.5 + 1e-8, 1]
    assert -0.5 <= mechanisms.exponential_interval(edges, [0, 200, 0], 1) <= -0.5 + 1e-8


@pytest.mark.parametrize(
    ("edges", "scores", "code"),
    [
        ([0], [], "argument-shape"),
        ([0, 0], [1], "argument-shape"),
        ([1, 0], [1], "argument-shape"),
        ([0, 1e-12, 1], [1, 2], "argument-shape"),
        ([0, 1, 2], [1], "argument-shape"),
        ("01", [1], "argument-shape"),
        (5, [1], "argument-shape"),
        ([0, "a"], [1], "argument-numbers"),
        ([0, math.inf], [1], "argument-numbers"),
        ([0, 1], [math.nan], "argument-numbers"),
        ([0, 1], lambda x: None, "argument-numbers"),
    ],
    ids=lambda each: "function" if callable(each) else str(each),
)
def test_refused(edges, scores, code):
    for call in (mechanisms.exponential_interval, mechanisms.exponential_interval_probabilities):
        with pytest.raises(privsql.ArgumentError) as refused:
            call(edges, scores, 1)
        assert refused.value.code == code and refused.value.suggestion
