"""Sums, spreads and quantiles of hostile values: the same integers from PostgreSQL as from DuckDB, and no failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import privsql
from tests.support import postgres

pytestmark = postgres.needs_server()

SCHEMA = "privsql_totals"
DOUBLES = [
    *(
        "'inf'",
        "'-inf'",
        "'nan'",
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        "-5e-324",
        "'-0.0'",
    ),
    *(
        "0.0",
        "0.285",
        "2.5",
        "-3.5",
        "1e19",
        "-1e40",
        "1e-200",
        "1e200",
        "0.5",
        "-0.5",
        "1e300",
        "99.99",
        "NULL",
    ),
]
WHOLE = ["-9223372036854775808", "9223372036854775807", "0", "-1", "3", "9007199254740993", "100", "NULL"]
EXACT = ["99999999.99", "-99999999.99", "0.01", "0.00", "-0.05", "12.34", "NULL"]
DATES = ["'infinity'", "'-infinity'", "'0001-01-01'", "'2024-02-29'", "'2024-12-31'", "'9999-12-31'", "NULL"]
RANGES: dict[str, list[tuple[Any, Any]]] = {
    "x": [(0, 1), (-100, 100), (0, 1e-300), (-1e18, 1e18), (0.25, 0.75), (0, 1e9)],
    "i": [(0, 100), (-(2**40), 2**40), (-(2**62), 2**62 - 1)],
    "d": [(0, 100), (-1e8, 1e8)],
}
AGGREGATES = [
    "SUM({c})",
    "AVG({c})",
    "VAR_SAMP({c})",
    "MEDIAN({c})",
    "MIN({c})",
    "MAX({c})",
    "SUM({c} * {c})",
    "SUM({c} / 3)",
    "SUM(CASE WHEN {c} > 1 THEN {c} ELSE 0 END)",
    "SUM({c} - 1)",
    "SUM(ABS({c}))",
    "COUNT(DISTINCT {c})",
]


def _fill(run: Any, double: str) -> None:
    rows = max(len(DOUBLES), 64)
    run(f"CREATE TABLE t (id integer, x {double}, i bigint, d decimal(10, 2), day date)")
    for row in range(rows):
        chosen = [
            each[(row * step) % len(each)]
            for step, each in ((1, DOUBLES), (3, WHOLE), (5, EXACT), (3, DATES))
        ]
        run(f"INSERT INTO t VALUES ({row}, {', '.join(chosen)})")


@pytest.fixture(scope="module")
def sources() -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    ours = duckdb.connect()
    _fill(ours.execute, "double")
    with postgres.connect() as server:
        server.execute(
            f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}"
        )
        _fill(server.execute, "double precision")
    yield ours, postgres.schema_address(SCHEMA)
    ours.close()


def exact(source: Any, policy: dict[str, Any], sql: str) -> list[list[tuple[str, list[int]]]]:
    with privsql.connect(source, policy) as session:
        plan = session.explain(sql, epsilon=1)
        engine = session._pipeline.engine
        with engine.snapshot():
            for statement in plan.statements:
                engine.check(statement, engine.schema())
            found = [engine.run(statement, plan.keys) for statement in plan.runs]
        tables = [{name: values.tolist() for name, values in each.exact_columns.items()} for each in found]
        rows = [sorted(zip(*table.values(), strict=True)) for table in tables]
        return [
            [(name, [row[n] for row in sorted_]) for n, name in enumerate(t)]
            for t, sorted_ in zip(tables, rows, strict=True)
        ]


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("column", list(RANGES))
def test_totals_of_hostile_values_are_those_of_duckdb(
    sources: tuple[duckdb.DuckDBPyConnection, str], column: str, unit: str | None
) -> None:
    ours, theirs = sources
    different, answered = [], 0
    for low, high in RANGES[column]:
        table: dict[str, Any] = {"columns": {column: {"range": [low, high]}}}
        if unit is not None:
            table |= {"unit": unit, "max_rows": 100}
        for aggregate in AGGREGATES:
            sql = f"SELECT {aggregate.format(c=column)} AS a FROM t"
            try:
                expected = exact(ours, {"tables": {"t": table}}, sql)
            except privsql.PrivsqlError:
                continue
            answered += 1
            if exact(theirs, {"tables": {"t": table}}, sql) != expected:
                different.append(f"{sql} in [{low}, {high}]")
    assert answered > 10
    assert not different
