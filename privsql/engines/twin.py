"""A schema goes in; a database with the same tables and no rows comes out, which says whether DuckDB accepts a text.

DuckDB plans with statistics of the data, and even evaluates functions on them, so that whether the private database
accepts a text may depend on its rows. What is said before the charge must not: it is asked of the twin.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import duckdb

from privsql.errors import SqlError
from privsql.planning.prepared import DATABASE
from privsql.planning.render import identifier
from privsql.schema import Schema


def not_accepted() -> SqlError:
    return SqlError(
        "sql-engine",
        "DuckDB does not accept this query: a constant, a pattern or a format in it may be malformed",
        "check the regular expressions, date formats and constants",
    )


class Twin:
    """The tables of a schema, empty, and the prepared copies of some, by name with their columns."""

    def __init__(self, schema: Schema, copies: Mapping[str, str]) -> None:
        self.schema, self.copies = schema, copies
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:", config={"threads": "1", "python_enable_replacements": "false"})
        for table in schema.tables:
            columns = ", ".join(
                f"{identifier(each.name)} {each.type_name}" for each in table.columns if each.type is not None
            )
            if columns:
                self._connection.execute(f"CREATE TABLE {identifier(table.name)} ({columns})")
        if copies:
            self._connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        for name, columns in copies.items():
            self._connection.execute(f"CREATE TABLE {DATABASE}.main.{identifier(name)} ({columns})")

    def check(self, sql: str) -> None:
        """Refuse a text that DuckDB cannot plan."""
        try:
            with self._lock:
                self._connection.execute(f"PREPARE question AS {sql}")
        except duckdb.Error:
            raise not_accepted() from None

    def close(self) -> None:
        self._connection.close()
