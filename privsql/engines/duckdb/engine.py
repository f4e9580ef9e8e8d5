"""DuckDB as the engine: a source is opened, its schema read, rendered SQL run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from privsql.algebra.exact import Dialect
from privsql.algebra.relations import Scan
from privsql.engines.duckdb.connection import Sharing, SourceConnection
from privsql.engines.duckdb.copies import Keeping, PreparedTables
from privsql.engines.duckdb.copy_recipe import Place
from privsql.engines.duckdb.copy_store import Attached, building
from privsql.engines.duckdb.dataframes import checked_frame, is_frame, required_columns, snapshot
from privsql.engines.duckdb.file_columns import refuse_repeated_columns
from privsql.engines.duckdb.fingerprints import sign_of
from privsql.engines.duckdb.opening import FAILURES, Opening
from privsql.engines.duckdb.origin import A_DATABASE, Origin
from privsql.engines.duckdb.schema_reader import IN_SIGHT, Known, Rows, SchemaReader
from privsql.engines.duckdb.source_errors import (
    changed,
    invalid,
    settings_of_others,
    unopened,
    unreadable,
    unusable,
)
from privsql.engines.duckdb.twin import Twin, not_accepted
from privsql.errors import EngineError, SourceError, did_you_mean
from privsql.planning.prepared import Copy
from privsql.render.duckdb import DUCKDB
from privsql.schema import Schema
from privsql.tables import ExactTable

_DATABASES = (".duckdb", ".db", ".ddb")
_TRIES = 20  # to read a schema while others alter it
_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}


class DuckDBEngine:
    """Runs rendered SQL on one DuckDB connection, one query at a time."""

    def __init__(
        self,
        connection: SourceConnection,
        known: Known,
        fixed_schema: bool,
        keeping: Keeping,
        opening: Opening | None = None,
        owned: bool = True,
        origin: Origin = A_DATABASE,
    ) -> None:
        self._source, self._origin = connection, origin
        self._owned = owned
        self.fixed_schema = fixed_schema
        self.dialect: Dialect = DUCKDB
        self.known, self.opening = known, opening  # by which another process can open and check the same
        self._reader = SchemaReader(self._read, known)
        self._keeping = keeping
        self._watched = None if keeping.watched is None else sign_of(keeping.watched)
        self._prepared = PreparedTables(connection, keeping, self._places)
        self._followed = 0
        # the transaction in which the schema was read, and the schema
        self._verified: tuple[int, Schema] | None = None
        self._twin: Twin | None = None
        self._closed = False

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._source.connection

    @property
    def generation(self) -> int:
        """How often the source was opened again, or its file found to be another one."""
        return self._source.generation + self._followed

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._source.turn():
            if self._closed:
                raise unusable()
            if not self._source.in_snapshot:
                self._prepared.attach()
                self._follow()
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(self._source.snapshot())
                except duckdb.Error as error:
                    raise unusable(error) from None
                yield

    def _follow(self) -> None:
        """Of a file that was written to since the columns may be others."""
        if self._keeping.watched is None or self.opening is None:
            return
        try:
            sign = sign_of(self._keeping.watched)
            if sign != self._watched:
                for view in self.opening.views:
                    self._source.rows(view)
                self._watched, self._reader = sign, SchemaReader(self._read, self.known)
                self._followed += 1
        except (duckdb.Error, OSError):
            raise SourceError(
                "source-file", "the file was exchanged, and DuckDB cannot read the new one", "check it"
            ) from None

    def schema(self) -> Schema:
        if (
            self._verified is not None
            and self._source.is_stable
            and self._verified[0] == self._source.transaction
        ):
            return self._verified[1]
        # until it was read in one transaction, which ends when DuckDB cannot read a view
        for _ in range(_TRIES):
            transaction = self._source.transaction
            schema = self._reader.schema(self.fixed_schema, self._source.changed)
            self._source.note_unchanged()
            if self._is_settled(transaction):
                self._verified = (self._source.transaction, schema)
                return schema
        raise changed()

    def _is_settled(self, transaction: int) -> bool:
        """Whether what was read since then is of one state."""
        if not self._source.in_snapshot or self._source.sharing is not Sharing.DATABASE:
            return True
        return self._source.is_stable and self._source.transaction == transaction

    def question(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _read(self, sql: str) -> Rows:
        """Rows of DuckDB's own catalogue; no data."""
        try:
            return self._source.rows(sql)
        except duckdb.Error as error:
            raise unusable(error) from None

    def close(self) -> None:
        self._closed = True
        self._prepared.close()
        if self._owned:
            self._source.close()

    def check(self, sql: str, schema: Schema) -> None:
        if self._closed:
            raise unusable()
        if self._source.in_snapshot and not self.sees(schema):
            raise changed()
        if (
            self._twin is None
            or self._twin.schema != schema
            or self._twin.copies != self._prepared.definitions
        ):
            self._twin = Twin(schema, dict(self._prepared.definitions))
        self._twin.check(sql)

    def sees(self, schema: Schema) -> bool:
        """Whether the tables are those of this schema, in the state that statements see."""
        if self._keeping.watched is not None:
            return sign_of(self._keeping.watched) == self._watched and self.schema() == schema
        return self.fixed_schema or self.schema() == schema

    def prepare(self, scan: Scan) -> None:
        with self._source.turn():
            if self._closed:
                raise unusable()
            self._prepared.prepare(scan)

    def prepared(self, scan: Scan) -> Copy | None:
        return self._prepared.find(scan)

    def version(self) -> str | None:
        return self._keeping.version if self._keeping.watched is None else self._watched

    def holds(self, data: Any) -> bool:
        with self._source.turn():
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
                f"FROM duckdb_columns() AS t WHERE NOT internal AND {IN_SIGHT} AND table_name = {DUCKDB.text(table)}"
            )
            found += [Place(*row) for row in rows]
        return found

    def read_public(self, sql: str) -> Rows:
        try:
            return self._source.rows(sql)
        except FAILURES:
            raise not_accepted() from None

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            exact = exact_table(self._source.columns(sql), keys)
            # of a state for which nothing was proved
            if self._verified is not None and not self.sees(self._verified[1]):
                raise EngineError
            return exact
        except Exception:  # noqa: BLE001 -- whatever failed, its words could tell about the data
            raise EngineError from None


