"""A file of attack cases goes in; how each went on three neighbouring tables comes out, and three numbers.

D has about 2,000 patients whose values are canaries, D' is D without Bob, D'' is D with another diagnosis of Bob's.
An analyst who sees outcome, error text, plan, columns, types, number of rows or charge differ has learnt something of Bob.
"""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

import privsql
from privsql.planning.composed_plan import ComposedPlan
from tests.support.clock import clock_that_stands_still

SHARED = Path(__file__).resolve().parents[3] / "shared" / "attacks" / "attacks.jsonl"
OWN = Path(__file__).with_name("own.jsonl")
ROWS = 2_000
SECONDS = 10.0  # no text may keep the engine longer than this
CONTROL = "SELECT COUNT(*) FROM patients WHERE age > 40"
STATES = ("CA", "NY", "TX", "WA")
DIAGNOSES = ("flu", "hiv", "none", "asthma")
SCHEMA = """CREATE TABLE patients (
    user_id BIGINT PRIMARY KEY, name VARCHAR, age INTEGER, income DOUBLE, state VARCHAR, diagnosis VARCHAR, smoker BOOLEAN)"""
POLICY = {
    "neighbours": "add-remove",
    "budget": {"max_failures": 10**6},  # a fuse that blows would hide all failures after the third
    "tables": {
        "patients": {
            "unit": "user_id",
            "columns": {
                "age": {"range": [0, 120]},
                "income": {"range": [0, 200_000]},
                "state": {"values": list(STATES)},
                "diagnosis": {"values": list(DIAGNOSES)},
            },
        }
    },
}

# Held in another way than the shared file asks for, as safely: outcome, and why.
OTHERWISE = {
    "num-007": ("reject", "1 / income has no range where income may be 0; the refusal says what to declare"),
    "num-018": (
        "noisy",
        "correlation and slope come from noisy moments, which were refused when the file was written",
    ),
    "hid-018": ("exact", "SHOW lists names of tables, which the schema makes public; no row is read"),
    "rel-027": ("noisy", "two noisy numbers in a list: SQL above a release is post-processing"),
    "rel-036": ("noisy", "two releases, each with noise of its own and a share of epsilon"),
    "stb-013": ("noisy", "the noisy maximum is a constant of a second release; both are charged beforehand"),
    "rel-006": ("noisy", "MAX is chosen by the exponential mechanism over values, which came later"),
}


def patients() -> list[tuple[Any, ...]]:
    """D: every name and every income is found nowhere else, so that it is known again wherever it turns up."""
    rows: list[tuple[Any, ...]] = [
        (1, "Zyxalice", 34, 41234.5678, "CA", "flu", True),
        (2, "Bob", 45, 87654.3219, "NY", "hiv", True),
    ]
    for number in range(3, ROWS + 1):
        rows.append(
            (
                number,
                f"Canary{number * 7919}q",
                18 + number * 37 % 73,
                20_000 + number * 61.0337,
                STATES[number % 4] if number % 11 else None,
                DIAGNOSES[number * 3 % 4] if number % 13 else None,
                None if number % 17 == 0 else number % 3 == 0,
            )
        )
    rows += [
        (90_000_001, "900017", 71, 1.5, "ZQ", "xyzitis", False),
        (90_000_002, None, None, None, None, None, None),
    ]
    return rows


def tables() -> dict[str, list[tuple[Any, ...]]]:
    everyone = patients()
    return {
        "D": everyone,
        "D without Bob": [row for row in everyone if row[0] != 2],
        "D with Bob changed": [(*row[:5], "none", row[6]) if row[0] == 2 else row for row in everyone],
    }


def canaries() -> list[str]:
    """Texts that no answer and no error may hold; short or common values (Bob, NY, 45) would be found by chance."""
    return [str(value) for row in patients() for value in (row[1], row[3]) if value is not None and len(str(value)) > 4] + [
        "xyzitis", "90000001", "90000002",
    ]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """All that an analyst sees of one text, except the noise."""

    outcome: str  # reject, noisy
    words: str = ""
    plan: str = ""
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: int | None = None
    charge: tuple[float, float, int] = (0.0, 0.0, 0)  # epsilon, delta, lines in the history
    stored: bool = False  # what was paid for before, in the same words or in others

    def unlike(self, other: Seen) -> str:
        """In what the two differ, in one line."""
        names = [name for name in Seen.__dataclass_fields__ if getattr(self, name) != getattr(other, name)]
        return "; ".join(f"{name}: {getattr(self, name)!r} / {getattr(other, name)!r}" for name in names)


