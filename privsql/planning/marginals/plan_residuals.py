"""A table, a workload and a price go in; the plan of a release of marginals comes out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from privsql.algebra.exact import Dialect, Statement
from privsql.algebra.expressions import Aggregate
from privsql.algebra.relations import BoundQuery, Key, Release, Scan
from privsql.analysis.keys import Evaluate, KeySpace
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import Stability
from privsql.errors import ArgumentError, Refused, UnknownName, did_you_mean
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.counts import counts_part
from privsql.planning.apply_limits import apply_limits
from privsql.planning.bound_contributions import bound_contributions
from privsql.planning.choose_measurements import context_of
from privsql.planning.draft import Draft, Task
from privsql.planning.exact_statement import exact_statement
from privsql.planning.marginals.cell_counts import COUNT, CellCounts, key_of
from privsql.planning.marginals.column_cells import ColumnCells, column_cells
from privsql.planning.marginals.mwem_plan import MwemPlan, measure_mwem
from privsql.planning.marginals.residual_measurement import measure_residuals
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.workload import Marginals
from privsql.planning.plan import Plan
from privsql.planning.pricing import Offer
from privsql.privacy.marginals.residual_price import Neighbouring
from privsql.suggestions import Argument
from privsql.types import BIGINT, Kind


@dataclass(frozen=True)
class ResidualTask:
    """What the plan may depend on. `enumerated`: columns whose type lists all their values."""

    scan: Scan
    neighbours: Neighbours
    offer: Offer
    enumerated: Collection[str]
    evaluate: Evaluate
    look: Look
    dialect: Dialect


def plan_residuals(task: ResidualTask, workload: Marginals) -> ResidualPlan:
    """Count every row once, in the cells of all columns, and measure the residuals of the workload.

    Raises Refused for tables and columns that cannot be released, ArgumentError for a workload that does not
    fit, UnknownName for a column that is not there.
    """
    counts, by = counted_cells(with_delta(task), cells_of_all(task, workload))
    sizes = [each.size for each in counts.columns]
    measured = measure_residuals(sizes, workload.sets(), by, task.offer.epsilon, task.offer.delta)
    return ResidualPlan(**fields_of_counts(counts), workload=workload, measurement=measured)


def with_delta(task: ResidualTask) -> ResidualTask:
    """The task. Raises ArgumentError where it has no delta, which Gaussian noise needs."""
    if not task.offer.delta:
        problem = "a release has Gaussian noise, which needs a delta above 0"
        raise ArgumentError("argument-delta", problem, [(Argument("delta", "1e-6"),)])
    return task


def plan_mwem(task: ResidualTask, workload: Marginals, rounds: int) -> MwemPlan:
    """Count every row once, in the cells of all columns, and measure some marginals, selected round by round.

    Raises what plan_residuals raises, but needs no delta.
    """
    counts, by = counted_cells(task, cells_of_all(task, workload))
    measured = measure_mwem(by, rounds, task.offer.epsilon)
    sizes = [each.size for each in counts.columns]
    return MwemPlan(**fields_of_counts(counts), workload=workload, measurement=measured, sizes=sizes)


def fields_of_counts(counts: CellCounts) -> dict[str, Any]:
    """All fields, from which a plan is made that also has noise."""
    return {each.name: getattr(counts, each.name) for each in fields(CellCounts)}


def counted_cells(task: ResidualTask, columns: tuple[ColumnCells, ...]) -> tuple[CellCounts, Neighbouring]:
    """What is counted, and what one unit can do to it."""
    if not task.scan.private:
        problem = f"{task.scan.table} is public: its counts are exact and cost nothing"
        raise Refused("refused-public-release", problem, "query it")
    draft = bound_contributions(apply_limits(_draft(task, columns)))
    assert draft.stability is not None
    counts = CellCounts(
        table=task.scan.table,
        columns=columns,
        statement=_statement(draft),
        relation_of_neighbours=task.neighbours,
        dialect=task.dialect,
        why=draft.stability.why,
        bounding=draft.bounding,
    )
    return counts, _neighbouring(draft.stability, task.neighbours)


def cells_of_all(task: ResidualTask, workload: Marginals) -> tuple[ColumnCells, ...]:
    """The cells of all columns of a workload."""
    return tuple(cells_of(task, name, workload.bins.get(name.lower())) for name in workload.columns)


def cells_of(task: ResidualTask, name: str, bins: int | tuple[Any, ...] | None) -> ColumnCells:
    """The cells of a column. Raises UnknownName if there is none of this name, Refused if it has no cells."""
    scan = task.scan
    found = next((each for each in scan.fields if each.name.lower() == name.lower()), None)
    if found is None:
        problem = f"{scan.table} has no column {name} that can be released"
        raise UnknownName("name-column", problem, did_you_mean(name, [each.name for each in scan.fields]))
    claim = scan.claims[found.name]
    both = found.type.kind is Kind.BOOLEAN and set(claim.values or ()) == {False, True}
    return column_cells(scan.table, found.column, claim, bins, both or found.name in task.enumerated)


def _draft(task: ResidualTask, columns: tuple[ColumnCells, ...]) -> Draft:
    """The release of the number of rows in the cells of all columns together."""
    keys = tuple(Key(key_of(place), each.code, each.column.name) for place, each in enumerate(columns))
    count = Aggregate("count", None, None, BIGINT)
    release = Release(task.scan, keys, ((COUNT, count),))
    question = BoundQuery(release, tuple(each.name for each in release.fields), release)
    planned = Task(question, task.neighbours, task.offer, task.evaluate, task.look, task.dialect)
    # whatever a row holds, it has one of these keys: none is tested for, and there may be too many to list
    return Draft(
        planned, _never_planned, release, {}, space=KeySpace(tuple(each.name for each in keys), (), True)
    )


def _never_planned(task: Task) -> Plan:
    raise AssertionError("the residuals are planned only once")


def _neighbouring(stability: Stability, neighbours: Neighbours) -> Neighbouring:
    replaced, rows = neighbours is Neighbours.REPLACE_ONE, stability.rows
    assert rows is not None
    return Neighbouring(rows, replaced, always=rows == 1 and stability.steady)


def _statement(draft: Draft) -> Statement:
    release = draft.release
    assert isinstance(release, Release)
    ((_, count),) = release.aggregates
    part = counts_part(0, [count], context_of(draft))
    return exact_statement(release, [part], draft.space, draft.limits)