def exact_table(exact_rows: Mapping[str, Any], keys: Sequence[str]) -> ExactTable:
    """Columns as DuckDB gives them to numpy: keys as they are, all others whole numbers."""
    exact_columns = {
        name: np.ma.filled(values, 0).astype(np.int64)
        for name, values in exact_rows.items()
        if name not in keys
    }
    return ExactTable({name: exact_rows[name] for name in keys}, exact_columns)


def open_engine(source: Any, memory: int | None = None, folder: Path | None = None) -> DuckDBEngine:
    """A DuckDB file or connection, a frame, a dict of frames, a Parquet or CSV path -> an engine.

    `memory`: how many bytes DuckDB may use, in a database of our own. `folder`: a private one, for what
    another process must be able to open too: the rows of frames, the prepared copies of what is no DuckDB
    file.
    """
    if isinstance(source, (str, Path)):
        return _open_path(Path(source), memory, folder)
    if isinstance(source, duckdb.DuckDBPyConnection):
        if memory is not None:
            raise settings_of_others()
        return _open_connection(source)
    frames = {"df": source} if is_frame(source) else source
    if isinstance(frames, Mapping) and frames and all(is_frame(frame) for frame in frames.values()):
        origin = Origin.of_frames(frames.values())
        return (
            _open_frames(_checked(frames), memory, origin)
            if folder is None
            else _hand_over(_checked(frames), folder, origin)
        )
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
    shared = SourceConnection(reader, Sharing.DATABASE if own else Sharing.CONNECTION)
    return DuckDBEngine(
        shared, Known({}, trust_labels=True), False, Keeping(beside=file, own=own), opening, owned=own
    )


