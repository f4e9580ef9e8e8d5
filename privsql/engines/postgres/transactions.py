"""An address goes in; a connection comes out whose statements of one query see one state, and cannot write.

What the meaning of a statement depends on is set here, for this connection alone: where names are looked up,
the time zone, how numbers and dates are written. Statements of one query run in one transaction that is read
only and REPEATABLE READ.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.datetime import DateLoader, TimestampLoader

from privsql.engines.postgres.server_errors import unreachable, unsuitable, unusable

Rows = list[tuple[Any, ...]]

MOST_ROWS = 5_000_000  # that a statement may return; a plan has a million cells at most
_OLDEST = 150_000
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",  # what is temporary comes last: by itself it would come first
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "standard_conforming_strings": "on",
    "client_min_messages": "error",
    "row_security": "off",  # a policy raises an error while the query is checked, instead of hiding rows
    "default_transaction_read_only": "on",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
}
_BEGIN = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class _Date(DateLoader):
    """Dates that Python's calendar does not have are text, as from DuckDB."""

    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Timestamp(TimestampLoader):
    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result: its name, and its type by PostgreSQL's number."""

    name: str
    type: int
    scale: int | None


class PostgresConnection:
    """Runs statements one at a time. A connection that was cut is made anew for the next query."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = threading.RLock()
        self.in_snapshot = False
        self.until: float | None = None  # of time.monotonic(): when the running query must have ended
        self._connection = self._opened()
        # where a bare name was looked up before the search path was fixed
        self.schema = self._first_schema
        self.database: str = self._connection.info.dbname

    def __repr__(self) -> str:
        return "PostgresConnection(not shown)"  # the address may hold a password

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the block in one transaction; inside another snapshot, in that one."""
        with self._turn:
            if self.in_snapshot:
                yield
                return
            self._begin()
            self.in_snapshot = True
            try:
                yield
            finally:
                self.in_snapshot = False
                self._end()

    def rows(self, sql: str) -> Rows:
        """The rows of a statement; raises psycopg.Error."""
        return self.table(sql)[1]

    def table(self, sql: str) -> tuple[list[ResultColumn], Rows]:
        """Columns and rows of a statement, no more than MOST_ROWS of them; raises psycopg.Error."""
        with self.snapshot(), self._connection.cursor() as cursor:
            self._limit_time(cursor)
            found: Rows = []
            for row in cursor.stream(sql.encode()):
                if len(found) >= MOST_ROWS:
                    raise psycopg.DataError("too many rows")
                found.append(row)
            described = cursor.description or ()
            columns = [ResultColumn(each.name, each.type_code, each.scale) for each in described]
            return columns if found else self._described(sql), found

    def _described(self, sql: str) -> list[ResultColumn]:
        """The columns of a statement, which a stream without rows does not tell."""
        server = self._connection.pgconn
        server.prepare(b"", sql.encode())
        described = server.describe_prepared(b"")
        names = [described.fname(place) for place in range(described.nfields)]
        return [
            ResultColumn((name or b"").decode(), described.ftype(place), None)
            for place, name in enumerate(names)
        ]

    def explain(self, sql: str) -> None:
        """Have PostgreSQL plan a statement, constants folded and privileges checked, without running it."""
        with self.snapshot(), self._connection.cursor() as cursor:
            self._limit_time(cursor)
            cursor.execute(f"EXPLAIN {sql}".encode())

    def close(self) -> None:
        with self._turn, contextlib.suppress(psycopg.Error):
            self._connection.close()

    def interrupt(self) -> None:
        """Ask the server to cancel what runs; from any thread."""
        with contextlib.suppress(psycopg.Error, OSError):
            self._connection.cancel_safe(timeout=5)

    def _limit_time(self, cursor: psycopg.Cursor[Any]) -> None:
        if self.until is None:
            return
        left = int((self.until - time.monotonic()) * 1000)
        if left <= 0:
            raise psycopg.errors.QueryCanceled
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(left)])

    # -- opening and transactions ----------------------------------------------------------------------------
    def _opened(self) -> psycopg.Connection[Any]:
        try:
            connection: psycopg.Connection[Any] = psycopg.connect(
                self._address,
                autocommit=True,
                client_encoding="utf8",
                prepare_threshold=None,
                application_name="privsql",
            )
        except (psycopg.Error, UnicodeError, OSError):
            raise unreachable() from None
        try:
            if connection.info.server_version < _OLDEST:
                raise unsuitable("this PostgreSQL is older than version 15", "use PostgreSQL 15 or later")
            connection.adapters.register_loader("date", _Date)
            connection.adapters.register_loader("timestamp", _Timestamp)
            found = connection.execute(
                "SELECT current_schema(), current_setting('server_encoding')"
            ).fetchone()
            assert found is not None
            self._first_schema = found[0] or "public"
            if found[1] != "UTF8":
                raise unsuitable(
                    "the encoding of this database is not UTF8", "store the tables in one that is"
                )
            for name, value in SETTINGS.items():
                connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            return connection
        except psycopg.Error:
            connection.close()
            raise unusable() from None
        except BaseException:
            connection.close()
            raise

    def _begin(self) -> None:
        try:
            self._connection.execute(_BEGIN)
        except psycopg.Error:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = self._opened()
            try:
                self._connection.execute(_BEGIN)
            except psycopg.Error:
                raise unusable() from None

    def _end(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._connection.execute("ROLLBACK")
