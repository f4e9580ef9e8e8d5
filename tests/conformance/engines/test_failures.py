"""No rendered expression fails on any value, wherever the engine computes it: extreme values, nested, on every kind of source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from privsql.algebra.expressions import Call
from privsql.engines.duckdb.safety.plan_rules import PlanRules
from privsql.engines.duckdb.safety.plans import may_fail, plan_of
from privsql.errors import SourceError
from privsql.types import Kind
from tests.conformance.engines import DIALECT, expressions
from tests.conformance.engines.hostile import COLUMNS, SOURCES, World, source

TOGETHER = 12  # expressions in one statement: what two of them share, DuckDB computes once
EXPRESSIONS = 20_000
SHARDS = 8


def statements(batch: Sequence[Call]) -> list[str]:
    """The places in which an expression may stand: they are optimised differently."""
    rendered = [DIALECT.expression(each) for each in batch]
    counts = ", ".join(f"count({each})" for each in rendered)
    pairs = pairwise(rendered)  # none, if the batch has one expression
    tests = [f"(({one}) IS NOT NULL OR ({other}) IS NULL)" for one, other in pairs] or ["TRUE"]
    truths = [each for each, call in zip(rendered, batch, strict=True) if call.type.kind is Kind.BOOLEAN] or [
        "TRUE"
    ]
    keys = ", ".join(rendered[:3])
    return [
        f"SELECT {counts} FROM {{source}}",
        f"SELECT count(*) FILTER (WHERE {' AND '.join(truths)}) FROM {{source}} WHERE {' AND '.join(tests)}",
        f"SELECT count(*) FROM (SELECT {keys}, count(DISTINCT {rendered[-1]}) FROM {{source}} GROUP BY ALL)",
        f"SELECT count(*) FROM {{source}} AS a WHERE EXISTS (SELECT 1 FROM ids WHERE ids.id = a.id AND ({truths[0]}))",
    ]


def escaped(statement: str) -> str:
    """Braces of a constant are no place for the source."""
    return statement.replace("{", "{{").replace("}", "}}").replace("{{source}}", "{source}")


def run_all(world: World, calls: Sequence[Call]) -> list[str]:
    """What failed, with the statement."""
    failed = []
    for start in range(0, len(calls), TOGETHER):
        for place, statement in enumerate(statements(calls[start : start + TOGETHER])):
            kind = SOURCES[(start // TOGETHER + place) % len(SOURCES)]
            try:
                world.run(escaped(statement), kind)
            except duckdb.Error as error:
                failed.append(f"{kind}: {str(error)[:200]}\n{statement[:3000]}")
                world.open()
    return failed


def refused(world: World, calls: Sequence[Call]) -> list[str]:
    """What the check of DuckDB's own plan would refuse although it never failed."""

    def read(sql: str) -> list[tuple[object, ...]]:
        try:
            return world.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise SourceError("source-test", str(error)) from None

    columns = ", ".join(f"{DIALECT.expression(each)} AS e{place}" for place, each in enumerate(calls))
    plan = plan_of(read, f"SELECT {columns} FROM {source()}")
    assert plan is not None
    found = may_fail(plan, PlanRules(read, own=True))
    return [found] if found else []


def test_no_expression_fails(tmp_path: Path) -> None:
    calls = list(expressions.Generator(11).many(600))
    world = World(tmp_path, 60)
    assert not run_all(world, calls)
    assert not [each for start in range(0, 600, 60) for each in refused(world, calls[start : start + 60])]


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_expression_fails_at_length(tmp_path: Path, shard: int) -> None:
    calls = list(expressions.Generator(1_000 + shard).many(EXPRESSIONS // SHARDS))
    world = World(tmp_path, seed=shard)
    assert not run_all(world, calls)
    assert not [
        each for start in range(0, len(calls), 60) for each in refused(world, calls[start : start + 60])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_pair_of_functions_fails(tmp_path: Path, shard: int) -> None:
    calls = list(expressions.nested(expressions.NAMES[shard::SHARDS], 100 + shard))
    assert len(calls) > 1_000
    assert not run_all(World(tmp_path, seed=shard), calls)


@pytest.mark.parametrize(
    "unguarded",
    [
        "left('a', {b})",
        "CAST({c} AS TINYINT)",
        "date_trunc('month', {ts})",
        "{h} + {h}",
        "{ts} + INTERVAL 1 DAY",
    ],
)
def test_an_unguarded_expression_is_detected(tmp_path: Path, unguarded: str) -> None:
    names = {
        "c": COLUMNS["DOUBLE"].name,
        "ts": COLUMNS["TIMESTAMP"].name,
        "h": COLUMNS["HUGEINT"].name,
        "b": COLUMNS["BIGINT"].name,
    }
    with pytest.raises(duckdb.Error):
        World(tmp_path, 60).run(f"SELECT count({unguarded.format(**names)}) FROM {{source}}", "table")
