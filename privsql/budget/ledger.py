"""The interface of a ledger, and a ledger in memory: one lock, exact integers, check and charge in
one step.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from privsql.budget.accountants import LEVEL, WITHIN, Addition
from privsql.budget.amount import NOTHING, Amount, Cap, Loss, amount_of
from privsql.budget.caps import Caps, Standing, caps_of, policy_caps, prices_of, refuse_together
from privsql.budget.fuse import Failures, refuse_full
from privsql.budget.released import Released
from privsql.errors import BudgetError, PrivsqlError
from privsql.neighbours import Neighbours
from privsql.policy import Policy
from privsql.policy.checks import NANO
from privsql.privacy.events import Event
from privsql.suggestions import Argument


@dataclass(frozen=True)
class Budget:
    """The limit, what is spent and what remains. Without a limit, infinity remains.

    Under zCDP rho adds up and epsilon does not: each of the three epsilons is converted from its own rho.
    """

    limit: Amount
    spent: Amount
    remaining: Amount
    share: Budget | None = None  # the same for one analyst who has a cap
    accountant: str = "approximate"
    # how many more counts within +-10 (95%) the rest allows, if each row is one person's
    counts: int | None = None
    failures: Failures | None = None  # of one analyst's queries after their charge

    def __str__(self) -> str:
        counts = [each.counts for each in (self, self.share) if each is not None and each.counts is not None]
        left = f": {counts_text(min(counts), self.spent.rho is not None)}" if counts else ""
        own = f"\nyour share: {self.share.remaining} of {self.share.limit} remaining" if self.share else ""
        some = self.failures is not None and self.failures.failed + self.failures.unfinished
        failed = f"\nfailed queries: {self.failures}" if some else ""
        return f"limit: {self.limit}\nspent: {self.spent}\nremaining: {self.remaining}{left}{own}{failed}"

    __repr__ = __str__

    def without_counts(self) -> Budget:
        """Without a number of counts: where people have several rows, a count costs as much as the limits of
        its table say.
        """
        return replace(self, counts=None, share=self.share and self.share.without_counts())


def with_affordable_ways(error: PrivsqlError, budget: Budget) -> PrivsqlError:
    """The refusal without suggestions that this budget cannot pay: no delta where none is left."""
    return error if budget.remaining.delta else error.without("delta")


def counts_text(counts: int, gaussian: bool) -> str:
    """What is left, as a number of counts; with Gaussian noise where the accountant adds up rho."""
    noise = ", Gaussian noise" if gaussian else ""
    return f"{counts:,} more count{'s' if counts != 1 else ''} within +-{WITHIN} ({LEVEL:.0%}{noise})"


def budget_of(caps: Caps, spent: Loss) -> Budget:
    """The dataset's cap and how much of it is spent, for people."""
    return _budget(caps, caps.dataset, caps.limits("").dataset, spent)


def share_of(caps: Caps, analyst: str, own: Loss) -> Budget | None:
    """The same for one analyst; None if analysts have no caps."""
    return _budget(caps, caps.share(analyst), caps.limits(analyst).share, own) if caps.analysts else None


def _budget(caps: Caps, cap: Cap, limit: Cap, spent: Loss) -> Budget:
    accountant = caps.accountant
    most = amount_of(cap)
    if not isinstance(accountant, Addition) and limit.nano is not None:
        most = replace(most, rho=limit.nano / NANO)
    return Budget(
        most,
        accountant.stands_for(spent, caps.dataset),
        accountant.left(cap, limit, spent, caps.dataset),
        accountant=caps.accounting.value,
        counts=_counts(caps, limit.rest(spent)),
    )


def _counts(caps: Caps, rest: Cap) -> int | None:
    query, price = caps.limits("").query, caps.accountant.count.nano
    if caps.least is not None:
        if not isinstance(caps.accountant, Addition):
            return None  # the minimum is in epsilon, and the price in rho
        price = max(price, caps.least)
    if rest == NOTHING or (query is not None and query < price):
        return 0
    return None if rest.nano is None else rest.nano // price


