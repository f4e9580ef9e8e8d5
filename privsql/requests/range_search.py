"""A stage whose ranges are to be found goes in; the stage with ranges comes out, and what finding them cost.

What the searches cost is a stated share of epsilon, and the whole is known to be affordable before the first
charge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.relations import BoundQuery
from privsql.budget.released import released
from privsql.errors import ArgumentError
from privsql.planning.limits.range_histograms import SHARE, Unknown, fitted, range_of, unknown_ranges
from privsql.planning.plan import Plan
from privsql.policy.checks import epsilon_of
from privsql.privacy.events import Event, Pure
from privsql.requests.pipeline import Pipeline
from privsql.requests.stage import Stage
from privsql.results.answer import FoundRange
from privsql.suggestions import Argument

_MISSED = 1e-3  # how often any empty bucket of a search may be taken for one with rows


@dataclass(frozen=True)
class Complete:
    """A stage with nothing left to find, and the ranges found. `query`: its query, if it is
    read already.
    """

    stage: Stage
    query: BoundQuery | None
    found: tuple[FoundRange, ...] = ()


def find_ranges(stage: Stage, pipeline: Pipeline) -> Complete:
    """Find the ranges that nobody declared, for a share of epsilon; the stage keeps the rest of it."""
    if not pipeline.policy.finds_ranges:
        return Complete(stage, None)
    query = pipeline.read(stage)
    missing = unknown_ranges(query)
    if not missing:
        return Complete(stage, query)
    pipeline.give_notice(plan_with_any_range(stage, missing, pipeline))
    whole, share = _shares(stage, missing)
    if _unpaid(stage, missing, pipeline):
        expect([stage], pipeline)
    rest, found = replace(stage, epsilon=whole * (1 - SHARE)), []
    for each in missing:
        known = _search(each, _histogram_of(each, stage, share), pipeline)
        found.append(known)
        rest = replace(rest, ranges=(*rest.ranges, (each.table, each.column, known.low, known.high)))
    return Complete(rest, None, tuple(found))


def _histogram_of(unknown: Unknown, stage: Stage, share: Fraction) -> Stage:
    """The search for one range, under the limits of the query."""
    return Stage(
        "",
        share,
        sizes_of=(unknown.table, unknown.column),
        max_rows=stage.max_rows,
        max_groups=stage.max_groups,
        prepared=stage.prepared,
        fresh=stage.fresh,
        analyst=stage.analyst,
        ranges=stage.ranges,
    )


def _unpaid(stage: Stage, missing: Sequence[Unknown], pipeline: Pipeline) -> list[Stage]:
    """The searches for these ranges that are not stored."""
    _, share = _shares(stage, missing)
    searches = (_histogram_of(each, stage, share) for each in missing)
    return [each for each in searches if not pipeline.is_stored(each)]


def _search(unknown: Unknown, stage: Stage, pipeline: Pipeline) -> FoundRange:
    priced = pipeline.plan(stage)
    counted = pipeline.answer(priced)
    width = priced.plan.measurements[0].half_width(1 - _MISSED / priced.plan.cells)
    frame = counted.df()
    low, high = range_of(frame["bucket"].tolist(), frame["n"].tolist(), width, unknown.type)
    return FoundRange(unknown.name, low, high, 0.0 if counted.stored else counted.plan.epsilon)


def likely_plan(stage: Stage, pipeline: Pipeline) -> Plan:
    """The plan of a stage, or where ranges are to be found, one of the same form and price."""
    query = pipeline.read(stage)
    missing = unknown_ranges(query)
    if missing:
        return plan_with_any_range(stage, missing, pipeline)
    return pipeline.plan(stage, query).plan


def plan_with_any_range(stage: Stage, missing: Sequence[Unknown], pipeline: Pipeline) -> Plan:
    """The plan as if the ranges were known: refuses what no range could help, before a search is paid."""
    ranges = tuple((each.table, each.column, 0.0, fitted(1.0, each.type)) for each in missing)
    return pipeline.plan(replace(stage, ranges=ranges)).plan


def expect(listed: Sequence[Stage], pipeline: Pipeline, open_limits: bool = False) -> None:
    """Refuse what cannot be afforded together, before the first of it is charged."""
    pipeline.ledger.expect(events_of(listed, pipeline, open_limits), pipeline.who(listed[0]))


def events_of(
    listed: Sequence[Stage], pipeline: Pipeline, open_limits: bool = False
) -> list[Sequence[Event]]:
    """What these stages are charged as, query by query, searches for their ranges included.

    What is stored costs nothing; but with `open_limits` the searches are made under limits still to be found,
    so that none of them counts as stored.
    """
    queries: list[Sequence[Event]] = []
    for stage in listed:
        missing = unknown_ranges(pipeline.read(stage))
        if missing:
            whole, share = _shares(stage, missing)
            paid = missing if open_limits else _unpaid(stage, missing, pipeline)
            queries += [[Pure(share)] for _ in paid]
            stage = replace(stage, epsilon=whole * (1 - SHARE))
        queries.append([each.event for each in released(likely_plan(stage, pipeline).measurements)])
    return queries


def first_range_search(stage: Stage, missing: Sequence[Unknown], pipeline: Pipeline) -> Plan:
    """The first search, which comes before the query; what follows depends on what it finds."""
    whole, share = _shares(stage, missing)
    plan_with_any_range(stage, missing, pipeline)
    plan = pipeline.plan(_histogram_of(missing[0], stage, share)).plan
    names, rest = ", ".join(each.name for each in missing), float(whole * (1 - SHARE))
    note = (
        f"first the range of {names} is found this way, each at epsilon {float(share):g}; then the query "
        f"runs with it, at epsilon {rest:g}: declare a range to save this"
    )
    return replace(plan, notes=(*plan.notes, note))


def _shares(stage: Stage, missing: Sequence[Unknown]) -> tuple[Fraction, Fraction]:
    """The whole epsilon, and what of it each search for a range may cost."""
    if stage.epsilon is None:
        raise ArgumentError(
            "argument-within",
            "how far this answer is off depends on a range that is not known yet",
            [("give ", Argument("epsilon"), " instead"), ("declare the range",)],
        )
    whole = stage.price()
    return whole, epsilon_of(whole * SHARE / len(missing))
