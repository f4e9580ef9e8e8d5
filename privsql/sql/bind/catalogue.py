"""Schema and policy go in; the tables an analyst may name come out, as scans with claims on their columns."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import sqlglot

from privsql.algebra import literals
from privsql.algebra.declared import Claim, ListColumn
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Field, Limits, Scan
from privsql.algebra.reserved import is_ours
from privsql.algebra.unit_rows.units import Reference, Unit, UnitKind
from privsql.errors import PolicyError, PrivsqlError, Refused, SourceError, did_you_mean
from privsql.names import quoted_part, repeated_name
from privsql.policy import ColumnPolicy, Policy, TablePolicy, UnitPolicy
from privsql.policy.checks import DEFAULT_GROUPS, DEFAULT_ROWS
from privsql.policy.resolve import with_names_of
from privsql.schema import Schema, SchemaColumn, SchemaTable
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.qualified_names import reserved_name
from privsql.types import BIGINT, IN_UTC, NUMBERS, Kind, Type, in_zone


@dataclass(frozen=True)
class Catalogue:
    """Tables by name, with what the owner declared about them."""

    schema: Schema
    policy: Policy
    # the sources resolved so far
    _known: dict[str, Source] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", with_names_of(self.schema, self.policy, again=True))
        for name in self.policy.tables:
            if self.schema.table(name) is None:
                raise PolicyError(
                    "policy-table",
                    f"the policy names a table {name} that does not exist",
                    did_you_mean(name, self.names),
                )

    @property
    def names(self) -> list[str]:
        """The tables that queries may name."""
        hidden = (each for each in self.schema.tables if self.schema.is_elsewhere(each))
        undeclared = {each.name for each in hidden if each.name.lower() not in self.policy.tables}
        return [each.name for each in self.schema.tables if each.name not in undeclared]

    def source(self, name: str) -> Source | None:
        """A table by its name, or by the name that is reserved for it."""
        table = self._named(name)
        if table is not None and self.schema.is_elsewhere(table):
            self._refuse_undeclared(table)
        if table is not None and not table.in_sight and table.name.lower() not in self.policy.tables:
            self._refuse_namesake(table)
        if table is not None and table.view and table.name.lower() not in self.policy.tables:
            raise Refused(
                "refused-view",
                f"{table.name} is a view: only its owner can say how many of its rows belong to one person",
                f"ask the owner to declare it in the policy ([tables.{table.name}]) if each of its rows is "
                "one "
                "person's",
            )
        if table is None:
            return None
        if table.name not in self._known:
            policy = self.policy.table(table.name)
            unit = (
                None
                if policy.unit is None or policy.public
                else self._unit(table, policy.unit, (table.name,))
            )
            found = _source(table, policy, unit, self.policy.time_zone)
            _refuse_unsafe(table, policy)  # errors in the policy are reported first
            self._known[table.name] = found
        return self._known[table.name]

    def _named(self, name: str) -> SchemaTable | None:
        found = self.schema.table(name) or next(iter(self.schema.find((name,))), None)
        if found is None and name.startswith('"'):
            return next((each for each in self.schema.tables if reserved_name(each) == name), None)
        return found

    def _refuse_undeclared(self, table: SchemaTable) -> None:
        """Refuse a table of another database that the owner has attached, unless the policy names it."""
        if table.name.lower() not in self.policy.tables:
            raise Refused(
                "refused-attached",
                f"{table.name} is in another database than the one in use, and the policy does not name it.",
                f"Ask the owner to declare it in the policy ([tables.{quoted_part(table.name)}]).",
            )

    def _refuse_namesake(self, table: SchemaTable) -> None:
        """Refuse an undeclared table where the policy names the unit of another of that name, which is in
        sight: it may have come into sight only later, by CREATE TEMP TABLE or USE, and have taken the unit
        that the owner declared of this one.
        """
        seen = (each for each in self.schema.tables if each.in_sight and each is not table)
        other = next((each for each in seen if each.name.lower() == table.path[-1].lower()), None)
        if other is not None and self.policy.table(other.name).unit is not None:
            raise Refused(
                "refused-hidden",
                f"{table.name} is hidden by another table {other.name}, and the unit that the policy "
                "declares may be of either.",
                f"Ask the owner to declare it in the policy ([tables.{quoted_part(table.name)}]).",
            )

    def _unit(self, table: SchemaTable, declared: UnitPolicy, path: tuple[str, ...]) -> Unit:
        """The unit of a table's rows, followed through references to other tables."""
        _refuse_repeated(table)
        columns = tuple(_column(table, name) for name in declared.columns)
        keys = _keys(table, self.policy.table(table.name))
        alone = any(key <= {column.lower() for column in columns} for key in keys)
        kinds = tuple(_kind(table, name) for name in columns)
        if declared.table is None:
            return Unit(columns, alone, kinds)
        other = self.schema.table(declared.table)
        if other is None:
            raise PolicyError(
                "policy-unit",
                f"the unit of {table.name} refers to a table {declared.table} that does not exist",
                did_you_mean(declared.table, self.names),
            )
        if other.name in path:
            raise PolicyError(
                "policy-unit", f"the unit of {path[0]} refers back to {other.name}", "end at a column"
            )
        target = self.policy.table(other.name)
        _refuse_unsafe(other, target)
        named = tuple(_column(other, name) for name in declared.keys)
        if target.unit is None:
            raise PolicyError(
                "policy-unit",
                f"the unit of {table.name} refers to {other.name}, which has no unit",
                f'declare it: [tables.{other.name}] unit = "{named[0]}"',
            )
        if not any(key <= {name.lower() for name in named} for key in _keys(other, target)):
            raise PolicyError(
                "policy-unit",
                f"the unit of {table.name} refers to {other.name}.{', '.join(named)}, which is not UNIQUE",
                "a row could have two owners: make it UNIQUE, or promise it "
                f"([tables.{other.name}] unique = [{named[0]!r}])",
            )
        if kinds != tuple(_kind(other, name) for name in named):
            raise PolicyError(
                "policy-unit",
                f"the unit of {table.name} refers to {other.name} by columns of different types",
                "refer by columns of the same type",
            )
        whose = self._unit(other, target.unit, (*path, other.name))
        zone = self.policy.time_zone
        casts = tuple((each.name, _cast(each.cast, zone)) for each in other.columns if each.cast)
        reference = Reference(other.name, named, whose, casts, other.location)
        return Unit(columns, alone and whose.unique, whose.kinds, reference)


