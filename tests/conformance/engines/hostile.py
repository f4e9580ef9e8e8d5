"""A table with a column of every supported type, filled with the values most likely to break something."""

from __future__ import annotations

from pathlib import Path

import duckdb

from privsql.algebra.expressions import Column
from privsql.render.duckdb import identifier
from privsql.types import column_type

_DECIMALS = {
    (4, 2): ["99.99", "-99.99", "0.5", "0"],
    (18, 3): ["999999999999999.999", "-999999999999999.999", "0.001", "1.5"],
    (38, 0): [f"{10**38 - 1}", f"-{10**38 - 1}", "1", "0"],
    (38, 10): [f"{10**28 - 1}.9999999999", f"-{10**28 - 1}.9999999999", "0.0000000001", "2.5"],
}
_MOMENTS = [
    "infinity",
    "-infinity",
    "294247-01-10 04:00:54.775806",
    "290309-12-22 (BC) 00:00:00",
    "0001-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "2024-02-29 12:34:56.789012",
    "9999-12-31 23:59:59.999999",
]
# engine type -> SQL of values
VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127", "0", "-1", "2"],
    "UTINYINT": ["0", "255", "1"],
    "SMALLINT": ["-32768", "32767", "0"],
    "USMALLINT": ["0", "65535"],
    "INTEGER": ["-2147483648", "2147483647", "0", "-1", "7"],
    "UINTEGER": ["0", "4294967295"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "0", "-1", "3", "9007199254740993"],
    "UBIGINT": ["0", "18446744073709551615"],
    "HUGEINT": [f"{-(2**127)}", f"{2**127 - 1}", "0", "-1", f"{2**96}"],
    **{f"DECIMAL({p},{s})": [f"'{each}'" for each in values] for (p, s), values in _DECIMALS.items()},
    "FLOAT": ["'inf'", "'-inf'", "'nan'", "3.4e38", "1e-45", "0", "'-0.0'"],
    "DOUBLE": [
        "'inf'",
        "'-inf'",
        "'nan'",
        "'-nan'",
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        "'-0.0'",
        "0",
        "0.285",
        "1e19",
        "-1e40",
    ],
    "VARCHAR": [
        "''",
        "'a'",
        "'2024-02-29'",
        "'1e400'",
        "'-170141183460469231731687303715884105728'",
        "'nan'",
        "'%_[('",
        "'\\'",
        "chr(0) || 'x'",
        "'Straße ﬀ İ \U0001f600é'",
        "repeat('long ', 400)",
        "'23:59:60'",
        "'ZQZQ'",
        "'infinity'",
    ],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-0000-0000-000000000000'"],
    "ENUM('a', 'b')": ["'a'", "'b'"],
    "DATE": [
        "'infinity'",
        "'-infinity'",
        "'5881580-07-10'",
        "'5877642-06-25 (BC)'",
        "'2024-02-29'",
        "'0001-01-01'",
        "'1582-10-15'",
    ],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "'12:00:00'"],
    "TIMESTAMP": [
        *(f"'{each}'" for each in _MOMENTS),
        "make_timestamp(-9223372036854775000)",
        "make_timestamp(9223372036854775806)",
    ],
    "TIMESTAMP_S": ["'infinity'", "'2024-02-29'", "'0001-01-01'"],
    "TIMESTAMP_MS": ["'-infinity'", "'2024-02-29'", "'9999-12-31'"],
    "TIMESTAMP_NS": ["'infinity'", "'2024-02-29'", "make_timestamp_ns(-9223372036854775000)"],
}
COLUMNS: dict[str, Column] = {}  # engine type -> the column of that type, as an expression
for _place, _name in enumerate(VALUES):
    _type = column_type(_name)
    assert _type is not None
    COLUMNS[_name] = Column(f"c{_place}", _type.type)
SOURCES = ("table", "without statistics", "stored", "parquet", "arrow", "join", "constant")


def source(table: str = "hostile") -> str:
    """The table as a query reads it: types that have no rules of their own are cast, as the renderer of a scan does."""
    columns = []
    for name, column in COLUMNS.items():
        known = column_type(name)
        assert known is not None
        cast = f"TRY_CAST({column.name} AS {known.cast})" if known.cast else column.name
        columns.append(f"{cast} AS {identifier(column.name)}")
    return f"(SELECT id, {', '.join(columns)} FROM {table})"


