"""The way through, in order: read, plan, charge, run, add noise, finish."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Never

import pandas as pd

from privsql.algebra.relations import Question, Scan
from privsql.answers.answer_file import AnswerFile
from privsql.answers.batch import Shares, shared
from privsql.answers.stored import Kept, StoredAnswers
from privsql.asked import Asked, check_flag
from privsql.audit.audit import TRIES, Audit, audit
from privsql.budget.ledger import Budget, Charge, Ledger, MemoryLedger, with_affordable_ways
from privsql.budget.released import released
from privsql.engines.base import Engine
from privsql.engines.duckdb.calculator import calculator
from privsql.engines.resource_limits import ResourceLimits, open_limited
from privsql.errors import (
    ArgumentError,
    EngineError,
    PrivsqlError,
    Refused,
    UnknownName,
    did_you_mean,
    no_more_arguments,
)
from privsql.limit_search import suggestions
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.planning.accuracy import epsilon_within
from privsql.planning.auto_limits import histogram_question
from privsql.planning.auto_range import unknown_ranges
from privsql.planning.draft import Task
from privsql.planning.look import PublicLook
from privsql.planning.plan import Plan
from privsql.planning.planner import plan as make_plan
from privsql.planning.prepared import no_copies
from privsql.planning.pricing import Offer
from privsql.policy import Policy, analyst_of, delta_of, epsilon_of, load_policy, version_of
from privsql.progress import elapsed_time
from privsql.results.answer import Answer
from privsql.results.finish import computed_types, finish, public_answer
from privsql.results.notices import BoundingNotice
from privsql.results.suggested_limits import SuggestedLimits
from privsql.schema import Schema
from privsql.searching import Searching
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.parse.tokens import too_deep
from privsql.sql.read import read

_ARGUMENTS = (
    "sql",
    "epsilon",
    "delta",
    "within",
    "confidence",
    "dialect",
    "mechanism",
    "max_groups",
    "max_rows",
    "prepared",
    "weights",
    "nonnegative",
    "consistent",
    "show_all",
    "fresh",
)


class Session(Searching):
    """Private answers about one source of data, under one policy and one budget."""

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
        self._engine, self._policy, self._ledger, self._analyst, self._declared = (
            engine,
            policy,
            ledger,
            analyst,
            version,
        )
        self._randomness: Randomness = randomness or SystemRandomness()
        self._notice = notice or BoundingNotice()
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
        max_groups: int | Literal["auto"] | None = None,
        max_rows: int | Literal["auto"] | None = None,
        prepared: bool = True,
        weights: Mapping[str, float] | None = None,
        nonnegative: bool = False,
        consistent: bool = False,
        show_all: bool = False,
        fresh: bool = False,
        **unknown: Never,
    ) -> Answer:
        """Ask, pay, and get a noisy answer; the stored one, free, if asked before. `show_all`: NULL nowhere
        for want of rows.
        """
        no_more_arguments(unknown, _ARGUMENTS)
        check_flag("fresh", fresh)
        asked = Asked(
            sql,
            epsilon,
            delta,
            within,
            confidence,
            dialect,
            mechanism,
            max_groups,
            max_rows,
            prepared,
            weights,
            nonnegative,
            consistent,
            show_all,
        )
        with self._engine.snapshot():
            return self._with_limits(asked, fresh) if asked.automatic else self._ask(asked, fresh)

    def _ask(self, asked: Asked, fresh: bool) -> Answer:
        question = self._read(asked)
        missing = unknown_ranges(question)
        if missing:
            self._notice.give(self._with_any_range(asked, missing))
            return self._with_ranges(asked, missing, fresh)
        asked, plan = self._planned(asked, question)
        self._notice.give(plan)
        return self._answered(asked, plan, fresh)

    def _answered(self, asked: Asked, plan: Plan, fresh: bool) -> Answer:
        """Stored, or what follows from stored answers; else charged, run, noised, stored and then shown."""
        if plan.public:
            return public_answer(plan, self._engine.read_public(plan.sql))
        version = self._version()
        stored = None if fresh else self._stored.find(plan, version) or self._stored.derived(plan, version)
        if stored is not None:
            return replace(finish(*stored, calculator().finish), stored=True)
        with self._charged([(asked, plan)]) as (charge,):
            return self._run(asked, plan, charge, version, fresh)

    def _charged(self, asked: Sequence[tuple[Asked, Plan]]) -> AbstractContextManager[list[Charge]]:
        """All of them, or none, around all that is run for them: the ledger notes whether it fails. No text
        is charged that the engine would not take.
        """
        for _, plan in asked:
            for statement in plan.statements:
                self._engine.check(statement, self._schema)
            types = computed_types(plan)
            if types is not None:
                calculator().check(plan.finishing, types)
        bills = [(released(plan.measurements), each.text) for each, plan in asked]
        return self._ledger.running(bills, self._policy.neighbours, self._analyst)

    def _run(self, asked: Asked, plan: Plan, charge: Charge, version: str | None, fresh: bool) -> Answer:
        """After the charge nothing but an answer or one fixed sentence comes out."""
        try:
            with elapsed_time(), self._engine.question():
                # nothing exact outlives this call
                outcome = self._outcome(asked, plan, charge, version, fresh)
                if isinstance(outcome, BaseException):
                    raise outcome from None
                return outcome
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the query was interrupted; its charge stands") from None

    def _outcome(
        self, asked: Asked, plan: Plan, charge: Charge, version: str | None, fresh: bool
    ) -> Answer | BaseException:
        """An answer, or what to raise: an error that is raised from here would hold what was read, and
        freeing it take time.
        """
        try:
            exact = [self._engine.run(statement, plan.keys) for statement in plan.runs]
            noisy = add_noise(plan, exact, self._randomness, lambda sql: self._engine.run(sql, plan.keys))
            kept = Kept(
                charge.number, asked.text, charge.when, version, asked.to_json(), lambda: (plan, noisy)
            )
            return finish(*self._stored.keep(kept, combine=not fresh), calculator().finish)
        except Exception:  # noqa: BLE001 -- whatever it is, it may depend on data
            return EngineError()
        except KeyboardInterrupt:
            return KeyboardInterrupt()

    def batch(
        self,
        questions: Sequence[str],
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        dialect: str = "duckdb",
        show_all: bool = False,
        **unknown: Never,
    ) -> list[Answer]:
        """Ask several questions for one epsilon, split so that their errors are small: what is the same, or
        follows from another one, is paid for once. All are priced and charged before the first is run.
        """
        no_more_arguments(unknown, ("questions", "epsilon", "delta", "dialect", "show_all"))
        if isinstance(questions, str) or not isinstance(questions, Sequence) or not questions:
            raise ArgumentError(
                "argument-batch", "questions must be a list of SQL texts", '["SELECT ...", "SELECT ..."]'
            )
        whole, part = epsilon_of(epsilon), delta_of(delta) / len(questions)
        each = epsilon_of(whole / len(questions)), float(part)
        asked = [Asked(sql, *each, dialect=dialect, show_all=show_all) for sql in questions]
        with self._engine.snapshot():
            return self._batched(asked, whole)

    def _batched(self, asked: Sequence[Asked], whole: Fraction) -> list[Answer]:
        """All of them about one state of the data."""
        read_before = [self._read(each) for each in asked]
        for question in read_before:
            if unknown_ranges(question):
                raise ArgumentError(
                    "argument-batch",
                    "a range is not known yet, and is not looked for in a batch",
                    "declare it, or ask this question by itself",
                )
        plans = [self._planned(each, question)[1] for each, question in zip(asked, read_before, strict=True)]
        for plan in plans:
            self._notice.give(plan)
        private = {place: plan for place, plan in enumerate(plans) if not plan.public}
        version, places = self._version(), list(private)
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
        with self._charged(list(paid.values())) if paid else contextlib.nullcontext([]) as charges:
            for (each, plan), charge in zip(paid.values(), charges, strict=True):
                self._run(each, plan, charge, version, fresh=False)
        return [self._of_batch(plan, version, place in paid) for place, plan in enumerate(plans)]

    def _is_known(self, plan: Plan, followers: Sequence[Plan], version: str | None) -> bool:
        """Whether it need not be paid for; what follows from it need not follow from what it is computed from
        itself.
        """
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
        max_groups: int | Literal["auto"] | None = None,
        max_rows: int | Literal["auto"] | None = None,
        prepared: bool = True,
        weights: Mapping[str, float] | None = None,
        nonnegative: bool = False,
        consistent: bool = False,
        show_all: bool = False,
        fresh: bool = False,
        **unknown: Never,
    ) -> Plan:
        """What query() would do: reads no data, spends nothing."""
        no_more_arguments(unknown, _ARGUMENTS)
        check_flag("fresh", fresh)
        asked = Asked(
            sql,
            epsilon,
            delta,
            within,
            confidence,
            dialect,
            mechanism,
            max_groups,
            max_rows,
            prepared,
            weights,
            nonnegative,
            consistent,
            show_all,
        )
        with self._engine.snapshot():
            search = self._first_search(asked)
            if search is not None:
                return self._with_budget(search, self._events(self._calls(asked, fresh)))
            plan = self._planned(asked.with_limits())[1]
            if plan.public or (not fresh and self._is_stored(plan)):
                return self._with_budget(self._as_stored(plan), [])
            return self._with_budget(plan, [[each.event for each in released(plan.measurements)]])

    def audit(
        self,
        sql: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        releases: int | None = None,
        tries: int = TRIES,
        progress: Callable[[str], None] | None = None,
        data: Any = None,
        **options: Any,
    ) -> Audit:
        """Try to break the promise of a question, on tables that are made up: reads no private row, spends
        nothing.

        `data`: tables to start from besides, as connect() takes them. What is found is shown: give none that
        are secret; those of this session are refused.
        """
        if data is not None and self._engine.holds(data):
            raise ArgumentError(
                "argument-data",
                "data= is the private source itself, and rows that an audit finds are shown",
                "give tables that are made up or published, or leave it out",
            )
        plan = self.explain(sql, epsilon, delta, **{**options, "prepared": False, "fresh": True})
        if not plan.public:
            for statement in plan.statements:
                self._engine.check(statement, self._schema)
        asked = plan.loss if epsilon is None else epsilon_of(epsilon)
        return audit(
            plan, sql, self._schema, self._engine.read_public, asked, releases, tries, progress, data
        )

    def _as_stored(self, plan: Plan) -> Plan:
        """How query() would answer it: from what was paid before, where that says it."""
        if plan.public:
            return plan
        version = self._version()
        if self._stored.find(plan, version) is not None:
            return replace(
                plan, stored=True, notes=(*plan.notes, "it was asked before: that answer is stored, and free")
            )
        derived = self._stored.derived(plan, version)
        return plan if derived is None else derived[0]

    def _is_stored(self, plan: Plan) -> bool:
        version = self._version()
        return self._stored.find(plan, version) is not None or self._stored.derived(plan, version) is not None

    def _version(self) -> str | None:
        """Under which answers are stored: as the owner calls the data, or else what every write to the source
        changes. Nothing that depends on what was written, since EXPLAIN shows for free whether an answer is
        there.
        """
        return self._engine.version() if self._declared is None else f"declared: {self._declared}"

    def _shelf(self) -> AnswerFile | None:
        return (
            AnswerFile(path, self._ledger.charged, self._replanned) if (path := self._ledger.path) else None
        )

    def _replanned(self, raw: Mapping[str, Any]) -> Plan | None:
        try:
            return self._planned(Asked.of_json(raw))[1]
        except PrivsqlError:
            return None

    def _read(self, asked: Asked) -> Question:
        asked.price()  # a bad epsilon says so before anything else is looked at
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        question = read(asked.sql, self._catalogue(asked.under(self._policy)), asked.dialect)
        return question if asked.histogram is None else histogram_question(question, asked.histogram)

    def _catalogue(self, policy: Policy) -> Catalogue:
        """Kept while schema and policy are the same objects: a wide table takes longer to look through than a
        question.
        """
        if self._known is None or self._known.schema is not self._schema or self._known.policy is not policy:
            self._known = Catalogue(self._schema, policy)
        return self._known

    def _planned(self, asked: Asked, question: Question | None = None) -> tuple[Asked, Plan]:
        """The plan, and what was asked with the epsilon that it has."""
        policy, question = asked.under(self._policy), question or self._read(asked)
        look = PublicLook(self._engine.read_public, self._engine.dialect)
        weights = {} if asked.weights is None else asked.weights
        offer = Offer(
            asked.price(), delta_of(asked.delta), asked.mechanism, weights, asked.limits(), policy.min_units
        )
        copies = self._engine.prepared if asked.prepared else no_copies
        try:
            evaluate, dialect = calculator().evaluate, self._engine.dialect
            plan = make_plan(Task(question, policy.neighbours, offer, evaluate, look, dialect, copies))
        except RecursionError:  # before anything is charged or read
            raise too_deep() from None
        except Refused as error:
            raise with_affordable_ways(error, self._ledger.budget) from None
        if asked.within is not None:
            asked = replace(asked, epsilon=epsilon_within(plan, asked.within, asked.confidence), within=None)
            plan = plan.repriced(asked.price())
        return asked, self._with_rho(plan.projected(asked.nonnegative, asked.consistent, asked.show_all))

    def _with_rho(self, plan: Plan) -> Plan:
        return replace(plan, rho=self._ledger.rho([each.event for each in released(plan.measurements)]))

    def prepare(self, table: str) -> None:
        """Store, once, a copy of a table of many rows a unit by which questions about it are fast; again
        after it changed.
        """
        scan = self._scan(table)
        if not scan.private or scan.unit is None or scan.unit.unique:
            raise ArgumentError(
                "argument-prepare",
                f"{table} has no unit with many rows: there is nothing to prepare",
                "questions about it are fast as it is",
            )
        self._engine.prepare(scan)

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
        """What limits on one unit's rows and keys would drop, privately; which suit a count at query_epsilon.

        `by`: a column, or several, whose values are the keys; without it, the declared ones. It is charged.

            found = session.suggest_limits("visits", epsilon=0.1)
            print(found, found.max_rows, found.max_groups); found.df(); found.plot()
        """
        no_more_arguments(unknown, ("table", "epsilon", "by", "query_epsilon", "fresh"))
        check_flag("fresh", fresh)
        columns, moves = [by] if isinstance(by, str) else by, self._policy.neighbours.moves
        whole, later = epsilon_of(epsilon), epsilon_of(query_epsilon, "query_epsilon")
        with self._engine.snapshot():
            return suggestions(self._scan(table), columns, moves, whole, later, self._asker(fresh))

    def _scan(self, table: str) -> Scan:
        if not self._engine.fixed_schema:
            self._schema = self._engine.schema()
        catalogue = self._catalogue(self._policy)
        source = catalogue.source(table) if isinstance(table, str) else None
        if source is None or not isinstance(source.relation, Scan):
            raise UnknownName(
                "name-table", f"there is no table {table}", did_you_mean(str(table), catalogue.names)
            )
        return source.relation

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
        """Limit, spent and remaining; where analysts have caps, also of this one's share; and how many
        queries failed.
        """
        share, failures = self._ledger.share(self._analyst), self._ledger.failures(self._analyst)
        budget = replace(self._ledger.budget, share=share, failures=failures)
        return budget if self._policy.by_row else budget.without_counts()

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
                "failed": e.failed,
            }
            for e in self._ledger.entries()
        ]
        rho = ["rho"] if self.budget.spent.rho is not None else []
        return pd.DataFrame(
            rows, columns=["when", "analyst", "question", "epsilon", "delta", *rho, "released", "failed"]
        )


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
    or CSV path.

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

    catalogue = Catalogue(schema, policy)
    for table in schema.tables:  # a ledger is opened for good, so not under a policy that is wrong
        # a view that is not named, or can fail: nobody is answered about it
        with contextlib.suppress(Refused):
            catalogue.source(table.name)
    return open_ledger(path, policy, schema)
