"""A plan and a plain DuckDB connection go in; exact cells come out and, for two neighbours, how far apart
they are by every norm of every measurement.

Anyone can falsify a plan this way. Nothing that the plan says is believed: its SQL is run as it stands, an
absent key counts as 0, and the changes are compared with the claimed l1, linf, l2 and span of scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb

from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.plan import Plan
from privsql.planning.release_plan import ValueStatement
from privsql.privacy.quantile_steps import Step

Cells = dict[tuple[Any, ...], dict[str, int]]

_BY_VARIANCE = (Mechanism.GAUSSIAN, Mechanism.KEYS_GAUSSIAN)  # their scale depends on delta, too


class NotAsPromised(ValueError):
    """The result of the plan's SQL does not have the promised form."""


@dataclass(frozen=True)
class Movement:
    """How far apart two neighbours are in one measurement, by one norm, and the most that was claimed."""

    measurement: int
    norm: str  # l1, linf, l2 squared, span of scores
    found: Fraction
    claimed: Fraction

    @property
    def passed(self) -> bool:
        return self.found > self.claimed

    @property
    def ratio(self) -> Fraction:
        return self.found / self.claimed if self.claimed else Fraction(self.found > 0) * 10**9


def movements(plan: Plan, base: Cells, other: Cells) -> Iterator[Movement]:
    """The distance of two neighbours, by every measurement and every norm."""
    for index, measurement in enumerate(plan.measurements):
        changes = differences(base, other, measured_columns(measurement))
        yield Movement(index, "l1", Fraction(sum(map(abs, changes))), Fraction(measurement.l1))
        yield Movement(index, "linf", Fraction(max(map(abs, changes), default=0)), Fraction(measurement.linf))
        squares = Fraction(sum(change * change for change in changes))
        yield Movement(index, "l2 squared", squares, Fraction(measurement.sensitivity.l2_squared))
        if isinstance(measurement, QuantileMeasurement):
            for moved, paid in score_spans(measurement, base, other):
                yield Movement(index, "span of scores", moved, paid)


def both_ways(plan: Plan, base: Cells, other: Cells) -> Iterator[tuple[int, list[int]]]:
    """Measurements that claim to be monotone, but whose cells both rise and fall, with the changes."""
    for index, measurement in enumerate(plan.measurements):
        changes = differences(base, other, measured_columns(measurement))
        if measurement.sensitivity.monotone and min(changes, default=0) < 0 < max(changes, default=0):
            yield index, changes


def measured_columns(measurement: Measurement) -> tuple[str, ...]:
    """The columns of the exact cells. A histogram of values has one, whatever is searched in it."""
    return measurement.columns[:1] if isinstance(measurement, QuantileMeasurement) else measurement.columns


def differences(one: Cells, two: Cells, columns: Sequence[str]) -> list[int]:
    absent: dict[str, int] = {}
    return [
        two.get(key, absent).get(c, 0) - one.get(key, absent).get(c, 0)
        for key in one.keys() | two.keys()
        for c in columns
    ]


def run_exactly(plan: Plan, connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[str, str]], Cells]:
    """Run plan.statements on plain DuckDB. Returns the names and types of the columns, and the cells by key,
    those of a histogram of values by key and value.
    """
    shape, cells = counted_exactly(plan, connection) if plan.counts else ([], {})
    for statement in plan.of_values:
        cursor = connection.execute(statement.sql)
        names = [each[0] for each in cursor.description or []]
        shape += [(each[0], str(each[1])) for each in cursor.description or []]
        points = plan.measured_by(statement).search.points
        if names != [*plan.keys, "privsql_value", "privsql_rows"]:
            raise NotAsPromised(f"columns are {names}")
        for row in cursor.fetchall():
            *key, value, count = _comparable(row)
            if type(value) is not int or type(count) is not int or not 0 <= value < points or count < 1:
                raise NotAsPromised(f"not the count of a grid point: {value} {count}")
            if (found := (statement.columns, *key, value)) in cells:
                raise NotAsPromised(f"{found} occurs twice")
            cells[found] = {statement.columns[0]: count}
    for statement, sql in zip(plan.of_values, plan.runs[len(plan.runs) - len(plan.of_values) :], strict=True):
        if statement.bins is not None:
            check_bins(statement, connection.execute(sql).fetchall(), cells)
    return shape, cells


def check_bins(statement: ValueStatement, rows: list[tuple[Any, ...]], cells: Cells) -> None:
    """Check that each bin of the shorter form has the rows of the values it stands for."""
    whole: dict[Any, Counter[int]] = {}
    for (columns, *key, value), cell in (
        (key, cell) for key, cell in cells.items() if key and key[0] == statement.columns
    ):
        whole.setdefault((columns, *key), Counter())[value] = cell[statement.columns[0]]
    for row in rows:
        *key, value, width, count = _comparable(row)
        histogram = whole[(statement.columns, *key)]
        if sum(histogram.pop(point, 0) for point in range(value, value + width)) != count:
            raise NotAsPromised(f"a bin and its values have different rows: {row}")
    if any(histogram.total() for histogram in whole.values()):
        raise NotAsPromised("bins leave rows out")


