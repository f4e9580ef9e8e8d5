"""A source as the caller gives it goes in (a path, a connection, frames); an engine open on it comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from privsql.engines.addresses import is_address
from privsql.engines.duckdb.connection import Sharing, SourceConnection
from privsql.engines.duckdb.copies.copy_store import building
from privsql.engines.duckdb.copies.prepared_tables import Keeping
from privsql.engines.duckdb.dataframes import checked_frame, is_frame, required_columns, snapshot
from privsql.engines.duckdb.engine import DuckDBEngine
from privsql.engines.duckdb.file_columns import refuse_repeated_columns, refuse_unreadable_values
from privsql.engines.duckdb.fingerprints import sign_of
from privsql.engines.duckdb.opening import Opening
from privsql.engines.duckdb.origin import A_DATABASE, Origin
from privsql.engines.duckdb.schema_reader import SourceFacts
from privsql.engines.duckdb.source_errors import (
    invalid,
    settings_of_others,
    unopened,
    unreadable,
)
from privsql.errors import SourceError, did_you_mean
from privsql.render.duckdb import DUCKDB

_DATABASES = (".duckdb", ".db", ".ddb")
_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}


def open_engine(source: Any, memory: int | None = None, folder: Path | None = None) -> DuckDBEngine:
    """Open a DuckDB file or connection, a frame, a dict of frames, or a Parquet or CSV path.

    `memory`: how many bytes DuckDB may use, in a database of our own. `folder`: a private folder for data
    that another process must be able to open as well: the rows of frames, and prepared copies of sources that
    are not DuckDB files.
    """
    if is_address(source):
        raise SourceError(
            "source-kind",
            "only connect(), and `privsql query` and `explain`, read PostgreSQL so far",
            "give a DuckDB file with the same tables, which may be empty",
        )
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
        f"a {type(source).__name__} is not a supported data source",
        "give a DuckDB file or connection, a pandas, Arrow or Polars frame, a dict of frames, "
        "or the path of a Parquet or CSV file",
    )


def _open_connection(source: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    reader = _reader(source)
    own = reader is not source
    file = _read_only_file(reader)
    opening = _read_only(file) if own and file is not None else None
    shared = SourceConnection(reader, Sharing.DATABASE if own else Sharing.CONNECTION)
    return DuckDBEngine(
        shared, SourceFacts({}, trust_labels=True), False, Keeping(beside=file, own=own), opening, owned=own
    )


def _reader(source: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection of our own to the caller's database, which leaves the caller's unread results and
    transactions alone; the caller's connection only if it has temporary tables, registered frames or a USE
    that no other connection sees.
    """
    sight = (
        "SELECT system.main.current_database(), system.main.current_schema(), "
        "(SELECT count(*) FROM system.main.duckdb_tables() WHERE temporary), "
        "(SELECT count(*) FROM system.main.duckdb_views() WHERE temporary)"
    )
    try:
        cursor = source.cursor()
        own = cursor.execute(sight).fetchall()
    except duckdb.Error:
        raise SourceError(
            "source-connection", "this connection cannot be used", "check whether it is closed"
        ) from None
    try:
        return cursor if source.sql(sight).fetchall() == own else source
    except duckdb.Error:  # it has an unread result, or a transaction that failed
        return cursor


def _read_only_file(connection: duckdb.DuckDBPyConnection) -> Path | None:
    """The file of a read-only database, beside which no database in memory can be attached."""
    found = (
        "SELECT path FROM system.main.duckdb_databases() "
        "WHERE database_name = system.main.current_database() AND readonly AND path IS NOT NULL"
    )
    with contextlib.suppress(duckdb.Error):
        return next((Path(path) for (path,) in connection.execute(found).fetchall()), None)
    return None


def _checked(frames: Mapping[str, Any]) -> dict[str, Any]:
    """Snapshots of the frames. Raises SourceError for one that cannot be a table."""
    found: dict[str, Any] = {}
    for name, frame in frames.items():
        if not isinstance(name, str) or not name:
            raise SourceError("source-kind", "the tables of a dict must have names", '{"visits": frame}')
        if name.lower() in map(str.lower, found):
            raise SourceError(
                "source-kind",
                f"two tables are called {name}: names are not case-sensitive",
                "rename one of them",
            )
        found[name] = snapshot(checked_frame(frame))
    return found


def _required(frames: Mapping[str, Any]) -> SourceFacts:
    return SourceFacts({name: required_columns(frame) for name, frame in frames.items()}, trust_labels=False)


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
    """Write the frames to a DuckDB file, which another process can open."""
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
        ending = f"ending in {suffix}" if suffix else "without a suffix"
        raise SourceError(
            "source-kind",
            f"a file {ending} is not a supported data source",
            did_you_mean(suffix, [*_DATABASES, *_READERS]),
        )
    if not path.is_file():
        raise SourceError("source-missing", "there is no such file", "check the path")
    if suffix in _DATABASES:
        return _open_database(path, memory, SourceFacts({}, trust_labels=True))
    name, file = path.name.split(".")[0], path.resolve()
    # Parquet statistics leave out NaN, and DuckDB would skip rows by them (engines/duckdb/safety/views.py)
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
    refuse_unreadable_values(source.connection, name)
    return DuckDBEngine(
        source,
        SourceFacts({name: frozenset()}, trust_labels=False),
        False,
        keeping,
        opening,
        origin=Origin(file),
    )


def _open_text(name: str, file: Path, rows: str, memory: int | None, folder: Path | None) -> DuckDBEngine:
    """A CSV file as a table in a database of our own. DuckDB guesses the types from the first lines. A line
    that does not fit would make queries fail after their charge, and somebody may append one later.
    """
    known = SourceFacts({name: frozenset()}, trust_labels=False)
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
            "DuckDB cannot read this file to its end: a later line does not have the types of the first ones",
            "store it as Parquet or in a DuckDB file, with explicit types",
        ) from None
    except duckdb.Error:
        raise invalid() from None


def _open_database(
    path: Path,
    memory: int | None,
    known: SourceFacts,
    origin: Origin = A_DATABASE,
    version: str | None = None,
) -> DuckDBEngine:
    opening = _read_only(path.resolve(), memory)
    try:
        sign = sign_of(path)  # before the file is opened: a write in between must not go unnoticed
        keeping = Keeping(beside=path.resolve(), opened=sign, alone=True, version=version)
        source = SourceConnection(
            opening.open(), Sharing.NOBODY, _again(opening, path, sign), str(path.resolve())
        )
        return DuckDBEngine(source, known, True, keeping, opening, origin=origin)
    except duckdb.ConnectionException:  # this process has it open already, with other settings
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
    """A function that opens the same database once more, if it has not changed."""

    def opened() -> duckdb.DuckDBPyConnection:
        connection = opening.open()
        if sign_of(path) != sign:
            connection.close()
            raise SourceError(
                "source-file", "the file was written to or replaced since it was opened", "connect again"
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
