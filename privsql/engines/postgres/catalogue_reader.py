"""PostgreSQL's catalogue goes in; a Schema comes out: tables, columns, types, constraints. No row of any
table is read.

Tables of one schema are seen, those that the role may read. A view computes whatever its owner wrote, and
could fail on a row; a table with row-level security, too. Both are refused where they are used. Partitions
and children are parts of another table, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from privsql.errors import SourceError
from privsql.names import repeated_name
from privsql.schema import ForeignKey, Schema, SchemaColumn, SchemaTable, Unsafe
from privsql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    TEXT,
    TIME,
    TIMESTAMP,
    Type,
    decimal,
    integer,
)

Rows = list[tuple[Any, ...]]

_COLUMNS = """
    SELECT c.oid::bigint, c.relname::text, c.relkind::text,
        c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid),
        row_security_active(c.oid),
        c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) t JOIN pg_class k ON k.oid = t.relid
            WHERE k.relkind = 'f'),
        a.attnum::bigint, a.attname::text, a.attnotnull, a.attgenerated::text,
        y.typname::text, m.nspname::text, y.typtype::text, y.oid::bigint, a.atttypmod::bigint,
        format_type(a.atttypid, a.atttypmod), e.typname::text, x.nspname::text, e.typtype::text, e.oid::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
        JOIN pg_type y ON y.oid = a.atttypid JOIN pg_namespace m ON m.oid = y.typnamespace
        LEFT JOIN pg_type e ON e.oid = y.typelem AND y.typcategory = 'A'
        LEFT JOIN pg_namespace x ON x.oid = e.typnamespace
    WHERE n.nspname = {schema} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND a.attnum > 0 AND NOT a.attisdropped
        AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid)
        AND has_column_privilege(c.oid, a.attnum, 'SELECT')
    ORDER BY c.relname, a.attnum"""
_LABELS = "SELECT enumtypid::bigint, enumlabel::text FROM pg_enum ORDER BY enumtypid, enumsortorder"
_CONSTRAINTS = """
    SELECT k.conrelid::bigint, k.contype::text, k.conkey::int[], pg_get_expr(k.conbin, k.conrelid),
        f.relname::text,
        ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u(number, place)
            JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number ORDER BY u.place)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_class f ON f.oid = k.confrelid
    WHERE n.nspname = {schema} AND k.convalidated AND k.contype IN ('p', 'u', 'c', 'f') ORDER BY k.oid"""
_INDEXES = """
    SELECT i.indrelid::bigint, i.indkey::int[]
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = {schema} AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
        AND i.indnatts = i.indnkeyatts
    ORDER BY i.indexrelid"""

_WHOLE = {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT"}
# our type, and how the dialect brings a column of PostgreSQL's type to it (render/postgres.py, BROUGHT)
_TYPES: dict[str, tuple[Type, str | None]] = {
    **{name: (integer(*INTEGER_BOUNDS[ours]), None) for name, ours in _WHOLE.items()},
    "bool": (BOOLEAN, None),
    "float8": (DOUBLE, None),
    "float4": (DOUBLE, "double"),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid"), (TEXT, "text")),
    "date": (DATE, None),
    "time": (TIME, None),
    "timestamp": (TIMESTAMP, None),
    "timestamptz": (TIMESTAMP, "in UTC"),
}


@dataclass
class _Table:
    name: str
    kind: str
    parent: bool  # its children have rows of their own, on which its constraints need not hold
    secured: bool
    remote: bool
    columns: list[SchemaColumn] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    computed: bool = False


class CatalogueReader:
    """Reads a schema; the same object as long as nothing in it has changed."""

    def __init__(self, read: Callable[[str], Rows], schema: str, place: tuple[str, str]) -> None:
        """`schema`: the name of a schema as a text of SQL; `place`: the database and the schema."""
        statements = (_COLUMNS, _LABELS, _CONSTRAINTS, _INDEXES)
        self._read, self._place = read, place
        self._statements = [each.replace("{schema}", schema) for each in statements]
        self._seen: tuple[list[Rows], Schema] | None = None

    def schema(self) -> Schema:
        found = [self._read(each) for each in self._statements]
        if self._seen is None or self._seen[0] != found:
            self._seen = (found, _schema(self._place, *found))
        return self._seen[1]


def _schema(place: tuple[str, str], columns: Rows, labels: Rows, constraints: Rows, indexes: Rows) -> Schema:
    enums: dict[int, list[str]] = {}
    for number, label in labels:
        enums.setdefault(number, []).append(label)
    tables: dict[int, _Table] = {}
    for oid, name, kind, parent, secured, remote, number, *described in columns:
        table = tables.setdefault(oid, _Table(name, kind, parent, secured, remote or kind == "f"))
        column, required, generated, *type_ = described
        table.columns.append(_column(column, required and not parent, enums, type_))
        table.names[number] = column
        table.computed = table.computed or generated not in ("", "s")
    _refuse_repeated([table.name for table in tables.values()])
    for table in tables.values():
        _refuse_repeated(list(table.names.values()))
    finished = ((table, _finished(oid, table, constraints, indexes)) for oid, table in tables.items())
    return Schema(tuple(replace(each, path=(*place, table.name)) for table, each in finished), place[0])


def _column(name: str, required: bool, enums: dict[int, list[str]], described: Sequence[Any]) -> SchemaColumn:
    type_name, namespace, kind, number, modifier, shown, *element = described
    if element and element[0] is not None:
        of = _column(name, False, enums, [*element, modifier, shown])
        return SchemaColumn(name, None, shown, elements=of if of.type is not None else None)
    if kind == "e":
        return SchemaColumn(name, TEXT, shown, "text", tuple(enums.get(number, ())), required)
    if namespace != "pg_catalog" or kind != "b":
        return SchemaColumn(name, None, shown)
    if type_name == "numeric":
        required = False  # NaN is read as NULL
        found = _numeric(modifier)
    elif type_name in _TYPES:
        found = _TYPES[type_name]
    else:
        return SchemaColumn(name, None, shown)
    return SchemaColumn(name, found[0], shown, found[1], None, required)


def _numeric(modifier: int) -> tuple[Type, str | None]:
    """A NUMERIC with digits that DuckDB's DECIMAL has, too, is one; any other is read as a DOUBLE."""
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    if modifier < 4 or scale > precision or precision > 38:
        return DOUBLE, "wide to double"
    return decimal(precision, scale), "no NaN"


