"""Columns go in; the same columns come out as a pandas frame, Arrow, Polars or rows: what every answer has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsql.results.extras import optional


class ResultTable(ABC):
    """The columns of an answer, in every form that a person may want them in."""

    arrays: tuple[Any, ...]  # one per column, masked where NULL

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    @abstractmethod
    def dates(self) -> tuple[bool, ...]:
        """Which columns are DATE: pandas has only timestamps."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The answer as a pandas frame, made on first use."""
        columns = {index: _series(array) for index, array in enumerate(self.arrays)}
        frame = pd.DataFrame(columns, copy=False)  # df() returns copies
        frame.columns = pd.Index(self.columns)
        return frame

    def df(self) -> pd.DataFrame:
        """A pandas frame; the caller owns it."""
        return self.frame.copy()

    def arrow(self) -> Any:
        """A pyarrow Table (extra: privsql[arrow])."""
        table = optional("pyarrow", "arrow").Table
        return table.from_pandas(self._dated(), preserve_index=False)

    def pl(self) -> Any:
        """A Polars frame (extra: privsql[arrow])."""
        return optional("polars", "arrow").from_arrow(self.arrow())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Rows as tuples, with NULL as None."""
        frame = self._dated()
        columns = [
            [None if _is_null(value) else value for value in frame.iloc[:, index].tolist()]
            for index in range(frame.shape[1])
        ]
        return list(zip(*columns, strict=True))

    def _dated(self) -> pd.DataFrame:
        """The frame with DATE columns as dates, where pandas has only timestamps."""
        frame = self.frame.copy()
        for index, is_date in enumerate(self.dates):
            if is_date:
                dates = [None if pd.isna(each) else each.date() for each in frame.iloc[:, index]]
                frame.isetitem(index, np.array(dates, dtype=object))
        return frame


def _series(array: Any) -> pd.Series[Any]:
    """A pandas series, with NULL as NA in integers, NaN in other numbers, NaT in moments, None elsewhere."""
    if not isinstance(array, np.ma.MaskedArray):
        return pd.Series(array)
    if array.dtype.kind in "iu":  # Int64: large integers would change as floats
        return pd.Series(
            pd.arrays.IntegerArray(np.ma.getdata(array).astype(np.int64), np.ma.getmaskarray(array).copy())
        )
    if array.dtype.kind == "f":
        return pd.Series(np.where(np.ma.getmaskarray(array), np.nan, array.data.astype(np.float64)))
    if array.dtype.kind == "M":
        return pd.Series(array.filled(np.datetime64("NaT")))
    return pd.Series(
        [
            None if gone else value
            for value, gone in zip(array.data.tolist(), np.ma.getmaskarray(array), strict=True)
        ]
    )


def _is_null(value: Any) -> bool:
    return (
        value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    )
