"""What a copy keeps of a unit is that unit's own affair, and no neighbour passes a bound: tables prepared anew, plain DuckDB."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import privsql
from privsql.audit.falsify import run_exactly
from tests.prepare.visits import STATES, copy_of, uses_copy, with_copies
from tests.soundness.check import Report, Runner, check_plan

POLICY: dict[str, Any] = {"tables": {"visits": {"unit": "user_id", "max_groups": 2, "max_rows": 2, "columns": {
    "state": {"values": STATES}, "amount": {"range": [0, 2]}, "price": {"range": [-1, 1]}}}}}  # fmt: skip
Rows = list[tuple[Any, ...]]


def prepared(
    file: Path, rows: Rows, policy: dict[str, Any], *questions: str
) -> tuple[duckdb.DuckDBPyConnection, list[Any]]:
    """Rows in a file, prepared: plain DuckDB on it, and the plans of some queries."""
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE visits (user_id DOUBLE, state VARCHAR, amount INTEGER, price DOUBLE, gap INTERVAL)"
        )
        if rows:
            places = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
            connection.execute(
                f"INSERT INTO visits VALUES {places}", [value for row in rows for value in row]
            )
    with privsql.connect(file, policy) as session:
        session.prepare("visits")
        plans = [session.explain(sql, epsilon=1) for sql in questions]
    assert all(map(uses_copy, plans))
    return with_copies(file), plans


def kept(file: Path, rows: Rows, most: int) -> dict[float, list[tuple[Any, ...]]]:
    """Of each unit the rows that are kept, as texts, in which -0.0 and 0.0 or 30 days and one month would show."""
    connection, (plan,) = prepared(file, rows, POLICY, "SELECT COUNT(*) FROM visits")
    found: dict[float, list[tuple[Any, ...]]] = {}
    for unit, *row in connection.execute(
        f'SELECT user_id, state, amount, price::VARCHAR, gap::VARCHAR FROM privsql_prepared.main."{copy_of(plan)}" '
        f"WHERE privsql_rank <= {most}"
    ).fetchall():
        found.setdefault(unit, []).append(tuple(row))
    return {unit: sorted(rows, key=str) for unit, rows in found.items()}


def some_rows(rng: Random, unit: float | None, count: int) -> Rows:
    return [
        (unit, rng.choice([*STATES, None]), rng.choice([None, 0, 1, 2]), rng.choice([0.0, -0.0, 1.5, float("nan"), None]),
         rng.choice(["1 month", "30 days", None]))
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_kept_rows_depend_on_their_own_unit_alone(tmp_path, seed):
    rng = Random(seed)
    people = {float(unit): some_rows(rng, float(unit), rng.choice([1, 3, 12])) for unit in range(8)}
    rows = [row for each in people.values() for row in each] + some_rows(rng, None, 5)
    shuffled = rng.sample(rows, len(rows))
    another = [row for row in shuffled if row[0] != 3.0] + some_rows(rng, 3.0, 20)
    first, second, third = (
        kept(tmp_path / f"{n}.duckdb", each, 4) for n, each in enumerate((rows, shuffled, another))
    )
    assert None not in first and first == second
    assert {u: r for u, r in first.items() if u != 3.0} == {u: r for u, r in third.items() if u != 3.0}
    assert all(len(each) <= 4 for each in third.values())


def test_equal_rows_that_look_different(tmp_path):
    """Zeros of both signs, 30 days and one month: which of them is kept does not depend on which lies first."""
    people = {1.0: [(0.0, None), (-0.0, None)], 2.0: [(1.0, "1 month"), (1.0, "30 days")]}
    rows = [
        (unit, "CA", 1, price, gap)
        for unit, values in people.items()
        for price, gap in values
        for _ in range(4)
    ]
    assert kept(tmp_path / "one.duckdb", rows, 3) == kept(tmp_path / "two.duckdb", rows[::-1], 3)


QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*), COUNT(state), COUNT(amount), SUM(amount), AVG(price) FROM visits",
    "SELECT COUNT(DISTINCT user_id) FROM visits",
    "SELECT state, COUNT(DISTINCT user_id) FROM visits GROUP BY state",
    "SELECT state, COUNT(*), SUM(amount), AVG(price) FROM visits GROUP BY state",
    "SELECT state, COUNT(*) FROM visits WHERE amount > 0 GROUP BY state",
    "SELECT COUNT(DISTINCT amount), COUNT(*) FILTER (WHERE state = 'CA'), COUNT(*) FILTER (WHERE state = 'NY') FROM visits",
    "SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT amount > 0 AS k, COUNT(*), SUM(price) FROM visits GROUP BY k",
    "SELECT k, SUM(v) FROM (UNPIVOT (SELECT amount, amount + 1 AS x FROM visits) ON amount, x INTO NAME k VALUE v) GROUP BY k",
]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_no_neighbour_passes_a_bound(tmp_path, seed, relation):
    """One unit's rows replaced by any others, or taken away: prepared anew, plan.sql moves within its bounds."""
    rng = Random(f"{seed} {relation}")
    rows = [
        row
        for unit in range(6)
        for row in some_rows(rng, float(unit), rng.choice([2, 9] if unit == 2 else [0, 2, 9]))
    ]
    rows += some_rows(rng, None, 4)
    others = [row for row in rows if row[0] != 2.0]
    more = (
        [others]
        if relation == "add-remove"
        else [others + some_rows(rng, 2.0, count) for count in (0, 1, 30)]
    )
    variants = [rows, *(rng.sample(each, len(each)) for each in more)]
    policy = {**POLICY, "neighbours": relation}
    made = [
        prepared(tmp_path / f"{number}.duckdb", each, policy, *QUESTIONS)
        for number, each in enumerate(variants)
    ]
    connections, report = [each for each, _ in made], Report()
    for number, plan in enumerate(made[0][1]):
        assert all(plans[number].sql == plan.sql for _, plans in made), "one plan for all"
        assert check_plan(plan, connections, report) == [], QUESTIONS[number]
    assert report.moved


