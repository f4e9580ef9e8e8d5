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
from privsql.requests.range_search import events_of, first_range_search
from privsql.requests.stage import Stage
from privsql.requests.stages import Stages


def explain(stage: Stage, stages: Stages) -> Plan:
    """What answering would do first, what of the budget would be left, and why it would be refused now."""
    with stages.snapshot():
        search = _first_search(stage, stages)
        if search is not None:
            return with_budget(search, _charges(stage, stages), stage, stages)
        plan = stages.plan(stage.with_limits()).plan
        if plan.public:
            return with_budget(plan, [], stage, stages)
        if not stage.fresh and (stored := _as_stored(plan, stages)) is not None:
            return with_budget(stored, [], stage, stages)
        events = [each.event for each in released(plan.measurements)]
        return with_budget(plan, [events], stage, stages)


def _first_search(stage: Stage, stages: Stages) -> Plan | None:
    """The search that comes before a query; None where nothing has to be found."""
    if stage.automatic:
        searches = searches_for(stage, stages)
        if searches.histograms:
            return first_limit_search(searches, stages)
        stage = searches.rest
    missing = unknown_ranges(stages.read(stage))
    return first_range_search(stage, missing, stages) if missing else None


def _charges(stage: Stage, stages: Stages) -> list[Sequence[Event]]:
    """What would be charged for this request: stored searches cost nothing."""
    if not stage.automatic:
        return events_of([stage], stages)
    searches = searches_for(stage, stages)
    return events_of([searches.rest, *searches.unpaid(stages)], stages, open_limits=bool(searches.histograms))


def _as_stored(plan: Plan, stages: Stages) -> Plan | None:
    """How stored answers would answer it; None where they do not."""
    if stages.found_again(plan) is not None:
        note = "it was asked before: that answer is stored, and free"
        return replace(plan, stored=True, notes=(*plan.notes, note))
    derived = stages.find(plan)
    return None if derived is None else derived[0]


AnyPlan = TypeVar("AnyPlan", Plan, ComposedPlan)


def with_budget(plan: AnyPlan, queries: Sequence[Sequence[Event]], stage: Stage, stages: Stages) -> AnyPlan:
    """The plan with what is left of the budget, and why the budget does not allow these queries."""
    budget, why = budget_of(stages, stages.who(stage)), ""
    remaining = min(each.remaining.epsilon for each in (budget, budget.share) if each)
    # under zCDP epsilons do not subtract
    adds_up = remaining != float("inf") and budget.spent.rho is None
    try:
        if queries:
            stages.ledger.expect(queries, stages.who(stage))
    except BudgetError as refusal:
        why = refusal.message
    return replace(plan, rho=stages.rho(plan), remaining=remaining if adds_up else None, refusal=why)


def budget_of(stages: Stages, analyst: str) -> Budget:
    """What is left of the dataset's budget, and of one analyst's share of it."""
    ledger = stages.ledger
    budget = replace(ledger.budget, share=ledger.share(analyst), failures=ledger.failures(analyst))
    return budget if stages.policy.by_row else budget.without_counts()
