"""What an engine reports about its tables: names, types, constraints. Never a value."""

from __future__ import annotations

from dataclasses import dataclass

from privsql.types import Type


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
    """One table; `checks` are the texts of its CHECK constraints, which DuckDB enforces."""

    name: str
    columns: tuple[SchemaColumn, ...]
    checks: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()  # sets of columns, in lower case, that are UNIQUE together
    view: bool = False  # rows of a query: only the owner can say whose they are
    unsafe: Unsafe | None = None  # a computation that a view or generated column must not contain
    stored: bool = False  # its rows are in DuckDB, in blocks whose minima and maxima it knows
    foreign_keys: tuple[ForeignKey, ...] = ()  # help to draft a policy; no bound relies on them

    def column(self, name: str) -> SchemaColumn | None:
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Schema:
    """The tables of a source."""

    tables: tuple[SchemaTable, ...]

    def table(self, name: str) -> SchemaTable | None:
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)
