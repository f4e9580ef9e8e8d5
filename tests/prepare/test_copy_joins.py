"""Joins along references from a copy: which are served, the numbers without it, and that no neighbour passes a bound."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import privsql
from tests.prepare.visits import copy_of, uses_copy, with_copies
from tests.soundness.check import Report, check_plan

TABLES = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, state VARCHAR);
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer INTEGER, kind INTEGER);
    CREATE TABLE items (oid INTEGER, qty INTEGER);
    CREATE TABLE calls (who INTEGER, minutes INTEGER);
    CREATE TABLE plans (person INTEGER UNIQUE, level INTEGER);
"""
LIMITS = {"max_groups": 2, "max_rows": 3}
POLICY: dict[str, Any] = {"tables": {
    "customers": {"unit": "id", "columns": {"state": {"values": ["CA", "NY"]}}},
    "orders": {"unit": "customer", "columns": {"kind": {"range": [0, 3]}}, **LIMITS},
    "items": {"unit": "oid -> orders.oid", "columns": {"qty": {"range": [0, 5]}}, **LIMITS},
    "calls": {"unit": "who -> customers.id", "columns": {"minutes": {"range": [0, 9]}}, **LIMITS},
    "plans": {"unit": "person -> customers.id", "columns": {"level": {"range": [0, 2]}}},
}}  # fmt: skip
SERVED = [  # and the table whose copy serves
    ("SELECT COUNT(*) FROM items JOIN orders USING (oid)", "items"),
    ("SELECT kind, COUNT(*), SUM(qty) FROM items JOIN orders USING (oid) GROUP BY kind", "items"),
    ("SELECT kind, SUM(qty) FROM orders JOIN items ON items.oid = orders.oid WHERE qty > 1 GROUP BY kind", "items"),
    ("SELECT COUNT(*) FROM items LEFT JOIN orders ON items.oid = orders.oid AND kind > 1 WHERE kind IS NULL", "items"),
    ("SELECT state, COUNT(*) FROM orders JOIN customers ON customer = id GROUP BY state", "orders"),
    ("SELECT state, COUNT(*) FROM customers JOIN calls ON id = who WHERE minutes > 2 GROUP BY state", "calls"),
    ("SELECT state, kind, COUNT(*) FROM items JOIN orders USING (oid) JOIN customers ON customer = id GROUP BY ALL", "items"),
    ("SELECT state, SUM(qty) FROM items JOIN (SELECT oid, state FROM orders JOIN customers ON customer = id) USING (oid) "
     "GROUP BY state", "items"),
    ("SELECT COUNT(*) FROM items WHERE EXISTS (SELECT 1 FROM orders WHERE orders.oid = items.oid AND kind = 2)", "items"),
    ("SELECT COUNT(*) FROM calls WHERE EXISTS (SELECT 1 FROM orders WHERE customer = who AND kind = 2)", "calls"),
    ("SELECT level, COUNT(*) FROM calls JOIN plans ON who = person GROUP BY level", "calls"),
    ("SELECT kind FROM items JOIN orders USING (oid) GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 1", "items"),
]  # fmt: skip
NOT_SERVED = [
    "SELECT COUNT(*) FROM orders JOIN calls ON customer = who",  # many rows of a unit meet many
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.oid = b.oid",  # which of them is the copy?
    "SELECT COUNT(*) FROM orders LEFT JOIN items ON items.oid = orders.oid",  # an order may be there several times
]
Data = dict[str, list[tuple[Any, ...]]]


def some(rng: Random, unit: int, orders: int, items: int, calls: int) -> Data:
    """One customer's rows in all tables; numbers of orders are that customer's own."""
    own = [(100 * unit + number, unit, rng.choice([0, 1, 2, 3, None])) for number in range(orders)]
    return {
        "customers": [(unit, rng.choice(["CA", "NY", "ZZ"]))],
        "orders": own,
        "items": [(rng.choice(own)[0], rng.randrange(-1, 8)) for _ in range(items) if own],
        "calls": [(unit, rng.randrange(12)) for _ in range(calls)],
        "plans": [(unit, rng.randrange(3))],
    }


