"""DuckDB as the engine: a source is opened, its schema read, rendered SQL run. The only module that imports duckdb."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from privsql.engines.frames import checked_frame, column_of, is_frame, required_columns, snapshot
from privsql.engines.prepared import Keeping, Place, PreparedTables
from privsql.engines.signs import sign_of
from privsql.engines.twin import CLOSE, CLOSED, Twin, not_accepted, without_data
from privsql.errors import EngineError, SourceError, did_you_mean
from privsql.planning import render
from privsql.planning.prepared import Copy
from privsql.schema import ForeignKey, Schema, SchemaColumn, SchemaTable
from privsql.sql.expressions import Column, Expression
from privsql.sql.relations import Scan
from privsql.tables import ExactTable
from privsql.types import BINARY, ColumnType, Kind, Type, column_type, element_type

# The tables that a bare name means, as DuckDB looks it up: temporary ones hide others.
_IN_SIGHT = (
    "(database_name = 'temp' OR (database_name = current_database() AND schema_name = current_schema() AND lower(table_name) "
    "NOT IN (SELECT lower(table_name) FROM duckdb_columns() WHERE database_name = 'temp' AND NOT internal)))"
)
# Everything a schema is read from, as text: as long as it is the same, so is the schema.
_DEFINITIONS = (
    "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL "
    "SELECT current_database(), current_schema(), '', current_setting('default_collation') ORDER BY ALL"
)
_FRAME = re.compile(
    r" AS SELECT \* FROM (pandas_scan|python_arrow_scan)\(\) AS \w+;$"
)  # a registered frame is no query
_DATABASES = (".duckdb", ".db", ".ddb")
_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}


@dataclass(frozen=True)
class _Known:
    """Of frames and files, which are the whole source: the tables, each with the columns that its dtypes keep without NULL."""

    required: Mapping[str, frozenset[str]]
    trust_labels: bool  # a DuckDB ENUM is schema; a frame's categories usually come from the data


class DuckDBEngine:
    """Runs rendered SQL on one DuckDB connection, one query at a time."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, known: _Known, fixed_schema: bool, keeping: Keeping, owned: bool = True
    ) -> None:
        self._connection = connection
        self._owned = owned
        self.fixed_schema = fixed_schema
        self._known = known
        self._lock = threading.Lock()
        self._prepared = PreparedTables(connection, self._lock, keeping, self._places)
        self._twin: Twin | None = None
        self._closed = False
        self._seen: tuple[list[tuple[Any, ...]], Schema] | None = None

    def schema(self) -> Schema:
        if self._known.required:
            self._seen = self._seen or ([], self._described())
        elif self._seen is None or not self.fixed_schema:
            definitions = self._read(_DEFINITIONS)
            if self._seen is None or self._seen[0] != definitions:
                self._seen = (definitions, self._read_schema(definitions))
        return self._seen[1]

    def _described(self) -> Schema:
        """Frames and files have no constraints, and DuckDB takes far longer to list all its columns than to describe some."""
        described = {name: self._read(f"DESCRIBE {render.identifier(name)}") for name in sorted(self._known.required)}
        return Schema(
            tuple(
                SchemaTable(name, tuple(self._column(name, column, type_, True, False, False) for column, type_, *_ in columns))
                for name, columns in described.items()
            )
        )

    def _column(self, table: str, name: str, type_name: str, nullable: bool, stored: bool, collated: bool) -> SchemaColumn:
        found, listed = column_type(type_name), element_type(type_name)
        if listed is not None:
            held = SchemaColumn(name, listed.type, type_name, listed.cast, self._labels(listed, stored))
            return SchemaColumn(name, None, type_name, elements=held)
        cast = found.cast if found else None
        if collated and cast is None and found is not None and found.type.kind is Kind.TEXT:
            cast = BINARY
        required = not nullable or name in self._known.required.get(table, frozenset())
        labels = self._labels(found, stored)
        return SchemaColumn(name, found.type if found else None, type_name, cast, labels, required)

    def _labels(self, found: ColumnType | None, stored: bool) -> tuple[str, ...] | None:
        """Those of an ENUM; that of a view may be the categories of a registered frame."""
        return found.labels if found is not None and stored and self._known.trust_labels else None

    def _read_schema(self, definitions: Sequence[tuple[Any, ...]]) -> Schema:
        columns = self._read(
            "SELECT database_name, schema_name, table_name, column_name, data_type, is_nullable, "
            "(database_oid, table_oid) IN (SELECT (database_oid, table_oid) FROM duckdb_tables()) "
            f"FROM duckdb_columns() WHERE NOT internal AND {_IN_SIGHT} ORDER BY table_name, column_index"
        )
        constraints = self._read(
            "SELECT table_name, constraint_type, constraint_column_names, expression, referenced_table, referenced_column_names "
            f"FROM duckdb_constraints() WHERE {_IN_SIGHT} ORDER BY constraint_index"
        )
        collation = next(sql for *_, name, sql in definitions if not name)
        texts = {(database, schema, name): sql or "" for database, schema, name, sql in definitions if name}
        # under a collation texts that differ are equal; the type of a column does not say whether it has one
        collated = any("collate" in sql.lower() for sql in texts.values())
        seen = {name: texts.get((*place, name), "") for *place, name, _, _, _, stored in columns if not stored}
        views = {name for name, sql in seen.items() if not _FRAME.search(sql)}
        if collation not in ("", "binary"):
            raise SourceError(
                "source-collation",
                f"default_collation is {collation}, so that texts that differ count as equal",
                "RESET default_collation",
            )
        tables: dict[str, list[SchemaColumn]] = {}
        for _, _, table, name, type_name, nullable, stored in columns:
            tables.setdefault(table, []).append(self._column(table, name, type_name, nullable, stored, collated))
        checks = {
            name: tuple(text for table, kind, _, text, *_ in constraints if table == name and kind == "CHECK")
            for name in tables
        }
        keys = {
            name: tuple(
                frozenset(column.lower() for column in columns)
                for table, kind, columns, *_ in constraints
                if table == name and kind in ("PRIMARY KEY", "UNIQUE")
            )
            for name in tables
        }
        foreign = {
            name: tuple(
                ForeignKey(tuple(own), other, tuple(named))
                for table, kind, own, _, other, named in constraints
                if table == name and kind == "FOREIGN KEY"
            )
            for name in tables
        }
        return Schema(
            tuple(
                SchemaTable(name, tuple(each), checks[name], keys[name], name in views, foreign[name])
                for name, each in tables.items()
            )
        )

    def _read(self, sql: str) -> list[tuple[Any, ...]]:
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

    def _places(self, tables: Sequence[str]) -> list[Place]:
        found = []
        for table in tables:
            rows = self._read(
                "SELECT DISTINCT database_name, (SELECT path FROM duckdb_databases() d WHERE d.database_name = t.database_name), "
                "schema_name, (database_oid, table_oid) IN (SELECT (database_oid, table_oid) FROM duckdb_tables()) "
                f"FROM duckdb_columns() AS t WHERE NOT internal AND {_IN_SIGHT} AND table_name = {render.text(table)}"
            )
            found += [Place(*row) for row in rows]
        return found

    def read_public(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(sql).fetchall()
        except duckdb.Error:
            raise not_accepted() from None

    def run(self, sql: str, keys: Sequence[str]) -> ExactTable:
        try:
            with self._lock:
                exact_rows = self._connection.execute(sql).fetchnumpy()
            exact_columns = {
                name: np.ma.filled(values, 0).astype(np.int64)
                for name, values in exact_rows.items()
                if name not in keys
            }
            return ExactTable({name: exact_rows[name] for name in keys}, exact_columns)
        except Exception:  # noqa: BLE001 -- whatever failed, its words could tell about the data
            raise EngineError from None


def _unusable() -> SourceError:
    return SourceError("source-connection", "the source cannot be used", "is its connection closed?")


class DuckDBCalculator:
    """Computes over public or already noisy values in a database that holds no private data."""

    def __init__(self) -> None:
        self._connection = without_data().cursor()
        self._lock = threading.Lock()

    def evaluate(self, expressions: Sequence[Expression], columns: Mapping[Column, Sequence[Any]]) -> list[list[Any]]:
        """Expressions over every row of some public columns."""
        count = len(next(iter(columns.values()))) if columns else 1
        frame = {f"c{index}": column_of(values, column.type) for index, (column, values) in enumerate(columns.items())}
        frame["place"] = np.arange(count)
        place = render.identifier(_unlike("place", [column.name for column in columns]))
        casts = ", ".join(
            f"CAST(c{index} AS {column.type.sql}) AS {render.identifier(column.name)}"
            for index, column in enumerate(columns)
        )
        outputs = ", ".join(render.expression(each) for each in expressions)
        sql = f"SELECT {outputs} FROM (SELECT place AS {place}, {casts} FROM public_values) ORDER BY {place}"
        with self._lock:
            self._connection.register("public_values", pd.DataFrame(frame))
            try:
                rows = self._connection.execute(sql).fetchall()
            except duckdb.Error:
                raise not_accepted() from None
            finally:
                self._connection.unregister("public_values")
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in expressions]

    def finish(self, sql: str, columns: Mapping[str, tuple[Any, Type]]) -> list[Any]:
        """SQL over the table `noisy`; the columns of its result, masked where NULL."""
        named = {f"c{index}": column_of(values, type_) for index, (values, type_) in enumerate(columns.values())}
        plain = all(isinstance(each, np.ndarray) for each in named.values())
        casts = ", ".join(
            f"CAST(c{index} AS {type_.sql}) AS {render.identifier(name)}"
            for index, (name, (_, type_)) in enumerate(columns.items())
        )
        text = f"WITH noisy AS (SELECT {casts} FROM noisy_values) SELECT * FROM ({sql}) ORDER BY privsql_place"
        with self._lock:
            self._connection.register("noisy_values", named if plain else pd.DataFrame(named))
            try:
                return list(self._connection.execute(text).fetchnumpy().values())
            except duckdb.Error:
                raise EngineError from None
            finally:
                self._connection.unregister("noisy_values")


