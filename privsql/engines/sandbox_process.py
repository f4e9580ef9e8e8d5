"""Small tables and a statement over them go in; its columns come out: worker_process.py in the sandbox.

It holds noisy and public values only, so what the engine says when it fails may be told. Every request has a
connection of its own, whose tables are temporary and gone with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np

Columns = Mapping[str, Any]
_EXACT = 2**53  # whole numbers up to here are the same as floats
_WIDE = frozenset({"HUGEINT", "UHUGEINT"})
_LONGEST_MESSAGE = 300


def open_database(request: Mapping[str, Any]) -> StatementRunner:
    import resource

    database = duckdb.connect(":memory:", config=request["config"])
    for statement in request["statements"]:
        database.execute(statement)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow by a byte
    return StatementRunner(database)


class StatementRunner:
    """Runs statements in an empty database, each over tables of its own."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database

    def answer(self, request: Mapping[str, Any], given: Columns) -> tuple[dict[str, Any], Columns]:
        connection = self._database.cursor()
        try:
            return _answered(connection, request, given)
        except (duckdb.Error, UnicodeDecodeError, MemoryError, ValueError) as error:
            return {"error": _first_line(error), "kind": type(error).__name__}, {}
        finally:
            with contextlib.suppress(duckdb.Error):
                connection.close()


def _answered(
    connection: duckdb.DuckDBPyConnection, request: Mapping[str, Any], given: Columns
) -> tuple[dict[str, Any], Columns]:
    if given:
        for name, columns in request["raw"].items():
            connection.register(name, {column: given[f"{name}.{column}"] for column in columns})
    for statement in request["statements"]:
        connection.execute(statement)
    outputs = [(name, kind) for name, kind, *_ in connection.execute(request["describe"]).fetchall()]
    sql = request["sql"]
    if request["versions"] is None:
        columns = [_columns(connection, sql, outputs)]
    else:
        columns = []
        for number in range(request["versions"]):
            for choose in request["choose"]:
                connection.execute(choose, [number])
            columns.append(_columns(connection, sql, outputs))
    lengths = [len(each[0]) if each else 0 for each in columns]
    joined = {str(place): _joined([each[place] for each in columns]) for place in range(len(outputs))}
    return {"outputs": outputs, "lengths": lengths}, joined


def _columns(connection: duckdb.DuckDBPyConnection, sql: str, outputs: list[tuple[str, str]]) -> list[Any]:
    found = list(connection.execute(sql).fetchnumpy().values())
    return [_exact(each) if kind in _WIDE else each for each, (_, kind) in zip(found, outputs, strict=True)]


def _exact(values: Any) -> Any:
    """Wide integers, which DuckDB gives to numpy as floats, as integers where nothing is lost."""
    known = np.ma.compressed(values)
    return values.astype(np.int64) if np.all(np.abs(known) < _EXACT) else values


def _joined(parts: list[Any]) -> Any:
    """The columns of all versions, one behind the other."""
    if len(parts) == 1:
        whole = parts[0]
    else:
        masked = any(np.ma.isMaskedArray(each) for each in parts)
        whole = np.ma.concatenate(parts) if masked else np.concatenate(parts)  # type: ignore[no-untyped-call]
    if whole.dtype.kind != "O":
        return whole
    data = np.ma.getdata(whole)
    if any(isinstance(each, (dict, list, tuple, np.ndarray)) for each in data):
        plain = np.empty(len(data), dtype=object)
        for place, value in enumerate(data):
            plain[place] = _plain(value)
        return np.ma.array(plain, mask=np.ma.getmask(whole)) if np.ma.isMaskedArray(whole) else plain
    return whole


def _plain(value: Any) -> Any:
    """A nested value in the form that worker_process.py writes: maps and structs as pairs."""
    match value:
        case dict():
            return {"$": ["map", [[_plain(key), _plain(each)] for key, each in value.items()]]}
        case np.ndarray():
            return [_plain(each) for each in value.tolist()]
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:_LONGEST_MESSAGE]
