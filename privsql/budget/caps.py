"""Caps, losses so far and a price go in, as exact integers; permission comes out, or a refusal with its
reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privsql.budget.accountants import ADDITION, Accountant, Zcdp, accountant_of
from privsql.budget.amount import ATTO, MOST_DELTA, MOST_LOSS, NOTHING, UNCAPPED, Cap, Loss
from privsql.errors import BudgetError
from privsql.neighbours import Accounting
from privsql.policy import Policy, Share
from privsql.policy.checks import EVERYONE, MAX_FAILURES, NANO
from privsql.privacy.events import Event
from privsql.suggestions import Argument, Way


@dataclass(frozen=True)
class CountedCaps:
    """The caps on one analyst's charges in the accountant's units: epsilon or rho, and delta."""

    dataset: Cap
    query: int | None
    share: Cap


@dataclass(frozen=True)
class Caps:
    """The cap of the dataset, which is the guarantee; of each analyst, which is fairness; of one query.

    All are as declared, in epsilon and delta; `accountant` converts them to sums. `named`: the accountant, if
    the policy names one.
    """

    dataset: Cap = UNCAPPED
    query: int | None = None  # nano-epsilon
    analysts: Mapping[str, Cap] = field(default_factory=dict)  # empty: no analyst has a cap
    least: int | None = None  # the least nano-epsilon that one query must cost
    failures: int | None = None  # the limit for one analyst; None: the default
    accountant: Accountant = ADDITION
    named: Accounting | None = None

    @property
    def most_failures(self) -> int:
        return MAX_FAILURES if self.failures is None else self.failures

    def share(self, analyst: str) -> Cap:
        """The cap of an analyst. One who is not listed gets everyone's share, or nothing if there is none."""
        if not self.analysts:
            return UNCAPPED
        return self.analysts.get(analyst, self.analysts.get(EVERYONE, NOTHING))

    def limits(self, analyst: str) -> CountedCaps:
        share, count = self.share(analyst), self.accountant
        return CountedCaps(
            count.limit(self.dataset),
            count.part(Cap(self.query), self.dataset).nano,
            share if share == NOTHING else count.part(share, self.dataset),
        )

    @property
    def accounting(self) -> Accounting:
        """Addition is pure as long as no delta is allowed."""
        if isinstance(self.accountant, Zcdp):
            return Accounting.ZCDP
        return Accounting.PURE if self.dataset.atto_delta == 0 else Accounting.APPROXIMATE

    def to_json(self) -> dict[str, Any]:
        shares = {name: [cap.nano, cap.atto_delta] for name, cap in self.analysts.items()}
        counted = {"accountant": self.accounting.value, **self.accountant.to_json()}
        fuse = {"least": self.least, "failures": self.failures}
        return {
            "dataset": [self.dataset.nano, self.dataset.atto_delta],
            "query": self.query,
            "analysts": shares,
            **fuse,
            **counted,
        }

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Caps:
        """Caps from JSON. Format 1 had no accountant: losses added up. Formats 1 and 2 had no fuse: the
        default applies.
        """
        shares = {name: Cap(*cap) for name, cap in raw["analysts"].items()}
        zcdp = Accounting(raw.get("accountant", Accounting.PURE)) is Accounting.ZCDP
        accountant = Zcdp(Fraction(raw["for_keys"])) if zcdp else ADDITION
        return Caps(
            Cap(*raw["dataset"]), raw["query"], shares, raw.get("least"), raw.get("failures"), accountant
        )


def caps_of(
    epsilon: Fraction | None,
    delta: Fraction,
    per_query: Fraction | None = None,
    shares: Mapping[str, Share] | None = None,
    accountant: Accountant | None = None,
    named: Accounting | None = None,
) -> Caps:
    """Caps, rounded down. Without an epsilon the dataset has no cap on epsilon, and only a declared cap on
    delta.
    """
    open_delta = epsilon is None and not delta and named is not Accounting.PURE
    dataset = Cap(None if epsilon is None else _nano(epsilon), None if open_delta else _atto(delta))
    analysts = {
        name: Cap(_nano(share.epsilon), None if share.delta is None else _atto(share.delta))
        for name, share in (shares or {}).items()
    }
    query = None if per_query is None else _nano(per_query)
    return Caps(dataset, query, analysts, accountant=accountant or ADDITION, named=named)


