"""The df.dp accessor: a pandas frame goes in with a question; a noisy frame comes out that knows its receipt."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Never
from uuid import uuid4

import pandas as pd

from privsql.budget.ledger import Budget, MemoryLedger
from privsql.errors import ArgumentError, BudgetError, no_more_arguments
from privsql.policy import (
    AUTO,
    Neighbours,
    Policy,
    TablePolicy,
    delta_of,
    epsilon_of,
    limit_of,
    neighbours_of,
    unit_of,
)

if TYPE_CHECKING:  # imported when first used: they need DuckDB and sqlglot
    from privsql.engines.duckdb import DuckDBEngine
    from privsql.planning.plan import Plan
    from privsql.results.answer import Answer
    from privsql.results.limits import SuggestedLimits
    from privsql.results.notices import BoundingNotice
    from privsql.session import Session

_OPTIONS = ("within", "confidence", "dialect", "mechanism", "max_groups", "max_rows", "nonnegative", "consistent", "show_all",
            "fresh")  # fmt: skip
_ANALYST = "analyst"  # who asks about a frame: whoever has it
_TOKEN = "privsql"  # in df.attrs, which pandas passes on to frames made from this one


@dataclass
class Protection:
    """What protect() said of a frame and of all frames made from it, with the one budget they share."""

    policy: Policy = field(default_factory=Policy)
    limit: Fraction | None = None
    ledgers: dict[Neighbours, MemoryLedger] = field(default_factory=dict)

    def ledger(self, neighbours: Neighbours) -> MemoryLedger:
        if self.limit is not None and neighbours is not self.policy.neighbours:
            raise BudgetError(
                "budget-neighbours",
                f"the budget of this frame counts losses under {self.policy.neighbours.value} neighbours",
                "losses of different kinds cannot be added; leave neighbours out",
            )
        # one step: two threads that ask first must not get a ledger each
        return self.ledgers.setdefault(neighbours, MemoryLedger(self.limit, neighbours))


_PROTECTIONS: dict[str, Protection] = {}


@dataclass
class State:
    """What is remembered of one frame object: a snapshot, which shares its memory, and the sessions on it."""

    own: Protection = field(default_factory=Protection)
    snapshot: pd.DataFrame | None = None
    engine: DuckDBEngine | None = None
    sessions: dict[str, Session] = field(default_factory=dict)
    answer: Answer | None = None
    notice: BoundingNotice | None = None  # once a frame, however many sessions it takes

    def look_at(self, frame: pd.DataFrame) -> DuckDBEngine:
        """An engine on the frame as it is now; answers stored for another content are forgotten."""
        from privsql.engines.duckdb import open_engine
        from privsql.engines.frames import same_data

        if self.engine is None or self.snapshot is None or not same_data(self.snapshot, frame):
            self.snapshot = frame.copy(deep=False)
            self.engine = open_engine(self.snapshot)
            self.sessions.clear()
        return self.engine


_STATES: dict[int, State] = {}
atexit.register(_STATES.clear)  # closes the databases before the interpreter goes


def _state(frame: pd.DataFrame) -> State:
    if id(frame) not in _STATES:
        _STATES[id(frame)] = State()
        weakref.finalize(frame, _STATES.pop, id(frame), None)
    return _STATES[id(frame)]


@pd.api.extensions.register_dataframe_accessor("dp")
class FrameAccessor:
    """`df.dp`: private questions about a frame, or the receipt of a private answer."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._state = _state(frame)

    # -- asking --------------------------------------------------------------------------------------------
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
        **unknown: Never,
    ) -> pd.DataFrame:
        """Declare once what holds for this frame and for frames made from it; returns the frame."""
        no_more_arguments(unknown, ("unit", "ranges", "keys", "neighbours", "budget", "delta", "max_groups", "max_rows"))
        if self._protection.limit is not None:
            raise BudgetError(
                "budget-protected", "this frame has a budget already, and it cannot be set anew",
                "ask the owner of the data, who can read it afresh",
            )  # fmt: skip
        limit = None if budget is None else epsilon_of(budget, "budget")
        limits = {"max_groups": max_groups, "max_rows": max_rows}
        policy = _policy(Policy(neighbours=neighbours_of(neighbours)), unit, ranges, keys, limits)
        before = self._protection.ledgers
        if limit is not None and any(
            ledger.entries() for kind, ledger in before.items() if kind is not policy.neighbours
        ):
            raise BudgetError(
                "budget-neighbours",
                f"this frame has been asked under other neighbours than {policy.neighbours.value}",
                "losses of different kinds cannot be added; protect a frame before it is asked",
            )
        spent = before[policy.neighbours].entries() if policy.neighbours in before else []
        allowed = delta_of(delta)
        ledger = MemoryLedger(limit, policy.neighbours, spent, allowed)  # what was spent before counts
        token = uuid4().hex
        _PROTECTIONS[token] = Protection(policy, limit, {policy.neighbours: ledger})
        self._frame.attrs[_TOKEN] = token
        return self._frame

    def query(
        self,
        sql: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        unit: str | Sequence[str] | None = None,
        ranges: Mapping[str, Any] | str | None = None,
        keys: Mapping[str, Any] | None = None,
        neighbours: str | Neighbours | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """A noisy frame. The table in the SQL is `df`. Options: within, confidence, dialect, mechanism, fresh."""
        no_more_arguments({name: each for name, each in options.items() if name not in _OPTIONS}, _OPTIONS)
        limits = self._first_limits(options)
        answer = self._session(unit, ranges, keys, neighbours, limits).query(sql, epsilon, delta, **options)
        frame = answer.df()
        _state(frame).answer = answer
        return frame

    def explain(
        self,
        sql: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        unit: str | Sequence[str] | None = None,
        ranges: Mapping[str, Any] | str | None = None,
        keys: Mapping[str, Any] | None = None,
        neighbours: str | Neighbours | None = None,
        **options: Any,
    ) -> Plan:
        """What query() would do: reads no data, spends nothing."""
        no_more_arguments({name: each for name, each in options.items() if name not in _OPTIONS}, _OPTIONS)
        limits = self._first_limits(options)
        return self._session(unit, ranges, keys, neighbours, limits).explain(sql, epsilon, delta, **options)

    def suggest_limits(
        self,
        epsilon: float = 0.1,
        *,
        by: str | Sequence[str] | None = None,
        unit: str | Sequence[str] | None = None,
        keys: Mapping[str, Any] | None = None,
        neighbours: str | Neighbours | None = None,
        query_epsilon: float = 1.0,
    ) -> SuggestedLimits:
        """What max_rows and max_groups would drop, privately, and which suit a count at `query_epsilon`.

        `by`: a column, or several, whose values are the keys; without it, the declared ones. It is charged.
        """
        session = self._session(unit, None, keys, neighbours)
        return session.suggest_limits("df", epsilon, by=by, query_epsilon=query_epsilon)

    @property
    def budget(self) -> Budget:
        """Limit, spent and remaining, of this frame and all frames made from it."""
        protection = self._protection
        ledger = protection.ledger(protection.policy.neighbours)
        budget = replace(ledger.budget, failures=ledger.failures(_ANALYST))
        return budget if protection.policy.by_row else budget.without_counts()

    def history(self) -> pd.DataFrame:
        """What was released of this frame."""
        return self._session(None, None, None, None).history()

    # -- reading an answer -----------------------------------------------------------------------------------
    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """This answer with the ends of the interval of each number."""
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
    def plan(self) -> Plan:
        """The derivation behind this answer."""
        return self._answered.plan

    def plot(self, level: float = 0.95, ax: Any = None) -> Any:
        """Bars with error bars."""
        return self._answered.plot(level, ax)

    # -- inside ----------------------------------------------------------------------------------------------
    @property
    def _answered(self) -> Answer:
        answer = self._state.answer
        if answer is None:
            raise ArgumentError(
                "argument-answer", "this frame is not an answer of df.dp.query", "use the frame that query() returned"
            )
        return answer

    @property
    def _protection(self) -> Protection:
        return _PROTECTIONS.get(str(self._frame.attrs.get(_TOKEN)), self._state.own)

    def _first_limits(self, options: dict[str, Any]) -> dict[str, Any]:
        """Limits of a call that protect() did not set: they are the policy, not a change of it."""
        table = self._protection.policy.table("df")
        free = [name for name in ("max_groups", "max_rows") if getattr(table, name) is None]
        return {name: options.pop(name) for name in free if options.get(name) not in (None, AUTO)}

    def _session(
        self, unit: str | Sequence[str] | None, ranges: Mapping[str, Any] | str | None, keys: Mapping[str, Any] | None,
        neighbours: str | Neighbours | None, limits: Mapping[str, Any] | None = None,
    ) -> Session:  # fmt: skip
        from privsql.results.notices import FRAME, BoundingNotice
        from privsql.session import Session

        protection = self._protection
        policy = protection.policy
        if neighbours is not None:
            policy = replace(policy, neighbours=neighbours_of(neighbours))
        declared = policy.table("df").unit
        if unit is not None and declared is not None and unit_of(unit) != declared:
            raise ArgumentError(
                "argument-unit", "protect() has said whose privacy this frame's budget counts, and it is another unit",
                "leave unit out",
            )  # fmt: skip
        policy = _policy(policy, unit, ranges, keys, limits or {})
        ledger = protection.ledger(policy.neighbours)
        engine = self._state.look_at(self._frame)
        signature = repr((id(protection), policy))
        if signature not in self._state.sessions:
            self._state.notice = notice = self._state.notice or BoundingNotice(FRAME)
            self._state.sessions[signature] = Session(engine, policy, ledger, _ANALYST, notice=notice)
        return self._state.sessions[signature]


def _policy(
    policy: Policy, unit: str | Sequence[str] | None, ranges: Mapping[str, Any] | str | None,
    keys: Mapping[str, Any] | None, limits: Mapping[str, Any],
) -> Policy:  # fmt: skip
    given: dict[str, Any] = {
        name: limit_of(value, name, "argument-limits") for name, value in limits.items() if value is not None
    }
    if unit is not None:
        given["unit"] = unit_of(unit)
    if given:
        table = replace(policy.tables.get("df", TablePolicy()), **given)
        policy = replace(policy, tables={**policy.tables, "df": table})
    return policy.with_columns("df", ranges, keys)
