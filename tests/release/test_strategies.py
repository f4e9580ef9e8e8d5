"""Strategies for counting queries: their price by brute force, and their errors as predicted."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privsql.algebra.expressions import Column
from privsql.noise.marginals.strategy_noise import release_strategy
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.planning.marginals.strategy_measurement import StrategyMeasurement, measure_strategy
from privsql.planning.marginals.strategy_plan import CountingQueries, StrategyPlan
from privsql.privacy.gaussian import greatest_ratio
from privsql.privacy.marginals.residual_price import Neighbouring
from privsql.privacy.marginals.strategies import KindQueries, best_strategy, fit_of, predicted_variance
from privsql.privacy.marginals.strategy_price import strategy_change
from privsql.release.strategy_tables import StrategyTables
from privsql.tables import ExactTable
from privsql.types import integer
from tests.noise.statistics import FALSE_ALARM, Buffered

ADDED = Neighbouring(1, replaced=False)
REPLACED = Neighbouring(1, replaced=True, always=True)
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)


def ranges_of(kinds):
    rows = [
        [float(first <= each <= last) for each in range(kinds)]
        for first in range(kinds)
        for last in range(first, kinds)
    ]
    listed = np.array(rows)
    return KindQueries(listed.T @ listed, len(rows), listed, ordered=True)


def overlapping():
    """Three queries over six kinds of rows, which tell not all of them apart."""
    listed = np.array([[1, 1, 0, 0, 1, 0], [0, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]], dtype=float)
    return KindQueries(listed.T @ listed, 3, listed)


def all_units(kinds, most):
    """The counts that a unit of at most so many rows can have."""
    for many in range(most + 1):
        for rows in itertools.combinations_with_replacement(range(kinds), many):
            yield np.bincount(rows, minlength=kinds) if rows else np.zeros(kinds, dtype=np.int64)


# -- price ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "by",
    [ADDED, REPLACED, Neighbouring(2, replaced=False), Neighbouring(1, True), Neighbouring(3, True)],
    ids=str,
)
def test_the_price_is_the_most_that_a_unit_changes(by, seed):
    """By brute force: all units of at most R rows against none, or against each other; exactly."""
    random = np.random.default_rng(seed)
    strategy = random.integers(-9, 10, (4, 3))
    variance = Fraction(7, 3)
    units = list(all_units(3, by.rows))
    if by.always:
        units = [each for each in units if each.sum() == 1]
    pairs = [(one, other if by.replaced else 0 * one) for one in units for other in units]
    most = max(int(((strategy @ (one - other)) ** 2).sum()) for one, other in pairs)
    found = strategy_change(strategy, variance, by)
    assert most / variance <= found <= most / variance * (1 + Fraction(1, 2**60))


def test_a_strategy_of_large_numbers_is_refused():
    with pytest.raises(ValueError, match="small whole numbers"):
        strategy_change(np.array([[2**20 + 1]]), Fraction(1), ADDED)
    with pytest.raises(ValueError, match="few rows"):
        strategy_change(np.zeros((2**12 + 1, 1), dtype=np.int64), Fraction(1), ADDED)


@pytest.mark.parametrize("by", [ADDED, REPLACED, Neighbouring(2, replaced=True)], ids=str)
def test_noise_that_does_not_cover_the_price_is_refused(by):
    best, _ = best_strategy(ranges_of(5), by)
    found = measure_strategy(best.matrix, by, EPSILON, DELTA, Fraction(1))
    ratio = greatest_ratio(EPSILON, DELTA) ** 2
    assert ratio * Fraction(998, 1000) < found.ratio <= ratio  # variances are short numbers
    half = measure_strategy(best.matrix, by, EPSILON, DELTA, Fraction(1, 2))
    assert float(half.ratio) == pytest.approx(float(ratio / 2), rel=2e-3)
    with pytest.raises(ValueError, match="does not cover"):
        StrategyMeasurement(best.matrix, found.variance * Fraction(99, 100), by, EPSILON, DELTA)


# -- which strategy ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("by", [ADDED, REPLACED], ids=str)
@pytest.mark.parametrize("queries", [ranges_of(16), overlapping()], ids=["ranges", "overlapping"])
def test_the_best_of_several_strategies_is_taken(queries, by):
    best, tried = best_strategy(queries, by)
    assert best.name == tried[0][0]
    assert [each for _, each in tried] == sorted(each for _, each in tried)
    assert len(tried) >= 3
    assert predicted_variance(queries, best.matrix, by) == pytest.approx(tried[0][1])


def test_predicted_variances_are_those_of_least_squares():
    queries = ranges_of(7)
    matrix = np.random.default_rng(2).integers(-5, 6, (9, 7))
    inverse = np.linalg.inv(matrix.T @ matrix)
    price = float((matrix**2).sum(axis=0).max())
    expected = price * np.mean([row @ inverse @ row for row in queries.listed])
    assert predicted_variance(queries, matrix, ADDED) == pytest.approx(expected)


def test_a_histogram_is_measured_cell_by_cell():
    """Nothing is better for disjoint counts than each by itself, at the price of one."""
    _, tried = best_strategy(KindQueries(np.eye(8), 8), ADDED)
    assert tried[0][1] == pytest.approx(1.0, rel=1e-5)


def test_prefixes_are_measured_about_as_well_as_can_be():
    """Every strategy has at least the mean variance (trace of the root of the Gram matrix)^2 / (kinds m): Li and
    Miklau's bound by the singular values. The one found is within a tenth of it."""
    places = np.arange(32)
    gram = 32.0 - np.maximum.outer(places, places)
    bound = np.sqrt(np.linalg.eigvalsh(gram)).sum() ** 2 / 32 / 32
    _, tried = best_strategy(KindQueries(gram, 32, None, ordered=True), ADDED)
    assert bound <= tried[0][1] <= 1.1 * bound


