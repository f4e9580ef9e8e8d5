"""The df.dp accessor: a pandas frame and a query go in; a noisy frame with its receipt comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never
from uuid import uuid4

import pandas as pd

from privsql.budget.ledger import Budget
from privsql.errors import ArgumentError, BudgetError, PolicyError, did_you_mean, no_more_arguments
from privsql.frame.budget import LINEAGE, PROTECTIONS, TOKEN, Protection, Relation, asked_before, token_of
from privsql.frame.frame_door import said_at_frame
from privsql.frame.frame_query import FrameQuery, of_columns, with_declared
from privsql.frame.state import state_of
from privsql.neighbours import Neighbours
from privsql.policy import Policy
from privsql.policy.checks import delta_of, epsilon_of, neighbours_of
from privsql.policy.load import unit_of
from privsql.request import Request, takes

if TYPE_CHECKING:  # imported when first used: they need DuckDB and sqlglot
    from privsql.planning.composed_plan import AnyPlan
    from privsql.results.advising.suggested_limits import SuggestedLimits
    from privsql.results.composed_answer import AnyAnswer
    from privsql.session import Session

_PROTECT = "unit ranges keys neighbours budget delta max_groups max_rows ledger budget_of".split()
_ANALYST = "analyst"  # anyone who has the frame


@pd.api.extensions.register_dataframe_accessor("dp")
class FrameAccessor:
    """`df.dp`: private queries of a data frame, and the receipt of a private answer."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._state = state_of(frame)

    # -- queries -------------------------------------------------------------------------------------------
    @said_at_frame()
    def protect(
        self,
        *,
        unit: str | Sequence[str] | None = None,
        ranges: Mapping[str, Any] | str | None = None,
        keys: Mapping[str, Any] | None = None,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        budget: float | None = None,
        delta: float = 0.0,
        max_groups: int | None = None,
        max_rows: int | None = None,
        ledger: str | Path | None = None,
        budget_of: pd.DataFrame | None = None,
        **unknown: Never,
    ) -> pd.DataFrame:
        """Declare a policy and a budget for this frame and all frames made from it.

        Arguments:
            unit: the column, or columns, that identify a person; by default each row is one person.
            ranges, keys: `{column: (low, high)}` or "auto", and `{column: [value, ...]}` for GROUP BY.
            neighbours: "replace-one" or "add-remove".
            budget, delta: the caps on epsilon and delta for all queries of these frames together.
            max_groups, max_rows: how many keys one unit counts in, and how many of its rows in each.
            ledger: a file that records the budget for all processes; it is created if missing.
            budget_of: the protected frame that this one was made from, if pandas leaves no trace of it.

        Returns:
            The frame itself.

        Raises:
            PolicyError, ArgumentError, BudgetError: a declaration is wrong, or there is a budget already.

        Example:
            >>> people = pd.DataFrame({"user_id": [1, 1, 2], "age": [37, 37, 64]})
            >>> people.dp.protect(unit="user_id", budget=3.0).dp.budget.limit.epsilon
            3.0
        """
        no_more_arguments(unknown, _PROTECT)
        if self._protection.promised:
            raise BudgetError(
                "budget-protected",
                "this frame has a budget already, and it cannot be set anew",
                "ask the owner of the data, who can read it afresh",
            )
        if budget_of is not None:
            given = (unit, ranges, keys, budget, max_groups, max_rows, ledger)
            return self._made_from(budget_of, any(each is not None for each in given) or bool(delta))
        limits = {"max_groups": max_groups, "max_rows": max_rows}
        policy = with_declared(Policy(neighbours=neighbours_of(neighbours)), unit, ranges, keys, limits)
        cap = None if budget is None else epsilon_of(budget, "budget")
        policy = replace(policy, epsilon=cap, delta=delta_of(delta))
        self._refuse_missing(policy)
        schema = None if ledger is None else self._state.look_at(self._frame).schema()
        kept = self._protection.next_ledger(policy, ledger, schema)
        promised = policy.epsilon is not None or policy.delta > 0 or ledger is not None
        protection = Protection(policy, promised, {Relation.of(policy): kept})
        token = uuid4().hex
        PROTECTIONS[token] = protection
        self._mark(token)
        return self._frame

    @said_at_frame()
    @takes(FrameQuery)
    def query(self, asked: FrameQuery) -> pd.DataFrame:
        """Spend epsilon, and get a noisy frame. In the SQL the frame is the table `df`.

        Returns:
            The noisy answer as a data frame, whose `dp` has its intervals and receipt.

        Raises:
            PrivsqlError: as `Session.query` raises it.

        Example:
            >>> sql = "SELECT state, COUNT(*) AS n FROM df GROUP BY state"
            >>> df.dp.query(sql, epsilon=1.0, keys={"state": ["CA", "NY"]})["state"].tolist()
            ['CA', 'NY']
        """
        session, request = self._asked(asked)
        answer = session.ask(request)
        frame = answer.df()
        state_of(frame).answer = answer
        return frame

    @said_at_frame()
    @takes(FrameQuery)
    def explain(self, asked: FrameQuery) -> AnyPlan:
        """Show what query() would do. Reads no private data and spends nothing.

        Returns:
            The plan; printed, it is a derivation that a person can check.

        Raises:
            PrivsqlError: as `Session.explain` raises it.

        Example:
            >>> df.dp.explain("SELECT COUNT(*) AS n FROM df", epsilon=1.0).epsilon
            1.0
        """
        session, request = self._asked(asked)
        return session.plan(request)

    @said_at_frame()
    def suggest_limits(
        self,
        epsilon: float = 0.1,
        *,
        by: str | Sequence[str] | None = None,
        unit: str | Sequence[str] | None = None,
        keys: Mapping[str, Any] | None = None,
        neighbours: str | Neighbours | None = None,
        query_epsilon: float = 1.0,
        **unknown: Never,
    ) -> SuggestedLimits:
        """Find, privately, what max_rows and max_groups would drop, and which limits suit a count.

        Arguments:
            epsilon: the privacy loss of the search; it is charged like any query.
            by: the columns whose values are the keys; by default the declared ones.
            unit, keys, neighbours: as in `protect`, for this call.
            query_epsilon: the epsilon of the count that the limits should suit.

        Returns:
            The suggested `max_rows` and `max_groups`, None where the noise hides them, and tables of each.

        Raises:
            PrivsqlError: as `Session.suggest_limits` raises it.

        Example:
            >>> df.dp.suggest_limits(0.1, unit="user_id").table
            'df'
        """
        no_more_arguments(unknown, ("unit", "keys", "neighbours", "epsilon", "by", "query_epsilon"))
        session = self._session(unit, None, keys, neighbours)
        return session.suggest_limits("df", epsilon, by=by, query_epsilon=query_epsilon)

    @property
    def budget(self) -> Budget:
        """The limit, what is spent and what remains, for this frame and all frames made from it."""
        protection = self._protection
        ledger = protection.shown
        budget = replace(ledger.budget, failures=ledger.failures(_ANALYST))
        return budget if protection.policy.by_row else budget.without_counts()

    @said_at_frame()
    def history(self) -> pd.DataFrame:
        """What was released about this frame, and what it cost.

        Returns:
            A data frame with a row for each charge.

        Example:
            >>> "epsilon" in df.dp.history().columns
            True
        """
        from privsql.session import Session

        protection, engine = self._protection, self._state.look_at(self._frame)
        return Session(engine, protection.policy, protection.shown, _ANALYST).history()

    # -- reading an answer -----------------------------------------------------------------------------------
    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """This answer with the interval of each number, as `Answer.intervals` returns it.

        Arguments:
            level: the confidence level.

        Returns:
            A data frame with two more columns for each number: n, n_low, n_high.

        Raises:
            ArgumentError: this frame is not an answer of `query`, or the level is not between 0 and 1.

        Example:
            >>> df.dp.query("SELECT COUNT(*) AS n FROM df", epsilon=1.0).dp.intervals(0.9).columns.tolist()
            ['n', 'n_low', 'n_high']
        """
        return self._answered.intervals(level)

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost."""
        return self._answered.receipt

    @property
    def warnings(self) -> tuple[str, ...]:
        """What this answer may lack: what bounding may have dropped, keys that may be missing."""
        return self._answered.warnings

    @property
    def plan(self) -> AnyPlan:
        """The derivation behind this answer."""
        return self._answered.plan

    def plot(self, level: float = 0.95, ax: Any = None) -> Any:
        """Plot this answer as bars with error bars, as `Answer.plot` does.

        Arguments:
            level: the confidence level.
            ax: matplotlib axes, if not new ones.

        Returns:
            The matplotlib axes.

        Raises:
            ArgumentError: this frame is not an answer of `query`, or it has nothing to plot.

        Example:
            >>> axes = df.dp.query("SELECT COUNT(*) AS n FROM df", epsilon=1.0).dp.plot()
        """
        return self._answered.plot(level, ax)

    # -- inside ----------------------------------------------------------------------------------------------
    @property
    def _answered(self) -> AnyAnswer:
        answer = self._state.answer
        if answer is None:
            raise ArgumentError(
                "argument-answer",
                "this frame is not an answer of df.dp.query",
                "use the frame that query() returned",
            )
        return answer

    @property
    def _protection(self) -> Protection:
        """The protection of this frame, or of the frame it was made from, found by attrs or shared memory."""
        token = token_of(self._frame)
        if token is None:
            return PROTECTIONS.get(str(self._frame.attrs.get(TOKEN)), self._state.own)
        self._mark(token)
        return PROTECTIONS[token]

    def _mark(self, token: str) -> None:
        """Mark the frame, and those made from it, as sharing this budget."""
        self._frame.attrs[TOKEN] = token
        if PROTECTIONS[token].promised:
            LINEAGE.note(self._frame, token)

    def _made_from(self, source: object, others: bool) -> pd.DataFrame:
        if others or not isinstance(source, pd.DataFrame) or not source.dp._protection.promised:
            raise ArgumentError(
                "argument-budget",
                "budget_of is a frame that has a budget, and is given by itself",
                "frame.dp.protect(budget_of=df)",
            )
        if any(ledger.entries() for ledger in self._protection.ledgers.values()):
            raise asked_before()
        self._mark(source.attrs[TOKEN])
        return self._frame

    def _refuse_missing(self, policy: Policy) -> None:
        """Refuse unknown columns here: frames made from this one may lawfully lack some of its columns."""
        names = [str(name) for name in self._frame.columns]
        for name in policy.table("df").columns:
            if name not in {each.lower() for each in names}:
                raise PolicyError(
                    "policy-column", f"there is no column {name} in this frame", did_you_mean(name, names)
                )

    def _asked(self, asked: FrameQuery) -> tuple[Session, Request]:
        """The session of a call, whose policy includes the call's declarations, and the call's request."""
        request, limits = asked.request(self._protection.policy.table("df"))
        return self._session(asked.unit, asked.ranges, asked.keys, asked.neighbours, limits), request

    def _session(
        self,
        unit: str | Sequence[str] | None,
        ranges: Mapping[str, Any] | str | None,
        keys: Mapping[str, Any] | None,
        neighbours: str | Neighbours | None,
        limits: Mapping[str, Any] | None = None,
    ) -> Session:
        from privsql.results.notices import FRAME, BoundingNotice
        from privsql.session import Session

        protection = self._protection
        policy = of_columns(protection.policy, self._frame)
        if neighbours is not None:
            policy = replace(policy, neighbours=neighbours_of(neighbours))
        declared = policy.table("df").unit
        if unit is not None and declared is not None and unit_of(unit) != declared:
            raise ArgumentError(
                "argument-unit",
                "protect() has said whose privacy this frame's budget counts, and it is another unit",
                "leave unit out",
            )
        policy = with_declared(policy, unit, ranges, keys, limits or {})
        ledger = protection.ledger(Relation.of(policy))
        engine = self._state.look_at(self._frame)
        signature = repr((id(protection), policy))
        if signature not in self._state.sessions:
            self._state.notice = notice = self._state.notice or BoundingNotice(FRAME)
            self._state.sessions[signature] = Session(engine, policy, ledger, _ANALYST, notice=notice)
        return self._state.sessions[signature]
