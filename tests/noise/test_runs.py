"""Positions drawn by weight: against their exact law, for runs that are short, long, steep, halved, rough and empty."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privsql.noise.randomness import SystemRandomness
from privsql.noise.runs import _ABOVE, _BITS, _LARGE, _SURE, Runs, _reached, _whole, draw, uniform_below

UNSURE = 1e-9


def check(base, slope, lengths, halvings=None, rough=None, at=None, cells=60_000) -> None:
    """So many cells with the same runs, and how often each position of each run came out."""
    many = len(base)
    exact = [(Fraction(b), Fraction(s)) for b, s in zip(base, slope, strict=True)]
    runs = Runs(
        np.arange(cells + 1) * many,
        np.tile(np.array([float(each) for each in base]), cells),
        np.tile(np.array([float(each) for each in slope]), cells),
        np.tile(np.array(lengths, dtype=np.int64), cells),
        lambda run: exact[run % many],
        np.tile(np.array(rough or [False] * many), cells),
        lambda run, position: at(run % many, position),
        np.tile(np.array(halvings or [0] * many, dtype=np.int64), cells),
    )
    chosen, positions = draw(runs, SystemRandomness())
    assert (chosen // many == np.arange(cells)).all()
    weights, found = [], []
    for run in range(many):
        for position in range(lengths[run]):
            if rough and rough[run]:
                halved, exponent = at(run, position)
            else:
                halved, exponent = (halvings or [0] * many)[run], exact[run][0] + exact[run][1] * position
            weights.append(2.0**-halved * math.exp(min(base) - exponent))
            found.append(int(((chosen % many == run) & (positions == position)).sum()))
    expected = np.array(weights) / sum(weights) * cells
    assert sum(found) == cells
    common = expected >= 20
    seen = np.append(np.array(found)[common], cells - np.array(found)[common].sum())
    wanted = np.append(expected[common], cells - expected[common].sum())
    seen, wanted = (
        (seen, wanted) if wanted[-1] >= 20 else (seen[:-1], wanted[:-1] * seen[:-1].sum() / wanted[:-1].sum())
    )
    assert stats.chisquare(seen, wanted).pvalue > UNSURE


@pytest.mark.parametrize(
    ("base", "slope", "lengths", "halvings"),
    [
        ([0, 1, 2], [0, 0, 0], [1, 1, 1], None),
        ([0, 0], [0, 0], [3, 5], None),
        ([5, 6, 4], [Fraction(1, 3), 0, 2], [20, 7, 3], None),
        ([0, 1, 2], [1, 1, 1], [1, 0, 4], None),
        ([3, 3, 3], [Fraction(1, 10)] * 3, [9, 9, 9], [0, 1, 3]),
        ([-7, -6], [Fraction(1, 100), Fraction(3, 2)], [300, 5], [2, 0]),
        ([Fraction(1, 7), 30], [Fraction(1, 1000), 0], [40, 1], None),
        ([1000, 1001], [Fraction(1, 2), 0], [10, 4], None),
        ([0, 0, 0, 0], [Fraction(1, 2)] * 4, [0, 6, 0, 2], [5, 1, 0, 0]),
    ],
)
def test_positions_follow_their_weights(base, slope, lengths, halvings):
    check(base, slope, lengths, halvings)


def test_rough_runs_have_upper_bounds_only():
    """Their positions weigh less than the bound, each by itself."""
    exponents = {1: [2, 1, Fraction(5, 2), 4], 2: [0, 3]}

    def at(run: int, position: int) -> tuple[int, Fraction]:
        return (1 if run == 2 and position == 0 else 0), Fraction(exponents[run][position])

    check([1, 1, 0], [Fraction(1, 4), 0, 0], [3, 4, 2], None, [False, True, True], at, cells=4_000)


def test_cells_of_different_runs():
    level = (Fraction(0), Fraction(0))
    runs = Runs(
        np.array([0, 1, 4, 6]), np.zeros(6), np.zeros(6), np.array([4, 0, 2, 0, 0, 1]), lambda run: level
    )
    for _ in range(50):
        chosen, positions = draw(runs, SystemRandomness())
        assert chosen.tolist() == [0, 2, 5]
        assert 0 <= positions[0] < 4
        assert 0 <= positions[1] < 2
        assert positions[2] == 0


class Words:
    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def integers(self, size: int) -> np.ndarray:
        taken, self.words = self.words[:size], self.words[size:]
        return np.array(taken, dtype=np.uint32)


def test_numbers_below_a_bound():
    """High words first; what is too great is drawn again."""
    assert uniform_below(np.array([5], dtype=np.uint64), Words(0, 7, 9, 6, 0, 4)).tolist() == [4]
    assert uniform_below(np.array([2**40], dtype=np.uint64), Words(255, 3)).tolist() == [(255 << 32) + 3]
    assert uniform_below(np.array([2**40], dtype=np.uint64), Words(256, 3)).tolist() == [
        3
    ]  # only as many digits as are needed
    assert uniform_below(np.array([2**40 + 1], dtype=np.uint64), Words(256, 0)).tolist() == [2**40]
    assert uniform_below(np.array([1, 3], dtype=np.uint64), Words(9, 9, 0, 3, 0, 2)).tolist() == [0, 2]


def test_the_run_of_a_number_is_found():
    weights = np.array([3, 0, 2, 5, 1, 1, 4], dtype=np.uint64)
    ends = np.cumsum(weights)
    before = ends - weights
    first, last = np.array([0, 4]), np.array([3, 6])
    for one in range(10):
        for other in range(6):
            found = _reached(ends, before[first], first, last, np.array([one, other], dtype=np.uint64))
            assert found.tolist() == [[0, 0, 0, 2, 2, 3, 3, 3, 3, 3][one], [4, 5, 6, 6, 6, 6][other]]


def test_margins_cover_float_errors():
    """By 2^-21 of the true weight: what is proposed is never lighter, and a word that is sure is below true / proposed."""
    check([0, 1], [0, 0], [1, 1], cells=500)
    off = Fraction(1, 2**21)
    assert (1 - off) * Fraction(_ABOVE) >= 1
    heaviest = (
        (1 + off) * Fraction(_ABOVE) / (1 - Fraction(1, _LARGE))
    )  # proposed / true, with 1 added to what is proposed
    assert Fraction(_SURE, 2**32) <= 1 / heaviest
    assert Fraction(_SURE, 2**32) > 1 - Fraction(1, 2**18)  # more need not be decided by digits
    assert 2**30 <= _LARGE < 2**32
    assert 2**_BITS * heaviest < 2**62  # sums of a cell, with room for as many ones
    assert _BITS > 40


@pytest.mark.parametrize("total", [1e-9, 0.3, 1.0, 1.5, 123.456])
@pytest.mark.parametrize("power", [10, 20, 40])
def test_integer_weights_are_not_below_the_true_ones(total, power):
    (found,) = _whole(np.array([total]), np.array([power]), np.array([True]))
    true = Fraction(total) * 2**power
    assert true * (1 + Fraction(1, 2**21)) <= int(found) <= true * (1 + Fraction(1, 2**18)) + 2
    assert _whole(np.array([total]), np.array([power]), np.array([False])).tolist() == [0]
