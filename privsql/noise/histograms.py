"""Rows of (cell, value, count) go in, in any order; each cell's values come out in order, with their
counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsql.tables import Integers

MOST = 2**36
"""A count of one value in one cell is clamped to this, so that all numbers computed from counts fit into 64
bits. Clamping is 1-Lipschitz: adding or removing a row still changes the count by at most one.
"""


@dataclass(frozen=True)
class Histograms:
    """Cell k has values[offsets[k] : offsets[k + 1]], rising, each with the number of its rows.

    A value may stand for several points: itself and those that follow. Then `whole` returns the histograms
    value by value.
    """

    offsets: Integers
    values: Integers
    counts: Integers
    widths: Integers | None = None  # None: one point each
    whole: Callable[[], Histograms] | None = None

    @property
    def cells(self) -> int:
        return len(self.offsets) - 1

    def some(self, first: int, last: int) -> Histograms:
        start, stop = int(self.offsets[first]), int(self.offsets[last])
        return Histograms(
            self.offsets[first : last + 1] - start,
            self.values[start:stop],
            self.counts[start:stop],
            None if self.widths is None else self.widths[start:stop],
            None if self.whole is None else lambda: self.value_by_value().some(first, last),
        )

    def value_by_value(self) -> Histograms:
        assert self.whole is not None
        return self.whole()


def histograms(
    cells: int,
    points: int,
    exact_cells: Integers,
    exact_values: Integers,
    exact_counts: Integers,
    exact_widths: Integers | None = None,
    whole: Callable[[], Histograms] | None = None,
) -> Histograms:
    """Sort rows of (cell, value, count); rows of the same cell and value add up."""
    codes = exact_cells * points + np.clip(exact_values, 0, points - 1)
    order = np.argsort(codes, kind="stable")
    codes, exact_counts = codes[order], exact_counts[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    counts = np.add.reduceat(exact_counts, first) if len(first) else exact_counts
    codes = codes[first]
    offsets = np.searchsorted(codes, np.arange(cells + 1, dtype=np.int64) * points).astype(np.int64)
    if exact_widths is None:
        return Histograms(offsets, codes % points, counts)
    if whole is not None and (counts > MOST).any():
        return whole()  # the clamp is defined value by value, not bin by bin
    widths = np.minimum(exact_widths[order][first], points - codes % points)
    return Histograms(offsets, codes % points, counts, widths, whole)