def stored(file: Path, people: list[Data], rng: Random) -> Path:
    nobody: Data = {
        "orders": [(1, None, 1)],
        "items": [(1, 2), (7, 3), (None, 4)],
        "calls": [(None, 5), (77, 1)],
    }
    with duckdb.connect(str(file)) as connection:
        connection.execute(TABLES)
        for table in POLICY["tables"]:
            rows = [row for each in [*people, nobody] for row in each.get(table, [])]
            places = f"({', '.join('?' * len(rows[0]))})"
            connection.executemany(f"INSERT INTO {table} VALUES {places}", rng.sample(rows, len(rows)))
    return file


def prepare(session: privsql.Session) -> None:
    for table in ("orders", "items", "calls"):
        session.prepare(table)


def test_joins_use_the_right_copy(tmp_path):
    file = stored(
        tmp_path / "shop.duckdb", [some(Random(unit), unit, 3, 9, 4) for unit in range(1, 6)], Random(0)
    )
    with privsql.connect(file, POLICY) as session:
        prepare(session)
        for sql, table in SERVED:
            plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
            assert copy_of(plan).startswith(f"{table}_") and plan.sql.count("privsql_prepared") == 1, sql
            assert plan.measurements[0].scale <= plain.measurements[0].scale
            assert "by a stored rank" in str(plan)
            assert ("each row matches at most one row, of the same unit" in str(plan)) == (
                "EXISTS" not in sql
            )
            session.query(sql, epsilon=1)
        for sql in NOT_SERVED:
            plan = session.explain(sql, epsilon=1)
            assert not uses_copy(plan) and any(
                "is not used: the query joins" in note for note in plan.notes
            ), sql


def test_with_few_rows_a_unit_nothing_is_lost(tmp_path):
    file = stored(
        tmp_path / "shop.duckdb", [some(Random(unit), unit, 2, 3, 3) for unit in range(1, 40)], Random(0)
    )
    with privsql.connect(file, POLICY) as session:
        prepare(session)
        for sql, _ in SERVED:
            plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
            found, expected = (
                sorted(session._pipeline.engine.read_public(each.sql), key=str) for each in (plan, plain)
            )
            assert found == expected and uses_copy(plan), sql


def test_every_join_compares_units(tmp_path):
    """Whatever else a join is on: the copy may be of another state than the table, or a table there twice."""
    file = stored(
        tmp_path / "shop.duckdb", [some(Random(unit), unit, 3, 9, 4) for unit in range(1, 6)], Random(0)
    )
    looks = (
        "privsql_l.privsql_unit = privsql_r.privsql_unit",
        "privsql_unit = privsql_other_unit",
    )  # in the join, after it
    for source in (file, duckdb.connect(str(file))):
        with privsql.connect(source, POLICY) as session:
            prepare(session)
            for sql, _ in SERVED:
                plan = session.explain(sql, epsilon=1)
                assert uses_copy(plan) and any(each in plan.sql for each in looks), sql


def test_rows_matched_with_another_unit_are_dropped(tmp_path):
    """Also where the reference would have told that they are of one: here all the copy's rows are somebody else's."""
    file = stored(
        tmp_path / "shop.duckdb", [some(Random(unit), unit, 3, 9, 4) for unit in range(1, 6)], Random(0)
    )
    with privsql.connect(file, POLICY) as session:
        session.prepare("items")
        (count, by_kind), _ = zip(*SERVED[:2], strict=True)
        plans = [session.explain(sql, epsilon=1) for sql in (count, by_kind)]
    assert all("OFFSET 0) WHERE (privsql_unit = privsql_other_unit)" in plan.sql for plan in plans)
    with with_copies(file) as plain:
        assert plain.execute(plans[0].sql).fetchone()[0] > 0
        assert plain.execute(plans[1].sql).fetchall()
    with duckdb.connect(f"{file}.prepared") as copies:
        copies.execute(f'UPDATE "{copy_of(plans[0])}" SET privsql_unit = privsql_unit + 1')
    with with_copies(file) as plain:
        assert plain.execute(plans[0].sql).fetchone()[0] == 0
        assert plain.execute(plans[1].sql).fetchall() == []


