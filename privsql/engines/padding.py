"""An engine goes in; one comes out whose queries take a whole multiple of a time quantum, whatever the
data.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from privsql.algebra.relations import Scan
from privsql.engines.base import Engine
from privsql.engines.duckdb.schema_reader import Rows
from privsql.planning.rewrites.prepared import Copy
from privsql.schema import Schema
from privsql.tables import ExactTable


def _sleep_until(end: float) -> None:
    """Sleep until then. Neither Ctrl-C nor another signal ends the wait early: that would show when the query
    really ended.
    """
    interrupted: BaseException | None = None
    while (rest := end - time.monotonic()) > 0:
        try:
            time.sleep(rest)
        except BaseException as error:  # noqa: BLE001 -- raised below
            interrupted = error
    if interrupted is not None:
        raise interrupted


class PaddedEngine:
    """Runs one query at a time, each for a whole number of quanta.

    All other calls to the engine wait for that, too. Otherwise timing a free EXPLAIN next to a query would
    show when the query really ended.
    """

    def __init__(self, engine: Engine, quantum: float) -> None:
        self._engine, self._quantum = engine, quantum
        self._turn = threading.RLock()
        self.fixed_schema, self.dialect = engine.fixed_schema, engine.dialect
        self.auditable = engine.auditable

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._turn, self._engine.snapshot():
            yield

    @contextlib.contextmanager
    def one_query(self) -> Iterator[None]:
        with self._turn:
            start = time.monotonic()
            try:
                with self._engine.one_query():
                    yield
            finally:  # errors, too
                now = time.monotonic()
                _sleep_until(now + (start - now) % self._quantum)

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        with self._turn:
            return self._engine.run(sql, keys)

    def schema(self) -> Schema:
        with self._turn:
            return self._engine.schema()

    def check(self, sql: str, schema: Schema) -> None:
        with self._turn:
            self._engine.check(sql, schema)

    def prepare(self, scan: Scan) -> None:
        with self._turn:
            self._engine.prepare(scan)

    def prepared(self, scan: Scan) -> Copy | None:
        with self._turn:
            return self._engine.prepared(scan)

    def version(self) -> str | None:
        with self._turn:
            return self._engine.version()

    def holds(self, data: Any) -> bool:
        with self._turn:
            return self._engine.holds(data)

    def read_public(self, sql: str) -> Rows:
        with self._turn:
            return self._engine.read_public(sql)

    def close(self) -> None:
        with self._turn:
            self._engine.close()
