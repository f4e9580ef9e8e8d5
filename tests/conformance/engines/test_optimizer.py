"""What an expression means does not depend on what DuckDB's optimizer makes of it: it may rewrite `CAST(x AS y) < c` to another
comparison, true where the cast is NULL, and then two conditions that exclude each other do not."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pytest

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression
from privsql.errors import PrivsqlError
from privsql.types import BOOLEAN, MOMENTS, NUMBERS, Kind
from tests.conformance.engines import DIALECT, expressions
from tests.conformance.engines.hostile import COLUMNS, VALUES, fill, source

ROWS, TOGETHER = 150, 30
EXPRESSIONS = 6_000
SHARDS = 8


def database(seed: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    fill(connection, ROWS, seed)
    return connection


def met(connection: duckdb.DuckDBPyConnection, rendered: Sequence[str], optimized: bool) -> list[set[int]]:
    """The rows that meet each condition, in a WHERE of its own."""
    connection.execute("PRAGMA enable_optimizer" if optimized else "PRAGMA disable_optimizer")
    found = " UNION ALL ".join(
        f"SELECT {place} AS place, id FROM {source()} WHERE {each}" for place, each in enumerate(rendered)
    )
    rows = connection.execute(found).fetchnumpy()
    return [set(np.asarray(rows["id"])[np.asarray(rows["place"]) == place]) for place in range(len(rendered))]


def conditions(call: Expression, generator: expressions.Generator) -> list[Expression]:
    """All that can be asked of a value: what it is, and how it compares with constants."""
    found: list[Expression] = [Call("is_null", (call,), BOOLEAN)]
    if call.type.kind is Kind.BOOLEAN:
        return [*found, call, Call("not", (call,), BOOLEAN)]
    if call.type.kind not in (*MOMENTS, *NUMBERS, Kind.TEXT, Kind.TIME):
        return found
    for constant in generator.constants_of(call.type):
        for operator in ("<", ">=", "=", "<>"):
            try:
                found.append(build.compare(operator, call, constant))
            except PrivsqlError:
                continue
    return found


def differences(connection: duckdb.DuckDBPyConnection, tests: Sequence[Expression]) -> list[str]:
    found = []
    for start in range(0, len(tests), TOGETHER):
        rendered = [DIALECT.expression(each) for each in tests[start : start + TOGETHER]]
        plain, optimized = (met(connection, rendered, each) for each in (False, True))
        found += [text for text, one, other in zip(rendered, plain, optimized, strict=True) if one != other]
    return found


def asked(seed: int, count: int, depth: int = 3) -> list[Expression]:
    generator = expressions.Generator(seed)
    tests: list[Expression] = []
    for call in generator.many(count, depth):
        tests += generator.draw.sample(every := conditions(call, generator), min(2, len(every)))
        if len(tests) >= count:
            break
    return tests


def casts() -> list[Expression]:
    """Every column in every type, compared with constants of that type."""
    generator = expressions.Generator(1)
    made = [
        build.convert(column, to, explicit=True) for column in COLUMNS.values() for to in expressions.CASTS
    ]
    return [test for each in (*COLUMNS.values(), *made) for test in conditions(each, generator)]


@pytest.mark.parametrize("shard", range(12))
def test_the_optimizer_changes_no_comparison_of_a_cast(shard: int) -> None:
    assert not differences(database(1), casts()[shard::12])


def test_the_optimizer_changes_no_condition() -> None:
    assert not differences(database(2), asked(31, 500))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_optimizer_changes_no_condition_at_length(shard: int) -> None:
    assert not differences(database(shard), asked(3_000 + shard, EXPRESSIONS // SHARDS))


def test_a_change_is_detected() -> None:
    """What DuckDB makes of a DATE beside a TIMESTAMP, and of which two conditions that both hold were thought to exclude
    each other."""
    connection = database(1)
    bare = f"TRY_CAST({COLUMNS['DATE'].name} AS TIMESTAMP) < TIMESTAMP '2024-01-01'"
    plain, optimized = (met(connection, [bare], each)[0] for each in (False, True))
    assert plain < optimized
    assert "'5877642-06-25 (BC)'" in VALUES["DATE"]
