"""The way through, in order: read, plan, charge, run, add noise, finish."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Never

import pandas as pd

from privsql.asked import Asked, check_flag
from privsql.audit.audit import TRIES, Audit, audit
from privsql.budget.answer_file import AnswerFile
from privsql.budget.batch import Shares, shared
from privsql.budget.ledger import Budget, Charge, Ledger, MemoryLedger
from privsql.budget.released import released
from privsql.budget.stored import Kept, StoredAnswers
from privsql.engines.base import Engine
from privsql.engines.calculator import DuckDBCalculator
from privsql.engines.limits import Limits, open_limited
from privsql.errors import (
    ArgumentError,
    EngineError,
    PrivsqlError,
    Refused,
    UnknownName,
    did_you_mean,
    no_more_arguments,
)
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.accuracy import epsilon_within
from privsql.planning.auto_range import SHARE, Unknown, range_of, unknown_ranges
from privsql.planning.choose import plan as make_plan
from privsql.planning.look import PublicLook
from privsql.planning.plan import Plan
from privsql.planning.prepared import no_copies
from privsql.planning.pricing import Offer
from privsql.policy import Policy, analyst_of, delta_of, epsilon_of, load_policy
from privsql.privacy.events import Pure
from privsql.results.answer import Answer, FoundRange
from privsql.results.finish import computed_types, finish, public_answer
from privsql.schema import Schema
from privsql.sql.catalogue import Catalogue
from privsql.sql.read import read
from privsql.sql.relations import Question, Scan
from privsql.sql.tokens import too_deep

_ARGUMENTS = ("sql", "epsilon", "delta", "within", "confidence", "dialect", "mechanism", "max_groups", "max_rows",
              "prepared", "weights", "nonnegative", "consistent", "fresh")  # fmt: skip


@lru_cache(maxsize=1)
def calculator() -> DuckDBCalculator:
    """One database for public and noisy values, shared by all sessions."""
    return DuckDBCalculator()


atexit.register(calculator.cache_clear)  # closes it before the interpreter goes


class Session:
    """Private answers about one source of data, under one policy and one budget."""

    def __init__(
        self, engine: Engine, policy: Policy, ledger: Ledger, analyst: str, randomness: Randomness | None = None
    ) -> None:
        self._engine, self._policy, self._ledger, self._analyst = engine, policy, ledger, analyst
        self._randomness: Randomness = randomness or SystemRandomness()
        self._schema: Schema = engine.schema()
        self._stored = StoredAnswers(calculator().evaluate, self._shelf())
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
        no_more_arguments(unknown, _ARGUMENTS)
        check_flag("fresh", fresh)
        asked = Asked(
            sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows, prepared, weights, nonnegative,
            consistent,
        )  # fmt: skip
        question = self._read(asked)
        missing = unknown_ranges(question)
        if missing:
            return self._with_ranges(asked, missing, fresh)
        return self._answered(*self._planned(asked, question), fresh)

    def _answered(self, asked: Asked, plan: Plan, fresh: bool) -> Answer:
        """Stored, or what follows from stored answers; else charged, run, noised, stored and then shown."""
        if plan.public:
            return public_answer(plan, self._engine.read_public(plan.sql))
        version = self._engine.version()  # before anything is read: who writes from here on changes it
        stored = None if fresh else self._stored.find(plan, version) or self._stored.derived(plan, version)
        if stored is not None:
            return replace(finish(*stored, calculator().finish), stored=True)
        (charge,) = self._charged([(asked, plan)])
        return self._run(asked, plan, charge, version, fresh)

    def _charged(self, asked: Sequence[tuple[Asked, Plan]]) -> list[Charge]:
        """All of them, or none; no text is charged that the engine would not take."""
        for _, plan in asked:
            for statement in plan.statements:
                self._engine.check(statement, self._schema)
            types = computed_types(plan)
            if types is not None:
                calculator().check(plan.finishing, types)
        bills = [(released(plan.measurements), each.sql) for each, plan in asked]
        return self._ledger.charge_all(bills, self._policy.neighbours, self._analyst)

    def _run(self, asked: Asked, plan: Plan, charge: Charge, version: str | None, fresh: bool) -> Answer:
        """After the charge nothing but an answer or one fixed sentence comes out."""
        with self._engine.question():
            try:
                exact = [self._engine.run(statement, plan.keys) for statement in plan.runs]
                noisy = add_noise(plan, exact, self._randomness, lambda sql: self._engine.run(sql, plan.keys))
                kept = Kept(charge.number, asked.sql, charge.when, version, asked.to_json(), lambda: (plan, noisy))
                return finish(*self._stored.keep(kept, combine=not fresh), calculator().finish)
            except Exception:  # noqa: BLE001 -- whatever it is, it may depend on data
                raise EngineError from None

    def batch(
        self, questions: Sequence[str], epsilon: float | None = None, delta: float = 0.0, *, dialect: str = "duckdb",
        **unknown: Never,
    ) -> list[Answer]:  # fmt: skip
        """Ask several questions for one epsilon, split so that their errors are small: what is the same, or follows from another
        one, is paid for once. All are priced and charged before the first is run."""
        no_more_arguments(unknown, ("questions", "epsilon", "delta", "dialect"))
        if isinstance(questions, str) or not isinstance(questions, Sequence) or not questions:
            raise ArgumentError("argument-batch", "questions must be a list of SQL texts", '["SELECT ...", "SELECT ..."]')
        whole, part = epsilon_of(epsilon), delta_of(delta) / len(questions)
        asked = [Asked(sql, epsilon_of(whole / len(questions)), float(part), dialect=dialect) for sql in questions]
        read_before = [self._read(each) for each in asked]
        for question in read_before:
            if unknown_ranges(question):
                raise ArgumentError("argument-batch", "a range is not known yet, and is not looked for in a batch",
                                    "declare it, or ask this question by itself")  # fmt: skip
        plans = [self._planned(each, question)[1] for each, question in zip(asked, read_before, strict=True)]
        private = {place: plan for place, plan in enumerate(plans) if not plan.public}
        version, places = self._engine.version(), list(private)
        shares = shared(list(private.values()), whole, calculator().evaluate) if private else Shares({}, {})
        for number, other in shares.follows.items():
            plans[places[number]] = plans[places[number]].repriced(shares.paid[other])
        paid: dict[int, tuple[Asked, Plan]] = {}
        for number, share in shares.paid.items():
            place = places[number]
            plans[place] = plan = plans[place].repriced(share)
            followers = [plans[places[each]] for each, other in shares.follows.items() if other == number]
            if not self._is_known(plan, followers, version):
                paid[place] = replace(asked[place], epsilon=share), plan
        charges = self._charged(list(paid.values())) if paid else []
        for (each, plan), charge in zip(paid.values(), charges, strict=True):
            self._run(each, plan, charge, version, fresh=False)
        return [self._of_batch(plan, version, place in paid) for place, plan in enumerate(plans)]

    def _is_known(self, plan: Plan, followers: Sequence[Plan], version: str | None) -> bool:
        """Whether it need not be paid for; what follows from it need not follow from what it is computed from itself."""
        if self._stored.find(plan, version) is None and self._stored.derived(plan, version) is None:
            return False
        return all(self._stored.known(each, version) is not None for each in followers)

    def _of_batch(self, plan: Plan, version: str | None, paid: bool) -> Answer:
        """From all that is known now, which answers it."""
        if plan.public:
            return public_answer(plan, self._engine.read_public(plan.sql))
        stored = (self._stored.find(plan, version) if paid else None) or self._stored.known(plan, version)
        assert stored is not None, "it was paid for, or follows from what was"
        return replace(finish(*stored, calculator().finish), stored=not paid)

    def _with_ranges(self, asked: Asked, missing: Sequence[Unknown], fresh: bool) -> Answer:
        """First the ranges that nobody declared, for a share of epsilon; then the question, for the rest."""
        whole, share = _shares(asked, missing)
        rest = replace(asked, epsilon=whole * (1 - SHARE))
        meant = self._with_any_range(rest, missing)
        events = [each.event for each in released(meant.measurements)]
        self._ledger.expect([*events, *(Pure(share) for _ in missing)], self._analyst)
        found: list[FoundRange] = []
        for each in missing:
            search, plan = self._planned(replace(asked, sql=each.sql, epsilon=share, delta=0.0, dialect="duckdb", mechanism=None,
                                                 nonnegative=False, consistent=False, weights=None))  # fmt: skip
            counted = self._answered(search, plan, fresh)
            width = plan.measurements[0].half_width(1 - 1e-3 / plan.cells)
            frame = counted.df()
            ends = range_of(frame["bucket"].tolist(), frame["n"].tolist(), width)
            rest = replace(rest, ranges=(*rest.ranges, (each.table, each.column, *ends)))
            found.append(FoundRange(each.name, *ends, 0.0 if counted.stored else counted.plan.epsilon))
        answer = self._answered(*self._planned(rest), fresh)
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
        fresh: bool = False,
        **unknown: Never,
    ) -> Plan:
        """What query() would do: reads no data, spends nothing."""
        no_more_arguments(unknown, _ARGUMENTS)
        check_flag("fresh", fresh)
        asked = Asked(
            sql, epsilon, delta, within, confidence, dialect, mechanism, max_groups, max_rows, prepared, weights, nonnegative,
            consistent,
        )  # fmt: skip
        question = self._read(asked)
        missing = unknown_ranges(question)
        plan = self._search_plan(asked, missing) if missing else self._planned(asked, question)[1]
        plan = plan if missing or fresh else self._as_stored(plan)
        budget = self.budget
        remaining = min(each.remaining.epsilon for each in (budget, budget.share) if each)
        adds_up = remaining != float("inf") and budget.spent.rho is None  # under zCDP epsilons do not subtract
        return replace(self._with_rho(plan), remaining=remaining if adds_up else None)

    def audit(
        self, sql: str, epsilon: float | None = None, delta: float = 0.0, *, releases: int | None = None, tries: int = TRIES,
        progress: Callable[[str], None] | None = None, data: Any = None, **options: Any,
    ) -> Audit:  # fmt: skip
        """Try to break the promise of a question, on tables that are made up: reads no private row, spends nothing.

        `data`: tables to start from besides, as connect() takes them. What is found is shown: give none that are secret; those of
        this session are refused.
        """
        if data is not None and self._engine.holds(data):
            raise ArgumentError("argument-data", "data= is the private source itself, and rows that an audit finds are shown",
                                "give tables that are made up or published, or leave it out")  # fmt: skip
        plan = self.explain(sql, epsilon, delta, **{**options, "prepared": False, "fresh": True})
        if not plan.public:
            for statement in plan.statements:
                self._engine.check(statement, self._schema)
        asked = plan.loss if epsilon is None else epsilon_of(epsilon)
        return audit(plan, sql, self._schema, self._engine.read_public, asked, releases, tries, progress, data)

    def _with_any_range(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The question as if the ranges were known: refuses what no range could help, before a search is paid."""
        return self._planned(replace(asked, ranges=tuple((each.table, each.column, 0, 1) for each in missing)))[1]

    def _search_plan(self, asked: Asked, missing: Sequence[Unknown]) -> Plan:
        """The search for the first range, which comes before the question; what follows depends on what it finds."""
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

    def _as_stored(self, plan: Plan) -> Plan:
        """How query() would answer it: from what was paid before, where that says it."""
        if plan.public:
            return plan
        version = self._engine.version()
        if self._stored.find(plan, version) is not None:
            return replace(plan, notes=(*plan.notes, "it was asked before: that answer is stored, and free"))
        derived = self._stored.derived(plan, version)
        return plan if derived is None else derived[0]

    def _shelf(self) -> AnswerFile | None:
        path = self._ledger.path
        return None if path is None else AnswerFile(path, self._ledger.charged, self._replanned)

    def _replanned(self, raw: Mapping[str, Any]) -> Plan | None:
        try:
            return self._planned(Asked.of_json(raw))[1]
        except PrivsqlError:
            return None

    def _read(self, asked: Asked) -> Question:
        asked.price()  # a bad epsilon says so before anything else is looked at
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        return read(asked.sql, self._catalogue(asked.under(self._policy)), asked.dialect)

    def _catalogue(self, policy: Policy) -> Catalogue:
        """Kept while schema and policy are the same objects: a wide table takes longer to look through than a question."""
        if self._known is None or self._known.schema is not self._schema or self._known.policy is not policy:
            self._known = Catalogue(self._schema, policy)
        return self._known

    def _planned(self, asked: Asked, question: Question | None = None) -> tuple[Asked, Plan]:
        """The plan, and what was asked with the epsilon that it has."""
        policy, question = asked.under(self._policy), question or self._read(asked)
        look = PublicLook(self._engine.read_public)
        weights = {} if asked.weights is None else asked.weights
        offer = Offer(asked.price(), delta_of(asked.delta), asked.mechanism, weights, asked.limits(), policy.min_units)
        copies = self._engine.prepared if asked.prepared else no_copies
        try:
            plan = make_plan(question, policy.neighbours, offer, calculator().evaluate, look, copies)
        except RecursionError:  # before anything is charged or read
            raise too_deep() from None
        if asked.within is not None:
            asked = replace(asked, epsilon=epsilon_within(plan, asked.within, asked.confidence), within=None)
            plan = plan.repriced(asked.price())
        return asked, self._with_rho(plan.projected(asked.nonnegative, asked.consistent))

    def _with_rho(self, plan: Plan) -> Plan:
        return replace(plan, rho=self._ledger.rho([each.event for each in released(plan.measurements)]))

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
    deadline: float | None = None,
    memory_limit: int | str | None = None,
    time_quantum: float | None = None,
    **unknown: Never,
) -> Session:
    """Open a source of data under a policy: a DuckDB file or connection, a frame or a dict of them, a Parquet or CSV path.

    `ledger`: a file that keeps what is spent, shared by all who name it; without it, the budget is of this session alone.
    `deadline`: seconds after which a question fails, for certain: its SQL runs in a process that is killed then.
    `memory_limit`: what the engine may use, such as "2GB". `time_quantum`: answers come at whole multiples of so many seconds.
    """
    no_more_arguments(unknown, ("policy", "ledger", "analyst", "deadline", "memory_limit", "time_quantum"))
    declared, who = load_policy(policy), analyst_of(analyst)
    engine = open_limited(source, Limits.of(deadline, memory_limit, time_quantum))
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
        with contextlib.suppress(Refused):  # a view that is not named, or can fail: nobody is answered about it
            catalogue.source(table.name)
    return open_ledger(path, policy, schema)
