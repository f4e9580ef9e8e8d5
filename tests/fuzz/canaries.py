"""python -m tests.fuzz.canaries [N [SEED [PROCESSES]]]: N calls on data whose every value can be known again; exit 1 if one comes out.

Two databases of one schema hold other people with other values, and nothing else in common. Whatever is asked, in whatever way: both
say the same words before the charge and charge the same, nothing but privsql's own errors comes out, and no value of a row is
in an error, its attributes, causes and notes, in a log line, a warning, on stdout or stderr, in a plan, a column's name, a text
of an answer, the history, or the bytes of the ledger file. Numbers of an answer have noise; they must not be a row's own.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import duckdb

import privsql
from privsql.connecting import _ledger
from privsql.planning.composed_plan import ComposedPlan
from tests.attacks.judge import listening
from tests.fuzz import short, texts
from tests.fuzz.differential import fixed
from tests.fuzz.in_slices import in_slices
from tests.fuzz.parsed_once import parsed_once
from tests.soundness.queries import Generator
from tests.soundness.worlds import Column, World
from tests.support.clock import clock_that_stands_still

CANARY = re.compile(r"zqc|7310593|7,310,593|7\.310593|7310-0")
OF_A_SESSION = (8,) * 19 + (
    80,
)  # calls: every later one looks through what is stored, so that long sessions are few
WRITTEN = 20  # of so many sessions one keeps its ledger in a file: writing takes longer than all else
SHORT = 0.95  # of all calls: what functions and operators make of a value is seen as well in a short question, in a third of the time
MUTATED = 0.3  # of the short ones: what is wrong with a text is said, and in that no value may be, either
MEMORY = Path("/dev/shm")  # where files are written without a disk
PRINTED = 4  # of so many plans one is printed: that takes longer than to make it
PEOPLE = 60
SCHEMA = """
    CREATE TABLE patients (
        user_id BIGINT PRIMARY KEY, id BIGINT, name VARCHAR, age INTEGER, income DOUBLE, state VARCHAR, diagnosis VARCHAR, smoker BOOLEAN,
        admitted DATE, seen TIMESTAMP, weight DECIMAL(18, 3), visits INTEGER, change INTEGER, note VARCHAR, tags VARCHAR[]);
    CREATE TABLE t (a INTEGER, b DOUBLE, c VARCHAR, d DATE, e BOOLEAN, f TIMESTAMP, g BIGINT, h DECIMAL(18, 3), l_1 VARCHAR[]);
    CREATE TABLE t2 AS FROM t;
    CREATE TABLE small (n INTEGER, x DOUBLE, w DECIMAL(18, 3), s VARCHAR, b BOOLEAN, d DATE, m TIMESTAMP);
    CREATE TABLE states (code VARCHAR, region VARCHAR, people BIGINT);
    INSERT INTO states VALUES ('CA', 'west', 39), ('NY', 'east', 20);
    CREATE TABLE pub AS FROM t;
