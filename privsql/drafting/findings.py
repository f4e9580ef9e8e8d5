"""A schema and an epsilon go in; max_rows of tables and ranges of columns come out, from noisy counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Never

from privsql.algebra.relations import Scan
from privsql.analysis.derive import derive
from privsql.analysis.domain import Domain
from privsql.budget.ledger import Ledger, MemoryLedger
from privsql.budget.ledger_file.file_ledger import open_ledger
from privsql.budget.ledger_file.ledger_reader import named
from privsql.drafting.choose_rows import ChosenRows, choose_rows
from privsql.drafting.columns import wants_range
from privsql.drafting.guess import Guess
from privsql.drafting.ranges import RangeSearch, find_ranges, searchable
from privsql.engines.base import Engine
from privsql.planning.limits.range_histograms import Unknown
from privsql.planning.public_look import PublicLook
from privsql.policy import Policy, load_policy
from privsql.policy.checks import NANO, epsilon_of
from privsql.privacy.events import Pure
from privsql.render.duckdb import DUCKDB
from privsql.schema import Schema, SchemaTable
from privsql.session import Session
from privsql.sql.bind.catalogue import Catalogue

BUDGET = Fraction(3)  # of a draft


@dataclass(frozen=True)
class Findings:
    """What a draft learnt from noisy counts, and its cost. `cap`: that of the ledger charged, if any."""

    rows: Mapping[str, ChosenRows] = field(default_factory=dict)
    ranges: Mapping[Unknown, RangeSearch] = field(default_factory=dict)
    spent: Fraction = Fraction(0)
    ledger: str | None = None
    cap: float | None = None


def learn(
    engine: Engine,
    schema: Schema,
    units: Mapping[str, Guess],
    price: Fraction,
    ranges: bool,
    path: str | Path | None,
    analyst: str,
) -> Findings:
    """Run the queries, each at the same epsilon, all of them together at `price`."""
    policy = load_policy({**declared(units), **_budget_of(path)})
    trial = Session(engine, policy, MemoryLedger(None, policy.neighbours), analyst)
    tables = [table for table in schema.tables if not table.view]
    many = [table.name for table in tables if table.name in units and not _alone(schema, policy, table)]
    columns = searchable(trial, list(_columns_without_range(schema, policy, units))) if ranges else []
    queries = len(many) + len(columns)
    if not queries:
        return Findings()
    each = epsilon_of(price / queries)
    ledger: Ledger = (
        MemoryLedger(price, policy.neighbours) if path is None else open_ledger(path, policy, schema)
    )
    try:
        session = Session(engine, policy, ledger, analyst)
        before = _spent_by(session, analyst)
        ledger.expect([[Pure(each)]] * queries, analyst)
        rows = choose_rows(session, units, many, float(each))
        found = find_ranges(session, columns, float(each))
        spent, limit = _spent_by(session, analyst) - before, session.budget.limit.epsilon
    finally:
        ledger.close()
    if path is None:
        return Findings(rows, found, price)
    return Findings(rows, found, spent, Path(path).name, limit)


def _budget_of(path: str | Path | None) -> dict[str, Any]:
    """A new ledger gets the budget of the draft; an existing one keeps its own."""
    return {} if path is None or named(path).exists() else {"budget": {"epsilon": float(BUDGET)}}


def _spent_by(session: Session, analyst: str) -> Fraction:
    history = session.history()
    return Fraction(round(history.loc[history["analyst"] == analyst, "epsilon"].sum() * NANO), NANO)


def _columns_without_range(schema: Schema, policy: Policy, units: Mapping[str, Guess]) -> Iterator[Unknown]:
    for table in schema.tables:
        if table.view:
            continue
        domains = domains_of(scan_of(schema, policy, table))
        for column in table.columns:
            if column.type is not None and wants_range(
                column, domains.get(column.name), *roles_of(table, column.name, units.get(table.name))
            ):
                yield Unknown(table.name, column.name, column.type)


def roles_of(table: SchemaTable, column: str, unit: Guess | None) -> tuple[bool, bool]:
    """Whether a column names the unit, and whether it is a key of its table."""
    whose = {name.lower() for name in unit.columns} if unit is not None else set()
    return column.lower() in whose, frozenset({column.lower()}) in table.keys


def domains_of(scan: Scan) -> dict[str, Domain | None]:
    """What the schema implies for each column."""
    facts = derive(scan, frozenset(each.name for each in scan.fields), PublicLook(_nothing_is_public, DUCKDB))
    return {each.name: facts.get(each.column) for each in scan.fields}


def _nothing_is_public(sql: str) -> Never:
    raise AssertionError("no table of a draft is public")


def declared(units: Mapping[str, Guess]) -> dict[str, Any]:
    return {"tables": {name: {"unit": guess.declaration} for name, guess in units.items()}}


def scan_of(schema: Schema, policy: Policy, table: SchemaTable) -> Scan:
    found = Catalogue(schema, policy).source(table.name)
    assert found is not None
    assert isinstance(found.relation, Scan)
    return found.relation


def _alone(schema: Schema, policy: Policy, table: SchemaTable) -> bool:
    """Whether the schema allows a unit at most one row."""
    unit = scan_of(schema, policy, table).unit
    return unit is not None and unit.unique
