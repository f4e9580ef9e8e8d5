"""A policy and a source go in; what the policy means comes out, table by table, or what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from privsql.algebra.declared import ListColumn
from privsql.algebra.relations import Scan
from privsql.algebra.reserved import quoted
from privsql.analysis.derive import derive
from privsql.analysis.domain import Domain
from privsql.budget.ledger import MemoryLedger
from privsql.drafting.budget_lines import budget_lines
from privsql.engines.duckdb.engine import DuckDBEngine
from privsql.engines.duckdb.open_source import open_engine
from privsql.errors import PolicyError, SqlError
from privsql.neighbours import Neighbours
from privsql.planning.public_look import PublicLook
from privsql.policy import Policy, load_policy
from privsql.schema import Schema, SchemaTable
from privsql.session import Session
from privsql.sql.bind.catalogue import Catalogue
from privsql.types import Kind

_WIDTH = 100


def check_policy(policy: str | Path | Policy, source: Any) -> str:
    """Explain what a policy means for a source. Reads no private row.

    Arguments:
        policy: a Policy, or the path of a policy file.
        source: a path, or anything else that connect() takes.

    Returns:
        A text: the budget and caps, then each table with its unit, limits and columns.

    Raises:
        PolicyError: the policy does not make sense, or does not fit the source.
        SourceError: the source cannot be opened.
    """
    declared = load_policy(policy)
    engine = open_engine(source)
    try:
        schema = engine.schema()
        catalogue = Catalogue(schema, declared)
        declared = catalogue.policy
        session = Session(
            engine, declared, MemoryLedger(declared.epsilon, declared.neighbours), "policy check"
        )
        explained = _Explained(engine, schema, declared, catalogue, session)
        parts = [_promise(declared), *(explained.table(table) for table in schema.tables)]
    finally:
        engine.close()
    return "\n\n".join(parts)


@dataclass(frozen=True)
class _Explained:
    """What a policy means for the tables of one source."""

    engine: DuckDBEngine
    schema: Schema
    policy: Policy
    catalogue: Catalogue
    session: Session

    def table(self, table: SchemaTable) -> str:
        if table.view and table.name.lower() not in self.policy.tables:
            return f"{table.name}\n  a view that the policy does not name; queries of it are refused"
        if table.unsafe is not None and not self.policy.table(table.name).public:
            unsafe = table.unsafe
            computes = f"{table.name}\n  computes {unsafe.what}, {unsafe.why}"
            return f"{computes}\n  queries of it are refused: {unsafe.cure}"
        found = self.catalogue.source(table.name)
        assert found is not None
        assert isinstance(found.relation, Scan)
        scan = found.relation
        lines = _unit_lines(table, scan, self.policy)
        if scan.private:
            lines += self._private_lines(table, scan)
        lines += [(each.name, _list(each, scan.private)) for each in scan.lists]
        lines += [
            (name, f"{kind}: not supported, so queries cannot use it")
            for name, kind in _unusable(self.schema, table.name)
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join([table.name, *(f"  {name:{width}}  {text}" for name, text in lines)])

    def _private_lines(self, table: SchemaTable, scan: Scan) -> list[tuple[str, str]]:
        """How far one person moves a count, and the domain of each column."""
        plan = self.session.explain(f"SELECT COUNT(*) AS n FROM {quoted(table.name)}", 1.0)
        try:
            self.engine.check(plan.sql, self.schema)
        except SqlError:
            raise _cannot_follow(table, scan) from None
        look = PublicLook(self.engine.read_public, self.engine.dialect)
        facts = derive(scan, frozenset(each.name for each in scan.fields), look)
        return [
            ("COUNT(*)", f"one person changes it by at most {_number(plan.measurements[0].l1)}"),
            *((each.name, _column(facts.get(each.column), scan, each.name)) for each in scan.fields),
        ]


def _promise(policy: Policy) -> str:
    replaced = policy.neighbours is Neighbours.REPLACE_ONE
    hidden = (
        "whether one unit's data are these or any others"
        if replaced
        else "whether one unit is in the data at all"
    )
    promise = f"{policy.neighbours.value}: no answer reveals {hidden}"
    lines = [("neighbours", promise), *budget_lines(policy)]
    if policy.min_units > 1:
        shown = f"undeclared keys are shown only with at least {policy.min_units} units"
        lines.append(("min_units", shown))
    return "\n".join(f"{name:10}  {text}" for name, text in lines)


def _unit_lines(table: SchemaTable, scan: Scan, policy: Policy) -> list[tuple[str, str]]:
    if not scan.private:
        return [("privacy unit", "none: public, so answers about this table alone are exact")]
    if scan.unit is None:
        named = table.name.lower() in policy.tables
        why = "no unit is declared" if named else "the policy does not name this table"
        return [("privacy unit", f"EACH ROW COUNTS AS ONE PERSON: {why}")]
    lines = [("privacy unit", _chain(scan))]
    if scan.unit.unique:
        return [*lines, ("limits", "one row per unit, because it is UNIQUE: nothing is dropped")]
    assert scan.limits is not None
    own = policy.table(table.name)
    keys = f"at most {scan.limits.max_groups} keys per unit{'' if own.max_groups else ' (the default)'}"
    return [
        *lines,
        ("limits", f"{keys}, {scan.limits.max_rows} rows in each{'' if own.max_rows else ' (the default)'}"),
    ]


def _chain(scan: Scan) -> str:
    """The unit, followed through references to other tables."""
    unit = scan.unit
    assert unit is not None
    text, nullable = (
        unit.text,
        unit.refers_to is not None or any(scan.claims[name].nullable for name in unit.columns),
    )
    while unit.refers_to is not None:
        unit = unit.refers_to.unit
        text += f", whose unit is {unit.text}"
    return text + ("; rows without a unit are left out" if nullable else "")


def _column(domain: Domain | None, scan: Scan, name: str) -> str:
    if scan.unit is not None and name in scan.unit.columns:
        return "names the unit"
    if domain is None:
        return "no range, no keys"
    if scan.claims[name].auto and not domain.bounded:
        return "range found privately when a query needs it, for part of its epsilon"
    null = (
        ""
        if not domain.nullable
        else ", NULL"
        if domain.null_is_key
        else "; rows with NULL have none of these keys"
    )
    if domain.values is not None:
        listed = ", ".join(_text(value) for value in domain.values[:50])
        return f"keys {listed if len(listed) <= _WIDTH else listed[: _WIDTH - 4] + ' ...'}{null}"
    if domain.low is not None and domain.high is not None:
        keys = (
            f"; as keys, each value of the range{null}"
            if domain.type.kind in (Kind.INTEGER, Kind.DATE)
            else ""
        )
        return f"range {_text(domain.low)} to {_text(domain.high)}{keys}"
    summed = "" if domain.type.kind is Kind.TEXT else ", not summed"
    return f"no range, no keys: it can be filtered on{summed}"


def _unusable(schema: Schema, table: str) -> list[tuple[str, str]]:
    found = schema.table(table)
    columns = found.columns if found else ()
    return [(each.name, each.type_name) for each in columns if each.type is None and each.elements is None]


def _list(column: ListColumn, private: bool) -> str:
    opened = f"a list of {column.type}, for UNNEST(list_distinct({column.name}))"
    if not private:
        return opened
    return (
        f"{opened}; its values are not declared"
        if column.most is None
        else f"{opened}; {column.most:,} values"
    )


def _cannot_follow(table: SchemaTable, scan: Scan) -> PolicyError:
    unit = scan.unit.text if scan.unit is not None else "none"
    return PolicyError(
        "policy-unit",
        f"DuckDB cannot follow the references in the unit of {table.name} ({unit})",
        "make sure that columns on both sides of -> have types that can be compared",
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
