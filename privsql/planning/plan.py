"""The Plan: what will be released, how noisy, at what price, and the exact SQL. Planning reads no private
data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from privsql.algebra.exact import Dialect
from privsql.algebra.expressions import Call, Column, Expression, columns_of
from privsql.algebra.relations import BoundQuery, Choose, Limits, Relation, Release
from privsql.analysis.keys import KeySpace
from privsql.analysis.stability import Stability
from privsql.errors import Refused
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.known_relations import CountRelation
from privsql.planning.limits.bounding import Bounding
from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.measurements.price import PriceInFloats
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.post_processing import Output, PostProcessing
from privsql.planning.pricing import Pricing
from privsql.planning.release_plan import ReleasePlan, ValueStatement
from privsql.planning.rewrites.guarded import Guarded
from privsql.privacy.least_squares import Levels
from privsql.privacy.weighted_sums import Noise
from privsql.tables import Integers


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


@dataclass(frozen=True)
class Plan(PriceInFloats):
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
    def neighbours(self) -> str:
        return self.relation_of_neighbours.value

    @property
    def cells(self) -> int:
        return len(self.space)

    @property
    def chooses(self) -> bool:
        return isinstance(self.release, Choose)

    @property
    def public(self) -> bool:
        """Whether the query reads no private rows."""
        return self.release is None

    @cached_property
    def finishing(self) -> str:
        """The post-processing above the release, as SQL over the noisy table."""
        return "" if self.above is None else self.dialect.finishing(self.above.relation, self.above.guards)

    # -- of the one release
    @property
    def _only(self) -> ReleasePlan:
        (release,) = self.releases
        return release

    def measured_by(self, statement: ValueStatement) -> QuantileMeasurement:
        """The measurement that selects grid points in a histogram of values."""
        return self._only.measured_by(statement)

    @property
    def sql(self) -> str:
        return self._only.sql

    @property
    def counts(self) -> bool:
        return self._only.counts

    @property
    def runs(self) -> tuple[str, ...]:
        return self._only.runs

    @property
    def statements(self) -> tuple[str, ...]:
        return self._only.statements

    @property
    def of_values(self) -> tuple[ValueStatement, ...]:
        return self._only.of_values

    @property
    def keys(self) -> list[str]:
        return self._only.keys

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return self._only.measurements

    @property
    def selected_by(self) -> SelectionMeasurement | None:
        return self._only.selected_by

    @property
    def keys_shown_by(self) -> KeyMeasurement | None:
        return self._only.keys_shown_by

    @property
    def release(self) -> Release | Choose | None:
        return self._only.release

    @property
    def space(self) -> KeySpace:
        return self._only.space

    @property
    def stability(self) -> Stability:
        return self._only.stability

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        return self._only.estimates

    def leaves(self, expression: Expression) -> list[str]:
        """The aggregates that an expression is computed from."""
        names = dict.fromkeys(column.name for column in columns_of(expression))
        return [name for name in names if name in self.estimates]

    @property
    def quotients(self) -> Mapping[tuple[str, str], Estimate]:
        return self._only.quotients

    @property
    def dialect(self) -> Dialect:
        return self._only.dialect

    @property
    def pricing(self) -> Pricing | None:
        return self._only.pricing

    @property
    def steps(self) -> Mapping[Relation, Stability]:
        return self._only.steps

    @property
    def limits(self) -> Limits | None:
        return self._only.limits

    @property
    def bounding(self) -> tuple[Bounding, ...]:
        return self._only.bounding

    @property
    def levels(self) -> Levels | None:
        return self._only.levels

    @property
    def relations(self) -> tuple[CountRelation, ...]:
        return self._only.relations

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._only.warnings

    # -- of post-processing
    @property
    def query(self) -> BoundQuery:
        return self.post_processing.query

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.post_processing.outputs

    @property
    def above(self) -> Guarded | None:
        return self.post_processing.above

    @property
    def guards(self) -> Mapping[str, Call]:
        return self.post_processing.guards

    @property
    def nonnegative(self) -> bool:
        return self.post_processing.nonnegative

    @property
    def consistent(self) -> bool:
        return self.post_processing.consistent

    @property
    def show_all(self) -> bool:
        return self.post_processing.show_all

    def accuracy(self, level: float = 0.95, rows: int | None = None) -> Accuracy:
        """The accuracy of each output, before anything is spent.

        Arguments:
            level: the confidence level.
            rows: how many rows a cell has, which the accuracy of an AVG depends on.

        Returns:
            A dict from output names to half-widths of their intervals, None where they depend on the data.

        Raises:
            ArgumentError: the level is not between 0 and 1, or rows is not a whole number of at least 1.

        Example:
            >>> session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1.0).accuracy(0.95)["n"] > 0
            True
        """
        from privsql.planning.precision.half_widths import accuracy_of

        return accuracy_of(self, level, rows)

    def projected(self, nonnegative: bool, consistent: bool, show_all: bool = False) -> Plan:
        """The same plan with an answer that is nonnegative, consistent or shown whole, at no cost."""
        if consistent and self.levels is not None and self.relations:
            raise Refused(
                "refused-consistent",
                "consistent= does not support grouping sets: making one count fit into another would "
                "change totals",
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
        signs = {n for n, how in self.estimates.items() if how.nonnegative and self.nonnegative}
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
            **facts_of(self),
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


class Described(Protocol):
    """What plans of one release and of several have in common, for people and programs."""

    @property
    def measurements(self) -> Sequence[Measurement]: ...
    @property
    def outputs(self) -> Sequence[HasDict]: ...
    @property
    def neighbours(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class HasDict(Protocol):
    """What can be written as a dict."""

    def to_dict(self) -> dict[str, object]: ...


def facts_of(plan: Described) -> dict[str, object]:
    """What is measured and shown, at what price: of a plan of one release, or of several."""
    return {
        "measurements": [each.to_dict() for each in plan.measurements],
        "outputs": [each.to_dict() for each in plan.outputs],
        "neighbours": plan.neighbours,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
    }