def fill(
    connection: duckdb.DuckDBPyConnection, rows: int, seed: int, table: str = "hostile", first: int = 0
) -> None:
    """So many rows more, each value drawn from its column's, or NULL."""
    kinds = ", ".join(f"{column.name} {name}" for name, column in COLUMNS.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER, {kinds})")
    joins = []
    for place, (name, values) in enumerate(
        VALUES.items()
    ):  # a list of constants would be folded, and fail at some of them
        listed = ", ".join(
            f"({number}, CAST({each} AS {name}))" for number, each in enumerate((*values, "NULL"))
        )
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE v{place} AS FROM (VALUES {listed}) AS v(n, v{place})"
        )
        joins.append(f"JOIN v{place} ON v{place}.n = hash(hash(id, {seed}, {place})) % {len(values) + 1}")
    columns = ", ".join(f"v{place}.v{place}" for place in range(len(VALUES)))
    ids = f"range({first}, {first + rows}) AS r(id)"
    connection.execute(f"INSERT INTO {table} SELECT id, {columns} FROM {ids} {' '.join(joins)} ORDER BY id")


class World:
    """One database with the hostile table, and the ways in which an engine may meet it."""

    def __init__(self, folder: Path, rows: int = 150, seed: int = 1) -> None:
        self.folder, self.rows, self.seed = folder, rows, seed
        self.open()

    def open(self) -> None:
        """Anew: a database can be dead after a failure."""
        self.connection = duckdb.connect()
        fill(self.connection, self.rows, self.seed)
        path = self.folder / "hostile.parquet"
        self.connection.execute(f"COPY hostile TO '{path}'")
        huge = COLUMNS["HUGEINT"].name  # which DuckDB stores as DOUBLE there
        whole = f"* REPLACE (TRY_CAST({huge} AS HUGEINT) AS {huge})"
        self.connection.execute(f"CREATE VIEW from_parquet AS SELECT {whole} FROM '{path}'")
        # Arrow has no HUGEINT either, but a DECIMAL(38,0) that cannot hold its ends
        shown = self.connection.sql(f"SELECT * REPLACE (CAST({huge} AS DOUBLE) AS {huge}) FROM hostile")
        self.connection.register("given_arrow", shown.to_arrow_table())
        self.connection.execute(f"CREATE TEMP VIEW from_arrow AS SELECT {whole} FROM given_arrow")
        self.connection.execute("CREATE TABLE ids AS SELECT id, id % 3 AS k FROM hostile")
        self._store()

    def _store(self) -> None:
        """On disk, where texts are kept in a dictionary."""
        stored = self.folder / "hostile.duckdb"
        stored.unlink(missing_ok=True)
        self.connection.execute(f"ATTACH '{stored}' AS stored; CREATE TABLE stored.hostile AS FROM hostile")
        self.connection.execute("DETACH stored")
        self.connection.execute(f"ATTACH '{stored}' AS stored (READ_ONLY)")
        name = COLUMNS["VARCHAR"].name
        found = self.connection.execute(
            f"SELECT DISTINCT compression FROM pragma_storage_info('stored.hostile') "
            f"WHERE column_name = '{name}' AND segment_type = 'VARCHAR'"
        ).fetchall()
        assert found == [("DICT_FSST",)], found

    def run(self, select: str, kind: str) -> None:
        """Run `select` (with {source} for FROM) on one kind of source."""
        off = "statistics_propagation" if kind == "without statistics" else ""
        self.connection.execute(f"SET disabled_optimizers = '{off}'")
        self.connection.execute(select.format(source=self.source(kind))).fetchall()

    def source(self, kind: str) -> str:
        match kind:
            case "parquet":
                return source("from_parquet")
            case "stored":
                return source("stored.hostile")
            case "arrow":
                return source("from_arrow")
            case "join":
                return f"(SELECT s.* FROM {source()} AS s JOIN ids USING (id) WHERE ids.k < 2)"
            case "constant":
                return f"(SELECT * FROM {source()} WHERE id = 3)"
            case _:
                return source()