def _refuse_repeated(table: SchemaTable) -> None:
    """Raise SourceError for É and é: they are two columns in DuckDB, but one name in a policy or query."""
    repeated = repeated_name(column.name for column in table.columns)
    if repeated is not None:
        raise SourceError(
            "source-columns", f"table {table.name} has more than one column {repeated}", "rename one"
        )


def _refuse_unsafe(table: SchemaTable, policy: TablePolicy) -> None:
    """Refuse a table that computes something unsafe by DuckDB's own rules: if it failed on a row, an analyst
    who selects rows by WHERE would learn whose row it is.
    """
    if table.unsafe is not None and (table.unsafe.always or not policy.public):
        raise Refused(
            "refused-view" if table.view else "refused-generated",
            f"{table.name} computes {table.unsafe.what}, {table.unsafe.why}",
            f"ask the owner to {table.unsafe.cure}",
        )


def _column(table: SchemaTable, name: str) -> str:
    """A unit's column in its original spelling."""
    column = table.column(name)
    if column is None:
        raise PolicyError(
            "policy-unit",
            f"the unit {name} is not a column of {table.name}",
            did_you_mean(name, [each.name for each in table.columns]),
        )
    if column.type is None or _loses(column) or column.type.kind is Kind.INTERVAL:
        raise PolicyError(
            "policy-unit",
            f"the unit {name} has type {column.type_name}, which cannot identify people",
            "use a column of whole numbers or text",
        )
    return column.name


def _kind(table: SchemaTable, name: str) -> UnitKind:
    column = table.column(name)
    assert column is not None
    assert column.type is not None
    return column.type.kind, column.type.scale


def _loses(column: SchemaColumn) -> bool:
    """Whether we read different values of a column as the same: nanoseconds, or times in seconds that
    microseconds cannot represent, which all become NULL; and instants that are the same local time.
    """
    finer = column.type_name.upper() in ("TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS")
    return finer or column.cast == IN_UTC


def _keys(table: SchemaTable, policy: TablePolicy) -> list[frozenset[str]]:
    """Sets of columns in which no two rows agree: enforced by the schema, or promised by the owner."""
    for name in (name for names in policy.unique for name in names):
        if table.column(name) is None:
            raise PolicyError(
                "policy-column",
                f"the policy of {table.name} names a column {name} that does not exist",
                did_you_mean(name, [column.name for column in table.columns]),
            )
    found = [*table.keys, *(frozenset(name.lower() for name in names) for names in policy.unique)]
    # UNIQUE distinguishes 0.0 from -0.0, and nanoseconds; a join (or our types) does not
    unlike = {
        c.name.lower()
        for c in table.columns
        if c.type is None or c.type.kind in (Kind.DOUBLE, Kind.INTERVAL) or _loses(c)
    }
    return [key for key in found if not key & unlike]


def _cast(cast: str, zone: str) -> str:
    """How a column is brought to our type; instants are read in the time zone of the policy."""
    return in_zone(zone) if cast == IN_UTC else cast


