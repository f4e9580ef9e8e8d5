"""python -m tests.fuzz.differential [N [SEED [PROCESSES]]]: N accepted queries; every silent difference is printed, exit 1 if there is one.

Three readings are compared of every query that privsql accepts:

- of the analyst's text: what sqlglot reads and privsql binds, and what DuckDB would have read from the same text;
- of every rendered statement: what privsql's tree means (meant.py), and what DuckDB reads;
- of some rendered statements whole: what sqlglot reads, and what DuckDB reads.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any
from zlib import crc32

import duckdb
import sqlglot

import privsql
from privsql.algebra.relations import Choose, Filter, Project, Release, Sort, below
from privsql.planning.composed_plan import ComposedPlan
from privsql.sql import read as reading
from privsql.sql.parse.constants import Constants
from tests.attacks import judge
from tests.cases.test_cases import session_of
from tests.fuzz import meant, neutral, short, sqlglot_reads, texts
from tests.fuzz.duckdb_reads import DuckDBReader, UnreadError
from tests.fuzz.in_slices import in_slices
from tests.fuzz.neutral import Node
from tests.fuzz.parsed_once import parsed_once
from tests.soundness.check import KINDS, Kind

LONG = 0.12  # of all queries
GENERATED = 0.15  # of the long ones, which take five times as long as short ones; the others are texts with tokens changed, most of which are refused
OF_A_WORLD = 1_000
TOGETHER = 100  # accepted queries whose texts DuckDB reads in one statement
TEXTS = 8  # of so many generated texts, one is compared itself, too: all are written alike
WHOLE = 8  # of so many statements, one is read whole by sqlglot, too
# What an accepted text may mean to DuckDB otherwise than to us, by what DuckDB has in the other's place. Nothing of it reaches the
# engine, which sees only what we render; each is what other databases' SQL means, and docs/sql.md says so.
KNOWN = (
    "date_trunc(month, d) and date_diff(day, a, b): a bare word is the unit, to DuckDB it is a column",
    "date_diff('day'::VARCHAR, a, b): the cast of a text to text is left out",
    "approx_count_distinct(x): counted exactly, before the noise",
    "SHOW t, DESCRIBE t: answered from schema and policy",
    "current_date, now(): the time at which it was asked, read once for all releases of a query",
)  # fmt: skip
ASKED = Constants(now="1987-06-05 04:03:02.000001")  # a moment that nobody writes
_CLOCKS = {
    ("cast", ("date",), ("text", ASKED.now[:10])): ("current_date", "today"),
    ("cast", ("timestamp",), ("text", ASKED.now)): ("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp", "localtimestamp", "current_localtimestamp"),
}  # fmt: skip


@dataclass
class Report:
    """What a run did."""

    asked: int = 0
    accepted: int = 0
    same: int = 0  # texts that DuckDB reads alike
    ours: int = 0  # accepted texts that are no SQL to DuckDB
    rendered: int = 0  # statements in which what was meant was found
    whole: int = 0  # statements that sqlglot and DuckDB read alike
    known: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        for name in ("asked", "accepted", "same", "ours", "rendered", "whole", "known"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused += other.refused
        self.differences += other.differences

    def __str__(self) -> str:
        return (
            f"{self.asked} queries, {self.accepted} accepted: {self.same} read alike by DuckDB, {self.known} otherwise as documented, "
            f"{self.ours} no SQL to it; {self.rendered} statements mean what was meant, {self.whole} of them read whole by sqlglot; "
            f"{len(self.differences)} differences"
        )


@dataclass(frozen=True)
class Accepted:
    """A query that was planned: `written` by people, so that its text is looked at for sure."""

    plan: Any
    sql: str
    where: str
    written: bool

    @property
    def looked_at(self) -> bool:
        return self.written or crc32(self.sql.encode()) % TEXTS == 0

    @property
    def texts(self) -> list[str]:
        """All that DuckDB is to read of it."""
        plan = self.plan
        return [
            *([self.sql] if self.looked_at else []),
            *plan.statements,
            *([plan.finishing] if plan.release else []),
        ]


class Comparer:
    """One reader, and what was accepted and not yet compared."""

    def __init__(self, report: Report) -> None:
        self.reader, self.report = reader(), report
        self._accepted: list[Accepted] = []
        self._finishing = lru_cache(maxsize=1_000)(self._without_guards)  # many are the same text

    def ask(self, session: privsql.Session, sql: str, where: str, written: bool, **options: Any) -> None:
        """One query: planned, and where that succeeds compared, together with others."""
        report = self.report
        report.asked += 1
        try:
            plan = session.explain(sql, epsilon=1.0, **options)
        except privsql.PrivsqlError as error:
            report.refused[error.code] += 1
            return
        except Exception as error:  # noqa: BLE001 -- any other error is a finding
            report.differences.append(f"CRASH {type(error).__name__}: {error}\n  {where}: {sql}")
            return
        if isinstance(plan, ComposedPlan):  # of several releases: tests/composed compares their answers
            report.refused["composed"] += 1
            return
        report.accepted += 1
        self._accepted.append(Accepted(plan, sql, where, written))
        if len(self._accepted) >= TOGETHER:
            self.compare()

    def compare(self) -> None:
        """All that was accepted since the last time."""
        self.reader.prefetch([text for each in self._accepted for text in each.texts])
        for each in self._accepted:
            found = self.of_text(each.sql) if each.looked_at else []
            for statement in each.plan.statements:
                found += self.of_statement(each.plan, statement)
            if each.plan.release is not None:
                found += self.of_finishing(each.plan)
            self.report.differences += [f"{what}\n  {each.where}: {each.sql!r}" for what in found]
        self._accepted.clear()

    # -- the analyst's text ----------------------------------------------------------------------------------
    def of_text(self, sql: str) -> list[str]:
        try:
            theirs = self.reader.read(sql)
            if theirs is None:
                self.report.ours += 1
                return []
            if theirs[0] == "select" and theirs[3] == ("shown",):
                self.report.known += 1
                return []
            ours = sqlglot_reads.query(reading.one_statement(sql, "duckdb", ASKED)[0])
        except (UnreadError, privsql.PrivsqlError) as error:
            return [f"UNREAD {error}"]
        if ours == theirs:
            self.report.same += 1
            return []
        if is_known(ours, theirs):
            self.report.known += 1
            return []
        one, two = neutral.first_difference(ours, theirs)
        return [f"TEXT  sqlglot: {one}\n      DuckDB:  {two}"]

    # -- what is rendered ------------------------------------------------------------------------------------
    def of_statement(self, plan: Any, sql: str) -> list[str]:
        try:
            read = self.reader.read(sql)
            if read is None:
                return [f"RENDERED is no SQL: {sql}"]
            found = self._whole(sql, read)
            release = plan.release
            if release is None:
                wanted = [meant.rows(plan.query.relation)]
            else:
                wanted = [meant.rows(release.input, plan.limits is not None)]
                wanted += [meant.expression(key.expression) for key in release.keys]
            plain = meant.bare(read)
            if release is None:
                plain = ("subquery", plain, "", ())
            missing = [each for each in wanted if not holds(plain, each)]
        except (UnreadError, meant.NotMeantError) as error:
            return [f"UNREAD {type(error).__name__} {error} in {sql}"]
        self.report.rendered += not missing
        return found + [f"MEANT {each}\n  NOT IN {plain}\n  OF {sql}" for each in missing]

    def _whole(self, sql: str, read: Node) -> list[str]:
        if crc32(sql.encode()) % WHOLE:
            return []
        ours = sqlglot_reads.query(sqlglot.parse_one(sql, read="duckdb"))
        self.report.whole += ours == read
        if ours == read:
            return []
        one, two = neutral.first_difference(ours, read)
        return [f"WHOLE sqlglot: {one}\n      DuckDB:  {two}\n  OF {sql}"]

    def _without_guards(self, sql: str) -> tuple[Node | None, Node | None]:
        read = self.reader.read(sql)
        return read, None if read is None else meant.bare(read)

    def of_finishing(self, plan: Any) -> list[str]:
        """HAVING, ORDER BY and what is computed from noisy values."""
        try:
            read, plain = self._finishing(plan.finishing)
            if read is None:
                return [f"FINISHING is no SQL: {plan.finishing}"]
            wanted, relation = [], plan.query.relation
            while not isinstance(relation, (Release, Choose)):
                match relation:
                    case Filter():
                        wanted.append(meant.expression(relation.predicate))
                    case Project():
                        wanted += [meant.expression(each) for _, each in relation.columns]
                    case Sort():
                        wanted += [meant.expression(each.expression) for each in relation.by]
                (relation,) = below(relation)
            missing = [each for each in wanted if not holds(plain, each)]
            return self._whole(plan.finishing, read) + [
                f"MEANT {each}\n  NOT IN {plain}\n  OF {plan.finishing}" for each in missing
            ]
        except (UnreadError, meant.NotMeantError) as error:
            return [f"UNREAD {type(error).__name__} {error} in {plan.finishing}"]


def holds(whole: Node, part: Node) -> bool:
    """Whether a form occurs in another, whatever it is called there."""
    part = _nameless(part)
    return any(_nameless(each) == part for each in neutral.parts_of(whole) if each[:1] == part[:1])


def _nameless(node: Node) -> Node:
    return (
        (*node[:2], "", node[3]) if node[0] == "subquery" or (node[0] == "table" and node[2] == "") else node
    )


def is_known(ours: Node, theirs: Node) -> bool:
    """Whether the two differ by nothing but what KNOWN lists."""
    if ours == theirs:
        return True
    if not isinstance(ours, tuple) or not isinstance(theirs, tuple):
        return False
    match ours, theirs:
        case ("cast", _, ("text", str())), ("column", name) | ("call", name, ()) if ours in _CLOCKS:
            return name in _CLOCKS[ours]
        case ("call", "count", args, True, where, ()), ("call", "approx_count_distinct", others, *rest):
            return is_known((args, where), (others, rest[1] if rest else None))
        case ("text", one), ("cast", ("varchar",), ("text", two)):
            return one == two
        case ("call", "date_trunc" | "date_diff" as name, (("text", unit), *rest)), (
            "call",
            other,
            (("column", word), *further),
        ):
            return (
                name == other
                and neutral.call(name, [("text", word)])[2] == (("text", unit),)
                and is_known((*rest,), (*further,))
            )
    return len(ours) == len(theirs) and all(is_known(one, two) for one, two in zip(ours, theirs, strict=True))


def fixed(session: privsql.Session) -> privsql.Session:
    """The schema read once, for speed: nobody changes it here."""
    schema = session._pipeline.engine.schema()
    session._pipeline.engine.schema = lambda: schema  # type: ignore[method-assign]
    return session


# Opening a database takes longer than ten queries: all slices of a process share them.
@lru_cache(maxsize=1)
def reader() -> DuckDBReader:
    return DuckDBReader()


@lru_cache(maxsize=2)
def empty(kind: str) -> duckdb.DuckDBPyConnection:
    """Where the worlds of a kind are made, one after the other."""
    return duckdb.connect(":memory:", config={"threads": "1", "python_enable_replacements": "false"})


@lru_cache(maxsize=64)
def session_for(schema: str) -> privsql.Session:
    if schema == "short":
        return fixed(short.session())
    if schema != "attacked":
        return fixed(session_of(schema))
    connection = duckdb.connect(":memory:")
    connection.execute(judge.SCHEMA)
    return fixed(privsql.connect(connection, policy=judge.POLICY))


def made(kind: Kind, connection: duckdb.DuckDBPyConnection, seed: int) -> Any:
    """A world of tables without people in them."""
    rng = Random(f"world {seed}")
    world = kind.make(rng, connection, 1)
    while not world.tables:
        world = kind.make(rng, connection, 1)
    kind.load(connection, world, None)
    return world


def run(accepted: int, seed: int, stop: int = 20, kinds: tuple[str, ...] = ("rows", "units")) -> Report:
    """Queries from the seed on, until so many are accepted or so many differ."""
    report = Report()
    comparer, number, listed = Comparer(report), 0, texts.corpus()
    with parsed_once():
        while report.accepted < accepted and len(report.differences) < stop:
            world_seed = seed * 1_000_003 + number
            kind = KINDS[name := kinds[(seed + number) % len(kinds)]]
            world, number = made(kind, empty(name), world_seed), number + 1
            session = fixed(privsql.connect(empty(name), policy=world.policy))
            for place in range(OF_A_WORLD):
                if report.accepted >= accepted:
                    break
                rng = Random(f"differential {world_seed} {place}")
                if rng.random() >= LONG:
                    comparer.ask(session_for("short"), short.question(rng), "short", True)
                elif rng.random() < GENERATED:
                    generator = kind.generator(rng, world)
                    comparer.ask(
                        session, generator.query(), f"{name} {world_seed} {place}", False, **generator.options
                    )
                else:
                    schema, sql = rng.choice(listed)
                    comparer.ask(session_for(schema), texts.mutated(rng, sql), schema, True)
            comparer.compare()
    return report


if __name__ == "__main__":
    sys.exit(in_slices(run, Report(), lambda report: report.differences))