TWO_ROWS_OF_A_PARENT = """
    SELECT COUNT(*) FROM items i JOIN (
        SELECT p1.a AS a1, p1.k AS k1, p2.b AS b2 FROM orders p1 JOIN orders p2 ON p1.u = p2.u AND p1.nxt = p2.k) r
    ON i.a = r.a1 AND i.b = r.b2 AND i.c = r.k1"""


def test_a_composite_reference_matches_at_most_one_row(tmp_path):
    """One more person, whose orders have each one part of what others' items refer to, met all of them."""
    policy = {"neighbours": "add-remove", "tables": {
        "orders": {"unit": "u", "max_groups": 1, "max_rows": 3},
        "items": {"unit": ["a -> orders.a", "b -> orders.b"], "max_groups": 1, "max_rows": 1},
    }}  # fmt: skip
    plans, cells = [], []
    for name, more in (("one", False), ("two", True)):
        file = tmp_path / f"{name}.duckdb"
        with duckdb.connect(str(file)) as made:
            made.execute(
                "CREATE TABLE orders (k INT PRIMARY KEY, a INT, b INT, u INT, nxt INT, UNIQUE (a, b))"
            )
            made.execute("CREATE TABLE items (a INTEGER, b INTEGER, c INTEGER)")
            made.execute("INSERT INTO orders SELECT i, 1, i, i, NULL FROM range(1, 51) r(i)")
            made.execute("INSERT INTO items SELECT 1, i, 9000 + i FROM range(1, 51) r(i)")
            if more:
                made.execute(
                    "INSERT INTO orders SELECT 9000 + i, 1, 1000 + i, 777, 8000 + i FROM range(1, 51) r(i)"
                )
                made.execute("INSERT INTO orders SELECT 8000 + i, 2, i, 777, NULL FROM range(1, 51) r(i)")
        with privsql.connect(file, policy) as session:
            session.prepare("items")
            plans.append(session.explain(TWO_ROWS_OF_A_PARENT, epsilon=1))
            cells.append(session._pipeline.engine.read_public(plans[-1].sql))
    assert plans[0].sql == plans[1].sql and uses_copy(plans[0])
    assert abs(cells[0][0][0] - cells[1][0][0]) <= plans[0].measurements[0].l1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_no_neighbour_passes_a_bound(tmp_path, seed, relation):
    """One customer's rows of all tables replaced by any others, or taken away, and prepared anew."""
    rng, asked = Random(f"{seed} {relation}"), [sql for sql, _ in SERVED]
    people = [some(rng, unit, *rng.choice([(1, 1, 0), (3, 20, 9), (9, 40, 2)])) for unit in range(1, 5)]
    one = [some(rng, 9, 4, 30, 30)]
    others: list[list[Data]] = [[]]
    if relation == "replace-one":
        others += [[some(rng, 9, *rng.choice([(1, 30, 0), (30, 40, 30), (1, 0, 1)]))]]
    policy = {**POLICY, "neighbours": relation}
    files = [stored(tmp_path / f"{n}.duckdb", [*people, *each], rng) for n, each in enumerate([one, *others])]
    plans = []
    for file in files:
        with privsql.connect(file, policy) as session:
            prepare(session)
            plans.append([session.explain(sql, epsilon=1) for sql in asked])
    connections, report = [with_copies(file) for file in files], Report()
    for number, plan in enumerate(plans[0]):
        assert all(each[number].sql == plan.sql for each in plans) and uses_copy(plan)
        assert check_plan(plan, connections, report) == [], asked[number]
    assert report.moved > 0.3 * report.cases and report.attained > 0
