"""Two data sources go in; whether they are the same, or share tables, comes out. No row is read."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from privsql.engines.duckdb.dataframes import is_frame, same_data


@dataclass(frozen=True)
class Origin:
    """What an engine reads, unless it is a database: a file, or the caller's frames. A database is identified
    by its connection.
    """

    file: Path | None = None
    frames: tuple[weakref.ref[Any], ...] = ()

    @staticmethod
    def of_frames(frames: Iterable[Any]) -> Origin:
        return Origin(frames=tuple(map(weakref.ref, frames)))

    def holds(self, connection: duckdb.DuckDBPyConnection, data: Any) -> bool:
        """Whether `data` is this source or a part of it; `connection` is the engine's own. Copies are not
        recognised.
        """
        if isinstance(data, (str, Path)):
            return _overlap([data], self._files(connection))
        if isinstance(data, duckdb.DuckDBPyConnection):
            return _overlap(_databases(data), self._files(connection)) or _one_database(connection, data)
        given = [data] if is_frame(data) else [*data.values()] if isinstance(data, Mapping) else []
        own = [frame for each in self.frames if (frame := each()) is not None]
        return any(_same_frame(one, other) for one in own for other in given)

    def _files(self, connection: duckdb.DuckDBPyConnection) -> list[str | Path]:
        return [*_databases(connection), *([] if self.file is None else [self.file])]


A_DATABASE = Origin()


def _databases(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The files of all databases that the connection sees; empty if it is closed."""
    with contextlib.suppress(duckdb.Error), connection.cursor() as cursor:
        return [
            path
            for (path,) in cursor.execute(
                "SELECT path FROM system.main.duckdb_databases() WHERE path IS NOT NULL"
            ).fetchall()
        ]
    return []


def _overlap(some: Iterable[str | Path], others: Iterable[str | Path]) -> bool:
    """Whether a file is in both lists, under any name."""
    signs = {sign for each in others for sign in _file(each)}
    return any(sign in signs for each in some for sign in _file(each))


def _file(path: str | Path) -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)
        yield status.st_dev, status.st_ino


def _one_database(one: duckdb.DuckDBPyConnection, other: duckdb.DuckDBPyConnection) -> bool:
    """Whether two connections belong to one database. A database numbers its connections in order, so another
    connection's number falls between two of ours only if they share it.
    """
    with contextlib.suppress(duckdb.Error):
        return _next_number(one) < _next_number(other) < _next_number(one)
    return False


def _next_number(connection: duckdb.DuckDBPyConnection) -> int:
    with connection.cursor() as cursor:
        return int(cursor.execute("SELECT system.main.current_connection_id()").fetchall()[0][0])


def _same_frame(one: Any, other: Any) -> bool:
    return one is other or (
        isinstance(one, pd.DataFrame) and isinstance(other, pd.DataFrame) and same_data(one, other)
    )
