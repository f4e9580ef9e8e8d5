"""What an engine must do. It is given only SQL that privsql rendered itself."""

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
    dialect: Dialect

    def schema(self) -> Schema:
        """Tables, columns, types and constraints; no data."""
        ...

    def close(self) -> None:
        """Let go of the source; a connection that the caller gave stays open."""
        ...

    def check(self, sql: str, schema: Schema) -> None:
        """Refuse a text that the engine cannot plan for these tables, whatever their rows, and any text where
        the tables are others by now; reads no data.
        """
        ...

    def prepare(self, scan: Scan) -> None:
        """Store a copy of a table with the rank of each row among those of its unit, or refresh it; tells
        nothing of it.
        """
        ...

    def prepared(self, scan: Scan) -> Copy | None:
        """The stored copy of a table, made for this unit and these columns, and whether its source was
        written to since.
        """
        ...

    def version(self) -> str | None:
        """What every write to the source changes, whatever it wrote, also for later sessions; None where
        there is no such thing. (A DuckDB file does not change when an UPDATE finds no row: whether it has
        changed depends on the rows.)
        """
        ...

    def holds(self, data: Any) -> bool:
        """Whether another source of data is this one, or some of it, as far as can be seen; reads no data."""
        ...

    def read_public(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a text over public tables alone."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Around a query from its planning to its answer: the schema, public tables and all statements are of
        one state.
        """
        ...

    def question(self) -> AbstractContextManager[None]:
        """Around all that follows the charge of one question, up to its answer: its time is limited, and
        padded, as one.
        """
        ...

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        """The rows of the text: key columns and integer columns. Any failure is one fixed EngineError."""
        ...
