"""Columns of values goes in; arrays come out that DuckDB reads without guessing, and how to read them.

Numbers, moments and texts go as they are; what numpy has no type for goes as text. NULL and NaN, which DuckDB
takes for each other in an array, are marked by arrays of their own.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from privsql.render.sandbox_tables import RawColumn
from privsql.tables import as_array
from privsql.types import Kind, Type

Column = tuple[Any, Type]  # values (an array, masked where NULL, or a sequence), and their type
Table = Mapping[str, Column]

_PLAIN: Mapping[Kind, str] = {
    Kind.DOUBLE: "float64",
    Kind.BOOLEAN: "bool",
    Kind.DATE: "datetime64[us]",
    Kind.TIMESTAMP: "datetime64[us]",
}


def encoded(table: Table) -> tuple[list[RawColumn], dict[str, Any]]:
    """The columns of a table, and their arrays by name."""
    columns: list[RawColumn] = []
    arrays: dict[str, Any] = {}
    for number, (name, (values, type_)) in enumerate(table.items()):
        data, missing = _filled(as_array(values, type_), type_)
        nan = np.isnan(data) & ~missing if data.dtype.kind == "f" else np.zeros(0, dtype=bool)
        column = RawColumn(
            name,
            type_,
            f"v{number}",
            f"m{number}" if missing.any() else None,
            f"n{number}" if nan.any() else None,
        )
        arrays[column.values] = data
        arrays |= {} if column.missing is None else {column.missing: missing}
        arrays |= {} if column.nan is None else {column.nan: nan}
        columns.append(column)
    return columns, arrays


def stacked(changing: Sequence[Mapping[str, Table]]) -> dict[str, tuple[Table, Any]]:
    """The versions of each table one behind the other, with the number of the version of every row."""
    found: dict[str, tuple[Table, Any]] = {}
    for name in changing[0] if changing else ():
        tables = [version[name] for version in changing]
        columns: dict[str, Column] = {}
        lengths = np.zeros(len(tables), dtype=np.int64)
        for column, (_, type_) in tables[0].items():
            parts = [as_array(table[column][0], type_) for table in tables]
            lengths = np.array([len(each) for each in parts])
            columns[column] = np.ma.concatenate(parts), type_  # type: ignore[no-untyped-call]
        found[name] = columns, np.repeat(np.arange(len(tables), dtype=np.int32), lengths)
    return found


def _filled(values: Any, type_: Type) -> tuple[Any, Any]:
    """An array without gaps, and where the gaps were."""
    data = np.ma.getdata(values)
    missing = np.ma.getmaskarray(values).copy() if len(data) else np.zeros(0, dtype=bool)
    if data.dtype.kind == "O":
        missing |= np.fromiter((each is None for each in data), dtype=bool, count=len(data))
    elif data.dtype.kind in "mM":
        missing |= np.isnat(data)
    plain = _PLAIN.get(type_.kind)
    if type_.kind is Kind.INTEGER and not type_.is_wide:
        plain = "int64"
    if plain is not None:
        zero = np.zeros(1, dtype=plain)[0]
        if data.dtype.kind == "O":
            known = [zero if gap else each for each, gap in zip(data, missing, strict=True)]
            return np.array(known, dtype=plain), missing
        return np.where(missing, zero, data.astype(plain)), missing
    written = _TEXTS.get(type_.kind, str)
    texts = ["" if gap else written(each) for each, gap in zip(data.tolist(), missing, strict=True)]
    whole = np.empty(len(texts), dtype=object)
    whole[:] = texts
    return whole, missing


def _interval(value: dt.timedelta | int) -> str:
    if isinstance(value, dt.timedelta):
        return f"{(value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds} microseconds"
    return f"{value} microseconds"


def _list(values: Sequence[Any]) -> str:
    return json.dumps(values.tolist() if isinstance(values, np.ndarray) else list(values), default=_element)


def _element(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)


def _decimal(value: Decimal | int | float) -> str:
    return format(value if isinstance(value, Decimal) else Decimal(str(value)), "f")


_TEXTS: Mapping[Kind, Callable[[Any], str]] = {
    Kind.DECIMAL: _decimal,
    Kind.TIME: lambda value: str(value.isoformat()),
    Kind.INTERVAL: _interval,
    Kind.LIST: _list,
}
