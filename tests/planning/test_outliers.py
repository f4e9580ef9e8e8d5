"""Sums over stored tables are put right for what lies outside their range: number for number what clamping each value gives."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.algebra.exact import Select, Stacked

TYPES = {
    "TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64,
}  # fmt: skip
RANGES = [(0, 120), (-7, 5), (3, 9), (-9, -4), (6, 6)]
FORMS = [
    "SELECT SUM(x) FROM t", "SELECT AVG(x), SUM(x), COUNT(x) FROM t", "SELECT SUM(x) FROM t WHERE p",
    "SELECT AVG(x) FROM t WHERE x > 4", "SELECT SUM(x) FILTER (WHERE p), COUNT(*), COUNT(*) FILTER (WHERE x < 7) FROM t",
    "SELECT AVG(y) FROM (SELECT x AS y, p AS x FROM t) WHERE x", "SELECT SUM(x), SUM(y), AVG(y) FROM t",
    "SELECT AVG(x), COUNT(*) FROM t WHERE x < 60", "SELECT AVG(x), COUNT(*) FROM t WHERE p",
    "SELECT AVG(x) FILTER (WHERE p), COUNT(*) FILTER (WHERE p), COUNT(*) FILTER (WHERE p AND x IS NULL) FROM t WHERE y > 1",
    "SELECT AVG(x) FROM t WHERE x IS NOT NULL", "SELECT SUM(y) FROM t WHERE x BETWEEN 5 AND 8",
]  # fmt: skip


def _values(type_: str) -> list[int | None]:
    bits = TYPES[type_]
    low, high = (0 if type_.startswith("U") else -(2**bits)), 2**bits - 1
    return [
        None,
        None,
        *(each for each in (low, low + 1, *range(-11, 12), 120, 121, high - 1, high) if low <= each <= high),
    ]


def _tables(type_: str, required: bool) -> duckdb.DuckDBPyConnection:
    """A stored table t, and its rows as a view v, whose ends nobody knows."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {type_}, y {type_}{' NOT NULL' if required else ''}, p BOOLEAN)")
    values = _values(type_)
    pairs = zip(itertools.product(values, (True, False, None)), itertools.cycle(values[::5]), strict=False)
    rows = [(x, 4 if required and y is None else y, p) for (x, p), y in pairs]
    shown = ("(" + ", ".join("NULL" if each is None else str(each) for each in row) + ")" for row in rows)
    connection.execute(f"INSERT INTO t VALUES {', '.join(shown)}; CREATE VIEW v AS FROM t")
    return connection


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("required", [False, True])
def test_corrected_sums_equal_clamped_sums(type_: str, required: bool) -> None:
    connection, seen = _tables(type_, required), 0
    for (low, high), relation in itertools.product(RANGES, ("replace-one", "add-remove")):
        if type_.startswith("U") and low < 0:
            continue
        columns = {"x": {"range": [low, high]}, "y": {"range": [low, high]}}
        policy: Any = {
            "neighbours": relation,
            "tables": {"t": {"columns": columns}, "v": {"columns": columns}},
        }
        with privsql.connect(connection, policy) as session:
            for sql in FORMS:
                raw, clamped = (
                    session.explain(text, epsilon=1) for text in (sql, sql.replace("FROM t", "FROM v"))
                )
                assert " UNION ALL " in raw.sql
                assert " UNION ALL " not in clamped.sql
                # the number of rows is public for the table alone: then another column is in the place of a count
                if [(m.columns, m.l1) for m in raw.measurements] == [
                    (m.columns, m.l1) for m in clamped.measurements
                ]:
                    assert connection.sql(raw.sql).fetchall() == connection.sql(clamped.sql).fetchall(), sql
                    seen += 1
    assert seen > 20


def test_large_sums_are_exact() -> None:
    """A thousand times the ends of 64 bits: differences and sums are of 128."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT CAST(-9223372036854775808 AS BIGINT) AS x FROM range(1000)"
        )
        connection.execute("INSERT INTO t SELECT 9223372036854775807 FROM range(1500)")
        policy = {"tables": {"t": {"columns": {"x": {"range": [-5, 10]}}}}}
        plan = privsql.connect(connection, policy).explain("SELECT SUM(x) FROM t", epsilon=1)
        assert connection.sql(plan.sql).fetchall() == [(1500 * 10 - 1000 * 5,)]


def test_not_null_claims_are_not_trusted() -> None:
    """Rows that the schema rules out count as the low end, as they do where each value is clamped."""
    with duckdb.connect() as promised, duckdb.connect() as other:
        promised.execute("CREATE TABLE t (x INTEGER NOT NULL)")
        other.execute("CREATE TABLE t AS SELECT * FROM (VALUES (NULL), (NULL), (5), (99)) AS v(x)")
        policy = {"neighbours": "add-remove", "tables": {"t": {"columns": {"x": {"range": [3, 9]}}}}}
        plan = privsql.connect(promised, policy).explain("SELECT SUM(x), AVG(x) FROM t", epsilon=1)
        assert other.sql(plan.sql).fetchall() == [(0 + 0 + 2 + 6, 6 + 6 + 4 + 0)]


@pytest.mark.parametrize(
    ("low", "high", "raw"),
    [(0, 2**30, True), (-(2**30), 7, True), (0, 2**30 + 1, False), (-(2**62), 7, False)],
)
def test_ranges_with_a_coarser_grid_are_clamped(low: int, high: int, raw: bool) -> None:
    """Steps of more than 1: values are divided first. Added up as they are, they were taken for so many steps."""
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT i * {max(high, -low) // 4} AS x FROM range(-5, 8) AS r(i)"
        )
        session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [low, high]}}}}})
        plan = session.explain("SELECT SUM(x) AS s FROM t", epsilon=1)
        assert (" UNION ALL " in plan.sql) is raw
        (exact,) = connection.sql(plan.sql).fetchall()[0]
        (clamped,) = connection.sql(f"SELECT sum(least(greatest(x, {low}), {high})) FROM t").fetchall()[0]
        steps = plan.measurements[0].linf / (high - low)  # of the grid, in a range that has 0 in it
        assert exact / steps == pytest.approx(clamped, rel=1e-6)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(x + 1) FROM t", "SELECT SUM(d) FROM t", "SELECT p, SUM(x) FROM t GROUP BY p", "SELECT AVG(w) FROM t",
        "SELECT SUM(x), SUM(x * 2) FROM t", "SELECT SUM(h) FROM t", "SELECT SUM(x), STDDEV(x) FROM t",
        "SELECT SUM(x) FROM (FROM t UNION ALL FROM t)",
    ],
)  # fmt: skip
def test_other_expressions_are_clamped(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x INTEGER, d DOUBLE, p BOOLEAN, h HUGEINT, w DECIMAL(9, 2))")
        policy = {"tables": {"t": {"columns": {name: {"range": [0, 9]} for name in "xdhw"}}}}
        plan = privsql.connect(connection, policy).explain(sql, epsilon=1)
        assert isinstance(plan.releases[0].counted, Select)
        assert not isinstance(plan.releases[0].counted.source, Stacked)


def test_frames_are_clamped() -> None:
    session = privsql.connect(
        pd.DataFrame({"x": [1, 2, 3]}), {"tables": {"df": {"columns": {"x": {"range": [0, 2]}}}}}
    )
    assert "privsql_added" not in session.explain("SELECT SUM(x) FROM df", epsilon=1).sql
