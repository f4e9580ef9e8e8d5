"""Sorted grid values with counts, cell by cell, and a search go in; the grid points of its quantiles come
out, noisy.

What is drawn, and why it is private, is in privacy/quantile_steps.py; this draws it exactly. Between two
values that occur all points are equally far from the target, so they are one run; on the finer grid the
points of one value are two runs, below and above the target, along which the distance grows evenly. A row is
one 64-bit number of a histogram: nothing here takes time for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.noise.histograms import Histograms
from privsql.noise.quantile_rows import CountedRows, Cut, Mass, target_of
from privsql.noise.randomness import Randomness
from privsql.noise.runs import Runs, draw
from privsql.privacy.quantile_search import Search
from privsql.privacy.quantile_steps import Step
from privsql.tables import Integers

Bools = npt.NDArray[np.bool_]

_ENTRIES = 2**20  # values of so many cells at a time: bounds the memory


def quantiles(exact: Histograms, search: Search, source: Randomness) -> list[Integers]:
    """For each quantile of the search, by place, a grid point in every cell; -1 - v where it is undetermined,
    v being a point that a cell without rows might have. Both kinds rise from quantile to quantile.
    """
    if not exact.cells:
        return [np.zeros(0, dtype=np.int64) for _ in search.steps]
    marks = max(len(step.zones(search.points)) for step in search.steps) - 1
    parts = [
        _some_quantiles(exact.some(first, last), search, source) for first, last in _batches(exact, marks)
    ]
    return list(_in_order(np.concatenate(parts, axis=1)))


def _in_order(noisy: Integers) -> Integers:
    """Free of cost: in order they are never further off."""
    if not (noisy < 0).any():
        return np.sort(noisy, axis=0)
    result = noisy
    for some in (noisy >= 0, noisy < 0):
        known = np.sort(
            np.where(some, np.where(noisy < 0, -1 - noisy, noisy), np.iinfo(np.int64).max), axis=0
        )
        rising = np.take_along_axis(known, np.maximum(np.cumsum(some, axis=0) - 1, 0), axis=0)
        result = np.where(some, np.where(noisy < 0, -1 - rising, rising), result)
    return result


def _batches(exact: Histograms, marks: int) -> Iterator[tuple[int, int]]:
    """Some cells after the others; `marks` are put beside the values of each."""
    first = 0
    while first < exact.cells:
        reach = int(exact.offsets[first]) + _ENTRIES
        last = max(first + 1, int(np.searchsorted(exact.offsets, reach, side="right")) - 1)
        last = min(last, first + _ENTRIES // (1 + marks) + 1, exact.cells)
        yield first, last
        first = last


def _some_quantiles(exact: Histograms, search: Search, source: Randomness) -> Integers:
    """A row for each quantile, a column for each cell."""
    noisy = _drawn(exact, search, source, roots=True)
    without = np.flatnonzero((noisy < 0).any(axis=0))
    if without.size:
        none = np.zeros(0, dtype=np.int64)
        empty = Histograms(np.zeros(without.size + 1, dtype=np.int64), none, none)
        noisy[:, without] = np.where(
            noisy[:, without] < 0, -1 - _drawn(empty, search, source, roots=False), noisy[:, without]
        )
    return noisy


def _drawn(exact: Histograms, search: Search, source: Randomness, roots: bool) -> Integers:
    """-1 where a quantile is undetermined, which can only be where `roots` have that candidate."""
    rows = CountedRows.of(exact, search.points, search.shift)
    cuts: dict[int, Cut] = {}
    points: dict[int, Integers] = {}  # of undetermined ones -1
    for level in search.levels:
        for step in level:
            low = rows.start if step.below is None else cuts[step.below]
            high = rows.end if step.above is None else cuts[step.above]
            target = target_of(step, low.mass, high.mass, rows.fine)
            laid = rows.marked(step) if step.lean else rows
            doublings = search.doublings(step) if roots and step.root else None
            problem = _Problem(laid, low, high, target, search.rate, step, doublings)
            if step.parts:
                cut = problem.part(source)
                cuts[step.place], found = (
                    replace(cut, point=np.maximum(cut.point, 0)),
                    cut.point >> rows.shift,
                )
            else:
                found = problem.choose(source)
            for side in (step.below, step.above):
                found = found if side is None else np.where(points[side] < 0, -1, found)
            points[step.place] = found
    return np.stack([points[place] for place in sorted(points)])


@dataclass(frozen=True)
class _Runs:
    """The runs of a problem: for each value between its ends the points before it and its own; at last, those
    behind.
    """

    cell: Integers
    kind: Integers
    entry: Integers  # the value, or the one behind the points
    before: Integers  # rows of the cell below that value
    start: Integers  # of the points
    stop: Integers
    offsets: Integers
    gap: Bools  # points without rows
    rough: Bools  # several points that have rows, it is not known which

    @property
    def last(self) -> Integers:
        """The last one of each cell."""
        return self.offsets[1:] - 1


@dataclass(frozen=True)
class _Problem:
    """In every cell a point between two cuts, near a target of so many rows and (denominator * fine)-ths of
    one.

    `doublings`: there is one candidate more, "undetermined" at -1, of this weight; None: there is not.
    """

    rows: CountedRows
    low: Cut
    high: Cut
    target: Mass
    rate: Fraction
    step: Step
    doublings: int | None = None

    @property
    def denominator(self) -> int:
        return self.step.fraction.denominator

    def choose(self, source: Randomness) -> Integers:
        """Of the grid. The rows tied at a point are below it or not as the target would have it."""
        lower = self.low.point >> self.rows.shift
        upper = np.minimum(self.high.point >> self.rows.shift, self.rows.points - 1)
        runs = self._laid_out(lower, upper, 2, 0)
        tied = np.where(runs.gap, 0, self._of(self.rows.counts, runs.entry))
        first, lengths = runs.start, np.maximum(runs.stop - runs.start, 0)
        weighed = self._weighed(runs, lengths, *self._nearest(runs, tied), np.zeros_like(tied))
        # of a bin, where it weighs most
        halvings = self._halvings(first if self.step.lean > 0 else runs.stop - 1)

        def at(run: int, position: int) -> tuple[int, Fraction]:
            value = int(first[run]) + position
            below, have = self.rows.value_by_value.at(int(runs.cell[run]), value)
            target = self._rank(int(runs.cell[run]))
            away = max(Fraction(0), below - target, target - below - have)
            return int(self._halvings(np.array([value]))[0]), self.rate * away

        if self.doublings is not None:
            halvings[runs.last] = -self.doublings
        chosen, position = draw(replace(weighed, rough=runs.rough, at=at, halvings=halvings), source)
        return first[chosen] + position

    def _halvings(self, values: Integers) -> Integers:
        """How often the weights of values are halved, zone by zone."""
        if not self.step.lean:
            return np.zeros_like(values)
        starts = np.array(self.step.zones(self.rows.points))
        zones = np.maximum(np.searchsorted(starts, values, side="right") - 1, 0)
        return zones if self.step.lean > 0 else len(starts) - 1 - zones

    def part(self, source: Randomness) -> Cut:
        """Of the finer grid, where the rows tied at a value lie evenly on its points. No rows are below what
        is undetermined.
        """
        shift, fine = self.rows.shift, self.rows.fine
        upper = np.minimum(self.high.point, (self.rows.points << shift) - 1)
        runs = self._laid_out(self.low.point, upper, 3, shift)
        # whole: points that are all alike, as far as is known
        whole, up = runs.gap | runs.rough, runs.kind == 2
        tied = np.where(runs.gap, 0, self._of(self.rows.counts, runs.entry))
        origin = self._of(self.rows.exact.values, runs.entry) << shift
        first, stop = runs.start - origin, runs.stop - origin
        turn = np.clip(self._turn(runs, tied), first, stop)  # from here on the target is reached
        begin = np.where(up, turn, turn - 1)  # of a run without points, past its end
        lengths = np.where(whole, np.where(up, 0, stop - first), np.where(up, stop - turn, turn - first))
        slope = np.where(whole, 0, tied)
        product = slope * begin
        sign, mass = self._nearest(runs, tied)
        sign = np.where(whole, sign, np.where(up, 1, -1))
        mass = Mass(
            np.where(whole, mass.whole, runs.before + (product >> shift)),
            np.where(whole, 0, product & fine - 1),
        )
        weighed = self._weighed(runs, np.maximum(lengths, 0), sign, mass, slope)

        def below(run: int, point: int) -> int:
            """The mass below a point of the finer grid, in parts."""
            before, have = self.rows.value_by_value.at(int(runs.cell[run]), point >> shift)
            return (before << shift) + have * (point & fine - 1)

        def at(run: int, position: int) -> tuple[int, Fraction]:
            found = Fraction(below(run, int(runs.start[run]) + position), fine)
            return 0, self.rate * abs(found - self._rank(int(runs.cell[run])))

        halvings = np.zeros_like(runs.start)
        if self.doublings is not None:
            halvings[runs.last] = -self.doublings
        chosen, position = draw(replace(weighed, rough=runs.rough & ~up, at=at, halvings=halvings), source)
        inside = begin[chosen] + position * sign[chosen]
        point = np.where(whole[chosen], runs.start[chosen] + position, origin[chosen] + inside)
        product = slope[chosen] * inside
        found = Mass(runs.before[chosen] + (product >> shift), product & fine - 1)
        for cell in np.flatnonzero(runs.rough[chosen]):
            found.whole[cell], found.part[cell] = divmod(below(int(chosen[cell]), int(point[cell])), fine)
        return Cut(point, found)

    def _nearest(self, runs: _Runs, tied: Integers) -> tuple[Integers, Mass]:
        """On which side of the target the rows at some points are, 0 where it is among them, and the end that
        is nearer.
        """
        none = np.zeros_like(tied)
        beyond = self._reaches(runs.cell, runs.before, none)
        short = ~self._reaches(runs.cell, runs.before + tied, none)
        sign, mass = (
            np.where(beyond, 1, np.where(short, -1, 0)),
            np.where(beyond, runs.before, runs.before + tied),
        )
        if self.doublings is not None:
            sign[runs.last], mass[runs.last] = self._recoiled()
        return sign, Mass(mass, none)

    def _recoiled(self) -> tuple[int, Integers]:
        """The same of "undetermined", at a distance of recoil times the rows: that from the target to one of
        their ends.
        """
        rows = self.rows.end.mass.whole
        if self.step.margin:
            return 1, self.target.whole + rows
        return (1, rows) if 2 * self.step.fraction < 1 else (-1, np.zeros_like(rows))

    def _rank(self, cell: int) -> Fraction:
        """The target of a cell."""
        unit = self.denominator * self.rows.fine
        return Fraction(int(self.target.whole[cell]) * unit + int(self.target.part[cell]), unit)

    def _laid_out(self, lower: Integers, upper: Integers, per: int, shift: int) -> _Runs:
        """All runs from `lower` to `upper` (both among them), cell after cell; each ends with that of
        "undetermined", if any.
        """
        rows, cells = self.rows, self.rows.exact.cells
        base = np.arange(cells, dtype=np.int64) * rows.points
        first = np.searchsorted(rows.codes + rows.widths, base + (lower >> shift), side="right")
        last = np.searchsorted(rows.codes, base + (upper >> shift), side="right")
        sizes = per * (last - first) + (1 if self.doublings is None else 2)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        cell = np.repeat(np.arange(cells, dtype=np.int64), sizes)
        within = np.arange(int(offsets[-1]), dtype=np.int64) - offsets[cell]
        entry, kind = first[cell] + within // per, within % per
        before = rows.before[entry] - rows.before[rows.exact.offsets[:-1]][cell]
        if self.doublings is not None:
            kind[offsets[1:] - 1] = before[offsets[1:] - 1] = 0
        gap, width = kind == 0, self._of(rows.widths, entry)
        value = self._of(rows.exact.values, entry) << shift
        behind = (self._of(rows.exact.values, entry - 1) + self._of(rows.widths, entry - 1)) << shift
        start = np.where(gap, np.where(within < per, lower[cell], behind), np.maximum(value, lower[cell]))
        end = upper[cell] + 1
        stop = np.where(
            gap, np.where(entry == last[cell], end, value), np.minimum(value + (width << shift), end)
        )
        if self.doublings is not None:
            start[offsets[1:] - 1], stop[offsets[1:] - 1] = -1, 0
        return _Runs(cell, kind, entry, before, start, stop, offsets, gap, ~gap & (width > 1))

    def _of(self, column: Integers, entry: Integers) -> Integers:
        """Values or counts; some number where there is none."""
        return column[np.clip(entry, 0, len(column) - 1)] if len(column) else np.zeros_like(entry)

    def _reaches(self, cell: Integers, whole: Integers, part: Integers) -> Any:
        """Whether a mass reaches the target of its cell."""
        target, parts = self.target.whole[cell], self.target.part[cell]
        return (whole > target) | ((whole == target) & (part * self.denominator >= parts))

    def _turn(self, runs: _Runs, tied: Integers) -> Integers:
        """The first point of a value at which the target is reached; of all but one value in a cell that is
        one of the ends.
        """
        fine, none = self.rows.fine, np.zeros_like(tied)
        turn = np.where(self._reaches(runs.cell, runs.before, none), 0, fine)
        within = np.flatnonzero((turn == fine) & self._reaches(runs.cell, runs.before + tied, none))
        turn[within] = self._turn_within(runs.cell[within], runs.before[within], tied[within])
        return turn

    def _turn_within(self, cell: Integers, before: Integers, tied: Integers) -> Integers:
        """The quotient rounded up: as a float it is off by less than one, so that is its floor or one of the
        two behind.
        """
        shift, fine = self.rows.shift, self.rows.fine
        away = (self.target.whole[cell] - before) + self.target.part[cell] / (self.denominator * fine)
        near = np.floor(away * fine / tied).astype(np.int64)
        missed = np.zeros_like(near)
        for point in (near, near + 1):
            product = tied * point
            missed += ~self._reaches(cell, before + (product >> shift), product & fine - 1)
        return near + missed

    def _weighed(self, runs: _Runs, lengths: Integers, sign: Integers, mass: Mass, tied: Integers) -> Runs:
        """Distances sign * (mass - target), growing by tied / fine from point to point, times the rate."""
        fine, unit, rate = self.rows.fine, self.denominator * self.rows.fine, self.rate
        whole = mass.whole - self.target.whole[runs.cell]
        part = mass.part * self.denominator - self.target.part[runs.cell]
        slope = tied.astype(np.float64) * (float(rate) / fine)
        base = float(rate) * (sign * (whole + part / unit))

        def exact(run: int) -> tuple[Fraction, Fraction]:
            distance = Fraction(int(sign[run]) * (int(whole[run]) * unit + int(part[run])), unit)
            return rate * distance, rate * int(tied[run]) / fine

        return Runs(runs.offsets, base, slope, lengths, exact)
