"""Ledger entries go in; their meaning comes out: losses, analysts, caps, and running queries.

Nothing here can spend.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from privsql.budget.amount import Loss
from privsql.budget.caps import Caps, renewed
from privsql.budget.dataset import Dataset
from privsql.budget.fuse import Failures
from privsql.budget.ledger import Budget, Entry, budget_of, share_of
from privsql.budget.ledger_file.format import OWNERS, SELECT, Row, row_of
from privsql.budget.ledger_file.store import CORRUPT, Store
from privsql.budget.released import Released
from privsql.errors import ArgumentError, BudgetError
from privsql.neighbours import Neighbours


@dataclass(frozen=True)
class LedgerTerms:
    """What the owner's entries set: the dataset, the caps at the opening, and the caps after all renewals."""

    dataset: Dataset
    opening: Caps
    caps: Caps
    # up to which entry failures are, by analyst; "": of all
    forgiven: Mapping[str, int] = field(default_factory=dict)

    def counts_from(self, analyst: str) -> int:
        """The entry after which failures of an analyst count."""
        return max(self.forgiven.get("", 0), self.forgiven.get(analyst, 0))


def rules_of(rows: Sequence[Row]) -> LedgerTerms:
    """The terms of a ledger from its entries that are not charges, in order."""
    try:
        first, *later = rows
        details = first.read
        dataset = Dataset(details["dataset"], Neighbours(details["neighbours"]), details["tables"])
        rules = LedgerTerms(dataset, Caps.of_json(details["caps"]), Caps.of_json(details["caps"]))
        for row in later:
            rules = followed(rules, row)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise BudgetError(
            "budget-corrupt", "the ledger does not say which dataset it is for", "run privsql ledger verify"
        ) from None
    return rules


def followed(rules: LedgerTerms, row: Row) -> LedgerTerms:
    """The terms after one more entry of the data owner."""
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
    """Queries charged together that are not known to have ended, by the number of their first charge."""

    number: int
    analyst: str
    when: str

    def age(self) -> float:
        """In seconds."""
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.when)).total_seconds()


@dataclass(frozen=True)
class LedgerState:
    """The ledger as one analyst finds it."""

    rules: LedgerTerms
    last: Row
    own: Loss
    failed: int
    unfinished: Sequence[Run]

    def failures(self, caps: Caps) -> Failures:
        return Failures(self.failed, len(self.unfinished), caps.most_failures)


class LedgerReader:
    """A read-only ledger."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rows(self) -> list[Row]:
        """Every entry, oldest first."""
        with self._store.reading():
            return [row_of(each) for each in self._store.execute(f"{SELECT} ORDER BY number")]

    def state(self, analyst: str = "") -> LedgerState:
        with self._store.reading():
            return self._state(analyst)

    @property
    def budget(self) -> Budget:
        """The budget of the dataset."""
        state = self.state()
        return budget_of(self._caps(state, ""), state.last.total)

    def share(self, analyst: str) -> Budget | None:
        """The budget of one analyst; None if analysts have no caps."""
        state = self.state(analyst)
        return share_of(self._caps(state, analyst), analyst, state.own)

    def failures(self, analyst: str) -> Failures:
        """The failures of one analyst since the fuse was renewed."""
        state = self.state(analyst)
        return state.failures(self._caps(state, analyst))

    def runs(self) -> list[Run]:
        """Charged queries that are not known to have ended."""
        with self._store.reading():
            return self._runs()

    def entries(self) -> list[Entry]:
        """All charges, oldest first."""
        rows = self.rows()
        unit = rules_of(rows[:1]).caps.accountant.unit
        failed = {number for row in rows if row.kind == "failure" for number in row.read["charges"]}
        return [
            replace(entry_of(row, unit), failed=row.number in failed) for row in rows if row.kind == "charge"
        ]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._store.close()

    def _caps(self, state: LedgerState, analyst: str) -> Caps:
        return state.rules.caps

    def _state(self, analyst: str) -> LedgerState:
        """The few entries that determine the state, each verified. Call it inside a transaction."""
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
        return LedgerState(rules, last[0], spent, len([row_of(each) for each in failed]), unfinished)

    def _runs(self) -> list[Run]:
        """The unfinished queries. Call it inside a transaction."""
        if not self._store.is_new_format():
            return []
        found = self._store.execute(
            "SELECT number, runs.analyst, time FROM runs JOIN entries USING (number) ORDER BY number"
        )
        return [Run(*each) for each in found]


def entry_of(row: Row, unit: str) -> Entry:
    return Entry(
        row.when,
        row.analyst,
        row.question,
        row.loss,
        tuple(Released.of_json(each) for each in row.read),
        unit,
    )


def open_reader(path: str | Path) -> LedgerReader:
    """Open the ledger of that name read-only."""
    return LedgerReader(Store(named(path), read_only=True))


def named(path: object) -> Path:
    if not isinstance(path, (str, Path)) or not str(path) or "\0" in str(path):
        raise ArgumentError("argument-shape", "ledger must be the path of a file", 'ledger="clinic.ledger"')
    return Path(path)