@dataclass
class Went:
    """One case: what was seen on D, and everything that is wrong with it."""

    id: str
    sql: str
    allowed: tuple[str, ...]
    outcome: str = ""
    words: str = ""
    differences: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    @property
    def is_control(self) -> bool:
        return self.id.startswith("ctl-")

    @property
    def as_expected(self) -> bool:
        return self.outcome in self.allowed

    @property
    def otherwise(self) -> str | None:
        """Why another outcome than the file's is as safe, if it is known to be."""
        outcome, why = OTHERWISE.get(self.id, ("", ""))
        return why if self.outcome == outcome and not self.as_expected else None

    @property
    def problems(self) -> list[str]:
        return [*self.differences, *(f"leak {leak}" for leak in self.leaks), *self.trouble]


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every line that is logged, and every warning."""
    handler, root = _Log(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield handler.lines
        handler.lines += [str(each.message) for each in warned]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _ask(session: privsql.Session, sql: str) -> tuple[Seen, str]:
    """Everything visible, and all text returned, to be searched for canaries."""
    before = _spent(session)
    try:
        planned = str(session.explain(sql, epsilon=1.0))
    except privsql.PrivsqlError as error:
        planned = str(error)
    if _spent(session) != before:
        return Seen("charged for a plan"), ""
    try:
        answer = session.query(sql, epsilon=1.0)
    except privsql.PrivsqlError as error:
        charge = _paid(session, before)
        # an engine error after the charge is neither a refusal nor an answer
        outcome = "reject" if not any(charge) and error.code != "engine-failed" else f"failed {error.code}"
        said = f"{error} {error!r} {error.args} {error.suggestion} {error.__cause__!r} {error.__context__!r}"
        return Seen(outcome, str(error), planned, charge=charge), said
    frame = answer.df()
    # pandas has another type where a noisy value is NULL: what is public are the types of SQL
    public = tuple(map(str, frame.columns)), tuple(answer.types), _rows(answer)
    seen = Seen("noisy", "", planned, *public, _paid(session, before), bool(answer.stored))
    if not answer.plan.measurements or any(each.epsilon <= 0 for each in answer.plan.measurements):
        seen = Seen("exact", words="an answer without noise")
    history = session.history()["released"].to_string()
    return seen, f"{frame.to_string()} {answer.plan} {json.dumps(answer.receipt, default=str)} {history}"


def _rows(answer: privsql.Answer) -> int | None:
    """The number of rows, unless it is noisy itself, as behind HAVING: then it says nothing of the exact one."""
    if isinstance(answer.plan, ComposedPlan):
        return None
    return len(answer) if len(answer) == answer.plan.cells or "WHERE" not in answer.plan.finishing else None


def _spent(session: privsql.Session) -> tuple[float, float, int]:
    spent = session.budget.spent
    return spent.epsilon, spent.delta, len(session.history())


def _paid(session: privsql.Session, before: tuple[float, float, int]) -> tuple[float, float, int]:
    epsilon, delta, lines = _spent(session)
    return epsilon - before[0], delta - before[1], lines - before[2]


def run(paths: Sequence[Path]) -> list[Went]:
    """Every case of the files, each in fresh sessions, on the three tables."""
    connections = {}
    for name, rows in tables().items():
        connections[name] = duckdb.connect(":memory:")
        connections[name].execute(SCHEMA)
        connections[name].executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    secrets = canaries()
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    results = [_judge(json.loads(line), connections, secrets) for line in lines]
    for connection in connections.values():
        connection.close()
    return results


@clock_that_stands_still()
def _judge(case: dict[str, Any], connections: dict[str, Any], secrets: list[str]) -> Went:
    texts = [case["sql"], *case.get("then", [])]
    expected = [case["expected"], *case.get("also_ok", [])]
    went = Went(
        case["id"], case["sql"], tuple(each if each in ("reject", "exact") else "noisy" for each in expected)
    )
    seen: dict[str, list[Seen]] = {}
    for table, connection in connections.items():
        session = privsql.connect(connection, policy=POLICY)
        seen[table] = []
        for text in texts:
            started, log = time.monotonic(), []
            try:
                with listening() as log:
                    looked, said = _ask(session, text)
            except Exception as error:  # noqa: BLE001 -- anything that is not a PrivsqlError is what we look for
                looked, said = Seen("crash", type(error).__name__), repr(error)
            if time.monotonic() - started > SECONDS:
                went.trouble.append(f"ran {time.monotonic() - started:.0f} s on {table}")
            heard = "\n".join([said, *log])
            went.leaks += [
                f"{secret!r} on {table}" for secret in secrets if secret in heard and secret not in text
            ]
            if looked.outcome == "reject" and any(looked.charge):
                went.trouble.append("refused, and charged")
            if looked.outcome == "noisy" and not looked.charge[0] and not (looked.stored and seen[table]):
                went.trouble.append("answered without a charge")
            seen[table].append(looked)
        try:
            after = _ask(session, CONTROL)[0].outcome
        except Exception as error:  # noqa: BLE001 -- what is left behind may break the next question
            after = f"crash {error!r}"
        if after != "noisy":
            went.trouble.append(f"the next control was not answered on {table}: {after}")
    first = seen["D"]
    went.outcome, went.words = first[0].outcome, first[0].words
    for table, looked_at in seen.items():
        pairs = zip(first, looked_at, strict=True)
        went.differences += [f"{table}: {one.unlike(other)}" for one, other in pairs if one != other]
    return went


def summary(results: list[Went]) -> str:
    """The three numbers, and the cases behind them."""
    attacks = [each for each in results if not each.is_control]
    controls = [each for each in results if each.is_control]
    clean = [each for each in attacks if not each.problems]
    as_asked, otherwise = (
        [each for each in clean if each.as_expected],
        [each for each in clean if each.otherwise],
    )
    answered = [each for each in controls if each.outcome == "noisy"]
    lines = [
        f"attacks held:       {len(as_asked) + len(otherwise)} of {len(attacks)}"
        + (f" ({len(otherwise)} of them otherwise than the file asks, as safely)" if otherwise else ""),
        f"controls answered:  {len(answered)} of {len(controls)}",
        f"differences:        {sum(len(each.differences) for each in results)}",
    ]
    lines += [f"  {each.id}: {each.outcome}: {each.otherwise}" for each in otherwise]
    for each in results:
        if each.problems or not (each.as_expected or each.otherwise):
            lines.append(
                f"{each.id}: {each.outcome}, allowed {'/'.join(each.allowed)}: {each.sql[:100]}  {each.words[:160]}"
            )
            lines += [f"    {problem[:600]}" for problem in each.problems]
    return "\n".join(lines)


def is_held(results: list[Went]) -> bool:
    """Whether every attack is held, every control answered, and nothing differs."""
    return all(not each.problems and (each.as_expected or each.otherwise) for each in results)
