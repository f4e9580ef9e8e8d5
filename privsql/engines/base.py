"""What an engine must do. It only ever runs SQL that privsql rendered itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from privsql.algebra.exact import Dialect
from privsql.algebra.relations import Scan
from privsql.planning.rewrites.prepared import Copy
from privsql.schema import Schema
from privsql.tables import ExactTable


class Engine(Protocol):
    """A source of private tables."""

    fixed_schema: bool  # nobody can alter the tables while this engine is open
    auditable: bool  # made-up tables in DuckDB can stand for these, and run the SQL of their plans
    dialect: Dialect

    def schema(self) -> Schema:
        """Tables, columns, types and constraints; no data."""
        ...

    def close(self) -> None:
        """Close the source; a connection that the caller gave stays open."""
        ...

    def check(self, sql: str, schema: Schema) -> None:
        """Raise SqlError if the engine cannot plan this SQL, whatever the rows, and SourceError if the tables
        have changed. Reads no data.
        """
        ...

    def prepare(self, scan: Scan) -> None:
        """Store or refresh a copy of a table in which each row has its rank within its unit; reveals nothing
        about the rows.
        """
        ...

    def prepared(self, scan: Scan) -> Copy | None:
        """The stored copy of a table with this unit and these columns, and whether it is up to date."""
        ...

    def version(self) -> str | None:
        """A value that changes with every write to the source, whatever was written, and holds across
        sessions; None if there is no such value. (A DuckDB file does not change when an UPDATE finds no row:
        whether it changed depends on the rows.)
        """
        ...

    def holds(self, data: Any) -> bool:
        """Whether another data source is this one or a part of it, as far as can be told; reads no data."""
        ...

    def read_public(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement over public tables only."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """A context from planning a query to its answer, in which schema, public tables and all statements
        see one state.
        """
        ...

    def one_query(self) -> AbstractContextManager[None]:
        """A context around everything after the charge of a query: its total time is limited and padded."""
        ...

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        """The rows of a statement: key columns and integer columns. Any failure raises one fixed
        EngineError.
        """
        ...
