"""The Plan: what will be released, how noisy, at what price, and the exact SQL. Planning reads no private
data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar, overload

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose
from privsql.errors import Refused
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.estimates import Linear
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.post_processing import PostProcessing
from privsql.planning.release_plan import ReleasePlan, ValueStatement
from privsql.privacy.weighted_sums import Noise
from privsql.tables import Integers

T = TypeVar("T")


@dataclass(frozen=True)
class StoredSource:
    """An earlier answer from which a query is answered."""

    question: str
    epsilon: float
    delta: float
    when: str
    cells: int  # the largest number of its cells that add up to one cell


@dataclass(frozen=True, eq=False)
class Derived:
    """How noisy cells are computed from earlier answers: which rows have equal noise, and the noise of each
    column.
    """

    sources: tuple[StoredSource, ...]
    kinds: tuple[tuple[Integers | None, Mapping[str, Noise]], ...]
    # keys of theirs that are summed over: rows with another than the declared ones are missing
    left_out: tuple[str, ...] = ()


class Repeated(Generic[T]):
    """A property in one line: what a plan says of its release or its post-processing."""

    def __init__(self, read: Callable[[Plan], T]) -> None:
        self._read = read

    @overload
    def __get__(self, plan: None, owner: type[Plan]) -> Repeated[T]: ...
    @overload
    def __get__(self, plan: Plan, owner: type[Plan]) -> T: ...
    def __get__(self, plan: Plan | None, owner: type[Plan]) -> T | Repeated[T]:
        return self if plan is None else self._read(plan)


@dataclass(frozen=True)
class Plan:
    """Everything that will happen, derived from the query, the schema and the policy alone: releases in
    stages, each of which may read noisy values of earlier ones, and the post-processing of their noisy cells.

    There is only one release so far, and the plan repeats its properties.
    """

    releases: tuple[ReleasePlan, ...]
    post_processing: PostProcessing
    relation_of_neighbours: Neighbours
    notes: tuple[str, ...] = ()
    # in epsilon; None: no limit, or the accountant counts rho
    remaining: float | None = field(default=None, compare=False)
    stored: bool = field(default=False, compare=False)  # the answer is stored, and costs nothing now
    refusal: str = field(default="", compare=False)  # why the budget does not allow it now
    rho: float | None = field(default=None, compare=False)  # the charge, if the accountant counts rho
    # the plan with counts measured separately, as earlier answers may have them
    apart: Plan | None = field(default=None, compare=False, repr=False)
    # computed from earlier answers, with or without a new measurement
    derived: Derived | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.releases) != 1 or self.releases[0].parameters:
            raise ValueError("a plan has one release, of one stage")

    @property
    def loss(self) -> Fraction:
        """The price of the plan: its releases together."""
        return sum((each.loss for each in self.releases), Fraction(0))

    @property
    def delta_loss(self) -> Fraction:
        return sum((each.delta_loss for each in self.releases), Fraction(0))

    @property
    def public(self) -> bool:
        """Whether the query reads no private rows."""
        return self.release is None

    @cached_property
    def finishing(self) -> str:
        """The post-processing above the release, as SQL over the noisy table."""
        return "" if self.above is None else self.dialect.finishing(self.above.relation, self.above.guards)

    @property
    def _only(self) -> ReleasePlan:
        (release,) = self.releases
        return release

    def measured_by(self, statement: ValueStatement) -> QuantileMeasurement:
        """The measurement that selects grid points in a histogram of values."""
        return self._only.measured_by(statement)

    # -- of the one release
    sql = Repeated(lambda plan: plan._only.sql)
    counts = Repeated(lambda plan: plan._only.counts)
    runs = Repeated(lambda plan: plan._only.runs)
    statements = Repeated(lambda plan: plan._only.statements)
    of_values = Repeated(lambda plan: plan._only.of_values)
    keys = Repeated(lambda plan: plan._only.keys)
    measurements = Repeated(lambda plan: plan._only.measurements)
    selected_by = Repeated(lambda plan: plan._only.selected_by)
    keys_shown_by = Repeated(lambda plan: plan._only.keys_shown_by)
    release = Repeated(lambda plan: plan._only.release)
    space = Repeated(lambda plan: plan._only.space)
    stability = Repeated(lambda plan: plan._only.stability)
    estimates = Repeated(lambda plan: plan._only.estimates)
    quotients = Repeated(lambda plan: plan._only.quotients)
    dialect = Repeated(lambda plan: plan._only.dialect)
    pricing = Repeated(lambda plan: plan._only.pricing)
    steps = Repeated(lambda plan: plan._only.steps)
    limits = Repeated(lambda plan: plan._only.limits)
    bounding = Repeated(lambda plan: plan._only.bounding)
    levels = Repeated(lambda plan: plan._only.levels)
    relations = Repeated(lambda plan: plan._only.relations)
    warnings = Repeated(lambda plan: plan._only.warnings)

    # -- of post-processing
    question = Repeated(lambda plan: plan.post_processing.question)
    outputs = Repeated(lambda plan: plan.post_processing.outputs)
    above = Repeated(lambda plan: plan.post_processing.above)
    guards = Repeated(lambda plan: plan.post_processing.guards)
    nonnegative = Repeated(lambda plan: plan.post_processing.nonnegative)
    consistent = Repeated(lambda plan: plan.post_processing.consistent)
    show_all = Repeated(lambda plan: plan.post_processing.show_all)

    # -- for people
    epsilon = Repeated(lambda plan: float(plan.loss))
    delta = Repeated(lambda plan: float(plan.delta_loss))
    neighbours = Repeated(lambda plan: plan.relation_of_neighbours.value)
    cells = Repeated(lambda plan: len(plan.space))
    chooses = Repeated(lambda plan: isinstance(plan.release, Choose))

    def accuracy(self, level: float = 0.95, rows: int | None = None) -> Accuracy:
        """The half-width of each output at this confidence level, before anything is spent. `rows`: rows per
        cell, for AVG.
        """
        from privsql.planning.precision.half_widths import accuracy_of

        return accuracy_of(self, level, rows)

    def projected(self, nonnegative: bool, consistent: bool, show_all: bool = False) -> Plan:
        """The same plan with an answer that is nonnegative, consistent or shown whole, at no cost."""
        if consistent and self.levels is not None and self.relations:
            raise Refused(
                "refused-consistent",
                "consistent= does not support grouping sets: "
                "making one count fit into another would change totals",
                "leave consistent out: the sets agree with each other anyway",
            )
        asked = replace(
            self.post_processing, nonnegative=nonnegative, consistent=consistent, show_all=show_all
        )
        return replace(self, post_processing=asked)

    @property
    def projections(self) -> dict[str, list[str]]:
        """The names of outputs, and the relations, that post-processing changes on request."""
        names = {
            each.expression.name: each.name for each in self.outputs if isinstance(each.expression, Column)
        }
        signs = {
            n
            for n, how in self.estimates.items()
            if isinstance(how, Linear) and how.nonnegative and self.nonnegative
        }
        listed = [name for each, name in names.items() if each in signs] + sorted(signs - names.keys())
        kept = [each.text(names) for each in self.relations if self.consistent]
        return {"nonnegative": listed, "consistent": kept}

    @property
    def free(self) -> bool:
        """Whether earlier answers are enough."""
        return self.derived is not None and not self.measurements

    def from_stored(self, derived: Derived, paid: bool) -> Plan:
        """The same query, answered from earlier answers. `paid`: they include the measurements of this plan
        itself.
        """
        if paid:
            return replace(self, derived=derived)
        releases = tuple(replace(each, measurements=()) for each in self.releases)
        outputs = tuple(replace(each, measurements=()) for each in self.outputs)
        free = replace(self.post_processing, outputs=outputs)
        return replace(self, derived=derived, releases=releases, post_processing=free, notes=())

    def repriced(self, epsilon: Fraction) -> Plan:
        """The same plan at another price: the same SQL with other noise."""
        return replace(self, releases=(self._only.repriced(epsilon),))

    def to_dict(self) -> dict[str, object]:
        return {
            "sql": self.sql,
            "statements": list(self.statements),
            "keys": self.keys,
            "cells": self.cells,
            "measurements": [each.to_dict() for each in self.measurements],
            "outputs": [each.to_dict() for each in self.outputs],
            "neighbours": self.neighbours,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        from privsql.planning.explanation.explain import explain

        return explain(self)

    __repr__ = __str__


class Accuracy(dict[str, float | None]):
    """Output name -> half-width, None where it depends on the data; prints as lines.

    `together`: half-widths that hold for all cells of all outputs at once, with the same confidence. For k
    counts that is the bound of note 001, P(some error >= a n) <= k exp(-a epsilon n / k): divided by the
    number of rows n, it is a.
    """

    def __init__(
        self,
        widths: Mapping[str, float | None],
        level: float,
        notes: Mapping[str, str],
        together: Mapping[str, float | None] | None = None,
    ) -> None:
        super().__init__(widths)
        self.level, self.notes, self.together = level, dict(notes), dict(together or {})

    def __repr__(self) -> str:
        lines = [f"within +- at {self.level:.0%} confidence, noise only"]
        for name, width in self.items():
            shown = "?" if width is None else f"{width:,.4g}"
            every = self.together.get(name)
            behind = self.notes.get(name) or (
                f"all at once +- {every:,.4g}" if every is not None and every != width else ""
            )
            lines.append(f"  {name}: +- {shown}" + (f"   ({behind})" if behind else ""))
        return "\n".join(lines)

    __str__ = __repr__
