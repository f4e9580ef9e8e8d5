"""The durable ledger: charges go into a file that all processes share, before any data is read, and stay there.

A charge is one transaction that is on the disk before charge() returns. A crash may lose an answer, never a charge.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privsql.budget.amount import Loss
from privsql.budget.caps import Caps, held, policy_caps, refuse_over, renewed
from privsql.budget.create import create
from privsql.budget.dataset import Dataset, dataset_of
from privsql.budget.format import INSERT, SELECT, Row, now, row_of, written
from privsql.budget.ledger import Bill, Budget, Charge, Entry, budget_of, same_neighbours, share_of
from privsql.budget.mounts import refuse_network
from privsql.budget.released import Released
from privsql.budget.store import CORRUPT, Store
from privsql.errors import ArgumentError, BudgetError
from privsql.policy import EVERYONE, Neighbours, Policy, analyst_of
from privsql.privacy.events import Event
from privsql.schema import Schema


@dataclass(frozen=True)
class Rules:
    """What the owner's entries say: the dataset, the caps at the opening, and the caps after all renewals."""

    dataset: Dataset
    opening: Caps
    caps: Caps


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
            return replace(rules, dataset=replace(rules.dataset, tables={**rules.dataset.tables, **row.read["tables"]}))
        case "renew":
            return replace(rules, caps=renewed(rules.caps, row.read["scope"], row.analyst, row.loss))
        case _:
            return rules


@dataclass(frozen=True)
class State:
    """The ledger as one analyst finds it."""

    rules: Rules
    last: Row
    own: Loss


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

    def entries(self) -> list[Entry]:
        """All charges, the oldest first."""
        rows = self.rows()
        unit = rules_of(rows[:1]).caps.accountant.unit
        return [entry_of(row, unit) for row in rows if row.kind == "charge"]

    def close(self) -> None:
        """Let go of the file; used again, it is opened again."""
        self._store.close()

    def _caps(self, state: State, analyst: str) -> Caps:
        return state.rules.caps

    def _state(self, analyst: str) -> State:
        """Inside a transaction: the few entries that say how things stand, each as it was written."""
        run = self._store.execute
        last = [row_of(each) for each in run(f"{SELECT} ORDER BY number DESC LIMIT 1")]
        owners = [row_of(each) for each in run(f"{SELECT} WHERE kind <> 'charge' ORDER BY number")]
        own = run(f"{SELECT} WHERE kind = 'charge' AND analyst = ? ORDER BY number DESC LIMIT 1", (analyst,))
        if not last or not owners or owners[0].number != 1:
            raise BudgetError(*CORRUPT)
        return State(rules_of(owners), last[0], row_of(own[0]).share if own else Loss())


