"""One SQLite file, shared by processes and threads: statements go in; rows come out, or a BudgetError that
says what is wrong.

A process has at most one connection to a file per Store, behind a lock, and none while it forks: SQLite's
locks do not survive a fork, and a child that inherited them would hold locks it does not have.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privsql.budget.ledger_file.format import APPLICATION, FORMAT, KNOWN, OBJECTS, OBJECTS_BEFORE, UPGRADE
from privsql.errors import BudgetError

MADE_ASIDE = ".new"  # the suffix of a ledger while it is created
# seconds that a charge waits for others, each of which holds the file for about a millisecond
PATIENCE = 10.0
_SHORTEST_WAIT, _LONGEST_WAIT = 0.0003, 0.001
_PREPARE = (
    "PRAGMA fullfsync = ON",  # on macOS, past the disk's cache too
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA cell_size_check = ON",
    "PRAGMA recursive_triggers = ON",  # an INSERT OR REPLACE is a DELETE, which a trigger forbids
    "PRAGMA trusted_schema = OFF",
)
_WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)

BUSY = (
    "budget-busy",
    "other processes held the ledger's lock for too long; nothing was charged",
    "run the query again; if this stays so, look for a process that hangs",
)
WRITE = (
    "budget-write",
    "the ledger cannot be written, so no query can be answered",
    "check whether the disk is full or failing, and whether the file and its folder are writable",
)
OPEN = ("budget-ledger", "the ledger cannot be opened", "check its path, and that its folder is writable")
CORRUPT = (
    "budget-corrupt",
    "the ledger is damaged, or the file is not a ledger",
    "run privsql ledger verify; restore a copy only if an anchor shows that it is the newest",
)
_REASONS = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_CANTOPEN: OPEN,
    sqlite3.SQLITE_PERM: OPEN,
    sqlite3.SQLITE_AUTH: OPEN,
    sqlite3.SQLITE_CORRUPT: CORRUPT,
    sqlite3.SQLITE_NOTADB: CORRUPT,
    sqlite3.SQLITE_CONSTRAINT: CORRUPT,
    sqlite3.SQLITE_ERROR: CORRUPT,
    sqlite3.SQLITE_MISMATCH: CORRUPT,
    sqlite3.SQLITE_SCHEMA: CORRUPT,
}


def primary(error: sqlite3.Error) -> int:
    """SQLite's primary error code."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def reason_for(error: sqlite3.Error) -> BudgetError:
    """The BudgetError for a failure of SQLite. An unknown failure counts as a failing disk."""
    return BudgetError(*_REASONS.get(primary(error), WRITE))


