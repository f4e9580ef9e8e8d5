"""A distribution over cells goes in; rows come out: as many in each cell as it says, up to rounding, with
values drawn from their cells.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsql.noise.randomness import Randomness
from privsql.planning.marginals.column_cells import OTHER, ColumnCells
from privsql.release.rows.dense_fit import Dense
from privsql.release.shrinkage import Floats
from privsql.tables import Integers
from privsql.types import Kind

_INT64 = np.iinfo(np.int64)
_WIDEST = 2**62  # of a part of whole numbers
_MICROSECOND = dt.timedelta(microseconds=1)


def systematic_counts(table: Dense, rows: int, start: float) -> Integers:
    """How many of the rows each cell gets: row i is where the running total of shares passes i + start.

    Each cell gets its expected number, rounded up or down; so does every run of neighbouring cells, so that
    errors do not add up as those of independent draws do.
    """
    ends = np.cumsum(table.reshape(-1), dtype=np.float64)
    ends *= rows / ends[-1]
    passed = np.floor(ends + start).astype(np.int64)
    passed[-1] = rows
    return np.diff(passed, prepend=0)


def uniform(count: int, source: Randomness) -> Floats:
    """Numbers between 0 and 1. What is drawn here is drawn after the noise, and protects nobody."""
    words = source.integers(2 * count).astype(np.float64)
    found: Floats = (words[::2] + words[1::2] / 2**32) / 2**32
    return found


def rows_of(counts: Integers, sizes: Sequence[int], source: Randomness) -> list[Integers]:
    """The cell of every row, column by column, in random order."""
    cells = np.repeat(np.arange(len(counts)), counts)
    cells = cells[np.argsort(uniform(len(cells), source))]
    return [each.astype(np.int64) for each in np.unravel_index(cells, tuple(sizes))]


def column_values(cells: ColumnCells, codes: Integers, source: Randomness) -> pd.Series[Any]:
    """A value for each row, of the column's type: a declared value, or a number or date within its part."""
    return _values(cells, codes, uniform(len(codes), source) if cells.edges else np.zeros(len(codes)))


def can_be_drawn(cells: ColumnCells) -> bool:
    """Whether every cell of a column has a value to draw, which is to be known before anything is charged."""
    if cells.column.type.kind is Kind.INTEGER:
        numbers = cells.edges[:-1] if cells.edges else cells.values
        wide = any(after - before > _WIDEST for before, after in pairwise(cells.edges))
        if wide or not all(_INT64.min <= each <= _INT64.max for each in numbers):
            return False
    codes = np.arange(cells.size, dtype=np.int64)
    try:
        with np.errstate(over="raise", invalid="raise"):
            _values(cells, codes, np.full(len(codes), 0.5))
    except (TypeError, ValueError, ArithmeticError):
        return False
    return True


def _values(cells: ColumnCells, codes: Integers, where: Floats) -> pd.Series[Any]:
    missing = (codes >= cells.listed) & (codes < cells.listed + cells.null)
    other = codes >= cells.listed + cells.null
    inside = np.minimum(codes, cells.listed - 1)
    if not cells.edges:
        return _of_values(cells, inside, missing, other)
    drawn = _within_part(cells, inside, where)
    return _typed(cells, drawn, missing)


def _of_values(
    cells: ColumnCells, inside: Integers, missing: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]
) -> pd.Series[Any]:
    """Declared values. Of undeclared texts only is a row shown as such; others are NULL."""
    known = np.empty(cells.listed, dtype=object)
    known[:] = list(cells.values)
    values = known[inside]
    is_text = cells.column.type.kind is Kind.TEXT
    values[other] = OTHER if is_text else None
    values[missing] = None
    gone = missing if is_text else missing | other
    if is_text:
        return pd.Series(values, dtype=object)
    filler = cells.values[0]
    return _typed(cells, np.where(gone, filler, values), gone)


def _within_part(cells: ColumnCells, inside: Integers, where: Floats) -> npt.NDArray[Any]:
    """A value within each row's part of the range, uniformly."""
    match cells.column.type.kind:
        case Kind.INTEGER:
            drawn = _whole_within(cells.edges, inside, where)
            type_ = cells.column.type  # edges may lie beyond it
            return np.clip(drawn, max(type_.low, _INT64.min), min(type_.high, _INT64.max))
        case Kind.DATE:
            drawn = _whole_within([each.toordinal() for each in cells.edges], inside, where)
            return np.array([dt.date.fromordinal(int(each)) for each in drawn], dtype=object)
        case Kind.TIMESTAMP:
            first = cells.edges[0]
            ticks = [(each - first) // _MICROSECOND for each in cells.edges]
            drawn = _whole_within(ticks, inside, where)
            return np.datetime64(first, "us") + drawn.astype("timedelta64[us]")
        case _:
            ends = np.array([float(each) for each in cells.edges])
            low, high = ends[:-1][inside], ends[1:][inside]
            found: Floats = np.clip(low * (1 - where) + high * where, low, high)  # high - low may overflow
            return found


def _whole_within(edges: Sequence[int], inside: Integers, where: Floats) -> Integers:
    """Whole numbers from the lower edge of a part to below its upper edge."""
    starts = np.array(edges[:-1], dtype=np.int64)
    widths = np.array([max(1, after - before) for before, after in pairwise(edges)], dtype=np.int64)
    steps = np.floor(where * widths[inside]).astype(np.int64)
    found: Integers = starts[inside] + np.minimum(steps, widths[inside] - 1)
    return found


def _typed(cells: ColumnCells, values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pd.Series[Any]:
    """A series of the column's type, with NULL where values are missing."""
    found: pd.Series[Any]
    nullable = cells.null or cells.other
    match cells.column.type.kind:
        case Kind.INTEGER if nullable:  # whole numbers beside NULL would become floats
            return pd.Series(pd.arrays.IntegerArray(values.astype(np.int64), missing.copy()))
        case Kind.BOOLEAN if nullable:
            return pd.Series(pd.arrays.BooleanArray(values.astype(np.bool_), missing.copy()))
        case Kind.INTEGER:
            found = pd.Series(values.astype(np.int64))
        case Kind.BOOLEAN:
            found = pd.Series(values.astype(np.bool_))
        case Kind.DATE | Kind.TIME:
            found = pd.Series(values, dtype=object)
        case Kind.TIMESTAMP:
            found = pd.Series(values.astype("datetime64[us]"))
        case Kind.DECIMAL:
            type_ = cells.column.type
            most = (10**type_.precision - 1) / 10**type_.scale
            found = pd.Series(np.clip(np.round(values.astype(np.float64), type_.scale), -most, most))
        case _:
            found = pd.Series(values.astype(np.float64))
    masked: pd.Series[Any] = found.mask(pd.Series(missing))
    return masked if missing.any() else found
