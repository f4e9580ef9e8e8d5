"""A table of many rows a unit goes in; a copy with a rank for each row is stored, and found again while it is up to date.

The rank counts the rows of one unit in the order of a hash of their content, then of the content itself: it depends on
that unit's rows alone, never on where a row lies or on who else is there. Rows that agree in all columns are
interchangeable. The copy is named after its recipe, the text that made it, so that a copy made for another unit, other
columns or another table of the same name is never taken for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from privsql.errors import SourceError
from privsql.planning.prepared import DATABASE, LARGEST_RANK, RANK, Copy
from privsql.planning.render import UNIT, identifier, text
from privsql.planning.render_rows import rows
from privsql.sql.relations import Scan, Unit
from privsql.types import Kind

_NOTES = "privsql_copies"  # the table that says what each copy is of
_BUILDING = "privsql_building"
_UNCHANGING = "unchanging"


@dataclass(frozen=True)
class Place:
    """Where a table lies: its database, the database's file if it has one, its schema; a view is `stored` nowhere."""

    database: str
    path: str | None
    schema: str
    stored: bool


@dataclass(frozen=True)
class Keeping:
    """Where copies are kept, and how a change of the source shows.

    `beside`: the DuckDB file beside which they are written; None: in memory. `watched`: a file that is the whole source.
    `frozen`: nothing can change it. `own`: the connection sees only what is committed. `alone`: nobody else can make or
    attach anything there, so that names go on meaning what they mean.
    """

    beside: Path | None = None
    watched: Path | None = None
    frozen: bool = False
    own: bool = True
    alone: bool = False

    @property
    def file(self) -> Path | None:
        return None if self.beside is None else Path(f"{self.beside}.prepared")


@dataclass(frozen=True)
class _Recipe:
    """How a copy is made: from these rows, these columns, of a table that lies there."""

    table: str
    source: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    sign: str | None  # what changes with every change of the table, where there is such a thing
    where: str

    @property
    def text(self) -> str:
        names = ", ".join(self.columns)
        order = ", ".join([f"hash({names})", *self.columns, *self.order])
        rank = f"least(row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}), {LARGEST_RANK})"
        return f"SELECT {names}, CAST({rank} AS USMALLINT) AS {RANK} FROM {self.source} ORDER BY {RANK}"

    @property
    def name(self) -> str:
        return f"{self.table}_{hashlib.sha256(f'{self.where} {self.text}'.encode()).hexdigest()[:12]}"

    @property
    def fingerprint(self) -> str:
        names = ", ".join([*self.columns, UNIT])
        return f"SELECT count(*), sum(hash({names})) FROM {self.source}"


