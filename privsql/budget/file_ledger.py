"""The durable ledger: charges go into a file that all processes share, before any data is read, and stay
there.

A charge is one transaction that is on the disk before anything is run. A crash may lose an answer, never a
charge; and what is charged counts as a failure until it is known to be over (fuse.py).
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from privsql.budget.amount import Loss
from privsql.budget.caps import Caps, held, policy_caps, prices_of, refuse_together, renewed
from privsql.budget.create import create
from privsql.budget.dataset import Dataset, dataset_of
from privsql.budget.format import INSERT, OWNERS, SELECT, Row, now, row_of, written
from privsql.budget.fuse import CODE, Failures, refuse_full
from privsql.budget.ledger import Bill, Budget, Charge, Entry, budget_of, events_of, same_neighbours, share_of
from privsql.budget.mounts import refuse_unsafe_place
from privsql.budget.released import Released
from privsql.budget.store import CORRUPT, Store
from privsql.errors import ArgumentError, BudgetError
from privsql.policy import EVERYONE, Neighbours, Policy, analyst_of
from privsql.privacy.events import Event
from privsql.schema import Schema

_PAUSE = 0.005  # seconds between two looks whether a query of the same analyst is over


@dataclass(frozen=True)
class Rules:
    """What the owner's entries say: the dataset, the caps at the opening, and the caps after all renewals."""

    dataset: Dataset
    opening: Caps
    caps: Caps
    # up to which entry failures are, by analyst; "": of all
    forgiven: Mapping[str, int] = field(default_factory=dict)

    def counts_from(self, analyst: str) -> int:
        """The entry after which failures of an analyst count."""
        return max(self.forgiven.get("", 0), self.forgiven.get(analyst, 0))


def rules_of(rows: Sequence[Row]) -> Rules:
    """The entries that are not charges, in order, become what holds after them."""
    try:
        first, *later = rows
        details = first.read
        dataset = Dataset(details["dataset"], Neighbours(details["neighbours"]), details["tables"])
        rules = Rules(dataset, Caps.of_json(details["caps"]), Caps.of_json(details["caps"]))
        for row in later:
            rules = followed(rules, row)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise BudgetError(
            "budget-corrupt", "the ledger does not say what it is for", "privsql ledger verify says more"
        ) from None
    return rules


def followed(rules: Rules, row: Row) -> Rules:
    """What holds after one more entry of the owner's."""
    match row.kind:
        case "tables":
            return replace(
                rules, dataset=replace(rules.dataset, tables={**rules.dataset.tables, **row.read["tables"]})
            )
        case "renew":
            return replace(rules, caps=renewed(rules.caps, row.read["scope"], row.analyst, row.loss))
        case "forgive":
            return replace(rules, forgiven={**rules.forgiven, row.analyst: row.number})
        case _:
            return rules


@dataclass(frozen=True)
class Run:
    """What was charged at one time, and is not known to be over: by the number of its first charge."""

    number: int
    analyst: str
    when: str

    def age(self) -> float:
        """In seconds."""
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.when)).total_seconds()


@dataclass(frozen=True)
class State:
    """The ledger as one analyst finds it."""

    rules: Rules
    last: Row
    own: Loss
    failed: int
    unfinished: Sequence[Run]

    def failures(self, caps: Caps) -> Failures:
        return Failures(self.failed, len(self.unfinished), caps.most_failures)


