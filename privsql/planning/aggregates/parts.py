"""A measurement before it has a price, and helpers that all families of aggregates share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.exact import Scalar, Value, clamped, whole
from privsql.algebra.expressions import Expression
from privsql.errors import Place, Refused
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.estimate import Terms
from privsql.planning.grids.grid import LARGEST_SUM, LARGEST_VALUE, MOST_STEPS, Grid, grid_of
from privsql.planning.rewrites.outliers import Outliers
from privsql.privacy.sensitivity import Sensitivity


class Adds(StrEnum):
    """What a row adds to a column."""

    ONE = "1"
    VALUE = "its value on the grid"
    HEIGHT = "how far that is above the low end"
    DEPTH = "how far that is below the high end"
    ABSENT = "1 where it is NULL"


@dataclass(frozen=True)
class Feature:
    """What a column adds up: over the rows where the argument is not NULL (ABSENT: is NULL) and the condition
    holds.
    """

    adds: Adds
    argument: Expression | None
    condition: Expression | None
    grid: Grid | None = None
    times: int = 1  # multiplies what a row adds


class Beside(StrEnum):
    """What is counted jointly with the sums of a nullable argument, by the name of its column."""

    NULLS = "absent"  # rows where it is NULL
    ROWS = "rows"  # all rows that meet the condition


@dataclass(frozen=True)
class Part:
    """A measurement before it has a price: columns, the expression of each, and their sensitivity.

    Where units are bounded, `of_unit` computes a column of the same name from one unit's rows in one key, and
    `cells` adds those up, each clamped to its bound.
    """

    columns: tuple[str, ...]
    cells: tuple[Scalar, ...]
    sensitivity: Sensitivity
    what: str
    values: tuple[tuple[str, Scalar], ...] = ()  # helper columns computed once per row, by name
    of_unit: tuple[Scalar, ...] = ()
    features: tuple[Feature, ...] = ()  # what each column adds up row by row, if it is that simple
    # a plain count of the rows or units of a key, which can decide whether the key is shown
    counts_all: bool = False
    public: bool = False  # no neighbour can change it, so it needs almost no epsilon
    all_rows: Terms = ()  # how to compute COUNT(*), beside sums of a nullable argument
    nulls: Terms = ()  # how to compute the number of NULLs
    step: Fraction = Fraction(1)  # the value of 1 in its columns
    loudest: float = 1.0  # how much more noise an estimate from several columns may have than one column
    # instead of `values`: columns summed before clamping, which `cells` finds by name
    outliers: tuple[Outliers, ...] = ()

    @property
    def noise(self) -> float:
        """The size of its noise at epsilon 1, in people."""
        return self.loudest * self.sensitivity.l1 / self.sensitivity.usual


def helper(number: int) -> str:
    """The name of the helper column of a measurement, computed once per row."""
    return f"privsql_value_{number}"


def grid_for(
    argument: Expression,
    condition: Expression | None,
    context: AggregationContext,
    place: Place | None,
    most: int = MOST_STEPS,
) -> tuple[Grid, str]:
    """The grid of an argument, with a note for EXPLAIN. Raises Refused if its range is not known or too
    large.
    """
    domain = context.domain(argument, condition)
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "one person could change this sum by any amount, because the range of its argument is not known",
            context.ways_to_bound(argument, condition),
            place,
        )
    if not domain.empty and max(abs(domain.low), abs(domain.high)) > LARGEST_VALUE:
        raise Refused(
            "refused-too-large",
            f"one person could change this sum by more than {float(LARGEST_VALUE):.1e}, "
            "which does not fit in 64-bit integers",
            "sum in a larger unit (SUM(x / 1000)), or declare a narrower range",
            place,
        )
    grid = grid_of(argument.type, domain, most)
    low, high = float(grid.low * grid.step), float(grid.high * grid.step)
    return grid, f"values clamped into [{low:g}, {high:g}]" + (
        "" if grid.step == 1 else f" on a grid of {float(grid.step):.3g}"
    )


def titled(function: str, argument: Expression | None, condition: Expression | None) -> str:
    where = "" if condition is None else f" where {describe(condition)}"
    return f"{function}({'*' if argument is None else describe(argument)}){where}"


def value_of(expression: Expression | None) -> Scalar | None:
    """A condition or an argument that may be missing."""
    return None if expression is None else Value(expression)


def clean(aggregate: Scalar) -> Scalar:
    """Clamp a cell to what 64 bits and its noise can hold."""
    return whole(clamped(aggregate, -LARGEST_SUM, LARGEST_SUM))
