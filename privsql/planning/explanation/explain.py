"""A plan goes in; its derivation comes out as text that a person can check by hand."""

from __future__ import annotations

from typing import Protocol

from privsql.algebra.describe import describe
from privsql.algebra.relations import (
    Choose,
    Distinct,
    Filter,
    Limit,
    Project,
    Relation,
    Release,
    Sort,
)
from privsql.planning.explanation.explain_measurements import explain_measurements
from privsql.planning.explanation.explain_rows import explain_rows
from privsql.planning.explanation.tree import Branch
from privsql.planning.plan import Derived, Plan


def explain(plan: Plan) -> str:
    """The whole derivation: the answer, the post-processing, the measurements, and the rows they read."""
    if plan.release is None:
        return f"Answer: {', '.join(output.name for output in plan.outputs)}\n" + "\n".join(
            f"Note: {n}" for n in plan.notes
        )
    details = []
    accuracy = plan.accuracy(0.95)
    for output in plan.outputs:
        if output.measurements or (plan.free and output.name in accuracy):
            used = ", ".join(f"M{index + 1}" for index in output.measurements) or "earlier answers"
            width = accuracy.get(output.name)
            note = f"±{width:,.4g} at 95%" if width is not None else accuracy.notes.get(output.name, "")
            details.append(f"{output.name} = {output.formula}   from {used}" + (f", {note}" if note else ""))
    steps = _after(plan.query.relation)
    if steps:
        details.append(f"after the noise, at no cost: {'; '.join(steps)}")
    details += [f"then, on request: {text}" for text in _projections(plan)]
    stored = [] if plan.derived is None else [_stored(plan.derived)]
    root = Branch(
        f"Answer: {', '.join(output.name for output in plan.outputs)}",
        tuple(details),
        (*stored, *explain_measurements(plan), explain_rows(plan)),
    )
    price = price_line(plan.epsilon, plan.delta, plan.rho, plan.neighbours)
    lines = [*root.lines(), price + budget_line(plan)]
    return "\n".join([*lines, *(f"Note: {note}" for note in plan.notes)])


def price_line(epsilon: float, delta: float, rho: float | None, neighbours: str) -> str:
    """What a query costs."""
    charged = "" if rho is None else f", charged as rho {rho:g}"
    return f"Cost: epsilon {epsilon:g}, delta {delta:g}{charged}, under {neighbours} neighbours"


class Budgeted(Protocol):
    """A plan that knows what remains of the budget, and why it may be refused."""

    @property
    def refusal(self) -> str: ...
    @property
    def remaining(self) -> float | None: ...
    @property
    def stored(self) -> bool: ...
    @property
    def epsilon(self) -> float: ...


def budget_line(plan: Budgeted) -> str:
    """What remains of the budget, or why it does not allow this query."""
    if plan.refusal:
        return f"\nThis would be refused now: {plan.refusal}"
    if plan.remaining is None:
        return ""
    after = plan.remaining if plan.stored else max(0.0, plan.remaining - plan.epsilon)
    return f"; {plan.remaining:g} of the budget remains before this query, {after:g} after it"


def _stored(derived: Derived) -> Branch:
    """The earlier answers from which this one is computed."""
    lines = []
    for each in derived.sources:
        text = " ".join(each.question.split())
        added = (
            "cell by cell"
            if each.cells == 1
            else f"each cell is the sum of up to {each.cells:,} of its cells"
        )
        lines.append(
            f"{text if len(text) <= 80 else text[:77] + '...'}"
            f" (epsilon {each.epsilon:g}, {each.when[:10]}): {added}"
        )
    if len(derived.sources) > 1:
        lines.append("several answers to the same cell are averaged, weighted by inverse variance")
    if derived.left_out:
        names = ", ".join(derived.left_out)
        lines.append(
            f"rows where {names} is not a declared key are missing from it (fresh=True runs the query anew)"
        )
    return Branch("From earlier answers, at no cost: no data is read", tuple(lines))


def _projections(plan: Plan) -> list[str]:
    """The post-processing that the caller requested."""
    found = plan.projections
    texts = []
    if found["nonnegative"]:
        texts.append(
            f"replaced by the nearest numbers that are at least 0, with the same totals: "
            f"{', '.join(found['nonnegative'])}"
        )
    if plan.consistent:
        known = ", ".join(found["consistent"])
        texts.append(
            f"replaced by the nearest counts with {known}"
            if known
            else "no relation between the counts is known"
        )
    if texts:
        texts.append(
            "intervals and ± are those of the numbers before this step; "
            "intervals are widened to include the result"
        )
    return texts


def _after(relation: Relation) -> list[str]:
    match relation:
        case Release() | Choose():
            return []
        case Filter():
            return [*_after(relation.input), f"keep {describe(relation.predicate)}"]
        case Sort():
            terms = ", ".join(
                f"{describe(each.expression)}{' DESC' if each.descending else ''}" for each in relation.by
            )
            return [*_after(relation.input), f"order by {terms}"]
        case Limit():
            limit = "" if relation.count is None else f"limit {relation.count}"
            return [
                *_after(relation.input),
                f"{limit} offset {relation.offset}".strip() if relation.offset else limit,
            ]
        case Distinct():
            return [*_after(relation.input), "distinct"]
        case Project():
            return _after(relation.input)
        case _:
            raise AssertionError("not above a release")
