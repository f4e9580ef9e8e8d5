"""What may be spent, what is spent and what is asked for go in, as exact integers; leave, or the reason why not, comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privsql.errors import BudgetError
from privsql.policy import EVERYONE, NANO, Policy, Share

ATTO = 10**18  # delta is counted in units of 1e-18: fine enough for any delta, and the whole fits 64 bits
MOST_EPSILON = 2**62  # where there is no cap: no sum may leave 64 bits
MOST_DELTA = ATTO  # a delta of 1 promises nothing, and no more than nothing can be given away


@dataclass(frozen=True)
class Loss:
    """Some privacy that is lost: whole nano-epsilons and atto-deltas."""

    nano_epsilon: int = 0
    atto_delta: int = 0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.nano_epsilon + other.nano_epsilon, self.atto_delta + other.atto_delta)

    @property
    def epsilon(self) -> float:
        return self.nano_epsilon / NANO

    @property
    def delta(self) -> float:
        return self.atto_delta / ATTO


def price_of(epsilon: Fraction, delta: Fraction) -> Loss:
    """A price, rounded up; what is no price (NaN, infinite, zero, negative) is refused."""
    for number in (epsilon, delta):
        if isinstance(number, bool) or not isinstance(number, (int, float, Fraction)) or not math.isfinite(number):
            raise BudgetError("budget-amount", "a loss must be a finite number", "charge what the plan says")
    if not 0 < epsilon <= Fraction(MOST_EPSILON, NANO) or not 0 <= delta < 1:
        raise BudgetError(
            "budget-amount", "a loss has an epsilon above 0 and a delta from 0 to below 1", "charge what the plan says"
        )
    return Loss(math.ceil(Fraction(epsilon) * NANO), math.ceil(Fraction(delta) * ATTO))


@dataclass(frozen=True)
class Cap:
    """The most that may be lost; None: no cap."""

    nano_epsilon: int | None = None
    atto_delta: int | None = None

    def holds(self, by: Loss) -> bool:
        """Whether there is a cap on all that is to be added to it."""
        return not (by.nano_epsilon and self.nano_epsilon is None) and not (by.atto_delta and self.atto_delta is None)

    def raised(self, by: Loss) -> Cap:
        return Cap(
            None if self.nano_epsilon is None else self.nano_epsilon + by.nano_epsilon,
            None if self.atto_delta is None else self.atto_delta + by.atto_delta,
        )


NOTHING = Cap(0, 0)


@dataclass(frozen=True)
class Caps:
    """The cap of the dataset, which is the guarantee; of each analyst, which is fairness; of one question."""

    dataset: Cap = Cap()
    query: int | None = None  # nano-epsilon
    analysts: Mapping[str, Cap] = field(default_factory=dict)  # none: no analyst has a cap

    def share(self, analyst: str) -> Cap:
        """Who is not listed where others are has what is left to everyone, or nothing."""
        if not self.analysts:
            return Cap()
        return self.analysts.get(analyst, self.analysts.get(EVERYONE, NOTHING))

    def to_json(self) -> dict[str, Any]:
        shares = {name: [cap.nano_epsilon, cap.atto_delta] for name, cap in self.analysts.items()}
        return {"dataset": [self.dataset.nano_epsilon, self.dataset.atto_delta], "query": self.query, "analysts": shares}

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Caps:
        shares = {name: Cap(*cap) for name, cap in raw["analysts"].items()}
        return Caps(Cap(*raw["dataset"]), raw["query"], shares)


def caps_of(
    epsilon: Fraction | None, delta: Fraction, per_query: Fraction | None = None, shares: Mapping[str, Share] | None = None
) -> Caps:
    """Caps rounded down. Without an epsilon the dataset has no cap on it, and on delta only one that was declared."""
    dataset = Cap(None if epsilon is None else _nano(epsilon), None if epsilon is None and not delta else _atto(delta))
    analysts = {
        name: Cap(_nano(share.epsilon), None if share.delta is None else _atto(share.delta))
        for name, share in (shares or {}).items()
    }
    return Caps(dataset, None if per_query is None else _nano(per_query), analysts)


def policy_caps(policy: Policy) -> Caps:
    return caps_of(policy.epsilon, policy.delta, policy.per_query, policy.analysts)


def renewal_of(epsilon: Fraction, delta: Fraction) -> Loss:
    """What is added to a cap, rounded down."""
    return Loss(_nano(epsilon), _atto(delta))


def _nano(epsilon: Fraction) -> int:
    return math.floor(epsilon * NANO)


def _atto(delta: Fraction) -> int:
    return math.floor(delta * ATTO)


def refuse_over(caps: Caps, analyst: str, spent: Loss, own: Loss, price: Loss) -> None:
    """Raises BudgetError where the price passes a cap. `spent`: by all; `own`: by this analyst."""
    share = caps.share(analyst)
    if share == NOTHING:
        raise BudgetError(
            "budget-analyst",
            f"the budget is shared out among analysts, and {analyst} is not one of them",
            "say who you are (analyst=, --analyst), or ask the owner of the data for a share",
        )
    if caps.query is not None and price.nano_epsilon > caps.query:
        most = caps.query / NANO
        raise BudgetError(
            "budget-query",
            f"this costs epsilon {price.epsilon:g}, and one question may cost {most:g}",
            f"ask with epsilon={most:g} or less",
        )
    _refuse("budget-exhausted", "epsilon", "", price.nano_epsilon, spent.nano_epsilon, caps.dataset.nano_epsilon,
            MOST_EPSILON, NANO)  # fmt: skip
    _refuse("budget-delta", "delta", "", price.atto_delta, spent.atto_delta, caps.dataset.atto_delta, MOST_DELTA, ATTO)
    whose = f" for {analyst}"
    _refuse("budget-analyst", "epsilon", whose, price.nano_epsilon, own.nano_epsilon, share.nano_epsilon, MOST_EPSILON, NANO)
    _refuse("budget-analyst", "delta", whose, price.atto_delta, own.atto_delta, share.atto_delta, MOST_DELTA, ATTO)


def _refuse(code: str, name: str, whose: str, price: int, spent: int, cap: int | None, most: int, unit: int) -> None:
    limit = most if cap is None else cap
    if price and spent + price > limit:
        left = max(limit - spent, 0) / unit  # a policy that was tightened may allow less than is spent
        ways_out = {"delta": "declare the keys, or ask the owner for delta"}
        raise BudgetError(
            code,
            f"this costs {name} {price / unit:g}, and {left:g} of {limit / unit:g} is left{whose}",
            f"ask with {name}={left:g} or less" if left > 0 else ways_out.get(name, "ask the owner of the data for more budget"),
        )


def held(opening: Caps, current: Caps, policy: Caps, analyst: str) -> Caps:
    """The caps that hold for a session whose policy may say otherwise than the ledger it is opened on.

    A policy may tighten a cap. It cannot raise one: that takes a renewal, which the ledger records.
    """
    shares = (opening.share(analyst), current.share(analyst), policy.share(analyst))
    dataset = (opening.dataset, current.dataset, policy.dataset)
    return Caps(
        _held_cap("the dataset", *dataset),
        _held_number("one question", opening.query, current.query, policy.query, NANO),
        {analyst: _held_cap(analyst, *shares)} if current.analysts or policy.analysts else {},
    )


def _held_cap(whose: str, opening: Cap, current: Cap, policy: Cap) -> Cap:
    return Cap(
        _held_number(whose, opening.nano_epsilon, current.nano_epsilon, policy.nano_epsilon, NANO),
        _held_number(whose, opening.atto_delta, current.atto_delta, policy.atto_delta, ATTO),
    )


def _held_number(whose: str, opening: int | None, current: int | None, policy: int | None, unit: int) -> int | None:
    if policy is None or policy == opening:
        return current
    if current is None or policy <= current:
        return policy
    raise BudgetError(
        "budget-caps",
        f"the policy allows {policy / unit:g} for {whose}, and the ledger {current / unit:g}",
        "a cap is raised by the owner, for the record: privsql ledger renew LEDGER --epsilon ... --reason ...",
    )


def renewed(caps: Caps, scope: str, analyst: str, by: Loss) -> Caps:
    """The caps after a renewal; a cap that is not there cannot be raised."""
    match scope:
        case "dataset" if caps.dataset.holds(by):
            return replace(caps, dataset=caps.dataset.raised(by))
        case "query" if caps.query is not None:
            return replace(caps, query=caps.query + by.nano_epsilon)
        case "analyst" if caps.analysts and caps.share(analyst).holds(by):
            return replace(caps, analysts={**caps.analysts, analyst: caps.share(analyst).raised(by)})
    raise BudgetError("budget-caps", "this ledger has no such cap, so there is nothing to raise",
                      "caps are set by the policy under which a ledger is opened first")  # fmt: skip
