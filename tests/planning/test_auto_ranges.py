"""Ranges that nobody knows: found privately for a stated share of epsilon, and said so."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.algebra.literals import convert, literal_of
from privsql.planning.limits.range_histograms import fitted, range_of
from privsql.requests.stage import Stage
from privsql.types import DOUBLE, decimal
from tests.support.databases import database


def frame(rows: int = 20_000) -> pd.DataFrame:
    spread = np.linspace(0, 1, rows)
    return pd.DataFrame(
        {"x": 100 * spread, "i": (spread * 900).astype(int), "n": -50 * spread, "k": ["a", "b"] * (rows // 2)}
    )


@pytest.mark.parametrize(
    ("column", "low", "high"), [("x", 0, 128), ("i", 0, 1024), ("n", -64, 0), ("x - x + i", 0, 1024)]
)
def test_the_found_range_covers_the_values_tightly(column, low, high):
    data = frame()
    answer = data.dp.query(f"SELECT AVG({column}) AS a FROM df", epsilon=2, ranges="auto")
    found = {each["column"]: each for each in answer.dp.receipt["ranges_found"]}
    last = found[f"df.{column.split()[-1]}"]
    assert (last["low"], last["high"]) == (low, high)
    truth = data.eval(column).mean()
    assert abs(answer["a"][0] - truth) < 0.05 * (high - low)


def test_the_price_is_stated_and_exact():
    data = frame().dp.protect(budget=3.0)
    sql = "SELECT SUM(x) AS s, AVG(i) AS a FROM df"
    plan = data.dp.explain(sql, epsilon=1, ranges="auto")
    assert plan.epsilon == pytest.approx(0.1)
    assert "0.8" in plan.notes[-1]
    receipt = data.dp.query(sql, epsilon=1, ranges="auto").dp.receipt
    assert receipt["epsilon"] == receipt["charged"] == pytest.approx(1)
    assert data.dp.budget.spent.epsilon == pytest.approx(1)
    again = data.dp.query(sql, epsilon=1, ranges="auto").dp.receipt
    assert again["charged"] == 0
    assert data.dp.budget.spent.epsilon == pytest.approx(1)


def test_nothing_is_spent_if_search_and_query_are_not_affordable():
    data = frame().dp.protect(budget=0.5)
    with pytest.raises(privsql.BudgetError):
        data.dp.query("SELECT SUM(x) FROM df", epsilon=1, ranges="auto")
    assert data.dp.budget.spent.epsilon == 0


def test_a_stored_answer_is_free_even_when_the_budget_is_spent():
    """The searches are stored, too; once, the total was checked against the budget again, and refused."""
    data = frame().dp.protect(budget=1.0)
    first = data.dp.query("SELECT SUM(x) AS s FROM df", epsilon=1, ranges="auto")
    again = data.dp.query("SELECT SUM(x) AS s FROM df", epsilon=1, ranges="auto")
    assert again.dp.receipt["charged"] == 0 and again.equals(first)


def test_a_range_found_before_is_not_charged_again():
    data = frame().dp.protect(budget=2.0)
    data.dp.query("SELECT SUM(x) AS s FROM df", epsilon=1, ranges="auto")
    sql = "SELECT AVG(x) AS s FROM df"
    data.dp.query("SELECT COUNT(*) AS n FROM df WHERE i > 3", epsilon=0.1)
    plan = data.dp.explain(sql, epsilon=1, ranges="auto")
    assert not plan.refusal, "0.8 of 0.9 that is left"
    assert data.dp.query(sql, epsilon=1, ranges="auto").dp.receipt["charged"] == pytest.approx(0.8)
    assert data.dp.budget.spent.epsilon == pytest.approx(1.9)


def test_counts_and_declared_ranges_need_no_search():
    data = frame()
    assert data.dp.query("SELECT COUNT(x) FROM df", epsilon=1, ranges="auto").dp.receipt["ranges_found"] == []
    declared = {"x": (0, 100)}
    assert data.dp.query("SELECT SUM(x) FROM df", epsilon=1, ranges=declared).dp.receipt["ranges_found"] == []


def test_by_column_in_a_policy_through_subqueries_and_units():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v AS SELECT i % 2000 AS u, i % 90 AS x, i % 7 AS y FROM range(20000) r(i)"
    )
    columns = {"x": {"range": "auto"}, "y": {"range": [0, 6]}}
    policy = {"tables": {"v": {"unit": "u", "max_rows": 10, "columns": columns}}}
    session = privsql.connect(connection, policy)
    answer = session.query("SELECT SUM(z) AS s FROM (SELECT x * 2 AS z, y FROM v WHERE y > 1)", epsilon=2)
    assert [each.column for each in answer.found] == ["v.x"]
    assert answer.found[0].high == 128
    assert session.query("SELECT SUM(y) AS s FROM v", epsilon=1).found == ()


def test_unused_columns_are_not_searched():
    policy = {"tables": {"df": {"columns": {"x": {"range": "auto"}, "y": {"range": "auto"}}}}}
    session = privsql.connect(pd.DataFrame({"x": range(500), "y": range(500)}), policy)
    answer = session.query("SELECT SUM(a) AS s FROM (SELECT x AS a, y AS b FROM df)", epsilon=2)
    assert [each.column for each in answer.found] == ["df.x"]
    keyed = {"tables": {"v": {"unit": "u", "columns": {"x": {"range": "auto"}, "y": {"range": "auto"}}}}}
    session = privsql.connect({"v": pd.DataFrame({"u": range(500), "x": range(500), "y": range(500)})}, keyed)
    answer = session.query(
        "SELECT SUM(a) AS s FROM (SELECT u, MAX(x) AS a, MAX(y) AS b FROM v GROUP BY u)", epsilon=2
    )
    assert [each.column for each in answer.found] == ["v.x"]


def test_odd_names_and_no_rows():
    data = pd.DataFrame({'a "b" {c}': pd.Series([], dtype=float)})
    answer = data.dp.query('SELECT SUM("a ""b"" {c}") AS s FROM df', epsilon=1, ranges="auto")
    assert len(answer) == 1


def test_within_and_invalid_range_arguments_are_refused():
    with pytest.raises(privsql.ArgumentError) as caught:
        frame().dp.query("SELECT SUM(x) FROM df", within=5, ranges="auto")
    assert caught.value.code == "argument-within"
    with pytest.raises(privsql.ArgumentError):
        frame().dp.query("SELECT SUM(x) FROM df", epsilon=1, ranges="automatic")


def test_buckets_above_the_noise_are_kept():
    assert range_of([0, 101, 105, -102], [5, 90, 3, 0], 10, DOUBLE) == (0.0, 2.0)
    assert range_of([0, 101, 105, -102], [5, 90, 30, 70], 10, DOUBLE) == (-4.0, 32.0)
    assert range_of([0, 101, 105], [1, 2, 4], 10, DOUBLE) == (
        0.0,
        32.0,
    )  # nothing stands out: the most frequent
    assert range_of([0, 101], [40, 2], 10, DOUBLE) == (0.0, 0.0)


@pytest.mark.parametrize("precision", range(1, 39))
def test_every_end_that_may_be_found_can_be_declared(precision):
    """Of a DECIMAL(4, 2) nothing reaches 128: the query was refused when its search had been paid for."""
    for scale in range(precision + 1):
        column = decimal(precision, scale)
        for end in (0.0, *(sign * 2.0**power for power in range(-20, 61) for sign in (1, -1))):
            held = fitted(end, column)
            declared = literal_of(Decimal(repr(held)))
            assert declared is not None and convert(declared, column) is not None, (end, column)
            largest = (10**precision - 1) / Decimal(10**scale)
            assert abs(held) >= min(abs(end), float(largest) * (1 - 2e-15)) and held * end >= 0


@pytest.mark.parametrize(
    ("type_", "value", "high"),
    [
        ("DECIMAL(4, 2)", "i % 100", 99.99),
        ("DECIMAL(9, 9)", "0.5", 0.5),
        ("DECIMAL(38, 38)", "'0.7'", 1.0),
        ("DECIMAL(3, 1)", "0.1", 0.2),
        ("DECIMAL(18, 0)", "999999999999999999", 999999999999999900.0),
    ],
)
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "MEDIAN"])
def test_decimals_may_end_within_a_bucket(type_, value, high, aggregate):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT CAST({value} AS {type_}) AS x FROM range(5000) r(i)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": "auto"}}}}})
    answer = session.query(f"SELECT {aggregate}(x) AS a FROM t", epsilon=5)
    (found,) = answer.receipt["ranges_found"]
    assert (found["low"], found["high"]) == (0, pytest.approx(high))
    assert session.budget.spent.epsilon == 5


def test_no_range_is_searched_when_delta_is_insufficient():
    connection = database("CREATE TABLE t AS SELECT 'a' AS k, 1 AS x FROM range(100)")
    policy = {"budget": {"epsilon": 5, "delta": 1e-9}, "tables": {"t": {"columns": {"x": {"range": "auto"}}}}}
    session = privsql.connect(connection, policy)
    with pytest.raises(privsql.BudgetError):
        session.query("SELECT k, SUM(x) FROM t GROUP BY k", epsilon=1, delta=1e-6)
    assert session.budget.spent.epsilon == 0


def test_weights_apply_to_the_query_and_not_to_the_range_search():
    """explain() accepted them; query() raised that there was no such output, as it looked among the outputs of the search."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 100 AS x FROM range(5000)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": "auto"}}}}})
    sql, weights = "SELECT SUM(x) AS s, COUNT(*) AS n FROM t", {"s": 3}
    session.explain(sql, epsilon=1, weights=weights)
    assert session.query(sql, epsilon=1, weights=weights).columns == ["s", "n"]


