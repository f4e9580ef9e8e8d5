"""Every name of the public interface that the pipeline has, as a user meets it."""

from __future__ import annotations

import json
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privsql
from tests.conftest import POLICY, clinic

GROUPED = "SELECT state, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY state"


# -- plans -----------------------------------------------------------------------------------------------------
def test_a_plan_has_the_documented_attributes(session):
    plan = session.explain(GROUPED, epsilon=0.5)
    assert isinstance(plan, privsql.Plan)
    assert plan.keys == ["state"]
    assert (plan.neighbours, plan.epsilon, plan.delta) == ("replace-one", 0.5, 0.0)
    for each in plan.measurements:
        assert each.columns
        assert isinstance(each.mechanism, str)
        assert isinstance(each.l1, int)
        assert isinstance(each.linf, int)
        assert 0 < each.linf <= each.l1
        assert each.scale == pytest.approx(each.l1 / each.epsilon)
        assert each.delta == 0.0
        assert isinstance(each.why, str)
    assert math.fsum(each.epsilon for each in plan.measurements) == pytest.approx(0.5)
    assert [each.name for each in plan.outputs] == ["state", "n", "mean"]
    assert [len(each.measurements) > 0 for each in plan.outputs] == [False, True, True]
    assert all(isinstance(each.formula, str) for each in plan.outputs)


def test_a_plan_is_json(session):
    for sql in (GROUPED, "SELECT mode(state) FROM visits", "SELECT COUNT(*) FROM visits"):
        plan = session.explain(sql, epsilon=1)
        whole = json.loads(json.dumps(plan.to_dict()))
        assert whole["sql"] == plan.sql
        assert whole["keys"] == plan.keys
        assert whole["epsilon"] == 1.0
        assert len(whole["measurements"]) == len(plan.measurements)
        assert whole["measurements"][0]["l1"] == plan.measurements[0].l1
        assert [each["name"] for each in whole["outputs"]] == [each.name for each in plan.outputs]


def test_the_sql_of_a_plan_runs_by_itself(session, visits):
    """Its columns are the keys and the integer columns of the measurements, so that anyone can falsify the bounds."""
    plan = session.explain(GROUPED, epsilon=1)
    with duckdb.connect() as plain:
        plain.register("visits", visits)
        result = plain.execute(plan.sql).df()
    assert list(result.columns) == [
        *plan.keys,
        *(column for each in plan.measurements for column in each.columns),
    ]
    for each in plan.measurements:
        for column in each.columns:
            assert pd.api.types.is_integer_dtype(result[column])
    assert set(result["state"].dropna()) <= {"CA", "NY", "TX"}


def test_a_plan_prints_as_a_derivation(session):
    text = str(session.explain(GROUPED, epsilon=0.5))
    assert text == repr(session.explain(GROUPED, epsilon=0.5))
    for word in (
        "state",
        "n",
        "mean",
        "l1 = ",
        "linf = ",
        "discrete Laplace",
        "scale",
        "epsilon 0.5",
        "replace-one",
        "95%",
        "visits",
    ):
        assert word in text, word


def test_accuracy_before_anything_is_spent(session):
    accuracy = session.explain(GROUPED, epsilon=0.5).accuracy(0.95)
    assert accuracy["n"] > 0
    assert accuracy["mean"] is None  # depends on how many rows are averaged
    assert session.explain(GROUPED, epsilon=0.5).accuracy(0.95, rows=1000)["mean"] > 0
    assert session.explain(GROUPED, epsilon=0.5).accuracy(0.99)["n"] > accuracy["n"]
    assert session.explain(GROUPED, epsilon=5).accuracy(0.95)["n"] < accuracy["n"]
    assert "+-" in str(accuracy)
    assert session.budget.spent.epsilon == 0


# -- answers ---------------------------------------------------------------------------------------------------
@pytest.fixture
def answer(session):
    return session.query(GROUPED, epsilon=100)


