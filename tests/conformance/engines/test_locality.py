"""The value of a row depends on that row alone, not on other rows, their order or what lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pytest

from privsql.algebra.expressions import Call, Literal
from privsql.algebra.patterns import DIRECTIVES
from privsql.types import TEXT
from tests.conformance.engines import DIALECT, expressions
from tests.conformance.engines.hostile import COLUMNS, fill, source

KEPT = 40  # rows whose values are compared
EXPRESSIONS = 20_000
SHARDS = 8


def worlds(seed: int) -> list[duckdb.DuckDBPyConnection]:
    """Databases that agree on the first rows and on nothing else: others beside them, before them, or none."""
    found = []
    for place, (others, order) in enumerate([(0, "id"), (150, "hash(id)"), (2_100, "id DESC")]):
        connection = duckdb.connect(config={"threads": "1"})
        fill(connection, KEPT, seed, "drawn")
        if others:
            fill(connection, others, seed * 7 + place, "drawn", first=KEPT)
        connection.execute(f"CREATE TABLE hostile AS FROM drawn ORDER BY {order}")
        found.append(connection)
    return found


def values(connection: duckdb.DuckDBPyConnection, rendered: Sequence[str]) -> np.ndarray:
    """A fingerprint of each value of each kept row; computed over all rows, and then sorted out."""
    columns = ", ".join(f"hash({each}) AS e{place}" for place, each in enumerate(rendered))
    every = f"SELECT id, {columns} FROM {source()} OFFSET 0"
    found = connection.execute(
        f"SELECT * EXCLUDE id FROM ({every}) WHERE id < {KEPT} ORDER BY id"
    ).fetchnumpy()
    return np.array([found[f"e{place}"] for place in range(len(rendered))])


def not_local(connections: Sequence[duckdb.DuckDBPyConnection], calls: Sequence[Call]) -> list[str]:
    found = []
    for start in range(0, len(calls), 50):
        rendered = [DIALECT.expression(each) for each in calls[start : start + 50]]
        first, *others = (values(each, rendered) for each in connections)
        for other in others:
            found += [rendered[place] for place in np.flatnonzero((first != other).any(axis=1))]
    return found


def test_a_value_depends_on_its_own_row_alone() -> None:
    assert not not_local(worlds(3), list(expressions.Generator(21).many(400)))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_value_depends_on_its_own_row_alone_at_length(shard: int) -> None:
    calls = list(expressions.Generator(2_000 + shard).many(EXPRESSIONS // SHARDS))
    assert not not_local(worlds(shard), calls)


def formatted(directives: Sequence[str]) -> list[Call]:
    formats = [
        f"{each}{between}{each}{after}"
        for each in directives
        for between in ("", "-")
        for after in ("", "%f")
    ]
    return [Call("strftime", (COLUMNS["TIMESTAMP"], Literal(each, TEXT)), TEXT) for each in formats]


def test_every_format_depends_on_its_own_row_alone() -> None:
    assert not not_local(worlds(5), formatted([*DIRECTIVES]))


def test_a_row_number_is_detected() -> None:
    """What the whole table decides is seen."""
    rendered = ["row_number() OVER ()", "(SELECT count(*) FROM hostile)"]
    first, second, *_ = (values(each, rendered) for each in worlds(5))
    assert (first != second).any(axis=1).all()