class FileLedger(LedgerReader):
    """A ledger to spend from, under a policy that may tighten its caps and cannot raise them."""

    def __init__(self, store: Store, caps: Caps, dataset: Dataset) -> None:
        super().__init__(store)
        self._policy, self._dataset = caps, dataset
        self._seen: tuple[int, str] | None = None  # the newest entry this process knows of: it must not go away
        state = self.state()
        dataset.same_as(state.rules.dataset)
        self._caps(state, "")

    def charge(self, released: Sequence[Released], neighbours: Neighbours, analyst: str, question: str) -> Charge:
        """Check and charge in one step; raises BudgetError, with nothing charged, where it does not suffice."""
        return self.charge_all([(released, question)], neighbours, analyst)[0]

    def charge_all(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """Several questions in one transaction, an entry each: all of them are charged, or none."""
        same_neighbours(self._dataset.neighbours, neighbours)
        analyst_of(analyst)
        accountant, charges = self._policy.accountant, []
        priced = [(accountant.price([each.event for each in released]), released, question) for released, question in bills]
        with self._store.writing():
            self._still_there()
            state = self._state(analyst)
            self._dataset.same_as(state.rules.dataset)
            caps, last, own = self._caps(state, analyst), state.last, state.own
            tables = self._dataset.new_tables(state.rules.dataset)
            if tables:
                last = self._append(last, "tables", "", Loss(), {"tables": tables})
            for price, released, question in priced:
                refuse_over(caps, analyst, last.total, own, price)
                own += price
                events = json.dumps([each.to_json() for each in released])
                last = self._append(last, "charge", analyst, price, events, question, own)
                charges.append(Charge(last.number, last.time, last.hash))
        self._seen = (last.number, last.hash)
        return charges

    @property
    def path(self) -> Path:
        return self._store.path

    def charged(self, number: int) -> str | None:
        """The hash of an entry; None where there is none."""
        with self._store.reading():
            found = self._store.execute("SELECT hash FROM entries WHERE number = ? AND kind = 'charge'", (number,))
        return str(found[0][0]) if found else None

    def expect(self, events: Sequence[Event], analyst: str) -> None:
        """Raises BudgetError where this much is not left, before the first of several charges; charges nothing."""
        price = self._policy.accountant.price(events)
        with self._store.reading():
            self._checked(price, analyst)

    def rho(self, events: Sequence[Event]) -> float | None:
        """What they are charged as, where rho is counted; None where epsilon is."""
        return self._policy.accountant.rho(events)

    def _checked(self, price: Loss, analyst: str) -> State:
        state = self._state(analyst)
        self._dataset.same_as(state.rules.dataset)
        refuse_over(self._caps(state, analyst), analyst, state.last.total, state.own, price)
        return state

    def _caps(self, state: State, analyst: str) -> Caps:
        return held(state.rules.opening, state.rules.caps, self._policy, analyst)

    def _still_there(self) -> None:
        """An older copy that was put in the ledger's place is noticed by those who charged after it was made."""
        if self._seen is not None:
            number, digest = self._seen
            if self._store.execute("SELECT hash FROM entries WHERE number = ?", (number,)) != [(digest,)]:
                raise BudgetError("budget-anchor", "the ledger has lost entries that it had: an older copy was put in its place",
                                  "restore the newest copy; privsql ledger verify --anchor shows which it is")  # fmt: skip

    def _append(
        self, last: Row, kind: str, analyst: str, price: Loss, details: Any, question: str = "", own: Loss | None = None,
    ) -> Row:  # fmt: skip
        return append(self._store, last, kind, analyst, price, details, question, own)


def append(
    store: Store, last: Row, kind: str, analyst: str, price: Loss, details: Any, question: str = "",
    own: Loss | None = None, caps: Caps | None = None,
) -> Row:  # fmt: skip
    """Inside a transaction: one more entry, chained to the last."""
    total = last.total + price if kind == "charge" else last.total
    own = own or Loss()
    limit = caps.limits("").dataset if caps else None
    cap = (limit.nano, limit.atto_delta) if limit else (last.cap_epsilon, last.cap_delta)
    text = details if isinstance(details, str) else json.dumps(details)
    row = Row(
        last.number + 1, kind, now(), written(analyst), price.nano, price.atto_delta, total.nano,
        total.atto_delta, own.nano, own.atto_delta, *cap, written(question), text, last.hash,
    )  # fmt: skip
    row = replace(row, hash=row.digest())
    store.keep_format()
    store.execute(INSERT, row.values())
    return row


def entry_of(row: Row, unit: str) -> Entry:
    return Entry(
        row.when, row.analyst, row.question, row.loss, tuple(Released.of_json(each) for each in row.read), unit
    )


def open_ledger(path: str | Path, policy: Policy, schema: Schema) -> FileLedger:
    """The ledger of that name to spend from; a new one, with the caps of the policy, where there is none."""
    store = Store(named(path))
    refuse_network(store.path)
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
        raise ArgumentError("argument-epsilon", "a renewal adds to a cap: epsilon, delta or both", "--epsilon 5")
    if scope == "analyst" and analyst != EVERYONE:
        analyst_of(analyst)
    store = Store(named(path))
    refuse_network(store.path)
    try:
        with store.writing():
            state = LedgerReader(store)._state("")
            caps = renewed(state.rules.caps, scope, analyst, by)
            return append(store, state.last, "renew", analyst, by, {"scope": scope}, reason, caps=caps)
    finally:
        store.close()