def _reader(source: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection of our own to the caller's database, so that the caller's unread results and transactions
    are left alone; the caller's own one only where temporary tables, registered frames or USE can be seen by
    it alone.
    """
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
            raise SourceError(
                "source-kind", f"two tables are called {name}: case does not count", "rename one of them"
            )
        found[name] = snapshot(checked_frame(frame))
    return found


def _required(frames: Mapping[str, Any]) -> Known:
    return Known({name: required_columns(frame) for name, frame in frames.items()}, trust_labels=False)


def _open_frames(frames: Mapping[str, Any], memory: int | None, origin: Origin) -> DuckDBEngine:
    def opened() -> duckdb.DuckDBPyConnection:
        connection = Opening(":memory:", settings=_settings(memory)).open()
        for name, frame in frames.items():
            try:
                connection.register(name, frame)
            except duckdb.Error:
                raise unreadable(name) from None
        return connection

    source = SourceConnection(opened(), Sharing.NOBODY, opened)
    return DuckDBEngine(source, _required(frames), True, Keeping(frozen=True, alone=True), origin=origin)


def _hand_over(frames: Mapping[str, Any], folder: Path, origin: Origin) -> DuckDBEngine:
    """The frames as a DuckDB file, which another process can open."""
    file = folder / "frames.duckdb"
    with Opening(str(file)).open() as connection:
        file.chmod(0o600)
        for name, frame in frames.items():
            try:
                connection.register("privsql_frame", frame)
                connection.execute(
                    f"CREATE TABLE frames.main.{DUCKDB.identifier(name)} AS FROM temp.main.privsql_frame"
                )
                connection.unregister("privsql_frame")
            except duckdb.Error:
                raise unreadable(name) from None
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
    # of a Parquet file's statistics NaN is left out, and DuckDB would skip rows by them
    # (engines/duckdb/views.py)
    option = ", can_have_nan = true" if suffix == ".parquet" else ""
    rows = f"SELECT * FROM {_READERS[suffix]}({DUCKDB.text(str(file))}{option})"
    if _READERS[suffix] == "read_csv":
        return _open_text(name, file, rows, memory, folder)
    keeping = Keeping(watched=file, alone=True, kept=None if folder is None else folder / "copies.prepared")
    paths, folders = _reached(keeping)
    view = f"CREATE OR REPLACE VIEW {DUCKDB.identifier(name)} AS {rows}"
    opening = Opening(":memory:", False, (file, *paths), folders, (view,), _settings(memory))
    try:
        source = SourceConnection(opening.open(), Sharing.NOBODY, opening.open)
    except duckdb.Error:
        raise invalid() from None
    refuse_repeated_columns(source.connection, _READERS[suffix], file, name)
    return DuckDBEngine(
        source, Known({name: frozenset()}, trust_labels=False), False, keeping, opening, origin=Origin(file)
    )


def _open_text(name: str, file: Path, rows: str, memory: int | None, folder: Path | None) -> DuckDBEngine:
    """A CSV file as a table of a database of our own. DuckDB guesses what such a file holds from its first
    lines: one line that is not so would fail queries after their charge, and somebody may append it later.
    """
    known = Known({name: frozenset()}, trust_labels=False)
    database = ":memory:" if folder is None else str(folder / "rows.duckdb")
    table = f"CREATE TABLE {DUCKDB.identifier(name)} AS {rows}"
    opening = Opening(database, False, (file,), (), (table,), _settings(memory))
    sign = sign_of(file)

    def opened() -> duckdb.DuckDBPyConnection:
        connection = _read_through(opening)
        refuse_repeated_columns(connection, "read_csv", file, name)
        if sign_of(file) != sign:
            connection.close()
            raise SourceError("source-file", "the file was written to since it was opened", "connect again")
        return connection

    if folder is None:
        source = SourceConnection(opened(), Sharing.NOBODY, opened)
        return DuckDBEngine(
            source, known, True, Keeping(frozen=True, alone=True, version=sign), opening, origin=Origin(file)
        )
    with opened():
        Path(database).chmod(0o600)
    return _open_database(Path(database), None, known, Origin(file), version=sign)


def _read_through(opening: Opening) -> duckdb.DuckDBPyConnection:
    try:
        return opening.open()
    except (duckdb.ConversionException, duckdb.InvalidInputException, UnicodeDecodeError):
        raise SourceError(
            "source-file",
            "DuckDB cannot read this file to its end: a line or a value is not like the first ones",
            "write it as Parquet or into a DuckDB file, with types that you choose",
        ) from None
    except duckdb.Error:
        raise invalid() from None


def _open_database(
    path: Path, memory: int | None, known: Known, origin: Origin = A_DATABASE, version: str | None = None
) -> DuckDBEngine:
    opening = _read_only(path.resolve(), memory)
    try:
        sign = sign_of(path)  # before it is opened, not after
        keeping = Keeping(beside=path.resolve(), opened=sign, alone=True, version=version)
        source = SourceConnection(
            opening.open(), Sharing.NOBODY, _again(opening, path, sign), str(path.resolve())
        )
        return DuckDBEngine(source, known, True, keeping, opening, origin=origin)
    except duckdb.ConnectionException:  # open already in this process, with settings of its own
        if memory is not None:
            raise settings_of_others() from None
        for keeping, read_only in ((Keeping(beside=path.resolve()), True), (Keeping(), False)):
            with contextlib.suppress(duckdb.Error):
                source = SourceConnection(duckdb.connect(str(path), read_only=read_only), Sharing.DATABASE)
                return DuckDBEngine(source, known, False, keeping, opening)
        raise unopened() from None
    except (duckdb.Error, OSError):
        raise unopened() from None


def _again(opening: Opening, path: Path, sign: str) -> Callable[[], duckdb.DuckDBPyConnection]:
    """Opens the same database once more, if it still is the same."""

    def opened() -> duckdb.DuckDBPyConnection:
        connection = opening.open()
        if sign_of(path) != sign:
            connection.close()
            raise SourceError(
                "source-file", "the file was written to or exchanged since it was opened", "connect again"
            )
        return connection

    return opened


def _read_only(path: Path, memory: int | None = None) -> Opening:
    paths, folders = _reached(Keeping(beside=path))
    return Opening(str(path), True, paths, folders, settings=_settings(memory))


def _reached(keeping: Keeping) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files and folders that prepared copies need."""
    file = keeping.file
    return ((), ()) if file is None else ((file, file.with_name(f"{file.name}.wal")), (building(file),))


def _settings(memory: int | None) -> dict[str, str]:
    return {} if memory is None else {"memory_limit": f"{memory}B"}
