"""Counts priced together, since no row counts in two of them: the SQL holds them to it, whatever the analysis believes."""

from __future__ import annotations

import itertools

import duckdb
import pytest

import privsql
from privsql.planning.aggregates import count_conditions

BITS = 5


def cells(connection: duckdb.DuckDBPyConnection, sql: str) -> list[int]:
    (row,) = connection.execute(sql).fetchall()
    return list(row)


def test_dates_without_a_timestamp_count_once() -> None:
    """The attack: DuckDB finds 5000000 BC before 2024 although it has no TIMESTAMP. With five such tests 32 counts were priced as
    exclusive, and one row was in all of them."""
    tests = [
        " AND ".join(
            f"(d+{i})::TIMESTAMP IS NULL" if bit else f"(d+{i})::TIMESTAMP < '2024-01-01'"
            for i, bit in enumerate(bits)
        )
        for bits in itertools.product((0, 1), repeat=BITS)
    ]
    asked = f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE {test})' for test in tests)} FROM t"
    found = []
    for day in ("5000000-01-01 (BC)", "294248-01-01", "2025-01-01", "2020-01-01"):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (d DATE)")
        connection.execute("INSERT INTO t SELECT CAST(? AS DATE)", [day])
        plan = privsql.connect(connection).explain(asked, epsilon=1)
        assert (len(plan.measurements), plan.measurements[0].l1) == (1, 2)
        found.append(cells(connection, plan.sql))
    assert max(sum(abs(a - b) for a, b in zip(*pair)) for pair in itertools.combinations(found, 2)) <= 2


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", [{}, {"unit": "u", "max_rows": 3}])
@pytest.mark.parametrize("by", ["", " GROUP BY k"])
def test_a_wrong_belief_moves_no_count_beyond_its_bound(monkeypatch, neighbours, unit, by) -> None:
    monkeypatch.setattr(
        count_conditions, "are_disjoint", lambda one, other: one is not None and other is not None
    )
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (u INTEGER, x INTEGER, k BOOLEAN)")
    session = privsql.connect(connection, {"neighbours": neighbours, "tables": {"t": unit}})
    tests = ("x > 0", "x > 1", "x IS NOT NULL", "x < 9", "u = 1 OR x > 5")
    counted = ", ".join(
        [*(f"COUNT(*) FILTER (WHERE {each})" for each in tests), "COUNT(u) FILTER (WHERE x > 2)"]
    )
    plan = session.explain(f"SELECT {'k, ' if by else ''}{counted} FROM t{by}", epsilon=1)
    (measurement,) = plan.measurements
    rows = [(1, 7, True), (1, 1, False), (1, None, None), (1, 0, True)]
    if not unit:
        neighbouring = [([one], [other]) for one in rows for other in rows]
    else:
        people = itertools.islice(itertools.combinations(rows * 2, 4), 0, None, 4)
        neighbouring = [(list(one), list(other)) for one in people for other in ([], rows[:2])]
    for one, other in neighbouring:
        moved: dict[object, list[int]] = {}
        for sign, person in ((1, one), (-1, other if neighbours == "replace-one" else [])):
            connection.execute("DELETE FROM t")
            if person:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [list(each) for each in person])
            for row in connection.execute(plan.sql).fetchall():
                key, cell = (row[0], row[1:]) if by else (None, row)
                before = moved.setdefault(key, [0] * len(cell))
                moved[key] = [a + sign * b for a, b in zip(before, cell, strict=True)]
        assert sum(abs(each) for cell in moved.values() for each in cell) <= measurement.l1


@pytest.mark.parametrize(
    "function", ["COUNT(*) FILTER (WHERE x > 1)", "SUM(CASE WHEN x > 1 THEN 1 ELSE 0 END)", "COUNT(y)"]
)
def test_exclusive_counts_beside_sums_are_right(function: str) -> None:
    """They are counted in a column of their own, also where sums are added up raw and put right."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS x, CASE WHEN i > 3 THEN i END AS y FROM range(10) r(i)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 5]}}}}})
    other = "COUNT(*) FILTER (WHERE y IS NULL)" if "y" in function else "COUNT(*) FILTER (WHERE x <= 1)"
    asked = f"SELECT {function} AS a, {other} AS b, SUM(x) AS s, AVG(x) AS m FROM t"
    (row,) = session.query(asked, epsilon=10_000).fetchall()
    assert (row[0], row[1], row[2]) == ((6, 4, 35) if "y" in function else (8, 2, 35))
