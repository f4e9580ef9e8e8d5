"""A file of attack cases goes in; how each went on three neighbouring tables comes out, and three numbers.

    python tests/attacks.py ../shared/attacks/attacks.jsonl

D has about 2,000 patients whose values are canaries, D' is D without Bob, D'' is D with another diagnosis of Bob's.
An analyst who sees outcome, error text, columns, types, number of rows or charge differ has learnt something of Bob.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

import privsql

ATTACKS = Path(__file__).resolve().parents[2] / "shared" / "attacks" / "attacks.jsonl"
ROWS = 2_000
SECONDS = 10.0  # no text may keep the engine longer than this
CONTROL = "SELECT COUNT(*) FROM patients WHERE age > 40"
STATES = ("CA", "NY", "TX", "WA")
DIAGNOSES = ("flu", "hiv", "none", "asthma")
SCHEMA = """CREATE TABLE patients (
    user_id BIGINT PRIMARY KEY, name VARCHAR, age INTEGER, income DOUBLE, state VARCHAR, diagnosis VARCHAR, smoker BOOLEAN)"""
POLICY = {
    "neighbours": "add-remove",
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
    rows += [(90_000_001, "900017", 71, 1.5, "ZQ", "xyzitis", False), (90_000_002, None, None, None, None, None, None)]
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
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: int | None = None
    charge: float = 0.0


@dataclass
class Went:
    """One case: what was seen on D, and everything that is wrong with it."""

    id: str
    sql: str
    allowed: tuple[str, ...]
    outcome: str
    words: str
    differences: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    @property
    def is_control(self) -> bool:
        return self.id.startswith("ctl-")

    @property
    def as_expected(self) -> bool:
        return self.outcome in self.allowed


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def _listening() -> Iterator[list[str]]:
    handler, root = _Log(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _ask(session: privsql.Session, sql: str) -> tuple[Seen, str]:
    """What is seen, and all text that came back, to be searched for canaries."""
    before = session.budget.spent.epsilon
    try:
        answer = session.query(sql, epsilon=1.0)
    except privsql.PrivsqlError as error:
        charge = session.budget.spent.epsilon - before
        # an engine error after the charge is neither a refusal nor an answer
        outcome = "reject" if charge == 0 and error.code != "engine-failed" else f"failed {error.code}"
        return Seen(outcome, str(error), charge=charge), f"{error} {error.suggestion} {error.__context__!r}"
    frame = answer.df()
    # behind HAVING and the like the number of rows is noisy itself, and says nothing of the exact one
    rows = len(frame) if len(frame) == answer.plan.cells or "WHERE" not in answer.plan.finishing else None
    seen = Seen(
        "noisy", "", tuple(map(str, frame.columns)), tuple(map(str, frame.dtypes)), rows, session.budget.spent.epsilon - before
    )
    if not answer.plan.measurements or any(each.epsilon <= 0 for each in answer.plan.measurements):
        seen = Seen("exact", words="an answer without noise")
    return seen, f"{frame.to_string()} {answer.plan} {json.dumps(answer.receipt, default=str)}"


def run(path: Path = ATTACKS) -> list[Went]:
    """Every case of the file, each in fresh sessions, on the three tables."""
    connections = {}
    for name, rows in tables().items():
        connections[name] = duckdb.connect(":memory:")
        connections[name].execute(SCHEMA)
        connections[name].executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    secrets = canaries()
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [_judge(case, connections, secrets) for case in cases]


def _judge(case: dict[str, Any], connections: dict[str, Any], secrets: list[str]) -> Went:
    texts = [case["sql"], *case.get("then", [])]
    expected = [case["expected"], *case.get("also_ok", [])]
    allowed = tuple("reject" if each == "reject" else "noisy" for each in expected)
    seen: dict[str, list[Seen]] = {}
    went = Went(case["id"], case["sql"], allowed, "", "")
    for table, connection in connections.items():
        session = privsql.connect(connection, policy=POLICY)
        seen[table] = []
        for text in texts:
            started = time.monotonic()
            try:
                with _listening() as log:
                    looked, said = _ask(session, text)
            except Exception as error:  # noqa: BLE001 -- anything that is not a PrivsqlError is what we look for
                looked, said, log = Seen("crash", f"{type(error).__name__}"), repr(error), []
            if time.monotonic() - started > SECONDS:
                went.trouble.append(f"ran {time.monotonic() - started:.0f} s on {table}")
            for secret in secrets:
                if secret not in text and any(secret in each for each in (said, *log)):
                    went.leaks.append(f"{secret!r} on {table}")
            if looked.outcome == "reject" and looked.charge:
                went.trouble.append("refused, and charged")
            if looked.outcome == "noisy" and not looked.charge and texts.count(text) == 1:
                went.trouble.append("answered without a charge")
            seen[table].append(looked)
        after, _ = _ask(session, CONTROL)
        if after.outcome != "noisy":
            went.trouble.append(f"the next control was not answered on {table}")
    first = seen["D"]
    went.outcome, went.words = first[0].outcome, first[0].words
    for table, looked_at in seen.items():
        went.differences += [f"{table}: {one} / {other}" for one, other in zip(first, looked_at, strict=True) if one != other]
    return went


def summary(results: list[Went]) -> str:
    """The three numbers, and what is behind them."""
    attacks = [each for each in results if not each.is_control]
    controls = [each for each in results if each.is_control]
    held = [each for each in attacks if each.as_expected and not each.differences and not each.leaks and not each.trouble]
    answered = [each for each in controls if each.outcome == "noisy"]
    lines = [
        f"attacks held:       {len(held)} of {len(attacks)}",
        f"controls answered:  {len(answered)} of {len(controls)}",
        f"differences:        {sum(len(each.differences) for each in results)}",
    ]
    for each in results:
        problems = [*each.differences, *(f"leak {leak}" for leak in each.leaks), *each.trouble]
        if not each.as_expected or problems:
            lines.append(f"{each.id}: {each.outcome}, allowed {'/'.join(each.allowed)}: {each.sql[:100]}  {each.words[:160]}")
            lines += [f"    {problem}" for problem in problems]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(run(Path(sys.argv[1]) if len(sys.argv) > 1 else ATTACKS)))
