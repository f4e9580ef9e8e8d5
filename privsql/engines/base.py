"""What an engine must do. It is given only SQL that privsql rendered itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from privsql.schema import Schema
from privsql.tables import ExactTable


class Engine(Protocol):
    """A source of private tables."""

    def schema(self) -> Schema:
        """Tables, columns, types and constraints; no data."""
        ...

    def prepare(self, sql: str) -> None:
        """Check that the engine understands this text, without running it."""
        ...

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        """The rows of the text: key columns and integer columns. Any failure is one fixed EngineError."""
        ...
