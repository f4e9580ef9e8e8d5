"""DuckDB's own catalogue goes in; a Schema comes out: tables, columns, types, constraints. No row of any
table is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypedDict

from privsql.engines.duckdb.safety.views import Views
from privsql.errors import SourceError
from privsql.names import repeated_name
from privsql.render.duckdb import DUCKDB
from privsql.schema import ForeignKey, Schema, SchemaColumn, SchemaTable, Unsafe
from privsql.types import BINARY, ColumnType, Kind, column_type, element_type

Rows = list[tuple[Any, ...]]

# The tables that an unqualified name means, as DuckDB resolves it: temporary ones hide others.
IN_SIGHT = (
    "(database_name = 'temp' OR (database_name = current_database() AND schema_name = current_schema() "
    "AND lower(table_name) NOT IN (SELECT lower(table_name) FROM duckdb_columns() "
    "WHERE database_name = 'temp' AND NOT internal)))"
)
# Everything from which a schema is read, as text: while the text is the same, so is the schema. It is
# compared in every transaction. DuckDB's count of statements is not enough for that: a statement is counted
# when it begins, but its changes become visible when it has ended. The texts of views are read separately,
# and only where there are views: DuckDB writes those of its own 47 each time, which takes longer than all the
# rest.
_TABLES = (
    "SELECT database_name, schema_name, table_name, sql, TRUE FROM duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, NULL, FALSE FROM duckdb_views() WHERE NOT internal"
)
# Settings are not transactional: they take effect as soon as the statement that sets them has run.
_SETTINGS = "SELECT current_database(), current_schema(), '', current_setting('default_collation'), NULL"
_VIEWS = "SELECT database_name, schema_name, view_name, sql, FALSE FROM duckdb_views() WHERE NOT internal"
# User functions with the name of a built-in one, operators included: DuckDB finds the user's first. Listing
# all functions takes DuckDB longer than most queries, so it is done only after a change.
_MACROS = (
    "WITH named AS MATERIALIZED (SELECT lower(function_name) AS name, internal FROM duckdb_functions() "
    "WHERE function_type NOT IN ('table', 'table_macro', 'pragma') "
    "AND (internal OR database_name IN ('temp', current_database()))) "
    "SELECT name FROM named GROUP BY name HAVING bool_or(internal) AND NOT bool_and(internal) "
    "ORDER BY name ASC"
)
_FRAME = re.compile(
    r" AS SELECT \* FROM (pandas_scan|python_arrow_scan)\(\) AS \w+;$"
)  # a registered frame is not a query


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
        for (name,) in self._read(_MACROS):
            raise SourceError(
                "source-macro",
                f"the macro or function {name} replaces DuckDB's own, "
                "so privsql's bounds could be computed wrongly",
                f"DROP MACRO {DUCKDB.identifier(name)}, or give it another name",
            )

    def _definitions(self, changed: bool) -> Rows:
        found = self._read_again(_TABLES)
        if self._settings is None or changed:
            self._settings = self._read(_SETTINGS)
        tables = [*self._settings, *(row for row in found if row[-1] is not False)]
        views = self._read_again(_VIEWS) if not all(row[-1] for row in found) else []
        return sorted(tables + views, key=lambda row: (row[:3], row[-1] is not None))

    def _in_reach(self, schema: Schema) -> Schema:
        """The schema without views of what a closed database cannot reach, such as other files: a query of
        one would fail after its charge.
        """
        return Schema(
            tuple(table for table in schema.tables if not table.view or self._can_be_read(table.name))
        )

    def _can_be_read(self, view: str) -> bool:
        try:
            return bool(self._read(f"DESCRIBE {DUCKDB.identifier(view)}"))
        except SourceError:
            return False

    def _described(self) -> Schema:
        """The schema of frames and files. They have no constraints, and describing a few tables is far faster
        than listing all of DuckDB's columns.
        """
        described = {
            name: self._read(f"DESCRIBE {DUCKDB.identifier(name)}") for name in sorted(self._known.required)
        }
        return Schema(
            tuple(
                SchemaTable(
                    name,
                    tuple(
                        self._column(name, column, type_, True, False, False) for column, type_, *_ in columns
                    ),
                )
                for name, columns in described.items()
            )
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
        columns, constraints = self._in_sight(definitions)
        _refuse_repeated({row[2] for row in columns})
        _refuse_collation(next(sql for *_, name, sql, _ in definitions if not name))
        texts = {
            (database, schema, name): sql or "" for database, schema, name, sql, _ in definitions if name
        }
        stored = {(database, schema, name) for database, schema, name, _, table in definitions if table}
        # Under a collation, different texts are equal. The type of a column does not show its collation, nor
        # does a view or generated column where a macro sets it.
        collated = any(
            "collate" in sql.lower() or "generated always" in sql.lower() for sql in texts.values()
        )
        seen = {row[2]: texts.get(row[:3], "") for row in columns if row[:3] not in stored}
        views = {name for name, sql in seen.items() if not _FRAME.search(sql)}
        tables: dict[str, list[SchemaColumn]] = {}
        for *place, table, name, type_name, nullable in columns:
            is_stored = (*place, table) in stored
            may_collate = collated or table in views
            tables.setdefault(table, []).append(
                self._column(table, name, type_name, nullable, is_stored, may_collate)
            )
        unsafe = self._unsafe(definitions, tables, views)
        return Schema(
            tuple(
                SchemaTable(
                    name,
                    tuple(each),
                    view=name in views,
                    unsafe=unsafe.get(name),
                    stored=name not in seen,
                    **_promises([row[3:] for row in constraints if row[2] == name]),
                )
                for name, each in tables.items()
            )
        )

    def _in_sight(self, definitions: Sequence[tuple[Any, ...]]) -> tuple[Rows, Rows]:
        """Columns and constraints of the tables that an unqualified name means. All are listed and then
        filtered here, because a join of DuckDB's catalogue lists is slower.
        """
        columns = self._read(
            "SELECT database_name, schema_name, table_name, column_name, data_type, is_nullable "
            "FROM duckdb_columns() WHERE NOT internal ORDER BY table_name ASC, column_index ASC"
        )
        constraints = self._read(
            "SELECT database_name, schema_name, table_name, constraint_type, constraint_column_names, "
            "expression, referenced_table, referenced_column_names FROM duckdb_constraints() "
            "ORDER BY constraint_index ASC"
        )
        here = next(tuple(place) for *place, name, _, _ in definitions if not name)
        temporary = {_plain(table) for database, _, table, *_ in columns if database == "temp"}

        def chosen(rows: Rows) -> Rows:
            return [
                row
                for row in rows
                if row[0] == "temp" or (row[:2] == here and _plain(row[2]) not in temporary)
            ]

        return chosen(columns), chosen(constraints)

    def _unsafe(
        self, definitions: Sequence[tuple[Any, ...]], tables: Iterable[str], views: Set[str]
    ) -> dict[str, Unsafe | None]:
        """The first unsafe computation of each view, and of each table with generated columns."""
        bodies: dict[str, list[str]] = {}
        for *_, name, sql, table in definitions:
            if name and not table and not _FRAME.search(sql):
                bodies.setdefault(name.lower(), []).append(sql)
        computed = {
            name.lower()
            for *_, name, sql, table in definitions
            if table and "generated always" in (sql or "").lower()
        }
        looked = Views(bodies, self._read)
        return {name: looked.unsafe(name) for name in tables if name in views or name.lower() in computed}


class _Promises(TypedDict):
    checks: tuple[str, ...]
    keys: tuple[frozenset[str], ...]
    foreign_keys: tuple[ForeignKey, ...]


def _promises(constraints: Rows) -> _Promises:
    """What the constraints of one table guarantee; each has its kind, columns, text, other table and columns
    there.
    """
    return _Promises(
        checks=tuple(text for kind, _, text, *_ in constraints if kind == "CHECK"),
        keys=tuple(
            frozenset(column.lower() for column in columns)
            for kind, columns, *_ in constraints
            if kind in ("PRIMARY KEY", "UNIQUE")
        ),
        foreign_keys=tuple(
            ForeignKey(tuple(own), other, tuple(named))
            for kind, own, _, other, named in constraints
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


def _plain(name: str) -> str:
    """The name with ASCII letters in lower case, as DuckDB compares names; other letters keep their case."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _refuse_repeated(tables: Set[str]) -> None:
    """Raise SourceError for names that differ only in case: É and é are two tables for DuckDB, but one name
    in a policy or a query.
    """
    repeated = repeated_name(sorted(tables))
    if repeated is not None:
        raise SourceError(
            "source-tables",
            f"more than one table is called {repeated}: names are not case-sensitive, "
            "so a policy or a query could mean either",
            "rename one of them",
        )
