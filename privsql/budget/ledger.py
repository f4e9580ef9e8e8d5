"""A ledger in memory: one lock, exact integers, check and charge in one step."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from privsql.errors import BudgetError
from privsql.policy import NANO, Neighbours


@dataclass(frozen=True)
class Amount:
    """Some privacy: epsilon and delta, as people read them."""

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "no limit"
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")


@dataclass(frozen=True)
class Budget:
    """What may be spent, what is spent, what remains. Without a limit, infinity remains."""

    limit: Amount
    spent: Amount
    remaining: Amount

    def __str__(self) -> str:
        return f"limit: {self.limit}\nspent: {self.spent}\nremaining: {self.remaining}"

    __repr__ = __str__


@dataclass(frozen=True)
class Entry:
    """One charge."""

    when: dt.datetime
    analyst: str
    question: str
    nano_epsilon: int
    released: str


class MemoryLedger:
    """Counts nano-epsilon for one dataset under one neighbour relation; lives as long as its session."""

    def __init__(self, limit: Fraction | None, neighbours: Neighbours, earlier: Iterable[Entry] = ()) -> None:
        self._limit = None if limit is None else math.floor(limit * NANO)
        self._neighbours = neighbours
        self._entries: list[Entry] = list(earlier)
        self._spent = sum(entry.nano_epsilon for entry in self._entries)
        self._lock = threading.Lock()

    def charge(self, loss: Fraction, neighbours: Neighbours, analyst: str, question: str, released: str) -> None:
        """Check and charge in one step; raises BudgetError, with nothing charged, where it does not suffice."""
        if neighbours is not self._neighbours:
            raise BudgetError(
                "budget-neighbours",
                f"this budget counts losses under {self._neighbours.value} neighbours, not {neighbours.value}",
                "losses of different kinds cannot be added; use the relation of the budget",
            )
        price = math.ceil(loss * NANO)
        with self._lock:
            if self._limit is not None and self._spent + price > self._limit:
                left = (self._limit - self._spent) / NANO
                raise BudgetError(
                    "budget-exhausted",
                    f"this costs epsilon {price / NANO:g}, and {left:g} of {self._limit / NANO:g} is left",
                    f"ask with epsilon={left:g} or less" if left > 0 else "ask the owner of the data for more budget",
                )
            self._spent += price
            self._entries.append(Entry(dt.datetime.now(dt.UTC), analyst, question, price, released))

    @property
    def budget(self) -> Budget:
        with self._lock:
            spent = self._spent
        limit = math.inf if self._limit is None else self._limit / NANO
        remaining = math.inf if self._limit is None else (self._limit - spent) / NANO
        return Budget(Amount(limit), Amount(spent / NANO), Amount(remaining))

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)
