"""A stage of a request goes in; it is read, planned, charged and run, and an Answer comes out.

A request is answered in one or more stages: searches for its limits and ranges, if it leaves any open, and
then the query itself. Each step of a stage is one method here, and `Session.ask` calls them in order.
Everything that answering takes is held here: the source, the policy, the ledger and the stored answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from privsql.algebra.relations import BoundQuery, Scan
from privsql.answers.answer_file import AnswerFile
from privsql.answers.stored import Kept, Shown, StoredAnswers
from privsql.budget.ledger import Charge, Ledger, with_affordable_ways
from privsql.budget.released import released, released_later
from privsql.engines.base import Engine
from privsql.engines.duckdb.calculator import calculator
from privsql.engines.duckdb.sandbox import sandbox
from privsql.errors import EngineError, PrivsqlError, Refused, SqlError, UnknownName, did_you_mean
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import Randomness
from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.draft import Task
from privsql.planning.limits.limit_histograms import histogram_query
from privsql.planning.limits.range_histograms import size_histogram
from privsql.planning.plan import Plan
from privsql.planning.planner import plan as make_plan
from privsql.planning.precision.half_widths import epsilon_within
from privsql.planning.pricing import Offer
from privsql.planning.public_look import PublicLook, Read
from privsql.planning.rewrites.prepared import Copies, Copy, no_copies
from privsql.policy import Policy
from privsql.policy.checks import analyst_of, delta_of
from privsql.policy.resolve import with_names_of
from privsql.progress import elapsed_time
from privsql.render.write_above import write_above
from privsql.requests.planning_cache import PlanCache
from privsql.requests.stage import Stage
from privsql.results.answer import Answer
from privsql.results.finish import computed_types, finish, public_answer
from privsql.results.notices import Bounded, BoundingNotice
from privsql.results.release_answer import ReleaseAnswer
from privsql.schema import Schema
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.parse.tokens import too_deep
from privsql.sql.read import read, read_composition, read_part
from privsql.sql.split.composition import Composition, Tree
from privsql.sql.split.stage_values import Columns
from privsql.tables import ShrunkTable
from privsql.types import Type

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Priced:
    """A stage with its plan. Its epsilon is that of the plan, also where `within` was given."""

    stage: Stage
    plan: Plan


class FreeAnswers(Protocol):
    """What releases of whole workloads say of single queries, for free."""

    def answered(self, plan: Plan, version: str | None, as_good: bool) -> Shown | None:
        """How a release answers a query; with `as_good`, only with no more noise than the plan would add."""
        ...

    def share(self, number: int) -> None:
        """Store the release of this charge, if there is one, for other sessions."""
        ...


@dataclass(eq=False)
class Pipeline:
    """The steps from a stage to its answer, over one source, one policy and one ledger.

    Within `snapshot` one thread has the source for itself, and all that it reads is of one state. `declared`:
    the version of the data, as the owner names it.
    """

    engine: Engine
    policy: Policy
    ledger: Ledger
    analyst: str
    randomness: Randomness
    notice: BoundingNotice
    declared: str | None

    def __post_init__(self) -> None:
        self.schema = self.engine.schema()
        self._written, self.policy = self.policy, with_names_of(self.schema, self.policy)
        self._stored = StoredAnswers(calculator().evaluate, self._shelf())
        self.releases: FreeAnswers | None = None  # where releases are kept that answer queries
        self._last_catalogue: Catalogue | None = None
        self._last_composition: tuple[Hashable, Composition | None] | None = None
        self._plans: PlanCache[Priced] = PlanCache(
            self._read_public, self._copies, lambda priced: priced.plan.cells
        )

    def snapshot(self) -> AbstractContextManager[None]:
        return self.engine.snapshot()

    # -- reading ---------------------------------------------------------------------------------------------
    def read(self, stage: Stage) -> BoundQuery:
        """Parse the query and bind it to the tables as they are now."""
        stage.price()  # a bad epsilon is reported before anything else is looked at
        self._follow_schema()
        return self._bound(stage)

    def _bound(self, stage: Stage) -> BoundQuery:
        policy = stage.under(self.policy)
        if stage.sizes_of is not None:
            table, column = stage.sizes_of
            return size_histogram(self._scan(table, policy), column)
        catalogue = self._catalogue(policy)
        if stage.part is not None:
            composition = self._composed(stage, catalogue)
            if composition is None or stage.part >= len(composition.parts):
                raise SqlError("sql-syntax", "the query has no such part", "ask the whole query")
            return read_part(composition.parts[stage.part], dict(stage.given), catalogue, stage.dialect)
        query = read(stage.sql, catalogue, stage.dialect, stage.constants)
        return query if stage.histogram is None else histogram_query(query, stage.histogram)

    def composition(self, stage: Stage) -> Composition | None:
        """The parts of a query, as the tables are now, and the SQL above them; None if it is not composed."""
        stage.price()
        self._follow_schema()
        return self._composed(stage, self._catalogue(stage.under(self.policy)))

    def _composed(self, stage: Stage, catalogue: Catalogue) -> Composition | None:
        """Kept while it is asked about part by part: it takes as long to read as all parts together."""
        key = stage.sql, stage.dialect, stage.constants, stage.by_counts, catalogue
        if self._last_composition is None or self._last_composition[0] != key:
            found = read_composition(
                stage.sql, catalogue, stage.dialect, described, stage.constants, stage.by_counts
            )
            self._last_composition = key, found
        return self._last_composition[1]

    def scan(self, table: str) -> Scan:
        """A table of the source, as the policy declares it."""
        self._follow_schema()
        return self._scan(table, self.policy)

    def _scan(self, table: str, policy: Policy) -> Scan:
        catalogue = self._catalogue(policy)
        source = catalogue.source(table) if isinstance(table, str) else None
        if source is None or not isinstance(source.relation, Scan):
            raise UnknownName(
                "name-table", f"there is no table {table}", did_you_mean(str(table), catalogue.names)
            )
        return source.relation

    def current_schema(self) -> Schema:
        """The tables as they are now."""
        self._follow_schema()
        return self.schema

    def _follow_schema(self) -> None:
        if not self.engine.fixed_schema:
            before, self.schema = self.schema, self.engine.schema()
            if self.schema is not before:
                self.policy = with_names_of(self.schema, self._written)

    def _catalogue(self, policy: Policy) -> Catalogue:
        """Kept while schema and policy are the same objects: a wide table takes longer to read
        than a query.
        """
        last = self._last_catalogue
        if last is None or last.schema is not self.schema or last.policy is not policy:
            self._last_catalogue = last = Catalogue(self.schema, policy)
        return last

    # -- planning --------------------------------------------------------------------------------------------
    def plan(self, stage: Stage, query: BoundQuery | None = None) -> Priced:
        """Choose what is measured and how; reads no private row. A stage planned before is not planned again.

        `query`: the query, where it was read in this snapshot.
        """
        if query is not None:
            return self._planned(stage, query, self._read_public, self._copies)
        stage.price()
        self._follow_schema()
        asked = stage.of_anyone()
        priced = self._plans.plan(
            asked,
            self.schema,
            lambda read_public, copies: self._planned(asked, self._bound(asked), read_public, copies),
        )
        if stage is asked:
            return priced
        return Priced(replace(priced.stage, fresh=stage.fresh, analyst=stage.analyst), priced.plan)

    def _planned(self, stage: Stage, query: BoundQuery, read_public: Read, copies: Copies) -> Priced:
        try:
            plan = make_plan(self._task(stage, query, read_public, copies))
        except RecursionError:  # before anything is charged or read
            raise too_deep() from None
        except Refused as error:
            raise with_affordable_ways(error, self.ledger.budget) from None
        if stage.within is not None:  # planned at any epsilon so far: its errors tell which one is needed
            stage = replace(stage, epsilon=epsilon_within(plan, stage.within, stage.confidence), within=None)
            plan = plan.repriced(stage.price())
        shown = plan.projected(stage.nonnegative, stage.consistent, stage.show_all)
        shown = replace(shown, rho=self.rho(shown))
        _render(shown)
        return Priced(stage, shown)

    def _task(self, stage: Stage, query: BoundQuery, read_public: Read, copies: Copies) -> Task:
        policy = stage.under(self.policy)
        weights = {} if stage.weights is None else stage.weights
        delta, limits = delta_of(stage.delta), stage.limits()
        offer = Offer(stage.price(), delta, stage.mechanism, weights, limits, policy.min_units)
        look = PublicLook(read_public, self.engine.dialect)
        evaluate, dialect = calculator().evaluate, self.engine.dialect
        usable = copies if stage.prepared else no_copies
        return Task(query, policy.neighbours, offer, evaluate, look, dialect, usable)

    def _read_public(self, sql: str) -> list[tuple[Any, ...]]:
        return self.engine.read_public(sql)

    def _copies(self, scan: Scan) -> Copy | None:
        return self.engine.prepared(scan)

    def rho(self, plan: Plan | ComposedPlan) -> float | None:
        """The price of a plan as the ledger counts it; None where it counts epsilon."""
        plans = plan.releases if isinstance(plan, ComposedPlan) else (plan,)
        return self.ledger.rho([each.event for one in plans for each in released(one.measurements)])

    def give_notice(self, plan: Bounded) -> None:
        """Warn, once, of limits that nobody declared; before anything is charged."""
        self.notice.give(plan)

    # -- stored answers --------------------------------------------------------------------------------------
    def version(self) -> str | None:
        """The version of the data that answers are stored under: the owner's name for it, or the engine's.

        It never depends on what was written, since EXPLAIN shows for free whether an answer is stored.
        """
        return self.engine.version() if self.declared is None else f"declared: {self.declared}"

    def find(self, plan: Plan) -> Shown | None:
        """The stored answer of the same query, or one that follows from stored answers or a release."""
        version = self.version()
        stored = self._stored.find(plan, version) or self._stored.derived(plan, version)
        return stored or self._from_release(plan, as_good=True)

    def found_again(self, plan: Plan) -> Shown | None:
        """The stored answer of the same query alone."""
        return self._stored.find(plan, self.version())

    def known(self, plan: Plan) -> Shown | None:
        """The best that stored answers, or else releases, say, however uncertain."""
        return self._stored.known(plan, self.version()) or self._from_release(plan, as_good=False)

    def _from_release(self, plan: Plan, as_good: bool) -> Shown | None:
        return None if self.releases is None else self.releases.answered(plan, self.version(), as_good)

    def told(self, stage: Stage) -> Answer | None:
        """What is known already of a query for which nothing is to be paid; None if that is nothing."""
        with self.snapshot():
            plan = self.plan(stage).plan
            stored = None if plan.public else self.known(plan)
        return None if stored is None else replace(finished(stored), stored=True)

    def is_stored(self, stage: Stage) -> bool:
        """Whether answering this stage costs nothing."""
        return not stage.fresh and self.find(self.plan(stage).plan) is not None

    def _shelf(self) -> AnswerFile | None:
        """Where answers are stored beside a ledger file; None where the ledger is in memory."""
        path = self.ledger.path
        return None if path is None else AnswerFile(path, self.ledger.charged, self._plan_again)

    def _plan_again(self, raw: Mapping[str, Any]) -> Plan | None:
        """The plan of a stored answer under today's policy and schema; None where it is refused now."""
        try:
            return self.plan(Stage.of_json(raw)).plan
        except PrivsqlError:
            return None

    # -- answering -------------------------------------------------------------------------------------------
    def answer(self, priced: Priced) -> Answer:
        """The stored answer, or one that is charged, run, noised, stored and finished."""
        if priced.plan.public:
            return self.public(priced.plan)
        stored = None if priced.stage.fresh else self.find(priced.plan)
        if stored is not None:
            return replace(finished(stored), stored=True)
        with self.charged([priced]) as (charge,):
            return self.run(priced, charge)

    def public(self, plan: Plan) -> Answer:
        """The exact answer of a query over public tables alone."""
        return public_answer(plan, self.engine.read_public(plan.sql))

    def check(self, plan: Plan) -> None:
        """Refuse what the engine would not plan, or could fail at; reads no data."""
        for statement in plan.statements:
            self.engine.check(statement, self.schema)
        types = computed_types(plan)
        if types is not None:
            calculator().check(plan.finishing, types)

    def charged(
        self, listed: Sequence[Priced], later: Collection[int] = ()
    ) -> AbstractContextManager[list[Charge]]:
        """Charge all of them or none, around everything that is run for them; a failure is recorded.

        `later`: the places of those that read noisy values of others, and whose bounds are not known yet.
        """
        for each in listed:
            self.check(each.plan)
        bills = [
            ((released_later if place in later else released)(each.plan.measurements), each.stage.text)
            for place, each in enumerate(listed)
        ]
        return self.ledger.running(bills, self.policy.neighbours, self.who(listed[0].stage))

    def who(self, stage: Stage) -> str:
        """The analyst of a stage, in the ledger."""
        return self.analyst if stage.analyst is None else analyst_of(stage.analyst)

    def run(self, priced: Priced, charge: Charge) -> Answer:
        """Run what was charged, add noise, and store the answer."""
        return self.after_charge(charge, lambda: self._answered(priced, charge))

    def _answered(self, priced: Priced, charge: Charge) -> Answer:
        plan, stage, engine = priced.plan, priced.stage, self.engine
        version = self.version()
        exact = [engine.run(statement, plan.keys) for statement in plan.runs]
        noisy = add_noise(plan, exact, self.randomness, lambda sql: engine.run(sql, plan.keys))
        kept = Kept(charge.number, stage.text, charge.when, version, stage.to_json, lambda: (plan, noisy))
        return finished(self._stored.keep(kept, combine=not stage.fresh))

    def after_charge(self, charge: Charge, work: Callable[[], Outcome]) -> Outcome:
        """Do what was charged. Nothing but its outcome or one fixed sentence comes out, and nothing exact
        stays.
        """
        try:
            with elapsed_time(), self.engine.one_query():
                outcome = _outcome(work)
                if isinstance(outcome, BaseException):
                    raise outcome from None
                return outcome
        except KeyboardInterrupt:
            pass  # raised anew below: a second Ctrl-C may have come in frames that hold rows
        finally:
            # not before the padding ends: other sessions would learn when the query was really done
            self._stored.share(charge.number)
            if self.releases is not None:
                self.releases.share(charge.number)
        raise KeyboardInterrupt("the query was interrupted; its charge stands")


def _outcome(work: Callable[[], Outcome]) -> Outcome | BaseException:
    """What comes of it, or what to raise.

    An error raised here would keep the frames that hold what was read, and freeing them takes a time that
    depends on the data.
    """
    try:
        return work()
    except Exception:  # noqa: BLE001 -- whatever it is, it may depend on data
        return EngineError()
    except BaseException as error:  # noqa: BLE001 -- Ctrl-C, SystemExit, a timeout that a signal raises
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)


def _render(plan: Plan) -> None:
    """Write the SQL of a plan, which keeps it: a dialect without a safe form of a function refuses
    it here.
    """
    _ = plan.statements, None if plan.public else plan.finishing


def described(above: Tree, tables: Mapping[str, Mapping[str, Type]]) -> Columns:
    """The columns of SQL over noisy tables, as the engine that will compute it has them; reads no data."""
    return tuple(sandbox().check(write_above(above), tables))


def finished(shown: Shown) -> Answer:
    """The answer from a plan and its noisy cells: what is computed from them, and their intervals."""
    plan, noisy = shown
    answer = finish(plan, noisy, calculator().finish)
    return ReleaseAnswer.of(answer, noisy.unbiased) if isinstance(noisy, ShrunkTable) else answer
