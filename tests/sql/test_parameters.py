"""Parameters and the time of a query: constants in its tree, never text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pytest

import privsql

ROWS = "SELECT i AS id, i % 100 AS age, ['CA', 'NY', '?1'][1 + i % 3] AS state, DATE '2024-01-01' + i::INT AS day"


@pytest.fixture(scope="module")
def session():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE people AS {ROWS} FROM range(300) r(i)")
        with privsql.connect(connection) as opened:
            opened.plain = connection
            yield opened


def noiseless(session, sql, **arguments):
    return session.query(sql, epsilon=10_000, **arguments).fetchall()


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("age >= ? AND state = ?", [65, "CA"]),
        ("state = $1 AND age >= $2", ["NY", 30]),
        ("age >= $age AND state = $state", {"age": 65, "state": "CA"}),
        ("age < ? OR age IS NULL", [None]),
        ("age > ?", [-3.5]),
        ("age > ?", [Decimal("49.5")]),
        ("age > ?", [np.int64(50)]),
        ("day >= ?", [dt.date(2024, 3, 1)]),
        ("day >= ?", [dt.datetime(2024, 3, 1, 12)]),
        ("(age > 50) = ?", [True]),
        ("state = '?1' OR age = ?", [7]),
        ("state = ?", ["x' OR TRUE --"]),
        ("age > -?", [-5]),
    ],
)
def test_values_mean_what_they_mean_to_duckdb(session, where, params):
    sql = f"SELECT COUNT(*) AS n FROM people WHERE {where}"
    plain = (
        [each.item() if isinstance(each, np.generic) else each for each in params]
        if isinstance(params, list)
        else params
    )
    assert noiseless(session, sql, params=params) == session.plain.execute(sql, plain).fetchall()


def test_parameters_of_other_dialects(session):
    found = noiseless(
        session, "SELECT COUNT(*) AS n FROM people WHERE age >= @a", params={"a": 90}, dialect="bigquery"
    )
    assert found == [(30,)]


def test_parameters_reach_the_sql_above_the_noise(session):
    sql = (
        "SELECT n + ? AS m, SUM(n) OVER () AS s FROM (SELECT COUNT(*) AS n FROM people WHERE age < ?) LIMIT ?"
    )
    assert noiseless(session, sql, params=[5, 10, 1]) == [(35, 30)]


@pytest.mark.parametrize("params", [None, [], [1, 2], {"a": 1}, [object()], "x", 5, [float], [b"x"], [2**70]])
def test_parameters_that_do_not_fit_are_refused(session, params):
    with pytest.raises(privsql.PrivsqlError) as refused:
        session.explain("SELECT COUNT(*) AS n FROM people WHERE age > ?", epsilon=1.0, params=params)
    assert refused.value.code == "argument-params"


def test_a_query_with_other_values_is_another_query(session):
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > ?"
    session.query(sql, epsilon=0.5, params=[20])
    assert session.query(sql, epsilon=0.5, params=[20]).stored
    assert not session.query(sql, epsilon=0.5, params=[21]).stored


def test_all_parts_of_a_query_read_one_time(session):
    sql = "SELECT (SELECT COUNT(*) FROM people WHERE day < now()) AS a, (SELECT COUNT(*) FROM people WHERE day < now()) AS b"
    plan = session.explain(sql, epsilon=1.0)
    assert len(plan.releases) == 1
    today = str(dt.datetime.now(dt.UTC).date())
    assert (
        today in session.explain("SELECT COUNT(*) AS n FROM people WHERE day < current_date", epsilon=1.0).sql
    )