BUCKETS = """SELECT bucket, COUNT(*) AS n FROM (
    SELECT CASE WHEN CAST(x AS DOUBLE) = 0 THEN 0 WHEN CAST(x AS DOUBLE) > 0 THEN {size} ELSE -({size}) END AS bucket
    FROM t WHERE x IS NOT NULL
) GROUP BY bucket HAVING bucket IS NOT NULL"""


@pytest.mark.parametrize("type_", ["INTEGER", "DOUBLE", "DECIMAL(9, 2)", "HUGEINT"])
def test_a_search_measures_what_this_query_measures(type_):
    size = "least(greatest(CAST(ceil(log2(abs(CAST(x AS DOUBLE)))) AS INTEGER), -20), 60) + 100"
    session = privsql.connect(database(f"CREATE TABLE t(x {type_})"))
    plan = session.plan(Stage("", 1.0, sizes_of=("t", "x")))
    assert plan.to_dict() == session.explain(BUCKETS.format(size=size), 1.0).to_dict()


def test_a_search_is_named_in_the_history_and_found_again_beside_the_ledger(tmp_path):
    def total() -> dict[str, Any]:
        connection = database("CREATE TABLE t AS SELECT range % 100 AS x FROM range(5000)")
        policy = {"tables": {"t": {"columns": {"x": {"range": "auto"}}}}}
        with privsql.connect(connection, policy, ledger=tmp_path / "t.ledger", version="1") as session:
            receipt = session.query("SELECT SUM(x) AS s FROM t", epsilon=1).receipt
            assert session.history()["question"].tolist()[0] == "values by size, of t.x"
            return receipt

    first, again = total(), total()
    assert first["charged"] == pytest.approx(1) and again["charged"] == 0
    assert {**again["ranges_found"][0], "epsilon": 0.2} == first["ranges_found"][0]
