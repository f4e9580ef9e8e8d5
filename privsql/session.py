"""The way through, in order: read, plan, charge, run, add noise, finish."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Never

import pandas as pd

from privsql.budget.ledger import Budget, Ledger, MemoryLedger
from privsql.budget.released import released
from privsql.budget.stored import StoredAnswers
from privsql.engines.base import Engine
from privsql.engines.duckdb import DuckDBCalculator, open_engine
from privsql.errors import ArgumentError, EngineError, UnknownName, did_you_mean, no_more_arguments
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.accuracy import epsilon_within
from privsql.planning.auto_range import SHARE, Unknown, range_of, unknown_ranges
from privsql.planning.choose import plan as make_plan
from privsql.planning.look import PublicLook
from privsql.planning.plan import Plan
from privsql.planning.prepared import no_copies
from privsql.planning.pricing import Offer
from privsql.policy import Policy, analyst_of, delta_of, epsilon_of, limit_of, load_policy
from privsql.privacy.events import Pure
from privsql.results.answer import Answer, FoundRange
from privsql.results.finish import finish, public_answer
from privsql.schema import Schema
from privsql.sql.catalogue import Catalogue
from privsql.sql.gate import too_deep
from privsql.sql.read import read
from privsql.sql.relations import Question, Scan

_ARGUMENTS = ("sql", "epsilon", "delta", "within", "confidence", "dialect", "mechanism", "max_groups", "max_rows",
              "prepared", "weights", "nonnegative", "consistent")  # fmt: skip
_PROBE = Fraction(1)  # the price at which a plan is made before within= finds the right one


@lru_cache(maxsize=1)
def calculator() -> DuckDBCalculator:
    """One database for public and noisy values, shared by all sessions."""
    return DuckDBCalculator()


atexit.register(calculator.cache_clear)  # closes it before the interpreter goes


@dataclass(frozen=True)
class Asked:
    """A question with the arguments of its call, as they were given."""

    sql: str
    epsilon: float | Fraction | None = None
    delta: float = 0.0
    within: float | None = None
    confidence: float = 0.95
    dialect: str = "duckdb"
    mechanism: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    prepared: bool = True
    weights: Mapping[str, float] | None = None
    nonnegative: bool = False
    consistent: bool = False

    def price(self) -> Fraction:
        if (self.epsilon is None) == (self.within is None):
            raise ArgumentError("argument-epsilon", "give epsilon= or within=, one of them", "epsilon=1.0")
        delta_of(self.delta)
        self.limits()
        for name in ("nonnegative", "consistent"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError("argument-projection", f"{name} is True or False", f"{name}=True")
        return _PROBE if self.epsilon is None else epsilon_of(self.epsilon)

    def limits(self) -> dict[str, int]:
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in wanted.items()}
        return {name: value for name, value in checked.items() if value is not None}


class Session:
    """Private answers about one source of data, under one policy and one budget."""

    def __init__(
        self, engine: Engine, policy: Policy, ledger: Ledger, analyst: str, randomness: Randomness | None = None
    ) -> None:
        self._engine, self._policy, self._ledger, self._analyst = engine, policy, ledger, analyst
        self._randomness: Randomness = randomness or SystemRandomness()
        self._schema: Schema = engine.schema()
        self._stored = StoredAnswers()
        self._known: Catalogue | None = None

    def query(
        self,
        sql: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        dialect: str = "duckdb",
        mechanism: str | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        prepared: bool = True,
        weights: Mapping[str, float] | None = None,
        nonnegative: bool = False,
        consistent: bool = False,
        fresh: bool = False,
        **unknown: Never,
    ) -> Answer:
        """Ask, pay, and get a noisy answer. The same question again gives the stored answer, at no cost."""
        no_more_arguments(unknown, (*_ARGUMENTS, "fresh"))
        asked = Asked(
            sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows, prepared, weights, nonnegative,
            consistent,
        )  # fmt: skip
        question = self._read(asked, self._policy)
        missing = unknown_ranges(question)
        if missing:
            return self._with_ranges(asked, missing, fresh)
        return self._answered(asked, self._plan(asked, question, self._policy), fresh)

    def _answered(self, asked: Asked, plan: Plan, fresh: bool) -> Answer:
        if plan.public:
            return public_answer(plan, self._engine.read_public(plan.sql))
        stored = None if fresh else self._stored.find(plan)
        if stored is not None:
            return replace(finish(plan, stored, calculator().finish), stored=True)
        for statement in plan.statements:
            self._engine.check(statement, self._schema)
        self._ledger.charge(released(plan.measurements), plan.relation_of_neighbours, self._analyst, asked.sql)
        try:
            exact = [self._engine.run(statement, plan.keys) for statement in plan.runs]
            noisy = add_noise(plan, exact, self._randomness, lambda sql: self._engine.run(sql, plan.keys))
            answer = finish(plan, noisy, calculator().finish)
        except Exception:  # noqa: BLE001 -- after the charge nothing but one fixed sentence may be said
            raise EngineError from None
        self._stored.keep(plan, noisy)
        return answer

    def _with_ranges(self, asked: Asked, missing: Sequence[Unknown], fresh: bool) -> Answer:
        """First the ranges that nobody declared, for a share of epsilon; then the question, for the rest."""
        whole, share = _shares(asked, missing)
        rest = replace(asked, epsilon=whole * (1 - SHARE))
        meant = self._with_any_range(rest, missing)
        events = [each.event for each in released(meant.measurements)]
        self._ledger.expect([*events, *(Pure(share) for _ in missing)], self._analyst)
        policy, found = self._policy, []
        for each in missing:
            search = replace(asked, sql=each.sql, epsilon=share, delta=0.0, dialect="duckdb", mechanism=None, nonnegative=False,
                             consistent=False, weights=None)  # fmt: skip
            counted = self._answered(search, self._plan(search, self._read(search, policy), policy), fresh)
            width = counted.plan.measurements[0].half_width(1 - 1e-3 / counted.plan.cells)
            frame = counted.df()
            ends = range_of(frame["bucket"].tolist(), frame["n"].tolist(), width)
            policy = policy.with_columns(each.table, {each.column: ends}, None)
            found.append(FoundRange(each.name, *ends, 0.0 if counted.stored else counted.plan.epsilon))
        rest = replace(asked, epsilon=whole * (1 - SHARE))
        answer = self._answered(rest, self._plan(rest, self._read(rest, policy), policy), fresh)
        return replace(answer, found=tuple(found))

    def explain(
        self,
        sql: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        dialect: str = "duckdb",
        mechanism: str | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        prepared: bool = True,
        weights: Mapping[str, float] | None = None,
        nonnegative: bool = False,
        consistent: bool = False,
        **unknown: Never,
    ) -> Plan:
        """What query() would do: reads no data, spends nothing."""
        no_more_arguments(unknown, _ARGUMENTS)
        asked = Asked(
            sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows, prepared, weights, nonnegative,
            consistent,
        )  # fmt: skip
        question = self._read(asked, self._policy)
        missing = unknown_ranges(question)
        plan = self._search_plan(asked, missing) if missing else self._plan(asked, question, self._policy)
        budget = self.budget
        remaining = min(each.remaining.epsilon for each in (budget, budget.share) if each)
        adds_up = remaining != float("inf") and budget.spent.rho is None  # under zCDP epsilons do not subtract
        return replace(plan, remaining=remaining if adds_up else None)

    def _with_any_range(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The question as if the ranges were known: refuses what no range could help, before a search is paid."""
        policy = self._policy
        for each in missing:
            policy = policy.with_columns(each.table, {each.column: (0, 1)}, None)
        return self._plan(asked, self._read(asked, policy), policy)

    def _search_plan(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The search for the first range, which comes before the question; what follows depends on what it finds."""
        whole, share = _shares(asked, missing)
        self._with_any_range(asked, missing)
        search = Asked(missing[0].sql, share, max_groups=asked.max_groups, max_rows=asked.max_rows)
        plan = self._plan(search, self._read(search, self._policy), self._policy)
        names = ", ".join(each.name for each in missing)
        note = (
            f"first the range of {names} is found so, each at epsilon {float(share):g}; then the question is asked with it, "
            f"at epsilon {float(whole * (1 - SHARE)):g}: declare a range to save this"
        )
        return replace(plan, notes=(*plan.notes, note))

    def _read(self, asked: Asked, policy: Policy) -> Question:
        asked.price()  # a bad epsilon says so before anything else is looked at
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        return read(asked.sql, self._catalogue(policy), asked.dialect)

    def _catalogue(self, policy: Policy) -> Catalogue:
        """Kept while schema and policy are the same objects: a wide table takes longer to look through than a question."""
        if self._known is None or self._known.schema is not self._schema or self._known.policy is not policy:
            self._known = Catalogue(self._schema, policy)
        return self._known

    def _plan(self, asked: Asked, question: Question, policy: Policy) -> Plan:
        look = PublicLook(self._engine.read_public)
        offer = Offer(
            asked.price(), delta_of(asked.delta), asked.mechanism, asked.weights or {}, asked.limits(), policy.min_units
        )
        copies = self._engine.prepared if asked.prepared else no_copies
        try:
            plan = make_plan(question, policy.neighbours, offer, calculator().evaluate, look, copies)
        except RecursionError:  # before anything is charged or read
            raise too_deep() from None
        if asked.within is not None:
            plan = plan.repriced(epsilon_within(plan, asked.within, asked.confidence))
        return plan.projected(asked.nonnegative, asked.consistent)

    def prepare(self, table: str) -> None:
        """Store, once, a copy of a table of many rows a unit by which questions about it are fast; again after it changed."""
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        catalogue = self._catalogue(self._policy)
        source = catalogue.source(table) if isinstance(table, str) else None
        if source is None:
            raise UnknownName("name-table", f"there is no table {table}", did_you_mean(str(table), catalogue.names))
        scan = source.relation
        if not isinstance(scan, Scan) or not scan.private or scan.unit is None or scan.unit.unique:
            raise ArgumentError("argument-prepare", f"{table} has no unit with many rows: there is nothing to prepare",
                                "questions about it are fast as it is")  # fmt: skip
        self._engine.prepare(scan)

    def close(self) -> None:
        """Let go of the source and the ledger; a DuckDB connection that the caller gave stays open."""
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def budget(self) -> Budget:
        """Limit, spent and remaining; where analysts have caps, also of this one's share."""
        return replace(self._ledger.budget, share=self._ledger.share(self._analyst))

    def history(self) -> pd.DataFrame:
        """What was released so far, and what it cost."""
        rows = [
            {
                "when": e.when,
                "analyst": e.analyst,
                "question": e.question,
                "epsilon": e.epsilon,
                "delta": e.delta,
                "rho": e.rho,
                "released": "; ".join(map(str, e.released)),
            }
            for e in self._ledger.entries()
        ]
        rho = ["rho"] if self.budget.spent.rho is not None else []
        return pd.DataFrame(rows, columns=["when", "analyst", "question", "epsilon", "delta", *rho, "released"])


def _shares(asked: Asked, missing: Sequence[Unknown]) -> tuple[Fraction, Fraction]:
    """The whole epsilon, and what of it each search for a range may cost."""
    if asked.epsilon is None:
        raise ArgumentError("argument-within", "how far this answer is off depends on a range that is not known yet",
                            "give epsilon= instead, or declare the range")  # fmt: skip
    whole = asked.price()
    return whole, epsilon_of(whole * SHARE / len(missing))


def connect(
    source: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    analyst: str = "analyst",
    **unknown: Never,
) -> Session:
    """Open a source of data under a policy: a DuckDB file or connection, a frame or a dict of them, a Parquet or CSV path.

    `ledger`: a file that keeps what is spent, shared by all who name it; without it, the budget is of this session alone.
    """
    no_more_arguments(unknown, ("policy", "ledger", "analyst"))
    declared, who = load_policy(policy), analyst_of(analyst)
    engine = open_engine(source)
    try:
        return Session(engine, declared, _ledger(ledger, declared, engine.schema()), who)
    except BaseException:
        engine.close()
        raise


def _ledger(path: str | Path | None, policy: Policy, schema: Schema) -> Ledger:
    if path is None:
        return MemoryLedger.under(policy)
    from privsql.budget.file_ledger import open_ledger

    catalogue = Catalogue(schema, policy)
    for table in schema.tables:  # a ledger is opened for good, so not under a policy that is wrong
        if not table.view or table.name.lower() in policy.tables:
            catalogue.source(table.name)
    return open_ledger(path, policy, schema)
