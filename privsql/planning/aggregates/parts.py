"""A measurement before it has a price, and what every aggregate of a release shares with the others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.exact import Scalar, Value, clamped, whole
from privsql.algebra.expressions import Expression
from privsql.errors import Place, Refused
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.estimates import Terms
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
    """What a column adds up over rows: of those where the argument is not NULL (ABSENT: is NULL) and the
    condition holds.
    """

    adds: Adds
    argument: Expression | None
    condition: Expression | None
    grid: Grid | None = None
    times: int = 1  # so many times that


class Beside(StrEnum):
    """What is counted together with the sums of an argument that may be NULL, by the name of its column."""

    NULLS = "absent"  # the rows where it is NULL
    ROWS = "rows"  # all rows of the condition


@dataclass(frozen=True)
class Part:
    """A measurement before it has a price: columns with what is computed for each, and their sensitivity.

    Where units are bounded, `of_unit` computes a column of the same name from one unit's rows in one key, and
    `cells` adds those up, each held within its bound.
    """

    columns: tuple[str, ...]
    cells: tuple[Scalar, ...]
    sensitivity: Sensitivity
    what: str
    values: tuple[tuple[str, Scalar], ...] = ()  # helper columns computed once a row, by name
    of_unit: tuple[Scalar, ...] = ()
    features: tuple[Feature, ...] = ()  # what each column adds up row by row, where it does just that
    counts_all: bool = False  # one plain count of the rows, or units, of a key: what keys can be shown by
    public: bool = False  # no neighbour can move it, so that the least part of epsilon will do
    all_rows: Terms = ()  # what COUNT(*) is computed from, beside sums of what may be NULL
    nulls: Terms = ()  # and the number of those NULLs
    step: Fraction = Fraction(1)  # what 1 in its columns is, in the units of the values
    loudest: float = 1.0  # how much noisier than one column what is computed from several may be
    # instead of `values`: columns added up as they are, which `cells` finds by name
    outliers: tuple[Outliers, ...] = ()

    @property
    def noise(self) -> float:
        """How large its noise is at epsilon 1, in people."""
        return self.loudest * self.sensitivity.l1 / self.sensitivity.usual


def helper(number: int) -> str:
    """The column that holds what a measurement adds up, computed once a row."""
    return f"privsql_value_{number}"


def grid_for(
    argument: Expression,
    condition: Expression | None,
    context: AggregationContext,
    place: Place | None,
    most: int = MOST_STEPS,
) -> tuple[Grid, str]:
    """What the argument is clamped to, and laid on; refused where its range is not known."""
    domain = context.domain(argument, condition)
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "one person could move this sum by any amount: the range of its argument is not known",
            context.ways_to_bound(argument, condition),
            place,
        )
    if not domain.empty and max(abs(domain.low), abs(domain.high)) > LARGEST_VALUE:
        raise Refused(
            "refused-too-large",
            f"one person could move this sum by more than {float(LARGEST_VALUE):.1e}",
            "add up a smaller unit (SUM(x / 1000)), or declare a narrower range",
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
    """A cell is clamped to what 64 bits and its noise can hold."""
    return whole(clamped(aggregate, -LARGEST_SUM, LARGEST_SUM))
