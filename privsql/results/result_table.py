"""Columns go in; a pandas frame, Arrow, Polars or rows come out: what every answer has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsql.results.extras import arrow_table, optional, unwritable

_NAT = np.datetime64("NaT")
_FIRST, _END = np.datetime64("0001-01-01", "us"), np.datetime64("10000-01-01", "us")
_INFINITY = 2**63 - 1  # microseconds, as DuckDB stores it


class ResultTable(ABC):
    """The columns of an answer, in every form that a person may want them in."""

    arrays: tuple[Any, ...]  # one per column, masked where NULL

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    @abstractmethod
    def types(self) -> tuple[str, ...]:
        """The SQL types of the columns, such as "BIGINT"."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The answer as a pandas frame, made on first use."""
        names, columns = self.columns, [_column(array) for array in self.arrays]
        if len(set(names)) == len(names):  # pandas takes as long to make another index as all the rest
            return pd.DataFrame(dict(zip(names, columns, strict=True)))
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index(names)
        return frame

    def df(self) -> pd.DataFrame:
        """The answer as a pandas frame.

        Returns:
            A new frame, which the caller may change.

        Example:
            >>> answer.df().shape
            (2, 2)
        """
        return self.frame.copy()

    def arrow(self) -> Any:
        """The answer as a pyarrow Table (extra: privsql[arrow]).

        Returns:
            A pyarrow.Table.

        Raises:
            ArgumentError: pyarrow is not installed.

        Example:
            >>> answer.arrow().column_names
            ['state', 'n']
        """
        return arrow_table(self._dated())

    def pl(self) -> Any:
        """The answer as a Polars frame (extra: privsql[arrow]).

        Returns:
            A polars.DataFrame.

        Raises:
            ArgumentError: polars is not installed.

        Example:
            >>> answer.pl().columns
            ['state', 'n']
        """
        return optional("polars", "arrow").from_arrow(self.arrow())

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file (extra: privsql[arrow]).

        Arguments:
            path: where to write it.

        Raises:
            ArgumentError: the file cannot be written, or pyarrow is not installed.

        Example:
            >>> answer.to_parquet("answer.parquet")
        """
        write = optional("pyarrow.parquet", "arrow").write_table
        try:
            write(self.arrow(), path)
        except OSError:
            raise unwritable() from None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The answer for any library that reads Arrow, such as DuckDB, Polars or pandas, without a copy."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as tuples.

        Returns:
            A list of tuples, with NULL as None.

        Example:
            >>> [state for state, _ in answer.fetchall()]
            ['CA', 'NY']
        """
        frame = self._dated()
        columns = [
            [None if _is_null(value) else value for value in frame.iloc[:, index].tolist()]
            for index in range(frame.shape[1])
        ]
        return list(zip(*columns, strict=True))

    def _dated(self) -> pd.DataFrame:
        """The frame with DATE columns as dates, where pandas has only timestamps; those beyond the calendar
        are text.
        """
        frame = self.frame.copy()
        for index, type_name in enumerate(self.types):
            if type_name == "DATE" and frame.dtypes.iloc[index].kind == "M":
                dates = [None if pd.isna(each) else each.date() for each in frame.iloc[:, index]]
                frame.isetitem(index, np.array(dates, dtype=object))
        return frame


def _column(array: Any) -> Any:
    """A column for pandas, with NULL as NA in integers, NaN in other numbers, NaT in moments, None
    elsewhere. Moments are text where one of them is infinite, or in no year from 1 to 9999.
    """
    if array.dtype.kind == "M" and _beyond_calendar(array):
        return np.array([_moment_text(each) for each in np.ma.filled(array, _NAT)], dtype=object)
    if not isinstance(array, np.ma.MaskedArray):
        return array
    missing = np.ma.getmaskarray(array)
    if array.dtype.kind in "iu":  # Int64: large integers would change as floats
        return pd.arrays.IntegerArray(np.ma.getdata(array).astype(np.int64), missing.copy())
    if array.dtype.kind == "f":
        return np.where(missing, np.nan, array.data.astype(np.float64))
    if array.dtype.kind == "M":
        return array.filled(_NAT)
    values = array.data.astype(object)
    values[missing] = None
    return values


def _beyond_calendar(array: Any) -> bool:
    """Whether Python has no date for one of these moments."""
    moments = np.ma.filled(array, _NAT).astype("datetime64[us]")
    known = moments[~np.isnat(moments)]
    return bool(((known < _FIRST) | (known >= _END)).any())


def _moment_text(value: np.datetime64) -> str | None:
    if np.isnat(value):
        return None
    microseconds = int(value.astype("datetime64[us]").astype(np.int64))
    if abs(microseconds) == _INFINITY:
        return "infinity" if microseconds > 0 else "-infinity"
    return str(value).replace("T", " ").removesuffix(".000000").removesuffix(" 00:00:00")


def _is_null(value: Any) -> bool:
    return (
        value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    )
