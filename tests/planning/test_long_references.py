"""References over several columns: joins along them, from outer joins on, and past the table that they name."""

# ruff: noqa: E501 -- queries read better in one line each
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import privsql
from tests.soundness.check import Report, check_plan

TABLES = """
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, uid INTEGER, total INTEGER);
    CREATE TABLE items (oid INTEGER, line INTEGER, sku VARCHAR, qty INTEGER, UNIQUE (oid, line));
    CREATE TABLE notes (oid INTEGER, line INTEGER, stars INTEGER);
    INSERT INTO orders SELECT i, i % 7, i FROM range(30) r(i);
    INSERT INTO items SELECT i // 2, i % 2, 's' || (i % 3), i % 5 FROM range(60) r(i);
    INSERT INTO notes SELECT i // 2, i % 2, i % 4 FROM range(40) r(i);
"""
HEAVY = """
    INSERT INTO orders SELECT 100 + i, 9, 9 FROM range(40) r(i);
    INSERT INTO items SELECT 100 + i // 3, i % 3, 's1', 5 FROM range(90) r(i);
    INSERT INTO notes SELECT 100 + i // 3, i % 3, 4 FROM range(90) r(i);
"""


def policy(rows: int, neighbours: str = "replace-one") -> dict[str, Any]:
    def table(unit: Any, **columns: Any) -> dict[str, Any]:
        return {"unit": unit, "max_rows": rows, "max_groups": 3, "columns": columns}

    return {
        "neighbours": neighbours,
        "tables": {
            "orders": table("uid", total={"range": [0, 30]}),
            "items": table("oid -> orders.oid", qty={"range": [0, 5]}, sku={"values": ["s0", "s1", "s2"]}),
            "notes": table(["oid -> items.oid", "line -> items.line"], stars={"range": [0, 4]}),
        },
    }


JOINS = [
    "SELECT COUNT(*) AS n FROM notes n JOIN items i ON n.oid = i.oid AND n.line = i.line",
    "SELECT i.sku, COUNT(*) AS n FROM notes n LEFT JOIN items i USING (oid, line) JOIN orders o ON o.oid = i.oid GROUP BY i.sku",
    "SELECT i.sku, SUM(n.stars) AS s FROM notes n LEFT JOIN items i USING (oid, line) LEFT JOIN orders o ON o.oid = i.oid GROUP BY i.sku",
    "SELECT COUNT(*) AS n FROM notes n JOIN orders o USING (oid) WHERE o.total > 5",
    "SELECT COUNT(*) AS n FROM notes NATURAL JOIN items NATURAL JOIN orders",
    "SELECT COUNT(*) AS n FROM notes n LEFT JOIN items i ON i.line = n.line AND i.oid = n.oid FULL JOIN orders o ON o.oid = i.oid",
]  # fmt: skip


@pytest.fixture(scope="module")
def shop() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.mark.parametrize("sql", JOINS)
def test_joins_along_them_have_the_answers_of_duckdb(shop: duckdb.DuckDBPyConnection, sql: str) -> None:
    ours = privsql.connect(shop, policy=policy(60)).query(sql, epsilon=10_000).fetchall()
    for row in shop.execute(sql).fetchall():
        assert any(mine[:-1] == row[:-1] and abs(mine[-1] - row[-1]) <= 1 for mine in ours), (row, ours)


@pytest.mark.parametrize("sql", JOINS)
def test_no_unit_exceeds_their_bound(shop: duckdb.DuckDBPyConnection, sql: str) -> None:
    plan = privsql.connect(shop, policy=policy(2, "add-remove")).explain(sql, epsilon=1.0)
    with duckdb.connect(":memory:", config={"threads": "1"}) as heavier:
        heavier.execute(TABLES + HEAVY)
        report = Report()
        assert not check_plan(plan, [shop, heavier], report)
        assert report.moved == 1


def test_a_part_of_a_reference_tells_nobody_apart(shop: duckdb.DuckDBPyConnection) -> None:
    session = privsql.connect(shop, policy=policy(2))
    for sql in (
        "SELECT COUNT(*) FROM notes n JOIN items i ON n.line = i.line",
        "SELECT COUNT(*) FROM notes n JOIN orders o ON n.line = o.oid",
    ):
        with pytest.raises(privsql.PrivsqlError, match="any number of other people's rows"):
            session.explain(sql, epsilon=1.0)
