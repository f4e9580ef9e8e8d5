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
    delta: Fraction = Fraction(0)


class MemoryLedger:
    """Counts nano-epsilon and delta for one dataset under one neighbour relation; lives as long as its session.

    Losses add up: k releases of (epsilon, delta) are together (k epsilon, k delta).
    """

    def __init__(
        self,
        limit: Fraction | None,
        neighbours: Neighbours,
        earlier: Iterable[Entry] = (),
        delta_limit: Fraction = Fraction(0),
    ) -> None:
        self._limit = None if limit is None else math.floor(limit * NANO)
        self._delta_limit = delta_limit
        self._neighbours = neighbours
        self._entries: list[Entry] = list(earlier)
        self._spent = sum(entry.nano_epsilon for entry in self._entries)
        self._delta_spent = sum((entry.delta for entry in self._entries), Fraction(0))
        self._lock = threading.Lock()

    def charge(
        self, loss: Fraction, delta: Fraction, neighbours: Neighbours, analyst: str, question: str, released: str
    ) -> None:
        """Check and charge in one step; raises BudgetError, with nothing charged, where it does not suffice."""
        if neighbours is not self._neighbours:
            raise BudgetError(
                "budget-neighbours",
                f"this budget counts losses under {self._neighbours.value} neighbours, not {neighbours.value}",
                "losses of different kinds cannot be added; use the relation of the budget",
            )
        price = math.ceil(loss * NANO)
        with self._lock:
            self._suffices(price)
            if self._limit is not None and self._delta_spent + delta > self._delta_limit:
                rest = float(self._delta_limit - self._delta_spent)
                raise BudgetError(
                    "budget-delta",
                    f"this costs delta {float(delta):g}, and {rest:g} of {float(self._delta_limit):g} is left",
                    f"ask with delta={rest:g} or less" if rest > 0 else "declare the keys, or ask the owner for delta",
                )
            self._spent += price
            self._delta_spent += delta
            self._entries.append(Entry(dt.datetime.now(dt.UTC), analyst, question, price, released, delta))

    def expect(self, loss: Fraction) -> None:
        """Raises BudgetError where this much is not left, before the first of several charges; charges nothing."""
        with self._lock:
            self._suffices(math.ceil(loss * NANO))

    def _suffices(self, price: int) -> None:
        if self._limit is not None and self._spent + price > self._limit:
            left = (self._limit - self._spent) / NANO
            raise BudgetError(
                "budget-exhausted",
                f"this costs epsilon {price / NANO:g}, and {left:g} of {self._limit / NANO:g} is left",
                f"ask with epsilon={left:g} or less" if left > 0 else "ask the owner of the data for more budget",
            )

    @property
    def budget(self) -> Budget:
        with self._lock:
            spent, delta = self._spent, self._delta_spent
        used = Amount(spent / NANO, float(delta))
        if self._limit is None:
            return Budget(Amount(math.inf, 1.0), used, Amount(math.inf, 1.0))
        limit = Amount(self._limit / NANO, float(self._delta_limit))
        return Budget(limit, used, Amount((self._limit - spent) / NANO, float(self._delta_limit - delta)))

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)
