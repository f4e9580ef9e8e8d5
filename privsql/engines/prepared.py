"""A table of many rows a unit goes in; a copy with a rank for each row is stored, and found again while it is up to date.

The rank counts the rows of one unit in the order of a hash of their content, then of the content itself: it depends on
that unit's rows alone, never on where a row lies or on who else is there. Rows that agree in all columns are
interchangeable. The copy is named after its recipe, the text that made it, so that a copy made for another unit, other
columns or another table of the same name is never taken for it.

Whether a copy is up to date is told by the sign of its source (signs.py), which changes with every write; never by a look
at the rows, since what EXPLAIN says of the copy is not charged. A source without a sign cannot be prepared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb

from privsql.engines.signs import is_open, settle, sign_of
from privsql.errors import ArgumentError, SourceError
from privsql.planning.look import PublicLook
from privsql.planning.prepared import DATABASE, LARGEST_RANK, RANK, Copy, StoredValue, stored_values
from privsql.planning.render import UNIT, identifier, text
from privsql.planning.render_rows import rows
from privsql.sql.relations import Scan, Unit
from privsql.types import Kind

_NOTES = "privsql_signs"  # the table that says what each copy is of
_BUILDING = "privsql_building"
_UNCHANGING = "unchanging"
_PROCESS = uuid4().hex  # a part of a name that nobody can have taken before

Attached = tuple[Path, tuple[int, int]]  # a file of copies: its path, and its number and time


@dataclass(frozen=True)
class Place:
    """Where a table lies: its database, the database's file if it has one, its schema; a view is `stored` nowhere."""

    database: str
    path: str | None
    schema: str
    stored: bool


@dataclass(frozen=True)
class Keeping:
    """Where copies are kept, and how a write to the source shows.

    `beside`: the DuckDB file beside which they lie; else `kept`: a file of their own; neither: in memory. `opened`: the sign
    that the file beside them had when it was opened, by us; None: others opened it, and nobody can say in which state.
    `watched`: a file that is the whole source. `frozen`: the source is what it was when it was given. `own`: the connection
    sees only what is committed. `alone`: nobody else can make or attach anything there, so that names go on meaning what
    they mean.
    """

    beside: Path | None = None
    opened: str | None = None
    watched: Path | None = None
    frozen: bool = False
    own: bool = True
    alone: bool = False
    kept: Path | None = None

    @property
    def version(self) -> str | None:
        """What changes with the source, whoever opens it; None where that cannot be told."""
        return sign_of(self.watched) if self.watched is not None else self.opened

    @property
    def file(self) -> Path | None:
        return self.kept if self.beside is None else Path(f"{self.beside}.prepared")


@dataclass(frozen=True)
class _Recipe:
    """How a copy is made: from these rows, these columns, of a table that lies there."""

    table: str
    source: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    values: tuple[StoredValue, ...]
    places: Sequence[Place]
    where: str

    @property
    def key(self) -> str:
        """What every copy has that can be used for this table; values beyond it may be missing."""
        names = ", ".join(self.columns)
        order = ", ".join([f"hash({names})", *self.columns, *self.order])
        rank = f"least(row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}), {LARGEST_RANK})"
        return f"{names}, CAST({rank} AS USMALLINT) AS {RANK}"

    @property
    def text(self) -> str:
        values = "".join(f", {each.sql} AS {each.name}" for each in self.values)
        return f"SELECT {self.key}{values} FROM {self.source} ORDER BY {RANK}"

    @property
    def name(self) -> str:
        return f"{self.table}_{hashlib.sha256(f'{self.where} {self.key} {self.source}'.encode()).hexdigest()[:12]}"


