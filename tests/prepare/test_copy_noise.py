"""A copy is never noisier than choosing rows while the query runs: few keys and many, both relations, both kinds of noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from tests.prepare.visits import uses_copy

KEYS = (1, 2, 3, 4, 5, 8, 60)
AGGREGATES = ("COUNT(*)", "SUM(x)", "AVG(x)", "SUM(y)", "COUNT(*), SUM(x)", "COUNT(DISTINCT x)", "VAR_POP(x)")


def made(relation: str) -> privsql.Session:
    """A table with a column of 1, 2, 3 ... keys, none of them NULL."""
    rows = np.arange(600)
    frame = pd.DataFrame(
        {"user_id": rows % 9, "x": rows % 11, "y": rows % 7, **{f"k{keys}": rows % keys for keys in KEYS}}
    )
    columns = {
        "x": {"range": [0, 10]},
        "y": {"range": [-3, 9]},
        **{f"k{keys}": {"range": [0, keys - 1]} for keys in KEYS},
    }
    policy = {
        "neighbours": relation,
        "tables": {"t": {"unit": "user_id", "max_groups": 40, "max_rows": 7, "columns": columns}},
    }
    session = privsql.connect({"t": frame}, policy)
    session.prepare("t")
    return session


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def session(request):
    with made(request.param) as session:
        yield session


def both(session, sql, **named):
    plan, plain = (
        session.explain(sql, epsilon=1, **named),
        session.explain(sql, epsilon=1, prepared=False, **named),
    )
    assert uses_copy(plan) and not uses_copy(plain)
    return plan, plain


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("keys", KEYS)
def test_no_noisier_than_without_it(session, keys, delta):
    for aggregate in AGGREGATES:
        for groups, rows in ((1, 1), (2, 3), (3, 7), (5, 1), (12, 3), (40, 2)):
            sql = f"SELECT k{keys}, {aggregate} FROM t GROUP BY 1"
            plan, plain = both(session, sql, delta=delta, max_groups=groups, max_rows=rows)
            for with_it, without in zip(plan.measurements, plain.measurements, strict=True):
                assert with_it.half_width(0.95) <= without.half_width(0.95), (
                    sql,
                    groups,
                    rows,
                    with_it,
                    without,
                )


def test_no_noisier_over_grouping_sets_and_for_labels(session):
    for sql in ("SELECT k4, k3, COUNT(*) FROM t GROUP BY ROLLUP (k4, k3)", "SELECT k4, MEDIAN(x) FROM t GROUP BY k4",
                "SELECT k4 FROM t GROUP BY k4 ORDER BY COUNT(*) DESC LIMIT 1",
                "SELECT k4 FROM t GROUP BY k4 ORDER BY COUNT(*) DESC LIMIT 3"):  # fmt: skip
        plan, plain = both(session, sql, max_groups=3)
        assert plan.measurements[0].scale <= plain.measurements[0].scale, sql


def test_no_more_rows_are_dropped_than_necessary(session):
    """One row of a unit more, and there would be more noise, or more than the policy allows."""
    moves = 2 if session.explain("SELECT COUNT(*) FROM t", epsilon=1).neighbours == "replace-one" else 1
    for keys in KEYS:
        for groups, rows in ((1, 1), (2, 3), (3, 7), (5, 1)):
            plan, plain = both(
                session, f"SELECT k{keys} AS k, COUNT(*) FROM t GROUP BY k", max_groups=groups, max_rows=rows
            )
            cells, kept = plan.cells, plan.stability.rows
            more = min(moves, cells) * (kept + 1)
            assert kept == min(groups, cells) * rows or more > plain.measurements[0].l1, (keys, groups, rows)


def test_copies_under_gaussian_noise():
    with made("replace-one") as session:
        sql = "SELECT k60, COUNT(*) FROM t GROUP BY 1"
        plan, plain = both(session, sql, delta=1e-6)
        width, kept = plain.measurements[0].half_width(0.95), plan.stability.rows
        assert isinstance(plain.measurements[0], GaussianMeasurement)
        assert not isinstance(plan.measurements[0], GaussianMeasurement)
        assert 0.97 * width < plan.measurements[0].half_width(0.95) <= width, "as many rows as may be"
        assert f"Keep at most {kept} rows per unit, by a stored rank: {kept} rows per person" in str(plan)
        assert "not 280, so that there is no more noise than without the copy" in str(plan)
        assert both(session, sql)[0].stability.rows == 60 * 7 // 2, (
            "of Laplace noise few keys are all there is to say"
        )
        forced, plain = both(session, sql, delta=1e-6, mechanism="gaussian")
        assert isinstance(forced.measurements[0], GaussianMeasurement) and forced.stability.rows < kept
        assert 0.97 < forced.measurements[0].half_width(0.95) / plain.measurements[0].half_width(0.95) <= 1


def test_a_renamed_column_is_not_confused_with_a_stored_one():
    rows = np.arange(600)
    frame = pd.DataFrame({"user_id": rows // 2, "x": rows % 11, "y": rows % 7})
    columns = {"x": {"range": [0, 10]}, "y": {"range": [0, 6]}}
    with privsql.connect(
        {"t": frame}, {"tables": {"t": {"unit": "user_id", "max_rows": 7, "columns": columns}}}
    ) as session:
        session.prepare("t")
        swapped = "(SELECT y AS x, x AS y FROM t)"
        for sql, true in (
            ("SELECT SUM(x) FROM t", frame.x.sum()),
            (f"SELECT SUM(x) FROM {swapped}", frame.y.sum()),
        ):
            assert uses_copy(session.explain(sql, epsilon=1))
            assert session.query(sql, epsilon=9000).fetchall() == [(true,)]
