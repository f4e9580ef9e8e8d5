"""The Plan: what will be released, how noisy, at what price, and the exact SQL. Made without reading data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from privsql.algebra.exact import Dialect, Statement
from privsql.algebra.expressions import Call, Column, Expression
from privsql.algebra.relations import Choose, Limits, Question, Relation, Release
from privsql.analysis.keys import KeySpace
from privsql.analysis.stability import Stability
from privsql.errors import Refused
from privsql.neighbours import Neighbours
from privsql.planning.bins import Bins
from privsql.planning.bounding import Bounding, dropped_matches
from privsql.planning.estimates import Estimate, Linear, Ratio
from privsql.planning.guarded import Guarded
from privsql.planning.measurement import Measurement
from privsql.planning.pricing import Pricing
from privsql.planning.within import Within
from privsql.privacy.least_squares import Levels
from privsql.privacy.quantile_search import Search
from privsql.privacy.weighted_sums import Noise
from privsql.tables import Integers


@dataclass(frozen=True)
class Output:
    """What the analyst sees: a name, the measurements it is computed from, and how."""

    name: str
    measurements: tuple[int, ...]
    formula: str
    expression: Expression  # over the keys and aggregates of the release

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "measurements": list(self.measurements), "formula": self.formula}


@dataclass(frozen=True)
class ValueStatement:
    """A histogram of values: keys, grid points and rows, and the noisy columns that are chosen from it.

    `bins`: by what a shorter one is made, which is looked at first.
    """

    statement: Statement
    columns: tuple[str, ...]
    dialect: Dialect = field(compare=False, repr=False)
    bins: Bins | None = None

    @cached_property
    def sql(self) -> str:
        return self.dialect.statement(self.statement)

    def shorter(self, search: Search | None) -> str:
        """What is looked at first: by bins, where that is shorter."""
        if self.bins is None or search is None:
            return self.sql
        return self.dialect.statement(self.bins.statement(search))


@dataclass(frozen=True)
class StoredSource:
    """An earlier answer that a question is answered from."""

    question: str
    epsilon: float
    delta: float
    when: str
    cells: int  # how many of its cells are added up to one, at most


@dataclass(frozen=True, eq=False)
class Derived:
    """How noisy cells are computed from those of earlier answers: rows whose noise is alike, and the noise by
    column.
    """

    sources: tuple[StoredSource, ...]
    kinds: tuple[tuple[Integers | None, Mapping[str, Noise]], ...]
    # keys of theirs that are summed over: rows with another than the declared ones are missing
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything that will happen, derived from the text, the schema and the policy alone."""

    counted: Statement | None  # what has integer columns; None: all is chosen from histograms of values
    measurements: tuple[Measurement, ...]
    outputs: tuple[Output, ...]
    relation_of_neighbours: Neighbours
    loss: Fraction
    question: Question
    release: Release | Choose | None  # what is measured, as the SQL computes it; None: public tables only
    space: KeySpace
    stability: Stability
    estimates: Mapping[str, Estimate]  # by the name of an aggregate in the release
    # counts that are divided by others, and that share, known better than both
    quotients: Mapping[tuple[str, str], Ratio]
    dialect: Dialect = field(compare=False, repr=False)
    above: Guarded | None  # what stands above the release; None: public tables only
    pricing: Pricing | None  # how epsilon is split over the measurements; None: public tables only
    notes: tuple[str, ...] = ()
    steps: Mapping[Relation, Stability] = field(default_factory=dict, compare=False, repr=False)
    limits: Limits | None = None  # what is used of one unit at most, where units are bounded
    bounding: tuple[Bounding, ...] = field(default=(), compare=False)  # what limits may drop, where they may
    # how cells add up, over several sets of keys
    levels: Levels | None = field(default=None, compare=False, repr=False)
    relations: tuple[Within, ...] = ()  # what must hold between counts
    nonnegative: bool = False  # asked for: no count below 0, totals kept
    consistent: bool = False  # asked for: the relations hold
    show_all: bool = False  # asked for: also numbers that say nothing
    # of epsilon; None: no limit, or rho is counted
    remaining: float | None = field(default=None, compare=False)
    stored: bool = field(default=False, compare=False)  # it was asked before, and costs nothing now
    refusal: str = field(default="", compare=False)  # why the budget does not allow it now
    rho: float | None = field(default=None, compare=False)  # what is charged, where the accountant counts rho
    of_values: tuple[ValueStatement, ...] = ()  # what quantiles are chosen from
    # with counts by themselves, as earlier answers have them
    apart: Plan | None = field(default=None, compare=False, repr=False)
    # from earlier answers, with this one or alone
    derived: Derived | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """The price is that of the measurements; of a Gaussian release only all its parts together have
        one.
        """
        if self.loss != sum((each.loss for each in self.measurements), Fraction(0)):
            raise ValueError("a plan costs what its measurements cost")
        joint = [each.gaussian for each in self.measurements if each.gaussian is not None]
        if joint and (
            len({(each.epsilon, each.delta) for each in joint}) > 1 or sum(each.share for each in joint) != 1
        ):
            raise ValueError("a Gaussian release is priced whole")
        if sum(each.key_release is not None for each in self.measurements) > 1:
            raise ValueError("keys are let out once")

    @property
    def counts(self) -> bool:
        """Whether `sql` has integer columns; otherwise it is the first of the histograms of values."""
        return self.counted is not None

    @cached_property
    def sql(self) -> str:
        """The exact SQL, runnable by itself; with several histograms of values and no counts, the first."""
        return self.of_values[0].sql if self.counted is None else self.dialect.statement(self.counted)

    @cached_property
    def finishing(self) -> str:
        """What stands above the release, as SQL over the noisy table."""
        return "" if self.above is None else self.dialect.finishing(self.above.relation, self.above.guards)

    @property
    def guards(self) -> Mapping[str, Call]:
        """Further columns of the noisy table: NULL where what these calls need cannot be told."""
        return {} if self.above is None else self.above.guards

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """What the engine runs first: counts and sums, then of each histogram of values the shorter form if
        it has one.
        """
        found = [self.sql] if self.counts else []
        for each in self.of_values:
            found.append(each.shorter(next(m.search for m in self.measurements if m.columns == each.columns)))
        return tuple(found)

    @property
    def statements(self) -> tuple[str, ...]:
        """All that the engine may run; first what is measured."""
        return tuple(dict.fromkeys([self.sql, *(each.sql for each in self.of_values), *self.runs]))

    @property
    def keys(self) -> list[str]:
        return list(self.space.names)

    @property
    def neighbours(self) -> str:
        return self.relation_of_neighbours.value

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def delta_loss(self) -> Fraction:
        return sum((each.delta_loss for each in self.measurements), Fraction(0))

    @property
    def delta(self) -> float:
        return float(self.delta_loss)

    @property
    def cells(self) -> int:
        return len(self.space)

    @property
    def chooses(self) -> bool:
        return isinstance(self.release, Choose)

    @property
    def public(self) -> bool:
        """Whether no person's row is asked about."""
        return self.release is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an answer may lack, and why: by the query, the schema and the policy alone."""
        if self.release is None:
            return ()
        dropped = [sentence for each in self.bounding for sentence in each.sentences]
        missing = ["Keys that few units have are not shown."] if self.space.open else []
        return (*dropped, *dropped_matches(self.release.input), *missing)

    def accuracy(self, level: float = 0.95, rows: int | None = None) -> Accuracy:
        """The +- of each output at that confidence, before anything is spent; `rows`: rows per cell, for
        AVG.
        """
        from privsql.planning.accuracy import accuracy_of

        return accuracy_of(self, level, rows)

    def projected(self, nonnegative: bool, consistent: bool, show_all: bool = False) -> Plan:
        """The same plan, its answer made to be what could be true, or shown whole, afterwards and at no
        cost.
        """
        if consistent and self.levels is not None and self.relations:
            raise Refused(
                "refused-consistent",
                "over several sets of keys, counts are not made to fit into others: totals would move",
                "leave consistent out: the sets agree with each other as it is",
            )
        return replace(self, nonnegative=nonnegative, consistent=consistent, show_all=show_all)

    @property
    def projections(self) -> dict[str, list[str]]:
        """What is made to hold afterwards, by the names of the outputs; nothing unless asked for."""
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
        """Whether earlier answers say it all."""
        return self.derived is not None and not self.measurements

    def from_stored(self, derived: Derived, paid: bool) -> Plan:
        """The same question, answered from earlier answers; `paid`: this one's own measurements are among
        them.
        """
        if paid:
            return replace(self, derived=derived)
        outputs = tuple(replace(each, measurements=()) for each in self.outputs)
        return replace(self, derived=derived, measurements=(), loss=Fraction(0), outputs=outputs, notes=())

    def repriced(self, epsilon: Fraction) -> Plan:
        """The same plan at another price: the same SQL, other noise."""
        if self.pricing is None:
            return self
        measurements = self.pricing.at(epsilon)
        return replace(
            self, measurements=measurements, loss=sum((each.loss for each in measurements), Fraction(0))
        )

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
        from privsql.planning.explain import explain

        return explain(self)

    __repr__ = __str__


class Accuracy(dict[str, float | None]):
    """Output name -> half-width, None where it depends on the data; prints as lines.

    `together`: the half-widths within which all cells of all outputs are at once, so surely. For k counts
    that is note 001's bound, P(some error >= a n) <= k exp(-a epsilon n / k): divided by the number of rows
    n, the a of it.
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