def test_an_answer_converts_to_every_format(answer):
    frame = answer.df()
    assert isinstance(frame, pd.DataFrame)
    assert answer.columns == list(frame.columns) == ["state", "n", "mean"]
    assert isinstance(answer.arrow(), pa.Table)
    assert answer.arrow().column_names == answer.columns
    assert isinstance(answer.pl(), pl.DataFrame)
    assert answer.pl().columns == answer.columns
    rows = answer.fetchall()
    assert [type(each) for each in rows[0]] == [str, int, float]
    assert [row[0] for row in rows] == ["CA", "NY", "TX", None]
    assert (
        rows == list(answer.pl().iter_rows()) == [tuple(row.values()) for row in answer.arrow().to_pylist()]
    )
    assert len(answer) == 4


def test_an_answer_cannot_be_changed_through_its_frame(answer):
    frame = answer.df()
    frame.loc[0, "n"] = 0
    frame["n"] = 0
    assert answer.df()["n"].iloc[0] != 0
    assert answer.intervals()["n"].iloc[0] != 0


def test_counts_are_integers(session):
    sql = "SELECT smoker, COUNT(*) AS a, COUNT(age) AS b, COUNT_IF(smoker) AS c, COUNT(*) FILTER (WHERE age > 5) AS d, SUM(change) AS s "  # noqa: E501
    frame = session.query(f"{sql} FROM visits GROUP BY smoker", epsilon=1).df()
    assert all(frame[name].dtype == np.int64 for name in "abcds")
    frame = session.query(
        f"{sql}, AVG(age) AS m FROM visits GROUP BY smoker HAVING a > -1000 ORDER BY a LIMIT 1", epsilon=1
    ).df()
    assert all(frame[name].dtype == np.int64 for name in "abcds")


