"""Statements come in on standard input and columns go out on standard output: a process that can be killed at
any moment.

It is started as a script and imports only numpy and duckdb, nothing of privsql, so that it starts fast. It
has no policy, budget or noise. The pipes carry JSON and plain buffers, never anything executable. The reply
to a failure is just that something failed, since the engine's message could reveal data.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

Columns = Mapping[str, Any]  # by name, as DuckDB gives them to numpy

LENGTHS = struct.Struct("<QQ")  # precede every message: the length of its JSON and of the buffers after it
_WORD = 8  # bytes; every buffer starts at a multiple of this, for numpy
_KINDS = "biufmMO"  # of numpy's types: numbers, moments, and values that are listed one by one
_PATIENCE = 0.5  # seconds between two checks whether the parent is alive
_SPARE = 1 << 30  # bytes beyond DuckDB's own limit: results, thread stacks, the allocator's reserve

# Values of public tables that JSON lacks, as [name, text].
_WRITTEN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Decimal: ("decimal", str),
    date: ("date", date.isoformat),
    datetime: ("datetime", datetime.isoformat),
    time_of_day: ("time", time_of_day.isoformat),
    timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: ("uuid", str),
    bytes: ("bytes", bytes.hex),
    bytearray: ("bytes", bytearray.hex),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time_of_day.fromisoformat,
    "timedelta": lambda value: timedelta(*value),
    "uuid": UUID,
    "bytes": bytes.fromhex,
    "map": dict,  # from pairs: its keys need not be texts
}


def to_json(message: Any) -> bytes:
    return json.dumps(message, default=_tagged).encode()


def from_json(message: bytes | bytearray) -> Any:
    return json.loads(message, object_hook=_untagged)


def _tagged(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of numpy
        return value.tolist()
    name, write = _WRITTEN[type(value)]
    return {"$": [name, write(value)]}


def _untagged(found: dict[str, Any]) -> Any:
    if found.keys() != {"$"}:
        return found
    name, written = found["$"]
    return _READ[name](written)


# -- columns -------------------------------------------------------------------------------------------------
def pack(columns: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Columns as DuckDB returns them to numpy -> a description of each, and buffers aligned to words."""
    buffers: list[bytes] = []

    def put(buffer: bytes) -> None:
        buffers.append(buffer)
        buffers.append(bytes(-len(buffer) % _WORD))

    return [_packed(name, values, put) for name, values in columns.items()], buffers


def _packed(name: str, values: Any, put: Callable[[bytes], None]) -> dict[str, Any]:
    import numpy as np

    missing = np.ma.getmask(values)
    data, masked = np.ma.getdata(values), missing is not np.ma.nomask
    column: dict[str, Any] = {"name": name, "rows": len(data), "masked": masked, "dtype": data.dtype.str}
    if masked:
        put(missing.tobytes())
    if data.dtype.kind != "O":
        put(data.tobytes())
        return column
    listed = data.tolist()
    if all(isinstance(each, str) or each is None for each in listed):
        texts = [each or "" for each in listed]
        put(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)).tobytes())
        joined = "".join(texts).encode()
        put(joined)
        return {**column, "texts": len(joined)}
    return {**column, "values": listed}


def unpack(described: list[dict[str, Any]], buffers: bytearray) -> dict[str, Any]:
    """The same columns again, in newly allocated memory."""
    import numpy as np

    place, columns = 0, {}
    view = memoryview(buffers)

    def take(size: int) -> memoryview:
        nonlocal place
        start, place = place, place + size + -size % _WORD
        return view[start : start + size]

    for column in described:
        rows, dtype = column["rows"], np.dtype(column["dtype"])
        if dtype.kind not in _KINDS:
            raise ValueError(dtype)
        missing = np.frombuffer(take(rows), dtype=np.bool_) if column["masked"] else None
        if dtype.kind != "O":
            data = np.frombuffer(take(rows * dtype.itemsize), dtype=dtype)
        else:
            listed = column["values"] if "values" in column else _texts(take(rows * 8), take(column["texts"]))
            data = np.fromiter(listed, dtype=object, count=len(listed))
            if missing is not None:
                data[missing] = None
        if len(data) != rows or (missing is not None and len(missing) != rows):
            raise ValueError(rows)
        columns[column["name"]] = data if missing is None else np.ma.array(data, mask=missing)
    return columns


