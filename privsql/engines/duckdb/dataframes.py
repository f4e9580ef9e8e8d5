"""Data frames of pandas, Arrow and Polars go in and are checked; public or noisy values come out as
columns.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from privsql.errors import SourceError
from privsql.names import repeated_name
from privsql.tables import as_array
from privsql.types import Kind, Type

_UNREAD = (pd.PeriodDtype, pd.SparseDtype, pd.IntervalDtype)


def is_frame(value: Any) -> bool:
    """Whether the value is a pandas, Arrow or Polars table; the latter two are recognised by name, without
    importing them.
    """
    if isinstance(value, pd.DataFrame):
        return True
    module, name = type(value).__module__.split(".")[0], type(value).__name__
    return (module, name) in {("pyarrow", "Table"), ("polars", "DataFrame"), ("polars", "LazyFrame")}


def checked_frame(frame: Any) -> Any:
    """The frame, if SQL can name its columns and its values fit their types: otherwise a query would fail
    after its charge.
    """
    if not isinstance(frame, pd.DataFrame):
        frame = frame.collect() if hasattr(frame, "collect") else frame
        if hasattr(frame, "validate"):  # an Arrow table, whose text bytes nobody has checked
            try:
                frame.validate(full=True)
                _check_decimals(frame)
                _check_instants(frame)
            except ValueError:
                raise _ill_formed() from None
        _refuse_repeated([str(name) for name in getattr(frame, "column_names", None) or frame.columns])
        return frame
    if isinstance(frame.columns, pd.MultiIndex):
        raise SourceError(
            "source-columns",
            "the frame has several levels of column names",
            "flatten them: df.columns = [...]",
        )
    if not all(isinstance(name, str) for name in frame.columns):
        raise SourceError(
            "source-columns", "some column names are not strings", "df.columns = df.columns.astype(str)"
        )
    _refuse_repeated(list(frame.columns))
    if len(frame.columns) == 0:
        raise SourceError("source-columns", "the frame has no columns", "give a frame with columns")
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, _UNREAD) or (isinstance(dtype, np.dtype) and dtype.kind == "c"):
            raise SourceError(
                "source-frame",
                f"DuckDB cannot read column {name}: SQL has no type for {type(dtype).__name__}",
                f"convert it with df.astype, or leave it out: df.drop(columns=[{name!r}])",
            )
    # DuckDB guesses the type of an object column from its values, so one person could change it: treat it as
    # text
    objects = [name for name, dtype in frame.dtypes.items() if dtype == "object"]
    try:
        frame = frame.astype(dict.fromkeys(objects, "str")) if objects else frame
        for name, dtype in frame.dtypes.items():
            if isinstance(dtype, pd.ArrowDtype):
                frame[name].array.__arrow_array__().validate(full=True)
            # without pyarrow nobody has checked that these are valid UTF-8
            elif getattr(dtype, "storage", None) == "python":
                frame[name].str.encode("utf-8")
            elif isinstance(dtype, pd.DatetimeTZDtype):  # DuckDB reads it in microseconds, whatever its unit
                frame[name].astype(pd.DatetimeTZDtype("us", dtype.tz))
        return frame
    except Exception:  # noqa: BLE001 -- an object may have any text or none, and the reason may show it
        raise _ill_formed() from None


def _check_decimals(table: Any) -> None:
    """Raise ValueError if a DECIMAL has more digits than its type allows. Arrow does not check that, and
    DuckDB exports HUGEINT as such a DECIMAL.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for field in table.schema if isinstance(table, pa.Table) else ():
        if pa.types.is_decimal(field.type):
            ends = pc.min_max(table[field.name]).as_py().values()
            most = Decimal(10) ** (field.type.precision - field.type.scale)
            if any(end is not None and end.copy_abs() >= most for end in ends):  # abs() would round
                raise ValueError("a DECIMAL has too many digits")


