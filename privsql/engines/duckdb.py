"""DuckDB as the engine: a source is opened, its schema read, rendered SQL run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from privsql.engines.catalogue import IN_SIGHT, Known, Rows, SchemaReader
from privsql.engines.frames import checked_frame, is_frame, required_columns, snapshot
from privsql.engines.opening import FAILURES, Opening
from privsql.engines.origin import A_DATABASE, Origin
from privsql.engines.prepared import Keeping, PreparedTables
from privsql.engines.prepared_recipe import Place
from privsql.engines.prepared_store import Attached, building
from privsql.engines.signs import sign_of
from privsql.engines.twin import Twin, not_accepted
from privsql.errors import ArgumentError, EngineError, SourceError, did_you_mean
from privsql.planning import render
from privsql.planning.prepared import Copy
from privsql.schema import Schema
from privsql.sql.relations import Scan
from privsql.tables import ExactTable

_DATABASES = (".duckdb", ".db", ".ddb")
_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}


class DuckDBEngine:
    """Runs rendered SQL on one DuckDB connection, one query at a time."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, known: Known, fixed_schema: bool, keeping: Keeping,
        opening: Opening | None = None, owned: bool = True, origin: Origin = A_DATABASE,
    ) -> None:  # fmt: skip
        self._connection, self._origin = connection, origin
        self._owned = owned
        self.fixed_schema = fixed_schema
        self.known, self.opening = known, opening  # by which another process can open and check the same
        self._reader = SchemaReader(self._read, known)
        self._lock = threading.Lock()
        self._keeping = keeping
        self._prepared = PreparedTables(connection, self._lock, keeping, self._places)
        self._twin: Twin | None = None
        self._closed = False

    def schema(self) -> Schema:
        return self._reader.schema(self.fixed_schema)

    def question(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _read(self, sql: str) -> Rows:
        """Rows of DuckDB's own catalogue; no data."""
        try:
            with self._lock:
                return self._connection.execute(sql).fetchall()
        except duckdb.Error:
            raise _unusable() from None

    def close(self) -> None:
        self._closed = True
        self._prepared.close()
        if self._owned:
            with self._lock:
                self._connection.close()

    def check(self, sql: str, schema: Schema) -> None:
        if self._closed:
            raise _unusable()
        if self._twin is None or self._twin.schema != schema or self._twin.copies != self._prepared.definitions:
            self._twin = Twin(schema, dict(self._prepared.definitions))
        self._twin.check(sql)

    def prepare(self, scan: Scan) -> None:
        if self._closed:
            raise _unusable()
        self._prepared.prepare(scan)

    def prepared(self, scan: Scan) -> Copy | None:
        return self._prepared.find(scan)

    def version(self) -> str | None:
        return self._keeping.version

    def holds(self, data: Any) -> bool:
        with self._lock:
            return self._origin.holds(self._connection, data)

    @property
    def copies(self) -> Attached | None:
        """The file of prepared copies that is in use."""
        return self._prepared.attached

    def _places(self, tables: Sequence[str]) -> list[Place]:
        found = []
        for table in tables:
            rows = self._read(
                "SELECT DISTINCT database_name, (SELECT path FROM duckdb_databases() d WHERE d.database_name = t.database_name), "
                "schema_name, (database_oid, table_oid) IN (SELECT (database_oid, table_oid) FROM duckdb_tables()) "
                f"FROM duckdb_columns() AS t WHERE NOT internal AND {IN_SIGHT} AND table_name = {render.text(table)}"
            )
            found += [Place(*row) for row in rows]
        return found

    def read_public(self, sql: str) -> Rows:
        try:
            with self._lock:
                return self._connection.execute(sql).fetchall()
        except FAILURES:
            raise not_accepted() from None

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            with self._lock:
                exact_rows = self._connection.execute(sql).fetchnumpy()
            return exact_table(exact_rows, keys)
        except Exception:  # noqa: BLE001 -- whatever failed, its words could tell about the data
            raise EngineError from None


def exact_table(exact_rows: Mapping[str, Any], keys: Sequence[str]) -> ExactTable:
    """Columns as DuckDB gives them to numpy: keys as they are, all others whole numbers."""
    exact_columns = {
        name: np.ma.filled(values, 0).astype(np.int64) for name, values in exact_rows.items() if name not in keys
    }
    return ExactTable({name: exact_rows[name] for name in keys}, exact_columns)


def _unusable() -> SourceError:
    return SourceError("source-connection", "the source cannot be used", "is its connection closed?")


def open_engine(source: Any, memory: int | None = None, folder: Path | None = None) -> DuckDBEngine:
    """A DuckDB file or connection, a frame, a dict of frames, a Parquet or CSV path -> an engine.

    `memory`: how many bytes DuckDB may use, in a database of our own. `folder`: a private one, for what another process must
    be able to open too: the rows of frames, the prepared copies of what is no DuckDB file.
    """
    if isinstance(source, (str, Path)):
        return _open_path(Path(source), memory, folder)
    if isinstance(source, duckdb.DuckDBPyConnection):
        if memory is not None:
            raise _settings_of_others()
        return _open_connection(source)
    frames = {"df": source} if is_frame(source) else source
    if isinstance(frames, Mapping) and frames and all(is_frame(frame) for frame in frames.values()):
        origin = Origin.of_frames(frames.values())
        return _open_frames(_checked(frames), memory, origin) if folder is None else _hand_over(_checked(frames), folder, origin)
    raise SourceError(
        "source-kind",
        f"a {type(source).__name__} cannot be a source of data",
        "give a DuckDB file or connection, a pandas, Arrow or Polars frame, a dict of frames, a Parquet or CSV path",
    )


def _open_connection(source: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    reader = _reader(source)
    own = reader is not source
    file = _read_only_file(reader)
    opening = _read_only(file) if own and file is not None else None
    return DuckDBEngine(reader, Known({}, trust_labels=True), False, Keeping(beside=file, own=own), opening, owned=own)


def _reader(source: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection of our own to the caller's database, so that the caller's unread results and transactions are left
    alone; the caller's own one only where temporary tables, registered frames or USE can be seen by it alone."""
    sight = (
        "SELECT current_database(), current_schema(), (SELECT count(*) FROM duckdb_tables() WHERE temporary), "
        "(SELECT count(*) FROM duckdb_views() WHERE temporary)"
    )
    try:
        cursor = source.cursor()
        own = cursor.execute(sight).fetchall()
    except duckdb.Error:
        raise SourceError("source-connection", "this connection cannot be used", "is it closed?") from None
    try:
        return cursor if source.sql(sight).fetchall() == own else source
    except duckdb.Error:  # it has an unread result, or a transaction that failed
        return cursor


def _read_only_file(connection: duckdb.DuckDBPyConnection) -> Path | None:
    """The file of a database that may only be read: no other database in memory can be made beside it."""
    found = "SELECT path FROM duckdb_databases() WHERE database_name = current_database() AND readonly AND path IS NOT NULL"
    with contextlib.suppress(duckdb.Error):
        return next((Path(path) for (path,) in connection.execute(found).fetchall()), None)
    return None


def _checked(frames: Mapping[str, Any]) -> dict[str, Any]:
    """The frames as they are now, if they can be tables."""
    found: dict[str, Any] = {}
    for name, frame in frames.items():
        if not isinstance(name, str) or not name:
            raise SourceError("source-kind", "the tables of a dict must have names", '{"visits": frame}')
        if name.lower() in map(str.lower, found):
            raise SourceError("source-kind", f"two tables are called {name}: case does not count", "rename one of them")
        found[name] = snapshot(checked_frame(frame))
    return found


def _required(frames: Mapping[str, Any]) -> Known:
    return Known({name: required_columns(frame) for name, frame in frames.items()}, trust_labels=False)


def _unreadable(name: str) -> SourceError:
    return SourceError("source-frame", f"DuckDB cannot read the frame {name}", "check its column types")


def _open_frames(frames: Mapping[str, Any], memory: int | None, origin: Origin) -> DuckDBEngine:
    connection = Opening(":memory:", settings=_settings(memory)).open()
    for name, frame in frames.items():
        try:
            connection.register(name, frame)
        except duckdb.Error:
            raise _unreadable(name) from None
    return DuckDBEngine(connection, _required(frames), True, Keeping(frozen=True, alone=True), origin=origin)


def _hand_over(frames: Mapping[str, Any], folder: Path, origin: Origin) -> DuckDBEngine:
    """The frames as a DuckDB file, which another process can open."""
    file = folder / "frames.duckdb"
    with Opening(str(file)).open() as connection:
        file.chmod(0o600)
        for name, frame in frames.items():
            try:
                connection.register("privsql_frame", frame)
                connection.execute(f"CREATE TABLE frames.main.{render.identifier(name)} AS FROM temp.main.privsql_frame")
                connection.unregister("privsql_frame")
            except duckdb.Error:
                raise _unreadable(name) from None
    return _open_database(file, None, _required(frames), origin)


def _open_path(path: Path, memory: int | None, folder: Path | None) -> DuckDBEngine:
    suffix = path.suffix.lower()
    if suffix not in (*_DATABASES, *_READERS):
        raise SourceError(
            "source-kind",
            f"a {suffix or 'nameless'} file cannot be a source of data",
            did_you_mean(suffix, [*_DATABASES, *_READERS]),
        )
    if not path.is_file():
        raise SourceError("source-missing", "there is no such file", "check the path")
    if suffix in _DATABASES:
        return _open_database(path, memory, Known({}, trust_labels=True))
    name, file = path.name.split(".")[0], path.resolve()
    view = f"CREATE VIEW {render.identifier(name)} AS SELECT * FROM {_READERS[suffix]}({render.text(str(file))})"
    keeping = Keeping(watched=file, alone=True, kept=None if folder is None else folder / "copies.prepared")
    paths, folders = _reached(keeping)
    opening = Opening(":memory:", False, (file, *paths), folders, (view,), _settings(memory))
    try:
        connection = opening.open()
    except duckdb.Error:
        raise SourceError("source-file", "DuckDB cannot read this file", "check that it is valid") from None
    if _READERS[suffix] == "read_csv":
        _read_through(connection, name)
    return DuckDBEngine(connection, Known({name: frozenset()}, trust_labels=False), True, keeping, opening, origin=Origin(file))


def _read_through(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Every line and every value once, now: DuckDB guesses what a CSV file holds from its first lines, and one that is not so
    would fail questions after their charge."""
    try:
        connection.execute(f"SELECT count(COLUMNS(*)) FROM {render.identifier(name)}").fetchall()
    except FAILURES:
        connection.close()
        raise SourceError("source-file", "DuckDB cannot read this file to its end: a line or a value is not like the first ones",
                          "write it as Parquet or into a DuckDB file, with types that you choose") from None  # fmt: skip


def _open_database(path: Path, memory: int | None, known: Known, origin: Origin = A_DATABASE) -> DuckDBEngine:
    opening = _read_only(path.resolve(), memory)
    try:
        keeping = Keeping(beside=path.resolve(), opened=sign_of(path), alone=True)  # its sign before it is opened, not after
        return DuckDBEngine(opening.open(), known, True, keeping, opening, origin=origin)
    except duckdb.ConnectionException:  # open already in this process, with settings of its own
        if memory is not None:
            raise _settings_of_others() from None
        for keeping, read_only in ((Keeping(beside=path.resolve()), True), (Keeping(), False)):
            with contextlib.suppress(duckdb.Error):
                return DuckDBEngine(duckdb.connect(str(path), read_only=read_only), known, False, keeping, opening)
        raise _unopened() from None
    except (duckdb.Error, OSError):
        raise _unopened() from None


def _read_only(path: Path, memory: int | None = None) -> Opening:
    paths, folders = _reached(Keeping(beside=path))
    return Opening(str(path), True, paths, folders, settings=_settings(memory))


def _reached(keeping: Keeping) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files and folders that prepared copies need."""
    file = keeping.file
    return ((), ()) if file is None else ((file, file.with_name(f"{file.name}.wal")), (building(file),))


def _settings(memory: int | None) -> dict[str, str]:
    return {} if memory is None else {"memory_limit": f"{memory}B"}


def _settings_of_others() -> ArgumentError:
    return ArgumentError(
        "argument-memory",
        "this database is open already, and its settings are its owner's: memory_limit= is for what privsql opens itself",
        "SET memory_limit on that connection, or give a path that is not open in this program",
    )


def _unopened() -> SourceError:
    return SourceError(
        "source-file",
        "DuckDB cannot open this file",
        "is it a DuckDB file? if it is open in this program already, give that connection",
    )
