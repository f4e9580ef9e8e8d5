"""A DuckDB connection goes in; one comes out whose statements see one state from the start of a query to its
end.

Between planning a query and running it others may write: the data owner on another connection to the same
database, or another thread. A bound relies on the schema (on a PRIMARY KEY of the unit, say), so planning and
running share one transaction. DuckDB fixes a transaction's state when it first looks at a database, and
reading the catalogue does that for all of them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, Never

import duckdb

from privsql.engines.duckdb.opening import FAILURES

Rows = list[tuple[Any, ...]]

# After these errors DuckDB refuses every further statement on the database, until it is closed and opened
# again.
FATAL = (duckdb.FatalException, duckdb.InternalException)

_MOST_KEPT = 200  # parsed texts
_LONGEST_KEPT = 50_000  # letters of a text; longer ones take far longer to plan than to parse
_PATIENCE = 0.05  # seconds until a statement that does not end is interrupted again
_REVIVING = threading.Lock()


class Sharing(Enum):
    """Who else can change what a connection sees."""

    NOBODY = "nobody"  # a database of our own that is only read, or frames: no transaction is needed
    DATABASE = "database"  # a connection of our own to a database that others may write to
    CONNECTION = "connection"  # the caller's own connection, with whatever transaction is open on it


class SourceConnection:
    """Runs statements one at a time, and those of one query in one transaction.

    `reopen` opens the same source again after an error that killed the database; None if only the caller can.
    `transaction` counts transactions, `generation` how often the source was opened again: what was read under
    a different number may no longer be true.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        sharing: Sharing,
        reopen: Callable[[], duckdb.DuckDBPyConnection] | None = None,
        database: str = ":memory:",
    ) -> None:
        self.connection, self.sharing, self._reopen, self._database = connection, sharing, reopen, database
        self.transaction = self.generation = 0
        self._turn, self._lock = threading.RLock(), threading.Lock()
        self._depth = 0
        self._begun = self._broken = self._dead = False
        # DuckDB's count of changes when the last transaction ended; None: others have made some since
        self._left: int | None = None
        self._entered = 0  # the count after our own statements of this transaction, if nobody else ran any
        self._parsed: dict[str, duckdb.Statement | str] = {}
        self._prepared: dict[str, str] = {}  # the names of prepared statements, by their texts
        # whether others may have changed what names mean since the last check
        self.changed = True
        _OPEN.add(self)

    @property
    def in_snapshot(self) -> bool:
        return self._depth > 0

    @property
    def is_stable(self) -> bool:
        """Whether what this transaction has read is still true: it has not failed, and nobody else
        is in it.
        """
        return self._begun and not self._broken and self.sharing is Sharing.DATABASE

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Keep other threads' statements out of the block."""
        with self._turn:
            yield

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the block in one transaction; inside another snapshot, in that one."""
        with self._turn:
            if not self._depth:
                self._revive()
                self._begin()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._end()

    def rows(self, sql: str) -> Rows:
        found: Rows = self._run(lambda: self._execute(sql).fetchall())
        return found

    def rows_again(self, sql: str) -> Rows:
        """The rows of a statement about DuckDB's own catalogue, which is read for every query.

        On a connection of our own DuckDB plans it once: that takes longer than to run it.

        What such a statement lists is looked up when it runs, and DuckDB plans it anew where definitions have
        changed. Never use it for a statement that reads a table, or a setting.
        """
        if self.sharing is Sharing.CONNECTION:  # the caller would see it among the prepared statements
            return self.rows(sql)
        found: Rows = self._run(lambda: self._execute_prepared(sql).fetchall())
        return found

    def _execute_prepared(self, sql: str) -> duckdb.DuckDBPyConnection:
        name = self._prepared.get(sql)
        if name is None:
            name = f"privsql_{len(self._prepared)}"
            self._execute_counted(f"PREPARE {name} AS {sql}")
            self._prepared[sql] = name
        return self._execute_counted(f"EXECUTE {name}")

    def _execute_counted(self, sql: str) -> duckdb.DuckDBPyConnection:
        """A statement of ours that DuckDB counts among the changes (see `_changes`), as one."""
        found = self._execute(sql)
        self._entered += 1
        return found

    def columns(self, sql: str) -> Any:
        """The result as numpy arrays by column name; Ctrl-C interrupts the statement."""
        return self._run(lambda: self._interruptible(lambda: self._execute(sql).fetchnumpy()))

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run a statement. A repeated text is not parsed again, which takes DuckDB up to half of a small
        query's time. It is planned each time, for the tables as they are.
        """
        parsed = self._parsed.get(sql)
        if parsed is None:
            statements = self.connection.extract_statements(sql)
            parsed = statements[0] if len(statements) == 1 else sql
            if len(sql) <= _LONGEST_KEPT:
                if len(self._parsed) >= _MOST_KEPT:
                    self._parsed.clear()
                self._parsed[sql] = parsed
        return self.connection.execute(parsed)

    def reopen(self) -> None:
        """Open the source again, in a database of our own."""
        assert self._reopen is not None
        with self._lock:
            self.connection.close()
        try:
            connection = self._reopen()
        # other sessions of this program have the dead database open, and DuckDB would return it again
        except FATAL:
            self._close_others()
            connection = self._reopen()
        with self._lock:
            self._parsed.clear()
            self._prepared.clear()
            self.connection, self._dead = connection, False
            self.generation += 1

    def _close_others(self) -> None:
        for other in list(_OPEN):
            if other is not self and other._shares(self._database):
                with other._lock:
                    other.connection.close()
                    other._dead = True

    def close(self) -> None:
        with self._lock:
            _OPEN.discard(self)
            self.connection.close()

    def _shares(self, database: str) -> bool:
        """Whether DuckDB gives both the same database, as it does for equal paths and settings."""
        return self._reopen is not None and self._database == database != ":memory:"

    def _run(self, statement: Callable[[], Any]) -> Any:
        with self._turn:
            self._revive()
            if self._broken:
                self._begin_again()
            try:
                with self._lock:
                    return statement()
            except FATAL:
                self._dead = self._broken = True
                raise
            except BaseException:
                self._broken = self._begun
                raise

    def _revive(self) -> None:
        if self._dead and self._reopen is not None:
            with _REVIVING:
                self.reopen()

    # -- transactions ----------------------------------------------------------------------------------------
    def _begin(self) -> None:
        self.transaction += 1
        self._broken = False
        self._begun = self.sharing is Sharing.DATABASE or (
            self.sharing is Sharing.CONNECTION and not self._callers_is_open()
        )
        if self._begun:
            # the caller may write on a connection of its own, from another thread
            read_only = " READ ONLY" if self.sharing is Sharing.DATABASE else ""
            with self._lock:
                before = self._changes()
                self._execute(f"BEGIN TRANSACTION{read_only}")
                self._entered = self._changes() or 0
            moved = before is None or before != self._left or self._entered != before + 1
            self.changed = self.changed or moved
        else:
            self.changed = True

    def note_unchanged(self) -> None:
        """Note that the meaning of names was checked in this transaction."""
        self.changed = not self._begun

    def _changes(self) -> int | None:
        """How many statements that can change the meaning of names have run on this database, transactions
        included; None if DuckDB does not tell.
        """
        count = getattr(self.connection, "_catalog_version", None)
        return None if count is None else int(count())

    def _end(self) -> None:
        begun, self._begun = self._begun, False
        if begun:
            self._left = None
            with self._lock, contextlib.suppress(*FAILURES):
                self._execute("ROLLBACK" if self._broken else "COMMIT")
                ended = self._changes()
                self._left = ended if ended == self._entered + 1 else None
        self._broken = False

    def _begin_again(self) -> None:
        """Begin a new transaction after a failed statement: what follows sees another state, under another
        number.
        """
        self._end()
        if self._depth:
            self._begin()

    def _callers_is_open(self) -> bool:
        """Whether the caller has a transaction open. Without one every statement has its own number. (Trying
        BEGIN would end an open one.)
        """
        number = "SELECT system.main.txid_current()"
        with self._lock:
            return bool(self._execute(number).fetchall() == self._execute(number).fetchall())

    # -- Ctrl-C ----------------------------------------------------------------------------------------------
    def _interruptible(self, statement: Callable[[], Any]) -> Any:
        """Run a statement so that Ctrl-C can interrupt it. DuckDB does not check for signals while it
        computes, so the main thread waits for them and a helper thread computes.
        """
        if threading.current_thread() is not threading.main_thread():
            return statement()
        task = _Task(statement)
        try:
            _run_elsewhere(task)
            return task.result()
        except KeyboardInterrupt:
            task.abandon(self.connection.interrupt)
            raise


