"""Every expression and aggregate has its expected engine type: DuckDB is asked, not trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import duckdb
import pytest

import privsql
from privsql.algebra.expressions import Call
from privsql.algebra.relations import Group, walk
from privsql.types import INTEGER_BOUNDS, Kind, Type
from tests.conformance.engines import DIALECT, expressions
from tests.conformance.engines.hostile import COLUMNS, VALUES, fill, source

Item = TypeVar("Item")
SHARDS = 4


def batches(items: Sequence[Item], size: int = 250) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        fill(connection, 60, 1)
        yield connection


def engine_types(connection: duckdb.DuckDBPyConnection, rendered: Sequence[str], origin: str) -> list[str]:
    columns = ", ".join(f"{each} AS e{place}" for place, each in enumerate(rendered))
    return [row[1] for row in connection.execute(f"DESCRIBE SELECT {columns} FROM {origin}").fetchall()]


def is_believed(engine: str, believed: Type, exactly: bool = True) -> bool:
    """Whether that is the engine's name of the type; casts to TINYINT and the like stay narrower than what we compute in."""
    if not exactly and believed.kind is Kind.INTEGER and engine in INTEGER_BOUNDS:
        low, high = INTEGER_BOUNDS[engine]
        return INTEGER_BOUNDS[str(believed)][0] <= low and high <= INTEGER_BOUNDS[str(believed)][1]
    return engine == str(believed)


def assert_types(connection: duckdb.DuckDBPyConnection, calls: Sequence[Call]) -> None:
    for batch in batches(calls):
        rendered = [DIALECT.expression(each) for each in batch]
        for call, text, engine in zip(
            batch, rendered, engine_types(connection, rendered, source()), strict=True
        ):
            assert is_believed(engine, call.type, call.function != "cast"), (
                f"{engine}, believed {call.type}: {text}"
            )


def assert_bounds(connection: duckdb.DuckDBPyConnection, calls: Sequence[Call]) -> None:
    """A whole number is within the bounds by which overflow is ruled out."""
    whole = [each for each in calls if each.type.kind is Kind.INTEGER]
    for batch in batches(whole, 100):
        columns = ", ".join(f"min({sql}), max({sql})" for sql in map(DIALECT.expression, batch))
        ends = connection.execute(f"SELECT {columns} FROM {source()}").fetchall()[0]
        for call, low, high in zip(batch, ends[::2], ends[1::2], strict=True):
            assert low is None or call.type.low <= low <= high <= call.type.high, DIALECT.expression(call)


def test_functions_of_columns_have_the_believed_types(database: duckdb.DuckDBPyConnection) -> None:
    calls = list(expressions.Generator(5).many(1_000, depth=1))
    assert {each.function for each in calls} == {*expressions.NAMES} | {"cast"}
    assert_types(database, calls)
    assert_bounds(database, calls)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_functions_of_functions_have_the_believed_types(
    database: duckdb.DuckDBPyConnection, shard: int
) -> None:
    calls = list(expressions.nested(expressions.NAMES[shard::SHARDS], shard))
    print(len(calls), "expressions")
    assert len(calls) > 2_500
    assert_types(database, calls)
    assert_bounds(database, calls)


# -- aggregates of one unit's rows -------------------------------------------------------------------------------
AGGREGATES = [
    "COUNT({})",
    "COUNT(DISTINCT {})",
    "SUM({})",
    "AVG({})",
    "MIN({})",
    "MAX({})",
    "any_value({})",
    "arg_min({}, i)",
    "arg_max({}, i)",
    "first({} ORDER BY i)",
    "last({} ORDER BY i)",
    "bool_or(({}) IS NULL)",
    "SUM({}) FILTER (WHERE i > 0)",
    "SUM(2 * {})",
    "SUM(coalesce({}, 1))",
    "AVG(CASE WHEN i > 0 THEN {} END)",
    "MIN(abs({}))",
    "SUM({} // 3)",
]
_RANGES = {"DOUBLE": [-1e6, 1e6], "FLOAT": [-1e6, 1e6], "HUGEINT": [-(10**30), 10**30]}


@pytest.fixture(scope="module")
def units() -> Iterator[privsql.Session]:
    """People with rows of every type."""
    connection = duckdb.connect()
    kinds = ", ".join(f"{column.name} {name}" for name, column in COLUMNS.items())
    connection.execute(f"CREATE TABLE t (u INTEGER, i INTEGER, {kinds})")
    ranges = {COLUMNS[name].name: {"range": ends} for name, ends in _RANGES.items()}
    ranges |= {
        column.name: {"range": [-90, 90]} for name, column in COLUMNS.items() if name.startswith("DECIMAL(")
    }
    with privsql.connect(connection, {"tables": {"t": {"unit": "u", "columns": ranges}}}) as session:
        yield session


@pytest.fixture(scope="module")
def twin() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        kinds = ", ".join(f"{column.name} {name}" for name, column in COLUMNS.items())
        connection.execute(f"CREATE TABLE t (u INTEGER, i INTEGER, {kinds})")
        yield connection


@pytest.mark.parametrize("kind", VALUES)
def test_aggregates_within_a_unit_have_the_believed_types(
    units: privsql.Session, twin: duckdb.DuckDBPyConnection, kind: str
) -> None:
    checked = 0
    for form in AGGREGATES:
        aggregate = form.format(COLUMNS[kind].name)
        try:
            plan = units.explain(
                f"SELECT COUNT(*) FROM (SELECT u, {aggregate} AS v FROM t GROUP BY u) WHERE v IS NOT NULL",
                1.0,
            )
        except privsql.SqlError:
            continue
        assert plan.release is not None
        group = next(each for each in walk(plan.release.input) if isinstance(each, Group))
        (field,) = [each for each in group.fields if each.name != "u"]
        engine = twin.execute(
            f"DESCRIBE SELECT {DIALECT.identifier(field.name)} FROM {DIALECT.rows(group)}"
        ).fetchall()[0][1]
        assert is_believed(engine, field.type), f"{engine}, believed {field.type}: {aggregate} of {kind}"
        checked += 1
    assert checked >= 6


def test_a_wrong_belief_about_types_is_detected(database: duckdb.DuckDBPyConnection) -> None:
    """The audit found floor of a DECIMAL, believed DOUBLE: without the cast this test sees it."""
    column = COLUMNS["DECIMAL(18,3)"]
    assert engine_types(database, [f"floor({column.name})"], source()) == ["DECIMAL(18,0)"]
    assert not is_believed("DECIMAL(18,0)", Type(Kind.DOUBLE))
