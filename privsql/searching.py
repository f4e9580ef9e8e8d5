"""A call that leaves ranges or limits open goes in; searches come first, each charged, then an answer.

What a search costs is a stated share of epsilon, and all is known to be affordable before the first charge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.algebra.relations import Question
from privsql.asked import Asked
from privsql.budget.ledger import Budget, Ledger
from privsql.budget.released import released
from privsql.errors import ArgumentError, BudgetError
from privsql.limit_search import Asker, found_limits, searches_for
from privsql.planning.auto_range import SHARE, Unknown, fitted, range_of, unknown_ranges
from privsql.planning.plan import Plan
from privsql.policy import epsilon_of
from privsql.privacy.events import Event, Pure
from privsql.results.answer import Answer, FoundRange
from privsql.suggestions import Argument


class Searching(ABC):
    """The part of a session that finds what a call leaves open."""

    _ledger: Ledger
    _analyst: str

    @abstractmethod
    def _read(self, asked: Asked) -> Question: ...

    @abstractmethod
    def _planned(self, asked: Asked, question: Question | None = None) -> tuple[Asked, Plan]: ...

    @abstractmethod
    def _answered(self, asked: Asked, plan: Plan, fresh: bool) -> Answer: ...

    @abstractmethod
    def _is_stored(self, plan: Plan) -> bool: ...

    @abstractmethod
    def _ask(self, asked: Asked, fresh: bool) -> Answer: ...

    @property
    @abstractmethod
    def budget(self) -> Budget: ...

    @abstractmethod
    def _with_rho(self, plan: Plan) -> Plan: ...

    def _with_budget(self, plan: Plan, queries: Sequence[Sequence[Event]]) -> Plan:
        """With what is left of the budget, and why it does not allow a call that takes these queries."""
        budget, why = self.budget, ""
        remaining = min(each.remaining.epsilon for each in (budget, budget.share) if each)
        # under zCDP epsilons do not subtract
        adds_up = remaining != float("inf") and budget.spent.rho is None
        try:
            if queries:
                self._ledger.expect(queries, self._analyst)
        except BudgetError as refusal:
            why = refusal.message
        return replace(self._with_rho(plan), remaining=remaining if adds_up else None, refusal=why)

    def _with_limits(self, asked: Asked, fresh: bool) -> Answer:
        """First the limits that nobody knows, for a share of epsilon; then the query, for the rest."""
        rest, found = found_limits(asked, self._asker(fresh))
        return replace(self._ask(rest, fresh), limits_found=found)

    def _first_search(self, asked: Asked) -> Plan | None:
        """The search that comes before a query; None where nothing has to be found."""
        if asked.automatic:
            searches = searches_for(asked, self._asker(fresh=False))
            if searches.histograms:
                return searches.explained(self._planned)
            asked = searches.rest
        missing = unknown_ranges(self._read(asked))
        return self._search_plan(asked, missing) if missing else None

    def _calls(self, asked: Asked, fresh: bool) -> list[Asked]:
        """All that would be asked for this call, and is not stored."""
        if not asked.automatic:
            return [asked]
        asker = self._asker(fresh)
        searches = searches_for(asked, asker)
        return [searches.rest, *(each for each in searches.histograms.values() if not asker.is_stored(each))]

    def _with_ranges(self, asked: Asked, missing: Sequence[Unknown], fresh: bool) -> Answer:
        """First the ranges that nobody declared, for a share of epsilon; then the question, for the rest."""
        whole, share = _shares(asked, missing)
        rest = replace(asked, epsilon=whole * (1 - SHARE))
        self._expect([asked])
        found: list[FoundRange] = []
        for each in missing:
            search, plan = self._planned(
                replace(
                    asked,
                    sql=each.sql,
                    epsilon=share,
                    delta=0.0,
                    dialect="duckdb",
                    mechanism=None,
                    nonnegative=False,
                    consistent=False,
                    weights=None,
                )
            )
            counted = self._answered(search, plan, fresh)
            width = plan.measurements[0].half_width(1 - 1e-3 / plan.cells)
            frame = counted.df()
            ends = range_of(frame["bucket"].tolist(), frame["n"].tolist(), width, each.type)
            rest = replace(rest, ranges=(*rest.ranges, (each.table, each.column, *ends)))
            found.append(FoundRange(each.name, *ends, 0.0 if counted.stored else counted.plan.epsilon))
        answer = self._answered(*self._planned(rest), fresh)
        return replace(answer, found=tuple(found))

    def _asker(self, fresh: bool) -> Asker:
        def answer(asked: Asked) -> Answer:
            return self._answered(*self._planned(asked), fresh)

        def is_stored(asked: Asked) -> bool:
            return not fresh and self._is_stored(self._planned(asked)[1])

        return Asker(self._likely_plan, answer, is_stored, self._expect)

    def _likely_plan(self, asked: Asked) -> Plan:
        """The plan, or where ranges are to be found, one like it."""
        question = self._read(asked)
        missing = unknown_ranges(question)
        return self._with_any_range(asked, missing) if missing else self._planned(asked, question)[1]

    def _expect(self, calls: Sequence[Asked]) -> None:
        """Refuses what cannot be afforded together, before the first of them is charged."""
        self._ledger.expect(self._events(calls), self._analyst)

    def _events(self, calls: Sequence[Asked]) -> list[Sequence[Event]]:
        """What is charged for these calls, query by query."""
        queries: list[Sequence[Event]] = []
        for asked in calls:
            missing = unknown_ranges(self._read(asked))
            if missing:
                whole, share = _shares(asked, missing)
                asked = replace(asked, epsilon=whole * (1 - SHARE))
                queries += [[Pure(share)] for _ in missing]
            queries.append([each.event for each in released(self._likely_plan(asked).measurements)])
        return queries

    def _with_any_range(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The question as if the ranges were known: refuses what no range could help, before a search is
        paid.
        """
        any_range = tuple((each.table, each.column, 0.0, fitted(1.0, each.type)) for each in missing)
        return self._planned(replace(asked, ranges=any_range))[1]

    def _search_plan(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The search for the first range, which comes before the question; what follows depends on what it
        finds.
        """
        whole, share = _shares(asked, missing)
        self._with_any_range(asked, missing)
        search = Asked(missing[0].sql, share, max_groups=asked.max_groups, max_rows=asked.max_rows)
        _, plan = self._planned(search)
        names = ", ".join(each.name for each in missing)
        note = (
            f"first the range of {names} is found so, each at epsilon {float(share):g}; then the question is asked with it, "
            f"at epsilon {float(whole * (1 - SHARE)):g}: declare a range to save this"
        )
        return replace(plan, notes=(*plan.notes, note))


def _shares(asked: Asked, missing: Sequence[Unknown]) -> tuple[Fraction, Fraction]:
    """The whole epsilon, and what of it each search for a range may cost."""
    if asked.epsilon is None:
        raise ArgumentError(
            "argument-within",
            "how far this answer is off depends on a range that is not known yet",
            [("give ", Argument("epsilon"), " instead"), ("declare the range",)],
        )
    whole = asked.price()
    return whole, epsilon_of(whole * SHARE / len(missing))
