"""A Session: a request goes in, an Answer comes out. `Session.ask` shows the whole way, and the other methods
build on it: query() and explain() take the fields of a Request as arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Never

import pandas as pd

from privsql.audit.audit import Audit
from privsql.budget.ledger import Budget, Ledger
from privsql.engines.base import Engine
from privsql.errors import SqlError, no_more_arguments
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.composed_plan import AnyPlan
from privsql.policy import Policy
from privsql.policy.checks import analyst_of, epsilon_of
from privsql.release.joint_batch import answer_jointly
from privsql.release.releases import StoredReleases
from privsql.release.releasing_session import ReleasingSession
from privsql.request import Request, takes
from privsql.requests.advising import AdviceRequest, advise
from privsql.requests.auditing import AuditRequest, audit_plan, refuse_own_tables
from privsql.requests.batches import answer_batch, stages_of
from privsql.requests.composing import answer_composed, plan_composed
from privsql.requests.describing import describe_tables, history_of
from privsql.requests.explaining import budget_of, explain
from privsql.requests.limit_search import find_limits, suggest_limits
from privsql.requests.pipeline import Pipeline
from privsql.requests.preparing import prepare_copy
from privsql.requests.range_search import find_ranges
from privsql.requests.stage import Stage, check_flag
from privsql.requests.statements import as_select
from privsql.requests.told_for_free import answer_told
from privsql.results.advising.advice import Advice
from privsql.results.advising.suggested_limits import SuggestedLimits
from privsql.results.composed_answer import AnyAnswer
from privsql.results.notices import BoundingNotice


class Session(ReleasingSession):
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
        self._pipeline = Pipeline(engine, policy, ledger, analyst, *given)
        self._releases = StoredReleases(self._pipeline)

    def ask(self, request: Request) -> AnyAnswer:
        """Answer a request: find the limits and ranges it leaves open, then plan, charge, run and add noise.

        Each search for a limit or range is charged as a stage of its own.
        A query that is not one release is taken apart: its releases are answered together, and the SQL above
        them is computed from their answers.

        Arguments:
            request: the query, its epsilon and its options.

        Returns:
            The noisy answer.

        Raises:
            PrivsqlError: as `query` raises it.

        Example:
            >>> session.ask(privsql.Request("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)).columns
            ['n']
        """
        pipeline = self._pipeline
        request = as_select(request, pipeline)
        told = answer_told(Stage.of(request), pipeline)
        if told is not None:
            return told
        with pipeline.snapshot():
            try:
                # limits first: a search for ranges bounds units, too, and needs to know how
                stage, limits = find_limits(Stage.of(request), pipeline)
                complete = find_ranges(stage, pipeline)
                priced = pipeline.plan(complete.stage, complete.query)
            except SqlError as refusal:
                return answer_composed(Stage.of(request), refusal, pipeline)
            pipeline.give_notice(priced.plan)
            answer = pipeline.answer(priced)
        if not complete.found and not limits:
            return answer
        return replace(answer, found=complete.found, limits_found=limits)

    def plan(self, request: Request) -> AnyPlan:
        """Plan a request without answering it. Reads no private data and spends nothing.

        Arguments:
            request: the query, its epsilon and its options.

        Returns:
            The plan: what would be measured, with which noise, at what price, and the SQL.

        Raises:
            PrivsqlError: as `explain` raises it.

        Example:
            >>> session.plan(privsql.Request("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)).epsilon
            0.5
        """
        request = as_select(request, self._pipeline)
        try:
            return explain(Stage.of(request), self._pipeline)
        except SqlError as refusal:
            with self._pipeline.snapshot():
                return plan_composed(Stage.of(request), refusal, self._pipeline)

    @takes(Request)
    def query(self, request: Request) -> AnyAnswer:
        """Spend epsilon, and get a noisy answer. A repeated query returns the stored answer at no cost.

        What follows from earlier answers or releases, at least as accurately, is free, too. Without epsilon
        and within, nothing is spent: the answer is the best that follows from what was released before.

        Returns:
            The noisy answer, with intervals and a receipt.

        Raises:
            SqlError: the SQL cannot be parsed; Refused, if it is valid but has no private answer.
            ArgumentError: an argument is wrong.
            BudgetError: the budget does not suffice.
            EngineError: the engine failed after the charge; the message never depends on the data.

        Example:
            >>> answer = session.query("SELECT state, COUNT(*) FROM visits GROUP BY state", epsilon=0.5)
            >>> answer.df()["state"].tolist()
            ['CA', 'NY']
        """
        return self.ask(request)

    @takes(Request)
    def explain(self, request: Request) -> AnyPlan:
        """Show what query() would do. Reads no private data and spends nothing.

        Returns:
            The plan; printed, it is a derivation that a person can check.

        Raises:
            SqlError: the SQL cannot be parsed; Refused, if it is valid but has no private answer.
            ArgumentError: an argument is wrong.

        Example:
            >>> plan = session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
            >>> plan.measurements[0].mechanism.value
            'discrete Laplace'
        """
        return self.plan(request)

    @takes(AdviceRequest)
    def advise(self, request: AdviceRequest) -> Advice:
        """Show the error of a query at several epsilons, and what an attacker could learn. Spends nothing.

        Returns:
            The advice: it prints as a table, and plots the error against epsilon.

        Raises:
            SqlError: the SQL cannot be parsed; Refused, if it is valid but has no private answer.
            ArgumentError: an argument is wrong.

        Example:
            >>> session.advise("SELECT COUNT(*) AS n FROM visits", epsilons=[0.1, 1.0]).df()["n"].tolist()
            [60.0, 6.0]
        """
        return advise(request, self.plan, budget_of(self._pipeline, self._pipeline.who(Stage.of(request))))

    @takes(AuditRequest)
    def audit(self, request: AuditRequest) -> Audit:
        """Try to break a query's privacy promise on made-up tables. Reads no private row, spends nothing.

        The report shows the tables that come closest, so `data` must not be secret.

        Returns:
            The audit: the verdict, the bounds found and claimed, and the worst pair of tables.

        Raises:
            SqlError: the SQL cannot be parsed; Refused, if it is valid but has no private answer.
            ArgumentError: an argument is wrong, or `data` is the session's own source.

        Example:
            >>> session.audit("SELECT COUNT(*) AS n FROM visits", epsilon=1.0, releases=1_000).held
            True
        """
        refuse_own_tables(request, self._pipeline)
        # made-up tables have no copies, and no stored answers
        plan = self.plan(replace(request, prepared=False, fresh=True))
        return audit_plan(plan, request, self._pipeline)

    def batch(
        self,
        queries: Sequence[str],
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        dialect: str = "duckdb",
        show_all: bool = False,
        analyst: str | None = None,
        **unknown: Never,
    ) -> list[AnyAnswer]:
        """Answer several queries for one epsilon, split so that their errors are small.

        Equivalent queries are charged once, and the whole batch before its first query runs. Counts of one
        table are released jointly, where a delta is given and that makes their errors smaller.

        Arguments:
            queries: the queries, one SELECT each.
            epsilon, delta: the privacy loss of the whole batch.
            dialect: the dialect of the SQL; any that sqlglot reads.
            show_all: whether cells with too few rows are shown instead of NULL.
            analyst: who asks, in the ledger; by default the analyst of the session.

        Returns:
            One answer for each query, in order.

        Raises:
            PrivsqlError: as `query` raises it, for the first query at fault.

        Example:
            >>> texts = [f"SELECT {each} AS a FROM visits" for each in ("COUNT(*)", "AVG(age)")]
            >>> len(session.batch(texts, epsilon=1.0))
            2
        """
        no_more_arguments(unknown, ("queries", "epsilon", "delta", "dialect", "show_all", "analyst"))
        stages, whole = stages_of(queries, epsilon, delta, dialect, show_all, analyst)
        jointly = answer_jointly(stages, whole, delta, self._releases, self._pipeline)
        return list(jointly or answer_batch(stages, whole, self._pipeline))

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
        """Find, privately, what limits on a unit's rows and keys would drop, and which limits suit a count.

        Arguments:
            table: the table, which must have a unit with many rows.
            epsilon: the privacy loss of the search; it is charged like any query.
            by: the columns whose values are the keys; by default the declared ones.
            query_epsilon: the epsilon of the count that the limits should suit.
            fresh: whether to spend again instead of returning the stored result.

        Returns:
            The suggested `max_rows` and `max_groups`, None where the noise hides them, and tables of each.

        Raises:
            ArgumentError: an argument is wrong, or no unit of the table has many rows.
            BudgetError: the budget does not suffice.

        Example:
            >>> session.suggest_limits("visits", epsilon=0.1).table
            'visits'
        """
        no_more_arguments(unknown, ("table", "epsilon", "by", "query_epsilon", "fresh"))
        check_flag("fresh", fresh)
        whole, later = epsilon_of(epsilon), epsilon_of(query_epsilon, "query_epsilon")
        return suggest_limits(table, by, whole, later, fresh, self._pipeline)

    def prepare(self, table: str) -> None:
        """Store a copy of a table with many rows per unit, which makes queries of the table fast.

        Call it again after the table has changed; until then the copy is not used.

        Arguments:
            table: the name of the table.

        Raises:
            ArgumentError: no unit of the table has many rows.
            SourceError: the copy cannot be stored.

        Example:
            >>> session.prepare("visits")
        """
        prepare_copy(table, self._pipeline)

    def tables(self, table: str | None = None) -> pd.DataFrame:
        """Describe the tables, or one of them, from schema and policy. Reads no row, spends nothing.

        Arguments:
            table: the name of one table; by default all that a query may name.

        Returns:
            A row for each column: its type, whether it may be NULL, whether it is the unit, its range or
            keys.

        Raises:
            UnknownName: there is no such table.

        Example:
            >>> session.tables("visits")["column"].tolist()[:2]
            ['user_id', 'state']
        """
        return describe_tables(self._pipeline, table)

    @property
    def budget(self) -> Budget:
        """The limit, what is spent and what remains; also the analyst's share, if analysts have caps."""
        return budget_of(self._pipeline, self._pipeline.analyst)

    def budget_of(self, analyst: str) -> Budget:
        """The budget of one analyst, if several share this session.

        Arguments:
            analyst: the analyst's name, as in the ledger.

        Returns:
            The limit, what is spent and what remains, with the analyst's own share.

        Example:
            >>> session.budget_of("ana").remaining.epsilon <= session.budget_of("ana").limit.epsilon
            True
        """
        return budget_of(self._pipeline, analyst_of(analyst))

    def history(self) -> pd.DataFrame:
        """What was released so far, and what it cost.

        Returns:
            A data frame with a row for each charge.

        Example:
            >>> "epsilon" in session.history().columns
            True
        """
        return history_of(self._pipeline)

    def close(self) -> None:
        """Close the source and the ledger. A DuckDB connection that the caller gave stays open."""
        self._pipeline.engine.close()
        self._pipeline.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
