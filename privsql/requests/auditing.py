"""A plan and the request of an audit go in; the audit comes out. Its tables are not those of the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from privsql.algebra.relations import Scan, walk
from privsql.audit.audit import TRIES, Audit, audit
from privsql.errors import ArgumentError, Refused
from privsql.planning.composed_plan import AnyPlan, ComposedPlan
from privsql.planning.plan import Plan
from privsql.policy.checks import epsilon_of
from privsql.request import Request, argument
from privsql.requests.pipeline import Pipeline


@dataclass(frozen=True)
class AuditRequest(Request):
    """A query, and how hard an audit tries to break its promise."""

    _: KW_ONLY
    releases: int | None = argument(None, "how many noisy answers are drawn from each of two tables")
    tries: int = argument(TRIES, "how many pairs of tables are tried")
    progress: Callable[[str], None] | None = argument(
        None, "called with a line of text as the audit proceeds"
    )
    data: Any = argument(None, "tables to start from, as connect() takes them; never secret ones")


def refuse_own_tables(request: AuditRequest, pipeline: Pipeline) -> None:
    """Refuse to start from the private source itself. Call it before anything else is looked at."""
    if not pipeline.engine.auditable:
        raise ArgumentError(
            "argument-source",
            "an audit runs a plan on made-up tables in DuckDB, and these plans are another engine's",
            "create the same tables in a DuckDB file, empty, and audit the query there",
        )
    if request.data is not None and pipeline.engine.holds(request.data):
        raise ArgumentError(
            "argument-data",
            "data= is the private source itself, and rows that an audit finds are shown",
            "give tables that are made up or published, or leave it out",
        )


def _refuse_schemas(plan: Plan) -> None:
    """Refuse tables of other schemas: the made-up ones are all in the schema main."""
    scans = [] if plan.release is None else [each for each in walk(plan.release) if isinstance(each, Scan)]
    located = next((each.table for each in scans if each.location), None)
    if located is not None:
        raise ArgumentError(
            "argument-source",
            f"an audit makes up tables of the schema main, and {located} is in another one",
            "create the same tables in the schema main of a DuckDB file, empty, and audit the query there",
        )


def audit_plan(plan: AnyPlan, request: AuditRequest, pipeline: Pipeline) -> Audit:
    """Try to break the promise of a plan on made-up tables, or on those that the request gives."""
    engine, schema = pipeline.engine, pipeline.schema
    if isinstance(plan, ComposedPlan):
        raise Refused(
            "refused-several",
            "An audit is of one release, and this query has several parts.",
            "Audit the query of each part by itself; session.explain shows them.",
        )
    if not plan.public:
        for statement in plan.statements:
            engine.check(statement, schema)
    _refuse_schemas(plan)
    epsilon = plan.loss if request.epsilon is None else epsilon_of(request.epsilon)
    searched = request.releases, request.tries, request.progress, request.data
    return audit(plan, request.sql, schema, engine.read_public, epsilon, *searched)
