"""A plan goes in; the derivation comes out as a tree that a person can check by hand."""

from __future__ import annotations

from privsql.planning.measurement import Measurement, Mechanism
from privsql.planning.plan import Plan
from privsql.privacy.accuracy import laplace_half_width


def explain(plan: Plan) -> str:
    """The whole derivation, top to bottom: the answer, its measurements, and the rows they count."""
    cells = f"{plan.cells:,} cell{'s' if plan.cells != 1 else ''}"
    what = "label only" if plan.chooses else cells
    lines = [f"Answer: {', '.join(output.name for output in plan.outputs)}   ({what})"]
    for output in plan.outputs:
        if output.measurements:
            used = ", ".join(f"M{index + 1}" for index in output.measurements)
            lines.append(f"|  {output.name} = {output.formula}   from {used}")
    accuracy = plan.accuracy(0.95)
    for name, width in accuracy.items():
        shown = f"+- {width:,.4g}" if width is not None else accuracy.notes[name]
        lines.append(f"|  {name}: {shown} at 95%, noise only")
    for index, measurement in enumerate(plan.measurements):
        lines += _measurement(index + 1, measurement)
    if plan.keys:
        lines.append(
            f"+- Keys: {', '.join(plan.keys)}   ({plan.cells:,} combinations, all in the answer, absent ones too)"
        )
    lines += [f"   {line}" for line in _steps(plan)]
    lines.append(
        f"Neighbours: {plan.neighbours}   Cost: epsilon {plan.epsilon:g}, delta {plan.delta:g}" + _remaining(plan)
    )
    lines += [f"Note: {note}" for note in plan.notes]
    if plan.stability.steady and not plan.keys and plan.stability.rows:
        lines.append(
            "Note: the number of rows is public under replace-one; an unfiltered COUNT(*) is noised all the same"
        )
    return "\n".join(lines)


def _measurement(number: int, measurement: Measurement) -> list[str]:
    columns = ", ".join(measurement.columns)
    lines = [f"+- M{number}: {columns}   ({measurement.what})"]
    if measurement.mechanism is Mechanism.PUBLIC:
        return [*lines, "|     public data only: no noise, no cost"]
    needs = "linf" if measurement.mechanism.chooses else "l1"
    factor = (
        measurement.scale
        * measurement.epsilon
        / (measurement.linf if measurement.mechanism.chooses else measurement.l1)
    )
    times = f"{factor:g} * " if round(factor) != 1 else ""
    lines.append(f"|     l1 = {measurement.l1:,}, linf = {measurement.linf:,}: {measurement.why}")
    lines.append(
        f"|     {measurement.mechanism.value}, scale {times}{needs}/epsilon = {measurement.scale:,.6g}, "
        f"epsilon {measurement.epsilon:g}"
    )
    if not measurement.mechanism.chooses:
        lines.append(f"|     each cell within +- {laplace_half_width(float(measurement.rate), 0.95):,} at 95%")
    return lines


def _steps(plan: Plan) -> list[str]:
    lines = ["One person can touch:"]
    for name, rows, why in plan.stability.steps:
        lines.append(f"  {name}: {rows} row{'s' if rows != 1 else ''} -- {why}")
    return lines


def _remaining(plan: Plan) -> str:
    return "" if plan.remaining is None else f"   Remaining budget before: epsilon {plan.remaining:g}"
