"""Joins along references from a copy: which are served, the numbers without it, and that no neighbour passes a bound."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import privsql
from privsql.planning.prepared_joins import tells_unit
from privsql.sql.expressions import Call
from privsql.sql.relations import Join, walk
from privsql.types import BOOLEAN
from tests.prepare.visits import copy_of, uses_copy, with_copies

sys.path.insert(0, str(Path(__file__).parent.parent))

from soundness.check import Report, check_plan

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
    nobody: Data = {"orders": [(1, None, 1)], "items": [(1, 2), (7, 3), (None, 4)], "calls": [(None, 5), (77, 1)]}
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


def test_which_joins_are_served_and_by_which_copy(tmp_path):
    file = stored(tmp_path / "shop.duckdb", [some(Random(unit), unit, 3, 9, 4) for unit in range(1, 6)], Random(0))
    with privsql.connect(file, POLICY) as session:
        prepare(session)
        for sql, table in SERVED:
            plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
            assert copy_of(plan).startswith(f"{table}_") and plan.sql.count("privsql_prepared") == 1, sql
            assert plan.measurements[0].scale <= plain.measurements[0].scale
            assert "by a stored rank" in str(plan)
            assert ("each row meets at most one row, of the same unit" in str(plan)) == ("EXISTS" not in sql)
            session.query(sql, epsilon=1)
        for sql in NOT_SERVED:
            plan = session.explain(sql, epsilon=1)
            assert not uses_copy(plan) and any("is not used: rows of people meet" in note for note in plan.notes), sql


def test_with_few_rows_a_unit_nothing_is_lost(tmp_path):
    file = stored(tmp_path / "shop.duckdb", [some(Random(unit), unit, 2, 3, 3) for unit in range(1, 40)], Random(0))
    with privsql.connect(file, POLICY) as session:
        prepare(session)
        for sql, _ in SERVED:
            plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
            found, expected = (sorted(session._engine.read_public(each.sql), key=str) for each in (plan, plain))
            assert found == expected and uses_copy(plan), sql


def test_units_are_looked_at_unless_what_is_joined_on_tells_them(tmp_path):
    """The copy and the other table are of one state only if nobody can write meanwhile; else only rows of one unit meet."""
    file = stored(tmp_path / "shop.duckdb", [some(Random(unit), unit, 3, 9, 4) for unit in range(1, 6)], Random(0))
    looks = "privsql_l.privsql_unit = privsql_r.privsql_unit"
    with privsql.connect(file, POLICY) as session:
        prepare(session)
        for sql, _ in SERVED:
            still = "EXISTS" in sql or "LEFT JOIN" in sql or "(SELECT" in sql or "plans" in sql
            assert (looks in session.explain(sql, epsilon=1).sql) == still, sql
        exact = [sorted(session._engine.read_public(session.explain(sql, epsilon=1).sql), key=str) for sql, _ in SERVED]
    with privsql.connect(duckdb.connect(str(file)), POLICY) as session:
        prepare(session)
        for (sql, _), expected in zip(SERVED, exact, strict=True):
            plan = session.explain(sql, epsilon=1)
            assert uses_copy(plan) and looks in plan.sql and sorted(session._engine.read_public(plan.sql), key=str) == expected


def test_only_what_the_unit_was_read_by_tells_it(tmp_path):
    """Any other equality, or one of some rows only, leaves it to a look at the units."""
    file = stored(tmp_path / "shop.duckdb", [some(Random(1), 1, 3, 9, 4)], Random(0))
    with privsql.connect(file, POLICY) as session:
        for sql, place in (("SELECT COUNT(*) FROM items JOIN orders USING (oid)", 0),
                           ("SELECT COUNT(*) FROM calls JOIN customers ON who = id", 0),
                           ("SELECT COUNT(*) FROM orders JOIN customers ON customer = id", 1)):  # fmt: skip
            join = next(each for each in walk(session.explain(sql, epsilon=1).release.input) if isinstance(each, Join))
            assert join.same_unit and tells_unit(join) and not tells_unit(replace(join, kind="left"))
            told = [
                (one.name, other.name)
                for one in join.left.fields
                for other in join.right.fields
                if tells_unit(replace(join, on=Call("=", (one.column, other.column), BOOLEAN)))
            ]
            assert told == [(join.left.fields[place].name, join.right.fields[0].name)], sql


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