def counted_exactly(plan: Plan, connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[str, str]], Cells]:
    """Run plan.sql, whose measured columns are integers."""
    cursor = connection.execute(plan.sql)
    names = [each[0] for each in cursor.description or []]
    shape = [(each[0], str(each[1])) for each in cursor.description or []]
    counted = [each for each in plan.measurements if not isinstance(each, QuantileMeasurement)]
    measured = [column for each in counted for column in each.columns]
    if names != [*plan.keys, *measured]:
        raise NotAsPromised(f"columns are {names}, not {[*plan.keys, *measured]}")
    cells: Cells = {}
    for row in cursor.fetchall():
        key = tuple(_comparable(row[: len(plan.keys)]))
        values = row[len(plan.keys) :]
        if not all(type(value) is int for value in values):
            raise NotAsPromised(f"not integers: {values}")
        if key in cells:
            raise NotAsPromised(f"the key {key} occurs twice")
        cells[key] = dict(zip(measured, values, strict=True))
    if not plan.keys and len(cells) != 1:
        raise NotAsPromised(f"{len(cells)} rows without GROUP BY")
    return shape, cells


def _comparable(row: Sequence[Any]) -> list[Any]:
    """The row with NaN as text, so that it equals itself."""
    return ["nan" if isinstance(value, float) and math.isnan(value) else value for value in row]


def price_errors(plan: Plan, epsilon: Fraction = Fraction(1)) -> list[str]:
    """Every measurement whose noise does not cover its bounds, and whether the losses exceed epsilon."""
    found = []
    if sum((each.loss for each in plan.measurements), Fraction(0)) > epsilon:
        found.append("PRICE: the measurements cost more than the requested epsilon")
    for each in plan.measurements:
        if isinstance(each, QuantileMeasurement):
            if each.noise_scale * each.loss < score_span(plan, each):
                found.append(f"PRICE: scale {each.scale} at epsilon {each.epsilon} for scores")
            continue
        # when two scores move, the lead of one over the other moves by both changes: together at most l1
        lead = each.linf if each.sensitivity.monotone else min(2 * each.linf, each.l1)
        factor = each.l1
        if isinstance(each, SelectionMeasurement) and not each.in_groups and "noisy-max" in each.mechanism:
            factor = each.picks * lead
        if each.mechanism not in _BY_VARIANCE and each.noise_scale * each.loss < factor:
            found.append(f"PRICE: scale {each.scale} at epsilon {each.epsilon} for {factor}")
    return found


def score_spans(
    measurement: QuantileMeasurement, base: Cells, other: Cells
) -> Iterator[tuple[Fraction, Fraction]]:
    """For each step over all rows of a cell: how far the points' distances from the target rank moved apart,
    over all cells, and the span that was paid for.
    """
    column, search = measurement.columns[0], measurement.search
    histograms: dict[Any, tuple[Counter[int], Counter[int]]] = {}
    for side, cells in enumerate((base, other)):
        for key, cell in cells.items():
            if column in cell and key[0] == measurement.columns:
                histograms.setdefault(key[1:-1], (Counter(), Counter()))[side][key[-1]] = cell[column]
    for level in search.levels:
        for step in (step for step in level if step.below is None and step.above is None and not step.parts):
            moved = sum((_moved(*each, step) for each in histograms.values()), Fraction(0))
            yield moved, search.change.span([step])


def _moved(one: Counter[int], two: Counter[int], step: Step) -> Fraction:
    """The length of the interval in which the changes of points' distances from the target rank lie, between
    two histograms of values.
    """
    points = {near for value in (*one, *two) for near in (value - 1, value, value + 1)}
    changes = [_away(one, step, point) - _away(two, step, point) for point in points]
    changes.append(_too_few(one, step) - _too_few(two, step))
    return max(changes) - min(changes)


def _too_few(histogram: Counter[int], step: Step) -> Fraction:
    """The distance of "undetermined", the candidate that stands for too few rows."""
    share = Fraction(1) if step.margin else max(step.fraction, 1 - step.fraction)
    return histogram.total() * share


def _away(histogram: Counter[int], step: Step, point: int) -> Fraction:
    rows = histogram.total()
    target = step.fraction * rows
    if step.margin:
        target = (
            max(target, Fraction(step.margin))
            if 2 * step.fraction < 1
            else min(target, Fraction(rows - step.margin))
        )
    below = sum(count for value, count in histogram.items() if value < point)
    return max(Fraction(0), below - target, target - below - histogram[point])


def score_span(plan: Plan, measurement: QuantileMeasurement) -> Fraction:
    """How far one person can move the scores of two values apart, from the l1 of the histogram.

    An added or removed row moves a score by at most max(f, 1 - f) either way, a score of MIN or MAX by 1 one
    way; within a single cell, a replaced row moves it by 1. The score of "undetermined" moves with the number
    of rows, by as much as any.
    """
    total = Fraction(0)
    for level in measurement.search.levels:
        ends = [step.fraction in (0, 1) and not step.margin for step in level]
        come = sorted(
            Fraction(1) if end else Fraction(2) if s.margin else 2 * max(s.fraction, 1 - s.fraction)
            for s, end in zip(level, ends, strict=True)
        )
        if plan.neighbours == "replace-one" and not plan.keys:
            total += Fraction(measurement.l1, 2) * max(Fraction(1 if all(ends) else 2), sum(come[-2:]))
        else:
            total += measurement.l1 * come[-1]
    return total
