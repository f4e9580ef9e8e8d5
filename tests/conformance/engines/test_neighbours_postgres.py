"""On PostgreSQL, by its own hash, no unit moves a cell further than the plan says; and the hash is fair."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import privsql
from privsql.planning.plan import Plan
from tests.support import postgres

pytestmark = postgres.needs_server()
SCHEMA = "privsql_neighbours"
UNITS = 24
POLICY = {
    "neighbours": "add-remove",
    "tables": {
        "visits": {
            "unit": "person",
            "max_rows": 2,
            "max_groups": 2,
            "columns": {
                "k": {"values": ["a", "b", "c", "d"]},
                "x": {"range": [-5, 10]},
                "y": {"range": [0, 1]},
                "d": {"range": [0, 3]},
            },
        },
        "names": {"public": True},
    },
}
QUERIES = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT k, COUNT(*) AS n FROM visits GROUP BY k",
    "SELECT k, SUM(x) AS s, AVG(y) AS a FROM visits GROUP BY k",
    "SELECT k, SUM(d * 2) AS s, COUNT(x) AS c FROM visits GROUP BY k",
    "SELECT k, COUNT(DISTINCT person) AS n FROM visits GROUP BY k",
    "SELECT k, COUNT(DISTINCT x) AS n FROM visits GROUP BY k",
    "SELECT k, VAR_SAMP(x) AS v FROM visits GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM visits GROUP BY ROLLUP (k)",
    "SELECT region, COUNT(*) AS n, SUM(x) AS s FROM visits JOIN names USING (k) GROUP BY region",
    "SELECT SUM(t) AS s FROM (SELECT person, SUM(x) AS t FROM visits GROUP BY person) WHERE t BETWEEN 0 AND 20",
    "SELECT k, COUNT(*) AS n FROM visits WHERE x > y * 3 GROUP BY k",
    "SELECT COUNT(*) FILTER (WHERE y > 0.5) AS n, SUM(CASE WHEN k = 'a' THEN x ELSE y END) AS s FROM visits",
]


def _fill(server: Any, seed: int) -> None:
    draw = random.Random(seed)
    server.execute(
        f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}"
    )
    server.execute(
        "CREATE TABLE visits (person integer, k text, x integer, y double precision, d numeric(5, 2))"
    )
    server.execute("CREATE TABLE names (k text PRIMARY KEY, region text)")
    server.execute("INSERT INTO names VALUES ('a', 'north'), ('b', 'north'), ('c', 'south'), ('d', NULL)")
    rows = []
    for person in range(UNITS):
        for _ in range(draw.choice((0, 1, 2, 5, 12))):
            values = (
                draw.choice("abcde"),
                draw.choice((-50, -5, 0, 3, 10, 99, None)),
                draw.choice((0.0, 0.3, 1.0, 7.0, float("nan"), float("inf"), 5e-324, None)),
                draw.choice((0, 1.25, 3, -4, "NaN", None)),
            )
            rows.append((person, *values))
    with server.cursor() as cursor:
        cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s, %s)", rows)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres.connect() as owner:
        yield owner


def cells(session: privsql.Session, plan: Plan) -> dict[tuple[Any, ...], dict[str, int]]:
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for statement in plan.runs:
        exact = session._pipeline.engine.run(statement, plan.keys)
        rows = len(next(iter(exact.exact_columns.values())))
        for row in range(rows):
            key = tuple(str(values[row]) for values in exact.exact_keys.values())
            found.setdefault(key, {}).update(
                {name: int(values[row]) for name, values in exact.exact_columns.items()}
            )
    return found


def violations(session: privsql.Session, server: Any, plan: Plan) -> list[str]:
    """What removing one unit moves further than the plan says."""
    before, wrong = cells(session, plan), []
    for person in range(UNITS):
        gone = server.execute("DELETE FROM visits WHERE person = %s RETURNING *", [person]).fetchall()
        after = cells(session, plan)
        with server.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s, %s)", gone)
        for each in plan.measurements:
            moved = [
                abs(before.get(key, {}).get(name, 0) - after.get(key, {}).get(name, 0))
                for key in {*before, *after}
                for name in each.columns
            ]
            if sum(moved) > each.l1 or max(moved, default=0) > each.linf:
                wrong.append(f"{person}: {each.columns} moved by {sum(moved)}, l1 {each.l1}")
    return wrong


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, 21))])
def test_no_unit_moves_more_than_the_plan_says(server: Any, seed: int) -> None:
    _fill(server, seed)
    with privsql.connect(postgres.schema_address(SCHEMA), POLICY) as session:
        for sql in QUERIES:
            plan = session.explain(sql, epsilon=1)
            assert not violations(session, server, plan), sql


def test_the_hash_is_fair(server: Any) -> None:
    """Of two keys of a unit, either comes first as often as the other, for each pair of keys."""
    from privsql.render.postgres import PostgreSQL

    with postgres.connect() as plain:
        form = PostgreSQL.operations[next(op for op in PostgreSQL.operations if op.name == "HASH")]
        for one, other in (("a", "b"), ("x", "y"), ("1", "2")):
            ranked = [form.format(args=f"text 'kind', u, text '{key}'") for key in (one, other)]
            query = f"SELECT avg(CASE WHEN {ranked[0]} < {ranked[1]} THEN 1.0 ELSE 0 END) FROM generate_series(1, 20000) AS r(u)"
            share = float(plain.execute(query).fetchone()[0])
            assert abs(share - 0.5) < 0.02
