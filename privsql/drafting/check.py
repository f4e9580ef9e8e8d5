"""A policy and a source go in; what the policy means comes out, table by table, or the first thing that is
wrong with it.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from privsql.algebra.declared import ListColumn
from privsql.algebra.relations import Scan
from privsql.algebra.reserved import quoted
from privsql.analysis.derive import derive
from privsql.analysis.domain import Domain
from privsql.budget.ledger import MemoryLedger
from privsql.drafting.caps import budget_lines
from privsql.engines.duckdb.open_source import open_engine
from privsql.errors import PolicyError, SqlError
from privsql.planning.look import PublicLook
from privsql.policy import Neighbours, Policy, load_policy
from privsql.schema import Schema, SchemaTable
from privsql.session import Session
from privsql.sql.bind.catalogue import Catalogue
from privsql.types import Kind

_WIDTH = 100


def check(policy: str | Path | Policy, source: Any) -> str:
    """Reads no private row. Raises what is wrong with the policy; returns what it means."""
    declared = load_policy(policy)
    engine = open_engine(source)
    try:
        schema = engine.schema()
        catalogue = Catalogue(schema, declared)
        session = Session(
            engine, declared, MemoryLedger(declared.epsilon, declared.neighbours), "policy check"
        )
        look = PublicLook(engine.read_public, engine.dialect)
        parts = [_all(declared)]
        for table in schema.tables:
            if table.view and table.name.lower() not in declared.tables:
                parts.append(
                    f"{table.name}\n  a view that the policy does not name: queries of it are refused"
                )
                continue
            if table.unsafe is not None and not declared.table(table.name).public:
                unsafe = table.unsafe
                parts.append(
                    f"{table.name}\n  computes {unsafe.what}, {unsafe.why}\n  queries of it are refused: {unsafe.cure}"
                )
                continue
            found = catalogue.source(table.name)
            assert found is not None
            assert isinstance(found.relation, Scan)
            scan = found.relation
            lines = _whose(table, scan, declared)
            if scan.private:
                plan = session.explain(f"SELECT COUNT(*) AS n FROM {quoted(table.name)}", 1.0)
                try:
                    engine.check(plan.sql, schema)
                except SqlError:
                    raise _cannot_follow(table, scan) from None
                lines.append(
                    ("COUNT(*)", f"one person moves it by at most {_number(plan.measurements[0].l1)}")
                )
                facts = derive(scan, frozenset(each.name for each in scan.fields), look)
                lines += [
                    (each.name, _column(facts.get(each.column), scan, each.name)) for each in scan.fields
                ]
            lines += [(each.name, _list(each, scan.private)) for each in scan.lists]
            lines += [
                (name, f"{kind}: no rules, queries cannot use it")
                for name, kind in _unusable(schema, table.name)
            ]
            width = max(len(name) for name, _ in lines)
            parts.append("\n".join([table.name, *(f"  {name:{width}}  {text}" for name, text in lines)]))
    finally:
        engine.close()
    return "\n\n".join(parts)


def _all(policy: Policy) -> str:
    replaced = policy.neighbours is Neighbours.REPLACE_ONE
    hidden = (
        "whether one unit's data are these or any others" if replaced else "whether one unit is there at all"
    )
    promise = f"{policy.neighbours.value}: no answer gives away {hidden}"
    lines = [("neighbours", promise), *budget_lines(policy)]
    if policy.min_units > 1:
        shown = f"keys that nobody declared are shown with at least {policy.min_units} units"
        lines.append(("min_units", shown))
    return "\n".join(f"{name:10}  {text}" for name, text in lines)


def _whose(table: SchemaTable, scan: Scan, policy: Policy) -> list[tuple[str, str]]:
    if not scan.private:
        return [("whose rows", "nobody's: public, and answers about it alone are exact")]
    if scan.unit is None:
        named = table.name.lower() in policy.tables
        why = "no unit is declared" if named else "the policy does not name this table"
        return [("whose rows", f"EACH ROW COUNTS AS ONE PERSON: {why}")]
    lines = [("whose rows", _chain(scan))]
    if scan.unit.unique:
        return [*lines, ("bounded", "one row a unit, because it is UNIQUE: nothing is cut off")]
    assert scan.limits is not None
    own = policy.table(table.name)
    keys = f"at most {scan.limits.max_groups} keys a unit{'' if own.max_groups else ' (the default)'}"
    return [
        *lines,
        ("bounded", f"{keys}, {scan.limits.max_rows} rows in each{'' if own.max_rows else ' (the default)'}"),
    ]


def _chain(scan: Scan) -> str:
    """The unit, through as many tables as it takes."""
    unit = scan.unit
    assert unit is not None
    text, nullable = (
        unit.text,
        unit.refers_to is not None or any(scan.claims[name].nullable for name in unit.columns),
    )
    while unit.refers_to is not None:
        unit = unit.refers_to.unit
        text += f", whose rows are {unit.text}" if unit.refers_to else f", whose unit is {unit.text}"
    return text + ("; rows without one are left out" if nullable else "")


def _column(domain: Domain | None, scan: Scan, name: str) -> str:
    if scan.unit is not None and name in scan.unit.columns:
        return "names the unit"
    if domain is None:
        return "no range, no keys"
    if scan.claims[name].auto and not domain.bounded:
        return "range found privately when a question needs it, for a part of its epsilon"
    null = (
        ""
        if not domain.nullable
        else ", NULL"
        if domain.null_is_key
        else "; rows with NULL are in none of them"
    )
    if domain.values is not None:
        listed = ", ".join(_text(value) for value in domain.values[:50])
        return f"keys {listed if len(listed) <= _WIDTH else listed[: _WIDTH - 4] + ' ...'}{null}"
    if domain.low is not None and domain.high is not None:
        keys = f"; as keys, each of these{null}" if domain.type.kind in (Kind.INTEGER, Kind.DATE) else ""
        return f"range {_text(domain.low)} to {_text(domain.high)}{keys}"
    return "no range, no keys: it can be filtered on" + (
        ", not summed" if domain.type.kind is not Kind.TEXT else ""
    )


def _unusable(schema: Schema, table: str) -> list[tuple[str, str]]:
    found = schema.table(table)
    columns = found.columns if found else ()
    return [(each.name, each.type_name) for each in columns if each.type is None and each.elements is None]


def _list(column: ListColumn, private: bool) -> str:
    opened = f"a list of {column.type}, for UNNEST(list_distinct({column.name}))"
    if not private:
        return opened
    return (
        f"{opened}: nobody declared its values"
        if column.most is None
        else f"{opened}: {column.most:,} values"
    )


def _cannot_follow(table: SchemaTable, scan: Scan) -> PolicyError:
    unit = scan.unit.text if scan.unit is not None else "none"
    return PolicyError(
        "policy-unit",
        f"DuckDB cannot follow the unit of {table.name} ({unit})",
        "columns that refer to each other must have types that can be compared",
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return (
        _number(value)
        if isinstance(value, Fraction)
        else repr(value)
        if isinstance(value, str)
        else str(value)
    )


def _number(value: Any) -> str:
    exact = Fraction(value)
    return f"{exact.numerator:,}" if exact.denominator == 1 else f"{float(exact):,.6g}"
