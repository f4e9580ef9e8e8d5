"""No rendered expression fails on any value on a real PostgreSQL server: extreme values, nested, wherever a query computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from privsql.algebra.expressions import Call
from privsql.algebra.functions import FUNCTIONS
from privsql.errors import PrivsqlError
from privsql.types import Kind
from tests.conformance.engines import expressions
from tests.support.postgres import needs_server

pytestmark = needs_server()
TOGETHER = 8
SHARDS = 8


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    from tests.conformance.engines import hostile_postgres

    owner = hostile_postgres.postgres.connect()
    hostile_postgres.fill(owner, 80, seed=5)
    owner.close()
    connection = hostile_postgres.connect()
    yield connection
    connection.close()


def rendered(calls: Sequence[Call]) -> list[tuple[Call, str]]:
    """Those that have a form, with it."""
    from tests.conformance.engines.hostile_postgres import DIALECT

    found = []
    for call in calls:
        try:
            found.append((call, DIALECT.expression(call)))
        except PrivsqlError:
            continue
    return found


def statements(batch: Sequence[tuple[Call, str]]) -> list[str]:
    """The places in which an expression may stand: they are optimised differently."""
    from tests.conformance.engines.hostile_postgres import SCHEMA, source

    texts = [text for _, text in batch]
    counts = ", ".join(f"count({each})" for each in texts)
    tests = [f"(({one}) IS NOT NULL OR ({other}) IS NULL)" for one, other in pairwise(texts)] or ["TRUE"]
    truths = [text for call, text in batch if call.type.kind is Kind.BOOLEAN] or ["TRUE"]
    keys = ", ".join(texts[:2])
    return [
        f"SELECT {counts} FROM {source()}",
        f"SELECT count(*) FILTER (WHERE {' AND '.join(truths)}) FROM {source()} WHERE {' AND '.join(tests)}",
        f"SELECT count(*) FROM (SELECT {keys}, count(DISTINCT {texts[-1]}) FROM {source()} GROUP BY "
        f"{', '.join(str(place + 1) for place in range(len(texts[:2])))}) AS q",
        f"SELECT count(*) FROM {source()} WHERE EXISTS (SELECT 1 FROM {SCHEMA}.ids WHERE ids.id = hostile.id "
        f"AND ({truths[0]}))",
    ]


def failing(server: Any, calls: Sequence[Call]) -> list[str]:
    """What failed, with the statement."""
    import psycopg

    failed, kept = [], rendered(calls)
    for start in range(0, len(kept), TOGETHER):
        for statement in statements(kept[start : start + TOGETHER]):
            try:
                server.execute(statement.encode())
            except psycopg.Error as error:
                failed.append(f"{str(error)[:300]}\n{statement[:2000]}")
    return failed


def test_no_expression_fails(server: Any) -> None:
    assert not failing(server, list(expressions.Generator(12).many(800)))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_expression_fails_at_length(server: Any, shard: int) -> None:
    assert not failing(server, list(expressions.Generator(2_000 + shard).many(1_500)))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_pair_of_functions_fails(server: Any, shard: int) -> None:
    calls = list(expressions.nested(expressions.NAMES[shard::SHARDS], 200 + shard))
    assert len(calls) > 1_000
    assert not failing(server, calls)


def test_every_function_is_tried_or_refused(server: Any) -> None:
    generator = expressions.Generator(3)
    for name in FUNCTIONS:
        calls = [found for _ in range(12) if (found := generator.called(name, 1)) is not None]
        assert calls
        assert not failing(server, calls), name
