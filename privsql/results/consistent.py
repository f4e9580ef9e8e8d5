"""A plan and its noisy cells go in; the value of every aggregate comes out, with intervals.

With grouping sets there is noise on every level, and least squares makes the levels agree; integers are
rounded together, so that they still add up. On request, impossible values (counts below 0, parts larger than
their whole) are moved to the nearest possible ones. All of this uses noisy and public numbers only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privsql.planning.aggregates.estimate import Estimate, weighted
from privsql.planning.aggregates.sums import Linear
from privsql.planning.plan import Plan
from privsql.planning.precision.interval_arithmetic import Floats, Interval, Mask
from privsql.planning.precision.noise_of_rows import alike_rows, noisy_columns, times_of
from privsql.privacy.least_squares import fitted, rounded
from privsql.privacy.projections import (
    PartsOfWhole,
    nonnegative_cells,
    onto_relations,
    onto_simplex,
    whole_nonnegative,
    whole_within,
)
from privsql.privacy.weighted_sums import Noise, variance
from privsql.tables import Integers, NoisyTable

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Settled:
    """The noisy cells of a plan, and everything computed from them alone."""

    plan: Plan
    noisy: NoisyTable

    @cached_property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """The value of each aggregate, row by row."""
        plan = self.plan
        found = {name: self._value(how) for name, how in plan.estimates.items()}
        if plan.nonnegative or plan.consistent:
            found |= self._projected()
        return found

    def _value(self, how: Estimate) -> npt.NDArray[Any]:
        levels = self.plan.levels
        if levels is None or not isinstance(how, Linear):
            return how.value(self._columns)
        cells = weighted(how.terms, self._cells)
        return levels.whole_sums(rounded(levels, cells)) if how.whole else levels.sums(cells)

    # -- as asked: what could be true ------------------------------------------------------------------------
    def _projected(self) -> dict[str, npt.NDArray[Any]]:
        """Counts and sums, moved to possible values."""
        plan = self.plan
        linear = {name: how for name, how in plan.estimates.items() if isinstance(how, Linear)}
        signed = {name for name, how in linear.items() if not (plan.nonnegative and how.nonnegative)}
        if plan.levels is not None:
            return {name: self._nonnegative(how) for name, how in linear.items() if name not in signed}
        moved = {name: weighted(how.terms, self.noisy.noisy_columns) for name, how in linear.items()}
        for name in moved.keys() - signed:
            moved[name] = onto_simplex(moved[name], float(moved[name].sum()))
        whole: dict[str, npt.NDArray[Any]] = {}
        if plan.consistent and plan.relations:
            whole = self._related(moved)
        for name in moved.keys() - whole.keys() - signed:
            whole[name] = whole_nonnegative(moved[name]) if linear[name].whole else moved[name]
        return whole

    def _nonnegative(self, how: Linear) -> npt.NDArray[Any]:
        levels = self.plan.levels
        assert levels is not None
        times = times_of(self.plan, noisy_columns(self.plan)[how.columns[0]])
        measured = weighted(how.terms, self.noisy.noisy_columns)
        cells = nonnegative_cells(levels, times, measured, weighted(how.terms, self._cells))
        return levels.whole_sums(whole_nonnegative(cells, levels.order)) if how.whole else levels.sums(cells)

    def _related(self, moved: Mapping[str, Floats]) -> dict[str, npt.NDArray[Any]]:
        """Counts, moved so that parts fit into their wholes."""
        (kind,) = alike_rows(self.plan)
        names = sorted({name for each in self.plan.relations for name in (*each.parts, each.whole)})
        place = {name: index for index, name in enumerate(names)}
        relations = [
            PartsOfWhole(tuple(place[part] for part in each.parts), place[each.whole], each.exactly)
            for each in self.plan.relations
        ]
        noise = {column: variance(law) for column, law in kind.noise.items()}
        variances = [self.plan.estimates[name].squared_error(noise) for name in names]
        together = np.array([moved[name] for name in names])
        fitting = whole_within(
            onto_relations(together, variances, relations, self.plan.nonnegative), relations
        )
        return dict(zip(names, fitting, strict=True))

    # -- several sets of keys --------------------------------------------------------------------------------
    @cached_property
    def _cells(self) -> dict[str, Floats]:
        """The cells of each column, fitted to the measurements of all levels."""
        levels, noisy = self.plan.levels, self.noisy.noisy_columns
        assert levels is not None
        columns = noisy_columns(self.plan)
        return {
            name: fitted(levels, times_of(self.plan, each), noisy[name].astype(np.float64))
            for name, each in columns.items()
        }

    @cached_property
    def _columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """The noisy columns, row by row; fitted if there are several levels."""
        if self.plan.levels is None:
            return self.noisy.noisy_columns
        return {name: self.plan.levels.sums(cells) for name, cells in self._cells.items()}

    def intervals(self, hows: Mapping[Key, Estimate], level: float) -> dict[Key, Interval]:
        """Intervals, each of which covers the exact value with at least this probability, row by row."""
        size = len(self.noisy.cells)
        found = {name: Interval(np.empty(size), np.empty(size)) for name in hows}
        for rows, columns, noise in self._alike():
            for name, how in hows.items():
                part = how.interval(columns, noise, level)
                found[name].low[rows], found[name].high[rows] = part.low, part.high
        return {name: self._with_shown(name, each) for name, each in found.items()}

    def undetermined(self, hows: Mapping[Key, Estimate]) -> dict[Key, Mask]:
        """Where each estimate is undetermined, row by row."""
        found = {name: np.zeros(len(self.noisy.cells), dtype=np.bool_) for name in hows}
        for rows, columns, noise in self._alike():
            for name, how in hows.items():
                found[name][rows] = how.undetermined(columns, noise)
        return found

    def _alike(
        self,
    ) -> Iterator[tuple[Integers | slice, Mapping[str, npt.NDArray[Any]], Mapping[str, Noise]]]:
        """Rows with equal noise, with their noisy columns and that noise."""
        for kind in alike_rows(self.plan):
            rows = slice(None) if kind.rows is None else kind.rows
            yield rows, {name: values[rows] for name, values in self._columns.items()}, kind.noise

    def _with_shown(self, name: Hashable, found: Interval) -> Interval:
        """The interval widened to include the shown value, without negative values where none are
        possible.
        """
        plan = self.plan
        if plan.levels is None and not plan.nonnegative and not plan.consistent:
            return found
        how = plan.estimates.get(name) if isinstance(name, str) else None
        low, high = found.low, found.high
        if plan.nonnegative and how is not None and how.nonnegative:
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        if isinstance(name, tuple):  # one count divided by another
            part, whole = (self.values[each].astype(np.float64) for each in name)
            shown = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole != 0.0)
        else:
            shown = self.values[str(name)].astype(np.float64)
        return Interval(np.fmin(low, shown), np.fmax(high, shown))
