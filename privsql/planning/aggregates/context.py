"""What all aggregates of a release share: its rows, its keys, and how far one person moves a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from privsql.algebra.expressions import Column, Expression
from privsql.algebra.owners import Owner
from privsql.algebra.relations import Key, Limits
from privsql.analysis.bound_sums import at_most, over_sets, sensitivity_of
from privsql.analysis.domain import MAX_KEYS, Domain
from privsql.analysis.facts import Facts, domain_of, refine
from privsql.analysis.keys import Evaluate, evaluated_domain
from privsql.analysis.stability import Stability, bounded
from privsql.analysis.undeclared import Undeclared, within
from privsql.neighbours import Neighbours
from privsql.privacy.sensitivity import Sensitivity
from privsql.suggestions import Way


@dataclass(frozen=True)
class AggregationContext:
    """What all aggregates of a release share."""

    undeclared: Undeclared  # suggests declarations for the rows
    stability: Stability  # after contribution bounding, where units are bounded
    neighbours: Neighbours
    key_columns: list[str] | None  # None: no GROUP BY
    facts: Facts
    evaluate: Evaluate
    owner: Owner
    limits: Limits | None = None  # None: the rows of one unit are already bounded
    cells: int | None = None
    sets: tuple[tuple[Key, ...], ...] = ()  # grouping sets, in order
    raw: bool = False  # sums are computed before clamping, and corrected for outliers

    @property
    def always_counts(self) -> bool:
        return self.stability.steady and self.key_columns is None

    @property
    def rows_are_public(self) -> bool:
        """Whether neighbours have equally many rows here: one row of a person is replaced, and always becomes
        one row.
        """
        replaced = self.neighbours is Neighbours.REPLACE_ONE and self.limits is None and not self.sets
        return replaced and self.always_counts and self.stability.rows == 1

    @property
    def one_replaced_cell(self) -> bool:
        """Whether rows are replaced within a single cell, so that none can leave one cell and
        enter another.
        """
        return self.neighbours is Neighbours.REPLACE_ONE and self.key_columns is None and not self.sets

    def counting_units(self) -> AggregationContext:
        """The same context with each unit counted once per key."""
        if self.limits is None:
            return self
        once = replace(self.limits, max_rows=1)
        return replace(self, limits=once, stability=bounded(once, self.cells))

    def domain(self, argument: Expression, condition: Expression | None) -> Domain:
        """The domain of an argument over the rows that meet a condition."""
        facts = filtered(self.facts, condition)
        known = domain_of(argument, facts)
        return known if known.bounded else evaluated_domain(argument, facts, self.evaluate) or known

    def ways_to_bound(self, argument: Expression, condition: Expression | None) -> list[Way]:
        """How to give an argument a range: a declaration, if that is enough, or a condition on it."""
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
        """The stability within some of the keys: a unit's rows are bounded in each cell of all keys, so a sum
        over some of them may contain all of its rows.
        """
        every = {key for keys in self.sets for key in keys}
        if self.limits is None or set(kept) == every:
            return self.stability
        return replace(self.stability, shares=lambda columns: self.stability.rows or 0)


def filtered(facts: Facts, condition: Expression | None) -> Facts:
    return facts if condition is None else refine(facts, condition)


def key_columns(keys: Sequence[Key]) -> list[str] | None:
    """The columns that are keys as they stand; None: there are no keys."""
    return [key.expression.name for key in keys if isinstance(key.expression, Column)] if keys else None
