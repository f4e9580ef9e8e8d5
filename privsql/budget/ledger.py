"""What a ledger is, for everyone who charges; and one in memory: one lock, exact integers, check and charge in one step."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from privsql.budget.caps import ATTO, Cap, Loss, caps_of, price_of, refuse_over
from privsql.errors import BudgetError
from privsql.policy import NANO, Neighbours, Policy, Share


@dataclass(frozen=True)
class Amount:
    """Some privacy: epsilon and delta, as people read them."""

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "no limit"
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if 0 < self.delta < 1 else "")


@dataclass(frozen=True)
class Budget:
    """What may be spent, what is spent, what remains. Without a limit, infinity remains."""

    limit: Amount
    spent: Amount
    remaining: Amount
    share: Budget | None = None  # the same of one analyst, who has a cap

    def __str__(self) -> str:
        own = f"\nyour share: {self.share.remaining} of {self.share.limit} remaining" if self.share else ""
        return f"limit: {self.limit}\nspent: {self.spent}\nremaining: {self.remaining}{own}"

    __repr__ = __str__


def budget_of(cap: Cap, spent: Loss, share: Budget | None = None) -> Budget:
    """A cap and what is spent, as people read them."""
    limits, rests = [], []
    for most, used, unit, without in (
        (cap.nano_epsilon, spent.nano_epsilon, NANO, math.inf),
        (cap.atto_delta, spent.atto_delta, ATTO, 1.0),
    ):
        limits.append(without if most is None else most / unit)
        rests.append(without if most is None else max(most - used, 0) / unit)
    return Budget(Amount(*limits), Amount(spent.epsilon, spent.delta), Amount(*rests), share)


@dataclass(frozen=True)
class Event:
    """What one measurement lets out, in exact numbers: whoever adds up losses otherwise can price it anew."""

    mechanism: str
    what: str
    epsilon: Fraction
    delta: Fraction
    l1: int
    linf: int
    scale: Fraction

    def __str__(self) -> str:
        return f"{self.mechanism} of {self.what}"

    def to_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism, "what": self.what, "epsilon": str(self.epsilon), "delta": str(self.delta),
            "l1": self.l1, "linf": self.linf, "scale": str(self.scale),
        }  # fmt: skip

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Event:
        exact = {name: Fraction(raw[name]) for name in ("epsilon", "delta", "scale")}
        return Event(raw["mechanism"], raw["what"], l1=raw["l1"], linf=raw["linf"], **exact)


@dataclass(frozen=True)
class Entry:
    """One charge."""

    when: dt.datetime
    analyst: str
    question: str
    nano_epsilon: int
    released: Sequence[Event]
    atto_delta: int = 0

    @property
    def loss(self) -> Loss:
        return Loss(self.nano_epsilon, self.atto_delta)

    @property
    def delta(self) -> Fraction:
        return Fraction(self.atto_delta, ATTO)


class Ledger(Protocol):
    """Losses of one dataset under one neighbour relation, and the caps on them.

    Losses add up: k releases of (epsilon, delta) are together (k epsilon, k delta).
    """

    def charge(
        self, loss: Fraction, delta: Fraction, neighbours: Neighbours, analyst: str, question: str,
        released: Sequence[Event],
    ) -> None:  # fmt: skip
        """Check and charge in one step; raises BudgetError, with nothing charged, where it does not suffice."""
        ...

    def expect(self, loss: Fraction, analyst: str, delta: Fraction = Fraction(0)) -> None:
        """Raises BudgetError where this much is not left, before the first of several charges; charges nothing."""
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
        per_query: Fraction | None = None,
        analysts: Mapping[str, Share] | None = None,
    ) -> None:
        self._caps = caps_of(limit, delta_limit, per_query, analysts)
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
        return MemoryLedger(policy.epsilon, policy.neighbours, (), policy.delta, policy.per_query, policy.analysts)

    def charge(
        self, loss: Fraction, delta: Fraction, neighbours: Neighbours, analyst: str, question: str,
        released: Sequence[Event],
    ) -> None:  # fmt: skip
        same_neighbours(self._neighbours, neighbours)
        price = price_of(loss, delta)
        with self._lock:
            refuse_over(self._caps, analyst, self._spent, self._own[analyst], price)
            self._spent += price
            self._own[analyst] += price
            now = dt.datetime.now(dt.UTC)
            self._entries.append(Entry(now, analyst, question, price.nano_epsilon, released, price.atto_delta))

    def expect(self, loss: Fraction, analyst: str, delta: Fraction = Fraction(0)) -> None:
        with self._lock:
            refuse_over(self._caps, analyst, self._spent, self._own[analyst], price_of(loss, delta))

    @property
    def budget(self) -> Budget:
        with self._lock:
            return budget_of(self._caps.dataset, self._spent)

    def share(self, analyst: str) -> Budget | None:
        with self._lock:
            return budget_of(self._caps.share(analyst), self._own[analyst]) if self._caps.analysts else None

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)

    def close(self) -> None:
        """Nothing is held."""
