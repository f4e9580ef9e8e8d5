"""Small ledgers, and stores that die or fail at a chosen step: what the ledger's tests share."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from privsql.budget.caps import policy_caps
from privsql.budget.dataset import dataset_of
from privsql.budget.ledger import Charge, Ledger
from privsql.budget.ledger_file.create import create
from privsql.budget.ledger_file.file_ledger import FileLedger
from privsql.budget.ledger_file.store import Store
from privsql.budget.released import Released
from privsql.errors import EngineError
from privsql.neighbours import Neighbours
from privsql.policy import Policy, load_policy
from privsql.privacy.events import Event, Keys, Pure
from privsql.schema import Schema, SchemaTable

VISITS = Schema((SchemaTable("visits", ()),))


def policy(epsilon: float | None = None, **budget: Any) -> Policy:
    given = budget if epsilon is None else {"epsilon": epsilon, **budget}
    return load_policy({"budget": given})


def releases(epsilon: Any, delta: Any = 0) -> list[Released]:
    """Something at this price, by addition."""
    price, lost = Fraction(str(epsilon)) if isinstance(epsilon, (int, float)) else epsilon, Fraction(delta)
    event: Event = Keys(price, lost, 2) if lost else Pure(price)
    return [Released("some noise", "COUNT(*)", event)]


def running(
    ledger: Ledger, epsilon: Any, delta: Any = Fraction(0), analyst: str = "ana", question: str = "q"
) -> AbstractContextManager[list[Charge]]:
    """Around what is run for one charge."""
    return ledger.running([(releases(epsilon, delta), question)], Neighbours.REPLACE_ONE, analyst)


def charge(
    ledger: Ledger,
    epsilon: Any,
    delta: Any = Fraction(0),
    analyst: str = "ana",
    question: str = "q",
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> None:
    """Of a query that is over at once, and went well."""
    with ledger.running([(releases(epsilon, delta), question)], neighbours, analyst):
        pass


def fail(
    ledger: Ledger, epsilon: Any = 0.01, analyst: str = "ana", error: type[BaseException] = EngineError
) -> None:
    """A query that is charged and fails."""
    with suppress(error), running(ledger, epsilon, analyst=analyst):
        raise error


def release(ledger: Ledger, *events: Event, analyst: str = "ana", question: str = "q") -> None:
    released = [Released("some noise", "COUNT(*)", each) for each in events]
    with ledger.running([(released, question)], Neighbours.REPLACE_ONE, analyst):
        pass


def opened(store: Store, declared: Policy, schema: Schema = VISITS) -> FileLedger:
    """As open_ledger does it, on a store of one's own."""
    dataset, caps = dataset_of(declared, schema), policy_caps(declared)
    if not store.path.exists():
        create(store.path, dataset, caps)
    return FileLedger(store, caps, dataset)


class StepStore(Store):
    """Calls back before and after each statement."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.step(sql)
        rows = super().execute(sql, parameters)
        self.step(f"after {sql}")
        return rows

    def step(self, name: str) -> None:
        """For a subclass."""


class DyingStore(StepStore):
    """Its process is killed at one step, as if by kill -9."""

    def __init__(self, path: Path, dies_at: int) -> None:
        self.left = dies_at
        super().__init__(path)

    def step(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class FailingStore(StepStore):
    """At one step SQLite fails, with the number of an error."""

    fails_at, error, steps = 0, sqlite3.SQLITE_IOERR, 0

    def step(self, name: str) -> None:
        self.steps += 1
        if self.steps == self.fails_at:
            failure = sqlite3.OperationalError("failed, for a test")
            failure.sqlite_errorcode = self.error
            raise failure


def copy(path: Path, target: Path) -> Path:
    """A ledger as it stands on the disk, with its log."""
    for end in ("", "-wal", "-shm"):
        if Path(f"{path}{end}").exists():
            Path(f"{target}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    return target
