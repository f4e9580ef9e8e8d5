"""Rendered SQL goes in; exact tables come out of DuckDB, with the schema of its source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import duckdb
import numpy as np

from privsql.algebra.exact import Dialect
from privsql.algebra.relations import Scan
from privsql.engines.duckdb.catalogue.catalogue_statements import location_statement
from privsql.engines.duckdb.connection import Sharing, SourceConnection
from privsql.engines.duckdb.copies.copy_recipe import TableLocation
from privsql.engines.duckdb.copies.copy_store import Attached
from privsql.engines.duckdb.copies.prepared_tables import Keeping, PreparedTables
from privsql.engines.duckdb.fingerprints import sign_of
from privsql.engines.duckdb.opening import FAILURES, Opening
from privsql.engines.duckdb.origin import A_DATABASE, Origin
from privsql.engines.duckdb.schema_reader import Rows, SchemaReader, SourceFacts
from privsql.engines.duckdb.source_errors import (
    changed,
    unusable,
)
from privsql.engines.duckdb.twin import Twin, not_accepted
from privsql.errors import EngineError, SourceError
from privsql.planning.rewrites.prepared import Copy
from privsql.render.duckdb import DUCKDB
from privsql.schema import Schema
from privsql.tables import ExactTable

_TRIES = 20  # to read a schema while others alter it


class DuckDBEngine:
    """Runs rendered SQL on one DuckDB connection, one query at a time."""

    def __init__(
        self,
        connection: SourceConnection,
        known: SourceFacts,
        fixed_schema: bool,
        keeping: Keeping,
        opening: Opening | None = None,
        owned: bool = True,
        origin: Origin = A_DATABASE,
    ) -> None:
        self._source, self._origin = connection, origin
        self._owned = owned
        self.fixed_schema, self.auditable = fixed_schema, True
        self.dialect: Dialect = DUCKDB
        self.known, self.opening = known, opening  # how another process opens and checks the same source
        self._reader = SchemaReader(self._read, known, self._read_again)
        self._keeping = keeping
        self._watched = None if keeping.watched is None else sign_of(keeping.watched)
        self._prepared = PreparedTables(connection, keeping, self._places)
        self._followed = 0
        # the transaction in which the schema was read, and the schema
        self._verified: tuple[int, Schema] | None = None
        self._twin: Twin | None = None
        self._closed = False

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._source.connection

    @property
    def generation(self) -> int:
        """How often the source was opened again, or its file found replaced."""
        return self._source.generation + self._followed

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._source.turn():
            if self._closed:
                raise unusable()
            if not self._source.in_snapshot:
                self._prepared.attach()
                self._follow()
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(self._source.snapshot())
                except duckdb.Error as error:
                    raise unusable(error) from None
                yield

    def _follow(self) -> None:
        """Reopen a file that was written to, since its columns may have changed."""
        if self._keeping.watched is None or self.opening is None:
            return
        try:
            sign = sign_of(self._keeping.watched)
            if sign != self._watched:
                for view in self.opening.views:
                    self._source.rows(view)
                self._watched = sign
                self._reader = SchemaReader(self._read, self.known, self._read_again)
                self._followed += 1
        except (duckdb.Error, OSError):
            raise SourceError(
                "source-file",
                "the file was replaced, and DuckDB cannot read the new one",
                "check that the new file is valid",
            ) from None

    def schema(self) -> Schema:
        if (
            self._verified is not None
            and self._source.is_stable
            and self._verified[0] == self._source.transaction
        ):
            return self._verified[1]
        # repeated until one transaction has read it all: a view that DuckDB cannot read ends the transaction
        for _ in range(_TRIES):
            transaction = self._source.transaction
            schema = self._reader.schema(self.fixed_schema, self._source.changed)
            self._source.note_unchanged()
            if self._is_settled(transaction):
                self._verified = (self._source.transaction, schema)
                return schema
        raise changed()

    def _is_settled(self, transaction: int) -> bool:
        """Whether everything read since the transaction began belongs to one state."""
        if not self._source.in_snapshot or self._source.sharing is not Sharing.DATABASE:
            return True
        return self._source.is_stable and self._source.transaction == transaction

    def one_query(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _read(self, sql: str) -> Rows:
        """Rows of DuckDB's own catalogue; no data."""
        try:
            return self._source.rows(sql)
        except duckdb.Error as error:
            raise unusable(error) from None

    def _read_again(self, sql: str) -> Rows:
        """The same, for what is read before every query."""
        try:
            return self._source.rows_again(sql)
        except duckdb.Error as error:
            raise unusable(error) from None

    def close(self) -> None:
        self._closed = True
        self._prepared.close()
        if self._owned:
            self._source.close()

    def check(self, sql: str, schema: Schema) -> None:
        if self._closed:
            raise unusable()
        if self._source.in_snapshot and not self.sees(schema):
            raise changed()
        if (
            self._twin is None
            or self._twin.schema != schema
            or self._twin.copies != self._prepared.definitions
        ):
            self._twin = Twin(schema, dict(self._prepared.definitions))
        self._twin.check(sql)

    def sees(self, schema: Schema) -> bool:
        """Whether the tables that statements see now still have this schema."""
        if self._keeping.watched is not None:
            return sign_of(self._keeping.watched) == self._watched and self.schema() == schema
        return self.fixed_schema or self.schema() == schema

    def prepare(self, scan: Scan) -> None:
        with self._source.turn():
            if self._closed:
                raise unusable()
            self._prepared.prepare(scan)

    def prepared(self, scan: Scan) -> Copy | None:
        return self._prepared.find(scan)

    def version(self) -> str | None:
        return self._keeping.version if self._keeping.watched is None else self._watched

    def holds(self, data: Any) -> bool:
        with self._source.turn():
            return self._origin.holds(self._connection, data)

    @property
    def copies(self) -> Attached | None:
        """The file of prepared copies in use."""
        return self._prepared.attached

    def _places(self, tables: Sequence[tuple[str, tuple[str, ...]]]) -> list[TableLocation]:
        return [
            TableLocation(*row) for table, at in tables for row in self._read(location_statement(table, at))
        ]

    def read_public(self, sql: str) -> Rows:
        try:
            return self._source.rows(sql)
        except FAILURES:
            raise not_accepted() from None

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            exact = exact_table(self._source.columns(sql), keys)
            # the tables changed after the bounds were proved
            if self._verified is not None and not self.sees(self._verified[1]):
                raise EngineError
            return exact
        except Exception:  # noqa: BLE001 -- any message of DuckDB's could reveal data
            raise EngineError from None


def exact_table(exact_rows: Mapping[str, Any], keys: Sequence[str]) -> ExactTable:
    """Columns as DuckDB returns them to numpy: keys unchanged, all others as integers."""
    exact_columns = {
        name: np.ma.filled(values, 0).astype(np.int64)
        for name, values in exact_rows.items()
        if name not in keys
    }
    return ExactTable({name: exact_rows[name] for name in keys}, exact_columns)
