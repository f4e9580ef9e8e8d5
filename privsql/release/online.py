"""Counting queries come in one by one; each is answered from what was released before, or paid for.

Which of the two happens depends on predicted errors alone, so it tells nothing of the data and costs
nothing to decide.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError, BudgetError
from privsql.planning.plan import Plan
from privsql.policy.checks import epsilon_of
from privsql.release.answer_query import counted
from privsql.request import Request
from privsql.requests.pipeline import Pipeline
from privsql.requests.stage import Stage
from privsql.results.answer import Answer

Ask = Callable[[Request], Any]


@dataclass(eq=False)
class Online:
    """An adaptive stream of counting queries over one table, for at most a given epsilon in all.

    Example:
        >>> online = session.online("visits", epsilon=1.0)
        >>> online.query("SELECT COUNT(*) AS n FROM visits", within=20).columns
        ['n']
        >>> online.spent < 1.0
        True
    """

    table: str
    epsilon: Fraction
    within: float | None
    confidence: float
    _pipeline: Pipeline = field(repr=False)
    _ask: Ask = field(repr=False)
    _plan: Ask = field(repr=False)
    _spent: Fraction = field(default=Fraction(0), repr=False)
    _asked: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def spent(self) -> float:
        """The epsilon that this stream has cost so far."""
        return float(self._spent)

    @property
    def remaining(self) -> float:
        """The epsilon that it may still cost."""
        return float(self.epsilon - self._spent)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The queries so far: their text, whether they were free, and the epsilon that each has cost."""
        return [dict(each) for each in self._asked]

    def explain(self, sql: str, within: float | None = None, dialect: str = "duckdb") -> Plan:
        """What `query` would do: the plan of a free answer, or of one that is paid for. Spends nothing."""
        request = self._request(sql, within, dialect)
        self._check(request)
        found = self._plan(request)
        assert isinstance(found, Plan), "a counting query is one release"
        return found

    def query(self, sql: str, within: float | None = None, dialect: str = "duckdb") -> Answer:
        """Answer a counting query: from what was released before, where its predicted error is within
        `within`; else for the least epsilon that keeps every cell within it.

        Arguments:
            sql: a query that counts rows of the table.
            within: the error to allow; by default that of the stream.
            dialect: the dialect of the SQL.

        Returns:
            The answer; `stored` if it was free.

        Raises:
            BudgetError: it would have to be paid for, and too little of epsilon remains.
            Refused: it does not count rows of this table alone.
        """
        # in one snapshot: what is free must not have to be paid for once somebody has written to the table
        with self._lock, self._pipeline.snapshot():
            plan = self.explain(sql, within, dialect)
            price = Fraction(0) if plan.free or plan.stored else plan.loss
            if self._spent + price > self.epsilon:
                raise self._exhausted(price)
            request = self._request(sql, within, dialect)
            # counted before it is charged: an answer that fails has cost as much
            self._spent += price
            try:
                answer = self._ask(request)
            except BudgetError:  # nothing was charged
                self._spent -= price
                raise
            self._asked.append({"query": sql, "stored": answer.stored, "epsilon": float(price)})
            assert isinstance(answer, Answer), "a counting query is one release"
            return answer

    def _request(self, sql: str, within: float | None, dialect: str) -> Request:
        allowed = self.within if within is None else within
        if allowed is None:
            raise ArgumentError("argument-within", "say how far off an answer may be", "within=20")
        return Request(sql, within=allowed, confidence=self.confidence, dialect=dialect)

    def _check(self, request: Request) -> None:
        """Refuse what does not count rows of this table alone."""
        stage = Stage(request.sql, Fraction(1), dialect=request.dialect)
        with self._pipeline.snapshot():
            counted(self._pipeline.read(stage), self.table)

    def _exhausted(self, price: Fraction) -> BudgetError:
        problem = (
            f"this query would cost epsilon {float(price):g}, and {self.remaining:g} of this stream is left"
        )
        return BudgetError("budget-online", problem, "allow a larger error: within=...")


def opened(
    pipeline: Pipeline, asked: tuple[Ask, Ask], table: str, epsilon: object, within: Any, confidence: Any
) -> Online:
    """A stream over one table, after a check of all arguments. `asked`: how to answer, and how to explain."""
    allowed, (ask, plan) = epsilon_of(epsilon), asked
    with pipeline.snapshot():
        scan = pipeline.scan(table)
    return Online(scan.table, allowed, within, confidence, pipeline, ask, plan)