class Store:
    """The file of one ledger."""

    def __init__(self, path: Path, patience: float = PATIENCE, read_only: bool = False) -> None:
        self.path, self.read_only = Path(os.path.realpath(path)), read_only
        self.patience = patience
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._file = (0, 0)
        _STORES.add(self)

    # -- transactions ----------------------------------------------------------------------------------------
    @contextmanager
    def writing(self) -> Iterator[None]:
        """A write transaction: no other process writes meanwhile, and on return all of it is on the disk, or
        none.
        """
        with self._transaction("BEGIN IMMEDIATE", "COMMIT"):
            yield

    @contextmanager
    def noting(self) -> Iterator[None]:
        """A write transaction that does not wait for the disk: a crash of this process keeps it, a power cut
        may undo it.
        """
        with self._transaction("BEGIN IMMEDIATE", "COMMIT", "NORMAL"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A read transaction: all reads see the same state."""
        with self._transaction("BEGIN", "ROLLBACK"):
            yield

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement. Waits for other processes, but never inside a transaction, where waiting could not
        help.
        """
        connection = self._connection
        assert connection is not None
        deadline, wait = time.monotonic() + self.patience, _SHORTEST_WAIT
        while True:
            try:
                return connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if primary(error) not in _WAITING or connection.in_transaction or time.monotonic() > deadline:
                    raise
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    def keep_format(self) -> None:
        """Raise the format number, so that an older privsql does not misread new entries. Call it inside a
        write transaction.
        """
        if not self.is_new_format():
            for each in UPGRADE:
                self.execute(each)
            self.execute(f"PRAGMA user_version = {FORMAT}")

    def is_new_format(self) -> bool:
        """Whether this ledger records failures. Call it inside a transaction."""
        return self.execute("PRAGMA user_version") == [(FORMAT,)]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._alone():
            self._drop()

    @contextmanager
    def _transaction(self, begin: str, end: str, synchronous: str = "FULL") -> Iterator[None]:
        with self._alone():
            try:
                self._ready()
                # set for each transaction, so that none inherits it from another
                self.execute(f"PRAGMA synchronous = {synchronous}")
                self.execute(begin)
                yield
                self.execute(end)
            except sqlite3.Error as error:
                self._drop()  # this rolls back, whatever state the connection is in
                raise reason_for(error) from error
            except UnicodeDecodeError:  # in a text of the file, or in SQLite's message about one
                self._drop()
                raise BudgetError(*CORRUPT) from None
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self.patience):
            raise BudgetError(*BUSY)
        try:
            yield
        finally:
            self._lock.release()

    # -- the connection --------------------------------------------------------------------------------------
    def _ready(self) -> None:
        """Connect to the file that now has the ledger's name, not to one that was moved away."""
        if self._connection is not None and self._process != os.getpid():
            raise BudgetError(
                "budget-ledger",
                "this process was forked while the ledger was in use",
                "open the ledger again in each process",
            )
        if self._connection is not None and self._file != self._identity():
            self._drop()
        if self._connection is None:
            self._file = self._identity()
            self._open("rw" if not self.read_only else "ro")
            if self._file != self._identity():
                self._drop()
                raise BudgetError(*OPEN)

    def _identity(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            raise BudgetError(
                "budget-ledger", f"there is no ledger {self.path.name}", "check its path"
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise BudgetError(
                "budget-ledger", f"{self.path.name} is not a file, so it is not a ledger", "check its path"
            )
        if found.st_nlink > 1 and not self.read_only:
            self._refuse_other_names()
        return found.st_dev, found.st_ino

    def _refuse_other_names(self) -> None:
        """Raise BudgetError if the ledger has several names: SQLite keeps a log for each name of a file, so a
        charge under one name is lost under another.

        A name that creating the ledger left behind is removed.
        """
        for name in self.path.parent.glob(f".{glob.escape(self.path.name)}.*{MADE_ASIDE}"):
            with contextlib.suppress(OSError):
                if name.samefile(self.path):
                    name.unlink()
        if self.path.stat().st_nlink > 1:
            raise BudgetError(
                "budget-ledger",
                f"the ledger {self.path.name} has several names (hard links), "
                "and a charge under one name is not seen under another",
                "keep one name; copy the file for a backup",
            )

    def _open(self, mode: str) -> None:
        self._connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        self._process = os.getpid()
        try:
            self._prepare()
        except sqlite3.OperationalError as error:
            # in a read-only folder SQLite must be told that nobody writes; then there is no log
            unread = primary(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not unread or mode != "ro" or Path(f"{self.path}-wal").exists():
                raise
            # tested by a user who may not write, where coverage cannot write either
            self._drop()  # pragma: no cover
            self._open("ro&immutable=1")  # pragma: no cover

    def _prepare(self) -> None:
        for each in _PREPARE:
            self.execute(each)
        if self.read_only:
            self.execute("PRAGMA query_only = ON")
        ((application,),) = self.execute("PRAGMA application_id")
        ((version,),) = self.execute("PRAGMA user_version")
        if application == APPLICATION and version > FORMAT:
            raise BudgetError(
                "budget-version",
                f"the ledger has format {version}, but this version of privsql reads only up to {FORMAT}",
                "upgrade privsql",
            )
        found = dict(self.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        ((mode,),) = self.execute("PRAGMA journal_mode")
        objects = OBJECTS if version == FORMAT else OBJECTS_BEFORE
        if (
            (application, found) != (APPLICATION, objects)
            or version not in KNOWN
            or (mode != "wal" and not self.read_only)
        ):
            raise BudgetError(*CORRUPT)
        if self.execute("PRAGMA quick_check(1)") != [("ok",)]:
            raise BudgetError(*CORRUPT)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # bound here: when the interpreter exits, the module may be gone before its objects
        if getattr(self, "_connection", None) is not None and self._process == getpid():
            self._drop()

    # -- forks -----------------------------------------------------------------------------------------------
    def _before_fork(self) -> bool:
        """Close the connection before a fork. A process that forks in the middle of a charge cannot use the
        ledger in the child.
        """
        if not self._lock.acquire(timeout=self.patience):
            return False
        self._drop()
        return True

    def _after_fork(self) -> None:
        self._lock.release()


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_FORKING = threading.Lock()
_HELD: list[Store] = []


def _before_fork() -> None:
    _FORKING.acquire()
    _HELD.extend(each for each in list(_STORES) if each._before_fork())


def _after_fork() -> None:
    while _HELD:
        _HELD.pop()._after_fork()
    _FORKING.release()


if hasattr(os, "register_at_fork"):  # pragma: no branch -- not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
