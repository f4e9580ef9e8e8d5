"""MEDIAN, quantiles, MIN and MAX go in; measurements of their arguments' values come out, each with its own
statement.

The statement counts the rows of every key and value. Of this histogram nothing is released except the grid
points that the exponential mechanism selects in each key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.algebra.choices import UNIT, kept_up_to, key_rank
from privsql.algebra.describe import describe
from privsql.algebra.exact import (
    NOTHING,
    Earlier,
    Fold,
    Name,
    Operation,
    Over,
    Rows,
    Scalar,
    Select,
    Statement,
    Value,
    WithSteps,
    names,
    op,
    whole,
)
from privsql.algebra.expressions import Aggregate, Expression
from privsql.algebra.relations import Choose, Limits, Release
from privsql.algebra.reserved import ROWS_COLUMN, VALUE_COLUMN
from privsql.analysis.keys import KeySpace
from privsql.errors import Place, Refused
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.estimate import Estimate, Laws, NoisyColumns, RankError
from privsql.planning.aggregates.parts import Part
from privsql.planning.aggregates.release_parts import Named, ReleaseParts
from privsql.planning.grids.grid import LARGEST_VALUE
from privsql.planning.grids.value_grid import ValueGrid, value_grid
from privsql.planning.keys.key_tests import keys_and_tests, limits_on_keys
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.precision.interval_arithmetic import Interval, Mask
from privsql.planning.rewrites.value_bins import FEWEST, Bins
from privsql.privacy.quantile_search import Sought
from privsql.privacy.quantile_steps import Change
from privsql.types import DOUBLE, MOMENTS, Kind

_ALL, _UPTO = "privsql_all", "privsql_upto"  # the rows of a unit in a key, and those up to a value
ORDER = frozenset({"quantile_cont", "quantile_disc", "min", "max"})


@dataclass(frozen=True)
class QuantilePoint(Estimate):
    """A quantile: the value of a grid point. `on` is the kind of the grid, `kind` that of the result.

    Dates count in days, timestamps in microseconds since 1970.
    """

    column: str
    on: Kind
    kind: Kind
    low: Fraction
    step: Fraction
    points: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def high(self) -> Fraction:
        return self.low + self.step * (self.points - 1)

    @property
    def formula(self) -> str:
        return f"the value at {self.column}"

    @property
    def always_within_range(self) -> bool:
        return True

    def value(self, noisy: NoisyColumns) -> npt.NDArray[Any]:
        """The value of each point. p below 0 stands for the point -1 - p, drawn from the prior because there
        are too few rows.
        """
        found = noisy[self.column]
        points = np.where(found < 0, -1 - found, found)
        if self.on in MOMENTS:
            unit = "D" if self.on is Kind.DATE else "us"
            moments = int(self.low) + points * int(self.step)
            return moments.astype(f"datetime64[{unit}]").astype("datetime64[us]")
        if self.kind is Kind.INTEGER:
            return int(self.low) + points * int(self.step)
        # the low end is a multiple of the step, so that 36.6 is 366 / 10 and not 366 * 0.1
        steps = int(self.low / self.step) + points
        return steps.astype(np.float64) * float(self.step.numerator) / float(self.step.denominator)

    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        """The whole range: how far apart ranks are in values depends on the data."""
        size = len(noisy[self.column])
        return Interval(np.full(size, float(self.low)), np.full(size, float(self.high)))

    def undetermined(self, noisy: NoisyColumns, noise: Laws) -> Mask:
        """As the mechanism decided."""
        return np.asarray(noisy[self.column] < 0)

    def squared_error(self, variances: Mapping[str, float]) -> float:
        return variances[self.column]

    def rank_error(self, measurements: Sequence[Measurement], level: float) -> RankError | None:
        measurement = next(each for each in measurements if self.column in each.columns)
        assert isinstance(measurement, QuantileMeasurement)
        search, place = measurement.search, measurement.columns.index(self.column)
        rows = math.ceil(search.rank_error(place, level))
        return RankError(search.rank_text(place), rows, search.rows_needed(place, level))


@dataclass(frozen=True)
class OrderPart(Part):
    """Quantiles of one argument; `where`: which rows count."""

    sought: Sought = field(default_factory=lambda: Sought((), Change(1, False, False), 1))
    grid: ValueGrid = field(default_factory=lambda: ValueGrid(DOUBLE, Fraction(0), Fraction(1), 1))
    value: Scalar = NOTHING
    where: tuple[Scalar, ...] = ()

    @property
    def noise(self) -> float:
        return float(self.sought.at(Fraction(1)).span)


def add_quantiles(found: ReleaseParts) -> None:
    """Add a part for each argument and condition, with a column for every fraction."""
    together: dict[tuple[Expression | None, Expression | None], list[Named]] = {}
    for name, each in found.left:
        if each.function in ORDER:
            together.setdefault((each.argument, each.condition), []).append((name, each))
    for (argument, condition), same in together.items():
        assert argument is not None
        grid = _grid(argument, condition, found.context, same[0][1].place)
        fractions = sorted({_fraction(each) for _, each in same})
        columns = tuple(f"order_{found.number + index}" for index in range(len(fractions)))
        part = _part(argument, condition, columns, tuple(fractions), grid, found.context)
        found.add(
            part,
            {
                name: QuantilePoint(
                    columns[fractions.index(_fraction(each))],
                    grid.type.kind,
                    each.type.kind,
                    grid.low,
                    grid.step,
                    grid.points,
                )
                for name, each in same
            },
        )


def _part(
    argument: Expression,
    condition: Expression | None,
    columns: tuple[str, ...],
    fractions: tuple[Fraction, ...],
    grid: ValueGrid,
    context: AggregationContext,
) -> OrderPart:
    stable = context.stability
    assert stable.rows is not None
    # a person who joins may displace rows of others (adds is false): then rows are not exchanged one for one,
    # even in one cell
    apart = context.key_columns is not None or not stable.adds
    change = Change(max(1, stable.rows), context.neighbours is Neighbours.REPLACE_ONE, apart)
    value = Value(argument)
    tests = [op(Operation.IS_PRESENT, value), *([] if condition is None else [Value(condition)])]
    where = "" if condition is None else f" where {describe(condition)}"
    return OrderPart(
        columns=columns,
        cells=(),
        # as in any histogram, a row counts in one cell of keys and value
        sensitivity=context.bound(
            1, 1, max(2, grid.points), f"values clamped into {grid.text}, counted; a row counts once"
        ),
        what=f"quantiles of {describe(argument)}{where}",
        sought=Sought(fractions, change, grid.points, argument.type.kind not in MOMENTS),
        grid=grid,
        value=value,
        where=tuple(tests),
    )


def _fraction(aggregate: Aggregate) -> Fraction:
    """The fraction of a quantile. MIN and MAX are the first and the last quantile."""
    if aggregate.function in ("min", "max"):
        return Fraction(0 if aggregate.function == "min" else 1)
    fraction = aggregate.parameters[0]
    assert isinstance(fraction, Fraction)
    return fraction


def _grid(
    argument: Expression, condition: Expression | None, context: AggregationContext, place: Place | None
) -> ValueGrid:
    domain = context.domain(argument, condition)
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "a quantile is selected from a known range of values, but the range of its argument is not known",
            context.ways_to_bound(argument, condition),
            place,
        )
    whole = argument.type.kind is Kind.INTEGER
    if whole and not domain.empty and max(abs(domain.low), abs(domain.high)) > LARGEST_VALUE:
        raise Refused(
            "refused-too-large",
            f"quantiles of integers beyond {float(LARGEST_VALUE):.1e} are not supported",
            "use a larger unit (x / 1000), or declare a narrower range",
            place,
        )
    return value_grid(argument.type, domain)


# -- the statements ------------------------------------------------------------------------------------------
def value_bins(
    release: Release | Choose, part: OrderPart, space: KeySpace, limits: Limits | None
) -> Bins | None:
    """The bins of a shorter, faster statement; None if a unit's rows must be bounded together."""
    if limits is not None or part.sought.points < FEWEST:
        return None
    keys, tests = keys_and_tests(release, space)
    return Bins(keys, tests, part.value, part.grid, Rows(release.input), part.where)