def _source(table: SchemaTable, policy: TablePolicy, unit: Unit | None, zone: str) -> Source:
    _refuse_repeated(table)
    lowered = [column.name.lower() for column in table.columns]
    ours = next((column.name for column in table.columns if is_ours(column.name.lower())), None)
    if ours is not None:
        raise SourceError(
            "source-columns",
            f"table {table.name} has a column {ours}: privsql needs names that begin so itself",
            "rename it, or leave it out by a view",
        )
    for name in policy.columns:
        if name not in lowered:
            raise PolicyError(
                "policy-column",
                f"the policy of {table.name} names a column {name} that does not exist",
                did_you_mean(name, [column.name for column in table.columns]),
            )
    usable = [column for column in table.columns if column.type is not None]
    fields = tuple(Field(column.name, column.type) for column in usable if column.type is not None)
    claims = {
        column.name: _claim(table.name, column, policy.column(column.name), policy.auto) for column in usable
    }
    scan = Scan(
        table.name,
        fields,
        private=not policy.public,
        claims=claims,
        checks=tuple(_checks(table, fields)),
        casts={column.name: _cast(column.cast, zone) for column in usable if column.cast},
        unit=unit,
        limits=_limits(policy),
        keys=tuple(
            frozenset(each.name for each in usable if each.name.lower() in key)
            for key in _keys(table, policy)
            if key <= {each.name.lower() for each in usable}
        ),
        matches=tuple((_column(table, name), most) for name, most in policy.matches.items()),
        whole=len(usable) == len(table.columns),
        lists=tuple(
            _list(table.name, column, policy.column(column.name))
            for column in table.columns
            if column.elements
        ),
        view=table.view,
        stored=table.stored,
        location=table.location,
    )
    return Source(
        scan,
        table.name,
        tuple(each.name for each in fields),
        {column.name.lower(): column.type_name for column in table.columns if column.type is None},
        lists=scan.lists,
        gaps={
            column.name.lower(): sum(each.type is not None for each in table.columns[:place])
            for place, column in enumerate(table.columns)
            if column.type is None
        },
    )


def _limits(policy: TablePolicy) -> Limits:
    """The declared limits, with defaults for those that nobody declared; which are defaults is recorded."""
    assumed = frozenset(name for name in ("max_groups", "max_rows") if getattr(policy, name) is None)
    return Limits(policy.max_groups or DEFAULT_GROUPS, policy.max_rows or DEFAULT_ROWS, assumed)


def _list(table: str, column: SchemaColumn, policy: ColumnPolicy) -> ListColumn:
    held = column.elements
    assert held is not None
    assert held.type is not None
    return ListColumn(column.name, held.type, held.cast, _claim(table, held, policy, auto=False))


def _claim(table: str, column: SchemaColumn, policy: ColumnPolicy, auto: bool) -> Claim:
    assert column.type is not None
    where = f"{table}.{column.name}"
    values = _convert_all(policy.values, column.type, where)
    if values is None and column.labels is not None:
        values = column.labels
    if column.type.kind is Kind.BOOLEAN and values is None:
        values = (False, True)
    return Claim(
        low=_convert(policy.low, column.type, where),
        high=_convert(policy.high, column.type, where),
        values=values,
        nullable=not column.required,
        null_is_key=policy.null_is_key and not column.required,
        auto=(auto or policy.auto) and policy.low is None and column.type.kind in NUMBERS,
    )


def _convert_all(values: tuple[Any, ...] | None, type_: Type, where: str) -> tuple[Any, ...] | None:
    if values is None:
        return None
    converted = tuple(_convert(value, type_, where) for value in values)
    if type_.kind is Kind.INTEGER and not all(
        isinstance(each, int) and type_.low <= each <= type_.high for each in converted
    ):
        raise PolicyError(
            "policy-values", f"a declared value of {where} is not a {type_}", "declare values of its type"
        )
    return converted


def _convert(value: Any, type_: Type, where: str) -> Any:
    if value is None:
        return None
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        raise PolicyError(
            "policy-values",
            f"what was declared of {where} has an offset from UTC",
            "write the local time of the policy's time_zone, without an offset",
        )
    if type_.kind is Kind.DECIMAL and isinstance(value, float):
        value = Decimal(repr(value))  # 0.1 means one tenth
    literal = literals.literal_of(value)
    target = BIGINT if type_.kind is Kind.INTEGER else type_
    converted = literals.convert(literal, target) if literal is not None else None
    if (
        converted is None
        and type_.kind is Kind.INTEGER
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
    ):
        return value  # a range like (0, 1.5) on integers
    if converted is None or (isinstance(value, bool) and type_.kind is not Kind.BOOLEAN):
        frames = (
            "; a pandas column of dtype object is read as text: convert it" if type_.kind is Kind.TEXT else ""
        )
        raise PolicyError(
            "policy-values",
            f"what was declared of {where} is not a {type_}",
            f"declare values of its type{frames}",
        )
    return converted.value


def _checks(table: SchemaTable, fields: tuple[Field, ...]) -> list[Expression]:
    """The CHECK constraints that we can parse; others are ignored."""
    known = {each.name.lower(): each.column for each in fields}
    binder = ExpressionBinder(lambda node: known[node.name.lower()])
    found: list[Expression] = []
    for text in table.checks:
        try:
            found.append(binder.condition(sqlglot.parse_one(text, read="duckdb")))
        except (PrivsqlError, sqlglot.errors.SqlglotError, KeyError, RecursionError, AttributeError):
            continue
    return found
