"""The hostile table on a PostgreSQL server: the same columns, as PostgreSQL's types, with the ends of its own ranges."""

from __future__ import annotations

import random
from typing import Any

from privsql.algebra.expressions import Column
from privsql.render.postgres import BROUGHT, PostgreSQL
from privsql.render.postgres_numbers import filled
from tests.conformance.engines.hostile import COLUMNS, VALUES
from tests.support import postgres

SCHEMA = "privsql_hostile"
DIALECT = PostgreSQL(SCHEMA)
_MOMENTS = [
    "infinity",
    "-infinity",
    "294276-12-31 23:59:59.999999",
    "4714-11-24 00:00:00 BC",
    "0001-01-01 00:00:00",
    "0001-12-31 23:59:59.999999 BC",
    "1969-12-31 23:59:59.999999",
    "2024-02-29 12:34:56.789012",
    "9999-12-31 23:59:59.999999",
]
_DECIMALS = {name: [*values, "'NaN'"] for name, values in VALUES.items() if name.startswith("DECIMAL")}
_DOUBLES = [
    *(
        "Infinity",
        "-Infinity",
        "NaN",
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        "-5e-324",
    ),
    *(
        "-0.0",
        "0",
        "0.285",
        "2.5",
        "-3.5",
        "1e19",
        "-1e40",
        "1e-200",
        "1e200",
        "1.5e154",
        "2.2250738585072014e-308",
    ),
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "9223372036854774784",
        "0.5",
        "0.49999999999999994",
        "1e308",
    ),
    *(
        "-170141183460469231731687303715884105728",
        "170141183460469212842221372237303250944",
        "709.9",
        "-745.2",
        "1",
        "-1",
    ),
]
# engine type of the shared table -> PostgreSQL's type, how it is brought to ours, and SQL of values
_KINDS: dict[str, tuple[str, str | None, list[str]]] = {
    **{name: ("smallint", None, VALUES[name]) for name in ("TINYINT", "UTINYINT", "SMALLINT")},
    **{name: ("integer", None, VALUES[name]) for name in ("USMALLINT", "INTEGER")},
    **{name: ("bigint", None, VALUES[name]) for name in ("UINTEGER", "BIGINT")},
    **{name: ("numeric(39,0)", None, VALUES[name]) for name in ("UBIGINT", "HUGEINT")},
    **{name: (name.replace("DECIMAL", "numeric"), "no NaN", values) for name, values in _DECIMALS.items()},
    "BOOLEAN": ("boolean", None, VALUES["BOOLEAN"]),
    "FLOAT": ("real", "double", ["'Infinity'", "'-Infinity'", "'NaN'", "3.4e38", "1e-45", "0", "'-0.0'"]),
    "DOUBLE": ("double precision", None, [f"'{each}'" for each in _DOUBLES]),
    "VARCHAR": ("text", "text", [each for each in VALUES["VARCHAR"] if "chr(0)" not in each]),
    "UUID": ("uuid", "text", VALUES["UUID"]),
    "ENUM('a', 'b')": (f"{SCHEMA}.letter", "text", VALUES["ENUM('a', 'b')"]),
    "DATE": (
        "date",
        None,
        [
            f"'{d}'"
            for d in ("infinity", "-infinity", "5874897-12-31", "4714-11-24 BC", "2024-02-29", "0001-01-01")
        ],
    ),
    "TIME": ("time", None, VALUES["TIME"]),
    "TIMESTAMP": ("timestamp", None, [f"'{each}'" for each in _MOMENTS]),
    "TIMESTAMP_S": ("timestamp", None, ["'infinity'", "'2024-02-29'"]),
    "TIMESTAMP_MS": ("timestamptz", "in UTC", [f"'{each}'" for each in _MOMENTS[:5]]),
    "TIMESTAMP_NS": ("timestamp(3)", None, [f"'{each}'" for each in _MOMENTS]),
}


def physical(column: Column) -> tuple[str, str | None, list[str]]:
    name = next(name for name, each in COLUMNS.items() if each == column)
    return _KINDS[name]


def source(table: str = "hostile") -> str:
    """The table as a query reads it."""
    columns = []
    for name, column in COLUMNS.items():
        _, cast, _ = _KINDS[name]
        shown = DIALECT.identifier(column.name)
        brought = shown if cast is None else filled(BROUGHT[cast], [shown])
        columns.append(f"{brought} AS {shown}")
    return f"(SELECT id, {', '.join(columns)} FROM {SCHEMA}.{table}) AS hostile"


def fill(server: Any, rows: int, seed: int) -> None:
    """The table with so many rows, each value drawn from its column's, or NULL; every value occurs."""
    draw = random.Random(seed)
    server.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
    server.execute(f"CREATE TYPE {SCHEMA}.letter AS ENUM ('a', 'b')")
    kinds = ", ".join(f'"{column.name}" {_KINDS[name][0]}' for name, column in COLUMNS.items())
    server.execute(
        f"CREATE TABLE {SCHEMA}.hostile (id integer, {kinds}); CREATE TABLE {SCHEMA}.ids (id integer)"
    )
    server.execute(f"INSERT INTO {SCHEMA}.ids SELECT * FROM generate_series(0, {rows - 1}, 2)")
    for row in range(rows):
        values = [str(row)]
        for name in COLUMNS:
            type_, _, listed = _KINDS[name]
            chosen = listed[row % len(listed)] if draw.random() < 0.4 else draw.choice([*listed, "NULL"])
            values.append(f"CAST({chosen} AS {type_})")
        server.execute(f"INSERT INTO {SCHEMA}.hostile VALUES ({', '.join(values)})")
    server.execute(f"ANALYZE {SCHEMA}.hostile")


def connect() -> Any:
    """A connection with the settings of the engine."""
    from privsql.engines.postgres.transactions import SETTINGS

    server = postgres.connect()
    for name, value in SETTINGS.items():
        server.execute("SELECT set_config(%s, %s, false)", [name, value])
    return server
