"""The durable ledger: charges go into a file that all processes share, before any data is read, and stay
there.

A charge is one transaction, written to disk before anything runs. A crash may lose an answer, never a charge.
A charge counts as a failure until its query is known to have ended (fuse.py).
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from privsql.budget.amount import Loss
from privsql.budget.caps import Caps, Standing, held, policy_caps, prices_of, refuse_together, renewed
from privsql.budget.dataset import Dataset, dataset_of
from privsql.budget.fuse import CODE, refuse_full
from privsql.budget.ledger import Bill, Charge, events_of, same_neighbours
from privsql.budget.ledger_file.create import create
from privsql.budget.ledger_file.format import INSERT, Row, now, written
from privsql.budget.ledger_file.ledger_reader import LedgerReader, LedgerState, named
from privsql.budget.ledger_file.mounts import refuse_unsafe_place
from privsql.budget.ledger_file.store import Store
from privsql.errors import ArgumentError, BudgetError
from privsql.neighbours import Neighbours
from privsql.policy import Policy
from privsql.policy.checks import EVERYONE, analyst_of
from privsql.privacy.events import Event
from privsql.schema import Schema

_PAUSE = 0.005  # seconds between two checks whether a query of the same analyst has ended


class FileLedger(LedgerReader):
    """A ledger to spend from, under a policy that may tighten its caps but not raise them."""

    def __init__(self, store: Store, caps: Caps, dataset: Dataset) -> None:
        super().__init__(store)
        self._policy, self._dataset = caps, dataset
        # the newest entry this process knows, which must not disappear
        self._seen: tuple[int, str] | None = None
        # the first charge that runs under this very object, with its process
        self._running: set[tuple[int, int]] = set()
        state = self.state()
        dataset.same_as(state.rules.dataset)
        self._caps(state, "")

    @contextmanager
    def running(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> Iterator[list[Charge]]:
        """Charge these bills in one step, run the block, and record a failure if it raises.

        The charge is marked as unfinished in the file until the block ends. If that cannot be written, or no
        process is left to write it, the mark stays and counts as a failure.
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
                    append(self._store, self._state(analyst).last, "failure", analyst, Loss(), details)
        except BudgetError:
            warnings.warn(
                "the ledger could not record how this query ended, so it counts as a failure", stacklevel=2
            )

    def _charge_when_free(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """Charge, or wait: a running query could yet fail, so no more of one analyst's run at once than may
        fail.
        """
        while True:
            try:
                return self._charge(bills, neighbours, analyst)
            except BudgetError as refusal:
                if refusal.code != CODE or not self._may_finish(analyst):
                    raise
            time.sleep(_PAUSE)

    def _may_finish(self, analyst: str) -> bool:
        """Whether waiting may help: a query that still runs may end without a failure.

        This process knows which of its own run. One of another process is believed to run for as long as this
        one would wait for a lock; after that it counts as dead.
        """
        state = self.state(analyst)
        failures = state.failures(self._caps(state, analyst))
        if failures.blown or not failures.full:  # not full: a query has ended since the refusal
            return not failures.blown
        own = {number for process, number in self._running if process == os.getpid()}
        # a charge from the future was made before the clock was set back
        return any(run.number in own or abs(run.age()) < self._store.patience for run in state.unfinished)

    def _charge(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """Charge several queries in one transaction, an entry each: all of them, or none."""
        same_neighbours(self._dataset.neighbours, neighbours)
        analyst_of(analyst)
        charges = []
        with self._store.writing():
            self._still_there()
            state = self._state(analyst)
            self._dataset.same_as(state.rules.dataset)
            caps, last, own = self._caps(state, analyst), state.last, state.own
            refuse_full(state.failures(caps), analyst, self.path)
            prices = prices_of(
                caps, self._policy.accountant, Standing(analyst, last.total, own), events_of(bills)
            )
            tables = self._dataset.new_tables(state.rules.dataset)
            if tables:
                last = append(self._store, last, "tables", "", Loss(), {"tables": tables})
            for (released, question), price in zip(bills, prices, strict=True):
                own += price
                events = json.dumps([each.to_json() for each in released])
                last = append(self._store, last, "charge", analyst, price, events, question, own)
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
        """The hash of an entry; None if there is no such entry."""
        with self._store.reading():
            found = self._store.execute(
                "SELECT hash FROM entries WHERE number = ? AND kind = 'charge'", (number,)
            )
        return str(found[0][0]) if found else None

    def expect(self, queries: Sequence[Sequence[Event]], analyst: str) -> None:
        """Raise BudgetError if a call with these queries would be refused now; charge nothing."""
        with self._store.reading():
            state = self._state(analyst)
            self._dataset.same_as(state.rules.dataset)
            caps = self._caps(state, analyst)
            failures = state.failures(caps)
            if failures.blown:
                refuse_full(failures, analyst, self.path)
            standing = Standing(analyst, state.last.total, state.own)
            refuse_together(caps, self._policy.accountant, standing, queries)

    def rho(self, events: Sequence[Event]) -> float | None:
        """The price in rho, if the accountant counts rho; None if it counts epsilon."""
        return self._policy.accountant.rho(events)

    def _caps(self, state: LedgerState, analyst: str) -> Caps:
        return held(state.rules.opening, state.rules.caps, self._policy, analyst)

    def _still_there(self) -> None:
        """Raise BudgetError if the last entry seen is gone: an older copy has replaced the ledger."""
        if self._seen is not None:
            number, digest = self._seen
            if self._store.execute("SELECT hash FROM entries WHERE number = ?", (number,)) != [(digest,)]:
                raise BudgetError(
                    "budget-anchor",
                    "the ledger has lost entries: an older copy has replaced it",
                    "restore the newest copy; privsql ledger verify --anchor shows which one that is",
                )


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
    """Write one more entry, chained to the last; inside a transaction.

    `price`: what it costs, or adds to a cap. `own`: what the analyst has spent with it. `caps`: the new
    ones, where it changes them.
    """
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


def open_ledger(path: str | Path, policy: Policy, schema: Schema) -> FileLedger:
    """Open the ledger of that name for spending; create it with the policy's caps if there is none."""
    store = Store(named(path))
    refuse_unsafe_place(store.path)
    dataset, caps = dataset_of(policy, schema), policy_caps(policy)
    if not store.path.exists():
        create(store.path, dataset, caps)
    return FileLedger(store, caps, dataset)


def renew(path: str | Path, by: Loss, reason: str, scope: str = "dataset", analyst: str = "") -> Row:
    """Raise a cap for the data owner, and record it."""
    if not reason.strip():
        raise ArgumentError(
            "argument-shape", "a renewal needs a reason, because it changes a promise", "--reason ..."
        )
    if by.nano < 0 or by.atto_delta < 0 or by == Loss() or (scope == "query" and not by.nano):
        raise ArgumentError("argument-epsilon", "a renewal must add epsilon or delta to a cap", "--epsilon 5")
    if scope == "analyst" and analyst != EVERYONE:
        analyst_of(analyst)
    with _writing(path) as store:
        state = LedgerReader(store)._state("")
        caps = renewed(state.rules.caps, scope, analyst, by)
        return append(store, state.last, "renew", analyst, by, {"scope": scope}, reason, caps=caps)


def forgive(path: str | Path, reason: str = "", analyst: str = "") -> Row:
    """Renew the fuse for the data owner, for one analyst or for all: earlier failures no longer count."""
    if analyst:
        analyst_of(analyst)
    with _writing(path) as store:
        reader = LedgerReader(store)
        last = reader._state("").last
        left = [each for each in reader._runs() if analyst in ("", each.analyst)]
        row = append(store, last, "forgive", analyst, Loss(), {"unfinished": len(left)}, reason)
        for each in left:
            store.execute("DELETE FROM runs WHERE number = ?", (each.number,))
        return row


@contextmanager
def _writing(path: str | Path) -> Iterator[Store]:
    """The file of a ledger, locked for what the data owner writes."""
    store = Store(named(path))
    refuse_unsafe_place(store.path)
    try:
        with store.writing():
            yield store
    finally:
        store.close()