def test_what_was_not_measured_has_no_finite_variance():
    fit = fit_of(np.array([[1, 1, 0], [0, 0, 1]]), 1.0, total_is_public=False)
    assert fit.variance(np.array([1.0, 1.0, 0.0])) == pytest.approx(1.0)
    assert fit.variance(np.array([1.0, 0.0, 0.0])) == np.inf
    assert predicted_variance(KindQueries(np.eye(3), 3), np.array([[1, 1, 0], [0, 0, 1]]), ADDED) == np.inf


def test_a_public_number_of_rows_is_as_good_as_exact():
    fit = fit_of(np.array([[1, 0]]), 4.0, total_is_public=True)
    assert fit.variance(np.array([0.0, 1.0])) == pytest.approx(4.0, rel=1e-3)
    assert fit.variance(np.array([1.0, 1.0])) < 1e-3


# -- noise ---------------------------------------------------------------------------------------------------
COUNTS = np.array([40, 0, 3, 11, 200, 7, 0, 0, 90, 14])


def planned(by, queries=None):
    cells = ColumnCells(Column("age", integer(0, 99)), edges=tuple(range(0, 110, 10)), null=False)
    asked = CountingQueries("ranges", (cells,), np.arange(10), queries or ranges_of(10))
    best, tried = best_strategy(asked.queries, by)
    measured = measure_strategy(best.matrix, by, EPSILON, DELTA, Fraction(1))
    return StrategyPlan(asked=asked, measurement=measured, name=best.name, tried=tried)


EXACT = ExactTable({"cell_0": np.arange(10)}, {"count_0": COUNTS})


@pytest.mark.parametrize("by", [ADDED, REPLACED, Neighbouring(2, True)], ids=str)
def test_the_noise_has_the_planned_variance(by):
    """The chance of a false alarm is below 2e-9; a deviation that is 10% off is found."""
    plan, source = planned(by), Buffered()
    rows, squares, many = len(plan.measurement.strategy), 0.0, 0
    for _ in range(500):
        noisy = release_strategy(plan, EXACT, source)
        off = noisy[:rows] - plan.measurement.strategy @ COUNTS
        squares, many = squares + float((off.astype(float) ** 2).sum()), many + rows
        assert len(noisy) == rows + by.total_is_public
        assert not by.total_is_public or noisy[-1] == COUNTS.sum()
    variance = float(plan.measurement.variance)
    assert FALSE_ALARM < stats.chi2.cdf(squares / variance, many) < 1 - FALSE_ALARM
    assert stats.chi2.cdf(squares / variance * 0.81, many) < FALSE_ALARM


@pytest.mark.parametrize("by", [ADDED, REPLACED], ids=str)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_predicted_errors_hold_as_often_as_they_say(by, level):
    """1,000 releases; the chance of a false alarm is below 4e-6, and errors predicted a quarter too small are
    found. The improved counts are no worse in the mean.
    """
    plan, source = planned(by), Buffered()
    wanted = np.array([0, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=bool)
    truth, errors, improved = COUNTS[wanted].sum(), [], []
    for _ in range(1_000):
        tables = StrategyTables(plan, release_strategy(plan, EXACT, source))
        found = tables.estimates((0,), wanted, [{}])
        errors.append(float(found.unbiased[0] - truth))
        improved.append(float(tables.shown[wanted].sum() - truth))
        assert tables.shown.min() >= 0
    width = stats.norm.ppf(0.5 + level / 2) * found.variances[0] ** 0.5
    least, most = stats.binom.ppf([1e-6, 1 - 1e-6], len(errors), level)
    assert least <= (np.abs(errors) <= width).sum() <= most
    assert not least <= (np.abs(errors) <= 0.75 * width).sum() <= most
    assert np.mean(np.square(improved)) < 1.02 * np.mean(np.square(errors))


def test_queries_that_are_not_told_apart_are_estimated_all_the_same():
    """Of a strategy of less than full rank, the queries that were asked for have finite errors."""
    queries = overlapping()
    kind_of = np.array([0, 1, 2, 3, 4, 5, 5, 5, 5, 5])
    plan = planned(ADDED, ranges_of(10))
    asked = replace(plan.asked, queries=queries, kind_of=kind_of)
    best, tried = best_strategy(queries, ADDED)
    measured = measure_strategy(best.matrix, ADDED, EPSILON, DELTA, Fraction(1))
    plan = StrategyPlan(asked=asked, measurement=measured, name=best.name, tried=tried)
    for row in queries.listed:
        assert 0 < measured.fit.variance(row) < 1e6
    assert measured.fit.variance(np.eye(6)[0]) == np.inf