# -- generated worlds ----------------------------------------------------------------------------------------
def run_prepared(folder: Path, seed: int, report: Report, runner: Runner) -> int:
    """One generated world, every table of it prepared on every neighbour; how many queries were answered by a copy."""
    world = runner.world(seed)
    files = []
    for number, each in enumerate([*runner.variants, *([runner.again] if runner.again else [])]):
        files.append(folder / f"{seed}_{number}.duckdb")
        each.execute(f"ATTACH '{files[-1]}' AS stored; COPY FROM DATABASE memory TO stored; DETACH stored")
        with privsql.connect(files[-1], world.policy) as session:
            for table in world.by_name:
                with contextlib.suppress(privsql.PrivsqlError):
                    session.prepare(table)
    plans = {}
    with privsql.connect(files[0], world.policy) as session:
        for number in range(runner.kind.queries):
            generator = runner.kind.generator(Random(f"prepared {seed} {number}"), world)
            sql = generator.query()
            with contextlib.suppress(privsql.PrivsqlError):
                plan = session.explain(sql, epsilon=1, **generator.options)
                session._pipeline.engine.check(
                    plan.sql, session._pipeline.schema
                )  # as query() does, before any data is read
                if uses_copy(plan):
                    plans[f"seed {seed} query {number} ({world.relation}): {sql}"] = plan
    connections = [with_copies(file) for file in files if plans]
    for asked, plan in plans.items():
        found = check_plan(plan, connections[: len(runner.variants)], report)
        if runner.again is not None and run_exactly(plan, connections[-1]) != run_exactly(
            plan, connections[0]
        ):
            found.append("ORDER: other threads and another order give other numbers")
        if found:
            report.violations.append(f"{found}\n  {asked}\n  {plan.sql}\n  {world.describe()}")
    for each in connections:
        each.close()
    return len(plans)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 50, 10))
def test_generated_worlds(tmp_path: Path, first: int) -> None:
    report, runner = Report(), Runner("units")
    try:
        used = sum(run_prepared(tmp_path, seed, report, runner) for seed in range(first, first + 8))
    finally:
        runner.close()
    print(used, report)
    assert not report.violations, "\n\n".join(report.violations[:3])
    assert used >= 20 and report.moved > 0.2 * report.cases and report.attained > 0.1 * used, (
        used,
        str(report),
    )
