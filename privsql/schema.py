"""What an engine says of its tables: names, types, and what the schema itself promises. Never a value."""

from __future__ import annotations

from dataclasses import dataclass

from privsql.types import Type


@dataclass(frozen=True)
class SchemaColumn:
    """One column. `labels` are a DuckDB ENUM's; `required` means that NULL cannot occur."""

    name: str
    type: Type | None  # None: a type without rules
    type_name: str
    cast: str | None = None
    labels: tuple[str, ...] | None = None
    required: bool = False
    elements: SchemaColumn | None = None  # of a list: what it holds


@dataclass(frozen=True)
class ForeignKey:
    """Columns that name one row of another table by its UNIQUE columns."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Unsafe:
    """What a view or a generated column computes by which a row would tell about itself, why, and what its
    owner can do.
    """

    what: str
    why: str
    cure: str


@dataclass(frozen=True)
class SchemaTable:
    """One table; `checks` are the texts of its CHECK constraints, written by the owner and enforced by
    DuckDB.
    """

    name: str
    columns: tuple[SchemaColumn, ...]
    checks: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()  # sets of columns, in lower case, that are UNIQUE together
    view: bool = False  # rows made by a query of the owner's: whose they are, only the owner can say
    unsafe: Unsafe | None = None  # what a view, or a generated column, must not compute
    stored: bool = False  # DuckDB has its rows, in pieces whose ends it knows
    foreign_keys: tuple[ForeignKey, ...] = ()  # of use to whoever writes a policy; no bound rests on them

    def column(self, name: str) -> SchemaColumn | None:
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Schema:
    """All tables of a source."""

    tables: tuple[SchemaTable, ...]

    def table(self, name: str) -> SchemaTable | None:
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)