def test_types_of_keys(session):
    policy = {
        "tables": {
            "visits": {
                "columns": {
                    **POLICY["tables"]["visits"]["columns"],
                    "day": {"range": ["2024-01-01", "2024-03-31"]},
                }
            }
        }
    }
    dated = privsql.connect({"visits": clinic()}, policy)
    answer = dated.query(
        "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=1
    )
    assert pd.api.types.is_datetime64_any_dtype(answer.df()["m"])
    assert answer.df()["m"].notna().sum() == 3
    answer = dated.query("SELECT CAST(day AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=1)
    assert str(answer.fetchall()[0][0]) == "2024-01-01"
    answer = session.query("SELECT smoker, age // 50 AS h, COUNT(*) FROM visits GROUP BY ALL", epsilon=1)
    assert {row[0] for row in answer.fetchall()} == {False, True}
    assert {row[1] for row in answer.fetchall()} == {0, 1, 2, None}


def test_intervals_stand_beside_their_numbers(answer):
    table = answer.intervals(0.9)
    assert list(table.columns) == ["state", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert (table["n_low"] <= table["n"]).all()
    assert (table["n"] <= table["n_high"]).all()
    wide = answer.intervals(0.999)
    assert (wide["n_low"] <= table["n_low"]).all()
    pd.testing.assert_frame_equal(answer.intervals(), answer.intervals(0.95))


def test_a_receipt_is_json_and_names_everything(answer):
    receipt = json.loads(json.dumps(answer.receipt))
    assert receipt["outputs"] == ["state", "n", "mean"]
    assert (receipt["epsilon"], receipt["delta"], receipt["neighbours"]) == (100.0, 0.0, "replace-one")
    assert (receipt["charged"], receipt["stored"], receipt["cells"]) == (100.0, False, 4)
    assert {"columns", "mechanism", "l1", "linf", "scale", "epsilon", "why"} <= set(
        receipt["measurements"][0]
    )
    assert answer.plan.epsilon == 100.0


def test_an_answer_prints_well(answer, session):
    text = str(answer)
    lines = text.splitlines()
    assert lines[0].split() == ["state", "n", "mean"]
    assert "CA" in text
    assert "NULL" in text
    assert "[" in text
    assert "epsilon 100" in text
    assert repr(answer) == text
    assert max(len(line) for line in lines) < 120
    html = answer._repr_html_()
    assert html.startswith("<table")
    assert html.count("<tr>") == 5
    many = session.query("SELECT age, COUNT(*) FROM visits GROUP BY age", epsilon=1)
    assert "122 rows" in str(many)
    assert len(str(many).splitlines()) < 30


def test_html_is_escaped():
    frame = pd.DataFrame({"k": ["<b>x</b>"]})
    session = privsql.connect(frame, {"tables": {"df": {"columns": {"k": {"values": ["<b>x</b>"]}}}}})
    html = session.query('SELECT k, COUNT(*) AS "<i>" FROM df GROUP BY k', epsilon=1)._repr_html_()
    assert "<b>" not in html
    assert "<i>" not in html


def test_plots_have_error_bars(answer, session):
    from matplotlib import pyplot

    axes = answer.plot()
    assert len(axes.patches) == 4
    assert axes.containers
    own = pyplot.subplots()[1]
    assert session.query("SELECT COUNT(*) FROM visits", epsilon=1).plot(ax=own) is own
    with pytest.raises(privsql.ArgumentError):
        session.query("SELECT mode(state) FROM visits", epsilon=1).plot()
    pyplot.close("all")


# -- arguments -------------------------------------------------------------------------------------------------
def test_within_and_confidence(session):
    plan = session.explain(
        "SELECT state, COUNT(*) AS n FROM visits GROUP BY state", within=20, confidence=0.95
    )
    assert plan.accuracy(1 - 0.05 / plan.cells)["n"] <= 20
    tighter = session.explain(
        "SELECT state, COUNT(*) AS n FROM visits GROUP BY state", within=20, confidence=0.999
    )
    assert tighter.epsilon > plan.epsilon
    answer = session.query("SELECT state, COUNT(*) AS n FROM visits GROUP BY state", within=20)
    assert answer.plan.epsilon == plan.epsilon == session.budget.spent.epsilon
    with pytest.raises(privsql.ArgumentError, match="depends on the data"):
        session.explain(GROUPED, within=20)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("bigquery", "SELECT `state`, COUNTIF(smoker) AS n FROM `visits` GROUP BY `state`"),
        ("mysql", "SELECT `state`, COUNT(*) AS n FROM visits WHERE smoker = TRUE GROUP BY `state`"),
        ("tsql", "SELECT [state], COUNT(*) AS n FROM [visits] WHERE [smoker] = 1 GROUP BY [state]"),
        ("postgres", 'SELECT "state", COUNT(*) FILTER (WHERE smoker) AS n FROM visits GROUP BY 1'),
        ("snowflake", "SELECT state, COUNT_IF(smoker) AS n FROM visits GROUP BY state"),
        ("spark", "SELECT state, count_if(smoker) AS n FROM visits GROUP BY state"),
    ],
)
def test_other_dialects(session, dialect, sql):
    try:
        rows = session.query(sql, epsilon=10_000, dialect=dialect).fetchall()
    except privsql.SqlError as error:
        assert dialect == "tsql", error  # its booleans are numbers  # noqa: PT017
        return
    assert rows == [("CA", 25), ("NY", 25), ("TX", 25), (None, 0)]


def test_mechanisms_of_a_choice(session):
    sql = "SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1"
    seen = {
        session.explain(sql, epsilon=1, mechanism=each).measurements[0].mechanism
        for each in ("permute-and-flip", "exponential", "laplace", "gumbel")
    }
    assert len(seen) == 4
    assert "permute-and-flip" in session.explain(sql, epsilon=1).measurements[0].mechanism.value
    assert session.query(sql, epsilon=1000).fetchall()[0][0] in {"CA", "NY", "TX"}


def test_positional_arguments(session):
    assert session.query("SELECT COUNT(*) FROM visits", 0.5, 0.0).plan.epsilon == 0.5
    assert session.explain("SELECT COUNT(*) FROM visits", 0.5).epsilon == 0.5


def test_connect_takes_policy_by_position():
    assert privsql.connect({"visits": clinic(5)}, POLICY).budget.limit.epsilon == math.inf


def test_all_errors_derive_from_privsql_error():
    for name in privsql.__all__:
        value = getattr(privsql, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, (privsql.PrivsqlError, Warning))
