"""SUM(DISTINCT x) and AVG(DISTINCT x): every pair of small neighbouring tables, answers, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pytest

import privsql
from privsql import PrivsqlError
from privsql.planning.plan import Plan

VALUES = (None, -9, -2, 1, 4, 9)  # clamped to [-2, 4]: -9 is the same as -2 there, and 9 as 4
Row = tuple[Any, ...]


def session_of(
    connection: duckdb.DuckDBPyConnection, neighbours: str, low: int, high: int, **table: Any
) -> privsql.Session:
    columns = {"x": {"range": [low, high]}, "g": {"range": [0, 1]}}
    return privsql.connect(
        connection,
        {
            "neighbours": neighbours,
            "budget": {"epsilon": 10_000},
            "tables": {"t": {"columns": columns, **table}},
        },
    )


def vectors(
    connection: duckdb.DuckDBPyConnection, plan: Plan, tables: Iterable[Sequence[Row]]
) -> list[dict[Any, tuple[int, ...]]]:
    """The exact columns of each table, by key."""
    found = []
    for rows in tables:
        connection.execute("DELETE FROM t")
        if rows:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        released = connection.execute(plan.sql).fetchall()
        keys = len(plan.keys)
        found.append({row[:keys]: tuple(int(each or 0) for each in row[keys:]) for row in released})
    return found


def moved(one: dict[Any, tuple[int, ...]], two: dict[Any, tuple[int, ...]]) -> tuple[int, int]:
    """The change in all, and the greatest of a cell."""
    nothing = (0,) * max((len(each) for each in (*one.values(), *two.values())), default=1)
    changes = [
        abs(a - b)
        for key in {*one, *two}
        for a, b in zip(one.get(key, nothing), two.get(key, nothing), strict=True)
    ]
    return sum(changes), max(changes, default=0)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("low", "high"), [(-2, 4), (1, 4), (-9, -2)])
@pytest.mark.parametrize("text", [
    "SELECT SUM(DISTINCT x) AS a FROM t", "SELECT g, SUM(DISTINCT x) AS a FROM t GROUP BY g",
    "SELECT AVG(DISTINCT x) AS a FROM t",
    "SELECT g, AVG(DISTINCT x) AS a, SUM(DISTINCT x) AS s FROM t GROUP BY g",
])  # fmt: skip
def test_no_pair_of_small_tables_passes_the_bound_and_one_attains_it(
    neighbours: str, low: int, high: int, text: str
) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (person INTEGER, x INTEGER, g INTEGER)")
        plan = session_of(connection, neighbours, low, high).explain(text, epsilon=1)
        (measured,) = plan.measurements
        keys = (0, 1) if plan.keys else (0,)
        rows = [(0, value, key) for value in VALUES for key in keys]
        least = 0 if neighbours == "add-remove" else 1
        tables = [
            table for size in range(least, 3) for table in itertools.combinations_with_replacement(rows, size)
        ]  # fmt: skip
        found = dict(zip(tables, vectors(connection, plan, tables), strict=True))
    most = [0, 0]
    for one, two in itertools.combinations(tables, 2):
        if are_neighbours(one, two, neighbours):
            change, cell = moved(found[one], found[two])
            assert change <= measured.l1 and cell <= measured.linf, (one, two)
            most = [max(most[0], change), max(most[1], cell)]
    # a pair of two columns attains l1 in halves: what leaves the one does not all enter the other
    assert most[1] == measured.linf or plan.keys
    assert most[0] == measured.l1 or "AVG" in text


def are_neighbours(one: Sequence[Row], two: Sequence[Row], neighbours: str) -> bool:
    if neighbours == "replace-one":
        if len(one) != len(two):
            return False
        rest = list(two)
        return sum(1 for row in one if row not in rest or rest.remove(row)) <= 1
    few, many = sorted((list(one), list(two)), key=len)
    for row in few:
        if row not in many:
            return False
        many.remove(row)
    return len(many) == 1


def test_the_span_of_the_range_is_not_enough() -> None:
    """With values in [10, 20], the last 20 leaves and a 15 that is there already comes: 20, not 10."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (person INTEGER, x INTEGER NOT NULL, g INTEGER)")
        plan = session_of(connection, "replace-one", 10, 20).explain(
            "SELECT SUM(DISTINCT x) AS a FROM t", epsilon=1
        )
        one, two = vectors(connection, plan, [[(0, 20, 0), (1, 15, 0)], [(0, 15, 0), (1, 15, 0)]])
    assert moved(one, two) == (20, 20)
    assert plan.measurements[0].l1 == 20


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("text", ["SELECT SUM(DISTINCT x) AS a FROM t", "SELECT AVG(DISTINCT x) AS a FROM t"])
def test_no_unit_passes_the_bound(neighbours: str, text: str) -> None:
    """Two people with up to three rows each, of which two different values count: all that the first may have."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (person INTEGER, x INTEGER, g INTEGER)")
        session = session_of(connection, neighbours, -2, 4, unit="person", max_rows=2, max_groups=1)
        plan = session.explain(text, epsilon=1)
        (measured,) = plan.measurements
        several = [
            values for size in range(4) for values in itertools.combinations_with_replacement((-2, 1, 4), size)
        ]  # fmt: skip
        greatest = 0
        for other in several[::4]:
            tables = [[*((1, x, 0) for x in own), *((2, x, 0) for x in other)] for own in several]
            found = vectors(connection, plan, tables)
            pairs = (
                ((found[0], each) for each in found)
                if neighbours == "add-remove"
                else itertools.combinations(found, 2)
            )
            for one, two in pairs:
                change, cell = moved(one, two)
                assert change <= measured.l1 and cell <= measured.linf
                greatest = max(greatest, change)
    assert greatest >= measured.l1 / 3  # the bound is for values that need not differ


def test_answers_are_those_of_duckdb_after_clamping() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i % 9 AS person, i % 37 - 5 AS x, i % 2 AS g FROM range(2000) r(i)"
        )
        session = session_of(connection, "add-remove", -4, 20)
        answer = session.query(
            "SELECT g, SUM(DISTINCT x) AS s, AVG(DISTINCT x) AS a FROM t GROUP BY g ORDER BY g LIMIT 2",
            epsilon=4_000,
        )
        clamped = "greatest(least(x, 20), -4)"
        true = connection.execute(
            f"SELECT g, sum(DISTINCT {clamped}), avg(DISTINCT {clamped}) FROM t GROUP BY g ORDER BY g"
        ).fetchall()
    for (g, total, mean), row in zip(answer.fetchall(), true, strict=True):
        assert (g, total, mean) == pytest.approx(row, abs=0.2)


def test_a_value_of_several_people_is_added_once() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i % 50 AS person, i // 50 % 4 AS x, 0 AS g FROM range(500) r(i)"
        )
        session = session_of(connection, "add-remove", 0, 3, unit="person", max_rows=5, max_groups=1)
        answer = session.query("SELECT SUM(DISTINCT x) AS s, COUNT(*) AS n FROM t", epsilon=2_000)
        mean = session.query("SELECT AVG(DISTINCT x) AS a FROM t", epsilon=2_000)
    assert abs(answer.fetchall()[0][0] - 6) <= 2
    assert mean.fetchall()[0][0] == pytest.approx(1.5, abs=0.1)


def test_within_one_person_it_is_exact() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i % 100 AS person, i // 100 % 3 AS x, 0 AS g FROM range(1000) r(i)"
        )
        session = session_of(connection, "add-remove", 0, 3, unit="person", max_rows=10, max_groups=1)
        text = "SELECT SUM(s) AS total FROM (SELECT person, SUM(DISTINCT x) AS s FROM t GROUP BY person)"
        ((found,),) = session.query(text, epsilon=3_000).fetchall()
    assert abs(found - 300) <= 2


@pytest.mark.parametrize(("text", "code"), [
    ("SELECT STDDEV(DISTINCT x) AS a FROM t", "refused-distinct"),
    ("SELECT SUM(DISTINCT person) AS a FROM t", "refused-unbounded"),
    ("SELECT SUM(DISTINCT person) AS a FROM t WHERE person BETWEEN 0 AND 9000000000", "refused-too-large"),
    ("SELECT g, x, SUM(DISTINCT x) AS a FROM t GROUP BY ROLLUP (g, x)", "refused-grouping-sets"),
])  # fmt: skip
def test_what_has_no_sum_of_different_values(text: str, code: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (person BIGINT, x INTEGER, g INTEGER)")
        with pytest.raises(PrivsqlError) as error:
            session_of(connection, "add-remove", 0, 9).explain(text, epsilon=1)
    assert error.value.code == code