def _finished(oid: int, table: _Table, constraints: Rows, indexes: Rows) -> SchemaTable:
    own = [] if table.parent else [row[1:] for row in constraints if row[0] == oid]

    def named(places: Sequence[int]) -> list[str] | None:
        """The columns of a constraint; None where the role may not read one of them."""
        return [table.names[each] for each in places] if all(each in table.names for each in places) else None

    unique = [places for number, places in indexes if number == oid and not table.parent]
    keys = {frozenset(name.lower() for name in found) for places in unique if (found := named(places))}
    foreign = [
        ForeignKey(tuple(found), other, tuple(referred))
        for kind, places, _, other, referred in own
        if kind == "f" and (found := named(places))
    ]
    return SchemaTable(
        table.name,
        tuple(table.columns),
        checks=tuple(text for kind, _, text, *_ in own if kind == "c" and text),
        keys=tuple(sorted(keys, key=sorted)),
        view=table.kind in ("v", "m", "f"),
        unsafe=_unsafe(table),
        foreign_keys=tuple(foreign),
    )


def _unsafe(table: _Table) -> Unsafe | None:
    why = "which could fail on some row, and a failure would tell about that row"
    if table.kind == "v":
        found = "whatever the query of a view says", "store its rows as a table or a MATERIALIZED VIEW"
    elif table.remote:
        found = "rows on another server", "copy them into a table"
    elif table.secured:
        found = "who sees which row", "let the role of this session see all: ALTER ROLE ... BYPASSRLS"
    elif table.computed:
        found = "a virtual generated column", "make it STORED"
    else:
        return None
    return Unsafe(found[0], why, found[1], always=True)


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = repeated_name(sorted(names))
    if repeated is not None:
        raise SourceError(
            "source-tables",
            f"more than one table or column is called {repeated}: names are not case-sensitive here, "
            "so a policy or a query could mean either",
            "rename one of them",
        )
