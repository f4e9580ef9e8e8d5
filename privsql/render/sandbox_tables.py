"""Names and types of columns go in; the statements come out that make tables of them in the sandbox.

Every table is a view of a temporary one: the rows of a view have no numbers that a statement could read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.render.duckdb import DUCKDB, identifier
from privsql.types import Kind, Type

CLOCK = "SET GLOBAL TimeZone = 'UTC'"
_VERSION = identifier("privsql version")


@dataclass(frozen=True)
class RawColumn:
    """A column as it reaches the engine: `values`, and where it is NULL or NaN, if it is anywhere."""

    name: str
    type: Type
    values: str
    missing: str | None = None
    nan: str | None = None


def empty_table(name: str, columns: Mapping[str, Type]) -> list[str]:
    """The statements that make a table without rows."""
    typed = ", ".join(f"{identifier(each)} {DUCKDB.type_name(type_)}" for each, type_ in columns.items())
    return [f"CREATE TEMP TABLE {_stored(name)} ({typed})", _view(name)]


def filled_table(name: str, raw: str, columns: Sequence[RawColumn]) -> list[str]:
    """The statements that make a table of registered arrays."""
    return [
        f"CREATE TEMP TABLE {_stored(name)} AS SELECT {_values(columns)} FROM {identifier(raw)}",
        _view(name),
    ]


def versions(name: str, raw: str, columns: Sequence[RawColumn], version: str) -> tuple[list[str], str]:
    """The statements that make a table of many versions, of which it shows the first; `version` is the array
    of their numbers. And the statement that shows another, whose number is its parameter.
    """
    all_of_it = identifier(f"privsql versions {name}")
    numbered = f"CAST({identifier(version)} AS INTEGER) AS {_VERSION}"
    shown = (
        f"CREATE OR REPLACE TEMP TABLE {_stored(name)} AS "
        f"SELECT * EXCLUDE ({_VERSION}) FROM {all_of_it} WHERE {_VERSION} = "
    )
    made = f"CREATE TEMP TABLE {all_of_it} AS SELECT {_values(columns)}, {numbered} FROM {identifier(raw)}"
    return [made, f"{shown}0", _view(name)], f"{shown}?"


def describe(sql: str) -> str:
    """The statement that names the columns of another, with their types."""
    return f"DESCRIBE {sql}"


def _stored(name: str) -> str:
    return identifier(f"privsql {name}")


def _view(name: str) -> str:
    return f"CREATE TEMP VIEW {identifier(name)} AS SELECT * FROM {_stored(name)}"


def _values(columns: Sequence[RawColumn]) -> str:
    return ", ".join(f"{_value(each)} AS {identifier(each.name)}" for each in columns)


def _value(column: RawColumn) -> str:
    """DuckDB takes NaN in an array for NULL, which it is not."""
    cases = [] if column.missing is None else [f"WHEN {identifier(column.missing)} THEN NULL"]
    cases += [] if column.nan is None else [f"WHEN {identifier(column.nan)} THEN CAST('NaN' AS DOUBLE)"]
    value = identifier(column.values)
    if column.type.kind is Kind.LIST:
        value = f"CAST({value} AS JSON)"
    chosen = f"CASE {' '.join(cases)} ELSE {value} END" if cases else value
    return f"CAST({chosen} AS {DUCKDB.type_name(column.type)})"
