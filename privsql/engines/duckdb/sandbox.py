"""A statement over noisy and public columns goes in; its columns come out, from a process that holds nothing
private.

What an analyst writes above the noise is post-processing: it costs nothing and can reveal nothing. It can
still run for ever, eat all memory or meet a bug of the engine, so it runs in a process of its own, which is
killed when its time is up: DuckDB cannot be interrupted inside a function. There is one for this program,
started when it is first needed, and a new one after every failure.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from privsql.engines.child import PACKAGES, START, ChildProcess, Lost
from privsql.engines.duckdb.opening import CLOSE, CLOSED
from privsql.engines.duckdb.sandbox_columns import Column, Table, encoded, stacked
from privsql.engines.worker_process import pack, unpack
from privsql.errors import PrivsqlError, SqlError
from privsql.render import sandbox_tables as tables_sql
from privsql.types import Type

DEADLINE = 30.0  # seconds
_CHECK = 20.0  # seconds that a statement may take where there are no rows
_MEMORY = 512 << 20  # of DuckDB; beyond that the process has half as much again, and the spare
_SPARE = 256 << 20
_MOST = 256 << 20  # bytes of a result
# What leaves the engine, or its memory, in a state that nothing should run in.
_FATAL = frozenset({"FatalException", "InternalException", "OutOfMemoryException", "MemoryError"})
# What a reply can be that no sandbox sends.
_ODD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError)
_UNREADABLE = (Lost, OSError, *_ODD)
_OUT_OF_MEMORY = frozenset({"OutOfMemoryException", "MemoryError"})

Outputs = list[tuple[str, str]]
Array = Any  # np.ndarray, or np.ma.MaskedArray where something is NULL


class Sandbox:
    """One process for statements over tables that are not private; its calls wait for each other."""

    def __init__(self, memory: int = _MEMORY) -> None:
        self._memory = memory
        self._turn = threading.Lock()
        self._child: ChildProcess | None = None

    def check(self, sql: str, tables: Mapping[str, Mapping[str, Type]], deadline: float = _CHECK) -> Outputs:
        """Run a statement over empty tables.

        Args:
            sql: one SELECT that `permit_above` has permitted and `write_above` has written.
            tables: the type of every column, by table and column.

        Returns:
            The name and the DuckDB type of every output column.

        Raises:
            SqlError: DuckDB does not accept it. Nothing private is in reach, so the message says why.
        """
        statements = [
            each for name, columns in tables.items() for each in tables_sql.empty_table(name, columns)
        ]
        try:
            message, _ = self._ask(_request(sql, statements), deadline)
            return _outputs(message)
        except _Failed as failed:
            raise SqlError(
                "sql-engine",
                f"DuckDB does not accept what is computed from the released values: {failed}",
                "Check its columns, functions and types.",
            ) from None

    def run(self, sql: str, tables: Mapping[str, Table], deadline: float = DEADLINE) -> list[Array]:
        """Run a statement over tables of these columns.

        Args:
            sql: a statement that `check` has accepted.
            tables: the values and the type of every column, by table and column; masked or None where NULL.

        Returns:
            The output columns in order, masked where NULL.

        Raises:
            PrivsqlError: it failed, took too long or needed too much memory (code engine-post-processing).

        Example:
            >>> from privsql.types import BIGINT
            >>> sandbox().run("SELECT max(n) FROM r0", {"r0": {"n": ([3, 5], BIGINT)}})
            [array([5])]
        """
        return self._versions(sql, tables, [], deadline)[0]

    def run_many(
        self,
        sql: str,
        tables: Mapping[str, Table],
        changing: Sequence[Mapping[str, Table]],
        deadline: float = DEADLINE,
    ) -> list[list[Array]]:
        """Run one statement over many versions of some tables.

        Args:
            sql: a statement that `check` has accepted.
            tables: the tables that stay as they are.
            changing: the other tables, once for every version; each version has the same tables and types.

        Returns:
            The output columns of every version, as `run` returns them.

        Raises:
            PrivsqlError: as `run`.
        """
        return self._versions(sql, tables, changing, deadline) if changing else []

    def close(self) -> None:
        """End the process; the next call starts another."""
        with self._turn:
            self._drop()

    def _versions(
        self, sql: str, tables: Mapping[str, Table], changing: Sequence[Mapping[str, Table]], deadline: float
    ) -> list[list[Array]]:
        request = _request(sql, [])
        given: dict[str, Array] = {}
        whole = {**{name: (table, None) for name, table in tables.items()}, **stacked(changing)}
        for number, (name, (table, version)) in enumerate(whole.items()):
            raw = f"raw{number}"
            columns, arrays = encoded(table)
            if version is None:
                request["statements"] += tables_sql.filled_table(name, raw, columns)
            else:
                made, choose = tables_sql.versions(name, raw, columns, "version")
                request["statements"] += made
                request["choose"].append(choose)
                arrays["version"] = version
            request["raw"][raw] = list(arrays)
            given |= {f"{raw}.{each}": array for each, array in arrays.items()}
        request["versions"] = len(changing) or None
        try:
            message, buffers = self._ask(request, deadline, given)
            return _split(message, buffers, max(1, len(changing)))
        except _Failed as failed:
            raise PrivsqlError(
                "engine-post-processing",
                f"What is computed from the released values failed: {failed}",
                "The releases are paid for and stored: change what is computed from them and ask again, "
                "for free.",
            ) from None

    def _ask(
        self, request: Mapping[str, Any], deadline: float, given: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Any], bytearray]:
        described, buffers = pack(given or {})
        with self._turn:
            until = time.monotonic()
            try:
                child = self._started()
                until = time.monotonic() + deadline
                message, reply = child.ask({**request, "given": described}, until, buffers)
                if not isinstance(message, dict):
                    raise Lost
            except BaseException as error:  # also a KeyboardInterrupt: a reply may be on its way
                self._drop()
                if not isinstance(error, _UNREADABLE):
                    raise
                if isinstance(error, Lost) and time.monotonic() >= until:
                    raise _Failed(f"it took more than {deadline:g} seconds.") from None
                raise _Failed("its process ended, or its result was too large.") from None
            if "error" in message or "failed" in message:
                kind = str(message.get("kind"))
                if kind in _FATAL or "failed" in message:
                    self._drop()
                if kind in _OUT_OF_MEMORY:
                    raise _Failed("it needs too much memory.")
                raise _Failed(
                    str(message.get("error", "the engine gave no reason; its result may be too large."))
                )
            return message, reply

    def _started(self) -> ChildProcess:
        """The process, which has opened its database."""
        if self._child is None or self._child.ended:
            self._drop()
            self._child = ChildProcess(_opening(self._memory), _MOST)
            if "failed" in self._child.reply(time.monotonic() + START)[0]:
                raise Lost
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()


class _Failed(Exception):
    """Why there is no result, in words for the analyst."""


def _opening(memory: int) -> dict[str, Any]:
    return {
        "program": "sandbox_process.py",
        "config": {**CLOSED, "threads": "1", "memory_limit": f"{memory}B", "temp_directory": ""},
        "statements": [tables_sql.CLOCK, CLOSE],
        "memory": memory,
        "spare": _SPARE,
        "path": PACKAGES,
        "parent": os.getpid(),
        "folder": None,
    }


def _request(sql: str, statements: list[str]) -> dict[str, Any]:
    return {
        "sql": sql,
        "describe": tables_sql.describe(sql),
        "choose": [],
        "statements": statements,
        "raw": {},
        "versions": None,
    }


def _outputs(message: Mapping[str, Any]) -> Outputs:
    """The names and types of the columns."""
    try:
        return [(str(name), str(kind)) for name, kind in message["outputs"]]
    except _ODD:
        raise _Failed("its reply could not be read.") from None


def _split(message: Mapping[str, Any], buffers: bytearray, versions: int) -> list[list[Array]]:
    """The columns of every version."""
    try:
        columns = list(unpack(message["columns"], buffers).values())
        ends = np.cumsum(message["lengths"]).tolist()
        if len(ends) != versions or len(columns) != len(_outputs(message)):
            raise ValueError
        return [
            [column[start:end] for column in columns] for start, end in zip([0, *ends], ends, strict=False)
        ]
    except _ODD:
        raise _Failed("its result could not be read.") from None


@lru_cache(maxsize=1)
def sandbox() -> Sandbox:
    """The sandbox of this program."""
    made = Sandbox()
    atexit.register(made.close)
    return made


_INHERITED: list[Any] = []  # of the program that this one was forked from, to which its process belongs


def _forget() -> None:
    """In a fork: leave the sandbox to the program that started it."""
    if sandbox.cache_info().currsize:
        made = sandbox()
        atexit.unregister(made.close)
        _INHERITED.append(made)
    sandbox.cache_clear()


with contextlib.suppress(AttributeError):  # there are no forks on Windows
    os.register_at_fork(after_in_child=_forget)

__all__ = ["DEADLINE", "Column", "Sandbox", "Table", "sandbox"]
