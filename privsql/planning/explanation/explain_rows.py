"""The rows of a plan go in; their part of EXPLAIN comes out: keys, limits, and how many rows one person can
touch at every step.
"""

from __future__ import annotations

from typing import assert_never

from privsql.algebra.describe import describe, describe_window
from privsql.algebra.relations import (
    AtMost,
    Choose,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Limits,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unnest,
    Unpivot,
    Values,
    WindowsWithinUnit,
    below,
)
from privsql.planning.explanation.tree import Branch
from privsql.planning.plan import Plan
from privsql.planning.precision.noise_of_rows import set_texts
from privsql.planning.rewrites.prepared import PreparedScan
from privsql.planning.rewrites.stored_totals import from_totals
from privsql.planning.rewrites.stored_unit_counts import CountedScan


def explain_rows(plan: Plan) -> Branch:
    """The keys, the limits, and below them every step over rows."""
    release = plan.release
    assert release is not None
    rows = _rows(release.input, plan)
    if plan.limits is not None:
        rows = _bounding(plan, plan.limits, rows)
    if not release.keys:
        return rows
    answered = "all are candidates" if plan.chooses else "all in the answer"
    cells = f"{plan.cells:,} key{'s' if plan.cells != 1 else ''}, {answered}"
    cells = (
        "undeclared keys, shown only if enough people have them"
        if plan.space.open
        else f"{cells}, including those without rows"
    )
    texts = [(describe(key.expression), key.name) for key in release.keys]
    shown = ", ".join(text if text == name else f"{text} AS {name}" for text, name in texts)
    if plan.levels is not None:
        lost = "rows with an undeclared key are in no total, and the limits per unit are applied cell by cell"
        return Branch(
            f"Group by {shown}, in the sets {', '.join(set_texts(plan))}: {cells}", (lost,), (rows,)
        )
    return Branch(f"Group by {shown}: {cells}", (), (rows,))


def _bounding(plan: Plan, limits: Limits, rows: Branch) -> Branch:
    """The limits on one unit, and what they may drop."""
    lost = [
        f"a unit with more than {limits.max_rows:,} row{'s' if limits.max_rows > 1 else ''} in a key counts "
        f"as {limits.max_rows:,}, and its sums are clamped to the range that so many rows can reach"
    ]
    if plan.keys and (plan.space.open or plan.cells > limits.max_groups):
        lost.append(
            f"a unit with more than {limits.max_groups:,} keys keeps {limits.max_groups:,}: those with the "
            "smallest hash of unit and key, which depends on that unit alone"
        )
    details = (*lost, "answers are low where people exceed these limits (policy: max_groups, max_rows)")
    return Branch(f"Bound contributions: {plan.stability.why}", details, (rows,))


def _by_rank(scan: PreparedScan, touched: str, plan: Plan) -> Branch:
    """The limit on one unit in a stored copy, whose rows are ranked beforehand."""
    assert plan.release is not None
    assert plan.pricing is not None
    rows = f"{scan.most:,} row{'s' if scan.most > 1 else ''}"
    below = Branch(f"Scan the prepared copy of {scan.table}: any number of rows per unit")
    if from_totals(plan.release, plan.pricing.parts) is not None:
        below = Branch(
            f"Scan the prepared totals of {scan.table} by rank: the sums over all rows of each rank"
        )
    if scan.units:
        return Branch(
            f"Keep the first row of each unit, by a stored rank: {touched}",
            ("every unit has a first row",),
            (below,),
        )
    details = [
        f"a unit with more than {rows} in {scan.table} keeps {scan.most:,}: the first by a hash "
        "of their content, which depends on that unit alone"
    ]
    if any(isinstance(each, (Filter, Semi)) for each in plan.steps):
        details.append(
            "these rows are chosen before WHERE, so rows that fail it take the place of others: "
            "a selective WHERE loses more than with prepared=False"
        )
    details.append("answers are low where people exceed these limits (policy: max_groups, max_rows)")
    return Branch(f"Keep at most {rows} per unit, by a stored rank: {touched}", tuple(details), (below,))


def _rows(relation: Relation, plan: Plan) -> Branch:
    """One step over rows: how many rows one person can touch there, and why."""
    if isinstance(relation, Project) and all(describe(each) == name for name, each in relation.columns):
        return _rows(relation.input, plan)
    here = plan.steps[relation]
    touched = f"{_touched(here.rows)} -- {here.why}"
    if isinstance(relation, PreparedScan):
        return _by_rank(relation, touched, plan)
    title = _title(relation)
    title = title if len(title) <= 100 else title[:97] + "..."
    return Branch(f"{title}: {touched}", (), tuple(_rows(each, plan) for each in below(relation)))


def _touched(rows: int | None) -> str:
    if rows is None:
        return "any number of rows per unit"
    if rows == 0:
        return "nobody's rows"
    return f"{rows:,} row{'s' if rows != 1 else ''} per person"


def _title(relation: Relation) -> str:
    match relation:
        case CountedScan():
            return f"Scan the prepared number of units of each key in {relation.table}"
        case Scan():
            return f"Scan {relation.table}"
        case Values():
            return f"{len(relation.rows)} constant rows"
        case Filter():
            return f"Filter {describe(relation.predicate)}"
        case Project():
            return "Compute " + ", ".join(f"{describe(each)} AS {name}" for name, each in relation.columns)
        case Join() | Semi() | UnionAll():
            return _title_of_several(relation)
        case Unpivot():
            return f"Unpivot into {relation.name}, {relation.value.name}"
        case Unnest():
            return f"Unnest {relation.of.name} into {relation.element.name}"
        case Group():
            listed = ", ".join(describe(key.expression) for key in relation.keys) or "the unit"
            return f"Group by {listed}"
        case WindowsWithinUnit():
            listed = ", ".join(describe_window(each) for _, each in relation.windows)
            return f"Windows within each unit: {listed}"
        case AtMost():
            return f"At most {relation.most} rows for each {relation.column}"
        case Sort() | Limit() | Distinct():
            return type(relation).__name__
        case Release() | Choose():
            raise AssertionError("not a relation over rows")
        case _:
            assert_never(relation)


def _title_of_several(relation: Join | Semi | UnionAll) -> str:
    match relation:
        case Join(kind="left"):
            return f"Left join on {describe(relation.on)}"
        case Join():
            return f"Join on {describe(relation.on)}"
        case Semi():
            return f"Keep rows {'without' if relation.anti else 'with'} a match on {describe(relation.on)}"
        case UnionAll():
            return "Union all"
        case _:
            assert_never(relation)
