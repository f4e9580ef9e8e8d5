"""Every case of tests/cases that is an answer: PostgreSQL gives the same integers as DuckDB, or refuses by name.

Rows that limits keep are chosen by a hash that both engines have, in place of each engine's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import privsql
from privsql.algebra.exact import Operation
from privsql.planning.composed_plan import AnyPlan, ComposedPlan
from privsql.planning.plan import Plan
from privsql.render.duckdb import DuckDB
from privsql.tables import ExactTable
from tests.cases.test_cases import ALL_CASES, FIXTURES, Case, connection_of
from tests.support import postgres

pytestmark = postgres.needs_server()
_HASHED = "substr(md5(concat_ws(',', {args})), 1, 15)"
_REFUSALS = ("refused-function", "refused-cast", "refused-window")  # of what the dialect has no form for
# PostgreSQL has no TINYINT, so the sum of one has another bound; IN of a CHECK is written as ANY there
_OTHERWISE = {"schema_promises:72", "schema_promises:59"}
_MAIN = "main."  # DuckDB's first schema, which PostgreSQL calls public
FILES = sorted({case.file for case in ALL_CASES} - {"prepared"})


@pytest.fixture(autouse=True)
def _one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    from privsql.render.postgres import PostgreSQL

    ours = f"CAST('0x' || {_HASHED} AS BIGINT)"
    theirs = f"CAST(CAST('x' || {_HASHED} AS bit(60)) AS bigint)"
    for dialect, form in ((DuckDB, ours), (PostgreSQL, theirs)):
        monkeypatch.setattr(dialect, "operations", {**dialect.operations, Operation.HASH: form})


@lru_cache
def session_on_duckdb(fixture: str) -> privsql.Session:
    session = privsql.connect(connection_of(fixture), FIXTURES[fixture].policy)
    session._pipeline.engine.fixed_schema = True
    return session


@lru_cache
def session_on_postgres(fixture: str) -> privsql.Session:
    address = postgres.copy_of(connection_of(fixture), f"case_{fixture}")
    return privsql.connect(address, FIXTURES[fixture].policy)


def planned(session: privsql.Session, case: Case) -> AnyPlan | privsql.PrivsqlError:
    named = case.arguments()
    if "within" not in named:
        named["epsilon"] = 1.0
    try:
        return session.explain(case.sql, **named)
    except privsql.PrivsqlError as error:
        return error


def rows(table: ExactTable) -> list[tuple[Any, ...]]:
    """The rows in an order of their own."""
    keys = [
        [None if gone else value for value, gone in zip(data.tolist(), missing.tolist(), strict=True)]
        for data, missing in (
            (np.ma.getdata(each), np.ma.getmaskarray(each)) for each in table.exact_keys.values()
        )
    ]
    columns = [each.tolist() for each in table.exact_columns.values()]
    return sorted(zip(*keys, *columns, strict=True), key=repr)


def results(session: privsql.Session, plan: Plan, check: bool = False) -> list[list[tuple[Any, ...]]]:
    """What the statements of a plan give; `check`: once the engine has accepted them (DuckDB would not accept
    the hash of these tests).
    """
    engine = session._pipeline.engine
    if plan.public:
        return [sorted(engine.read_public(plan.sql), key=repr)]
    with engine.snapshot():
        for statement in plan.statements if check else ():
            engine.check(statement, session._pipeline.schema)
        return [rows(engine.run(statement, plan.keys)) for statement in plan.runs]


def compared(case: Case) -> str:
    """What came of a case on both engines."""
    try:
        theirs = session_on_postgres(case.settings["schema"])
    except privsql.PrivsqlError as error:  # a policy that does not fit the tables
        with pytest.raises(privsql.PrivsqlError) as raised:
            session_on_duckdb(case.settings["schema"])
        return "refused by both" if raised.value.code == error.code else f"ANOTHER ERROR: {error}"
    ours = session_on_duckdb(case.settings["schema"])
    plan, other = planned(ours, case), planned(theirs, case)
    match plan, other:
        case (Plan(), Plan()):
            return "same" if results(ours, plan) == results(theirs, other, check=True) else "DIFFERENT"
        case (privsql.PrivsqlError(), privsql.PrivsqlError()):
            return "refused by both"
        case (ComposedPlan(), ComposedPlan()):
            pairs = zip(plan.releases, other.releases, strict=True)
            same = all(results(ours, one) == results(theirs, two, check=True) for one, two in pairs)
            return "same" if same else "DIFFERENT"
        case (Plan() | ComposedPlan(), privsql.PrivsqlError(code=code)) if code in _REFUSALS:
            return "refused on PostgreSQL"
    return f"ANOTHER ANSWER: {plan if isinstance(plan, Exception) else other}"


@pytest.mark.parametrize("file", FILES)
def test_cases_have_the_same_integers(file: str) -> None:
    cases = [case for case in ALL_CASES if case.file == file and "prepared" not in case.settings]
    asked = [each for each in cases if each.name not in _OTHERWISE and _MAIN not in each.sql]
    found = {case.name: compared(case) for case in asked}
    counts = {what: list(found.values()).count(what) for what in sorted(set(found.values()))}
    print(file, counts)  # shown by -rP
    wrong = {name: what for name, what in found.items() if what[0].isupper() and what[:2].isupper()}
    assert not wrong, wrong