class PreparedTables:
    """The copies of one engine's tables, in a database attached to its connection."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, lock: threading.Lock, keeping: Keeping,
        places: Callable[[Sequence[str]], list[Place]],
    ) -> None:  # fmt: skip
        self._connection, self._lock, self._keeping, self._places = connection, lock, keeping, places
        self._compared: dict[str, tuple[str, bool]] = {}  # by copy: the last sign, and whether the content was the same
        self._made: set[str] = set()
        self._attached: tuple[int, int] | None = None  # the file that is attached, as it was
        self._known: dict[str, tuple[str | None, str]] = {}  # sign and fingerprint of each copy in it
        self._lies: dict[tuple[str, ...], list[Place]] = {}
        self.definitions: dict[str, str] = {}  # columns and types of each copy that was found

    def prepare(self, scan: Scan) -> None:
        """Store a copy, unless one is there that is up to date."""
        if RANK in {each.name.lower() for each in scan.fields}:
            raise _failed(f"{scan.table} has a column {RANK} of its own", "rename it in a view")
        if self._taken():
            raise _failed(f"a database of the name {DATABASE} is attached already", "detach it, or give it another name")
        found = self.find(scan)
        if found is not None and found.fresh:
            return
        recipe = self._recipe(scan)
        try:
            ((exact_fingerprint),) = self._run(recipe.fingerprint)
            note = (recipe.name, recipe.table, recipe.sign, str(exact_fingerprint))
            if self._keeping.file is None:
                self._store_in_memory(recipe, note)
            else:
                self._store_in_file(self._keeping.file, recipe, note)
        except (duckdb.Error, OSError):
            raise _failed(
                f"the copy of {scan.table} cannot be stored",
                "is there room on the disk and in memory, and may files be written beside the source?",
            ) from None
        self._compared.pop(recipe.name, None)
        self._made.add(recipe.name)

    def find(self, scan: Scan) -> Copy | None:
        """The copy of this table made for this unit and these columns, if there is one."""
        try:
            if not self._attach():
                return None
            recipe = self._recipe(scan)
            note = self._known.get(recipe.name)
            if note is None:
                return None
            if recipe.name not in self.definitions:
                self.definitions[recipe.name] = self._definition(recipe.name)
            return Copy(recipe.name, self._is_same(recipe, *note))
        except duckdb.Error:
            return None

    def close(self) -> None:
        """Leave nothing of ours in the memory of a caller's database."""
        if self._keeping.file is None and self._made:
            with contextlib.suppress(duckdb.Error):
                for name in self._made:
                    self._run(f"DROP TABLE IF EXISTS {_in(DATABASE, name)}")
                    self._run(f"DELETE FROM {_in(DATABASE, _NOTES)} WHERE name = {text(name)}")

    # -- whether the table is still what was copied ----------------------------------------------------------
    def _is_same(self, recipe: _Recipe, sign: str | None, fingerprint: str) -> bool:
        """By its sign; where that is another, or there is none, by the number and the hashes of all rows."""
        if recipe.sign is not None and recipe.sign == sign:
            return True
        if recipe.sign is not None and self._compared.get(recipe.name, ("", False))[0] == recipe.sign:
            return self._compared[recipe.name][1]
        ((exact_fingerprint),) = self._run(recipe.fingerprint)
        same = str(exact_fingerprint) == fingerprint
        if recipe.sign is not None:
            self._compared[recipe.name] = (recipe.sign, same)
        return same

    def _sign(self, places: Sequence[Place]) -> str | None:
        """Something cheap that no change leaves as it was: None where there is no such thing."""
        if self._keeping.frozen:
            return _UNCHANGING
        if self._keeping.watched is not None:
            return _seen(self._keeping.watched)
        paths = {each.path for each in places}
        path = paths.pop() if len(paths) == 1 else None
        if path is None or not self._keeping.own or not all(each.stored for each in places):
            return None
        return _seen(Path(path))  # every commit adds to the file or to its log

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
            self._sign(places),
            str(where),
        )

    def _store_in_memory(self, recipe: _Recipe, note: tuple[Any, ...]) -> None:
        self._run(f"ATTACH IF NOT EXISTS ':memory:' AS {DATABASE}")
        self._write(DATABASE, recipe, note)
        if self._keeping.own:  # within a caller's transaction it would fail, and that transaction with it
            with contextlib.suppress(duckdb.Error):
                self._run(f"CHECKPOINT {DATABASE}")  # compresses: almost four times as fast to read
        self._read_notes()

    def _store_in_file(self, file: Path, recipe: _Recipe, note: tuple[Any, ...]) -> None:
        """Written whole beside the old one, which others may be reading, then put in its place."""
        with tempfile.TemporaryDirectory(prefix=".privsql-", dir=file.parent) as folder:
            new = Path(folder) / file.name
            self._run(f"ATTACH {text(str(new))} AS {_BUILDING} (READ_WRITE)")
            try:
                if self._attach():
                    self._keep_others(recipe)
                self._write(_BUILDING, recipe, note)
                self._run(f"CHECKPOINT {_BUILDING}")
            finally:
                self._run(f"DETACH {_BUILDING}")
            assert self._keeping.beside is not None
            new.chmod(self._keeping.beside.stat().st_mode & 0o666)  # whoever may read the one may read the other
            new.replace(file)
        self._attach()

    def _keep_others(self, recipe: _Recipe) -> None:
        others = self._run(f"SELECT name FROM {_in(DATABASE, _NOTES)} WHERE source <> {text(recipe.table)}")
        self._run(f"CREATE TABLE {_in(_BUILDING, _NOTES)} AS FROM {_in(DATABASE, _NOTES)} WHERE source <> {text(recipe.table)}")
        for (name,) in others:
            self._run(f"CREATE TABLE {_in(_BUILDING, name)} AS FROM {_in(DATABASE, name)}")

    def _write(self, database: str, recipe: _Recipe, note: tuple[Any, ...]) -> None:
        notes = _in(database, _NOTES)
        self._run(f"CREATE TABLE IF NOT EXISTS {notes} (name VARCHAR, source VARCHAR, sign VARCHAR, fingerprint VARCHAR)")
        self._run(f"DELETE FROM {notes} WHERE name = {text(recipe.name)}")
        self._run(f"CREATE OR REPLACE TABLE {_in(database, recipe.name)} AS {recipe.text}")
        values = ", ".join("NULL" if each is None else text(each) for each in note)
        self._run(f"INSERT INTO {notes} VALUES ({values})")

    # -- the attached database -------------------------------------------------------------------------------
    def _attach(self) -> bool:
        """Whether the copies can be read; a file that was put there by others meanwhile is looked at anew."""
        file = self._keeping.file
        if file is None:
            if not self._keeping.alone:
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
        notes = self._run(f"SELECT name, sign, fingerprint FROM {_in(DATABASE, _NOTES)}")
        self._known = {name: (sign, fingerprint) for name, sign, fingerprint in notes}

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


def _referred(unit: Unit) -> list[str]:
    """The tables on the way to the unit."""
    target = unit.refers_to
    return [] if target is None else [target.table, *_referred(target.unit)]


def _seen(path: Path) -> str:
    """Size and time of a file and of the logs beside it; never opened, which would loosen DuckDB's lock on it."""
    found = []
    for each in sorted({path, *(Path(e.path) for e in os.scandir(path.parent) if _is_log(e.name, path.name))}):
        with contextlib.suppress(OSError):
            status = each.stat()
            found.append((each.name.removeprefix(path.name), status.st_size, status.st_mtime_ns))
    return str(found)


def _is_log(name: str, database: str) -> bool:
    return name.startswith(f"{database}.") and "wal" in name[len(database) :]


def _same(path: str | None, other: Path) -> bool:
    return bool(path) and os.path.realpath(str(path)) == os.path.realpath(other)


def _in(database: str, table: str) -> str:
    return f"{database}.main.{identifier(table)}"


def _failed(what: str, suggestion: str) -> SourceError:
    return SourceError("source-prepare", what, suggestion)
