"""The answer of a query with several private parts: what was computed from the answers of its releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.precision.half_widths import check_level
from privsql.results.answer import Answer
from privsql.results.result_table import ResultTable
from privsql.results.simulation import (
    Ends,
    Finish,
    Floats,
    as_floats,
    can_be_simulated,
    ends_of_cells,
    is_number,
    simulate,
    simulated_ends,
    tables_with,
)
from privsql.sql.split.influence import Influence

Tables = Mapping[str, Mapping[str, tuple[Any, Any]]]
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
        """What may be missing from the answer: the warnings of all releases, and which intervals are
        approximate.
        """
        listed = [warning for each in self.releases for warning in each.warnings]
        if self.simulated:
            listed.append(f"Intervals of {', '.join(self.simulated)} are simulated, and approximate.")
        return tuple(dict.fromkeys(listed))

    @property
    def searches(self) -> float:
        """Nothing is searched for before a query with several parts."""
        return 0.0

    # -- intervals -------------------------------------------------------------------------------------------
    @property
    def simulated(self) -> tuple[str, ...]:
        """The columns whose intervals are simulated."""
        if self.plan.simulated is None or not all(map(can_be_simulated, self.parts)):
            return ()
        return tuple(self.columns[place] for place in self._reached(Influence.SMOOTH))

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """The answer with an interval for each number that has one. Intervals cover the noise only.

        A released number has the interval of its release; a smooth function of released numbers has one by
        simulation (see `simulated`). Maxima, ranks and the like have none. Of a second stage they hold for
        the constants that it was given.

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
            name = self.columns[place]
            result.insert(place + 1, f"{name}_high", ends[place].high, allow_duplicates=True)
            result.insert(place + 1, f"{name}_low", ends[place].low, allow_duplicates=True)
        return result

    def _ends(self, level: float) -> dict[int, Ends]:
        cells, smooth = (
            self._reached(Influence.CELL),
            self._reached(Influence.SMOOTH) if self.simulated else [],
        )
        if self.plan.simulated is None or not (cells or smooth) or not len(self):
            return {}
        found: dict[int, Ends] = {}
        if cells:
            low, high = zip(*(ends_of_cells(each, level) for each in self.releases), strict=True)
            (lower, upper) = self._again([low, high])
            found |= {place: Ends(lower[place], upper[place]) for place in cells}
        for place in smooth:
            value = as_floats(self.arrays[place])
            found[place] = simulated_ends(value, self._draws[:, place], level)
        return found

    def _reached(self, influence: Influence) -> list[int]:
        """The places of the numbers that noise reaches so."""
        if self.plan.simulated is None:
            return []
        return [
            place
            for place, each in enumerate(self.plan.simulated.columns)
            if each is influence and is_number(self.arrays[place])
        ]

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
        own, others = (_rows([listed[place] for place in keys]) for listed in (self.arrays, columns))
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
            "stored": self.stored,
            "charged": sum(each["charged"] for each in receipts),
            "above": self.plan.above,
            "simulated": list(self.simulated),
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


def _rows(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    listed = [[_hashable(value) for value in np.ma.asarray(each).tolist()] for each in columns]
    return list(zip(*listed, strict=True))


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict, np.ndarray)) else value