class _Task:
    """A statement for another thread, which can be abandoned at any moment, before it starts or while it
    runs.
    """

    def __init__(self, statement: Callable[[], Any]) -> None:
        self._statement, self._lock = statement, threading.Lock()
        self._begun = self._abandoned = False
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        with self._lock:
            if self._abandoned:
                return
            self._begun = True
        try:
            self._result = self._statement()
        except BaseException as error:  # noqa: BLE001 -- raised by result()
            self._error = error
        finally:
            self._done.set()

    def result(self) -> Any:
        """Wait for the result and hand it over: what was read must not outlive its use."""
        self._done.wait()
        result, error = self._result, self._error
        self._result = self._error = None
        try:
            if error is not None:
                raise error
            return result
        finally:
            del result, error  # a traceback holds this frame

    def abandon(self, interrupt: Callable[[], None]) -> None:
        """Return once the statement is not running and never will; another Ctrl-C does not change that."""
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                with self._lock:
                    self._abandoned = True
                while self._begun and not self._done.is_set():
                    interrupt()  # repeatedly: it may have reached DuckDB only now
                    self._done.wait(_PATIENCE)
                return


def _run_elsewhere(task: _Task) -> None:
    if sys.is_finalizing():  # other threads have stopped
        task.run()
    else:
        _helper().put(task)


@lru_cache(maxsize=1)
def _helper() -> SimpleQueue[_Task]:
    """The one thread that computes while the main thread waits. (DuckDB is slower in a new thread.)

    It is not an executor of concurrent.futures: Ctrl-C while that starts its thread leaves a thread that it
    does not know, and then the program never ends.
    """
    tasks: SimpleQueue[_Task] = SimpleQueue()
    threading.Thread(target=_work, args=(tasks,), name="privsql-statement", daemon=True).start()
    return tasks


def _work(tasks: SimpleQueue[_Task]) -> Never:
    while True:
        tasks.get().run()  # without a name, which would hold its result until the next one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helper.cache_clear)  # a fork has only its first thread


_OPEN: weakref.WeakSet[SourceConnection] = weakref.WeakSet()
