"""DuckDB's own catalogue goes in; a Schema comes out: tables, columns, types, constraints. No row of any
table is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from privsql.engines.duckdb.catalogue.catalogue_statements import (
    COLUMNS,
    CONSTRAINTS,
    DATABASES,
    MACROS,
    SETTINGS,
    TABLES,
    VIEWS,
)
from privsql.engines.duckdb.catalogue.table_names import Path, Sight, TableNames, table_names
from privsql.engines.duckdb.safety.views import Views
from privsql.errors import SourceError
from privsql.render.duckdb import DUCKDB
from privsql.schema import ForeignKey, Schema, SchemaColumn, SchemaTable, Unsafe
from privsql.types import BINARY, ColumnType, Kind, column_type, element_type

Rows = list[tuple[Any, ...]]

_FRAME = re.compile(
    r" AS SELECT \* FROM (pandas_scan|python_arrow_scan)\(\) AS \w+;$"
)  # a registered frame is not a query
_IN_MEMORY = "memory"  # what DuckDB calls a database without a file


@dataclass(frozen=True)
class SourceFacts:
    """What is known of frames and files, which are whole sources: the tables, and in each the columns whose
    dtypes have no NULL.
    """

    required: Mapping[str, frozenset[str]]
    trust_labels: bool  # a DuckDB ENUM is schema; a frame's categories usually come from the data


class SchemaReader:
    """Reads a schema through any connection to its database, and again only when a definition has changed."""

    def __init__(
        self,
        read: Callable[[str], Rows],
        known: SourceFacts,
        read_again: Callable[[str], Rows] | None = None,
    ) -> None:
        """`read_again`: reads what is asked before every query, in less time than `read` if it can."""
        self._read, self._known, self._read_again = read, known, read_again or read
        self._seen: tuple[Rows, Schema] | None = None
        self._looked_up = False  # whether user functions that hide built-in ones were looked for
        self._settings: Rows | None = None

    def schema(self, fixed: bool, changed: bool = True) -> Schema:
        """Read the schema. `fixed`: nobody can alter the tables, so they are read once. `changed`: somebody
        may have altered them since the last time.
        """
        # frames and files are in a database of our own, where nobody else defines anything
        others = not self._known.required
        if others and (not self._looked_up or (changed and not fixed)):
            self._looked_up = False  # until the check has passed
            self._refuse_macros()
            self._looked_up = True
        if self._known.required:
            self._seen = self._seen or ([], self._described())
        elif self._seen is None or not fixed:
            definitions = self._definitions(changed)
            if self._seen is None or self._seen[0] != definitions:
                schema = self._read_schema(definitions)
                self._seen = (definitions, self._in_reach(schema) if fixed else schema)
        return self._seen[1]

    def _refuse_macros(self) -> None:
        """Raise SourceError if a macro hides a function or operator of DuckDB: bounds rely on least or +."""
        for (name,) in self._read(MACROS):
            raise SourceError(
                "source-macro",
                f"the macro or function {name} replaces DuckDB's own, "
                "so privsql's bounds could be computed wrongly",
                f"DROP MACRO {DUCKDB.identifier(name)}, or give it another name",
            )

    def _definitions(self, changed: bool) -> Rows:
        found = self._read_again(TABLES)
        if self._settings is None or changed:
            self._settings = self._read(SETTINGS)
        tables = [*self._settings, *(row for row in found if row[-1] is not False)]
        views = self._read_again(VIEWS) if not all(row[-1] for row in found) else []
        return sorted(tables + views, key=lambda row: (row[:3], row[-1] is not None))

    def _in_reach(self, schema: Schema) -> Schema:
        """The schema without views of what a closed database cannot reach, such as other files: a query of
        one would fail after its charge.
        """
        tables = tuple(table for table in schema.tables if not table.view or self._can_be_read(table))
        return replace(schema, tables=tables)

    def _can_be_read(self, view: SchemaTable) -> bool:
        try:
            return bool(self._read(f"DESCRIBE {DUCKDB.table(view.name, view.location)}"))
        except SourceError:
            return False

    def _described(self) -> Schema:
        """The schema of frames and files. They have no constraints, and describing a few tables is far faster
        than listing all of DuckDB's columns.
        """
        names = sorted(self._known.required)
        described = {name: self._read(f"DESCRIBE {DUCKDB.table(name)}") for name in names}
        return Schema(
            tuple(
                SchemaTable(
                    name,
                    tuple(
                        self._column(name, column, type_, True, False, False) for column, type_, *_ in columns
                    ),
                    path=(_IN_MEMORY, "main", name),
                )
                for name, columns in described.items()
            ),
            _IN_MEMORY,
        )

    def _column(
        self, table: str, name: str, type_name: str, nullable: bool, stored: bool, collated: bool
    ) -> SchemaColumn:
        found, listed = column_type(type_name), element_type(type_name)
        if listed is not None:
            held = SchemaColumn(name, listed.type, type_name, listed.cast, self._labels(listed, stored))
            return SchemaColumn(name, None, type_name, elements=held)
        cast = found.cast if found else None
        if collated and cast is None and found is not None and found.type.kind is Kind.TEXT:
            cast = BINARY
        required = not nullable or name in self._known.required.get(table, frozenset())
        labels = self._labels(found, stored)
        return SchemaColumn(name, found.type if found else None, type_name, cast, labels, required)

    def _labels(self, found: ColumnType | None, stored: bool) -> tuple[str, ...] | None:
        """The labels of an ENUM; those of a view may be the categories of a registered frame."""
        return found.labels if found is not None and stored and self._known.trust_labels else None

    def _read_schema(self, definitions: Sequence[tuple[Any, ...]]) -> Schema:
        settings = [row for row in definitions if not row[2]]
        texts: dict[Path, str] = {row[:3]: row[3] or "" for row in definitions if row[2]}
        stored: set[Path] = {row[:3] for row in definitions if row[-1]}
        sight = self._sight(settings)
        # views of other databases: DuckDB's plan of one says less of what it computes
        rows = [row for row in self._read(COLUMNS) if row[:3] in stored or row[0] in ("temp", sight.database)]
        named = table_names((row[:3] for row in rows), sight)
        _refuse_collation(next(sql for database, *_, sql, _ in settings if database))
        # Under a collation, different texts are equal. The type of a column does not show its collation, nor
        # does a view or generated column where a macro sets it.
        collated = any(
            "collate" in sql.lower() or "generated always" in sql.lower() for sql in texts.values()
        )
        computed = (path for path in named.names if path not in stored)
        views = {path for path in computed if not _FRAME.search(texts.get(path, ""))}
        tables: dict[Path, list[SchemaColumn]] = {}
        for *_, name, type_name, nullable in (row for row in rows if row[:3] in named.names):
            path = _[0], _[1], _[2]
            column = self._column(
                path[2], name, type_name, nullable, path in stored, collated or path in views
            )
            tables.setdefault(path, []).append(column)
        unsafe = self._unsafe(definitions, named, views)
        promises = self._promises(named)
        return Schema(
            tuple(
                SchemaTable(
                    named.names[path],
                    tuple(columns),
                    view=path in views,
                    unsafe=unsafe.get(path),
                    stored=path in stored,
                    path=path,
                    in_sight=path in named.in_sight,
                    **promises(path),
                )
                for path, columns in tables.items()
            ),
            sight.database,
            sight.searched,
        )

    def _sight(self, settings: Rows) -> Sight:
        """Where unqualified names are looked up."""
        database, schema = next((row[0], row[1]) for row in settings if row[0])
        paths = next(row[3] for row in settings if not row[0])
        # DuckDB looks into main last; an owner's search path of several schemas is not followed further
        searched = ("main",) if schema.lower() != "main" and "," not in paths else ()
        stored = frozenset(name for (name,) in self._read(DATABASES))
        return Sight(database, schema, searched, stored)

    def _promises(self, named: TableNames) -> Callable[[Path], _Promises]:
        """What the constraints of each table guarantee. All are listed and then filtered here, because a join
        of DuckDB's catalogue lists is slower.
        """
        found: dict[Path, Rows] = {}
        for row in self._read(CONSTRAINTS):
            found.setdefault((row[0], row[1], row[2]), []).append(row[3:])
        return lambda path: _promises(found.get(path, []), path, named)

    def _unsafe(
        self, definitions: Sequence[tuple[Any, ...]], named: TableNames, views: Set[Path]
    ) -> dict[Path, Unsafe | None]:
        """The first unsafe computation of each view, and of each table with generated columns."""
        bodies: dict[str, list[str]] = {}
        for *_, name, sql, table in definitions:
            if name and not table and not _FRAME.search(sql):
                bodies.setdefault(name.lower(), []).append(sql)
        computed = {
            (database, schema, name)
            for database, schema, name, sql, table in definitions
            if table and "generated always" in (sql or "").lower()
        }
        looked = Views(bodies, self._read)
        return {
            path: looked.unsafe(path[2], () if path in named.in_sight else path)
            for path in named.names
            if path in views or path in computed
        }


class _Promises(TypedDict):
    checks: tuple[str, ...]
    keys: tuple[frozenset[str], ...]
    foreign_keys: tuple[ForeignKey, ...]


def _promises(constraints: Rows, path: Path, named: TableNames) -> _Promises:
    """What the constraints of one table guarantee; each has its kind, columns, text, other table and columns
    there.
    """
    database, schema, _ = path
    return _Promises(
        checks=tuple(text for kind, _, text, *_ in constraints if kind == "CHECK"),
        keys=tuple(
            frozenset(column.lower() for column in columns)
            for kind, columns, *_ in constraints
            if kind in ("PRIMARY KEY", "UNIQUE")
        ),
        foreign_keys=tuple(
            ForeignKey(
                tuple(own), named.names.get((database, schema, str(other)), str(other)), tuple(columns)
            )
            for kind, own, _, other, columns in constraints
            if kind == "FOREIGN KEY"
        ),
    )


def _refuse_collation(collation: str) -> None:
    if collation not in ("", "binary"):
        raise SourceError(
            "source-collation",
            f"default_collation is {collation}, so different texts compare as equal",
            "RESET default_collation",
        )
