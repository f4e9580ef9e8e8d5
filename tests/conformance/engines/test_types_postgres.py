"""Every rendered expression has the type that it is believed to have on PostgreSQL, and whole numbers are within its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from privsql.algebra.expressions import Call
from privsql.types import INTEGER_BOUNDS, Kind
from tests.conformance.engines import expressions
from tests.conformance.engines.test_failures_postgres import rendered
from tests.support.postgres import needs_server

pytestmark = needs_server()
_NAMES = {
    Kind.BOOLEAN: "boolean",
    Kind.DECIMAL: "numeric",
    Kind.DOUBLE: "double precision",
    Kind.TEXT: "text",
    Kind.NULL: "text",
    Kind.DATE: "date",
    Kind.TIME: "time without time zone",
    Kind.TIMESTAMP: "timestamp without time zone",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    from tests.conformance.engines import hostile_postgres

    with hostile_postgres.postgres.connect() as owner:
        hostile_postgres.fill(owner, 60, seed=9)
    with hostile_postgres.connect() as connection:
        yield connection


def believed(call: Call) -> str:
    if call.type.kind is Kind.INTEGER:
        return "numeric" if call.type.is_wide else "bigint"
    return _NAMES[call.type.kind]


@pytest.mark.parametrize(
    "seed", [21, pytest.param(22, marks=pytest.mark.slow), pytest.param(23, marks=pytest.mark.slow)]
)
def test_types_are_those_believed(server: Any, seed: int) -> None:
    from tests.conformance.engines.hostile_postgres import source

    wrong, tried = [], 0
    for call, text in rendered(list(expressions.Generator(seed).many(900))):
        tried += 1
        ends = f", min({text}), max({text})" if call.type.kind is Kind.INTEGER else ""
        query = f"SELECT min(CAST(pg_typeof({text}) AS text)){ends} FROM {source()}"
        found, *limits = server.execute(query.encode()).fetchone()
        if found != believed(call):
            wrong.append(f"{call.function}: {found}, not {believed(call)}: {text[:300]}")
        low, high = (call.type.low, call.type.high) if ends else (0, 0)
        if call.type.kind is Kind.INTEGER and call.function not in ("cast",) and call.type.is_wide:
            low, high = INTEGER_BOUNDS["HUGEINT"]
        if any(each is not None and not low <= each <= high for each in limits):
            wrong.append(f"{call.function}: {limits} is not within {low} and {high}: {text[:300]}")
    assert tried > 300
    assert not wrong, wrong[:5]