def open_engine(source: Any) -> DuckDBEngine:
    """A DuckDB file or connection, a frame, a dict of frames, a Parquet or CSV path -> an engine."""
    if isinstance(source, (str, Path)):
        return _open_path(Path(source))
    if isinstance(source, duckdb.DuckDBPyConnection):
        reader = _reader(source)
        own = reader is not source
        keeping = Keeping(beside=_read_only_file(reader), own=own)
        return DuckDBEngine(reader, _Known({}, trust_labels=True), fixed_schema=False, keeping=keeping, owned=own)
    if is_frame(source):
        return _open_frames({"df": source})
    if isinstance(source, Mapping) and source and all(is_frame(frame) for frame in source.values()):
        return _open_frames(source)
    raise SourceError(
        "source-kind",
        f"a {type(source).__name__} cannot be a source of data",
        "give a DuckDB file or connection, a pandas, Arrow or Polars frame, a dict of frames, a Parquet or CSV path",
    )


def _reader(source: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A connection of our own to the caller's database, so that the caller's unread results and transactions are left
    alone; the caller's own one only where temporary tables, registered frames or USE can be seen by it alone."""
    sight = (
        "SELECT current_database(), current_schema(), count(*) FROM duckdb_columns() "
        "WHERE database_name = 'temp' AND NOT internal"
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


def _open_frames(frames: Mapping[str, Any]) -> DuckDBEngine:
    connection = duckdb.connect(":memory:", config=CLOSED)
    required: dict[str, frozenset[str]] = {}
    for name, frame in frames.items():
        if not isinstance(name, str) or not name:
            raise SourceError("source-kind", "the tables of a dict must have names", '{"visits": frame}')
        if name.lower() in map(str.lower, required):
            raise SourceError("source-kind", f"two tables are called {name}: case does not count", "rename one of them")
        try:
            connection.register(name, snapshot(checked_frame(frame)))
        except duckdb.Error:
            raise SourceError(
                "source-frame", f"DuckDB cannot read the frame {name}", "check its column types"
            ) from None
        required[name] = required_columns(frame)
    connection.execute(CLOSE)
    keeping = Keeping(frozen=True, alone=True)
    return DuckDBEngine(connection, _Known(required, trust_labels=False), fixed_schema=True, keeping=keeping)


def _open_path(path: Path) -> DuckDBEngine:
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
        return _open_database(path)
    name = path.name.split(".")[0]
    connection = duckdb.connect(":memory:", config=CLOSED)
    try:
        connection.execute(f"SET allowed_paths = ['{_quoted(path)}']")
        connection.execute(CLOSE)
        connection.execute(
            f"CREATE VIEW {render.identifier(name)} AS SELECT * FROM {_READERS[suffix]}('{_quoted(path)}')"
        )
    except duckdb.Error:
        raise SourceError("source-file", "DuckDB cannot read this file", "check that it is valid") from None
    known = _Known({name: frozenset()}, trust_labels=False)
    return DuckDBEngine(connection, known, fixed_schema=True, keeping=Keeping(watched=path.resolve(), alone=True))


def _open_database(path: Path) -> DuckDBEngine:
    known = _Known({}, trust_labels=True)
    try:
        keeping = Keeping(beside=path.resolve(), opened=sign_of(path), alone=True)  # its sign before it is opened, not after
        return DuckDBEngine(duckdb.connect(str(path), read_only=True, config=CLOSED), known, True, keeping)
    except duckdb.ConnectionException:  # open already in this process, with settings of its own
        for keeping, read_only in ((Keeping(beside=path.resolve()), True), (Keeping(), False)):
            with contextlib.suppress(duckdb.Error):
                return DuckDBEngine(duckdb.connect(str(path), read_only=read_only), known, False, keeping)
        raise _unopened() from None
    except (duckdb.Error, OSError):
        raise _unopened() from None


def _unlike(name: str, taken: Sequence[str]) -> str:
    """A name that none of the others is."""
    while name.lower() in {each.lower() for each in taken}:
        name += "_"
    return name


def _unopened() -> SourceError:
    return SourceError(
        "source-file",
        "DuckDB cannot open this file",
        "is it a DuckDB file? if it is open in this program already, give that connection",
    )


def _quoted(path: Path) -> str:
    return str(path.resolve()).replace("'", "''")
