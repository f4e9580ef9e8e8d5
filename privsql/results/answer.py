"""The Answer: a noisy table with its plan, its intervals and its receipt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsql.planning.plan import Plan
from privsql.planning.precision.half_widths import check_level
from privsql.planning.precision.interval_arithmetic import Interval
from privsql.planning.precision.noise_of_rows import set_texts
from privsql.privacy.key_selection import GaussianThreshold, TruncatedGeometric
from privsql.results.advising.suggested_limits import FoundLimit
from privsql.results.consistent import Settled
from privsql.results.intervals import interval
from privsql.results.result_table import ResultTable
from privsql.tables import Integers, NoisyTable
from privsql.types import NUMBERS


@dataclass(frozen=True)
class FoundRange:
    """A range found by a search in noisy counts, and the epsilon it cost."""

    column: str
    low: float
    high: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class Answer(ResultTable):
    """The noisy answer of a query, as `Session.query` returns it.

    `cells` are the indices of the rows' cells in the public key space.

    Example:
        >>> answer = session.query("SELECT state, COUNT(*) AS n FROM visits GROUP BY state", epsilon=0.5)
        >>> answer.receipt["epsilon"]
        0.5
    """

    arrays: tuple[Any, ...]  # one per output, masked where NULL
    plan: Plan
    noisy: NoisyTable
    cells: Integers
    stored: bool = False  # repeated or computed from earlier answers, so it cost nothing this time
    found: tuple[FoundRange, ...] = ()
    limits_found: tuple[FoundLimit, ...] = ()
    # one mask per output: rows where it is undetermined
    undetermined: tuple[Any, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the outputs."""
        return list(self.plan.query.names)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The SQL types of the columns, such as "BIGINT"."""
        return tuple(str(each.expression.type) for each in self.plan.outputs)

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """The answer with an interval for each number. Intervals cover the noise, not sampling or clamping.

        Arguments:
            level: the confidence level.

        Returns:
            A data frame with two more columns for each number: n, n_low, n_high.

        Raises:
            ArgumentError: the level is not between 0 and 1.

        Example:
            >>> answer.intervals(0.95).columns.tolist()
            ['state', 'n', 'n_low', 'n_high']
        """
        level = check_level(level)
        result = self.frame.copy()
        if self.plan.chooses:
            return result
        for number, found in self.ends(level).items():
            output = self.plan.outputs[number]
            place = list(result.columns).index(output.name) + 1
            ends: tuple[Any, Any] = (-np.inf, np.inf) if found is None else (found.low, found.high)
            for offset, (suffix, values) in enumerate(zip(("low", "high"), ends, strict=True)):
                result.insert(place + offset, f"{output.name}_{suffix}", values, allow_duplicates=True)
            threshold = self._threshold(self.plan.leaves(output.expression))
            # possibly shown only because of the noise
            if found is not None and threshold is not None:
                near = found.low <= threshold
                result.insert(place + 2, f"{output.name}_near_threshold", near, allow_duplicates=True)
        return result

    def ends(self, level: float) -> dict[int, Interval | None]:
        """The interval of every released number, for the rows that are shown.

        Arguments:
            level: the confidence level of each number by itself; it may be as near to 1 as a float.

        Returns:
            A dict from the places of the outputs to intervals; None where nothing is known.

        Example:
            >>> answer.ends(0.999999999)[1].low.shape
            (2,)
        """
        from privsql.results.finish import keys_of

        plan, settled = self.plan, Settled(self.plan, self.noisy)
        if plan.public:
            return {}
        keys = {name: listed(values) for name, values in keys_of(plan, self.noisy).items()}
        every: dict[int, Interval | None] = {}
        for place, output in enumerate(plan.outputs):
            leaves = plan.leaves(output.expression)
            if not leaves or output.expression.type.kind not in NUMBERS:
                continue
            share = 1.0 - (1.0 - level) / len(leaves)
            known = settled.intervals({leaf: plan.estimates[leaf] for leaf in leaves}, share)
            shares = settled.intervals(plan.quotients, share)
            found = interval(output.expression, known, keys, len(self.noisy.cells), shares)
            every[place] = found and Interval(found.low[self.cells], found.high[self.cells])
        return every

    def _threshold(self, leaves: list[str]) -> int | None:
        """The threshold that this count had to pass for its key to be shown, if it decided that."""
        shown_by = self.plan.keys_shown_by
        if shown_by is None or not isinstance(shown_by.release, (TruncatedGeometric, GaussianThreshold)):
            return None
        by_this_count = [self.plan.estimates[leaf].columns for leaf in leaves] == [shown_by.columns]
        return shown_by.release.threshold if by_this_count else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be missing from the answer, in sentences: rows dropped by the limits,
        undeclared keys ...
        """
        left_out = self.plan.derived.left_out if self.plan.derived else ()
        others = (
            f"Rows where {name} is not a declared key are missing from this answer." for name in left_out
        )
        return (
            *self.plan.warnings,
            *(each.sentence for each in self.limits_found),
            *others,
            *self._too_few(),
        )

    def _too_few(self) -> list[str]:
        """How many cells are undetermined, and how to see them."""
        cells = sum(int(mask.sum()) for mask in self.undetermined)
        if not cells:
            return []
        few = "1 cell has" if cells == 1 else f"{cells:,} cells have"
        if self.plan.show_all:
            noise = "the values shown there are noise" if cells > 1 else "the value shown there is noise"
            return [f"{few} too few rows for a meaningful number: {noise}."]
        shown = (
            "they are NULL; show_all=True shows them" if cells > 1 else "it is NULL; show_all=True shows it"
        )
        return [f"{few} too few rows for a meaningful number: {shown}."]

    @property
    def searches(self) -> float:
        """The epsilon spent on searches for ranges and limits, in addition to the answer's own."""
        return sum(each.epsilon for each in self.found) + sum(each.epsilon for each in self.limits_found)

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        searches = self.searches
        return {
            "outputs": self.columns,
            "rows": len(self),
            "neighbours": self.plan.neighbours,
            "epsilon": self.plan.epsilon + searches,
            "delta": self.plan.delta,
            "rho": self.plan.rho,
            "stored": self.stored,
            "charged": (0.0 if self.stored else self.plan.epsilon) + searches,
            "from_answers": [asdict(each) for each in self.plan.derived.sources] if self.plan.derived else [],
            # keys: rows without a declared value are missing
            "only_declared": list(self.plan.derived.left_out) if self.plan.derived else [],
            "ranges_found": [asdict(each) for each in self.found],
            "limits_found": [asdict(each) for each in self.limits_found],
            "warnings": list(self.warnings),
            "undetermined": self._undetermined_by_output(),
            "keys_may_be_missing": self.plan.space.open,
            "keys": self.plan.keys,
            "cells": self.plan.cells,
            "measurements": [each.to_dict() for each in self.plan.measurements],
            "least_squares_over": set_texts(self.plan),
            "projected": self.plan.projections,
        }

    def _undetermined_by_output(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        # public tables have none
        for name, mask in zip(self.columns, self.undetermined, strict=False):
            counted[name] = counted.get(name, 0) + int(mask.sum())
        return {name: cells for name, cells in counted.items() if cells}

    def plot(self, level: float = 0.95, ax: Any = None) -> Any:
        """Plot bars with error bars (extra: privsql[plot]).

        Arguments:
            level: the confidence level of the error bars.
            ax: matplotlib axes to draw on; by default new ones.

        Returns:
            The axes.

        Raises:
            ArgumentError: the answer has nothing to plot, or matplotlib is not installed.

        Example:
            >>> axes = answer.plot(0.9)
        """
        from privsql.results.plot import plot

        return plot(self, level, ax)

    def __len__(self) -> int:
        return len(self.cells)

    def __str__(self) -> str:
        from privsql.results.display import shown

        return shown(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from privsql.results.display import html

        return html(self)


def listed(values: Any) -> Any:
    """Keys for iteration, with NULL as None where an array masks it."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return [
        None if gone else value for value, gone in zip(values.data, np.ma.getmaskarray(values), strict=True)
    ]
