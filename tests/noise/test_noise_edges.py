"""Noise at its ends: words that must be drawn again, sums that need more digits, tables that hold what nobody declared."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pytest

import privsql
from privsql.noise.add_noise import _column_codes, add_noise
from privsql.noise.gaussian_sampler import _cumulated, _law
from privsql.noise.histograms import MOST, Histograms, histograms
from privsql.noise.plain import those_above
from privsql.noise.randomness import SystemRandomness
from privsql.noise.runs import _Sum
from privsql.noise.selection import select, select_each, select_fraction


class Words:
    """These words, then others from the system."""

    def __init__(self, *words: list[int]) -> None:
        self.words = list(words)

    def integers(self, size: int) -> np.ndarray:
        if not self.words:
            return SystemRandomness().integers(size)
        return np.resize(np.array(self.words.pop(0), dtype=np.uint32), size)


def test_too_large_words_are_redrawn():
    """Of five equal scores every one passes; the index of the winner is uniform, and 5, 6 and 7 are none."""
    for wanted in range(5):
        source = Words([5, 6, 7], [7], [wanted])
        assert select(np.zeros(5, dtype=np.int64), Fraction(1), "permute_and_flip", source) == wanted
        assert not source.words


@pytest.mark.parametrize("noise", ["gumbel", "permute_and_flip", "exponential", "laplace"])
def test_the_winner_of_each_row(noise):
    scores = np.array([[0, 10_000, 0], [10_000, 0, 0], [0, 0, 10_000]])
    assert select_each(scores, Fraction(1), noise, SystemRandomness()).tolist() == [1, 0, 2]
    for wrong in (np.zeros((0, 3), np.int64), np.zeros((3, 0), np.int64), np.zeros(3, np.int64)):
        with pytest.raises(ValueError, match="rows of at least one score"):
            select_each(wrong, Fraction(1), noise, SystemRandomness())
    with pytest.raises(ValueError, match="positive rate"):
        select_each(scores, Fraction(0), noise, SystemRandomness())


def test_selection_refuses_no_scores_and_no_rate():
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="rate"):
            select(np.zeros(3, dtype=np.int64), rate, "exponential", SystemRandomness())
    for scores, rate in (([], Fraction(1)), ([Fraction(1)], Fraction(0)), ([Fraction(1)], Fraction(-1))):
        with pytest.raises(ValueError, match="at least one score and a positive rate"):
            select_fraction(scores, rate, "gumbel", SystemRandomness())
    assert select_fraction([Fraction(1, 3), Fraction(900)], Fraction(1), "gumbel", SystemRandomness()) == 1


@pytest.mark.parametrize("monotone", [False, True])
def test_a_value_equal_to_the_threshold_is_above_it(monotone):
    """At so large an epsilon the noise is 0 but for a chance of 1e-20."""
    values = [Fraction(4), Fraction(5) - Fraction(1, 2**18), Fraction(5), Fraction(6)]
    epsilon, source = Fraction(2**21 * 200), SystemRandomness()
    for some, above in ((values, [2, 3]), (values[:2], []), (values[3:], [0])):
        for count in (1, 2):
            found = those_above(some, Fraction(5), epsilon, Fraction(1), monotone, count, source)
            assert list(found) == above[:count]


@pytest.mark.parametrize("bits", [96, 128, 400])
@pytest.mark.parametrize(
    "slope", [Fraction(0), Fraction(1, 2**200), Fraction(1, 2**50), Fraction(1, 3), Fraction(300)]
)
@pytest.mark.parametrize("base", [Fraction(0), Fraction(1, 7), Fraction(50)])
def test_sums_lie_in_their_intervals(base, slope, bits):
    """Of five terms, against a sum of narrower intervals of the terms by themselves."""
    low, high = _Sum(base, slope, 5).interval(bits)
    terms = [_Sum(base + slope * j, Fraction(0), 1).interval(900) for j in range(5)]
    assert low <= sum(least for least, _ in terms) + Fraction(1, 2**890)
    assert sum(most for _, most in terms) <= high + Fraction(1, 2**890)
    assert 0 <= low <= high <= 5
    if bits == 400 and base < 50 and slope < 300:  # enough digits: then it is narrow
        assert high - low < Fraction(1, 2**150)


@pytest.mark.parametrize("exponent", range(-30, 103, 3))
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 2), Fraction(255, 128), Fraction(1, 3)])
def test_the_strips_of_a_gaussian_have_the_right_width(exponent, factor):
    """2^m is the greatest with 64 * 4^m <= variance, whatever numerator and denominator."""
    variance = factor * Fraction(2) ** exponent
    law = _law(variance)
    assert 64 * Fraction(4) ** law.shift <= variance < 64 * Fraction(4) ** (law.shift + 1)
    assert Fraction(1, 512) <= law.rate <= Fraction(1, 128)


@pytest.mark.parametrize("rate", [Fraction(1, 512), Fraction(1, 300), Fraction(1, 128)])
def test_the_chances_of_strips_lie_between_their_bounds(rate):
    """Against the same with so many more digits that they tell any bound that is off by one."""
    coarse, fine = _cumulated(rate, 64), _cumulated(rate, 200)
    assert len(fine) >= len(coarse) > 20
    for (low, high), (least, most) in zip(coarse, fine, strict=False):
        assert low << 136 <= least
        assert most <= high << 136
        assert high - low <= 2
    assert coarse[0][0] > 0
    assert coarse[-1][0] >= 2**64 - 2


def test_clamped_counts_are_clamped_value_by_value():
    def whole() -> Histograms:
        return histograms(1, 10, *(np.array(each) for each in ([0, 0], [3, 4], [MOST + 1, 1])))

    rows = [np.array(each) for each in ([0], [3], [MOST + 2])]
    found = histograms(1, 10, *rows, np.array([2]), whole)
    assert found.values.tolist() == [3, 4]
    assert found.widths is None
    few = histograms(1, 10, *[np.array(each) for each in ([0], [3], [MOST])], np.array([2]), whole)
    assert few.widths.tolist() == [2]


@pytest.mark.parametrize(
    "column",
    [
        np.array(["1", "2"], dtype=object),
        np.array([True, False]),
        np.array(["2024-01-01"], dtype="datetime64[D]"),
    ],
)
def test_values_of_another_type_are_not_keys(column):
    assert (_column_codes(range(0, 5), column) == -1).all()


def test_indices_of_numbers_in_a_range():
    masked = np.ma.array([0, 4, 5, -1, 2], mask=[False, False, False, False, True])
    assert _column_codes(range(0, 5), masked).tolist() == [0, 4, -1, -1, -1]
    assert _column_codes(range(3, 5), np.array([3.0, 4.0, 2.0, 1e300])).tolist() == [0, 1, -1, -1]


def test_values_of_a_chosen_bin_are_read():
    """The bins of a query at epsilon 1, and the noise of one at 0.001, which is likely to choose one of them."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT (hash(i) % 1000003) / 7.0 AS x FROM range(30000) r(i)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 200_000]}}}}})
    coarse, noisy = (
        session.explain("SELECT MEDIAN(x) AS m FROM t", epsilon=epsilon) for epsilon in (1, 0.001)
    )
    exact = [session._pipeline.engine.run(each, ()) for each in coarse.runs]
    whole = []

    def run(sql: str):
        whole.append(sql)
        return session._pipeline.engine.run(sql, ())

    points = {
        int(add_noise(noisy, exact, SystemRandomness(), run).noisy_columns["order_1"][0]) for _ in range(12)
    }
    assert len(whole) > 3
    assert set(whole) == {noisy.sql}
    assert len(points) > 3
    places = [max(each, -1 - each) for each in points]  # below 0: a point that stands for "undetermined"
    assert all(0 <= each <= noisy.measurements[0].search.points for each in places)
