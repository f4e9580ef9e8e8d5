"""The tables that pass between engine, noise and results: exact ones, which only noise/ may open, and noisy
ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.types import Kind, Type

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExactTable:
    """Rows as the engine returned them: key columns (masked where NULL) and integer columns. It never leaves
    noise/.
    """

    exact_keys: Mapping[str, Any]
    exact_columns: Mapping[str, Integers]

    def __repr__(self) -> str:
        return "ExactTable(not shown)"


@dataclass(frozen=True)
class NoisyTable:
    """One number per cell and measured column; `cells` are the positions of the cells in the public key
    space.

    If keys were not declared, `keys` are those that were released, and the cells are simply numbered.
    """

    cells: Integers
    noisy_columns: Mapping[str, Integers]
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShrunkTable(NoisyTable):
    """What a release shows. `unbiased`: the same cells before they were improved, whose errors are known."""

    unbiased: NoisyTable


@dataclass(frozen=True)
class NullLast(Sequence[Any]):
    """A sequence of values followed by NULL, without copying the values: key sets may be large."""

    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values) + 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        place = range(len(self))[index]
        return None if place == len(self.values) else self.values[place]


_DTYPES: dict[Kind, Any] = {
    Kind.INTEGER: np.int64,
    Kind.DOUBLE: np.float64,
    Kind.BOOLEAN: np.bool_,
    Kind.DATE: "datetime64[us]",
    Kind.TIMESTAMP: "datetime64[us]",
}


def as_array(values: Any, type_: Type) -> Any:
    """Values of one type as an array, masked if any of them is NULL; this is how DuckDB returns results."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    if isinstance(values, NullLast):
        known = as_array(values.values, type_)
        data = np.empty(len(known) + 1, dtype=known.dtype)
        data[:-1] = known
        data[-1] = "" if known.dtype == object else np.zeros(1, dtype=known.dtype)[0]
        return np.ma.array(data, mask=np.arange(len(data)) == len(known))
    listed = list(values)
    dtype = _DTYPES.get(type_.kind, object)
    missing = [value is None for value in listed]
    if any(missing):
        filler = next((value for value in listed if value is not None), 0 if dtype is not object else "")
        listed = [filler if value is None else value for value in listed]
    if dtype is np.int64 and any(abs(value) >= 2**63 for value in listed):
        dtype = object
    array = np.empty(len(listed), dtype=object) if dtype is object else np.array(listed, dtype=dtype)
    if dtype is object:
        array[:] = listed
    return np.ma.array(array, mask=missing) if any(missing) else array
