"""The rows in every combination of cells of some columns, from which marginals add up: the exact SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from privsql.algebra.exact import Dialect, Statement
from privsql.neighbours import Neighbours
from privsql.planning.limits.bounding import Bounding
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.planning.marginals.workload import Marginals
from privsql.privacy.marginals.residual_price import Columns

COUNT = "count_0"  # the measured column of the statement


class PartPlan(Protocol):
    """What answering a query from one part of a release takes to know of it."""

    @property
    def columns(self) -> tuple[ColumnCells, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def ways(self) -> int: ...
    @property
    def bounding(self) -> tuple[Bounding, ...]: ...
    def covers(self, columns: Columns) -> bool:
        """Whether counts of these columns together follow from this part."""
        ...


@dataclass(frozen=True, kw_only=True)
class CellCounts:
    """What is counted, before anything is said of noise. `why`: how many rows a unit has. `first`: the
    place of the first column in the statement, which several plans may share.
    """

    table: str
    columns: tuple[ColumnCells, ...]
    statement: Statement = field(repr=False)
    relation_of_neighbours: Neighbours
    dialect: Dialect = field(compare=False, repr=False)
    why: str
    bounding: tuple[Bounding, ...] = ()
    first: int = 0
    rho: float | None = field(default=None, compare=False)
    refusal: str = field(default="", compare=False)  # why the budget does not allow it now
    stored: bool = field(default=False, compare=False)

    @cached_property
    def sql(self) -> str:
        """The exact SQL, runnable by hand: the cells of the columns, by number, and their rows."""
        return self.dialect.statement(self.statement)

    @property
    def keys(self) -> list[str]:
        return [key_of(self.first + place) for place in range(len(self.columns))]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.column.name for each in self.columns)

    @property
    def neighbours(self) -> str:
        return self.relation_of_neighbours.value

    @property
    def warnings(self) -> tuple[str, ...]:
        """What contribution bounding may drop."""
        return tuple(sentence for each in self.bounding for sentence in each.sentences)

    def facts(self) -> dict[str, object]:
        """What is said of every plan, as JSON."""
        return {
            "sql": self.sql,
            "table": self.table,
            "neighbours": self.neighbours,
            "rho": self.rho,
            "why": self.why,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, kw_only=True)
class MarginalCounts(CellCounts):
    """The counts of a workload of marginals."""

    workload: Marginals

    @property
    def ways(self) -> int:
        """How many columns the largest marginals have."""
        return min(self.workload.ways, len(self.columns))

    @property
    def sets(self) -> list[Columns]:
        """The marginals of the workload."""
        return self.workload.sets()

    def covers(self, columns: Columns) -> bool:
        """Whether some marginal of the workload has all of these columns."""
        return any(set(columns) <= set(each) for each in self.sets)


def key_of(place: int) -> str:
    """The name of the column of the statement that holds the cells of a column."""
    return f"cell_{place}"
