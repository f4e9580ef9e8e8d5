"""A query with several private parts goes in; its releases are answered as a batch, for one epsilon, and the
SQL above them is computed from their answers.

Everything is bound, priced and charged before the first release runs. The releases are stored before anything
is computed from them, so that the same query with other SQL above is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from privsql.algebra.expressions import Column
from privsql.budget.released import released, released_later
from privsql.engines.duckdb.calculator import calculator
from privsql.engines.duckdb.sandbox import sandbox
from privsql.errors import ArgumentError, Refused, SqlError
from privsql.planning.choose_measurements import NUMBERS
from privsql.planning.composed_plan import ComposedPlan, PlannedPart
from privsql.planning.limits.range_histograms import unknown_ranges
from privsql.planning.plan import Plan
from privsql.planning.precision.interval_kinds import box_of, end_types
from privsql.policy.checks import delta_of, epsilon_of
from privsql.privacy.events import Event, covers
from privsql.render.write_above import write_above
from privsql.requests.batches import Batch, answer_of, plan_batch, run_batch
from privsql.requests.explaining import with_budget
from privsql.requests.pipeline import Pipeline, Priced
from privsql.requests.stage import Stage
from privsql.results.answer import Answer
from privsql.results.composed_answer import ComposedAnswer, Compute
from privsql.results.finish import key_values
from privsql.sql.boxes.box import Boxed
from privsql.sql.split.composition import Composition, QueryPart
from privsql.sql.split.stage_values import Rows, example, rows_of
from privsql.tables import as_array
from privsql.types import Kind, Type

_MOST_EXAMPLES = 1_000
# Refused however many parts a query has.
_FINAL_KINDS = """
aggregate currentdate dialect not-grouped pattern recursive schema statement table-function tablesample type
"""
_FINAL = frozenset(f"refused-{each}" for each in _FINAL_KINDS.split())
_EXAMPLES: dict[Kind, Any] = {
    Kind.INTEGER: 1,
    Kind.DOUBLE: 1.0,
    Kind.BOOLEAN: True,
    Kind.TEXT: "a",
    Kind.DATE: datetime(2000, 1, 1),
    Kind.TIMESTAMP: datetime(2000, 1, 1),
}
# Said by the splitter of a part of a query; what is wrong with the whole says more.
_LESS_CLEAR = frozenset({"refused-rows", "name-table", "name-column"})


@dataclass(frozen=True)
class Composed:
    """A query with several private parts, planned: what is paid for each part, and the SQL above them."""

    parts: tuple[QueryPart, ...]
    plan: ComposedPlan
    batch: Batch


def answer_composed(stage: Stage, refusal: SqlError, pipeline: Pipeline) -> ComposedAnswer:
    """Answer a query that is not one release. Raises `refusal`, the reason why, where it has no private
    parts.
    """
    composed = _composed(stage, refusal, pipeline)
    for each in composed.plan.releases:
        pipeline.give_notice(each)
    batch = composed.batch
    paid = [charged_events(priced.plan, place in batch.later) for place, priced in batch.paid.items()]
    if paid:  # so that a refusal speaks of the whole price, and not of the first part that is too much
        pipeline.ledger.expect(paid, pipeline.who(stage))

    def now(priced: Priced, answers: Mapping[int, Answer]) -> Priced:
        known = {part.name: answers[place] for place, part in enumerate(composed.parts) if place in answers}
        return _with_values(priced, composed.parts, known, pipeline)

    answers = run_batch(composed.batch, pipeline, now)
    tables = {part.name: table_of(answer) for part, answer in zip(composed.parts, answers, strict=True)}
    parts = tuple(
        replace(part, plan=answer.plan) for part, answer in zip(composed.plan.parts, answers, strict=True)
    )
    plan = replace(composed.plan, parts=parts, rho=_rho(batch, pipeline))
    compute = Compute(sandbox().run_many, calculator().finish)
    return ComposedAnswer(tuple(sandbox().run(plan.above, tables)), plan, tuple(answers), compute)


def plan_composed(stage: Stage, refusal: SqlError, pipeline: Pipeline) -> ComposedPlan:
    """The plan of a query that is not one release, with what is left of the budget."""
    composed = _composed(stage, refusal, pipeline)
    batch = composed.batch
    paid = [charged_events(priced.plan, place in batch.later) for place, priced in batch.paid.items()]
    plan = with_budget(replace(composed.plan, stored=not paid), paid, stage, pipeline)
    return replace(plan, rho=_rho(batch, pipeline))


def _rho(batch: Batch, pipeline: Pipeline) -> float | None:
    """The price of all parts as the ledger counts it, each of them once; None where it counts epsilon."""
    every = [
        charged_events(priced.plan, place in batch.later)
        for place, priced in enumerate(batch.priced)
        if place not in batch.repeated and not priced.plan.public
    ]
    return pipeline.ledger.rho([event for events in every for event in events])


def _composed(stage: Stage, refusal: SqlError, pipeline: Pipeline) -> Composed:
    if refusal.code == "refused-unknown-keys" and stage.delta:
        stage = replace(stage, by_counts=True)
    composition = _composition(stage, refusal, pipeline)
    _refuse_searches(stage)
    _refuse_unknown_ranges(composition, stage, pipeline)
    batch = _planned(composition, stage, pipeline)
    parts = tuple(
        PlannedPart(part.name, priced.plan, place in batch.repeated)
        for place, (part, priced) in enumerate(zip(composition.parts, batch.priced, strict=True))
    )
    above = write_above(composition.above)
    columns = sandbox().check(above, {each.name: fields_of(each.plan) for each in parts})
    known = composition.simulated
    if known is not None and len(known.columns) != len(columns):
        known = None
    again = "" if known is None else write_above(known.query)
    box, ends = _box(composition, parts, len(columns))
    plan = ComposedPlan(parts, above, tuple(columns), known, again, box, ends)
    return Composed(composition.parts, plan, batch)


def _box(composition: Composition, parts: Sequence[PlannedPart], width: int) -> tuple[Boxed | None, str]:
    """The rules for the ends of columns, and their SQL; none where the engine does not accept it."""
    plans = {each.name: each.plan for each in parts}
    box = box_of(composition.above, plans)
    if box is None or len(box.columns) != width:
        return None, ""
    ends = write_above(box.query)
    try:
        sandbox().check(ends, {name: end_types(plan) for name, plan in plans.items()})
    except SqlError:
        return None, ""
    return box, ends


def _composition(stage: Stage, refusal: SqlError, pipeline: Pipeline) -> Composition:
    """The parts of a query. Raises the refusal of the whole where the query cannot be split."""
    if not isinstance(refusal, Refused) or refusal.code in _FINAL:
        raise refusal
    try:
        found = pipeline.composition(stage)
    except SqlError as other:
        raise refusal if other.code in _LESS_CLEAR else other from None
    if found is None:
        raise refusal
    return found


def _planned(composition: Composition, stage: Stage, pipeline: Pipeline) -> Batch:
    """Plan all parts. Those that read earlier answers are planned with the values of these, where they are
    stored, and with examples where they are not; their price is the same.
    """
    parts, listed = composition.parts, _stages_of(composition, stage)
    alone = {place for place, part in enumerate(parts) if part.needs}
    later = set(alone)
    if later:
        _give_examples(parts, listed, pipeline)
    while True:
        batch = plan_batch(listed, stage.price(), pipeline, alone, later)
        free = {parts[place].name: answer_of(batch, place, pipeline) for place in batch.free}
        known = [place for place in sorted(later) if parts[place].reads <= free.keys()]
        if not known:
            return batch
        for place in known:
            listed[place] = replace(listed[place], given=_values(parts[place], free))
            later.remove(place)


def _give_examples(parts: Sequence[QueryPart], listed: list[Stage], pipeline: Pipeline) -> None:
    """Let each part that reads earlier answers read examples of them: all declared keys, and 1 for every
    number.
    """
    tables: dict[str, Mapping[str, tuple[Any, Type]]] = {}
    for place, part in enumerate(parts):
        if part.needs:
            read = {name: table for name, table in tables.items() if name in part.reads}
            rows = [rows_of(each, sandbox().run(write_above(each.query), read)) for each in part.needs]
            found = zip(part.needs, rows, strict=True)
            given = tuple((each.name, known or example(each)) for each, known in found)
            listed[place] = replace(listed[place], given=given)
        tables[part.name] = example_table(pipeline.plan(listed[place]).plan)


def _with_values(
    priced: Priced, parts: Sequence[QueryPart], answers: Mapping[str, Answer], pipeline: Pipeline
) -> Priced:
    """A release of a later stage with the values of the earlier ones in place of the examples.

    It must be of the kind, and of the price, that was charged.
    """
    assert priced.stage.part is not None, "it is a part of a query"
    given = _values(parts[priced.stage.part], answers)
    found = pipeline.plan(replace(priced.stage, given=given))
    if not _is_covered(found.plan, priced.plan) and priced.stage.mechanism is None:
        # the less noisy mechanism may be another one than with the examples
        wanted = next((each.mechanism for each in priced.plan.measurements), None)
        name = next((name for name, each in NUMBERS.items() if each is wanted), None)
        found = pipeline.plan(replace(priced.stage, given=given, mechanism=name))
    if _is_covered(found.plan, priced.plan):
        return found
    raise Refused(
        "refused-stages",
        "With the values of the first stage, the second would be a release of another kind than was charged.",
        "Ask for the first stage by itself, and write its values into the second query.",
    )


def _values(part: QueryPart, answers: Mapping[str, Answer]) -> tuple[tuple[str, Rows], ...]:
    """The values that a part reads, computed from the answers of earlier parts."""
    tables = {name: table_of(answer) for name, answer in answers.items() if name in part.reads}
    return tuple(
        (each.name, rows_of(each, sandbox().run(write_above(each.query), tables))) for each in part.needs
    )


def _is_covered(plan: Plan, charged: Plan) -> bool:
    """Whether the charge for one plan pays for another, whose bounds, and so whose noise, may be others."""
    events, paid = charged_events(plan, False), charged_events(charged, True)
    return len(events) == len(paid) and all(map(covers, paid, events))


def charged_events(plan: Plan, later: bool) -> list[Event]:
    """What is charged for a plan; `later`: before the constants that it reads are known."""
    return [each.event for each in (released_later if later else released)(plan.measurements)]


def _refuse_searches(stage: Stage) -> None:
    """What is found before a query, or weighs its outputs, is for one release."""
    if stage.within is not None:
        raise _for_one_release("argument-within", "within")
    if stage.automatic:
        raise _for_one_release("argument-limits", stage.automatic[0])
    if stage.weights:
        raise _for_one_release("argument-weights", "weights")


def _refuse_unknown_ranges(composition: Composition, stage: Stage, pipeline: Pipeline) -> None:
    """Refuse these before anything is charged: a range is looked for by a release of its own."""
    for part, each in zip(composition.parts, _stages_of(composition, stage), strict=True):
        if part.noisy and not part.needs and unknown_ranges(pipeline.read(each)):
            raise ArgumentError(
                "argument-batch",
                "a range is not known yet, and is not looked for in a query of several parts",
                "declare it, or ask for each part by itself",
            )


def _for_one_release(code: str, name: str) -> ArgumentError:
    return ArgumentError(
        code,
        f"{name} is for queries of one release, and this one has several parts",
        "give epsilon and limits as numbers, or ask for each part by itself",
    )


def _stages_of(composition: Composition, stage: Stage) -> list[Stage]:
    """A stage for every part, with an equal share of epsilon and delta where it is private."""
    private = max(1, sum(each.noisy for each in composition.parts))
    epsilon, delta = epsilon_of(stage.price() / private), float(delta_of(stage.delta) / private)
    return [
        replace(stage, part=place, epsilon=epsilon, delta=delta, weights=None)
        for place in range(len(composition.parts))
    ]


def fields_of(plan: Plan) -> dict[str, Type]:
    """The columns of a part's answer."""
    return {each.name: each.expression.type for each in plan.outputs}


def example_table(plan: Plan) -> Mapping[str, tuple[Any, Type]]:
    """An answer as it might be: every declared key, unless there are too many, and 1 for every number."""
    cells = np.arange(1 if plan.public or plan.space.open else min(len(plan.space), _MOST_EXAMPLES))
    keys = {} if plan.public or plan.space.open else key_values(plan.space, cells)
    table: dict[str, tuple[Any, Type]] = {}
    for each in plan.outputs:
        name, type_ = (
            each.expression.name if isinstance(each.expression, Column) else "",
            each.expression.type,
        )
        values = list(keys[name]) if name in keys else [_EXAMPLES.get(type_.kind)] * len(cells)
        table[each.name] = as_array(values, type_), type_
    return table


def table_of(answer: Answer, arrays: Sequence[Any] | None = None) -> Mapping[str, tuple[Any, Type]]:
    """A part's answer as a table of the SQL above; `arrays`: other values in its cells."""
    values = answer.arrays if arrays is None else arrays
    return dict(zip(answer.columns, zip(values, fields_of(answer.plan).values(), strict=True), strict=True))
