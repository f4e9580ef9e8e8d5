"""An engine that runs statements in a worker process, which is killed when a query's deadline has passed.

A DuckDB statement cannot be stopped inside a function; a process can. The worker has its own read-only
connection to the same file; it receives SQL and returns buffers. Whether it meets a deadline, crashes or runs
out of memory, the analyst reads the one fixed sentence, and the next query gets a new worker. Schema, checks
and prepared copies stay with the engine of this process: they read no rows, or only the data owner runs them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privsql.algebra.relations import Scan
from privsql.algebra.reserved import DATABASE
from privsql.engines.child import PACKAGES, START, ChildProcess, Lost, Reply
from privsql.engines.duckdb.engine import DuckDBEngine, exact_table
from privsql.engines.duckdb.fingerprints import Identity, identity_of, is_open
from privsql.engines.duckdb.open_source import open_engine
from privsql.engines.duckdb.opening import Opening
from privsql.engines.duckdb.schema_reader import Rows, SchemaReader, SourceFacts
from privsql.engines.duckdb.twin import not_accepted
from privsql.engines.worker_process import unpack
from privsql.errors import ArgumentError, EngineError, SourceError
from privsql.planning.rewrites.prepared import Copy
from privsql.render.duckdb import text
from privsql.schema import Schema
from privsql.tables import ExactTable


class _Process(ChildProcess):
    """One worker process."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """Start the process and send it its opening request, without waiting for it."""
        super().__init__(request)
        self.serves: Schema | None = None  # the schema that the worker sees; None: its source is not open yet

    def rows(self, sql: str, until: float) -> Rows:
        """The rows of a catalogue query."""
        message, _ = self.ask({"rows": sql}, until)
        if "rows" not in message:
            raise SourceError(
                "source-connection",
                "DuckDB cannot read the catalogue",
                "check that the file is a DuckDB file",
            )
        return [tuple(row) for row in message["rows"]]

    def serve(self, schema: Schema, known: SourceFacts, until: float) -> bool:
        """Wait until the source is open, and return whether the worker sees exactly the tables of this
        schema.
        """
        if self.serves is None and "failed" in self.reply(until)[0]:
            return False
        self.serves = SchemaReader(lambda sql: self.rows(sql, until), known).schema(fixed=True)
        return self.serves == schema


class _Keeper:
    """The worker of one engine, and its private folder, which is deleted with the engine, however
    that ends.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="privsql-"))  # only its owner can read it
        self.process: _Process | None = None
        self._program = os.getpid()

    @property
    def ours(self) -> bool:
        """False in a fork of this program, which does not own them."""
        return os.getpid() == self._program

    def drop(self) -> None:
        """Kill the worker; the next one cleans up its temporary files."""
        process, self.process = self.process, None
        if process is not None and self.ours:
            process.kill()
            shutil.rmtree(self.spill, ignore_errors=True)

    @property
    def spill(self) -> Path:
        """The folder for data that does not fit into a worker's memory."""
        return self.folder / "spill"

    def end(self) -> None:
        if self.ours:
            self.drop()
            shutil.rmtree(self.folder, ignore_errors=True)


