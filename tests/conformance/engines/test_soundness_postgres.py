"""Generated tables, policies and queries (tests/soundness) on PostgreSQL: no neighbour passes a bound, and the
integers are those of DuckDB where nothing is chosen by a hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pytest

import privsql
from privsql.algebra.relations import AtMost, walk
from privsql.audit.falsify import movements, run_exactly
from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.plan import Plan
from tests.soundness.check import Runner
from tests.support import postgres

pytestmark = postgres.needs_server()
LIVE = "privsql_sound"
WORLDS = 12  # in each slow shard
SHARDS = 6


class Plain:
    """A connection that runs statements as a connection of DuckDB does."""

    def __init__(self, server: Any) -> None:
        self.server = server

    def execute(self, sql: str) -> Any:
        return self.server.execute(sql.encode())


@contextmanager
def live(server: Any, variant: int) -> Iterator[None]:
    """One variant of the tables under the name that statements have for their schema."""
    server.execute(f"ALTER SCHEMA {LIVE}_{variant} RENAME TO {LIVE}")
    try:
        yield
    finally:
        server.execute(f"ALTER SCHEMA {LIVE} RENAME TO {LIVE}_{variant}")


def on_postgres(variants: Sequence[duckdb.DuckDBPyConnection]) -> bool:
    """Copy all variants; False where PostgreSQL has no such tables or values."""
    psycopg = pytest.importorskip("psycopg")
    try:
        for number, each in enumerate(variants):
            postgres.copied(each, f"{LIVE}_{number}")
    except (psycopg.Error, duckdb.Error, ValueError, TypeError, OverflowError):
        return False
    return True


def check_world(runner: Runner, seed: int, server: Any, found: Counter[str], wrong: list[str]) -> None:
    """One world and its queries."""
    world = runner.world(seed)
    if not on_postgres(runner.variants):
        found["world that PostgreSQL does not have"] += 1
        return
    with live(server, 0):
        session = privsql.connect(postgres.schema_address(LIVE), policy=world.policy)
        ours = privsql.connect(runner.variants[0], policy=world.policy)
    for number in range(runner.kind.queries):
        rng = Random(f"query {seed} {number}")
        generator = runner.kind.generator(rng, world)
        sql = generator.query()
        where = f"seed {seed} query {number} ({world.relation}): {sql}"
        try:
            with live(server, 0), session._pipeline.snapshot():
                plan = session.explain(sql, epsilon=1.0, **generator.options)
                plans = plan.releases if isinstance(plan, ComposedPlan) else (plan,)
                for one in plans:
                    for statement in () if one.public else one.statements:
                        session._pipeline.engine.check(statement, session._pipeline.schema)
        except privsql.PrivsqlError:
            found["refused"] += 1
            continue
        if plan.public:
            continue
        found["answered"] += 1
        for one in plans:
            assert isinstance(one, Plan), "the parts of a composed plan are plans of one release"
            wrong += [f"{each}\n  {where}" for each in broken(one, server, len(runner.variants), found)]
        if isinstance(plan, Plan):
            wrong += [
                f"{each}\n  {where}" for each in different(plan, ours, sql, generator.options, server, found)
            ]
    session.close()


def broken(plan: Plan, server: Any, variants: int, found: Counter[str]) -> list[str]:
    """Neighbours that a bound does not cover, and failures on some rows."""
    import psycopg

    results: list[Any] = []
    for variant in range(variants):
        with live(server, variant):
            try:
                results.append(run_exactly(plan, Plain(server))[1])  # type: ignore[arg-type]
            except (psycopg.Error, ValueError) as error:
                return [f"FAILS: {error}\n  {plan.sql}"]
    base, *others = results
    found["pairs"] += len(others)
    return [
        f"{moved.norm}: {moved.found} > {moved.claimed}\n  {plan.sql}"
        for other in others
        for moved in movements(plan, base, other)
        if moved.passed
    ]


def different(
    plan: Plan, ours: privsql.Session, sql: str, options: Any, server: Any, found: Counter[str]
) -> list[str]:
    """The integers of the base beside DuckDB's, where both plan alike and nothing is chosen by a hash."""
    try:
        other = ours.explain(sql, epsilon=1.0, **options)
    except privsql.PrivsqlError:
        return []
    if not isinstance(other, Plan):
        return []
    if any(isinstance(each, AtMost) for each in walk(plan.query.relation)):
        return []  # of rows that share a value some are chosen by a hash, and each engine has its own
    told = [
        [(each.columns, each.l1, each.what, each.why) for each in one.measurements] for one in (plan, other)
    ]
    types = [column.type for relation in (plan, other) for column in relation.release.input.fields]  # type: ignore[union-attr]
    if plan.bounding or told[0] != told[1] or types[: len(types) // 2] != types[len(types) // 2 :]:
        return []  # planned otherwise: some types of DuckDB are other types in the copy
    engine = ours._pipeline.engine
    with live(server, 0):
        theirs = run_exactly(plan, Plain(server))[1]  # type: ignore[arg-type]
    expected = run_exactly(other, engine._connection)[1]  # type: ignore[attr-defined]
    found["compared"] += 1
    if alike(theirs) == alike(expected):
        return []
    return [
        f"DIFFERENT: {sorted(map(str, theirs.items()))[:3]} and {sorted(map(str, expected.items()))[:3]}\n  {plan.sql}"
    ]


def alike(cells: Any) -> dict[tuple[str, ...], Any]:
    """Cells by their keys as text; wide whole numbers are NUMERIC."""
    whole = {
        key: [int(each) if isinstance(each, Decimal) and each == int(each) else each for each in key]
        for key in cells
    }
    return {tuple(map(str, whole[key])): cell for key, cell in cells.items()}


def checked(first: int, worlds: int, kind: str) -> tuple[Counter[str], list[str]]:

    found: Counter[str] = Counter()
    wrong: list[str] = []
    runner = Runner(kind)
    try:
        with postgres.connect() as server:
            for number in range(len(runner.variants)):
                server.execute(f"DROP SCHEMA IF EXISTS {LIVE}_{number} CASCADE")
            server.execute(f"DROP SCHEMA IF EXISTS {LIVE} CASCADE")
            for name in ("TimeZone", "DateStyle"):
                server.execute(
                    "SELECT set_config(%s, %s, false)", [name, {"TimeZone": "UTC"}.get(name, "ISO, YMD")]
                )
            for seed in range(first, first + worlds):
                check_world(runner, seed, server, found, wrong)
    finally:
        runner.close()
    return found, wrong


@pytest.mark.parametrize("kind", ["rows", "units"])
def test_no_neighbour_passes_a_bound(kind: str) -> None:
    found, wrong = checked(1, 3, kind)
    print(kind, dict(found))
    assert not wrong, wrong[:3]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "units"])
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_neighbour_passes_a_bound_at_length(kind: str, shard: int) -> None:
    found, wrong = checked(1_000 * (1 + shard), WORLDS, kind)
    print(kind, dict(found))
    assert found["pairs"]
    assert not wrong, wrong[:3]
