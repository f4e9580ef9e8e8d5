"""A measurement before it has a price, and what every aggregate of a release shares with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.exact import Scalar, Value, clamped, whole
from privsql.algebra.expressions import Column, Expression
from privsql.algebra.owners import Owner
from privsql.algebra.relations import Key, Limits
from privsql.analysis.derive import Facts, domain_of, refine
from privsql.analysis.domain import MAX_KEYS
from privsql.analysis.keys import Evaluate, evaluated_domain
from privsql.analysis.sensitivity import at_most, over_sets, sensitivity_of
from privsql.analysis.stability import Stability, bounded
from privsql.analysis.undeclared import Undeclared, within
from privsql.errors import Place, Refused
from privsql.neighbours import Neighbours
from privsql.planning.estimates import Terms
from privsql.planning.grid import LARGEST_SUM, LARGEST_VALUE, MOST_STEPS, Grid, grid_of
from privsql.planning.outliers import Outliers
from privsql.privacy.sensitivity import Sensitivity
from privsql.suggestions import Way


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
    picks: int = 1  # of a choice: how many candidates are wanted
    in_groups: bool = False  # of a choice: one in each group of candidates
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


@dataclass(frozen=True)
class Surroundings:
    """What every aggregate of a release shares."""

    undeclared: Undeclared  # what could be declared of the rows
    stability: Stability  # after bounding, where units are bounded
    neighbours: Neighbours
    key_columns: list[str] | None  # None: no GROUP BY
    facts: Facts
    evaluate: Evaluate
    owner: Owner
    limits: Limits | None = None  # None: the rows of one unit are few already
    cells: int | None = None
    sets: tuple[tuple[Key, ...], ...] = ()  # several sets of keys to group by, one after the other
    raw: bool = False  # what is summed up is added up as it is, and put right for outliers

    @property
    def always_counts(self) -> bool:
        return self.stability.steady and self.key_columns is None

    @property
    def rows_are_public(self) -> bool:
        """Whether neighbours have equally many rows here: a person's one row is replaced, and always becomes
        one row.
        """
        replaced = self.neighbours is Neighbours.REPLACE_ONE and self.limits is None and not self.sets
        return replaced and self.always_counts and self.stability.rows == 1

    @property
    def one_replaced_cell(self) -> bool:
        """Whether rows are replaced within a single cell: none can leave one cell and enter another."""
        return self.neighbours is Neighbours.REPLACE_ONE and self.key_columns is None and not self.sets

    def counting_units(self) -> Surroundings:
        """The same with each unit counted once a key."""
        if self.limits is None:
            return self
        once = replace(self.limits, max_rows=1)
        return replace(self, limits=once, stability=bounded(once, self.cells))

    def ways_to_bound(self, argument: Expression, condition: Expression | None) -> list[Way]:
        """What gives an argument a range: a declaration, where that is enough, or a condition on it."""
        return [*self.undeclared.ranges(argument, condition, self.evaluate), within(argument)]

    def bound(self, size: int, width: int, cells: int, what: str, monotone: bool = False) -> Sensitivity:
        same_way = monotone and self.stability.adds
        if not self.sets:
            found = sensitivity_of(
                self.stability, self.neighbours, self.key_columns, size, width, cells, what, same_way
            )
            return (
                found if self.cells is None or self.cells >= MAX_KEYS else at_most(found, self.cells * cells)
            )
        of_sets = [
            sensitivity_of(self._within(kept), self.neighbours, key_columns(kept), size, width, cells, what)
            for kept in self.sets
        ]
        return over_sets(of_sets, self.sets.index(()) if () in self.sets else None)

    def _within(self, kept: Sequence[Key]) -> Stability:
        """A unit's rows are bounded in each cell of all keys: in a sum over some of them, all may come
        together.
        """
        every = {key for keys in self.sets for key in keys}
        if self.limits is None or set(kept) == every:
            return self.stability
        return replace(self.stability, shares=lambda columns: self.stability.rows or 0)


def helper(number: int) -> str:
    """The column that holds what a measurement adds up, computed once a row."""
    return f"privsql_value_{number}"


def key_columns(keys: Sequence[Key]) -> list[str] | None:
    """The columns that are keys as they stand; None: there are no keys at all."""
    return [key.expression.name for key in keys if isinstance(key.expression, Column)] if keys else None


def filtered(facts: Facts, condition: Expression | None) -> Facts:
    return facts if condition is None else refine(facts, condition)


def grid_for(
    argument: Expression,
    condition: Expression | None,
    around: Surroundings,
    place: Place | None,
    most: int = MOST_STEPS,
) -> tuple[Grid, str]:
    """What the argument is clamped to, and laid on; refused where its range is not known."""
    facts = filtered(around.facts, condition)
    domain = domain_of(argument, facts)
    if not domain.bounded:
        domain = evaluated_domain(argument, facts, around.evaluate) or domain
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "one person could move this sum by any amount: the range of its argument is not known",
            around.ways_to_bound(argument, condition),
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


def shown(value: Fraction) -> str:
    """A number for people."""
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"


def titled(function: str, argument: Expression | None, condition: Expression | None) -> str:
    where = "" if condition is None else f" where {describe(condition)}"
    return f"{function}({'*' if argument is None else describe(argument)}){where}"


def value_of(expression: Expression | None) -> Scalar | None:
    """A condition or an argument that may be missing."""
    return None if expression is None else Value(expression)


def clean(aggregate: Scalar) -> Scalar:
    """A cell is clamped to what 64 bits and its noise can hold."""
    return whole(clamped(aggregate, -LARGEST_SUM, LARGEST_SUM))
