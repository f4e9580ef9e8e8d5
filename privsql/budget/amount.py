"""Privacy loss in numbers: exact ones that ledgers add up (Loss) and compare (Cap), and floats for people
(Amount).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privsql.errors import BudgetError
from privsql.policy.checks import NANO

ATTO = 10**18  # delta is counted in units of 1e-18: fine enough for any delta, and 1 fits in 64 bits
MOST_LOSS = 2**62  # without a cap, sums must still fit in 64 bits
MOST_DELTA = ATTO  # a delta of 1 promises nothing, so there is nothing more to lose


@dataclass(frozen=True)
class Loss:
    """A privacy loss in the accountant's units: billionths of epsilon or of rho, and 1e-18 of delta."""

    nano: int = 0
    atto_delta: int = 0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.nano + other.nano, self.atto_delta + other.atto_delta)

    @property
    def size(self) -> float:
        """The loss in epsilon or in rho."""
        return self.nano / NANO

    @property
    def delta(self) -> float:
        return self.atto_delta / ATTO


def price_of(size: Fraction, delta: Fraction) -> Loss:
    """A loss, rounded up. Raises BudgetError for one that is zero, negative or too large."""
    if not 0 < size <= Fraction(MOST_LOSS, NANO) or not 0 <= delta < 1:
        raise BudgetError(
            "budget-amount",
            "a privacy loss must be above 0, and its delta at least 0 and below 1",
            "charge the loss of the plan",
        )
    return Loss(math.ceil(size * NANO), math.ceil(delta * ATTO))


@dataclass(frozen=True)
class Cap:
    """An upper limit on losses, in billionths of epsilon (as declared) or of the accountant's unit; None: no
    cap.
    """

    nano: int | None = None
    atto_delta: int | None = None

    def holds(self, by: Loss) -> bool:
        """Whether both caps that are to be raised exist."""
        return not (by.nano and self.nano is None) and not (by.atto_delta and self.atto_delta is None)

    def raised(self, by: Loss) -> Cap:
        return Cap(
            None if self.nano is None else self.nano + by.nano,
            None if self.atto_delta is None else self.atto_delta + by.atto_delta,
        )

    def rest(self, spent: Loss) -> Cap:
        """What is left; nothing where a tightened policy allows less than is already spent."""
        return Cap(
            None if self.nano is None else max(self.nano - spent.nano, 0),
            None if self.atto_delta is None else max(self.atto_delta - spent.atto_delta, 0),
        )


NOTHING, UNCAPPED = Cap(0, 0), Cap()


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss for people: epsilon and delta, under zCDP also rho."""

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "no limit"
        counted = "" if self.rho is None else f" (rho {self.rho:g})"
        return (
            f"epsilon {self.epsilon:.6g}"
            + (f", delta {self.delta:g}" if 0 < self.delta < 1 else "")
            + counted
        )


def amount_of(cap: Cap) -> Amount:
    """A cap on epsilon; without one, infinity."""
    return Amount(
        math.inf if cap.nano is None else cap.nano / NANO,
        1.0 if cap.atto_delta is None else cap.atto_delta / ATTO,
    )
