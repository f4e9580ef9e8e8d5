"""A Session: a request goes in, an Answer comes out. `Session.ask` shows the whole way, and the other methods
build on it: query() and explain() take the fields of a Request as arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Never

import pandas as pd

from privsql.audit.audit import TRIES, Audit, audit
from privsql.budget.ledger import Budget, Ledger, MemoryLedger
from privsql.engines.base import Engine
from privsql.engines.resource_limits import ResourceLimits, open_limited
from privsql.errors import ArgumentError, Refused, no_more_arguments
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.plan import Plan
from privsql.policy import Policy, load_policy
from privsql.policy.checks import analyst_of, epsilon_of, version_of
from privsql.request import Request, argument, takes
from privsql.requests.batches import answer_batch, stages_of
from privsql.requests.explaining import budget_of, explain
from privsql.requests.limit_search import find_limits, suggest_limits
from privsql.requests.range_search import find_ranges
from privsql.requests.stage import Stage, check_flag
from privsql.requests.stages import Stages
from privsql.results.answer import Answer
from privsql.results.notices import BoundingNotice
from privsql.results.suggested_limits import SuggestedLimits
from privsql.schema import Schema
from privsql.sql.bind.catalogue import Catalogue


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


class Session:
    """Private answers about one source of data, under one policy and one budget.

    Threads may share a session: one of them has the source at a time, from planning to the answer.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        ledger: Ledger,
        analyst: str,
        randomness: Randomness | None = None,
        notice: BoundingNotice | None = None,
        version: str | None = None,
    ) -> None:
        given = randomness or SystemRandomness(), notice or BoundingNotice(), version
        self._stages = Stages(engine, policy, ledger, analyst, *given)

    def ask(self, request: Request) -> Answer:
        """Answer a request: find the limits and ranges it leaves open, then plan, charge, run and add noise.

        Each search is a stage of its own, and charged, too. Raises a PrivsqlError for whatever is wrong with
        the request; before the charge it says what, after the charge it is always the same sentence.

            session.ask(privsql.Request("SELECT COUNT(*) AS n FROM visits", epsilon=0.5))
        """
        stages = self._stages
        with stages.snapshot():
            # limits first: a search for ranges bounds units, too, and needs to know how
            stage, limits = find_limits(Stage.of(request), stages)
            complete = find_ranges(stage, stages)
            priced = stages.plan(complete.stage, complete.question)
            stages.give_notice(priced.plan)
            answer = stages.answer(priced)
        return replace(answer, found=complete.found, limits_found=limits)

    def plan(self, request: Request) -> Plan:
        """Plan a request: what ask() would do first. Reads no private data and spends nothing.

        print(session.plan(privsql.Request("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)))
        """
        return explain(Stage.of(request), self._stages)

    @takes(Request)
    def query(self, request: Request) -> Answer:
        """Spend epsilon, and get a noisy answer; asked again, the stored answer is returned, free.

            answer = session.query("SELECT state, COUNT(*) AS n FROM visits GROUP BY state", epsilon=0.5)
            print(answer); answer.df(); answer.intervals(0.95)

        Raises a PrivsqlError: Refused or another SqlError for the query, ArgumentError, BudgetError where the
        budget does not suffice, EngineError for whatever fails after the charge.
        """
        return self.ask(request)

    @takes(Request)
    def explain(self, request: Request) -> Plan:
        """What query() would do: reads no private data and spends nothing.

        print(session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=0.5))
        """
        return self.plan(request)

    @takes(AuditRequest)
    def audit(self, request: AuditRequest) -> Audit:
        """Try to break the promise of a query on made-up tables. Reads no private row, and spends nothing.

        print(session.audit("SELECT COUNT(*) AS n FROM visits", epsilon=1.0))

        The tables on which it is broken are shown, so that `data` may hold nothing secret; the tables of this
        session are refused.
        """
        engine, schema = self._stages.engine, self._stages.schema
        if not engine.auditable:
            raise ArgumentError(
                "argument-source",
                "an audit runs a plan on made-up tables in DuckDB, and these plans are another engine's",
                "create the same tables in a DuckDB file, empty, and audit the query there",
            )
        if request.data is not None and engine.holds(request.data):
            raise ArgumentError(
                "argument-data",
                "data= is the private source itself, and rows that an audit finds are shown",
                "give tables that are made up or published, or leave it out",
            )
        # made-up tables have no copies, and no stored answers
        plan = self.plan(replace(request, prepared=False, fresh=True))
        if not plan.public:
            for statement in plan.statements:
                engine.check(statement, schema)
        epsilon = plan.loss if request.epsilon is None else epsilon_of(request.epsilon)
        searched = request.releases, request.tries, request.progress, request.data
        return audit(plan, request.sql, schema, engine.read_public, epsilon, *searched)

    def batch(
        self,
        questions: Sequence[str],
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        dialect: str = "duckdb",
        show_all: bool = False,
        analyst: str | None = None,
        **unknown: Never,
    ) -> list[Answer]:
        """Answer several queries for one epsilon, split so that their errors are small.

            rows, states = session.batch(["SELECT COUNT(*) AS n FROM visits", "SELECT ..."], epsilon=1.0)

        What is the same, or follows from another query, is paid for once. All are priced and charged before
        the first is run. Raises what query() raises.
        """
        no_more_arguments(unknown, ("questions", "epsilon", "delta", "dialect", "show_all", "analyst"))
        stages, whole = stages_of(questions, epsilon, delta, dialect, show_all, analyst)
        return answer_batch(stages, whole, self._stages)

    def suggest_limits(
        self,
        table: str,
        epsilon: float = 0.1,
        *,
        by: str | Sequence[str] | None = None,
        query_epsilon: float = 1.0,
        fresh: bool = False,
        **unknown: Never,
    ) -> SuggestedLimits:
        """Find, privately, what limits on one unit's rows and keys would drop, and which limits suit a count.

            found = session.suggest_limits("visits", epsilon=0.1)
            print(found, found.max_rows, found.max_groups); found.df(); found.plot()

        `by`: the columns whose values are the keys; by default the declared ones. `query_epsilon`: the
        epsilon of the count that the limits are to suit. It is charged like any query.
        """
        no_more_arguments(unknown, ("table", "epsilon", "by", "query_epsilon", "fresh"))
        check_flag("fresh", fresh)
        whole, later = epsilon_of(epsilon), epsilon_of(query_epsilon, "query_epsilon")
        return suggest_limits(table, by, whole, later, fresh, self._stages)

    def prepare(self, table: str) -> None:
        """Store a copy of a table of many rows a unit, by which queries of it are fast.

        Call it again after the table changed; until then the copy is not used. Raises ArgumentError where no
        unit of the table has many rows.
        """
        with self._stages.snapshot():
            scan = self._stages.scan(table)
        if not scan.private or scan.unit is None or scan.unit.unique:
            raise ArgumentError(
                "argument-prepare",
                f"{table} has no unit with many rows: there is nothing to prepare",
                "queries of it are fast as it is",
            )
        self._stages.engine.prepare(scan)

    @property
    def budget(self) -> Budget:
        """Limit, spent and remaining; the analyst's own share if analysts have caps, and failed queries."""
        return budget_of(self._stages, self._stages.analyst)

    def budget_of(self, analyst: str) -> Budget:
        """The budget as one analyst has it, where several share this session."""
        return budget_of(self._stages, analyst_of(analyst))

    def history(self) -> pd.DataFrame:
        """What was released so far, and what it cost: a row for each charge."""
        rows = [
            {
                "when": e.when,
                "analyst": e.analyst,
                "question": e.question,
                "epsilon": e.epsilon,
                "delta": e.delta,
                "rho": e.rho,
                "released": "; ".join(map(str, e.released)),
                "failed": e.failed,
            }
            for e in self._stages.ledger.entries()
        ]
        rho = ["rho"] if self.budget.spent.rho is not None else []
        columns = ["when", "analyst", "question", "epsilon", "delta", *rho, "released", "failed"]
        return pd.DataFrame(rows, columns=columns)

    def close(self) -> None:
        """Let go of the source and the ledger; a DuckDB connection that the caller gave stays open."""
        self._stages.engine.close()
        self._stages.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    source: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    analyst: str = "analyst",
    deadline: float | None = None,
    memory_limit: int | str | None = None,
    time_quantum: float | None = None,
    version: str | None = None,
    **unknown: Never,
) -> Session:
    """Open a source of data under a policy: a DuckDB file or connection, a frame or a dict of them, a Parquet
    or CSV path, or the address of a PostgreSQL database (postgresql://...; see docs/engines.md).

    `ledger`: a file that keeps what is spent, shared by all who name it; without it, the budget is of this
    session alone. `deadline`: seconds after which a question fails, for certain: its SQL runs in a process
    that is killed then. `memory_limit`: what the engine may use, such as "2GB". `time_quantum`: answers come
    at whole multiples of so many seconds. `version`: what the data is called as it is now, such as "2026-11":
    with a ledger, later sessions under the same name get stored answers for nothing. Name another one
    whenever the data has changed.
    """
    no_more_arguments(
        unknown, ("policy", "ledger", "analyst", "deadline", "memory_limit", "time_quantum", "version")
    )
    declared, who, named = load_policy(policy), analyst_of(analyst), version_of(version)
    engine = open_limited(source, ResourceLimits.of(deadline, memory_limit, time_quantum))
    try:
        return Session(
            engine,
            declared,
            _ledger(ledger, declared, engine.schema()),
            who,
            version=named or declared.version,
        )
    except BaseException:
        engine.close()
        raise


def _ledger(path: str | Path | None, policy: Policy, schema: Schema) -> Ledger:
    if path is None:
        return MemoryLedger.under(policy)
    from privsql.budget.file_ledger import open_ledger

    # A ledger file lasts, and records the policy that it was opened under. So mistakes in the policy are
    # raised first. A refused table is none: it is a view that the policy does not name or that can fail, and
    # nobody is answered about it.
    catalogue = Catalogue(schema, policy)
    for table in schema.tables:
        with contextlib.suppress(Refused):
            catalogue.source(table.name)
    return open_ledger(path, policy, schema)