@dataclass(frozen=True)
class Entry:
    """A charge: its loss, in epsilon or in rho, and what was released for it."""

    when: dt.datetime
    analyst: str
    query: str
    loss: Loss
    released: Sequence[Released]
    unit: str = Addition.unit
    failed: bool = False  # the engine failed after the charge, or the query was stopped

    @property
    def epsilon(self) -> float:
        """The loss; under zCDP, what the answers would have cost by adding epsilons."""
        if self.unit == Addition.unit:
            return self.loss.size
        return float(sum((each.event.epsilon for each in self.released), Fraction(0)))

    @property
    def delta(self) -> float:
        return self.loss.delta

    @property
    def rho(self) -> float | None:
        return None if self.unit == Addition.unit else self.loss.size


Bill = tuple[Sequence[Released], str]  # the releases of a query, and its text


def events_of(bills: Sequence[Bill]) -> list[list[Event]]:
    """The events of each bill."""
    return [[each.event for each in released] for released, _ in bills]


@dataclass(frozen=True)
class Charge:
    """A charged entry, by number; `hash`: of the entry, where entries are chained."""

    number: int
    when: str
    hash: str = ""


class Ledger(Protocol):
    """The losses of one dataset under one neighbour relation, counted by one accountant, and the caps on
    them.
    """

    def running(
        self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str
    ) -> AbstractContextManager[list[Charge]]:
        """Check and charge bills in one step, with an entry for each, around the block that runs them.

        Raises BudgetError, and charges nothing, if the budget does not suffice or the fuse has blown. An
        exception in the block is recorded as a failure, and so is a block that never ends, as far as the
        ledger can know.
        """
        ...

    def expect(self, queries: Sequence[Sequence[Event]], analyst: str) -> None:
        """Raise BudgetError if a call with these queries, given by their events, would be refused now; charge
        nothing.
        """
        ...

    def rho(self, events: Sequence[Event]) -> float | None:
        """The price in rho, if the accountant counts rho; None if it counts epsilon."""
        ...

    @property
    def budget(self) -> Budget:
        """The budget of the dataset."""
        ...

    def share(self, analyst: str) -> Budget | None:
        """The budget of one analyst; None if analysts have no caps."""
        ...

    def failures(self, analyst: str) -> Failures:
        """The failures of one analyst since the fuse was renewed."""
        ...

    def entries(self) -> list[Entry]:
        """All charges, oldest first."""
        ...

    @property
    def path(self) -> Path | None:
        """The file of the ledger, beside which answers are stored; None: in memory."""
        ...

    def charged(self, number: int) -> str | None:
        """The hash of an entry; None if there is no such entry."""
        ...

    def close(self) -> None:
        """Close the ledger's file."""
        ...


def same_neighbours(own: Neighbours, asked: Neighbours) -> None:
    """Raise BudgetError if the neighbours differ: a loss bounds what answers reveal under one
    relation only.
    """
    if own is not asked:
        raise BudgetError(
            "budget-neighbours",
            f"this budget counts losses under {own.value} neighbours, not {asked.value}",
            f'losses under different neighbours do not add up: use neighbours "{own.value}", or a new ledger',
        )


