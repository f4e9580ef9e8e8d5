"""A Task goes in: a query, its policy and the offer; a Plan comes out."""

from __future__ import annotations

from collections.abc import Callable

from privsql.algebra.exact import Rows, Select
from privsql.algebra.relations import BoundQuery, Choose, Release
from privsql.analysis.keys import KeySpace
from privsql.analysis.stability import Stability
from privsql.planning.aggregates.known_relations import CountRelation, relations_of
from privsql.planning.aggregates.quantile_points import OrderPart, value_bins, value_statement
from privsql.planning.apply_limits import apply_limits
from privsql.planning.bound_contributions import bound_contributions
from privsql.planning.choose_measurements import choose_measurements
from privsql.planning.describe_outputs import describe_outputs, expressions_shown
from privsql.planning.draft import Draft, Task
from privsql.planning.exact_statement import exact_statement
from privsql.planning.find_keys import find_keys
from privsql.planning.plan import Plan
from privsql.planning.post_processing import Output, PostProcessing
from privsql.planning.release_plan import ReleasePlan, ValueStatement
from privsql.planning.rewrites.guarded import guarded
from privsql.planning.rewrites.padded import settled

PASSES: tuple[Callable[[Draft], Draft], ...] = (
    apply_limits,  # the limits of the call; per-unit sums on a fixed-point grid
    find_keys,  # the values that the keys can have
    bound_contributions,  # how many rows of one unit count, by limits or by a stored copy
    choose_measurements,  # what gets noise, and for which share of epsilon
)


def plan(task: Task) -> Plan:
    """Choose the measurements, split epsilon over them, and write the exact statements."""
    task = settled(task)
    release = task.query.release
    if release is None:
        return _public(task)
    shown = expressions_shown(task.query)
    draft = Draft(task, replan=plan, release=release, shown=shown)
    for each in PASSES:
        draft = each(draft)
    return _assemble(draft)


def _assemble(draft: Draft) -> Plan:
    task, release, space, limits = draft.task, draft.release, draft.space, draft.limits
    assert draft.pricing is not None, "the passes price every part"
    assert draft.stability is not None, "the passes bound every unit"
    parts, measurements = draft.pricing.parts, draft.pricing.at(task.offer.epsilon)
    # one statement computes all sums and counts; each quantile takes a histogram of values, by one of its own
    counted = [part for part in parts if not isinstance(part, OrderPart)]
    of_values = tuple(
        ValueStatement(
            value_statement(release, part, space, limits),
            part.columns,
            task.dialect,
            value_bins(release, part, space, limits),
        )
        for part in parts
        if isinstance(part, OrderPart)
    )
    aggregates = () if isinstance(release, Choose) else release.aggregates
    relations: tuple[CountRelation, ...] = ()
    if isinstance(release, Release):
        bounded = limits is not None
        relations = relations_of(release, draft.estimates, parts, draft.facts, bounded)
    measured = ReleasePlan(
        counted=exact_statement(release, counted, space, limits) if counted else None,
        of_values=of_values,
        measurements=measurements,
        release=release,
        space=draft.shown_space,
        stability=draft.stability,
        estimates=draft.estimates,
        quotients=draft.quotients,
        dialect=task.dialect,
        pricing=draft.pricing,
        steps=draft.steps,
        limits=limits,
        bounding=draft.bounding,
        levels=draft.levels,
        relations=relations,
    )
    above = guarded(task.query.relation, frozenset(name for name, _ in aggregates))
    shown = PostProcessing(task.query, describe_outputs(draft, measurements), above)
    return Plan((measured,), shown, task.neighbours, draft.notes, apart=draft.apart)


def _public(task: Task) -> Plan:
    """A plan over public tables only: the query runs as it stands, exact and free."""
    query: BoundQuery = task.query
    fields = zip(query.names, query.relation.fields, strict=True)
    outputs = tuple(Output(name, (), each.name, each.column) for name, each in fields)
    exact = ReleasePlan(
        counted=Select((), Rows(query.relation), everything=True),
        measurements=(),
        release=None,
        space=KeySpace((), ()),
        stability=Stability(0, True, "public", lambda columns: 0),
        estimates={},
        quotients={},
        dialect=task.dialect,
        pricing=None,
    )
    notes = ("the query reads only public tables: the answer is exact and costs nothing",)
    return Plan((exact,), PostProcessing(query, outputs, None), task.neighbours, notes)
