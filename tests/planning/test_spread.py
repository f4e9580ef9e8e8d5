"""VAR, STDDEV, COVAR, CORR, REGR: right without noise, never impossible with it, and within their intervals."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.planning.aggregates.moments.moment_boxes import (
    covariance,
    covariance_box,
    variance,
    variance_box,
)
from privsql.planning.aggregates.moments.spread import Spread, Variable
from privsql.planning.precision.interval_arithmetic import Interval

FUNCTIONS = ["VAR_POP(x)", "VAR_SAMP(x)", "STDDEV_POP(x)", "STDDEV(x)", "COVAR_POP(x, y)", "COVAR_SAMP(x, y)", "CORR(x, y)",
             "REGR_SLOPE(y, x)", "REGR_INTERCEPT(y, x)", "REGR_R2(y, x)", "REGR_SLOPE(x, y)", "REGR_COUNT(y, x)",
             "REGR_AVGX(y, x)", "REGR_AVGY(y, x)"]  # fmt: skip


def people(size: int, seed: int = 1) -> pd.DataFrame:
    dice = np.random.default_rng(seed)
    x = dice.integers(-20, 101, size)
    y = np.where(dice.random(size) < 0.05, np.nan, np.clip(0.7 * x + dice.normal(10, 15, size), -50, 150))
    return pd.DataFrame({"x": x, "y": y, "k": dice.integers(0, 3, size)})


def session_of(frame: pd.DataFrame, neighbours: str = "replace-one", copies: int = 0) -> privsql.Session:
    """With so many copies of the frame, told apart by c: as many draws of the noise come from one query."""
    columns = {"x": {"range": [-20, 100]}, "y": {"range": [-50, 150]}, "k": {"range": [0, 2]}}
    if copies:
        frame = pd.concat([frame.assign(c=copy) for copy in range(copies)], ignore_index=True)
        columns["c"] = {"range": [0, copies - 1]}
    return privsql.connect(frame, {"neighbours": neighbours, "tables": {"df": {"columns": columns}}})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_noise_spreads_match_duckdb(function):
    df = people(4000)
    exact = dict(duckdb.sql(f"SELECT k, {function} FROM df GROUP BY k").fetchall())
    found = session_of(df).query(f"SELECT k, {function} AS v FROM df GROUP BY k", epsilon=10_000).fetchall()
    for key, value in found:
        assert value == pytest.approx(exact[key], rel=2e-3, abs=2e-2)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_intervals_cover(function, neighbours):
    """At 90%, over 120 draws of 3 cells each: that 75 of 360 are missed has a chance of 8e-10 at most."""
    session = session_of(people(600), neighbours, copies=120)
    sql = f"SELECT c, k, {function} AS v FROM df GROUP BY c, k"
    exact = session.query(sql, epsilon=10_000).df()["v"].to_numpy()
    found = session.query(sql, epsilon=20).intervals(0.9)
    assert len(found) == 360
    assert (found["v_low"] <= found["v"] + 1e-9).all()
    assert (found["v"] <= found["v_high"] + 1e-9).all()
    assert np.sum((exact < found["v_low"] - 0.05) | (exact > found["v_high"] + 0.05)) < 75
    assert np.isfinite(found["v_high"] - found["v_low"]).any(), (
        "an interval that is always everything says nothing"
    )


@pytest.mark.parametrize("size", [0, 1, 2, 30])
def test_spreads_are_never_impossible(size):
    asked = ", ".join(f"{function} AS v{index}" for index, function in enumerate(FUNCTIONS))
    rows = (
        session_of(people(size), copies=40)
        .query(f"SELECT c, {asked} FROM df GROUP BY c", epsilon=1, show_all=True)
        .df()
    )
    assert len(rows) == 40
    for _, row in rows.iterrows():
        assert 0 <= row["v0"] <= 120**2 / 4 + 1e-6
        assert 0 <= row["v1"] <= 120**2 / 2 + 1e-6
        assert 0 <= row["v2"] <= 60 + 1e-6
        assert abs(row["v4"]) <= 120 * 200 / 4 + 1e-6
        assert not abs(row["v6"]) > 1  # NaN where a variance is 0
        assert not row["v9"] > 1


def test_spread_and_mean_of_one_column_cost_one_measurement():
    session = session_of(people(10))
    plan = session.explain("SELECT VAR_POP(x), STDDEV(x), AVG(x), SUM(x), COUNT(x) FROM df", epsilon=1)
    assert [each.columns for each in plan.measurements] == [
        ("moment_1", "moment_2"),
        ("all_rows",),
    ]  # for next to nothing
    assert (
        len(
            session.explain("SELECT VAR_POP(x), AVG(x), COUNT(x) FROM df WHERE x > 1", epsilon=1).measurements
        )
        == 1
    )
    assert (
        len(
            session.explain(
                "SELECT CORR(x, y), REGR_SLOPE(y, x), COVAR_POP(y, x) FROM df", epsilon=1
            ).measurements
        )
        == 1
    )
    agree = (
        session.query("SELECT VAR_POP(x) AS v, STDDEV_POP(x) AS s FROM df", epsilon=1, show_all=True)
        .df()
        .iloc[0]
    )
    assert agree["s"] == pytest.approx(agree["v"] ** 0.5)


def test_three_moment_columns_cost_one_count():
    """In rows: scale l1 / whole is 1 / epsilon under add-remove, whatever the range."""
    plan = session_of(people(10), "add-remove").explain("SELECT VAR_POP(x) FROM df", epsilon=0.5)
    assert plan.measurements[0].scale / 120**2 == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(20))
def test_extremes_over_a_box_are_bounds(seed):
    """Random boxes, thousands of points in each: the closed form holds them all, and some come close."""
    dice = np.random.default_rng(seed)
    low = dice.uniform(0.3, 60, 4) * (dice.random(4) < 0.8)
    high = low + dice.uniform(0, 40, 4)
    boxes = [Interval(np.array([a]), np.array([b])) for a, b in zip(low, high, strict=True)]
    inside = dice.uniform(0, 1, (20_000, 4))
    inside = np.where(dice.random(inside.shape) < 0.4, np.round(inside), inside)  # corners and edges, often
    points = low + inside * (high - low)
    for box, values in (
        (variance_box(*boxes[:3]), variance(*points[:, :3].T)),
        (covariance_box(*boxes), covariance(*points.T)),
    ):
        assert values.max() <= box.high[0] + 1e-12
        assert values.min() >= box.low[0] - 1e-12


def test_the_formula_is_the_variance():
    dice = np.random.default_rng(5)
    u = dice.random(50)
    columns = {"a": (u**2).sum(), "b": (2 * u * (1 - u)).sum(), "c": ((1 - u) ** 2).sum()}
    noisy = {name: np.array([round(value * 10**9)]) for name, value in columns.items()}
    how = Spread(
        "var_pop", ("a", "b", "c"), Variable(Fraction(0), Fraction(1), squared=True), None, Fraction(10**9)
    )
    assert how.value(noisy)[0] == pytest.approx(np.var(u), rel=1e-6)


def test_units_are_bounded():
    """One person with a thousand rows counts for max_rows of them, at their mean."""
    frame = pd.DataFrame({"who": [0] * 1000 + list(range(1, 101)), "x": [100] * 1000 + [0] * 100})
    policy = {"tables": {"df": {"unit": "who", "max_rows": 10, "columns": {"x": {"range": [0, 100]}}}}}
    value = privsql.connect(frame, policy).query("SELECT VAR_POP(x) FROM df", epsilon=10_000).fetchall()[0][0]
    assert value == pytest.approx(np.var([100] * 10 + [0] * 100), rel=0.01)


def moved(plan, before: pd.DataFrame, after: pd.DataFrame) -> int:
    """How far the cells of a plan without keys are apart over two frames, all together."""
    cells = []
    for frame in (before, after):
        with duckdb.connect() as connection:
            connection.register("df", frame)
            cells.append(connection.execute(plan.sql).fetchall()[0])
    return sum(abs(a - b) for a, b in zip(*cells, strict=True))


@pytest.mark.slow
def test_divided_sums_move_by_one_more_step():
    """Products of four heights are divided after adding up: what is cut off each column may be one step more or less."""
    plan = session_of(people(10), "add-remove").explain("SELECT CORR(x, y) FROM df", epsilon=1)
    (measurement,) = plan.measurements
    many = people(60, seed=5).fillna(0)
    most = max(moved(plan, many[:size], many[: size + 1]) for size in range(30, 60))
    assert measurement.l1 - len(measurement.columns) < most <= measurement.l1


@pytest.mark.parametrize("what", ["VAR_POP(x)", "CORR(x, y)"])
def test_a_unit_with_many_rows_stays_within_its_bound(what):
    columns = {"x": {"range": [-20, 100]}, "y": {"range": [-50, 150]}}
    policy = {
        "neighbours": "add-remove",
        "tables": {"df": {"unit": "who", "max_rows": 3, "columns": columns}},
    }
    others, own = people(30, seed=2).fillna(0).assign(who=range(100, 130)), people(50).fillna(0).assign(who=1)
    plan = privsql.connect(others, policy).explain(f"SELECT {what} FROM df", epsilon=1)
    (measurement,) = plan.measurements
    assert 0.9 * measurement.l1 < moved(plan, others, pd.concat([others, own])) <= measurement.l1


def test_intervals_of_pure_noise_raise_no_numpy_warning():
    """2bc / max(0, 1e-300) overflowed. pytest turns warnings into errors; a user would see numpy's."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 7 AS x, range % 5 AS y FROM range(100)")
    policy = {"tables": {"t": {"columns": {"x": {"range": [0, 6]}, "y": {"range": [0, 4]}}}}}
    session = privsql.connect(connection, policy)
    for _ in range(5):
        session.query("SELECT CORR(x, y), REGR_SLOPE(y, x) FROM t", epsilon=1e-4, fresh=True).intervals()