class MemoryLedger:
    """A ledger that lives as long as its session."""

    def __init__(
        self,
        limit: Fraction | None,
        neighbours: Neighbours,
        earlier: Iterable[Entry] = (),
        delta_limit: Fraction = Fraction(0),
        caps: Caps | None = None,
    ) -> None:
        self._caps = caps or caps_of(limit, delta_limit)
        self._neighbours = neighbours
        self._entries: list[Entry] = list(earlier)
        self._spent = sum((entry.loss for entry in self._entries), Loss())
        self._own: dict[str, Loss] = defaultdict(Loss)
        for entry in self._entries:
            self._own[entry.analyst] += entry.loss
        # a batch fails as one
        runs = {(entry.analyst, entry.when) for entry in self._entries if entry.failed}
        self._failed = Counter(analyst for analyst, _ in runs)
        self._unfinished: Counter[str] = Counter()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._finished = threading.Condition(self._lock)

    @staticmethod
    def under(policy: Policy) -> MemoryLedger:
        """An empty ledger with the caps of a policy."""
        return MemoryLedger(policy.epsilon, policy.neighbours, caps=policy_caps(policy))

    @contextmanager
    def running(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> Iterator[list[Charge]]:
        charges, failed = self._charge(bills, neighbours, analyst), True
        try:
            yield charges
            failed = False
        finally:
            self._settle(charges, analyst, failed)

    def _charge(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        same_neighbours(self._neighbours, neighbours)
        self._refuse_fork()
        unit, now = self._caps.accountant.unit, dt.datetime.now(dt.UTC)
        with self._finished:
            # more queries at once than may fail wait for each other: all run in this process, and will end
            self._finished.wait_for(lambda: self._failures(analyst).blown or not self._failures(analyst).full)
            refuse_full(self._failures(analyst), analyst, None)
            caps, standing = self._caps, self._standing(analyst)
            prices = prices_of(caps, caps.accountant, standing, events_of(bills))
            new = [
                Entry(now, analyst, query, price, released, unit)
                for (released, query), price in zip(bills, prices, strict=True)
            ]
            whole = sum(prices, Loss())
            self._spent, self._own[analyst] = standing.spent + whole, standing.own + whole
            self._entries += new
            self._unfinished[analyst] += 1
            last = len(self._entries)
            return [Charge(last - len(new) + place + 1, now.isoformat()) for place in range(len(new))]

    def _settle(self, charges: Sequence[Charge], analyst: str, failed: bool) -> None:
        with self._finished:
            self._unfinished[analyst] -= 1
            if failed:
                self._failed[analyst] += 1
                for each in charges:
                    self._entries[each.number - 1] = replace(self._entries[each.number - 1], failed=True)
            self._finished.notify_all()

    def failures(self, analyst: str) -> Failures:
        with self._lock:
            return self._failures(analyst)

    def _failures(self, analyst: str) -> Failures:
        return Failures(self._failed[analyst], self._unfinished[analyst], self._caps.most_failures)

    def _standing(self, analyst: str) -> Standing:
        return Standing(analyst, self._spent, self._own[analyst])

    def _refuse_fork(self) -> None:
        """Raise BudgetError in a forked process, which has only a copy of what was spent."""
        if self._process != os.getpid():
            raise BudgetError(
                "budget-fork",
                "this process was forked from the one that keeps the budget in memory, "
                "so each of them would spend all that is left",
                [
                    (
                        "keep the budget in a file, which processes share: ",
                        Argument("ledger", '"clinic.ledger"'),
                    )
                ],
            )

    def expect(self, queries: Sequence[Sequence[Event]], analyst: str) -> None:
        self._refuse_fork()
        with self._lock:
            failures = self._failures(analyst)
            if failures.blown:
                refuse_full(failures, analyst, None)
            refuse_together(self._caps, self._caps.accountant, self._standing(analyst), queries)

    def rho(self, events: Sequence[Event]) -> float | None:
        return self._caps.accountant.rho(events)

    @property
    def budget(self) -> Budget:
        with self._lock:
            return budget_of(self._caps, self._spent)

    def share(self, analyst: str) -> Budget | None:
        with self._lock:
            return share_of(self._caps, analyst, self._own[analyst])

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)

    @property
    def path(self) -> None:
        return None

    def charged(self, number: int) -> str | None:
        return "" if 0 < number <= len(self._entries) else None

    def close(self) -> None:
        """Do nothing: there is no file."""
