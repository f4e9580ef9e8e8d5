"""Noisy residuals: whole numbers, noise of the planned variance, and exact statements that keep the bound."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.noise.marginals.residual_noise import release_residuals, whole_residual
from privsql.release.residual_tables import ResidualTables
from privsql.release.shrinkage import centred
from privsql.tables import ExactTable
from tests.noise.statistics import FALSE_ALARM, SOURCE, Buffered
from tests.release.people import WORKLOAD, connect, people


def planned(frame, neighbours="replace-one", epsilon=1.0, **policy):
    with connect(frame, neighbours=neighbours, **policy) as session:
        return session.explain_release(WORKLOAD, "people", epsilon=epsilon, delta=1e-6)


def exact_of(plan, frame):
    found = duckdb.sql(plan.sql.replace('"people"', "frame")).fetchnumpy()
    keys = {name: found[name] for name in plan.keys}
    return ExactTable(keys, {"count_0": np.asarray(found["count_0"]).astype(np.int64)})


@pytest.mark.parametrize("shape", [(), (3,), (2, 4), (3, 2, 5)])
def test_whole_residuals_are_residuals_times_the_number_of_cells(shape):
    counts = np.random.default_rng(1).integers(0, 1_000, shape)
    found = whole_residual(counts)
    assert found.dtype == np.int64
    assert found == pytest.approx(centred(counts.astype(float)) * counts.size, abs=1e-6)


def test_numbers_beyond_64_bits_are_kept_modulo_2_to_the_64():
    counts = np.array([2**62, 5, 7], dtype=np.int64)
    exact = [3 * int(each) - (2**62 + 12) for each in counts]
    assert [int(each) % 2**64 for each in whole_residual(counts)] == [each % 2**64 for each in exact]


def test_the_noise_has_the_planned_variance_in_every_residual():
    """The chance of a false alarm is below 1e-8; a deviation that is 10% off is found (the next test)."""
    assert all(FALSE_ALARM < each < 1 - FALSE_ALARM for each in _levels(planned(people(300)), Fraction(1)))


def test_noise_of_nine_tenths_of_the_deviation_would_be_found():
    levels = _levels(planned(people(300)), Fraction(81, 100))
    assert min(levels) < FALSE_ALARM


def _levels(plan, factor):
    """For the residuals of each size together: where the sum of squared noise is among those of right noise."""
    frame, source = people(300), Buffered()
    exact = exact_of(plan, frame)
    tables = {
        columns: _exact_residual(plan, exact, columns) for columns in plan.residuals if len(columns) > 0
    }
    squares = dict.fromkeys({len(each) for each in tables}, 0.0)
    number = dict.fromkeys(squares, 0)
    for _ in range(60):
        noisy = release_residuals(plan, exact, source)
        for columns, residual in tables.items():
            variance = float(plan.measurement.noise_variance(columns) / factor)
            squares[len(columns)] += float(((noisy[columns] - residual) ** 2.0).sum()) / variance
            number[len(columns)] += residual.size
    return [float(stats.chi2.cdf(squares[size], number[size])) for size in squares]


def _exact_residual(plan, exact, columns):
    if not columns:
        return np.array(exact.exact_columns["count_0"].sum())
    sizes = [plan.measurement.sizes[each] for each in columns]
    counts = np.zeros(sizes, dtype=np.int64)
    codes = [np.asarray(exact.exact_keys[plan.keys[each]]).astype(int) for each in columns]
    np.add.at(counts, tuple(codes), exact.exact_columns["count_0"])
    return whole_residual(counts)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_predicted_errors_hold_as_often_as_they_say(level):
    """1,000 releases; the chance of a false alarm is below 4e-6, and errors predicted a quarter too small are found."""
    frame = people(300)
    plan = planned(frame, "add-remove")
    exact, source = exact_of(plan, frame), Buffered()
    for columns in [(2,), (0, 1)]:
        width = plan.error_of(columns).half_width(level)
        truth = ((frame.smoker == 0) if columns == (2,) else (frame.age < 18) & (frame.state == "CA")).sum()
        errors = np.array(
            [
                float(ResidualTables(plan.measurement, noisy).unbiased(columns).ravel()[0] - truth)
                for noisy in (release_residuals(plan, exact, source) for _ in range(1_000))
            ]
        )
        least, most = stats.binom.ppf([1e-6, 1 - 1e-6], len(errors), level)
        assert least <= (abs(errors) <= width).sum() <= most
        assert not least <= (abs(errors) <= 0.75 * width).sum() <= most


def test_a_public_total_comes_out_as_it_is():
    plan = planned(people(300))
    noisy = release_residuals(plan, exact_of(plan, people(300)), SOURCE)
    assert int(noisy[()]) == 300


HOSTILE = [
    {"age": 30, "state": "CA", "smoker": True, "income": 10.0},
    {"age": -(2**62), "state": None, "smoker": False, "income": float("nan")},
    {"age": 2**62, "state": "Guam", "smoker": True, "income": float("inf")},
    {"age": 99, "state": "NY", "smoker": False, "income": float("-inf")},
    {"age": 100, "state": "", "smoker": True, "income": 100.0},
]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_row_changes_the_residuals_by_more_than_was_priced(neighbours):
    """Whatever the row holds: values that nobody declared, beyond the range, NaN or NULL."""
    frame = people(50)
    plan = planned(frame, neighbours)
    with_each = [
        _deviations(plan, pd.concat([frame, pd.DataFrame([row])], ignore_index=True).astype(frame.dtypes))
        for row in HOSTILE
    ]
    without = _deviations(plan, frame)
    ratio = float(plan.measurement.ratio)
    if neighbours == "add-remove":
        changes = [float(((each - without) ** 2).sum()) for each in with_each]
        assert changes == pytest.approx([ratio] * len(HOSTILE))
    else:
        changes = [
            float(((one - other) ** 2).sum()) for one in with_each for other in with_each if one is not other
        ]
        assert max(changes) <= ratio * (1 + 1e-9)
        assert max(changes) > 0.9 * ratio


def _deviations(plan, frame):
    """All exact residuals, in deviations of their noise."""
    exact = exact_of(plan, frame)
    return np.concatenate(
        [
            _exact_residual(plan, exact, columns).ravel()
            / float(plan.measurement.noise_variance(columns)) ** 0.5
            for columns in plan.residuals
        ]
    )


def test_a_unit_changes_the_residuals_by_no_more_than_its_limits_allow():
    """A person with a thousand rows is cut to max_groups combinations of cells and max_rows rows in each."""
    frame = people(40).assign(person=range(40))
    limits = {"unit": "person", "max_groups": 2, "max_rows": 3}
    plan = planned(frame, "add-remove", table=limits)
    assert plan.measurement.by.rows == 6
    one_cell = pd.concat([frame.iloc[:1]] * 1_000).assign(person=99)
    many_cells = people(1_000, seed=3).assign(person=99)
    without, ratio = _deviations(plan, frame), float(plan.measurement.ratio)
    changes = [
        float(((_deviations(plan, pd.concat([frame, rows])) - without) ** 2).sum())
        for rows in (one_cell, many_cells)
    ]
    assert changes[0] == pytest.approx(ratio / 4)  # 3 of 6 rows, all in one cell
    assert 0 < changes[1] <= ratio * (1 + 1e-9)
    assert any("cut to 3" in each for each in plan.warnings)


def test_every_row_has_a_cell():
    frame = pd.concat([people(500), pd.DataFrame(HOSTILE)]).astype(people(1).dtypes)
    plan = planned(frame)
    exact = exact_of(plan, frame)
    for name, column in zip(plan.keys, plan.columns, strict=True):
        assert exact.exact_keys[name].min() >= 0
        assert exact.exact_keys[name].max() < column.size
    assert exact.exact_columns["count_0"].sum() == len(frame)


def test_a_release_needs_a_delta():
    with connect(people(10)) as session, pytest.raises(privsql.ArgumentError, match="delta above 0"):
        session.release(WORKLOAD, "people", epsilon=1.0)