def _check_instants(table: Any) -> None:
    """Raise ValueError if an instant does not fit into microseconds, in which DuckDB reads it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for field in table.schema if isinstance(table, pa.Table) else ():
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit in ("s", "ms"):
            pc.cast(table[field.name], pa.timestamp("us", field.type.tz))


def _refuse_repeated(names: list[str]) -> None:
    """Raise SourceError for a repeated name: DuckDB would silently rename the second column, and a policy
    that names it would mean the first.
    """
    repeated = repeated_name(names)
    if repeated is not None:
        raise SourceError(
            "source-columns",
            f"the frame has more than one column called {repeated}: names are not case-sensitive",
            "rename one of them",
        )


def _ill_formed() -> SourceError:
    return SourceError(
        "source-frame",
        "the frame has values that do not fit their column's type, for example invalid UTF-8",
        "clean them, or leave the column out",
    )


def snapshot(frame: Any) -> Any:
    """The frame as it is now: pandas copies on later writes, Arrow and Polars never write in place."""
    return frame.copy(deep=False) if isinstance(frame, pd.DataFrame) else frame


def required_columns(frame: Any) -> frozenset[str]:
    """Columns whose dtype has no room for NULL: numpy's whole numbers and booleans. Dtypes are public, as
    schemas are.
    """
    if not isinstance(frame, pd.DataFrame):
        return frozenset()
    return frozenset(
        str(name)
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, np.dtype) and dtype.kind in "iub"
    )


def same_data(snapshot: pd.DataFrame, frame: pd.DataFrame) -> bool:
    """Whether a frame still is its snapshot. Writing to a frame makes pandas copy the columns that a snapshot
    shares, so equal memory means equal content; a column whose memory cannot be seen counts as changed.
    """
    if (
        len(snapshot) != len(frame)
        or not snapshot.columns.equals(frame.columns)
        or not isinstance(frame.columns, pd.Index)
    ):
        return False
    if list(snapshot.dtypes) != list(frame.dtypes):
        return False
    for position in range(len(frame.columns)):
        one, two = _memory(snapshot.iloc[:, position]), _memory(frame.iloc[:, position])
        if one is None or one != two:
            return False
    return True


def _memory(column: pd.Series[Any]) -> tuple[Any, ...] | None:
    """Where a column's values lie in memory and, for categories, their labels; None where that is hidden."""
    if isinstance(column.dtype, np.dtype):
        return (_address(column.to_numpy(copy=False)),)
    array = column.array
    if isinstance(array, pd.Categorical):
        return (_address(array.codes), *array.categories)
    masked = [getattr(array, name, None) for name in ("_data", "_mask")]  # nullable numbers and booleans
    if all(isinstance(each, np.ndarray) for each in masked):
        return tuple(_address(each) for each in masked)
    inner = getattr(array, "_ndarray", None)  # moments with a time zone, texts without pyarrow
    if isinstance(inner, np.ndarray):
        return (_address(inner),)
    if hasattr(array, "__arrow_array__"):
        try:
            chunks = array.__arrow_array__()
        except (ImportError, TypeError, ValueError):
            return None
        pieces = getattr(chunks, "chunks", [chunks])
        return tuple(buffer.address for piece in pieces for buffer in piece.buffers() if buffer is not None)
    return None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def list_of(values: Any, type_: Type) -> list[Any]:
    """Public values as a list of parameters for DuckDB; types that Python lacks are passed as text."""
    array = as_array(values, type_)
    if array.dtype != object:
        return list(array.tolist())
    return [
        None if missing else str(each)
        for each, missing in zip(np.ma.getdata(array), np.ma.getmaskarray(array), strict=True)
    ]


def column_of(values: Any, type_: Type) -> Any:
    """Public or noisy values as a column that DuckDB reads without guessing: a plain array where no value is
    NULL.
    """
    array = as_array(values, type_)
    if not isinstance(array, np.ma.MaskedArray) and array.dtype != object:
        return array
    listed = [
        None if missing else value
        for value, missing in zip(np.ma.getdata(array), np.ma.getmaskarray(array), strict=True)
    ]
    match type_.kind:
        case Kind.INTEGER if all(each is None or abs(int(each)) < 2**63 for each in listed):
            return pd.array(listed, dtype="Int64")
        case Kind.BOOLEAN:
            return pd.array(listed, dtype="boolean")
        case Kind.DATE | Kind.TIMESTAMP:
            return np.array(
                [np.datetime64("NaT") if v is None else v for v in listed], dtype="datetime64[us]"
            )
        case Kind.DOUBLE:
            return np.array([np.nan if v is None else v for v in listed], dtype=np.float64)
        case _:
            return pd.array([None if each is None else str(each) for each in listed], dtype="str")
