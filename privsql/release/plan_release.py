"""A request goes in; the plan of its release comes out, with the strategies of least predicted error.

SQL queries are measured over the kinds of rows that all of them tell apart together, or block by block over
the columns that they name together, or as marginals of these columns: whichever has the least mean
variance.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from privsql.algebra.relations import Filter, Project, Relation, Release, Scan
from privsql.engines.duckdb.calculator import calculator
from privsql.errors import ArgumentError, Refused
from privsql.planning.marginals.joint_plan import JointPlan
from privsql.planning.marginals.plan_joint import Wanted, plan_joint
from privsql.planning.marginals.plan_residuals import ResidualTask, plan_residuals
from privsql.planning.marginals.range_workload import Ranges
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.planning.marginals.workload import MOST_WAYS, Marginals
from privsql.planning.public_look import PublicLook
from privsql.release.answer_query import Counted, counted
from privsql.release.asked_queries import AskedQueries, asked_queries, range_queries
from privsql.release.release_request import ReleaseRequest
from privsql.release.residual_tables import variance_of_sum
from privsql.requests.pipeline import Pipeline
from privsql.requests.stage import Stage


def plan_release(request: ReleaseRequest, pipeline: Pipeline) -> ResidualPlan | JointPlan:
    """What a release would do. Reads no private data."""
    first = request.listed[0]
    if isinstance(request.workload, Marginals) and isinstance(first, Marginals):
        return plan_residuals(task_of(request, _named(request), pipeline), first)
    table, queries = _queries(request, pipeline)
    task = task_of(request, table, pipeline)
    wanted: list[Wanted] = []
    for each in request.listed:
        if isinstance(each, Marginals):
            wanted.append(each)
        elif isinstance(each, Ranges):
            wanted.append(range_queries(each, task))
    if queries:
        wanted += _best_parts(asked_queries(queries, task), task)
    return plan_joint(task, wanted)


def task_of(request: ReleaseRequest, name: str, pipeline: Pipeline) -> ResidualTask:
    """The table, and what the plan may depend on."""
    offer = request.offer()
    scan = pipeline.scan(name)
    table = pipeline.schema.table(scan.table)
    declared = pipeline.policy.table(scan.table)
    enumerated = [
        each.name
        for each in (() if table is None else table.columns)
        if each.labels is not None and declared.column(each.name).values is None
    ]
    engine = pipeline.engine
    look = PublicLook(engine.read_public, engine.dialect)
    neighbours, evaluate = pipeline.policy.neighbours, calculator().evaluate
    return ResidualTask(scan, neighbours, offer, enumerated, evaluate, look, engine.dialect)


def _named(request: ReleaseRequest) -> str:
    if request.table is None:
        raise ArgumentError("argument-table", "say which table is released", 'table="people"')
    return request.table  # the catalogue refuses what is no name


def _queries(request: ReleaseRequest, pipeline: Pipeline) -> tuple[str, list[Counted]]:
    """The one table of a request, and what its SQL queries count."""
    found: list[Counted] = []
    table = None if request.table is None else pipeline.scan(_named(request)).table
    for text in request.texts:
        question = pipeline.read(Stage(text, Fraction(1), dialect=request.dialect))
        own = None if question.release is None else _table_of(question.release)
        table = table or own
        if table is None or own != table:
            problem = f"a release counts rows of one table, and this query is not of {table or 'one'} alone"
            raise Refused("refused-not-released", problem, "release each table by itself")
        found.append(counted(question, table))
    return table or _named(request), found


def _table_of(relation: Relation) -> str | None:
    """The table whose rows are counted."""
    while isinstance(relation, Release | Filter | Project):
        relation = relation.input
    return relation.table if isinstance(relation, Scan) else None


def _best_parts(asked: AskedQueries, task: ResidualTask) -> list[Wanted]:
    """How to measure some queries with the least mean variance of all."""
    options = [each for each in (_together(asked), _blocks(asked), _marginals(asked)) if each]
    if not options:
        many = math.prod(each.size for each in asked.cells.values())
        problem = f"these queries tell too many kinds of rows apart ({many:,} combinations of cells)"
        raise Refused("refused-many-cells", problem, "release fewer queries, or coarser ones")
    if len(options) == 1:
        return options[0]
    variances = [_variance(asked, plan_joint(task, each)) for each in options]
    return options[int(np.argmin(variances))]


def _together(asked: AskedQueries) -> list[Wanted]:
    found = asked.together(list(asked.cells), _called(asked))
    return [] if found is None else [found]


def _called(asked: AskedQueries) -> str:
    return f"{len(asked.counted)} SQL {'query' if len(asked.counted) == 1 else 'queries'}"


def _blocks(asked: AskedQueries) -> list[Wanted]:
    """The queries over each set of columns that is within no other."""
    largest = _largest(asked)
    if len(largest) < 2:
        return []
    found: list[Wanted] = []
    for columns in largest:
        block = asked.together(columns, f"SQL queries over {', '.join(columns)}")
        if block is None:
            return []
        found.append(block)
    return found


def _largest(asked: AskedQueries) -> list[list[str]]:
    """The sets of columns that are within no other, each in the order of the columns."""
    sets = set(asked.sets)
    kept = [each for each in sets if each and not any(each < other for other in sets)]
    return sorted([[name for name in asked.cells if name in each] for each in kept])


def _marginals(asked: AskedQueries) -> list[Wanted]:
    """The marginals from which all queries follow."""
    names = list(asked.cells)
    sets = tuple(tuple(names.index(name) for name in columns) for columns in _largest(asked))
    ways = max(map(len, sets))
    if ways > MOST_WAYS:
        return []
    bins = {name.lower(): each.edges for name, each in asked.cells.items() if each.edges}
    return [Marginals(tuple(names), ways, bins, sets)]


def _variance(asked: AskedQueries, plan: JointPlan) -> float:
    """The mean variance of the counts of all queries by a plan of them alone."""
    (first, *_) = plan.parts
    if isinstance(first, StrategyPlan):
        strategies = [each for each in plan.parts if isinstance(each, StrategyPlan)]
        many = sum(each.asked.queries.many for each in strategies)
        return sum(each.deviation**2 * each.asked.queries.many for each in strategies) / many
    found = []
    for each, names in zip(asked.counted, asked.sets, strict=True):
        columns = tuple(place for place, name in enumerate(first.names) if name in names)
        masks = asked.masks(each, [first.columns[place] for place in columns])
        found += [variance_of_sum(first.measurement, columns, mask.astype(np.float64)) for mask in masks]
    return math.fsum(found) / max(1, len(found))
