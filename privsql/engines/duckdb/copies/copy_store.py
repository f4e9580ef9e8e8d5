"""Recipes go in; copies are stored in a database attached to the engine's connection, and found again by
name.

A table of notes has a line for each table: what it is a copy of, and the fingerprint that its source had. A
file of copies is written as a whole beside the old one, which others may be reading, and then replaces it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb

from privsql.algebra.reserved import DATABASE
from privsql.engines.duckdb.connection import SourceConnection
from privsql.engines.duckdb.copies.copy_recipe import Recipe, same_file
from privsql.render.duckdb import identifier, text

_NOTES = "privsql_signs"  # the table that says what each copy was made from
_BUILDING = "privsql_building"
_PROCESS = uuid4().hex  # part of a name that no other process can have used

Attached = tuple[Path, tuple[int, int]]  # a file of copies: its path, its inode and its time


class PreparedStore:
    """The copies of one engine's tables: in a file with the same permissions as the source beside it, or in
    memory.

    `alone`: nobody else can create or attach anything there.
    """

    def __init__(self, source: SourceConnection, file: Path | None, beside: Path | None, alone: bool) -> None:
        self._source, self._file, self._beside, self._alone = source, file, beside, alone
        self._generation = source.generation
        self._made: set[str] = set()
        self._attached: tuple[int, int] | None = None  # the attached file, as it was then
        self.signs: dict[str, str] = {}  # the fingerprint of each table's source
        self.definitions: dict[str, str] = {}  # columns and types of each table that was found

    def store(self, recipe: Recipe, sign: str) -> None:
        if self._file is None:
            self._store_in_memory(recipe, sign)
        else:
            self._store_in_file(self._file, recipe, sign)
        self._made |= recipe.tables(DATABASE).keys()

    def definition(self, name: str) -> str:
        """The columns of an existing table, and their types."""
        if name not in self.definitions:
            columns = self.run(
                "SELECT column_name, data_type FROM system.main.duckdb_columns() "
                f"WHERE database_name = '{DATABASE}' AND table_name = {text(name)} ORDER BY column_index ASC"
            )
            self.definitions[name] = ", ".join(f"{identifier(column)} {type_}" for column, type_ in columns)
        return self.definitions[name]

    def close(self) -> None:
        """Remove our tables from the memory of a caller's database, except those that other sessions made
        there.
        """
        if self._file is None and not self._alone and self._made:
            with contextlib.suppress(duckdb.Error):
                for name in self._made:
                    self.run(f"DROP TABLE IF EXISTS {_in(DATABASE, name)}")
                    self.run(f"DELETE FROM {_in(DATABASE, _NOTES)} WHERE name = {text(name)}")
                if not self.run(f"SELECT 1 FROM {_in(DATABASE, _NOTES)}"):
                    self.run(f"DETACH {DATABASE}")

    @property
    def attached(self) -> Attached | None:
        """The file of copies in use."""
        return None if self._file is None or self._attached is None else (self._file, self._attached)

    def attach(self) -> bool:
        """Attach the copies; False if there are none. A file that others have replaced meanwhile is attached
        anew.
        """
        file = self._file
        # a database that was reopened has nothing attached
        if self._generation != self._source.generation:
            self._generation, self._attached, self.signs = self._source.generation, None, {}
        if self._source.in_snapshot and file is not None and not self._alone:
            # DuckDB cannot attach or detach within a transaction
            return self._attached is not None
        if file is None:
            if not self._alone:  # other sessions may have stored something else there meanwhile
                self.signs = {}
                if self._attached_path() == "":
                    self._read_notes()
            return bool(self.signs)
        try:
            status = file.stat()
            if self._attached == (status.st_ino, status.st_mtime_ns):
                return True
            if self.taken():
                return False
            self.run(f"DETACH DATABASE IF EXISTS {DATABASE}")
            self.run(f"ATTACH {text(str(file))} AS {DATABASE} (READ_ONLY)")
            self._read_notes()
        except (OSError, duckdb.Error):
            return False
        self._attached = (status.st_ino, status.st_mtime_ns)
        return True

    def taken(self) -> bool:
        """Whether another database uses our name."""
        path = self._attached_path()
        return path is not None and not (path == "" if self._file is None else same_file(path, self._file))

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._source.rows(sql)

    def _store_in_memory(self, recipe: Recipe, sign: str) -> None:
        self.run(f"ATTACH IF NOT EXISTS ':memory:' AS {DATABASE}")
        self._write(DATABASE, recipe, sign)
        with contextlib.suppress(duckdb.Error):
            self.run(f"CHECKPOINT {DATABASE}")  # compresses, which makes reading almost four times as fast
        self._read_notes()

    def _store_in_file(self, file: Path, recipe: Recipe, sign: str) -> None:
        with _folder(building(file)) as folder:
            new = folder / file.name
            self.run(f"ATTACH {text(str(new))} AS {_BUILDING} (READ_WRITE)")
            try:
                if self.attach():
                    self._keep_others(recipe, sign)
                self._write(_BUILDING, recipe, sign)
                self.run(f"CHECKPOINT {_BUILDING}")
            finally:
                self.run(f"DETACH {_BUILDING}")
            # whoever may read the source may read the copy
            new.chmod(0o600 if self._beside is None else self._beside.stat().st_mode & 0o666)
            new.replace(file)
        self.attach()

    def _keep_others(self, recipe: Recipe, sign: str) -> None:
        """Copy the tables of other sources that are still up to date."""
        others = f"FROM {_in(DATABASE, _NOTES)} WHERE source <> {text(recipe.table)} AND sign = {text(sign)}"
        self.run(f"CREATE TABLE {_in(_BUILDING, _NOTES)} AS {others}")
        for (name,) in self.run(f"SELECT name {others}"):
            self.run(f"CREATE TABLE {_in(_BUILDING, name)} AS FROM {_in(DATABASE, name)}")

    def _write(self, database: str, recipe: Recipe, sign: str) -> None:
        """Write the copy and its further tables, then a note for each."""
        notes, tables = _in(database, _NOTES), recipe.tables(database)
        self.run(f"CREATE TABLE IF NOT EXISTS {notes} (name VARCHAR, source VARCHAR, sign VARCHAR)")
        self.run(f"DELETE FROM {notes} WHERE name IN ({', '.join(map(text, tables))})")
        for name, sql in tables.items():
            self.run(f"CREATE OR REPLACE TABLE {_in(database, name)} AS {sql}")
        lines = ", ".join(f"({text(name)}, {text(recipe.table)}, {text(sign)})" for name in tables)
        self.run(f"INSERT INTO {notes} VALUES {lines}")

    def _read_notes(self) -> None:
        self.signs = dict(self.run(f"SELECT name, sign FROM {_in(DATABASE, _NOTES)}"))
        self.definitions = {}

    def _attached_path(self) -> str | None:
        """The path of the database with our name: empty if it is in memory, None if there is none."""
        found = self.run(
            "SELECT coalesce(path, '') FROM system.main.duckdb_databases() "
            f"WHERE database_name = '{DATABASE}'"
        )
        return str(found[0][0]) if found else None


def building(file: Path) -> Path:
    """The folder in which a file of copies is written, the same for all sessions of this process."""
    return file.parent / f".privsql-{_PROCESS}"


@contextlib.contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A subfolder that exists only while some session needs it."""
    while True:
        parent.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another session has just removed it
            folder = tempfile.TemporaryDirectory(dir=parent)
            break
    try:
        with folder as name:
            yield Path(name)
    finally:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _in(database: str, table: str) -> str:
    return f"{database}.main.{identifier(table)}"
