"""Rendered SQL goes in; exact tables come out of PostgreSQL, and the schema of what it is open on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg

from privsql.algebra.exact import Dialect
from privsql.algebra.relations import Scan
from privsql.engines.addresses import is_address
from privsql.engines.postgres.catalogue_reader import CatalogueReader
from privsql.engines.postgres.server_errors import not_accepted, unusable
from privsql.engines.postgres.transactions import PostgresConnection, ResultColumn, Rows
from privsql.errors import ArgumentError, EngineError, SourceError
from privsql.planning.rewrites.prepared import Copy
from privsql.render.postgres import PostgreSQL
from privsql.schema import Schema
from privsql.tables import ExactTable, as_array
from privsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Type

# by PostgreSQL's numbers; of NUMERIC keys DuckDB gives doubles, too
_TYPES: dict[int, Type] = {
    16: BOOLEAN,
    20: BIGINT,
    21: BIGINT,
    23: BIGINT,
    25: TEXT,
    701: DOUBLE,
    1082: DATE,
    1114: TIMESTAMP,
    1700: DOUBLE,
}


class PostgresEngine:
    """Runs rendered SQL on one PostgreSQL connection, one query at a time."""

    fixed_schema = False
    auditable = False

    def __init__(self, address: str, deadline: float | None = None) -> None:
        self._source, self._deadline = PostgresConnection(address), deadline
        self._dialect = PostgreSQL(self._source.schema)
        self.dialect: Dialect = self._dialect
        schema = self._source.schema
        place = self._source.database, schema
        self._reader = CatalogueReader(self._read, self._dialect.text(schema), place)
        self._closed = False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        if self._closed:
            raise unusable()
        with self._source.snapshot():
            yield

    @contextlib.contextmanager
    def one_query(self) -> Iterator[None]:
        self._source.until = None if self._deadline is None else time.monotonic() + self._deadline
        try:
            yield
        finally:
            self._source.until = None

    def schema(self) -> Schema:
        with self.snapshot():
            return self._reader.schema()

    def check(self, sql: str, schema: Schema) -> None:
        """PostgreSQL plans the statement, and fails now if a constant in it fails: it computes what is
        constant while it plans, and so whatever the rows are. The lock that it takes on each table lasts to
        the end of the snapshot, so that nobody can alter them in between.
        """
        with self.snapshot():
            try:
                self._source.explain(sql)
            except psycopg.Error:
                raise not_accepted() from None

    def prepare(self, scan: Scan) -> None:
        raise ArgumentError(
            "argument-prepare",
            "copies are not prepared on PostgreSQL yet",
            "queries are answered without one",
        )

    def prepared(self, scan: Scan) -> Copy | None:
        return None

    def version(self) -> str | None:
        return None  # PostgreSQL has no number that changes with every write

    def holds(self, data: Any) -> bool:
        return is_address(data)

    def read_public(self, sql: str) -> Rows:
        try:
            columns, rows = self._source.table(sql)
        except psycopg.Error:
            raise not_accepted() from None
        whole = [each.type == 1700 and each.scale is None for each in columns]
        return [tuple(map(_public_value, row, whole)) for row in rows]

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            columns, rows = self._interruptible(sql)
            return exact_table(columns, rows, keys)
        except Exception:  # noqa: BLE001 -- whatever failed, its words could tell about the data
            raise EngineError from None

    def _interruptible(self, sql: str) -> tuple[list[ResultColumn], Rows]:
        """Ctrl-C cancels the statement on the server, too."""
        try:
            return self._source.table(sql)
        except KeyboardInterrupt:
            self._source.interrupt()
            raise

    def close(self) -> None:
        self._closed = True
        self._source.close()

    def _read(self, sql: str) -> Rows:
        try:
            return self._source.rows(sql)
        except psycopg.Error:
            raise unusable() from None


def open_postgres(address: str, deadline: float | None, memory: int | None) -> PostgresEngine:
    """postgresql://user@host/database -> an engine."""
    if memory is not None:
        raise ArgumentError(
            "argument-memory",
            "memory_limit= is for DuckDB; PostgreSQL has its own settings",
            "leave it out, and ALTER ROLE ... SET work_mem",
        )
    return PostgresEngine(address, deadline)


def exact_table(columns: Sequence[ResultColumn], rows: Rows, keys: Sequence[str]) -> ExactTable:
    """Columns as they come from PostgreSQL: keys in their types, all others whole numbers."""
    listed = list(zip(*rows, strict=True)) if rows else [() for _ in columns]
    exact_keys, exact_columns = {}, {}
    for column, values in zip(columns, listed, strict=True):
        if column.name in keys:
            exact_keys[column.name] = _key(column, values)
        else:
            whole = [0 if value is None else int(value) for value in values]
            exact_columns[column.name] = np.array(whole, dtype=np.int64)
    if len(exact_keys) != len(keys):
        raise SourceError("source-connection", "a key is missing", "")
    return ExactTable({name: exact_keys[name] for name in keys}, exact_columns)


def _key(column: ResultColumn, values: Sequence[Any]) -> Any:
    if column.type == 1700:
        values = [None if value is None else float(value) for value in values]
    return as_array(list(values), _TYPES.get(column.type, TEXT))


def _public_value(value: Any, whole: bool) -> Any:
    """Whole numbers of more than 64 bits are NUMERIC without digits behind the point."""
    return (
        int(value) if whole and isinstance(value, Decimal) and value == value.to_integral_value() else value
    )
