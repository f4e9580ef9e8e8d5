"""A plan and a schema go in; a `World` comes out: the private tables of the query, with the values worth
trying in each column.

No row of the private tables is read: values come from types, the policy and the constants of the query.
Public tables are copied as they are, since the plan depends on them.

A person is a state: for each table some rows, and for each row the places of its values. Columns that say
whose a row is, or which row it is, are filled in rather than tried, so that units, references and UNIQUE
columns hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from privsql.algebra.declared import Claim, ListColumn
from privsql.algebra.expressions import Column, Literal
from privsql.algebra.relations import Project, Relation, Scan, walk
from privsql.algebra.unit_rows.units import Unit
from privsql.audit.values import NULL, numbered, values_of
from privsql.neighbours import Neighbours
from privsql.planning.plan import Plan
from privsql.render.duckdb import identifier
from privsql.schema import Schema, SchemaColumn, SchemaTable
from privsql.types import Kind, Type

Row = tuple[int, ...]  # the places of its values, in the columns that are tried
State = tuple[tuple[Row, ...], ...]  # one person: rows by table

PEOPLE = 512  # how many people can be told apart; row numbers start above
_MOST_PUBLIC = 2_000  # rows copied of a public table; using fewer of them increases no distance
_BELOW = ("input", "inputs", "left", "right", "other")  # the fields in which relations keep their inputs
_CODES = 8  # how many values of a UNIQUE column are tried


class Role(Enum):
    """What a column is for."""

    VALUE = "its values are tried"
    UNIT = "names the unit of a row"
    FIXED = "belongs to the unit, but is the same for everybody"
    NUMBER = "says which row it is"
    REFERS = "references a row of another table"


@dataclass(frozen=True)
class Tried:
    """A column of a generated table: the values to try, as SQL, or (`numbered`) the SQL of the n-th value if
    the column is filled in.
    """

    name: str
    type_name: str
    texts: tuple[str, ...]
    role: Role = Role.VALUE
    numbered: str = ""
    refers: tuple[str, Role] | None = None  # a table, and the role of the referenced column
    unique: bool = False  # no two rows of the table agree in it


@dataclass(frozen=True)
class Table:
    """A private table. `alone`: each row is one person; `once`: a person has at most one row."""

    name: str
    columns: tuple[Tried, ...]
    alone: bool
    once: bool
    many: int  # more rows than a query uses of one person
    unit: Unit | None = None
    constraints: tuple[str, ...] = ()  # UNIQUE and NOT NULL, which generated rows satisfy
    checks: tuple[str, ...] = ()  # constraints that generated rows may violate

    @cached_property
    def tried(self) -> tuple[Tried, ...]:
        return tuple(each for each in self.columns if each.role is Role.VALUE)

    @property
    def ddl(self) -> str:
        columns = [f"{identifier(each.name)} {each.type_name}" for each in self.columns]
        return (
            f"CREATE TABLE {identifier(self.name)} ({', '.join([*columns, *self.constraints, *self.checks])})"
        )


@dataclass(frozen=True)
class PublicTable:
    """A copy of a public table, its values as text."""

    name: str
    columns: tuple[tuple[str, str], ...]  # names and types
    rows: tuple[tuple[str | None, ...], ...]
    whole: bool

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{identifier(name)} {type_name}" for name, type_name in self.columns)
        return f"CREATE TABLE {identifier(self.name)} ({columns})"


@dataclass(frozen=True)
class World:
    """What generated tables consist of."""

    tables: tuple[Table, ...]
    public: tuple[PublicTable, ...]
    neighbours: Neighbours
    apart: bool = True  # units have enough values to tell people apart

    def table(self, name: str) -> int:
        return next(place for place, table in enumerate(self.tables) if table.name == name)

    @property
    def absent(self) -> State:
        return tuple(() for _ in self.tables)

    def filled(self, state: State, person: int) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        """The number of each table and one person's rows in it, with the place of a value in every column."""
        for index, (table, rows) in enumerate(zip(self.tables, state, strict=True)):
            yield (
                index,
                [tuple(self._places(table, state, row, place, person)) for place, row in enumerate(rows)],
            )

    def _places(self, table: Table, state: State, row: Row, place: int, person: int) -> Iterator[int]:
        tried = iter(row)
        for column in table.columns:
            role, many = column.role, 0
            if column.refers is not None:
                role = column.refers[1]
                many = len(state[self.table(column.refers[0])])
            match role:
                case Role.VALUE:
                    yield next(tried)
                case Role.UNIT:
                    yield person
                case Role.FIXED:
                    yield 0
                case _:
                    yield person + PEOPLE * (place % many if many else place)