class PreparedTables:
    """The copies of one engine's tables, in a database attached to its connection."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, lock: threading.Lock, keeping: Keeping,
        places: Callable[[Sequence[str]], list[Place]],
    ) -> None:  # fmt: skip
        self._connection, self._lock, self._keeping, self._places = connection, lock, keeping, places
        self._made: set[str] = set()
        self._attached: tuple[int, int] | None = None  # the file that is attached, as it was
        self._known: dict[str, str] = {}  # the sign of each copy in it
        self._lies: dict[tuple[str, ...], list[Place]] = {}
        self._computed: dict[Scan, tuple[StoredValue, ...]] = {}
        self.definitions: dict[str, str] = {}  # columns and types of each copy that was found

    def prepare(self, scan: Scan) -> None:
        """Store a copy, unless one is there that is up to date."""
        if RANK in {each.name.lower() for each in scan.fields}:
            raise _failed(f"{scan.table} has a column {RANK} of its own", "rename it in a view")
        if self._taken():
            raise _failed(f"a database of the name {DATABASE} is attached already", "detach it, or give it another name")
        recipe = self._recipe(scan)
        path = self._watched(recipe)
        if self._keeping.beside is not None and self._keeping.opened is None:
            raise _unsigned("the file was opened by others in this program, and may have been exchanged since",
                            "close their connections to it, and give its path")  # fmt: skip
        found = self.find(scan)
        if found is not None and found.fresh and found.values == recipe.values:
            return
        try:
            sign = self._settled_sign(path)  # before any row is read: who writes from here on changes it
            if self._keeping.file is None:
                self._store_in_memory(recipe, sign)
            else:
                self._store_in_file(self._keeping.file, recipe, sign)
        except (duckdb.Error, OSError):
            raise _failed(
                f"the copy of {scan.table} cannot be stored",
                "is there room on the disk and in memory, and may files be written beside the source?",
            ) from None
        self._made.add(recipe.name)

    def find(self, scan: Scan) -> Copy | None:
        """The copy of this table made for this unit and these columns, if there is one."""
        try:
            if not self._attach():
                return None
            recipe = self._recipe(scan)
            sign = self._known.get(recipe.name)
            if sign is None:
                return None
            if recipe.name not in self.definitions:
                self.definitions[recipe.name] = self._definition(recipe.name)
            columns = self.definitions[recipe.name]
            stored = tuple(each for each in recipe.values if identifier(each.name) in columns)
            return Copy(recipe.name, self._is_of(sign, self._watched(recipe)), stored)
        except (duckdb.Error, ArgumentError, OSError):
            return None

    def close(self) -> None:
        """Leave nothing of ours in the memory of a caller's database, but what other sessions have made there."""
        if self._keeping.file is None and not self._keeping.alone and self._made:
            with contextlib.suppress(duckdb.Error):
                for name in self._made:
                    self._run(f"DROP TABLE IF EXISTS {_in(DATABASE, name)}")
                    self._run(f"DELETE FROM {_in(DATABASE, _NOTES)} WHERE name = {text(name)}")
                if not self._run(f"SELECT 1 FROM {_in(DATABASE, _NOTES)}"):
                    self._run(f"DETACH {DATABASE}")

    @property
    def attached(self) -> Attached | None:
        """The file of copies that is in use."""
        file = self._keeping.file
        return None if file is None or self._attached is None else (file, self._attached)

    # -- whether the table is still what was copied ----------------------------------------------------------
    def _watched(self, recipe: _Recipe) -> Path | None:
        """The file that every change of a table changes, None where there are none; a table without such a file is refused."""
        keeping, paths = self._keeping, {each.path for each in recipe.places}
        if keeping.frozen or keeping.watched is not None:
            return keeping.watched
        if not all(each.stored for each in recipe.places):
            raise _unsigned(f"{recipe.table} is a view, or refers to one, and what a view shows may change without a trace",
                            "store its rows as a table")  # fmt: skip
        if not keeping.own:
            raise _unsigned("this connection has temporary tables, registered frames or a USE, which it alone can see",
                            "give the path of a DuckDB file, or a connection without them")  # fmt: skip
        path = paths.pop()
        if path is None or paths:
            raise _unsigned("a database in memory has no sign of its changes, and comparing its rows would tell about them",
                            "store it (ATTACH 'x.duckdb' AS x; COPY FROM DATABASE memory TO x) and give the path")  # fmt: skip
        return Path(path)

    def _is_of(self, sign: str, path: Path | None) -> bool:
        """Whether a copy with this sign is of what we read, as it is now."""
        return sign == _UNCHANGING if path is None else sign == sign_of(path) and self._keeping.opened in (None, sign)

    def _settled_sign(self, path: Path | None) -> str:
        """The sign of what we read, once no later write can have the same."""
        if path is None:
            return _UNCHANGING
        if not settle(path, shared=not self._keeping.alone):
            raise _failed("the file's time lies in the future, so that changes might not show", "touch it, or set the clock")
        keeping, sign = self._keeping, sign_of(path)
        if keeping.watched is None and (keeping.opened not in (None, sign) or not is_open(path)):
            raise _failed("the file was written to or exchanged since it was opened here", "connect again")
        return sign

    # -- how a copy is made ----------------------------------------------------------------------------------
    def _recipe(self, scan: Scan) -> _Recipe:
        assert scan.unit is not None
        names = (scan.table, *_referred(scan.unit))
        places = self._lies.get(names) or self._places(names)
        if self._keeping.alone:
            self._lies[names] = places
        beside = self._keeping.beside
        where = [("" if beside is not None and _same(each.path, beside) else each.database, each.schema) for each in places]
        columns = [
            # 0.0 and -0.0 are equal, and yet not the same: which of them came first must not show
            f"CASE WHEN {name} = 0 THEN 0 ELSE {name} END AS {name}" if each.type.kind is Kind.DOUBLE else name
            for each in scan.fields
            for name in [identifier(each.name)]
        ]
        return _Recipe(
            scan.table,
            f"(SELECT {', '.join([*columns, UNIT])} FROM {rows(scan, unit=True)})",
            tuple(identifier(each.name) for each in scan.fields),
            # nor 30 days and one month
            tuple(f"CAST({identifier(e.name)} AS VARCHAR)" for e in scan.fields if e.type.kind is Kind.INTERVAL),
            self._values(scan),
            places,
            str(where),
        )

    def _values(self, scan: Scan) -> tuple[StoredValue, ...]:
        if scan not in self._computed:
            self._computed[scan] = stored_values(scan, PublicLook(self._run))
        return self._computed[scan]

    def _store_in_memory(self, recipe: _Recipe, sign: str) -> None:
        self._run(f"ATTACH IF NOT EXISTS ':memory:' AS {DATABASE}")
        self._write(DATABASE, recipe, sign)
        with contextlib.suppress(duckdb.Error):
            self._run(f"CHECKPOINT {DATABASE}")  # compresses: almost four times as fast to read
        self._read_notes()

    def _store_in_file(self, file: Path, recipe: _Recipe, sign: str) -> None:
        """Written whole beside the old one, which others may be reading, then put in its place."""
        with _folder(building(file)) as folder:
            new = folder / file.name
            self._run(f"ATTACH {text(str(new))} AS {_BUILDING} (READ_WRITE)")
            try:
                if self._attach():
                    self._keep_others(recipe, sign)
                self._write(_BUILDING, recipe, sign)
                self._run(f"CHECKPOINT {_BUILDING}")
            finally:
                self._run(f"DETACH {_BUILDING}")
            beside = self._keeping.beside
            new.chmod(0o600 if beside is None else beside.stat().st_mode & 0o666)  # whoever may read the one may read the other
            new.replace(file)
        self._attach()

    def _keep_others(self, recipe: _Recipe, sign: str) -> None:
        """The copies of other tables that are still up to date."""
        others = f"FROM {_in(DATABASE, _NOTES)} WHERE source <> {text(recipe.table)} AND sign = {text(sign)}"
        self._run(f"CREATE TABLE {_in(_BUILDING, _NOTES)} AS {others}")
        for (name,) in self._run(f"SELECT name {others}"):
            self._run(f"CREATE TABLE {_in(_BUILDING, name)} AS FROM {_in(DATABASE, name)}")

    def _write(self, database: str, recipe: _Recipe, sign: str) -> None:
        notes = _in(database, _NOTES)
        self._run(f"CREATE TABLE IF NOT EXISTS {notes} (name VARCHAR, source VARCHAR, sign VARCHAR)")
        self._run(f"DELETE FROM {notes} WHERE name = {text(recipe.name)}")
        self._run(f"CREATE OR REPLACE TABLE {_in(database, recipe.name)} AS {recipe.text}")
        self._run(f"INSERT INTO {notes} VALUES ({text(recipe.name)}, {text(recipe.table)}, {text(sign)})")

    # -- the attached database -------------------------------------------------------------------------------
    def _attach(self) -> bool:
        """Whether the copies can be read; a file that was put there by others meanwhile is looked at anew."""
        file = self._keeping.file
        if file is None:
            if not self._keeping.alone:  # other sessions may have stored something else there meanwhile
                self._known = {}
                if self._attached_path() == "":
                    self._read_notes()
            return bool(self._known)
        try:
            status = file.stat()
            if self._attached == (status.st_ino, status.st_mtime_ns):
                return True
            if self._taken():
                return False
            self._run(f"DETACH DATABASE IF EXISTS {DATABASE}")
            self._run(f"ATTACH {text(str(file))} AS {DATABASE} (READ_ONLY)")
            self._read_notes()
        except (OSError, duckdb.Error):
            return False
        self._attached = (status.st_ino, status.st_mtime_ns)
        return True

    def _read_notes(self) -> None:
        self._known = dict(self._run(f"SELECT name, sign FROM {_in(DATABASE, _NOTES)}"))
        self.definitions = {}

    def _taken(self) -> bool:
        """Whether another database has our name."""
        path, file = self._attached_path(), self._keeping.file
        return path is not None and not (path == "" if file is None else _same(path, file))

    def _attached_path(self) -> str | None:
        """The file of the database of our name: empty if it is in memory, None if there is none."""
        found = self._run(f"SELECT coalesce(path, '') FROM duckdb_databases() WHERE database_name = '{DATABASE}'")
        return str(found[0][0]) if found else None

    def _definition(self, name: str) -> str:
        columns = self._run(
            "SELECT column_name, data_type FROM duckdb_columns() "
            f"WHERE database_name = '{DATABASE}' AND table_name = {text(name)} ORDER BY column_index"
        )
        return ", ".join(f"{identifier(column)} {type_}" for column, type_ in columns)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(sql).fetchall()


def building(file: Path) -> Path:
    """The folder in which a file of copies is written, the same for all sessions of this process."""
    return file.parent / f".privsql-{_PROCESS}"


@contextlib.contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A folder in a folder that is there only as long as some session needs it."""
    while True:
        parent.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another session was done with it just now
            folder = tempfile.TemporaryDirectory(dir=parent)
            break
    try:
        with folder as name:
            yield Path(name)
    finally:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _referred(unit: Unit) -> list[str]:
    """The tables on the way to the unit."""
    target = unit.refers_to
    return [] if target is None else [target.table, *_referred(target.unit)]


def _same(path: str | None, other: Path) -> bool:
    return bool(path) and os.path.realpath(str(path)) == os.path.realpath(other)


def _in(database: str, table: str) -> str:
    return f"{database}.main.{identifier(table)}"


def _failed(what: str, suggestion: str) -> SourceError:
    return SourceError("source-prepare", what, suggestion)


def _unsigned(what: str, suggestion: str) -> ArgumentError:
    return ArgumentError("argument-prepare", what, suggestion)
