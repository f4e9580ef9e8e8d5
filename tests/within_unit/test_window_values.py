"""What windows within a unit compute: the values and types of plain DuckDB, and no failure on any value.

The rows of each unit have an order without ties here, so plain DuckDB has one answer.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import privsql
from privsql.render.duckdb import DUCKDB

POLICY = {
    "tables": {
        "visits": {
            "unit": "user_id",
            "columns": {
                "x": {"range": [0, 10]},
                "y": {"range": [0, 2]},
                "state": {"values": ["CA", "NY", "TX"]},
            },
        },
        "hostile": {
            "unit": "u",
            "max_rows": 9,
            "max_groups": 1,
            "columns": {"y": {"range": [-1e300, 1e300]}},
        },
    }
}
RANKS = ["row_number()", "rank()", "dense_rank()", "ntile(3)", "percent_rank()", "cume_dist()"]
SHIFTS = [
    "lag(x)",
    "lead(x, 2, 0)",
    "lag(day, 3, DATE '2020-01-01')",
    "lag(x, 1 IGNORE NULLS)",
    "lead(state, 2 IGNORE NULLS)",
    "lag(price, 1, 0.5)",
    "lag(x, 0)",
]
FRAMED = [
    "first_value(x)", "last_value(x)", "nth_value(x, 2)", "first_value(x IGNORE NULLS)", "last_value(x IGNORE NULLS)", "nth_value(x, 2 IGNORE NULLS)", "first_value(state)",
    "sum(x)", "sum(small)", "sum(big)", "sum(price)", "sum(good)", "sum(x) FILTER (WHERE x > 2)", "sum(y)", "avg(x)", "avg(price)", "avg(y)",
    "count(*)", "count(x)", "count(DISTINCT x)", "count(*) FILTER (WHERE good)", "count_if(x > 3)", "min(x)", "max(state)", "min(day)", "max(y)", "bool_or(x > 3)", "bool_and(good)",
]  # fmt: skip
ORDERS = [
    "",
    "ORDER BY id",
    "ORDER BY day, id",
    "ORDER BY x DESC, id",
    "ORDER BY x DESC NULLS FIRST, id",
    "ORDER BY y NULLS FIRST, id DESC",
]
FRAMES = [
    "ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ORDER BY id DESC ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ORDER BY id ROWS UNBOUNDED PRECEDING",
    "ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ORDER BY day RANGE BETWEEN INTERVAL 5 DAYS PRECEDING AND CURRENT ROW", "ORDER BY day RANGE BETWEEN 5 PRECEDING AND 2 FOLLOWING",
    "ORDER BY ts DESC RANGE BETWEEN INTERVAL 50 HOURS PRECEDING AND INTERVAL 1 DAY FOLLOWING", "ORDER BY id RANGE BETWEEN 14 PRECEDING AND 7 FOLLOWING",
    "ORDER BY id GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "ORDER BY day RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ORDER BY id RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
]  # fmt: skip
PARTITIONS = ["user_id", "user_id, state", "state, user_id, x % 2", "id % 2, user_id"]
CASES = [
    *((each, order) for each in RANKS + SHIFTS for order in ORDERS[1:]),
    *((each, order) for each in FRAMED for order in ORDERS[:5] + FRAMES),
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect()
    opened.execute(
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, day DATE, x INTEGER, y DOUBLE, state VARCHAR, "
        "ts TIMESTAMP, small TINYINT, big BIGINT, price DECIMAL(10, 2), good BOOLEAN)"
    )
    opened.execute(
        """INSERT INTO visits SELECT i, i % 7, DATE '2024-01-01' + (i * 7)::INTEGER, CASE WHEN i % 9 <> 4 THEN (i * 13) % 11 END, (i % 5) * 0.5,
        ['CA', 'NY', 'TX'][1 + i % 3], TIMESTAMP '2024-01-01' + to_minutes(i * 7919 % 5000), i % 128, 9223372036854775807 - i, i / 7,
        [true, false, NULL][1 + i % 3] FROM range(60) t(i)"""
    )
    opened.execute(
        "CREATE TABLE hostile (u INTEGER NOT NULL, b BIGINT, d DATE, t TIMESTAMP, y DOUBLE, s VARCHAR, f FLOAT)"
    )
    opened.execute(
        """INSERT INTO hostile VALUES (1, 9223372036854775807, 'infinity', 'infinity', 'nan', '', 'nan'), (1, -9223372036854775808, '-infinity', '-infinity', '-nan', NULL, '-inf'),
        (1, NULL, NULL, NULL, NULL, 'x', NULL), (1, 0, '5881580-07-10', '294247-01-10 04:00:54.775806', 1e308, 'a', 3e38), (1, 1, '5877642-06-25 (BC)', '290309-12-22 (BC)', '-0.0', chr(1114111), '-0.0'),
        (1, 2, '1970-01-01', '1970-01-01', 0.0, 'a', 0.0), (1, 9223372036854775806, '2024-01-01', '2024-01-01', -1e308, 'b', -3e38)"""
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def session(connection: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(connection, policy=POLICY)


def _rows(session: privsql.Session, connection: duckdb.DuckDBPyConnection, inner: str) -> list[Any]:
    plan = session.explain(f"SELECT COUNT(v) AS n FROM ({inner})", epsilon=1.0)
    rows = DUCKDB.rows(plan.release.input)
    return connection.execute(f"SELECT id, v, typeof(v) FROM {rows} ORDER BY id").fetchall()


def _alike(one: Any, other: Any) -> bool:
    both = isinstance(one, float) and isinstance(other, float)
    return (both and math.isclose(one, other, abs_tol=1e-9)) or one == other


@pytest.mark.parametrize("place", range(len(CASES)))
def test_values_and_types_are_those_of_duckdb(
    session: privsql.Session, connection: duckdb.DuckDBPyConnection, place: int
) -> None:
    call, order = CASES[place]
    over = f"OVER (PARTITION BY {PARTITIONS[place % len(PARTITIONS)]} {order})"
    ours = _rows(session, connection, f"SELECT id, {call} {over} AS v FROM visits")
    theirs = connection.execute(
        f"SELECT id, v, typeof(v) FROM (SELECT id, {call} {over} AS v FROM visits) ORDER BY id"
    ).fetchall()
    wrong = [(a, b) for a, b in zip(ours, theirs, strict=True) if not _alike(a[1], b[1]) or a[2] != b[2]]
    assert not wrong, (call, over, wrong[:3])


@pytest.mark.parametrize(
    "over",
    [
        "ORDER BY b RANGE BETWEEN 1000 PRECEDING AND 1000 FOLLOWING",
        "ORDER BY b DESC NULLS FIRST RANGE BETWEEN 999999999999999999 PRECEDING AND 999999999999999999 FOLLOWING",
        "ORDER BY d RANGE BETWEEN INTERVAL 999999 DAYS PRECEDING AND INTERVAL 999999 WEEKS FOLLOWING",
        "ORDER BY t DESC RANGE BETWEEN INTERVAL 999999 WEEKS PRECEDING AND CURRENT ROW",
        "ORDER BY y ROWS BETWEEN 1000000 PRECEDING AND 1000000 FOLLOWING",
        "ORDER BY y DESC, s",
        "ORDER BY f, y GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "SUM(b)",
        "AVG(b)",
        "SUM(y)",
        "AVG(y)",
        "MIN(y)",
        "MAX(t)",
        "COUNT(DISTINCT d)",
        "FIRST_VALUE(t)",
        "NTH_VALUE(y, 1000000)",
        "LAST_VALUE(d IGNORE NULLS)",
    ],
)
def test_no_value_makes_a_window_fail(
    session: privsql.Session, connection: duckdb.DuckDBPyConnection, call: str, over: str
) -> None:
    sql = f"SELECT COUNT(v) AS n FROM (SELECT {call} OVER (PARTITION BY u {over}) AS v FROM hostile)"
    plan = session.explain(sql, epsilon=1.0)
    assert len(connection.execute(f"SELECT * FROM {DUCKDB.rows(plan.release.input)}").fetchall()) == 7
    session.query(sql, epsilon=1.0, fresh=True)


@pytest.mark.parametrize(
    "call", ["LAG(b, 1000000)", "LEAD(y, 1, 5)", "NTILE(1000000)", "RANK()", "CUME_DIST()"]
)
def test_no_value_makes_a_rank_fail(session: privsql.Session, call: str) -> None:
    over = "OVER (PARTITION BY u ORDER BY y, b DESC NULLS FIRST)"
    session.query(f"SELECT COUNT(v) AS n FROM (SELECT {call} {over} AS v FROM hostile)", epsilon=1.0)


def test_peers_stay_peers(session: privsql.Session, connection: duckdb.DuckDBPyConnection) -> None:
    """RANK, RANGE and GROUPS do not tell rows apart that the order leaves equal."""
    for call in ("RANK()", "COUNT(*)", "SUM(x)", "CUME_DIST()", "LAST_VALUE(z)"):
        inner = f"SELECT id, {call} OVER (PARTITION BY user_id ORDER BY z) AS v FROM (SELECT *, x // 4 AS z FROM visits)"
        assert [each[:2] for each in _rows(session, connection, inner)] == connection.execute(
            f"{inner} ORDER BY id"
        ).fetchall()
