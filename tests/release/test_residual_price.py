"""What residual measurements cost one unit, by brute force over all pairs of small domains."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privsql.planning.marginals.residual_measurement import ResidualMeasurement, measure_residuals
from privsql.privacy.gaussian import greatest_ratio
from privsql.privacy.marginals import residual_price
from privsql.privacy.marginals.residual_price import Neighbouring, closure, share_of_row, squared_change
from privsql.privacy.marginals.residual_variances import (
    deviation_of_cell,
    parts_of,
    planned_variances,
    spread,
    weight_of,
)

DOMAINS = [
    ((2,), 1),
    ((5,), 1),
    ((3, 2), 2),
    ((2, 2, 3), 2),
    ((4, 3, 2), 3),
    ((1, 3, 2), 2),
    ((2, 2, 2, 3), 3),
]
ADDED = Neighbouring(1, replaced=False)
REPLACED = Neighbouring(1, replaced=True, always=True)
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)


def workload(sizes, ways):
    return list(itertools.combinations(range(len(sizes)), ways))


def drawn_variances(sizes, ways, seed):
    random = np.random.default_rng(seed)
    return {each: Fraction(int(random.integers(1, 40)), 7) for each in closure(workload(sizes, ways))}


def measured(sizes, variances, record):
    """All residuals of one record, each divided by the deviation of its noise, by the definition."""
    parts = []
    for columns, variance in variances.items():
        table = np.ones(())
        for each in columns:
            unit = np.eye(sizes[each])[record[each]]
            table = np.multiply.outer(table, (np.eye(sizes[each]) - 1 / sizes[each]) @ unit)
        parts.append(table.ravel() / float(variance) ** 0.5)
    return np.concatenate(parts)


def all_measured(sizes, variances):
    return np.array([measured(sizes, variances, record) for record in itertools.product(*map(range, sizes))])


@pytest.mark.parametrize(("sizes", "ways"), DOMAINS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_price_is_the_largest_change_over_all_pairs(sizes, ways, seed):
    variances = drawn_variances(sizes, ways, seed)
    rows = all_measured(sizes, variances)
    added = (rows**2).sum(axis=1).max()
    replaced = ((rows[:, None] - rows[None]) ** 2).sum(axis=2).max()
    assert float(squared_change(sizes, variances, ADDED)) == pytest.approx(added, rel=1e-12)
    found = float(squared_change(sizes, variances, REPLACED))
    assert replaced * (1 - 1e-12) <= found <= replaced * (1 + 1e-11)


@pytest.mark.parametrize(("sizes", "ways"), DOMAINS[:5])
@pytest.mark.parametrize("replaced", [False, True])
def test_of_units_with_several_rows_no_pair_passes_the_price(sizes, ways, replaced):
    variances = drawn_variances(sizes, ways, 4)
    rows = all_measured(sizes, variances)
    most = 3
    bundles = [np.zeros(rows.shape[1])]
    random = np.random.default_rng(5)
    for count in range(1, most + 1):
        picks = random.integers(0, len(rows), (60, count))
        bundles += [rows[each].sum(axis=0) for each in picks]
        bundles += [count * each for each in rows]
    kept = np.array(bundles)
    changes = ((kept[:, None] - kept[None]) ** 2).sum(axis=2) if replaced else (kept**2).sum(axis=1)
    price = float(squared_change(sizes, variances, Neighbouring(most, replaced)))
    assert changes.max() == pytest.approx(price, rel=1e-9)  # attained, by equal rows


def test_a_replaced_row_that_may_be_left_out_pays_for_the_total():
    variances = {(): Fraction(1, 100), (0,): Fraction(1)}
    always = squared_change([2], variances, REPLACED)
    sometimes = squared_change([2], variances, Neighbouring(1, replaced=True))
    assert float(always) == pytest.approx(2.0)
    assert sometimes == 100 + Fraction(1, 2)


def test_all_columns_differing_is_not_always_the_worst_pattern():
    sizes, variances = [2, 2], {(): Fraction(1), (0,): Fraction(1), (1,): Fraction(100), (0, 1): Fraction(1)}
    rows = all_measured(sizes, variances)
    changes = {
        (a != c, b != d): ((rows[2 * a + b] - rows[2 * c + d]) ** 2).sum()
        for a, b, c, d in itertools.product(range(2), repeat=4)
    }
    assert changes[True, False] > changes[True, True]
    assert float(squared_change(sizes, variances, REPLACED)) == pytest.approx(changes[True, False])


def test_twice_the_price_of_adding_is_not_enough_for_replacing():
    sizes, ways = [4, 3, 2], 2
    variances = planned_variances(sizes, workload(sizes, ways), Fraction(1, 10), REPLACED)
    without_total = {each: of for each, of in variances.items() if each}
    added = squared_change(sizes, without_total, ADDED)
    assert squared_change(sizes, without_total, REPLACED) > 2 * added * Fraction(1001, 1000)


@pytest.mark.parametrize(("sizes", "ways"), DOMAINS)
def test_many_columns_are_priced_safely(sizes, ways, monkeypatch):
    variances = drawn_variances(sizes, ways, 6)
    exact = squared_change(sizes, variances, REPLACED)
    monkeypatch.setattr(residual_price, "MOST_PATTERNS", 0)
    safe = squared_change(sizes, variances, REPLACED)
    assert exact <= safe <= 3 * exact


@pytest.mark.parametrize("by", [ADDED, REPLACED, Neighbouring(4, True), Neighbouring(4, False)])
def test_planned_noise_costs_what_is_offered_and_no_more(by):
    sizes = [10, 7, 8, 5, 2]
    found = measure_residuals(sizes, workload(sizes, 3), by, EPSILON, DELTA)
    offered = greatest_ratio(EPSILON, DELTA) ** 2
    assert Fraction(99, 100) * offered < found.ratio <= offered
    assert found.event.ratio == found.ratio


@pytest.mark.parametrize("by", [ADDED, REPLACED, Neighbouring(4, True)])
def test_a_wrong_price_is_caught(by):
    sizes = [4, 3, 2]
    right = measure_residuals(sizes, workload(sizes, 2), by, EPSILON, DELTA)
    for columns in right.variances:
        if columns or not by.total_is_public:
            wrong = {**right.variances, columns: right.variances[columns] / 50}
            with pytest.raises(ValueError, match="does not cover"):
                ResidualMeasurement(right.sizes, wrong, by, EPSILON, DELTA)
    with pytest.raises(ValueError, match="does not cover"):
        ResidualMeasurement(right.sizes, right.variances, by, EPSILON * Fraction(9, 10), DELTA)
    more = Neighbouring(by.rows + 1, by.replaced)
    with pytest.raises(ValueError, match="does not cover"):
        ResidualMeasurement(right.sizes, right.variances, more, EPSILON, DELTA)


def test_the_predicted_error_is_that_of_the_sum_of_residuals():
    sizes, marginal = [3, 2, 4], (0, 2)
    variances = drawn_variances(sizes, 2, 7)
    covariance = 0.0
    for part in parts_of(marginal):
        factor = np.ones((1, 1))
        for each in marginal:
            size = sizes[each]
            spreading = np.full((size, size), 1 / size**2)
            factor = np.kron(factor, np.eye(size) - 1 / size if each in part else spreading)
        covariance = covariance + float(variances[part]) * factor
    assert np.diag(covariance) == pytest.approx(deviation_of_cell(sizes, variances, marginal) ** 2)


def test_no_other_split_of_the_price_has_less_weighted_error():
    sizes, sets = [5, 3, 4, 2], [(0, 1), (1, 2), (2, 3), (0, 3)]
    best = planned_variances(sizes, sets, Fraction(1, 10), ADDED)
    parts = [each for each in best if each]

    def price(variances):
        return sum(float(share_of_row(sizes, each) / variances[each]) for each in parts)

    def error(variances):
        return sum(
            weight_of(sizes, marginal) * float(variances[part]) * spread(sizes, marginal, part)
            for marginal in closure(sets)
            for part in parts_of(marginal)
            if part
        )

    random = np.random.default_rng(8)
    for _ in range(50):
        other = {each: best[each] * Fraction(float(random.uniform(0.7, 1.4))) for each in parts}
        scaled = price(other) / price(best)
        assert error(other) * scaled > error(best) * 0.999  # variances are rounded up by less than that
