"""A request goes in; the plan of its first stage comes out. Reads no private row, spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from privsql.budget.ledger import Budget
from privsql.budget.released import released
from privsql.errors import BudgetError
from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.limits.range_histograms import unknown_ranges
from privsql.planning.plan import Plan
from privsql.privacy.events import Event
from privsql.requests.limit_search import first_limit_search, searches_for
from privsql.requests.pipeline import Pipeline
from privsql.requests.range_search import events_of, first_range_search
from privsql.requests.stage import Stage


def explain(stage: Stage, pipeline: Pipeline) -> Plan:
    """What answering would do first, what of the budget would be left, and why it would be refused now."""
    with pipeline.snapshot():
        search = _first_search(stage, pipeline)
        if search is not None:
            return with_budget(search, _charges(stage, pipeline), stage, pipeline)
        plan = pipeline.plan(stage.with_limits()).plan
        if plan.public:
            return with_budget(plan, [], stage, pipeline)
        if not stage.fresh and (stored := _as_stored(plan, pipeline)) is not None:
            return with_budget(stored, [], stage, pipeline)
        events = [each.event for each in released(plan.measurements)]
        plan = plan if stage.fresh else _beside_what_is_free(plan, pipeline)
        return with_budget(plan, [events], stage, pipeline)


def _first_search(stage: Stage, pipeline: Pipeline) -> Plan | None:
    """The search that comes before a query; None where nothing has to be found."""
    if stage.automatic:
        searches = searches_for(stage, pipeline)
        if searches.histograms:
            return first_limit_search(searches, pipeline)
        stage = searches.rest
    missing = unknown_ranges(pipeline.read(stage))
    return first_range_search(stage, missing, pipeline) if missing else None


def _charges(stage: Stage, pipeline: Pipeline) -> list[Sequence[Event]]:
    """What would be charged for this request: stored searches cost nothing."""
    if not stage.automatic:
        return events_of([stage], pipeline)
    searches = searches_for(stage, pipeline)
    return events_of(
        [searches.rest, *searches.unpaid(pipeline)], pipeline, open_limits=bool(searches.histograms)
    )


def _as_stored(plan: Plan, pipeline: Pipeline) -> Plan | None:
    """How stored answers would answer it; None where they do not."""
    if pipeline.found_again(plan) is not None:
        note = "the answer is stored, so it costs nothing"
        return replace(plan, stored=True, notes=(*plan.notes, note))
    derived = pipeline.find(plan)
    return None if derived is None else derived[0]


def _beside_what_is_free(plan: Plan, pipeline: Pipeline) -> Plan:
    """The plan, with a note of a less accurate answer that costs nothing."""
    known = pipeline.known(plan)
    if known is None:
        return plan
    width = next((each for each in known[0].accuracy(0.95).values() if each is not None), None)
    about = "" if width is None else f", within ±{width:,.4g} at 95%"
    note = f"without epsilon= it is answered from what was released before, at no cost{about}"
    return replace(plan, notes=(*plan.notes, note))


AnyPlan = TypeVar("AnyPlan", Plan, ComposedPlan)


def with_budget(
    plan: AnyPlan, queries: Sequence[Sequence[Event]], stage: Stage, pipeline: Pipeline
) -> AnyPlan:
    """The plan with what is left of the budget, and why the budget does not allow these queries."""
    budget, why = budget_of(pipeline, pipeline.who(stage)), ""
    remaining = min(each.remaining.epsilon for each in (budget, budget.share) if each)
    # under zCDP epsilons do not subtract
    adds_up = remaining != float("inf") and budget.spent.rho is None
    try:
        if queries:
            pipeline.ledger.expect(queries, pipeline.who(stage))
    except BudgetError as refusal:
        why = refusal.message
    return replace(plan, rho=pipeline.rho(plan), remaining=remaining if adds_up else None, refusal=why)


def budget_of(pipeline: Pipeline, analyst: str) -> Budget:
    """What is left of the dataset's budget, and of one analyst's share of it."""
    ledger = pipeline.ledger
    budget = replace(ledger.budget, share=ledger.share(analyst), failures=ledger.failures(analyst))
    return budget if pipeline.policy.by_row else budget.without_counts()