class LedgerReader:
    """A ledger to look at: it has no way to spend."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rows(self) -> list[Row]:
        """Every entry, the oldest first."""
        with self._store.reading():
            return [row_of(each) for each in self._store.execute(f"{SELECT} ORDER BY number")]

    def state(self, analyst: str = "") -> State:
        with self._store.reading():
            return self._state(analyst)

    @property
    def budget(self) -> Budget:
        """Of the dataset."""
        state = self.state()
        return budget_of(self._caps(state, ""), state.last.total)

    def share(self, analyst: str) -> Budget | None:
        """Of one analyst; None where analysts have no caps."""
        state = self.state(analyst)
        return share_of(self._caps(state, analyst), analyst, state.own)

    def failures(self, analyst: str) -> Failures:
        """Of one analyst, since the fuse was renewed."""
        state = self.state(analyst)
        return state.failures(self._caps(state, analyst))

    def runs(self) -> list[Run]:
        """What is charged and not known to be over."""
        with self._store.reading():
            return self._runs()

    def entries(self) -> list[Entry]:
        """All charges, the oldest first."""
        rows = self.rows()
        unit = rules_of(rows[:1]).caps.accountant.unit
        failed = {number for row in rows if row.kind == "failure" for number in row.read["charges"]}
        return [
            replace(entry_of(row, unit), failed=row.number in failed) for row in rows if row.kind == "charge"
        ]

    def close(self) -> None:
        """Let go of the file; used again, it is opened again."""
        self._store.close()

    def _caps(self, state: State, analyst: str) -> Caps:
        return state.rules.caps

    def _state(self, analyst: str) -> State:
        """Inside a transaction: the few entries that say how things stand, each as it was written."""
        run = self._store.execute
        last = [row_of(each) for each in run(f"{SELECT} ORDER BY number DESC LIMIT 1")]
        owners = [row_of(each) for each in run(f"{SELECT} WHERE {OWNERS} ORDER BY number")]
        own = run(f"{SELECT} WHERE kind = 'charge' AND analyst = ? ORDER BY number DESC LIMIT 1", (analyst,))
        if not last or not owners or owners[0].number != 1:
            raise BudgetError(*CORRUPT)
        rules = rules_of(owners)
        since = rules.counts_from(analyst)
        failed = run(f"{SELECT} WHERE kind = 'failure' AND analyst = ? AND number > ?", (analyst, since))
        unfinished = [each for each in self._runs() if each.analyst == analyst and each.number > since]
        spent = row_of(own[0]).share if own else Loss()
        return State(rules, last[0], spent, len([row_of(each) for each in failed]), unfinished)

    def _runs(self) -> list[Run]:
        """Inside a transaction."""
        if not self._store.is_new_format():
            return []
        found = self._store.execute(
            "SELECT number, runs.analyst, time FROM runs JOIN entries USING (number) ORDER BY number"
        )
        return [Run(*each) for each in found]


class FileLedger(LedgerReader):
    """A ledger to spend from, under a policy that may tighten its caps and cannot raise them."""

    def __init__(self, store: Store, caps: Caps, dataset: Dataset) -> None:
        super().__init__(store)
        self._policy, self._dataset = caps, dataset
        # the newest entry this process knows of: it must not go away
        self._seen: tuple[int, str] | None = None
        # what runs under this very object: its process, and its first charge
        self._running: set[tuple[int, int]] = set()
        state = self.state()
        dataset.same_as(state.rules.dataset)
        self._caps(state, "")

    @contextmanager
    def running(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> Iterator[list[Charge]]:
        """Around all that is run for these bills: charged before it, in one step, and recorded as a failure
        if it raises.

        What is charged stands in the file as not finished, and is taken out when it is over. If that cannot
        be written, or nobody is left to write it, it stays there, and counts as a failure.
        """
        charges = self._charge_when_free(bills, neighbours, analyst)
        run, failed = (os.getpid(), charges[0].number), True
        self._running.add(run)
        try:
            yield charges
            failed = False
        finally:
            self._running.discard(run)
            self._settle(charges, analyst, failed)

    def _settle(self, charges: Sequence[Charge], analyst: str, failed: bool) -> None:
        try:
            with self._store.writing() if failed else self._store.noting():
                self._store.execute("DELETE FROM runs WHERE number = ?", (charges[0].number,))
                if failed:
                    details = {"charges": [each.number for each in charges]}
                    self._append(self._state(analyst).last, "failure", analyst, Loss(), details)
        except BudgetError:
            warnings.warn(
                "the ledger could not note how this query ended: it counts as a failure", stacklevel=2
            )

    def _charge_when_free(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """More queries of an analyst at once than may fail wait for each other, as long as they can be seen
        to run.
        """
        while True:
            try:
                return self._charge(bills, neighbours, analyst)
            except BudgetError as refusal:
                if refusal.code != CODE or not self._may_finish(analyst):
                    raise
            time.sleep(_PAUSE)

    def _may_finish(self, analyst: str) -> bool:
        """Whether it is worth waiting: others' queries are given as long as others' locks are."""
        state = self.state(analyst)
        failures = state.failures(self._caps(state, analyst))
        if failures.blown or not failures.full:  # not full: one is over since the refusal
            return not failures.blown
        own = {number for process, number in self._running if process == os.getpid()}
        # a charge that lies ahead of the clock was made before the clock was set back
        return any(run.number in own or abs(run.age()) < self._store.patience for run in state.unfinished)

    def _charge(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """Several questions in one transaction, an entry each: all of them are charged, or none."""
        same_neighbours(self._dataset.neighbours, neighbours)
        analyst_of(analyst)
        charges = []
        with self._store.writing():
            self._still_there()
            state = self._state(analyst)
            self._dataset.same_as(state.rules.dataset)
            caps, last, own = self._caps(state, analyst), state.last, state.own
            refuse_full(state.failures(caps), analyst, self.path)
            prices = prices_of(caps, self._policy.accountant, analyst, last.total, own, events_of(bills))
            tables = self._dataset.new_tables(state.rules.dataset)
            if tables:
                last = self._append(last, "tables", "", Loss(), {"tables": tables})
            for (released, question), price in zip(bills, prices, strict=True):
                own += price
                events = json.dumps([each.to_json() for each in released])
                last = self._append(last, "charge", analyst, price, events, question, own)
                charges.append(Charge(last.number, last.time, last.hash))
            self._store.execute(
                "INSERT INTO runs VALUES (?, ?, ?)", (charges[0].number, len(charges), analyst)
            )
        self._seen = (last.number, last.hash)
        return charges

    @property
    def path(self) -> Path:
        return self._store.path

    def charged(self, number: int) -> str | None:
        """The hash of an entry; None where there is none."""
        with self._store.reading():
            found = self._store.execute(
                "SELECT hash FROM entries WHERE number = ? AND kind = 'charge'", (number,)
            )
        return str(found[0][0]) if found else None

    def expect(self, queries: Sequence[Sequence[Event]], analyst: str) -> None:
        """Raises BudgetError where a call that takes these queries would be refused now; charges nothing."""
        with self._store.reading():
            state = self._state(analyst)
            self._dataset.same_as(state.rules.dataset)
            caps = self._caps(state, analyst)
            failures = state.failures(caps)
            if failures.blown:
                refuse_full(failures, analyst, self.path)
            refuse_together(caps, self._policy.accountant, analyst, state.last.total, state.own, queries)

    def rho(self, events: Sequence[Event]) -> float | None:
        """What they are charged as, where rho is counted; None where epsilon is."""
        return self._policy.accountant.rho(events)

    def _caps(self, state: State, analyst: str) -> Caps:
        return held(state.rules.opening, state.rules.caps, self._policy, analyst)

    def _still_there(self) -> None:
        """An older copy that was put in the ledger's place is noticed by those who charged after it was
        made.
        """
        if self._seen is not None:
            number, digest = self._seen
            if self._store.execute("SELECT hash FROM entries WHERE number = ?", (number,)) != [(digest,)]:
                raise BudgetError(
                    "budget-anchor",
                    "the ledger has lost entries that it had: an older copy was put in its place",
                    "restore the newest copy; privsql ledger verify --anchor shows which it is",
                )

    def _append(
        self,
        last: Row,
        kind: str,
        analyst: str,
        price: Loss,
        details: Any,
        question: str = "",
        own: Loss | None = None,
    ) -> Row:
        return append(self._store, last, kind, analyst, price, details, question, own)


def append(
    store: Store,
    last: Row,
    kind: str,
    analyst: str,
    price: Loss,
    details: Any,
    question: str = "",
    own: Loss | None = None,
    caps: Caps | None = None,
) -> Row:
    """Inside a transaction: one more entry, chained to the last."""
    total = last.total + price if kind == "charge" else last.total
    own = own or Loss()
    limit = caps.limits("").dataset if caps else None
    cap = (limit.nano, limit.atto_delta) if limit else (last.cap_epsilon, last.cap_delta)
    text = details if isinstance(details, str) else json.dumps(details)
    row = Row(
        last.number + 1,
        kind,
        now(),
        written(analyst),
        price.nano,
        price.atto_delta,
        total.nano,
        total.atto_delta,
        own.nano,
        own.atto_delta,
        *cap,
        written(question),
        text,
        last.hash,
    )
    row = replace(row, hash=row.digest())
    store.keep_format()
    store.execute(INSERT, row.values())
    return row


def entry_of(row: Row, unit: str) -> Entry:
    return Entry(
        row.when,
        row.analyst,
        row.question,
        row.loss,
        tuple(Released.of_json(each) for each in row.read),
        unit,
    )


def open_ledger(path: str | Path, policy: Policy, schema: Schema) -> FileLedger:
    """The ledger of that name to spend from; a new one, with the caps of the policy, where there is none."""
    store = Store(named(path))
    refuse_unsafe_place(store.path)
    dataset, caps = dataset_of(policy, schema), policy_caps(policy)
    if not store.path.exists():
        create(store.path, dataset, caps)
    return FileLedger(store, caps, dataset)


def open_reader(path: str | Path) -> LedgerReader:
    """The ledger of that name, to look at."""
    return LedgerReader(Store(named(path), read_only=True))


def named(path: object) -> Path:
    if not isinstance(path, (str, Path)) or not str(path) or "\0" in str(path):
        raise ArgumentError("argument-shape", "ledger must be the path of a file", 'ledger="clinic.ledger"')
    return Path(path)


def renew(path: str | Path, by: Loss, reason: str, scope: str = "dataset", analyst: str = "") -> Row:
    """The owner raises a cap, for the record."""
    if not reason.strip():
        raise ArgumentError(
            "argument-shape", "a renewal needs a reason: it is a promise that is changed", "--reason ..."
        )
    if by.nano < 0 or by.atto_delta < 0 or by == Loss() or (scope == "query" and not by.nano):
        raise ArgumentError(
            "argument-epsilon", "a renewal adds to a cap: epsilon, delta or both", "--epsilon 5"
        )
    if scope == "analyst" and analyst != EVERYONE:
        analyst_of(analyst)
    store = Store(named(path))
    refuse_unsafe_place(store.path)
    try:
        with store.writing():
            state = LedgerReader(store)._state("")
            caps = renewed(state.rules.caps, scope, analyst, by)
            return append(store, state.last, "renew", analyst, by, {"scope": scope}, reason, caps=caps)
    finally:
        store.close()


def forgive(path: str | Path, reason: str = "", analyst: str = "") -> Row:
    """The owner renews the fuse, of one analyst or of all: failures so far no longer count."""
    if analyst:
        analyst_of(analyst)
    store = Store(named(path))
    refuse_unsafe_place(store.path)
    try:
        with store.writing():
            reader = LedgerReader(store)
            last, left = (
                reader._state("").last,
                [each for each in reader._runs() if analyst in ("", each.analyst)],
            )
            row = append(store, last, "forgive", analyst, Loss(), {"unfinished": len(left)}, reason)
            for each in left:
                store.execute("DELETE FROM runs WHERE number = ?", (each.number,))
            return row
    finally:
        store.close()
