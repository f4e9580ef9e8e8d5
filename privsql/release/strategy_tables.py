"""The noisy product of a strategy goes in; counts of its kinds of rows, and what follows from them, come
out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privsql.errors import Refused
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.answer_query import Estimates, KeyCells
from privsql.release.cell_conditions import Mask
from privsql.release.shrinkage import Floats, onto_total
from privsql.tables import Integers

_FEWEST = 1.0  # rows that a table is taken to have at least
_STEPS = 500
_CLOSE = 1e-3  # rows: improvement ends where no count moves further


@dataclass(eq=False)
class StrategyTables:
    """Counts of kinds of rows, from the noisy product of a strategy and public numbers alone."""

    plan: StrategyPlan
    noisy: Integers

    @cached_property
    def unbiased(self) -> Floats:
        """The least squares estimate of the number of rows of every kind."""
        measured = self.plan.measurement
        rows = len(measured.strategy)
        fit, product = measured.fit, self.noisy[:rows].astype(np.float64)
        towards = measured.strategy.T @ product * (1.0 / float(measured.variance))
        if len(self.noisy) > rows:
            towards = towards + fit.total_weight * float(self.noisy[rows])
        found: Floats = fit.covariance @ towards
        return found

    @property
    def total(self) -> float:
        """The number of rows, public or as estimated."""
        rows = len(self.plan.measurement.strategy)
        known = self.noisy[rows] if len(self.noisy) > rows else self.unbiased.sum()
        return max(_FEWEST, float(known))

    @cached_property
    def shown(self) -> Floats:
        """The counts of at least 0 with this total that are nearest to the estimate, as sure as each
        direction of it is.
        """
        precision = self.plan.measurement.fit.precision
        greatest = float(np.abs(precision).sum(axis=0).max())  # at least its greatest eigenvalue
        found = ahead = onto_total(self.unbiased, self.total)
        if greatest <= 0:
            return found
        pace = 1.0
        for _ in range(_STEPS):
            after = onto_total(ahead - precision @ (ahead - self.unbiased) / greatest, self.total)
            faster = (1.0 + math.sqrt(1.0 + 4.0 * pace**2)) / 2.0
            ahead = after + (pace - 1.0) / faster * (after - found)
            moved = float(np.abs(after - found).max(initial=0.0))
            found, pace = after, faster
            if moved <= _CLOSE:
                break
        return found

    def whole(self, columns: Columns) -> Estimates:
        """Every combination of cells of some columns, flat."""
        sizes = [self.plan.sizes[each] for each in columns]
        cells = [dict(enumerate(each)) for each in np.ndindex(*sizes)]
        return self.estimates(columns, np.ones(sizes, dtype=np.bool_), cells)

    def estimates(self, columns: Columns, mask: Mask, cells: Sequence[KeyCells]) -> Estimates:
        """The rows in some cells of the keys that meet the mask."""
        found = np.zeros((3, len(cells)))
        for row, chosen in enumerate(cells):
            index = tuple(
                slice(chosen[axis], chosen[axis] + 1) if axis in chosen else slice(None)
                for axis in range(mask.ndim)
            )
            part = np.zeros_like(mask)
            part[index] = mask[index]
            wanted = self._of_kinds(columns, part)
            variance = self.plan.measurement.fit.variance(wanted)
            if math.isinf(variance):
                raise _not_told()
            found[:, row] = float(wanted @ self.shown), float(wanted @ self.unbiased), variance
        return Estimates(*found)

    def _of_kinds(self, columns: Columns, mask: Mask) -> Floats:
        """Which kinds of rows meet a mask. Raises Refused where some rows of a kind do and others do not."""
        sizes, kind_of = self.plan.sizes, self.plan.asked.kind_of
        spread = mask.reshape([size if place in columns else 1 for place, size in enumerate(sizes)])
        flat = np.broadcast_to(spread, sizes).reshape(-1)
        found = np.zeros(self.plan.asked.kinds, dtype=np.bool_)
        found[kind_of[flat]] = True
        if (found[kind_of] != flat).any():
            raise _not_told()
        return found.astype(np.float64)


def _not_told() -> Refused:
    problem = "This does not follow from the release: its queries do not tell these rows apart."
    return Refused("refused-not-released", problem, "release this query, too, or ask session.query")