class WorkerEngine:
    """Runs statements in a process that can be killed, one query at a time."""

    def __init__(self, source: Any, deadline: float, memory: int | None) -> None:
        if os.name != "posix":
            raise ArgumentError(
                "argument-deadline", "deadline= works only on Linux and macOS", "leave deadline out"
            )
        self._deadline, self._memory = deadline, memory
        self._turn = threading.RLock()
        self._until: float | None = None  # the deadline of the running query
        self._generation = 0  # of the source that the worker has open
        self._keeper = _Keeper()
        self._end = weakref.finalize(self, self._keeper.end)
        try:
            self._engine = open_engine(source, folder=self._keeper.folder)
        except BaseException:
            self._end()
            raise
        self.fixed_schema, self.dialect = self._engine.fixed_schema, self._engine.dialect
        self.auditable = self._engine.auditable
        try:
            self._opening = _for_worker(self._engine)
            self._file = self._opened_file()
            self._schema = self._engine.schema()
            self._worker(self._schema, time.monotonic() + START)
        except BaseException:
            self.close()
            raise

    # -- what stays in this process
    # ------------------------------------------------------------------------------
    def schema(self) -> Schema:
        return self._engine.schema()

    def check(self, sql: str, schema: Schema) -> None:
        self._engine.check(sql, schema)
        with self._turn:
            # report before the charge whether a worker can start
            self._worker(schema, time.monotonic() + START)

    def prepare(self, scan: Scan) -> None:
        self._engine.prepare(scan)

    def prepared(self, scan: Scan) -> Copy | None:
        return self._engine.prepared(scan)

    def version(self) -> str | None:
        return self._engine.version()

    def holds(self, data: Any) -> bool:
        return self._engine.holds(data)

    def close(self) -> None:
        with self._turn:
            self._engine.close()
            self._end()

    # -- what the worker does --------------------------------------------------------------------------------
    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A context without a transaction: the worker opens only files that nobody writes to, so its
        statements see one state anyway.
        """
        with self._turn, self._engine.snapshot():
            # the file was replaced: the worker opens the new one
            if self._generation != self._engine.generation:
                self._generation = self._engine.generation
                self._keeper.drop()
            yield

    @contextlib.contextmanager
    def one_query(self) -> Iterator[None]:
        with self._turn:
            self._until = time.monotonic() + self._deadline
            try:
                yield
            finally:
                self._settle()
                self._until = None

    def _settle(self) -> None:
        """Wait until the worker has freed what it read, which takes longer the more it read."""
        process = self._keeper.process
        if process is not None and process.serves is not None:
            with contextlib.suppress(Lost):
                self._asked(process, {"done": True}, self._until or time.monotonic() + self._deadline)

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            with self._turn:
                until = self._until or time.monotonic() + self._deadline
                worker = self._worker(self._schema, until)
                message, buffers = self._asked(worker, {"columns": sql, "copies": self._copies()}, until)
                if "failed" in message:  # DuckDB may accept no more statements after it
                    self._exchange()
                if not self._engine.sees(self._schema):
                    raise EngineError
            return exact_table(unpack(message["columns"], buffers), keys)
        except Exception:  # noqa: BLE001 -- whatever failed, its message could tell about the data
            raise EngineError from None

    def read_public(self, sql: str) -> Rows:
        with self._turn:
            worker = self._worker(self._schema, time.monotonic() + START)
            try:
                message, _ = self._asked(worker, {"rows": sql}, time.monotonic() + self._deadline)
            except (Lost, LookupError, ValueError, MemoryError):
                raise SourceError(
                    "source-deadline",
                    f"reading the public tables of this query takes more than {self._deadline:g} seconds, "
                    "or too much memory",
                    "read fewer public rows, or ask the data owner for a longer deadline",
                ) from None
        if "rows" not in message:
            raise not_accepted()
        return [tuple(row) for row in message["rows"]]

    def _asked(self, worker: _Process, request: Mapping[str, Any], until: float) -> Reply:
        try:
            return worker.ask(request, until)
        # a reply that nobody waits for may still arrive, so this worker cannot be used again
        except BaseException:
            self._exchange()
            raise

    def _exchange(self) -> None:
        """Replace the worker; the new one starts now, so the next query need not wait for it."""
        self._keeper.drop()
        with contextlib.suppress(OSError, Lost):
            self._begin()

    def _opened_file(self) -> Identity | None:
        """The identity of the database file that this process reads, not of a file that replaced it."""
        path = Path(self._opening.database)
        if self._opening.database == ":memory:":
            return None
        found = identity_of(path)
        if not is_open(path):
            raise SourceError("source-file", "the file was replaced since it was opened", "connect again")
        return found

    def _copies(self) -> dict[str, Any] | None:
        """How the worker attaches the prepared copies, and attaches them again when their file is
        replaced.
        """
        copies = self._engine.copies
        if copies is None:
            return None
        path, sign = copies
        attach = f"ATTACH {text(str(path))} AS {DATABASE} (READ_ONLY)"
        return {"sign": list(sign), "statements": [f"DETACH DATABASE IF EXISTS {DATABASE}", attach]}

    def _begin(self) -> _Process:
        """Start a worker, without waiting for it."""
        settings = {} if self._memory is None else {"memory_limit": f"{self._memory}B"}
        opening = self._opening.with_settings(temp_directory=str(self._keeper.spill), **settings)
        self._keeper.process = _Process(
            {
                "database": opening.database,
                "read_only": opening.read_only,
                "config": opening.config,
                "statements": opening.statements,
                "memory": self._memory,
                "path": PACKAGES,
                "parent": os.getpid(),
                "folder": str(self._keeper.folder),
                "file": self._file,
            }
        )
        return self._keeper.process

    def _worker(self, schema: Schema, until: float) -> _Process:
        """A worker that is ready by `until` and sees exactly the tables of this schema, from which the bounds
        were derived.
        """
        if not self._end.alive or not self._keeper.ours:
            raise SourceError(
                "source-connection",
                "the source cannot be used",
                "connect again: the session was closed, or the program was forked",
            )
        try:
            process = self._keeper.process
            if process is None or process.ended:
                self._keeper.drop()
                process = self._begin()
            if process.serves is None or (process.serves is not schema and process.serves != schema):
                if not process.serve(schema, self._engine.known, until):
                    raise Lost
                process.serves = schema
        except BaseException as error:
            self._keeper.drop()
            if not isinstance(error, (Lost, OSError, SourceError)):
                raise
            raise SourceError(
                "source-worker",
                "no worker process could be started that sees the same tables",
                "check whether the file is open for writing or memory is full; if the file was replaced, "
                "connect again",
            ) from None
        self._schema = schema
        return process


def _for_worker(engine: DuckDBEngine) -> Opening:
    if engine.opening is None:
        raise ArgumentError(
            "argument-deadline",
            "with deadline= a worker process reads the data, and it cannot use a connection of this process",
            "give the path of the DuckDB file, or a read-only connection to it",
        )
    return engine.opening
