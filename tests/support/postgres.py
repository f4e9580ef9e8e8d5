"""A PostgreSQL server for tests: the one that `make test-engines` starts, and copies of DuckDB's tables in it."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

import duckdb
import pytest

ADDRESS = os.environ.get("PRIVSQL_POSTGRES", "")
_NAMES = {
    "VARCHAR": "text", "DOUBLE": "double precision", "FLOAT": "real", "TINYINT": "smallint", "UTINYINT": "smallint",
    "USMALLINT": "integer", "UINTEGER": "bigint", "UBIGINT": "numeric(20,0)", "HUGEINT": "numeric(38,0)",
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp"),
}  # fmt: skip


def needs_server() -> pytest.MarkDecorator:
    """Skip, and say why, where there is no server to test on."""
    return pytest.mark.skipif(not ADDRESS, reason="no PostgreSQL: `make test-engines` starts one")


def connect(**options: Any) -> Any:
    psycopg = pytest.importorskip("psycopg")
    return psycopg.connect(ADDRESS, autocommit=True, **options)


def schema_address(schema: str) -> str:
    """The address of the server, where bare names are those of a schema."""
    joined = "&" if "?" in ADDRESS else "?"
    return f"{ADDRESS}{joined}options=-csearch_path%3D{schema}"


def type_name(name: str, schema: str) -> str:
    if name.endswith("]"):
        return type_name(re.sub(r"\[\d*\]$", "", name), schema) + "[]"
    if name.startswith("ENUM("):
        return f"{schema}.{_enum(name)}"
    if name.startswith("STRUCT"):
        return "jsonb"
    return _NAMES.get(name, name)


def _enum(name: str) -> str:
    return "enum_" + re.sub(r"\W+", "_", name.removeprefix("ENUM(")).strip("_").lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def copied(source: duckdb.DuckDBPyConnection, schema: str) -> None:
    """The tables of a DuckDB database in a schema of the server, with their constraints, views and rows."""
    with connect() as server:
        server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        enums = source.execute(
            "SELECT DISTINCT data_type FROM duckdb_columns() WHERE data_type LIKE 'ENUM(%' AND NOT internal"
        ).fetchall()
        enums += [
            (re.sub(r"\[\d*\]$", "", each),)
            for (each,) in source.execute(
                "SELECT DISTINCT data_type FROM duckdb_columns() WHERE data_type LIKE 'ENUM(%]' AND NOT internal"
            ).fetchall()
        ]
        for name in dict.fromkeys(name for (name,) in enums if not name.endswith("]")):
            server.execute(f"CREATE TYPE {schema}.{_enum(name)} AS {name.replace('ENUM', 'ENUM ')}")
        tables = source.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_oid").fetchall()
        for (table,) in tables:
            _copy_table(source, server, schema, table)
        server.execute(f"SET search_path = {schema}")
        for (sql,) in source.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall():
            server.execute(sql)


def _copy_table(source: duckdb.DuckDBPyConnection, server: Any, schema: str, table: str) -> None:
    described = source.execute(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    columns = [
        f"{_quoted(name)} {type_name(type_, schema)}{'' if nullable else ' NOT NULL'}"
        for name, type_, nullable in described
    ]
    constraints = source.execute(
        "SELECT constraint_type, constraint_column_names, expression FROM duckdb_constraints() WHERE table_name = ?",
        [table],
    ).fetchall()
    for kind, named, text in constraints:
        listed = ", ".join(map(_quoted, named))
        if kind in ("PRIMARY KEY", "UNIQUE"):
            columns.append(f"{kind} ({listed})")
        elif kind == "CHECK":
            columns.append(f"CHECK ({text})")
    target = f"{schema}.{_quoted(table)}"
    server.execute(f"CREATE TABLE {target} ({', '.join(columns)})")
    kinds = [type_ for _, type_, _ in described]
    rows = [
        tuple(_value(value, kind) for value, kind in zip(row, kinds, strict=True))
        for row in source.execute(f"SELECT * FROM {_quoted(table)}").fetchall()
    ]
    marks = ", ".join(f"CAST(%s AS {type_name(type_, schema)})" for _, type_, _ in described)
    with server.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {target} VALUES ({marks})", rows)


def _value(value: Any, kind: str) -> Any:
    """A value as psycopg writes it; structs have no type of their own there."""
    if kind.startswith("STRUCT"):
        return None
    return list(value) if isinstance(value, tuple) else value


@lru_cache
def copy_of(source: duckdb.DuckDBPyConnection, schema: str) -> str:
    """The address of a copy, made once."""
    copied(source, schema)
    return schema_address(schema)