def world_of(plan: Plan, schema: Schema, read_public: Callable[[str], list[tuple[Any, ...]]]) -> World:
    """The world of a query: the tables that it names, and those that say whose their rows are."""
    release = plan.release
    assert release is not None, "public tables have nothing to hide"
    scans = {each.table: each for each in walk(release) if isinstance(each, Scan)}
    private = {name: each.unit for name, each in scans.items() if each.private}
    for unit in list(private.values()):
        private |= {name: whose for name, whose in _owners(unit) if name not in private}
    public = tuple(
        _public(_found(schema, name), read_public) for name, each in scans.items() if not each.private
    )
    literals = [each for each in _parts(release, Literal) if each.value is not None]
    used = _used(release)
    named = {
        (target, name): True
        for unit in private.values()
        for target, names in _targets(unit)
        for name in names
    }
    tables = tuple(
        _table(
            _found(schema, name),
            unit,
            scans.get(name),
            used,
            literals,
            public,
            {c for t, c in named if t == name},
            private,
        )
        for name, unit in private.items()
    )
    return World(
        tables,
        public,
        plan.relation_of_neighbours,
        all(_apart(_found(schema, n), u) for n, u in private.items()),
    )


def _apart(table: SchemaTable, unit: Unit | None) -> bool:
    """Whether the unit's column has enough values to tell people apart."""
    columns = [] if unit is None else [table.column(name) for name in unit.columns[-1:]]
    return all(each is not None and each.labels is None and _values(each) >= PEOPLE for each in columns)


def _values(column: SchemaColumn) -> int:
    match column.type:
        case Type(kind=Kind.BOOLEAN):
            return 2
        case Type(kind=Kind.INTEGER, high=high):
            return high
        case _:
            return PEOPLE


def _found(schema: Schema, name: str) -> SchemaTable:
    table = schema.table(name)
    assert table is not None
    return table


def _owners(unit: Unit | None) -> Iterator[tuple[str, Unit]]:
    if unit is not None and unit.refers_to is not None:
        yield unit.refers_to.table, unit.refers_to.unit
        yield from _owners(unit.refers_to.unit)