def _texts(lengths: memoryview, joined: memoryview) -> list[str]:
    import numpy as np

    ends = np.cumsum(np.frombuffer(lengths, dtype=np.int64)).tolist()
    whole = str(joined, "utf-8")
    return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]


# -- the process ---------------------------------------------------------------------------------------------
class _Database:
    """The worker's own connection, and the file of prepared copies that is attached to it."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        import duckdb

        self._connection = duckdb.connect(
            request["database"], read_only=request["read_only"], config=request["config"]
        )
        for statement in request["statements"]:
            self._connection.execute(statement)
        if request["file"] is not None and not _has_open(request["file"]):
            raise FileNotFoundError  # another file has replaced it
        self._copies: Any = None

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def answer(self, request: Mapping[str, Any], given: Columns) -> tuple[dict[str, Any], Columns]:
        if "done" in request:
            return {}, {}
        if "rows" in request:
            return {"rows": self._rows(request["rows"])}, {}
        return {}, self._columns(request["columns"], request["copies"])

    def _columns(self, sql: str, copies: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if copies is not None and copies != self._copies:
            for statement in copies["statements"]:
                self._connection.execute(statement)
            self._copies = copies
        return self._connection.execute(sql).fetchnumpy()


def _has_open(file: list[int]) -> bool:
    """Whether this very file, in this state, is open here: by device, inode, size and time of the last
    write.
    """
    for number in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError, ValueError):
            status = os.fstat(int(number))
            if [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns] == file:
                return True
    return False


def _no_core() -> None:
    """Disable core dumps: a crash must not write the memory to disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_memory(memory: int | None, spare: int) -> None:
    """Limit the process's memory, however it is allocated. DuckDB's own limit is well below and stops most
    statements first.
    """
    import resource

    if memory is None or not sys.platform.startswith("linux"):  # other systems do not enforce the limit
        return
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    most = used + memory + memory // 2 + spare
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _opened(request: Mapping[str, Any]) -> Any:
    """What answers the requests: a database, or the program of a file beside this one."""
    _no_core()
    if "program" in request:
        path = Path(__file__).with_name(request["program"])
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        opened = program.open_database(request)
    else:
        opened = _Database(request)
    _limit_memory(request["memory"], request.get("spare", _SPARE))
    return opened


def _end(folder: str | None) -> None:
    """The parent is gone: delete everything that it handed over."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _watch(parent: int, folder: str | None) -> None:
    while os.getppid() == parent:
        time.sleep(_PATIENCE)
    _end(folder)


def _receive(pipe: Any) -> tuple[Any, bytearray]:
    head = pipe.read(LENGTHS.size)
    if len(head) < LENGTHS.size:
        return None, bytearray()
    length, size = LENGTHS.unpack(head)
    message, buffers = pipe.read(length), bytearray(pipe.read(size))
    return (from_json(message) if len(message) == length and len(buffers) == size else None), buffers


def serve() -> None:
    """Answer requests one by one, until the parent closes the pipe or is gone."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # nothing that a library prints may get into the replies
        os.dup2(nothing, number)
    first, _ = _receive(incoming)
    if first is None:
        return
    threading.Thread(target=_watch, args=(first["parent"], first["folder"]), daemon=True).start()
    sys.path += first["path"]
    database: Any = None
    request, given = first, bytearray()
    while request is not None:
        message = to_json({"failed": True})
        buffers: list[bytes] = []
        with contextlib.suppress(Exception):
            if database is None:
                database, message = _opened(first), to_json({})
            else:
                answer, columns = database.answer(request, unpack(request.get("given", []), given))
                described, buffers = pack(columns)
                message = to_json({**answer, "columns": described})
                del columns
        outgoing.write(LENGTHS.pack(len(message), sum(map(len, buffers))) + message)
        outgoing.writelines(buffers)
        outgoing.flush()
        # freed before the next request arrives, or it would delay that one's reply
        message, buffers, given = b"", [], bytearray()
        request, given = _receive(incoming)
    _end(first["folder"])


if __name__ == "__main__":
    serve()
