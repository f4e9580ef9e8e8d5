"""What a ledger is, for everyone who charges; and one in memory: one lock, exact integers, check and charge in one step."""

from __future__ import annotations

import datetime as dt
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from privsql.budget.accountants import LEVEL, WITHIN, Addition
from privsql.budget.amount import NOTHING, Amount, Cap, Loss, amount_of
from privsql.budget.caps import Caps, caps_of, policy_caps, refuse_over
from privsql.budget.released import Released
from privsql.errors import BudgetError
from privsql.policy import NANO, Neighbours, Policy
from privsql.privacy.events import Event


@dataclass(frozen=True)
class Budget:
    """What may be spent, what is spent, what remains. Without a limit, infinity remains.

    Under zCDP rho adds up and epsilon does not: each of the three is the epsilon that its rho stands for by itself.
    """

    limit: Amount
    spent: Amount
    remaining: Amount
    share: Budget | None = None  # the same of one analyst, who has a cap
    accountant: str = "approximate"
    counts: int | None = None  # how many more counts within +-10 (95%) this allows

    def __str__(self) -> str:
        counts = [each.counts for each in (self, self.share) if each is not None and each.counts is not None]
        left = f": {counts_text(min(counts))}" if counts else ""
        own = f"\nyour share: {self.share.remaining} of {self.share.limit} remaining" if self.share else ""
        return f"limit: {self.limit}\nspent: {self.spent}\nremaining: {self.remaining}{left}{own}"

    __repr__ = __str__


def counts_text(counts: int) -> str:
    """What is left, as people count it."""
    return f"{counts:,} more count{'s' if counts != 1 else ''} within +-{WITHIN} ({LEVEL:.0%})"


def budget_of(caps: Caps, spent: Loss) -> Budget:
    """The dataset's cap and what is spent of it, as people read them."""
    return _budget(caps, caps.dataset, caps.limits("").dataset, spent)


def share_of(caps: Caps, analyst: str, own: Loss) -> Budget | None:
    """The same of one analyst; None where analysts have no caps."""
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
        counts=_counts(limit.rest(spent), caps.limits("").query, accountant.count),
    )


def _counts(rest: Cap, query: int | None, price: Loss) -> int | None:
    if rest == NOTHING or (query is not None and query < price.nano):
        return 0
    return None if rest.nano is None else rest.nano // price.nano


@dataclass(frozen=True)
class Entry:
    """One charge: what it lost, in epsilon or in rho, and what was released for it."""

    when: dt.datetime
    analyst: str
    question: str
    loss: Loss
    released: Sequence[Released]
    unit: str = Addition.unit

    @property
    def epsilon(self) -> float:
        """What was charged; under zCDP, what the answers would have cost by addition."""
        if self.unit == Addition.unit:
            return self.loss.size
        return float(sum((each.event.epsilon for each in self.released), Fraction(0)))

    @property
    def delta(self) -> float:
        return self.loss.delta

    @property
    def rho(self) -> float | None:
        return None if self.unit == Addition.unit else self.loss.size


Bill = tuple[Sequence[Released], str]  # what is released for one question, and its text


@dataclass(frozen=True)
class Charge:
    """One entry, by its number; `hash`: where entries are chained, by what."""

    number: int
    when: str
    hash: str = ""


class Ledger(Protocol):
    """Losses of one dataset under one neighbour relation, counted by one accountant, and the caps on them."""

    def charge(self, released: Sequence[Released], neighbours: Neighbours, analyst: str, question: str) -> Charge:
        """Check and charge in one step; raises BudgetError, with nothing charged, where it does not suffice."""
        ...

    def charge_all(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        """Several questions at once, an entry each: all of them are charged, or none."""
        ...

    def expect(self, events: Sequence[Event], analyst: str) -> None:
        """Raises BudgetError where this much is not left, before the first of several charges; charges nothing."""
        ...

    def rho(self, events: Sequence[Event]) -> float | None:
        """What they are charged as, where rho is counted; None where epsilon is."""
        ...

    @property
    def budget(self) -> Budget:
        """Of the dataset."""
        ...

    def share(self, analyst: str) -> Budget | None:
        """Of one analyst; None where analysts have no caps."""
        ...

    def entries(self) -> list[Entry]:
        """All charges, the oldest first."""
        ...

    @property
    def path(self) -> Path | None:
        """The file that it is kept in, beside which answers are kept; None: in memory."""
        ...

    def charged(self, number: int) -> str | None:
        """The hash of an entry; None where there is none."""
        ...

    def close(self) -> None:
        """Let go of what the ledger is kept in."""
        ...


def same_neighbours(own: Neighbours, asked: Neighbours) -> None:
    """Losses are bounds for one relation; under another the same answers lose another amount."""
    if own is not asked:
        raise BudgetError(
            "budget-neighbours",
            f"this budget counts losses under {own.value} neighbours, not {asked.value}",
            "losses of different kinds cannot be added; use the relation of the budget",
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
        self._lock = threading.Lock()

    @staticmethod
    def under(policy: Policy) -> MemoryLedger:
        """An empty ledger with the caps of a policy."""
        return MemoryLedger(policy.epsilon, policy.neighbours, caps=policy_caps(policy))

    def charge(self, released: Sequence[Released], neighbours: Neighbours, analyst: str, question: str) -> Charge:
        return self.charge_all([(released, question)], neighbours, analyst)[0]

    def charge_all(self, bills: Sequence[Bill], neighbours: Neighbours, analyst: str) -> list[Charge]:
        same_neighbours(self._neighbours, neighbours)
        accountant, now = self._caps.accountant, dt.datetime.now(dt.UTC)
        with self._lock:
            spent, own, new = self._spent, self._own[analyst], []
            for released, question in bills:
                price = accountant.price([each.event for each in released])
                refuse_over(self._caps, analyst, spent, own, price)
                spent, own = spent + price, own + price
                new.append(Entry(now, analyst, question, price, released, accountant.unit))
            self._spent, self._own[analyst] = spent, own
            self._entries += new
            last = len(self._entries)
            return [Charge(last - len(new) + place + 1, now.isoformat()) for place in range(len(new))]

    def expect(self, events: Sequence[Event], analyst: str) -> None:
        price = self._caps.accountant.price(events)
        with self._lock:
            refuse_over(self._caps, analyst, self._spent, self._own[analyst], price)

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
        """Nothing is held."""
