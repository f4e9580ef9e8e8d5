"""Databases in memory, made by the statements that a test needs; and one query to any source."""

from __future__ import annotations

from typing import Any

import duckdb

import privsql


def database(*statements: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for each in statements:
        connection.execute(each)
    return connection


def ask(source: Any, sql: str, policy: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of the answer at epsilon 1, from a session of its own."""
    with privsql.connect(source, policy) as session:
        return session.query(sql, epsilon=1.0).fetchall()
