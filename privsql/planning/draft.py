"""What a plan is made from, and what the passes of planner.py have found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from privsql.algebra.exact import Dialect
from privsql.algebra.expressions import Aggregate, Expression
from privsql.algebra.relations import BoundQuery, Choose, Limits, Relation, Release
from privsql.analysis.facts import Facts
from privsql.analysis.keys import Evaluate, KeySpace
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import Stability
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.limits.bounding import Bounding
from privsql.planning.plan import Plan
from privsql.planning.pricing import Offer, Pricing
from privsql.planning.rewrites.prepared import Copies, no_copies
from privsql.privacy.least_squares import Levels

ONE_CELL = KeySpace((), ())


@dataclass(frozen=True)
class Task:
    """A query and everything its plan may depend on: the policy, the offer, public rows; never private rows.

    `beside`: counts may be measured jointly with sums of arguments that may be NULL, if that adds no noise.
    """

    query: BoundQuery
    neighbours: Neighbours
    offer: Offer
    evaluate: Evaluate
    look: Look
    dialect: Dialect
    copies: Copies = no_copies
    beside: bool = True
    keyed: Relation | None = None  # rows that have all keys, where the release's own lack some


@dataclass(frozen=True)
class Draft:
    """A plan in the making. Every pass reads what the earlier ones found, and adds its own findings."""

    task: Task
    replan: Callable[[Task], Plan]  # plans another task completely, to compare with
    release: Release | Choose
    shown: Mapping[str, Expression]  # the outputs, over the columns of the release
    facts: Facts = field(default_factory=dict)
    space: KeySpace = ONE_CELL  # the keys of the statement
    shown_space: KeySpace = ONE_CELL  # the keys of the answer, with totals where there are grouping sets
    levels: Levels | None = None
    stability: Stability | None = None
    limits: Limits | None = None  # None: the rows of one unit are already bounded
    bounding: tuple[Bounding, ...] = ()
    steps: Mapping[Relation, Stability] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    quotients: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    pricing: Pricing | None = None
    apart: Plan | None = None  # the plan with counts measured separately
    notes: tuple[str, ...] = ()

    @property
    def aggregates(self) -> list[Aggregate]:
        if isinstance(self.release, Choose):
            return [self.release.score]
        return [each for _, each in self.release.aggregates]

    @property
    def cells(self) -> int | None:
        """How many keys there may be; None: no GROUP BY."""
        return self.space.most if self.release.keys else None