"""
_SMALL = {"range": [0, 10]}
_DAYS = {"range": ["2024-01-01", "2024-01-12"]}
_T = {
    "a": _SMALL,
    "b": {"range": [0.0, 5.0]},
    "c": {"values": ["p", "q"]},
    "d": _DAYS,
    "h": {"range": [0, 100]},
}
_PATIENTS = {
    "age": {"range": [0, 120]}, "income": {"range": [0, 200_000]}, "state": {"values": ["CA", "NY"]}, "admitted": _DAYS,
    "diagnosis": {"values": ["flu", "hiv"]}, "weight": {"range": [0, 300]}, "visits": {"range": [1, 10]}, "tags": {"values": ["x", "y"]},
}  # fmt: skip
POLICY = {
    "neighbours": "add-remove",
    "budget": {"max_failures": 10**6},  # a fuse that blows would hide all failures after the third
    "tables": {
        "patients": {"unit": "user_id", "columns": _PATIENTS}, "t": {"columns": _T}, "t2": {"columns": _T},
        "small": short.POLICY["tables"]["t"],
        "pub": {"public": True}, "states": {"public": True},
    },
}  # fmt: skip
WORLD = World(
    [
        Column("a", "int", "INTEGER", ("0", "1", "3", "10"), ("0", "10"), _SMALL, bounded=True, keyable=True),
        Column("b", "num", "DOUBLE", ("0.0", "2.5"), ("0.0", "5.0"), _T["b"], bounded=True),
        Column("c", "text", "VARCHAR", ("'p'", "'q'", "'r'"), ("'p'", "'q'"), _T["c"], keyable=True),
        Column("d", "date", "DATE", ("DATE '2024-01-03'", "DATE '2024-01-12'"), ("DATE '2024-01-01'",) * 2, _DAYS, keyable=True),
        Column("e", "bool", "BOOLEAN", ("TRUE", "FALSE"), ("FALSE", "TRUE"), keyable=True, bounded=True),
        Column("f", "ts", "TIMESTAMP", ("TIMESTAMP '2024-01-01 08:00:00'",), ("TIMESTAMP '2024-01-01 08:00:00'",) * 2),
        Column("g", "int", "BIGINT", ("0", "7"), ("0", "7")),
        Column("h", "num", "DECIMAL(18,3)", ("0", "1.5"), ("0", "100"), _T["h"], bounded=True),
    ],
    POLICY, "add-remove", False,
)  # fmt: skip

# Ways in besides the text: each argument with values that are usual, odd and wrong.
_DIALECTS = [
    "duckdb",
    "postgres",
    "bigquery",
    "mysql",
    "snowflake",
    "spark",
    "tsql",
    "sqlite",
    "oracle",
    "klingon",
    "",
    5,
]
_DOORS: dict[str, list[Any]] = {
    "epsilon": [0.5, 2, 1e-6, 10_000, 0, -1, float("nan"), float("inf"), "1", None, True, 1e-300, 10**400, [1], 0.1 + 0.2],
    "delta": [1e-6, 1e-9, 1e-300, 0.999, 1, -1, "x", float("nan"), None],
    "within": [20, 0.5, 1e9, 1e-9, 0, -3, "20", float("inf")],
    "confidence": [0.5, 0.999, 0, 1, 95, "0.9", None],
    "dialect": _DIALECTS,
    "mechanism": ["laplace", "gaussian", "gumbel", "exponential", "", 3, "permute-and-flip"],
    "max_groups": [1, 2, 0, -1, 10**30, "1", 1.5],
    "max_rows": [1, 3, 0, True, None, "many"],
    "prepared": [True, False, "no"],
    "weights": [{"n": 2}, {"count_star()": 0.5}, {"": 1}, {"zz": -1}, {"n": float("nan")}, {"n": "x"}, {3: 4}, "n", [1], {"\u202e": 1}],
    "nonnegative": [True, "yes", 1],
    "consistent": [True, None],
    "fresh": [True, False],
    "epsilom": [1],
}  # fmt: skip


@dataclass
class Report:
    """What a run did."""

    asked: int = 0
    answered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        for name in ("asked", "answered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused += other.refused
        self.problems += other.problems

    def __str__(self) -> str:
        return f"{self.asked} calls, {self.answered} answered; {len(self.problems)} problems"


def rows(people: int, first: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """People none of whose values occurs twice, or anywhere else."""
    patients, plain = [], []
    for place in range(people):
        n = first + place
        number, text, day = 731_059_300 + n, f"zqc{n}x", f"7310-0{1 + n % 9}-{1 + n % 28:02}"
        fixed_point = f"{number}.{n % 1000:03}"
        patients.append((number, number, text, number, number + 0.25, text, text, n % 2 == 0, day, f"{day} 07:31:05", fixed_point,
                         number, -number, text, [text, f"{text}y"]))  # fmt: skip
        plain.append(
            (number, number + 0.5, text, day, n % 2 == 0, f"{day} 07:31:05", number, fixed_point, [text])
        )
    return patients, plain


def database(people: int, first: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    connection.execute(SCHEMA)
    patients, plain = rows(people, first)
    small = [(a, b, h, c, e, d, f) for a, b, c, d, e, f, _, h, _ in plain]
    for table, listed in (("patients", patients), ("t", plain), ("t2", plain[:5]), ("small", small)):
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(listed[0]))})", listed)
    return connection


@dataclass(frozen=True)
class Heard:
    """What one call gave: what must be the same for all data, whether it was answered, and all text that came with it."""

    outcome: str
    charge: tuple[float, float]
    answered: bool
    text: str
    numbers: tuple[float, ...] = ()


class Ear:
    """All that is said in any way but by an answer or an error: `heard` says what, since it was last asked."""

    def __init__(self, said: io.StringIO, log: list[str], warned: list[Any]) -> None:
        self._said, self._log, self._warned = said, log, warned

    def heard(self) -> str:
        if not (self._log or self._warned or self._said.tell()):
            return ""
        text = "\n".join([self._said.getvalue(), *self._log, *(str(each.message) for each in self._warned)])
        self._said.seek(0)
        self._said.truncate()
        self._log.clear()
        self._warned.clear()
        return text


@contextlib.contextmanager
def ears() -> Iterator[Ear]:
    """Open for many calls: to open them takes longer than a short one."""
    said = io.StringIO()
    kept = warnings.catch_warnings(record=True)
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        listening() as log,
        kept as warned,
    ):
        warnings.simplefilter("always")
        yield Ear(said, log, warned)


def told(error: BaseException) -> str:
    """All texts of an error and of those behind it: what a traceback shows but for lines of source, and what is in its attributes."""
    texts_of, pending, seen = [], [error], set()
    while pending:
        each = pending.pop()
        if id(each) not in seen:
            seen.add(id(each))
            texts_of.append(f"{each} {each!r} {each.args!r} {vars(each)!r}")
            pending += [other for other in (each.__cause__, each.__context__) if other is not None]
    return "\n".join(texts_of)


def call(session: privsql.Session, sql: Any, options: dict[str, Any], how: str, ear: Ear) -> Heard:
    before, numbers, answered = _spent(session), (), False
    printed = crc32(repr(sql).encode()) % PRINTED == 0
    try:
        if how == "explain":
            plan = session.explain(sql, **options)
            composed = isinstance(plan, ComposedPlan)
            own = plan.to_dict() if composed else f"{plan.statements} {plan.cells}"
            outcome = f"{own} {plan.measurements} {plan.notes}"
            text = outcome
            if printed:
                outcome += f"{plan}"
                text = f"{outcome} {json.dumps(plan.to_dict(), default=str)}"
        elif how == "audit":
            found = session.audit(sql, releases=300, tries=10, **options)
            outcome, text = f"audited {found.bounds}", f"{found} {json.dumps(found.to_dict(), default=str)}"
        else:
            answers = session.batch(sql, **options) if how == "batch" else [session.query(sql, **options)]
            answered, outcome, text = True, "", ""
            for answer in answers:
                frame = answer.df()
                # who is not declared comes out by chance alone, so that with a delta the number of rows is noisy, too
                told_of = f"answered {list(frame.columns)} {answer.plan if printed else ''}"
                plain = isinstance(answer.plan, ComposedPlan) or answer.plan.space.open
                outcome += "answered" if plain else told_of
                text += f"{told_of} {json.dumps(answer.receipt, default=str)}"
                for name in frame.columns:
                    if frame[name].dtype.kind in "iuf":
                        numbers += tuple(frame[name].tolist())
                    else:
                        text += f" {frame[name].tolist()}"
    except privsql.PrivsqlError as error:
        outcome, text = f"{type(error).__name__} {error}", told(error)
    except Exception as error:  # noqa: BLE001 -- anything but privsql's own tree is what we look for
        outcome, text = (
            f"CRASH {type(error).__name__}",
            told(error) + "".join(traceback.format_exception(error)),
        )
    after = _spent(session)
    return Heard(
        outcome, (after[0] - before[0], after[1] - before[1]), answered, f"{text}\n{ear.heard()}", numbers
    )


def _spent(session: privsql.Session) -> tuple[float, float]:
    spent = session._pipeline.ledger.budget.spent
    return spent.epsilon, spent.delta


def way(
    rng: Random, sql: Any, options: dict[str, Any], listed: list[tuple[str, str]]
) -> tuple[str, Any, dict[str, Any]]:
    """By which method it is asked, and with what; a batch is of some texts, for a price alone."""
    roll = rng.random()
    if roll < 0.7:  # takes a fifth of the time: nothing is run
        return "explain", sql, options
    if roll < 0.71:
        some = [sql, *(rng.choice(listed)[1] for _ in range(rng.randrange(3)))]
        return (
            "batch",
            rng.choice([some, some, some, sql]),
            {key: options[key] for key in ("epsilon", "delta", "dialect", "epsilom") if key in options},
        )
    if roll < 0.7101:  # takes seconds
        return "audit", sql, options
    return "query", sql, options


def question(rng: Random, listed: list[tuple[str, str]]) -> tuple[Any, dict[str, Any]]:
    """A text and the arguments of its call."""
    roll = rng.random()
    if rng.random() < SHORT:
        sql: Any = re.sub(r"\bt\b", "small", short.question(rng))
        if rng.random() < MUTATED:
            sql = texts.mutated(rng, sql)
    elif roll < 0.35:
        sql = Generator(rng, WORLD).query()
    elif roll < 0.55:
        sql = rng.choice(listed)[1]
    elif roll < 0.995:
        sql = texts.mutated(rng, rng.choice(listed)[1])
    else:
        sql = rng.choice([None, 7, b"SELECT 1", "", "\x00", "\ud800", ["SELECT 1"], "SELECT " * 3000])
    options: dict[str, Any] = {"epsilon": 1.0}
    if rng.random() < 0.3:
        for name in rng.sample(sorted(_DOORS), rng.choice([1, 1, 2, 3])):
            options[name] = rng.choice(_DOORS[name])
        if "within" in options and rng.random() < 0.8:
            del options["epsilon"]
    return sql, options


@lru_cache(maxsize=1)
def connections() -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    """The two databases, which all slices of a process share."""
    return database(PEOPLE, 0), database(PEOPLE // 2, 500)


def run(calls: int, seed: int, stop: int = 20) -> Report:
    """So many calls, each on both databases."""
    report, number = Report(), 0
    own = {
        float(n)
        for first in (0, 500)
        for row in (r for rs in rows(PEOPLE, first) for r in rs)
        for n in row
        if type(n) in (int, float)
    }
    listed = [each for each in texts.corpus() if each[0] in ("patients", "patients_unit", "bare", "attacked")]
    opened = [fixed(privsql.connect(each, policy=POLICY)) for each in connections()]
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None) as folder,
        ears() as ear,
        parsed_once(),
        clock_that_stands_still(),
    ):
        while report.asked < calls and len(report.problems) < stop:
            number += 1
            written = (seed + number) % WRITTEN == 0
            ledgers = [Path(folder) / f"{number}-{side}.ledger" if written else None for side in "ab"]
            sessions = [anew(each, path) for each, path in zip(opened, ledgers, strict=True)]
            for place in range(min(OF_A_SESSION[number % len(OF_A_SESSION)], calls - report.asked)):
                rng = Random(f"canary {seed} {number} {place}")
                sql, options = question(rng, listed)
                _both(sessions, *way(rng, sql, options, listed), own, report, f"{seed} {number} {place}", ear)
            for session, path in zip(sessions, ledgers, strict=True):
                if CANARY.search(str(session.history().to_numpy().tolist())):
                    report.problems.append(f"HISTORY {seed} {number}")
                session._pipeline.ledger.close()
                for each in path.parent.glob(f"{path.name}*") if path else ():
                    kept = each.read_bytes()
                    if CANARY.search(kept.decode("latin-1")) or CANARY.search(
                        kept.decode("utf-16-le", "replace")
                    ):
                        report.problems.append(f"LEDGER {seed} {number} {each.suffix}")
                    each.unlink()
    return report


def anew(session: privsql.Session, ledger: Path | None) -> privsql.Session:
    """Another session on the same engine, which has read the schema and made its twin: with a budget and a store of its own."""
    budget = _ledger(ledger, session._pipeline.policy, session._pipeline.engine.schema())
    return privsql.Session(
        session._pipeline.engine, session._pipeline.policy, budget, session._pipeline.analyst
    )


def _both(
    sessions: list[privsql.Session],
    how: str,
    sql: Any,
    options: dict[str, Any],
    own: set[float],
    report: Report,
    where: str,
    ear: Ear,
) -> None:
    report.asked += 1
    heard = [call(session, sql, options, how, ear) for session in sessions]
    problems = []
    for each in heard:
        if found := CANARY.search(each.text):
            start = max(0, found.start() - 100)
            problems.append(f"CANARY ...{each.text[start : found.end() + 60]}...")
        if each.outcome.startswith("CRASH"):
            problems.append(f"{each.outcome}\n{each.text[-1500:]}")
        if own & set(each.numbers):
            problems.append(f"A ROW'S OWN NUMBER {own & set(each.numbers)}")
        if how in ("explain", "audit") and any(each.charge):
            problems.append(f"{how.upper()} WAS CHARGED")
        if "engine-failed" in each.outcome:  # on both alike today: with other rows it may not fail
            problems.append("FAILED AFTER THE CHARGE")
        elif not each.answered and any(each.charge):
            problems.append(f"REFUSED AND CHARGED {each.charge} {each.outcome}")
    one, two = heard
    if one.charge != two.charge or one.outcome != two.outcome:
        problems.append(f"DIFFER {one.charge} {one.outcome[:400]}\n    AND {two.charge} {two.outcome[:400]}")
    report.answered += one.answered
    code = re.search(r"\[([a-z-]+)\]", one.outcome)
    if not one.answered and code:
        report.refused[code[1]] += 1
    report.problems += [f"{each}\n  {where} {how} {options}: {sql!r}" for each in problems]


if __name__ == "__main__":
    sys.exit(in_slices(run, Report(), lambda report: report.problems))
