"""The plan of a query with several private parts goes in; its derivation comes out as text."""

from __future__ import annotations

from textwrap import indent

from privsql.planning.composed_plan import ComposedPlan, PlannedPart
from privsql.planning.explanation.explain import budget_line, price_line
from privsql.planning.precision.interval_kinds import IntervalKind


def explain_composed(plan: ComposedPlan) -> str:
    """The answer, the SQL above the releases, and the whole derivation of every release."""
    lines = [
        f"Answer: {', '.join(name for name, _ in plan.columns)}",
        "  computed from the releases below, at no cost:",
        indent(plan.above, "    "),
        *_intervals(plan),
        *(_part(each) for each in plan.parts),
        price_line(plan.epsilon, plan.delta, plan.rho, plan.neighbours) + budget_line(plan),
    ]
    return "\n".join(lines)


def _intervals(plan: ComposedPlan) -> list[str]:
    """Which interval each number will have."""
    noisy = [each for each in plan.outputs if each.interval is not IntervalKind.EXACT]
    if not noisy:
        return []
    return ["  intervals:", *(f"    {each.name}: {each.interval.value}" for each in noisy)]


def _part(part: PlannedPart) -> str:
    kind = "public table" if part.plan.public else "release"
    return f"{part.name}, a {kind}:\n{indent(str(part.plan), '  ')}"
