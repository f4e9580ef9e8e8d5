"""The answer of a query with several private parts: what was computed from the answers of its releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsql.errors import PrivsqlError
from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.precision.half_widths import check_level
from privsql.planning.precision.interval_kinds import IntervalKind, box_table
from privsql.results.answer import Answer
from privsql.results.joint_box import BoxResult, level_of_each, read_box, with_ends
from privsql.results.result_table import ResultTable
from privsql.results.simulation import (
    Ends,
    Finish,
    Floats,
    as_floats,
    ends_of_cells,
    is_number,
    rows_of,
    simulate,
    simulated_ends,
    tables_with,
)
from privsql.sql.split.influence import Influence

Tables = Mapping[str, Mapping[str, tuple[Any, Any]]]
_USUAL = 0.95
RunMany = Callable[[str, Tables, Sequence[Tables]], list[list[Any]]]


@dataclass(frozen=True)
class Compute:
    """How SQL is computed over noisy tables: above the releases, and within one of them."""

    run_many: RunMany
    finish: Finish


@dataclass(frozen=True, eq=False)
class ComposedAnswer(ResultTable):
    """The result of the SQL above the releases, with the releases' own answers."""

    arrays: tuple[Any, ...]
    plan: ComposedPlan
    parts: tuple[Answer, ...]
    compute: Compute

    @property
    def columns(self) -> list[str]:
        return [name for name, _ in self.plan.columns]

    @cached_property
    def types(self) -> tuple[str, ...]:
        return tuple(type_name for _, type_name in self.plan.columns)

    @property
    def releases(self) -> tuple[Answer, ...]:
        """The answers of the private parts, each with intervals of its own."""
        return tuple(each for each in self.parts if not each.plan.public)

    @property
    def stored(self) -> bool:
        """Whether all releases were stored, so that it cost nothing this time."""
        return all(each.stored for each in self.releases)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be missing from the answer: the warnings of all releases, which intervals are
        approximate, and which numbers have none.
        """
        listed = [warning for each in self.releases for warning in each.warnings]
        if self.simulated:
            listed.append(f"Intervals of {', '.join(self.simulated)} are simulated, and approximate.")
        without = self._named(IntervalKind.NONE)
        if without:
            listed.append(f"No interval for {', '.join(without)}: no rule has ends for what is computed.")
        if self.boxed and self._box(_USUAL) is None:
            listed.append(f"No interval for {', '.join(self.boxed)}: its ends could not be computed.")
        return tuple(dict.fromkeys(listed))

    @property
    def searches(self) -> float:
        """Nothing is searched for before a query with several parts."""
        return 0.0

    # -- intervals -------------------------------------------------------------------------------------------
    @property
    def simulated(self) -> tuple[str, ...]:
        """The columns whose intervals are simulated, and so approximate."""
        return self._named(IntervalKind.SIMULATED)

    @property
    def boxed(self) -> tuple[str, ...]:
        """The columns whose intervals follow by rules from those of all released numbers at once: they hold
        together, with at least the probability asked for.
        """
        return self._named(IntervalKind.BOXED)

    def _named(self, kind: IntervalKind) -> tuple[str, ...]:
        """The numbers and truth values with this kind of interval."""
        return tuple(self.columns[place] for place in self._of_kind(kind))

    def _of_kind(self, kind: IntervalKind) -> list[int]:
        return [
            place
            for place, each in enumerate(self.plan.interval_kinds)
            if each is kind and (is_number(self.arrays[place]) or kind is not IntervalKind.RELEASE)
        ]

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """The answer with an interval for each number that has one. Intervals cover the noise only.

        A released number has the interval of its release; a smooth function of released numbers has one by
        simulation (see `simulated`); maxima, ranks, counts of noisy rows and the like have one by rules (see
        `boxed`). Of a second stage they hold for the constants that it was given.

        Where the noise may decide which rows are shown, the last column, `row_certain`, says which rows would
        be there without it, at this confidence level.

        Arguments:
            level: the confidence level.

        Returns:
            A data frame with two more columns for each of these numbers: n, n_low, n_high.

        Raises:
            ArgumentError: the level is not between 0 and 1.

        Example:
            >>> sql = "SELECT state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS m FROM visits GROUP BY state"
            >>> session.query(sql, epsilon=0.5).intervals(0.9).columns.tolist()
            ['state', 'n', 'n_low', 'n_high', 'm', 'm_low', 'm_high']
        """
        level = check_level(level)
        result = self.df()
        ends = {place: each for place, each in self._ends(level).items() if np.isfinite(each.low).any()}
        for place in sorted(ends, reverse=True):
            name, truth = self.columns[place], not is_number(self.arrays[place])
            for suffix, values in (("high", ends[place].high), ("low", ends[place].low)):
                shown = pd.Series(values).astype("boolean") if truth else values
                result.insert(place + 1, f"{name}_{suffix}", shown, allow_duplicates=True)
        box = self._box(level)
        if box is not None and box.certain is not None:
            result.insert(len(result.columns), "row_certain", box.certain, allow_duplicates=True)
        return result

    def _ends(self, level: float) -> dict[int, Ends]:
        """The ends of every number that has some, by its place."""
        if not len(self):
            return {}
        cells, smooth, boxed = (
            self._of_kind(kind) for kind in (IntervalKind.RELEASE, IntervalKind.SIMULATED, IntervalKind.BOXED)
        )
        found: dict[int, Ends] = {}
        if cells:
            low, high = zip(*(ends_of_cells(each, level) for each in self.releases), strict=True)
            (lower, upper) = self._again([low, high])
            found |= {place: Ends(lower[place], upper[place]) for place in cells}
        for place in smooth:
            value = as_floats(self.arrays[place])
            found[place] = simulated_ends(value, self._draws[:, place], level)
        box = self._box(level) if boxed else None
        return found if box is None else found | {place: box.ends[place] for place in boxed}

    def _box(self, level: float) -> BoxResult | None:
        """The ends that follow from those of all released numbers at once; None where there are none."""
        if level not in self._boxes:
            self._boxes[level] = self._boxed_at(level)
        return self._boxes[level]

    @cached_property
    def _boxes(self) -> dict[float, BoxResult | None]:
        return {}

    def _boxed_at(self, level: float) -> BoxResult | None:
        box, named = self.plan.boxed, list(zip(self.plan.parts, self.parts, strict=True))
        if box is None:
            return None
        share = level_of_each({part.name: each for part, each in named if not each.plan.public}, box, level)
        tables = {part.name: with_ends(each, box_table(part.plan), share) for part, each in named}
        try:
            [columns] = self.compute.run_many(self.plan.ends, {}, [tables])
        except PrivsqlError:  # an end is too large for its type, or there are too many rows to compare
            return None
        return read_box(box, columns, self.arrays)

    @cached_property
    def _draws(self) -> Floats:
        """The columns of the answer under simulated noise: draw, column, row."""
        versions = [simulate(each, self.compute.finish) for each in self.releases]
        return np.array(self._again(list(zip(*versions, strict=True))))

    def _again(self, versions: Sequence[Sequence[Sequence[Any]]]) -> list[list[Floats]]:
        """The numbers of this answer for other values in the cells of its releases; NaN in columns of no
        numbers.

        `versions`: for each the arrays of every release.
        """
        assert self.plan.simulated is not None, "there is a query to run again"
        named = list(zip(self.plan.parts, self.parts, strict=True))
        fixed = {part.name: tables_with(each, each.arrays) for part, each in named}
        noisy = [(part.name, each) for part, each in named if not each.plan.public]
        changing = [
            {name: tables_with(each, arrays) for (name, each), arrays in zip(noisy, version, strict=True)}
            for version in versions
        ]
        return [self._matched(columns) for columns in self.compute.run_many(self.plan.again, fixed, changing)]

    def _matched(self, columns: Sequence[Any]) -> list[Floats]:
        """The rows of a run in the order of the answer's, by what noise does not reach."""
        assert self.plan.simulated is not None, "there is a query to run again"
        keys = [place for place, each in enumerate(self.plan.simulated.columns) if each is Influence.NONE]
        numbers = [place for place, array in enumerate(self.arrays) if is_number(array) and place not in keys]
        missing = np.full(len(self), np.nan)
        own, others = (rows_of([listed[place] for place in keys]) for listed in (self.arrays, columns))
        places = {row: place for place, row in enumerate(others)}
        if len(columns[0]) == 1 == len(self) and not keys:
            own, places = [()], {(): 0}
        if len(places) < len(columns[0]) or not set(own) <= places.keys():
            return [missing] * len(self.arrays)
        order = [places[row] for row in own]
        return [
            as_floats(columns[place])[order] if place in numbers else missing for place in range(len(columns))
        ]

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        receipts = [each.receipt for each in self.releases]
        return {
            "outputs": self.columns,
            "rows": len(self),
            "neighbours": self.plan.neighbours,
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta,
            "rho": self.plan.rho,
            "stored": self.stored,
            "charged": sum(each["charged"] for each in receipts),
            "above": self.plan.above,
            "simulated": list(self.simulated),
            "boxed": list(self.boxed),
            "warnings": list(self.warnings),
            "releases": receipts,
        }

    def plot(self, level: float = 0.95, ax: Any = None) -> Any:
        """Plot the first number with an interval as bars with error bars (extra: privsql[plot]).

        Arguments:
            level: the confidence level of the error bars.
            ax: the matplotlib axes to draw on; by default new ones.

        Returns:
            The axes.

        Raises:
            ArgumentError: matplotlib is missing, or no number has an interval.

        Example:
            >>> answer.plot(0.95).get_ylabel()
            'n'
        """
        from privsql.results.plot import plot

        return plot(self, level, ax)

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0

    def __str__(self) -> str:
        from privsql.results.display import shown

        return shown(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from privsql.results.display import html

        return html(self)


AnyAnswer = Answer | ComposedAnswer
