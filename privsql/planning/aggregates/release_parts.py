"""The parts of a release while they are collected: every family adds its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from privsql.algebra.expressions import Aggregate, Call, Expression, conjuncts
from privsql.analysis.facts import Facts, domain_of
from privsql.planning.aggregates.context import AggregationContext, filtered
from privsql.planning.aggregates.count_conditions import counted
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.parts import Beside, Part
from privsql.types import BOOLEAN

Named = tuple[str, Aggregate]


@dataclass(frozen=True)
class MeasuredAggregates:
    """Parts, and the estimate of every aggregate from their columns; also quotients of counts, which are more
    accurate than either count.
    """

    parts: Sequence[Part]
    estimates: Mapping[str, Estimate]
    quotients: Mapping[tuple[str, str], Estimate]


@dataclass(frozen=True)
class Wanted:
    """Counts that may be measured beside sums, by name. `public`: counts of all rows, where that number is
    public.
    """

    counts: Mapping[str, Aggregate]
    public: tuple[str, ...] = ()

    def rows(self, condition: Expression | None) -> list[str]:
        """The counts of all rows that meet a condition."""
        return [
            name
            for name, each in self.counts.items()
            if each.argument is None and each.condition == condition
        ]

    def nulls(self, argument: Expression, condition: Expression | None) -> list[str]:
        """The counts of the rows that meet a condition and have NULL in an argument."""
        is_null = Call("is_null", (argument,), BOOLEAN)
        missing = {is_null} if condition is None else {*conjuncts(condition), is_null}
        return [
            name
            for name, each in self.counts.items()
            if (what := counted(each)) and set(conjuncts(what)) == missing
        ]

    def kinds(
        self, arguments: Collection[Expression], condition: Expression | None, context: AggregationContext
    ) -> tuple[Beside, ...]:
        """The kinds of columns these counts need beside the sums of these arguments."""
        rows = bool(self.rows(condition))
        nulls = len(arguments) == 1 and any(self.nulls(each, condition) for each in arguments)
        if not context.one_replaced_cell:
            return (Beside.NULLS,) if rows or nulls else ()
        return ((Beside.NULLS,) if nulls else ()) + ((Beside.ROWS,) if rows else ())


@dataclass(frozen=True)
class Carrier:
    """Sums that can carry counts: the place of their part, their arguments and condition."""

    place: int
    arguments: Collection[Expression]
    condition: Expression | None


@dataclass
class ReleaseParts:
    """What the families have found so far. `divided`: counts that are divided by other counts."""

    aggregates: Sequence[Named]
    context: AggregationContext
    divided: Collection[tuple[str, str]]
    wanted: Wanted
    parts: list[Part] = field(default_factory=list)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    quotients: dict[tuple[str, str], Estimate] = field(default_factory=dict)
    carriers: list[Carrier] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The number of the next column."""
        return sum(len(part.columns) for part in self.parts) + 1

    @property
    def left(self) -> list[Named]:
        """The aggregates that no part covers yet."""
        return [(name, each) for name, each in self.aggregates if name not in self.estimates]

    def add(self, part: Part, estimates: Mapping[str, Estimate]) -> None:
        self.parts.append(part)
        self.estimates |= estimates

    def add_carrier(
        self,
        part: Part,
        estimates: Mapping[str, Estimate],
        arguments: Collection[Expression],
        condition: Expression | None,
    ) -> None:
        """Add sums of these arguments, which may carry counts."""
        self.carriers.append(Carrier(len(self.parts), arguments, condition))
        self.add(part, estimates)

    def measured(self) -> MeasuredAggregates:
        return MeasuredAggregates(self.parts, self.estimates, self.quotients)


def is_about(aggregate: Aggregate, argument: Expression, facts: Facts) -> bool:
    """Whether an aggregate follows from sums of an argument: its SUM, AVG and COUNT, or COUNT(*) if it is
    never NULL.
    """
    if aggregate.function not in ("sum", "avg", "count"):
        return False
    if aggregate.argument == argument:
        return True
    known = domain_of(argument, filtered(facts, aggregate.condition))
    return aggregate.function == "count" and aggregate.argument is None and not known.nullable