def policy_caps(policy: Policy) -> Caps:
    caps = caps_of(
        policy.epsilon,
        policy.delta,
        policy.per_query,
        policy.analysts,
        accountant_of(policy),
        policy.accountant,
    )
    least = None if policy.per_query_least is None else math.ceil(policy.per_query_least * NANO)
    return replace(caps, least=least, failures=policy.max_failures)


def renewal_of(epsilon: Fraction, delta: Fraction) -> Loss:
    """The amount to add to a cap, rounded down."""
    return Loss(_nano(epsilon), _atto(delta))


def _nano(epsilon: Fraction) -> int:
    return math.floor(epsilon * NANO)


def _atto(delta: Fraction) -> int:
    return math.floor(delta * ATTO)


@dataclass(frozen=True)
class Standing:
    """What is spent before a query: by all analysts, and by this one."""

    analyst: str
    spent: Loss
    own: Loss

    def after(self, price: Loss) -> Standing:
        return replace(self, spent=self.spent + price, own=self.own + price)


def prices_of(
    caps: Caps, accountant: Accountant, standing: Standing, queries: Sequence[Sequence[Event]]
) -> list[Loss]:
    """Price each query by its events. Raises BudgetError if the budget does not allow one of them after the
    ones before it.
    """
    prices: list[Loss] = []
    for events in queries:
        price = accountant.price(events)
        refuse_below(caps, events)
        refuse_over(caps, standing, price)
        standing = standing.after(price)
        prices.append(price)
    return prices


def refuse_together(
    caps: Caps, accountant: Accountant, standing: Standing, queries: Sequence[Sequence[Event]]
) -> None:
    """Raise BudgetError if the budget does not allow one call that needs all these queries."""
    price = accountant.price([event for events in queries for event in events])
    for events in queries:
        refuse_below(caps, events)
    refuse_over(caps, standing, price)


def refuse_over(caps: Caps, standing: Standing, price: Loss) -> None:
    """Raise BudgetError if this price exceeds a cap."""
    analyst, spent, own = standing.analyst, standing.spent, standing.own
    limits, unit = caps.limits(analyst), caps.accountant.unit
    if limits.share == NOTHING:
        raise BudgetError(
            "budget-analyst",
            f"the budget is divided among analysts, and {analyst} has no share",
            [("name yourself: ", Argument("analyst")), ("ask the data owner for a share",)],
        )
    if limits.query is not None and price.nano > limits.query:
        most = limits.query / NANO
        raise BudgetError(
            "budget-query",
            f"this costs {unit} {price.size:g}, but one query may cost at most {most:g}",
            _ask_for(unit, most),
        )
    _refuse("budget-exhausted", unit, "", price.nano, spent.nano, limits.dataset.nano, MOST_LOSS, NANO)
    _refuse(
        "budget-delta",
        "delta",
        "",
        price.atto_delta,
        spent.atto_delta,
        limits.dataset.atto_delta,
        MOST_DELTA,
        ATTO,
    )
    whose = f" for {analyst}"
    _refuse("budget-analyst", unit, whose, price.nano, own.nano, limits.share.nano, MOST_LOSS, NANO)
    _refuse(
        "budget-analyst",
        "delta",
        whose,
        price.atto_delta,
        own.atto_delta,
        limits.share.atto_delta,
        MOST_DELTA,
        ATTO,
    )


def _refuse(
    code: str, name: str, whose: str, price: int, spent: int, cap: int | None, most: int, unit: int
) -> None:
    limit = most if cap is None else cap
    if price and spent + price > limit:
        left = max(limit - spent, 0) / unit  # a tightened policy may allow less than is already spent
        ways_out = {"delta": "declare the keys, or ask the data owner for more delta"}
        raise BudgetError(
            code,
            f"this costs {name} {price / unit:g}, but only {left:g} of {limit / unit:g} is left{whose}",
            _ask_for(name, left) if left > 0 else ways_out.get(name, "ask the data owner for more budget"),
        )


def refuse_below(caps: Caps, events: Sequence[Event]) -> None:
    """Raise BudgetError if a query costs less than the policy's minimum.

    The minimum is in epsilon, whichever unit the accountant adds up, so it depends on the query text alone.
    """
    if caps.least is not None and sum((each.epsilon for each in events), Fraction(0)) * NANO < caps.least:
        least = caps.least / NANO
        raise BudgetError(
            "budget-least",
            f"this costs less than epsilon {least:g}, the least that the policy lets a query cost: "
            "a query that fails may tell about the data, so it must have cost something",
            [
                (
                    "ask with ",
                    Argument("epsilon", f"{least:g}"),
                    " or more; each query of a batch and each search for a range must cost that much",
                )
            ],
        )


