"""Histograms of some cells go in; the number of rows below any point, and the target of a quantile,
come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privsql.noise.histograms import MOST, Histograms
from privsql.privacy.quantile_steps import Step
from privsql.tables import Integers


@dataclass(frozen=True)
class Mass:
    """A number of rows in every cell: whole rows, and parts of one more."""

    whole: Integers
    part: Integers


@dataclass(frozen=True)
class Cut:
    """A point of the finer grid in every cell, and the mass below it: whole rows, and parts of one row, one
    part per point.
    """

    point: Integers
    mass: Mass


@dataclass(frozen=True)
class CountedRows:
    """The values of some cells, with the number of rows (of all cells) before each of them."""

    exact: Histograms
    points: int
    shift: int
    codes: Integers  # cell * points + value
    widths: Integers
    counts: Integers
    before: Integers  # one entry longer than the values
    start: Cut
    end: Cut

    @staticmethod
    def of(exact: Histograms, points: int, shift: int) -> CountedRows:
        sizes = np.diff(exact.offsets)
        codes = np.repeat(np.arange(exact.cells, dtype=np.int64) * points, sizes) + exact.values
        widths = np.ones_like(codes) if exact.widths is None else exact.widths
        counts = np.minimum(exact.counts, MOST)
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        none = np.zeros(exact.cells, dtype=np.int64)
        all_rows = Mass(before[exact.offsets[1:]] - before[exact.offsets[:-1]], none)
        start, end = Cut(none, Mass(none, none)), Cut(none + (points << shift), all_rows)
        return CountedRows(exact, points, shift, codes, widths, counts, before, start, end)

    @property
    def fine(self) -> int:
        """Points of the finer grid per value."""
        return 1 << self.shift

    @cached_property
    def value_by_value(self) -> CountedRows:
        return CountedRows.of(self.exact.value_by_value(), self.points, self.shift)

    def marked(self, step: Step) -> CountedRows:
        """The same, with an empty entry where a zone begins, unless the zone begins inside an entry."""
        marks = np.array(step.zones(self.points)[1:], dtype=np.int64)
        codes = (np.arange(self.exact.cells, dtype=np.int64)[:, None] * self.points + marks).ravel()
        places = np.searchsorted(self.codes, codes, side="left")  # before an entry of the same value
        ends = np.concatenate([np.zeros(1, dtype=np.int64), self.codes + self.widths])
        free = ends[places] <= codes
        codes, places = codes[free], places[free]
        further = np.searchsorted(codes, np.arange(self.exact.cells + 1, dtype=np.int64) * self.points)
        exact = replace(
            self.exact,
            offsets=self.exact.offsets + further,
            values=np.insert(self.exact.values, places, codes % self.points),
            counts=np.insert(self.counts, places, 0),
            widths=np.insert(self.widths, places, 0),
        )
        return CountedRows.of(exact, self.points, self.shift)

    def at(self, cell: int, value: int) -> tuple[int, int]:
        """How many rows of a cell are below a value, and how many have it."""
        entry = int(np.searchsorted(self.codes, cell * self.points + value))
        before = int(self.before[entry] - self.before[self.exact.offsets[cell]])
        found = entry < int(self.exact.offsets[cell + 1]) and int(self.exact.values[entry]) == value
        return before, int(self.counts[entry]) if found else 0


def target_of(step: Step, low: Mass, high: Mass, fine: int) -> Mass:
    """low + fraction (high - low), exactly, in whole rows and (denominator * fine)-ths of one; moved by the
    margin for MIN or MAX.
    """
    if step.margin:
        rows = np.full_like(high.whole, step.margin) if step.fraction == 0 else high.whole - step.margin
        return Mass(rows, np.zeros_like(rows))
    above, below = step.fraction.numerator, step.fraction.denominator
    whole, part = high.whole - low.whole, high.part - low.part
    whole, part = np.where(part < 0, whole - 1, whole), np.where(part < 0, part + fine, part)
    quotient, rest = whole // below, whole % below
    parts = (rest * above % below) * fine + part * above + low.part * below  # below 3 * 10^6 * 2^26
    rows = low.whole + quotient * above + rest * above // below + parts // (below * fine)
    return Mass(rows, parts % (below * fine))