def _targets(unit: Unit | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    if unit is not None and unit.refers_to is not None:
        yield unit.refers_to.table, unit.refers_to.columns
        yield from _targets(unit.refers_to.unit)


def _parts(node: Any, kind: type[Any]) -> Iterator[Any]:
    """Every node of a type in a tree of dataclasses."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, (tuple, list, frozenset)):
        for each in node:
            yield from _parts(each, kind)
    elif isinstance(node, Scan):
        yield from _parts(node.checks, kind)
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            yield from _parts(getattr(node, field.name), kind)


def _used(relation: Relation) -> frozenset[str]:
    """The columns from which anything is computed or decided, without those that are only passed on."""
    passed: list[tuple[str, str]] = []
    used: set[str] = set()
    for each in walk(relation):
        if isinstance(each, Project):
            passed += [(name, node.name) for name, node in each.columns if isinstance(node, Column)]
            inner: Iterable[Any] = [node for _, node in each.columns if not isinstance(node, Column)]
        elif isinstance(each, Scan):
            inner = []
        else:
            inner = [getattr(each, field.name) for field in fields(each) if field.name not in _BELOW]
            used |= set(_parts(inner, str))
        used |= {column.name for column in _parts(inner, Column)} | {
            column.name for column in _parts(inner, ListColumn)
        }
    while True:
        more = {source for name, source in passed if name in used} - used
        if not more:
            return frozenset(used)
        used |= more


def _table(
    table: SchemaTable,
    unit: Unit | None,
    scan: Scan | None,
    used: frozenset[str],
    literals: Sequence[Literal],
    public: Sequence[PublicTable],
    named: set[str],
    private: dict[str, Unit | None],
) -> Table:
    keys = [*table.keys, *(frozenset(name.lower() for name in key) for key in (scan.keys if scan else ()))]
    once = unit is None or unit.unique
    columns = []
    for column in table.columns:
        if column.type is None and column.elements is None:
            continue
        role, refers = _role(column, unit, named, private)
        alone_in_key = [
            key
            for key in keys
            if column.name.lower() in key and _last(key, table, unit) == column.name.lower()
        ]
        unique = role is Role.VALUE and bool(alone_in_key)
        if unique and not once:
            role, unique = Role.NUMBER, False
        texts = _texts(column, role, unique, scan, used, literals, public)
        columns.append(
            Tried(column.name, column.type_name, texts, role, numbered(column, "{}"), refers, unique)
        )
    limits = scan.limits if scan is not None and unit is not None else None
    many = 1 if once else 2 * (limits.max_groups * limits.max_rows if limits else 4) + 3
    constraints = [
        f"UNIQUE ({', '.join(identifier(name) for name in sorted(key))})" for key in dict.fromkeys(keys)
    ]
    checks = [text if text.upper().startswith("CHECK") else f"CHECK ({text})" for text in table.checks]
    kept = {each.name for each in columns}
    constraints += [
        f"CHECK ({identifier(c.name)} IS NOT NULL)" for c in table.columns if c.required and c.name in kept
    ]
    return Table(
        table.name, tuple(columns), unit is None, once, min(many, 60), unit, tuple(constraints), tuple(checks)
    )


def _last(key: frozenset[str], table: SchemaTable, unit: Unit | None) -> str | None:
    """The column that tells the rows of a key apart: the last one outside the unit."""
    own = {name.lower() for name in unit.columns} if unit is not None else set()
    free = [each.name.lower() for each in table.columns if each.name.lower() in key - own]
    return free[-1] if free else None


def _role(
    column: SchemaColumn, unit: Unit | None, named: set[str], private: dict[str, Unit | None]
) -> tuple[Role, tuple[str, Role] | None]:
    if unit is not None and column.name in unit.columns:
        if unit.refers_to is None:
            return (Role.UNIT if column.name == unit.columns[-1] else Role.FIXED), None
        target = unit.refers_to
        meant = target.columns[unit.columns.index(column.name)]
        whose = private[target.table]
        direct = whose is not None and whose.refers_to is None and meant in whose.columns
        if direct and whose is not None:
            return Role.REFERS, (target.table, Role.UNIT if meant == whose.columns[-1] else Role.FIXED)
        return Role.REFERS, (target.table, Role.NUMBER)
    return (Role.NUMBER if column.name in named else Role.VALUE), None


def _texts(
    column: SchemaColumn,
    role: Role,
    unique: bool,
    scan: Scan | None,
    used: frozenset[str],
    literals: Sequence[Literal],
    public: Sequence[PublicTable],
) -> tuple[str, ...]:
    if role is not Role.VALUE:
        return ()
    if unique:
        null = () if column.required else (NULL,)
        return (*(numbered(column, str(index)) for index in range(_CODES)), *null)[
            : None if column.name in used else 1
        ]
    claim = Claim(nullable=not column.required)
    if scan is not None:
        lists = {each.name: each.claim for each in scan.lists}
        claim = lists.get(column.name) or scan.claims.get(column.name) or claim
    others = [text for table in public for text in table_texts(table, column)] if column.name in used else []
    found = values_of(column, claim, literals if column.name in used else [], others)
    return found if column.name in used else found[:1]


def table_texts(table: PublicTable, column: SchemaColumn) -> list[str]:
    """Some values of a public table that values of this column could equal."""
    alike = [place for place, (_, type_name) in enumerate(table.columns) if type_name == column.type_name]
    return list(
        dict.fromkeys(text for place in alike for row in table.rows[:3] if (text := row[place]) is not None)
    )


def _public(table: SchemaTable, read_public: Callable[[str], list[tuple[Any, ...]]]) -> PublicTable:
    kept = [each for each in table.columns if each.type is not None or each.elements is not None]
    texts = ", ".join(f"CAST({identifier(each.name)} AS VARCHAR)" for each in kept)
    rows = read_public(f"SELECT {texts} FROM {identifier(table.name)} LIMIT {_MOST_PUBLIC + 1}")
    columns = tuple((each.name, each.type_name) for each in kept)
    return PublicTable(table.name, columns, tuple(rows[:_MOST_PUBLIC]), len(rows) <= _MOST_PUBLIC)
