"""Events go in; their joint loss comes out, in exact integers. Caps in epsilon and delta go in; the sums they
allow come out.

There are two ways to count: epsilons and deltas add up (pure privacy where delta is 0), or rho adds up, zCDP.
Each is a filter: a query may depend on all earlier answers, and the guarantee holds as long as the sum stays
below the limit. The proofs are in docs/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from privsql.budget.amount import ATTO, Amount, Cap, Loss, amount_of, price_of
from privsql.errors import BudgetError
from privsql.neighbours import Accounting
from privsql.policy import Policy
from privsql.policy.checks import NANO, PART_FOR_KEYS
from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.events import EVENTS, Event
from privsql.privacy.gaussian import greatest_rho
from privsql.privacy.gaussian import half_width as gaussian_half_width
from privsql.privacy.zcdp import least_epsilon, zcdp_of

WITHIN, LEVEL = 10, 0.95  # what is left is also shown as a number of counts this accurate
_FINENESS = 1024  # of the variance of this count


class Accountant(ABC):
    """Adds up losses. `unit` names what a Loss counts in billionths: epsilon or rho."""

    unit: ClassVar[str]

    def price(self, events: Sequence[Event]) -> Loss:
        """The loss of these events together, rounded up once."""
        for each in events:
            if type(each) not in EVENTS.values():
                raise BudgetError(
                    "budget-event",
                    f"the accountants have no rule for {type(each).__name__}",
                    "release only events that privsql.privacy.events defines",
                )
        losses = [self._loss(each) for each in events]
        return price_of(
            sum((size for size, _ in losses), Fraction(0)), sum((delta for _, delta in losses), Fraction(0))
        )

    def rho(self, events: Sequence[Event]) -> float | None:
        """The price in rho; None if the accountant counts epsilon."""
        if self.unit != Zcdp.unit:
            return None
        return self.price(events).size if events else 0.0

    @abstractmethod
    def _loss(self, event: Event) -> tuple[Fraction, Fraction]: ...

    @abstractmethod
    def limit(self, dataset: Cap) -> Cap:
        """The sums that the dataset's (epsilon, delta) allows."""

    @abstractmethod
    def part(self, cap: Cap, dataset: Cap) -> Cap:
        """The sums allowed by a cap within the dataset's: of one analyst, or of one query."""

    @abstractmethod
    def stands_for(self, spent: Loss, dataset: Cap) -> Amount:
        """The epsilon and delta that this loss guarantees, under a cap of the dataset."""

    @abstractmethod
    def left(self, cap: Cap, limit: Cap, spent: Loss, dataset: Cap) -> Amount:
        """What one more query may lose, on its own."""

    @property
    @abstractmethod
    def count(self) -> Loss:
        """The least price of a count of people within +-10 at 95%."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a ledger records of the accountant."""


@dataclass(frozen=True)
class Addition(Accountant):
    """k releases that are (epsilon, delta)-private each are (k epsilon, k delta)-private together."""

    unit = "epsilon"

    def _loss(self, event: Event) -> tuple[Fraction, Fraction]:
        return event.epsilon, event.delta

    def limit(self, dataset: Cap) -> Cap:
        return dataset

    def part(self, cap: Cap, dataset: Cap) -> Cap:
        return cap

    def stands_for(self, spent: Loss, dataset: Cap) -> Amount:
        return Amount(spent.size, spent.delta)

    def left(self, cap: Cap, limit: Cap, spent: Loss, dataset: Cap) -> Amount:
        return amount_of(limit.rest(spent))

    @property
    def count(self) -> Loss:
        return _laplace_count()

    def to_json(self) -> dict[str, Any]:
        return {}


ADDITION = Addition()


@dataclass(frozen=True)
class Zcdp(Accountant):
    """Rho adds up, and so do the deltas of keys. The sum of rho is (epsilon, delta)-private by the tight
    conversion of Canonne, Kamath and Steinke (2020), with the part of delta that is not set aside for keys.
    """

    unit = "rho"
    for_keys: Fraction = PART_FOR_KEYS

    def _loss(self, event: Event) -> tuple[Fraction, Fraction]:
        return zcdp_of(event)

    def limit(self, dataset: Cap) -> Cap:
        whole = dataset.atto_delta or 0
        return Cap(self._rho(dataset.nano, dataset), math.floor(whole * self.for_keys))

    def part(self, cap: Cap, dataset: Cap) -> Cap:
        return Cap(self._rho(cap.nano, dataset), cap.atto_delta)

    def stands_for(self, spent: Loss, dataset: Cap) -> Amount:
        if not spent.nano:
            return Amount(0.0, spent.delta, 0.0)
        delta = self.conversion_delta(dataset)
        epsilon = float(least_epsilon(Fraction(spent.nano, NANO), delta)) if delta else math.inf
        return Amount(epsilon, float(delta) + spent.delta, spent.size)

    def left(self, cap: Cap, limit: Cap, spent: Loss, dataset: Cap) -> Amount:
        rest = limit.rest(spent)
        if rest.nano is None:
            return amount_of(rest)
        keys = amount_of(rest).delta
        if not spent.nano:  # all is left: show the cap as declared, not converted back from rho
            return Amount(amount_of(cap).epsilon, keys, rest.nano / NANO)
        return Amount(self.stands_for(Loss(rest.nano), dataset).epsilon, keys, rest.nano / NANO)

    @property
    def count(self) -> Loss:
        return _gaussian_count()

    def to_json(self) -> dict[str, Any]:
        return {"for_keys": str(self.for_keys)}

    def conversion_delta(self, dataset: Cap) -> Fraction:
        """The rest of delta after the part for keys is set aside."""
        whole = dataset.atto_delta or 0
        return Fraction(whole - math.floor(whole * self.for_keys), ATTO)

    def _rho(self, nano_epsilon: int | None, dataset: Cap) -> int | None:
        """Billionths of rho, rounded down."""
        return None if nano_epsilon is None else _greatest(nano_epsilon, self.conversion_delta(dataset))


@lru_cache(maxsize=1024)
def _greatest(nano_epsilon: int, delta: Fraction) -> int:
    """The largest rho, in billionths; 0 if delta or epsilon is so small that no rho is known to serve."""
    try:
        return math.floor(greatest_rho(Fraction(nano_epsilon, NANO), delta) * NANO)
    except ValueError:
        return 0


@lru_cache(maxsize=1)
def _laplace_count() -> Loss:
    most = NANO * WITHIN
    return Loss(
        1
        + bisect_left(range(1, most), True, key=lambda nano: laplace_half_width(nano / NANO, LEVEL) <= WITHIN)
    )


@lru_cache(maxsize=1)
def _gaussian_count() -> Loss:
    """Price the count with the greatest variance that is accurate enough; rho = 1/(2 variance)."""
    within = range(1, WITHIN**2 * _FINENESS)
    past = bisect_left(
        within, True, key=lambda part: gaussian_half_width(Fraction(part, _FINENESS), LEVEL) > WITHIN
    )
    return price_of(1 / (2 * Fraction(within[past - 1], _FINENESS)), Fraction(0))


def accountant_of(policy: Policy) -> Accountant:
    return Zcdp(policy.part_for_keys) if policy.accountant is Accounting.ZCDP else ADDITION