def value_statement(
    release: Release | Choose, part: OrderPart, space: KeySpace, limits: Limits | None
) -> Statement:
    """Select keys, grid points and row counts: a row for every declared key and value that occur."""
    keys, tests = keys_and_tests(release, space)
    bounded = limits is not None
    unit = ((UNIT.name, UNIT),) if bounded else ()
    columns = (*unit, *keys, (VALUE_COLUMN, part.grid.place(part.value)))
    cells = Select(
        (*columns, (ROWS_COLUMN, Fold("count"))),
        Rows(release.input, unit=bounded),
        part.where,
        keys=len(columns),
        fenced=bool(tests) and not bounded,
    )
    # drop undeclared keys after grouping, as elsewhere
    declared = Select((), cells, tests, everything=True) if tests else cells
    if limits is None:
        return declared
    return _bounded([key.name for key in release.keys], declared, *limits_on_keys(release, space, limits))


def _bounded(keys: Sequence[str], cells: Select, limits: Limits, ranked: bool) -> WithSteps:
    """Keep at most so many keys of a unit, those with the smallest hash of unit and key, and in each at most
    so many rows, evenly spaced in the order of their values. The choice depends on that unit's rows alone.
    """
    own, value, rows = (UNIT, *map(Name, keys)), Name(VALUE_COLUMN), Name(ROWS_COLUMN)
    steps = [("privsql_units", cells)]
    if ranked:
        rank = key_rank(keys, "dense_rank")
        kept = Select((), Earlier("privsql_units"), ranked=(rank, limits.max_groups), everything=True)
        steps.append(("privsql_kept", kept))
    sums = (
        (_ALL, whole(Over("sum", rows, own))),
        (_UPTO, whole(Over("sum", rows, own, (value,), running=True))),
    )
    steps.append(("privsql_placed", Select(sums, Earlier(steps[-1][0]), everything=True)))
    ends = (Name(_UPTO), Name(_UPTO) - rows)
    after, before = (kept_up_to(end, Name(_ALL), limits.max_rows, own) for end in ends)
    same = names([*keys, VALUE_COLUMN])
    steps.append(
        ("privsql_chosen", Select((*same, (ROWS_COLUMN, after - before)), Earlier("privsql_placed")))
    )
    summed = (ROWS_COLUMN, whole(Fold("sum", rows)))
    some = (op(Operation.GREATER, rows, 0),)
    last = Select((*same, summed), Earlier("privsql_chosen"), some, keys=len(same))
    return WithSteps(tuple((name, step, None) for name, step in steps), last)
