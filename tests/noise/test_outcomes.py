"""One step of a search for quantiles: every outcome that can be drawn, and its weight, against the definition; nothing is drawn.

`draw` (tests/noise/test_runs.py) chooses a position of a run by its weight. Here it is made to choose each position once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privsql.noise import quantile_sampler
from privsql.noise.histograms import Histograms
from privsql.noise.quantile_rows import CountedRows, Cut, Mass, target_of
from privsql.noise.quantile_sampler import _Problem
from privsql.noise.runs import Runs
from privsql.privacy.quantile_steps import Step
from tests.noise.statistics import SOURCE

RATE = Fraction(2, 3)
POINTS, SHIFT, FINE = 3, 2, 4
END = POINTS * FINE
DOUBLINGS = 6


@dataclass(frozen=True)
class Cell:
    """Rows at each point of the grid, and the points of the finer grid between which it is sought."""

    rows: tuple[int, ...]
    low: int = 0
    high: int = END

    def below(self, point: int) -> Fraction:
        """The mass below a point of the finer grid: a row is spread evenly over the finer points of its value."""
        return sum(
            many * Fraction(min(max(point - value * FINE, 0), FINE), FINE)
            for value, many in enumerate(self.rows)
        )

    def target(self, step: Step) -> Fraction:
        low, high = self.below(self.low), self.below(self.high)
        target = low + step.fraction * (high - low)
        if step.margin and step.fraction == 0:
            return max(target, Fraction(step.margin))
        return min(target, sum(self.rows) - Fraction(step.margin)) if step.margin else target

    def undetermined(self, step: Step) -> dict[int, tuple[int, Fraction]]:
        """Of a step over all rows, a candidate at -1, as many rows away as there are, or so large a share of them."""
        share = Fraction(1) if step.margin else max(step.fraction, 1 - step.fraction)
        return {-1: (-DOUBLINGS, RATE * share * sum(self.rows))}

    def parted(self, step: Step) -> dict[int, tuple[int, Fraction]]:
        """Each point that may come out of a step that parts the rows: how often its weight is halved, and its exponent."""
        candidates = range(self.low, min(self.high, END - 1) + 1)
        return {point: (0, RATE * abs(self.below(point) - self.target(step))) for point in candidates}

    def chosen(self, step: Step) -> dict[int, tuple[int, Fraction]]:
        """The same of a step that does not, where rows at a point may be on either side of the target."""
        found, target, zones = {}, self.target(step), step.zones(POINTS)
        for value in range(self.low // FINE, min(self.high // FINE, POINTS - 1) + 1):
            below, up_to = sum(self.rows[:value]), sum(self.rows[: value + 1])
            zone = sum(1 for start in zones[1:] if (value >= start if step.lean > 0 else value < start))
            found[value] = zone, RATE * max(Fraction(0), below - target, target - up_to)
        return found


def histograms_of(cells: Sequence[Cell], bins: Sequence[tuple[int, int]] = ()) -> Histograms:
    """Value by value, or in bins (start, width) with the values behind them."""
    entries = bins or [(value, 1) for value in range(POINTS)]
    counted = [
        [(start, sum(cell.rows[start : start + width]), width) for start, width in entries] for cell in cells
    ]
    kept = [[each for each in some if each[1]] for some in counted]
    values, counts, widths = (
        np.array([row[i] for some in kept for row in some], dtype=np.int64) for i in range(3)
    )
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in kept])]).astype(np.int64)
    return Histograms(offsets, values, counts, *((widths, lambda: histograms_of(cells)) if bins else ()))


def mass(masses: Sequence[Fraction]) -> Mass:
    whole, part = zip(*(divmod(int(each * FINE), FINE) for each in masses), strict=True)
    return Mass(np.array(whole, dtype=np.int64), np.array(part, dtype=np.int64))


def problem(cells: Sequence[Cell], step: Step, bins: Sequence[tuple[int, int]] = ()) -> _Problem:
    whole = all((cell.low, cell.high) == (0, END) for cell in cells)
    rows = CountedRows.of(histograms_of(cells, bins), POINTS, SHIFT)
    low, high = (Cut(np.array(points), mass([cell.below(point) for cell, point in zip(cells, points, strict=True)]))
                 for points in ([cell.low for cell in cells], [cell.high for cell in cells]))  # fmt: skip
    target = target_of(step, low.mass, high.mass, FINE)
    for number, cell in enumerate(cells):
        unit = step.fraction.denominator * FINE
        assert target.whole[number] + Fraction(int(target.part[number]), unit) == cell.target(step), (
            cell,
            step,
        )
    laid = rows.marked(step) if step.lean else rows
    return _Problem(laid, low, high, target, RATE, step, DOUBLINGS if whole else None)


def outcomes(
    cells: Sequence[Cell], step: Step, take: Callable[[_Problem], Any], monkeypatch: pytest.MonkeyPatch,
    bins: Sequence[tuple[int, int]] = (),
) -> tuple[list[tuple[Cell, int, int, Fraction]], Any]:  # fmt: skip
    """Each cell once for each of its positions, with halvings and exponent of that; and what the step then gives for them."""
    seen: list[Runs] = []
    listed: list[tuple[Cell, int, int, Fraction]] = []
    places: list[tuple[int, int]] = []  # which run of its cell, and the position in it

    def all_of_them(runs: Runs, _: Any) -> tuple[Any, Any]:
        if not seen:
            seen.append(runs)
            ends = itertools.pairwise(runs.offsets)
            first = [int(start + np.flatnonzero(runs.lengths[start:stop])[0]) for start, stop in ends]
            return np.array(first), np.zeros(len(first), dtype=np.int64)
        return runs.offsets[:-1] + [run for run, _ in places], np.array([position for _, position in places])

    monkeypatch.setattr(quantile_sampler, "draw", all_of_them)
    take(problem(cells, step, bins))
    (runs,) = seen
    for number, cell in enumerate(cells):
        start = int(runs.offsets[number])
        for run in range(start, int(runs.offsets[number + 1])):
            base, slope = runs.exact(run)
            assert abs(runs.base[run] - base) < 1e-9
            assert abs(runs.slope[run] - slope) < 1e-9
            for position in range(int(runs.lengths[run])):
                halved = int(runs.halvings[run]) if runs.halvings.size else 0
                exponent = base + slope * position
                if runs.rough[run]:  # what is proposed must be no lighter
                    least, (halved, exponent) = (halved, exponent), runs.at(run, position)
                    assert least[0] <= halved
                    assert least[1] <= exponent
                listed.append((cell, number, halved, exponent))
                places.append((run - start, position))
    return listed, take(problem([each[0] for each in listed], step, bins))


FULL = [
    Cell(rows)
    for rows in ((0, 0, 0), (1, 0, 0), (0, 3, 0), (0, 0, 1), (3, 1, 0), (0, 1, 3), (1, 0, 1), (1, 7, 2))
]
CUT = [Cell(rows, low, high) for rows, low, high in [
    ((0, 5, 0), 0, 5), ((0, 5, 0), 5, 7), ((0, 5, 0), 6, END), ((1, 7, 2), 3, 6), ((1, 7, 2), 6, 6), ((2, 2, 2), 4, 8),
    ((2, 2, 2), 7, 11), ((3, 0, 1), 1, 3), ((3, 0, 1), 3, 9), ((0, 0, 9), 8, END), ((0, 0, 0), 3, 8), ((4, 0, 0), 0, 0),
]]  # fmt: skip
NOBODY = [Cell((0, 0, 0))]
BINS = [(), [(0, 2), (2, 1)], [(0, 1), (1, 2)]]


@pytest.mark.parametrize("bins", BINS, ids=str)
@pytest.mark.parametrize("fraction", [Fraction(1, 2), Fraction(3, 4), Fraction(1, 3), Fraction(1)], ids=str)
def test_a_step_that_splits_the_rows(fraction, bins, monkeypatch):
    """Each point between the ends comes out once, with its weight; and the mass below it is known exactly."""
    step = Step(0, fraction, parts=True)
    for cells in (FULL, CUT, NOBODY):
        listed, cut = outcomes(cells, step, lambda each: each.part(SOURCE), monkeypatch, bins)
        assert found_in(listed, cut.point) == {
            number: cell.parted(step) | ({} if cells is CUT else cell.undetermined(step))
            for number, cell in enumerate(cells)
        }
        for (cell, *_), point, whole, part in zip(
            listed, cut.point, cut.mass.whole, cut.mass.part, strict=True
        ):
            assert int(whole) + Fraction(int(part), FINE) == cell.below(int(point))
            assert 0 <= part < FINE


def found_in(
    listed: list[tuple[Cell, int, int, Fraction]], points: Any
) -> dict[int, dict[int, tuple[int, Fraction]]]:
    found: dict[int, dict[int, tuple[int, Fraction]]] = {}
    for (_, number, halved, exponent), point in zip(listed, points, strict=True):
        assert point not in found.setdefault(number, {})
        found[number][int(point)] = halved, exponent
    return found


STEPS = [
    Step(0, Fraction(1, 2)), Step(0, Fraction(2, 3)), Step(0, Fraction(0)), Step(0, Fraction(1)),
    Step(0, Fraction(0), margin=2), Step(0, Fraction(1), margin=2),
    Step(0, Fraction(1), lean=1), Step(0, Fraction(0), lean=-1), Step(0, Fraction(1, 20), lean=-1),
]  # fmt: skip


@pytest.mark.parametrize("bins", BINS, ids=str)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.fraction}-{step.margin}-{step.lean}")
def test_a_step_that_does_not_split_the_rows(step, bins, monkeypatch):
    for cells in (FULL, NOBODY) if step.margin or step.lean else (FULL, CUT, NOBODY):
        listed, points = outcomes(cells, step, lambda each: each.choose(SOURCE), monkeypatch, bins)
        assert found_in(listed, points) == {
            number: cell.chosen(step) | ({} if cells is CUT else cell.undetermined(step))
            for number, cell in enumerate(cells)
        }


def test_the_ends_of_the_rows():
    rows = CountedRows.of(histograms_of(FULL), POINTS, SHIFT)
    for cut, point, many in (
        (rows.start, 0, [0] * len(FULL)),
        (rows.end, END, [sum(cell.rows) for cell in FULL]),
    ):
        assert cut.point.tolist() == [point] * len(FULL)
        assert cut.mass.whole.tolist() == many
        assert not cut.mass.part.any()


@pytest.mark.parametrize("shift", [1, 9, 26])
@pytest.mark.parametrize("denominator", [1, 3, 999_983])
def test_the_target_is_found_among_many_rows(shift, denominator):
    """At the quotient, rounded up, exactly: also where that is a hair above or below a whole number."""
    fine, step = 1 << shift, Step(0, Fraction(1, denominator), parts=True)
    cases = []
    tried = [*itertools.product((1, 2, 3, 1000, 2**36 - 1, 2**36), {1, fine // 3 + 1, fine - 1, fine}, (-1, 0, 1)),
             (9_517_279_135, 63_787_096, 1), (14_058_502_867, 53_878_114, 0)]  # floats are off to either side  # fmt: skip
    for tied, point, hair in tried:
        parts = tied * point * denominator + hair  # of a row, (denominator * fine)-ths
        if 0 < parts <= tied * fine * denominator:
            cases.append((tied, parts))
    many = len(cases)
    whole, part = zip(*(divmod(parts, denominator * fine) for _, parts in cases), strict=True)
    rows = replace(CountedRows.of(histograms_of(NOBODY), POINTS, SHIFT), shift=shift)
    one = _Problem(rows, rows.start, rows.end, Mass(np.array(whole) + 5, np.array(part)), RATE, step)
    found = one._turn_within(np.arange(many), np.full(many, 5), np.array([tied for tied, _ in cases]))
    assert found.tolist() == [-(-parts // (tied * denominator)) for tied, parts in cases]