def _ask_for(name: str, most: float) -> str | list[Way]:
    if name == "rho":
        return f"ask with a smaller epsilon, for rho {most:g} or less"
    return [("ask with ", Argument(name, f"{most:g}"), " or less")]


def held(opening: Caps, current: Caps, policy: Caps, analyst: str) -> Caps:
    """The caps of a session whose policy may differ from its ledger.

    A policy may tighten a cap. It cannot raise one: that takes a renewal, which the ledger records. It cannot
    change the accountant either.
    """
    _same_accountant(current, policy)
    shares = (opening.share(analyst), current.share(analyst), policy.share(analyst))
    dataset = (opening.dataset, current.dataset, policy.dataset)
    return Caps(
        _held_cap("the dataset", *dataset),
        _held_number("one query", opening.query, current.query, policy.query, NANO),
        {analyst: _held_cap(analyst, *shares)} if current.analysts or policy.analysts else {},
        _held_least(current.least, policy.least),
        _held_failures(current, policy),
        current.accountant,
    )


def _same_accountant(ledger: Caps, policy: Caps) -> None:
    """Raise BudgetError if the accountants differ: a sum of rho says nothing about a sum of epsilon. A policy
    that names no accountant gets one that adds up epsilon.
    """
    if ledger.accountant == policy.accountant and policy.named in (None, ledger.accounting):
        return
    said, kept = (policy.named or policy.accounting).value, ledger.accounting.value
    other = (
        f"{kept}, but the policy says {said}"
        if said != kept
        else f"{kept}, with a different share of delta for keys"
    )
    raise BudgetError(
        "budget-accountant",
        f"the accountant of this ledger is {other}",
        f'write accountant = "{kept}" under [budget], or start a new ledger: '
        "the losses of two ledgers add up",
    )


def _held_cap(whose: str, opening: Cap, current: Cap, policy: Cap) -> Cap:
    return Cap(
        _held_number(whose, opening.nano, current.nano, policy.nano, NANO),
        _held_number(whose, opening.atto_delta, current.atto_delta, policy.atto_delta, ATTO),
    )


def _held_number(
    whose: str, opening: int | None, current: int | None, policy: int | None, unit: int
) -> int | None:
    if policy is None or policy == opening:
        return current
    if current is None or policy <= current:
        return policy
    raise BudgetError(
        "budget-caps",
        f"the policy allows {policy / unit:g} for {whose}, but the ledger only {current / unit:g}",
        "the data owner raises a cap, and the ledger records it: "
        "privsql ledger renew LEDGER --epsilon ... --reason ...",
    )


def _held_least(current: int | None, policy: int | None) -> int | None:
    if policy is None or current is None or policy >= current:
        return current if policy is None else policy
    raise BudgetError(
        "budget-caps",
        f"the policy lets a query cost as little as epsilon {policy / NANO:g}, "
        f"but the ledger no less than {current / NANO:g}",
        f"write per_query_least = {current / NANO:g} under [budget], or leave it out",
    )


def _held_failures(current: Caps, policy: Caps) -> int:
    if policy.failures is None or policy.failures <= current.most_failures:
        return current.most_failures if policy.failures is None else policy.failures
    raise BudgetError(
        "budget-caps",
        f"the policy allows {policy.failures} failures, but the ledger only {current.most_failures}",
        f"write max_failures = {current.most_failures} under [budget], or leave it out; "
        "to let an analyst go on, the data owner runs privsql ledger renew LEDGER --failures",
    )


def renewed(caps: Caps, scope: str, analyst: str, by: Loss) -> Caps:
    """The caps after a renewal. Raises BudgetError if the ledger has no cap to raise."""
    match scope:
        case "dataset" if caps.dataset.holds(by):
            return replace(caps, dataset=caps.dataset.raised(by))
        case "query" if caps.query is not None:
            return replace(caps, query=caps.query + by.nano)
        case "analyst" if caps.analysts and caps.share(analyst).holds(by):
            return replace(caps, analysts={**caps.analysts, analyst: caps.share(analyst).raised(by)})
    raise BudgetError(
        "budget-caps",
        "this ledger has no such cap, so there is nothing to raise",
        "set caps in the policy with which you create the ledger",
    )
