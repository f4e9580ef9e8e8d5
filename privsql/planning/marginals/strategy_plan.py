"""The part of a release that measures a strategy for queries over the cells of some columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privsql.planning.limits.bounding import Bounding
from privsql.planning.marginals.cell_counts import key_of
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.planning.marginals.strategy_measurement import StrategyMeasurement
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.marginals.strategies import KindQueries
from privsql.tables import Integers


@dataclass(frozen=True, eq=False)
class CountingQueries:
    """Queries over the cells of some columns, and the kinds of rows that they tell apart.

    Arguments:
        what: how they are called.
        columns: the columns, with their cells.
        kind_of: the kind of every combination of cells, flat.
        queries: over the kinds.
    """

    what: str
    columns: tuple[ColumnCells, ...]
    kind_of: Integers
    queries: KindQueries

    @property
    def kinds(self) -> int:
        return len(self.queries.gram)


@dataclass(frozen=True, eq=False, kw_only=True)
class StrategyPlan:
    """Counts of kinds of rows, measured by the strategy with the least predicted error.

    `name`: of the strategy; `tried`: the mean variance of a query by each strategy, at a squared change of 1.
    """

    asked: CountingQueries
    measurement: StrategyMeasurement
    name: str
    tried: Sequence[tuple[str, float]] = field(repr=False)
    first: int = 0
    bounding: tuple[Bounding, ...] = ()

    @property
    def columns(self) -> tuple[ColumnCells, ...]:
        return self.asked.columns

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.column.name for each in self.columns)

    @property
    def ways(self) -> int:
        return len(self.columns)

    @property
    def keys(self) -> list[str]:
        return [key_of(self.first + place) for place in range(len(self.columns))]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(each.size for each in self.columns)

    def covers(self, columns: Columns) -> bool:
        """Whether queries of these columns may follow: what does is known cell by cell."""
        return max(columns, default=0) < len(self.columns)

    @property
    def deviation(self) -> float:
        """The root of the mean variance of a query, before improvement."""
        queries = self.asked.queries
        return math.sqrt(float(np.sum(queries.gram * self.measurement.fit.covariance)) / queries.many)

    def to_dict(self) -> dict[str, object]:
        """The part as JSON."""
        return {
            "what": self.asked.what,
            "columns": list(self.names),
            "queries": self.asked.queries.many,
            "kinds": self.asked.kinds,
            "strategy": self.name,
            "numbers": len(self.measurement.strategy),
            "deviation": self.deviation,
            "ratio": float(self.measurement.ratio),
            "tried": [{"strategy": name, "variance": _finite(each)} for name, each in self.tried],
        }

    def lines(self) -> list[str]:
        """The part as text."""
        least = self.tried[0][1]
        others = [
            f"{name} {math.sqrt(each / least):.3g} times" for name, each in self.tried[1:] if _finite(each)
        ]
        queries = self.asked.queries.many
        width = 1.96 * self.deviation
        lines = [
            f"{self.asked.what}: {queries:,} counts, which tell {self.asked.kinds:,} kinds of rows apart",
            f"  by {self.name}: {len(self.measurement.strategy):,} numbers with Gaussian noise",
            f"  a count is within, at 95%, on average and before improvement: +- {width:,.4g}",
        ]
        return [*lines, f"  the error of others: {', '.join(others)}"] if others and least else lines


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
