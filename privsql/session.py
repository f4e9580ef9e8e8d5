"""The way through, in order: read, plan, charge, run, add noise, finish."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Never

import pandas as pd

from privsql.budget.ledger import Budget, MemoryLedger
from privsql.engines.base import Engine
from privsql.engines.duckdb import DuckDBCalculator, open_engine
from privsql.errors import ArgumentError, EngineError, no_more_arguments
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.accuracy import epsilon_within
from privsql.planning.choose import plan as make_plan
from privsql.planning.look import PublicLook
from privsql.planning.plan import Plan
from privsql.policy import NANO, Policy, delta_of, epsilon_of, limit_of, load_policy
from privsql.results.answer import Answer
from privsql.results.finish import finish, public_answer
from privsql.schema import Schema
from privsql.sql.catalogue import Catalogue
from privsql.sql.read import read

_ARGUMENTS = ("sql", "epsilon", "delta", "within", "confidence", "dialect", "mechanism", "max_groups", "max_rows")
_PROBE = Fraction(1)  # the price at which a plan is made before within= finds the right one


@lru_cache(maxsize=1)
def calculator() -> DuckDBCalculator:
    """One database for public and noisy values, shared by all sessions."""
    return DuckDBCalculator()


atexit.register(calculator.cache_clear)  # closes it before the interpreter goes


class Session:
    """Private answers about one source of data, under one policy and one budget."""

    def __init__(
        self, engine: Engine, policy: Policy, ledger: MemoryLedger, analyst: str, randomness: Randomness | None = None
    ) -> None:
        self._engine, self._policy, self._ledger, self._analyst = engine, policy, ledger, analyst
        self._randomness: Randomness = randomness or SystemRandomness()
        self._schema: Schema = engine.schema()
        self._stored: dict[tuple[Any, ...], Answer] = {}

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
        fresh: bool = False,
        **unknown: Never,
    ) -> Answer:
        """Ask, pay, and get a noisy answer. The same question again gives the stored answer, at no cost."""
        no_more_arguments(unknown, (*_ARGUMENTS, "fresh"))
        plan = self._plan(sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows)
        if plan.public:
            return public_answer(plan, self._engine.read_public(plan.sql))
        question = (
            plan.sql,
            plan.finishing,
            plan.measurements,
            plan.question.names,
            plan.relation_of_neighbours,
            plan.space.names,
            plan.cells,
            tuple(plan.estimates.items()),
        )
        if not fresh and question in self._stored:
            return replace(self._stored[question], stored=True)
        self._engine.check(plan.sql, self._schema)
        self._ledger.charge(
            plan.loss, plan.delta_loss, plan.relation_of_neighbours, self._analyst, sql, _released(plan)
        )
        try:
            exact = self._engine.run(plan.sql, plan.keys)
            noisy = add_noise(plan, exact, self._randomness)
            answer = finish(plan, noisy, calculator().finish)
        except Exception:  # noqa: BLE001 -- after the charge nothing but one fixed sentence may be said
            raise EngineError from None
        self._stored[question] = answer
        return answer

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
        **unknown: Never,
    ) -> Plan:
        """What query() would do: reads no data, spends nothing."""
        no_more_arguments(unknown, _ARGUMENTS)
        plan = self._plan(sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows)
        remaining = self.budget.remaining.epsilon
        return replace(plan, remaining=remaining if remaining != float("inf") else None)

    def _plan(
        self, sql: str, epsilon: float | None, delta: float, within: float | None, confidence: float,
        dialect: str, mechanism: str | None, max_groups: int | None, max_rows: int | None,
    ) -> Plan:  # fmt: skip
        wanted = {"max_groups": max_groups, "max_rows": max_rows}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in wanted.items()}
        limits = {name: value for name, value in checked.items() if value is not None}
        if (epsilon is None) == (within is None):
            raise ArgumentError("argument-epsilon", "give epsilon= or within=, one of them", "epsilon=1.0")
        allowed = delta_of(delta)
        price = _PROBE if epsilon is None else epsilon_of(epsilon)
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        question = read(sql, Catalogue(self._schema, self._policy), dialect)
        look = PublicLook(self._engine.read_public)
        plan = make_plan(
            question, self._policy.neighbours, price, calculator().evaluate, look, mechanism, limits, allowed,
            self._policy.min_units,
        )  # fmt: skip
        if within is not None:
            plan = plan.repriced(epsilon_within(plan, within, confidence))
        return plan

    def close(self) -> None:
        """Let go of the source; a DuckDB connection that the caller gave stays open."""
        self._engine.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def budget(self) -> Budget:
        """Limit, spent and remaining."""
        return self._ledger.budget

    def history(self) -> pd.DataFrame:
        """What was released so far, and what it cost."""
        rows = [
            {
                "when": e.when,
                "analyst": e.analyst,
                "question": e.question,
                "epsilon": e.nano_epsilon / NANO,
                "delta": float(e.delta),
                "released": e.released,
            }
            for e in self._ledger.entries()
        ]
        return pd.DataFrame(rows, columns=["when", "analyst", "question", "epsilon", "delta", "released"])


def _released(plan: Plan) -> str:
    return "; ".join(f"{each.mechanism.value} of {each.what}" for each in plan.measurements)


def connect(
    source: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    analyst: str = "analyst",
    **unknown: Never,
) -> Session:
    """Open a source of data under a policy: a DuckDB file or connection, a frame or a dict of them, a Parquet or CSV path."""
    no_more_arguments(unknown, ("policy", "analyst"))
    declared = load_policy(policy)
    ledger = MemoryLedger(declared.epsilon, declared.neighbours, delta_limit=declared.delta)
    return Session(open_engine(source), declared, ledger, analyst)
