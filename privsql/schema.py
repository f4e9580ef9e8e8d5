"""What an engine reports about its tables: names, types, constraints. Never a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privsql.names import parts_of
from privsql.types import Type

_MAIN = "main"  # the schema of a database that DuckDB takes where only the database is named
_TEMPORARY = "temp"  # the database of temporary tables, which hide others


@dataclass(frozen=True)
class SchemaColumn:
    """One column. `labels` are those of a DuckDB ENUM; `required` means that NULL cannot occur."""

    name: str
    type: Type | None  # None: a type that is not supported
    type_name: str
    cast: str | None = None
    labels: tuple[str, ...] | None = None
    required: bool = False
    elements: SchemaColumn | None = None  # the elements of a list


@dataclass(frozen=True)
class ForeignKey:
    """Columns that reference one row of another table by its UNIQUE columns."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Unsafe:
    """A computation of a view or generated column that could reveal a row (by failing, for instance), why it
    could, and what its owner can do about it.

    `always`: of a public table, too: the engine may compute it only for rows that meet private ones.
    """

    what: str
    why: str
    cure: str
    always: bool = False


@dataclass(frozen=True)
class SchemaTable:
    """One table; `checks` are the texts of its CHECK constraints, which DuckDB enforces.

    `name` is all that an unqualified name needs, or else the shortest qualified one: no two tables of a
    schema have the same. `path` is its database, schema and name; `in_sight`: an unqualified name means it.
    """

    name: str
    columns: tuple[SchemaColumn, ...]
    checks: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()  # sets of columns, in lower case, that are UNIQUE together
    view: bool = False  # rows of a query: only the owner can say whose they are
    unsafe: Unsafe | None = None  # a computation that a view or generated column must not contain
    stored: bool = False  # its rows are in DuckDB, in blocks whose minima and maxima it knows
    foreign_keys: tuple[ForeignKey, ...] = ()  # help to draft a policy; no bound relies on them
    path: tuple[str, ...] = ()
    in_sight: bool = True

    @property
    def location(self) -> tuple[str, ...]:
        """Where statements look it up; empty for a table in sight, which they name without a schema."""
        return () if self.in_sight else self.path

    def column(self, name: str) -> SchemaColumn | None:
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Schema:
    """The tables of a source; `database` is the one in which a schema is looked up by its name alone, and
    `searched` are the schemas of it that an unqualified name is looked up in after the tables in sight.
    """

    tables: tuple[SchemaTable, ...]
    database: str = ""
    searched: tuple[str, ...] = ()

    def table(self, name: str) -> SchemaTable | None:
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)

    def is_elsewhere(self, table: SchemaTable) -> bool:
        """Whether a table is in a database that is attached beside the one in use."""
        return not table.in_sight and table.path[:1] != (self.database,)

    def find(self, parts: Sequence[str]) -> tuple[SchemaTable, ...]:
        """The tables that a name may mean: `table`, `schema.table`, `database.table` or
        `database.schema.table`, looked up as DuckDB does. Several: the name is ambiguous.
        """
        lowered = tuple(each.lower() for each in parts)
        match lowered:
            case (name,):
                found = self._one_part(name)
            case (first, name):
                found = self._two_parts(first, name)
            case _:
                found = [each for each in self.tables if tuple(map(str.lower, each.path)) == lowered]
        if not found and len(lowered) > 1:  # a frame's own name may have dots
            whole = ".".join(lowered)
            found = [each for each in self.tables if each.in_sight and each.name.lower() == whole]
        return tuple(found)

    def _one_part(self, name: str) -> list[SchemaTable]:
        seen = [each for each in self.tables if each.in_sight and each.name.lower() == name]
        further = [
            each
            for schema in self.searched
            for each in self.tables
            if tuple(map(str.lower, each.path)) == (self.database.lower(), schema, name)
        ]
        return seen or further[:1]

    def _two_parts(self, first: str, name: str) -> list[SchemaTable]:
        """A schema of the database in use, or a database; DuckDB refuses a name that may be either."""
        paths = {tuple(map(str.lower, each.path)): each for each in self.tables}
        schemas = [paths.get((each, first, name)) for each in (_TEMPORARY, self.database.lower())]
        meant = [each for each in schemas if each is not None][:1]
        database = paths.get((first, _MAIN, name))
        return meant if database is None or database in meant else [*meant, database]

    def declared(self, name: str) -> tuple[SchemaTable, ...]:
        """The tables that a policy may mean by this name: of `"a.b"`, table b of schema a, or a table whose
        own name has a dot.
        """
        exact = self.table(name)
        found = self.find(parts_of(name))
        return found if exact is None or exact in found else (exact, *found)
