"""A plan goes in; its columns come out as sums over rows, which stored answers can be compared with.

A stored column is a sum over the rows in each cell of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression
from privsql.analysis.disjoint import both
from privsql.equivalence.over_keys import RowsByKey, rows_of
from privsql.planning.aggregates.parts import Adds, Feature
from privsql.planning.grids.grid import Grid
from privsql.planning.plan import Plan, StoredSource
from privsql.tables import NoisyTable
from privsql.types import BOOLEAN

Basis = tuple[Any, ...]  # the summand of a column: 1, or the value of an argument on a grid
Terms = tuple[tuple[str, Fraction], ...]  # stored columns with their weights


@dataclass(frozen=True)
class Measured:
    """A column as a sum over rows: which rows, and which summands in terms of a basis."""

    conditions: tuple[Expression, ...]
    texts: frozenset[str]
    parts: Mapping[Basis, int]


@dataclass(frozen=True, eq=False)
class Additive:
    """A plan whose columns are all sums over the same rows, in cells of declared keys."""

    plan: Plan
    rows: RowsByKey
    columns: Mapping[str, Measured]
    together: Sequence[tuple[Terms, Measured]] = ()  # the totals of several columns over different rows

    @cached_property
    def keys(self) -> dict[str, Column]:
        """The keys by their value texts."""
        assert self.plan.release is not None
        meant = [(key.name, self.rows.meant(key.expression)) for key in self.plan.release.keys]
        return {self.rows.value_text(each): Column(name, each.type) for name, each in meant}


@dataclass(frozen=True, eq=False)
class Known:
    """A stored answer: the plan that was paid for, and its noisy cells as drawn."""

    additive: Additive
    noisy: NoisyTable
    query: str
    when: str

    @property
    def plan(self) -> Plan:
        return self.additive.plan

    def source(self, cells: int) -> StoredSource:
        return StoredSource(self.query, self.plan.epsilon, self.plan.delta, self.when, cells)


def additive(plan: Plan) -> Additive | None:
    """The sums of a plan; None if some column is not a sum, or keys are undeclared."""
    if (
        plan.release is None
        or plan.pricing is None
        or plan.space.open
        or plan.levels is not None
        or plan.consistent
    ):
        return None
    parts = plan.pricing.parts
    if any(len(part.features) != len(part.columns) for part in parts):
        return None
    try:
        rows = rows_of(plan.release)
        if rows is None:
            return None
        columns = {
            name: _measured(rows, each)
            for part in parts
            for name, each in zip(part.columns, part.features, strict=True)
        }
        together = [
            (part.all_rows, _measured(rows, Feature(Adds.ONE, None, each.condition)))
            for part in parts
            for each in part.features
            if each.adds is Adds.ABSENT and len(part.all_rows) > 1
        ]
    except RecursionError:  # nested too deeply
        return None
    return Additive(plan, rows, columns, together)


def _measured(rows: RowsByKey, feature: Feature) -> Measured:
    if feature.adds is Adds.ABSENT:
        assert feature.argument is not None
        missing = both(feature.condition, Call("is_null", (feature.argument,), BOOLEAN))
        return _measured(rows, replace(feature, adds=Adds.ONE, argument=None, condition=missing))
    conditions = rows.conditions(feature.condition, feature.argument)
    texts = rows.condition_texts(conditions)
    one: Basis = ("1",)
    if feature.adds is Adds.ONE:
        return Measured(tuple(conditions), texts, {one: feature.times})
    assert feature.grid is not None and feature.argument is not None
    low, high = feature.grid.low, feature.grid.low + feature.grid.steps
    if low == feature.grid.high:  # a constant is as good as a count; 0 is as good as nothing
        parts = {one: {Adds.VALUE: low, Adds.HEIGHT: 0, Adds.DEPTH: high - low}[feature.adds]}
    else:
        value: Basis = (rows.value_text(rows.meant(feature.argument)), *_ends(feature.grid))
        parts = {
            Adds.VALUE: {value: 1},
            Adds.HEIGHT: {value: 1, one: -low},
            Adds.DEPTH: {value: -1, one: high},
        }[feature.adds]
    return Measured(tuple(conditions), texts, {each: weight for each, weight in parts.items() if weight})


def _ends(grid: Grid) -> tuple[Any, ...]:
    return grid.low, grid.high, grid.step
