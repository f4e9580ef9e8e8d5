"""python tests/fuzz/differential.py [N [SEED [PROCESSES]]]: N accepted queries; every silent difference is printed, exit 1 if there is one.

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
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

import duckdb
import sqlglot
from soundness.check import Runner

import privsql
from fuzz import meant, neutral, short, sqlglot_reads, texts
from fuzz.duckdb_reads import DuckDBReader, UnreadError
from fuzz.in_slices import in_slices
from fuzz.neutral import Node
from privsql.sql.gate import parse
from privsql.sql.relations import Choose, Filter, Project, Release, Sort, below
from tests.attacks import judge
from tests.test_cases import session_of

LONG = 0.1  # of all queries; they take five times as long as the short ones
GENERATED = 0.35  # of the long ones; the others are texts with tokens changed, most of which are refused
OF_A_WORLD = 1_000
WHOLE = 8  # of so many statements, and of so many generated texts, one is read whole by sqlglot, too
# What an accepted text may mean to DuckDB otherwise than to us, by what DuckDB has in the other's place. Nothing of it reaches the
# engine, which sees only what we render; each is what other databases' SQL means, and docs/sql.md says so.
KNOWN = (
    "date_trunc(month, d) and date_diff(day, a, b): a bare word is the unit, to DuckDB it is a column",
    "date_diff('day'::VARCHAR, a, b): the cast of a text to text is left out",
)  # fmt: skip


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


class Comparer:
    """One reader, and the sessions that texts are asked of."""

    def __init__(self, report: Report) -> None:
        self.reader, self.report = DuckDBReader(), report
        self._sessions: dict[str, privsql.Session] = {}

    def session(self, schema: str) -> privsql.Session:
        if schema not in self._sessions:
            if schema == "short":
                made = short.session()
            elif schema == "attacked":
                connection = duckdb.connect(":memory:")
                connection.execute(judge.SCHEMA)
                made = privsql.connect(connection, policy=judge.POLICY)
            else:
                made = session_of(schema)
            self._sessions[schema] = fixed(made)
        return self._sessions[schema]

    def ask(self, session: privsql.Session, sql: str, where: str, written: bool, **options: Any) -> None:
        """One query: planned, and where that succeeds compared; `written` by people, so that its text is looked at for sure."""
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
        report.accepted += 1
        looked_at = written or crc32(sql.encode()) % WHOLE == 0
        self.reader.prefetch([*([sql] if looked_at else []), *plan.statements, *([plan.finishing] if plan.release else [])])
        found = self.of_text(sql) if looked_at else []
        for statement in plan.statements:
            found += self.of_statement(plan, statement)
        if plan.release is not None:
            found += self.of_finishing(plan)
        report.differences += [f"{each}\n  {where}: {sql!r}" for each in found]

    # -- the analyst's text ----------------------------------------------------------------------------------
    def of_text(self, sql: str) -> list[str]:
        try:
            theirs = self.reader.read(sql)
            if theirs is None:
                self.report.ours += 1
                return []
            ours = sqlglot_reads.query(parse(sql, "duckdb"))
        except UnreadError as error:
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
                wanted = [meant.rows(plan.question.relation)]
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

    def of_finishing(self, plan: Any) -> list[str]:
        """HAVING, ORDER BY and what is computed from noisy values."""
        try:
            read = self.reader.read(plan.finishing)
            if read is None:
                return [f"FINISHING is no SQL: {plan.finishing}"]
            plain, wanted, relation = meant.bare(read), [], plan.question.relation
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
            return self._whole(plan.finishing, read) + [f"MEANT {each}\n  NOT IN {plain}\n  OF {plan.finishing}" for each in missing]
        except (UnreadError, meant.NotMeantError) as error:
            return [f"UNREAD {type(error).__name__} {error} in {plan.finishing}"]


def holds(whole: Node, part: Node) -> bool:
    """Whether a form occurs in another, whatever it is called there."""
    part = _nameless(part)
    return any(_nameless(each) == part for each in neutral.parts_of(whole) if each[:1] == part[:1])


def _nameless(node: Node) -> Node:
    return (*node[:2], "", node[3]) if node[0] == "subquery" or (node[0] == "table" and node[2] == "") else node


def is_known(ours: Node, theirs: Node) -> bool:
    """Whether the two differ by nothing but what KNOWN lists."""
    if ours == theirs:
        return True
    if not isinstance(ours, tuple) or not isinstance(theirs, tuple):
        return False
    match ours, theirs:
        case ("text", one), ("cast", ("varchar",), ("text", two)):
            return one == two
        case ("call", "date_trunc" | "date_diff" as name, (("text", unit), *rest)), ("call", other, (("column", word), *further)):
            return name == other and neutral.call(name, [("text", word)])[2] == (("text", unit),) and is_known((*rest,), (*further,))
    return len(ours) == len(theirs) and all(is_known(one, two) for one, two in zip(ours, theirs, strict=True))


def fixed(session: privsql.Session) -> privsql.Session:
    """The schema read once, for speed: nobody changes it here."""
    schema = session._engine.schema()
    session._engine.schema = lambda: schema  # type: ignore[method-assign]
    return session


def made(runner: Runner, seed: int) -> Any:
    """A world of tables without people in them."""
    rng = Random(f"world {seed}")
    world = runner.kind.make(rng, runner.empty, 1)
    while not world.tables:
        world = runner.kind.make(rng, runner.empty, 1)
    runner.kind.load(runner.empty, world, None)
    return world


def run(accepted: int, seed: int, stop: int = 20, kinds: tuple[str, ...] = ("rows", "units")) -> Report:
    """Queries from the seed on, until so many are accepted or so many differ."""
    report = Report()
    comparer, number = Comparer(report), 0
    runners = {kind: Runner(kind) for kind in kinds}
    listed = texts.corpus()
    while report.accepted < accepted and len(report.differences) < stop:
        world_seed = seed * 1_000_003 + number
        kind = kinds[number % len(kinds)]
        runner, number = runners[kind], number + 1
        world = made(runner, world_seed)
        session = fixed(privsql.connect(runner.empty, policy=world.policy))
        for place in range(OF_A_WORLD):
            if report.accepted >= accepted:
                break
            rng = Random(f"differential {world_seed} {place}")
            if rng.random() >= LONG:
                comparer.ask(comparer.session("short"), short.question(rng), "short", True)
            elif rng.random() < GENERATED:
                generator = runner.kind.generator(rng, world)
                comparer.ask(session, generator.query(), f"{kind} {world_seed} {place}", False, **generator.options)
            else:
                schema, sql = rng.choice(listed)
                comparer.ask(comparer.session(schema), texts.mutated(rng, sql), schema, True)
    for runner in runners.values():
        runner.close()
    comparer.reader.close()
    return report


if __name__ == "__main__":
    sys.exit(in_slices(run, Report(), lambda report: report.differences))
