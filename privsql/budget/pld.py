"""The events of a batch that was fixed in advance, and a delta, go in; the epsilon of all of them together
comes out.

It is computed by privacy loss distributions, through dp-accounting (an extra), and is tighter than sums of
epsilon or rho. It is information only. No charge uses it, because it holds only for a batch in which no query
depends on an answer, and because it computes in floats. Every distribution dominates that of its event
(docs/accounting.md):
- Laplace noise on integers, none of which moves by more than 1: at most l1 of them move, and each, a
  discrete Laplace variable moved by 1, has the two losses +-1/scale of a coin that is (1/scale)-private;
- Gaussian noise: the normal law moved by sqrt(ratio), of which rounding is post-processing;
- keys: as many independent (epsilon/changes, delta/changes)-private choices as may change;
- anything else: the worst mechanism that is (epsilon, delta)-private (Kairouz, Oh, Viswanath 2015).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from privsql.budget.accountants import Addition, Zcdp
from privsql.budget.amount import Amount
from privsql.errors import ArgumentError
from privsql.policy.checks import NANO
from privsql.privacy.bounds import root_bounds
from privsql.privacy.events import Choice, Event, Gaussian, Keys, Laplace, Pure
from privsql.privacy.zcdp import least_epsilon

Piece = tuple[Fraction, Fraction, Fraction]
"""epsilon and delta of the worst such mechanism, or (where it is not 0) the ratio of a Gaussian one."""


def batch_loss(events: Sequence[Event], delta: Fraction) -> Amount:
    """The least epsilon known at this delta, by privacy loss distributions or by an accountant."""
    Addition().price(events)  # raises for events without a rule
    if not 0 < delta < 1:
        raise ArgumentError(
            "argument-delta", "pricing a batch needs a delta above 0 and below 1", "delta=1e-6"
        )
    known = [by_distributions(events, delta), by_addition(events, delta), by_zcdp(events, delta)]
    return Amount(min(known), float(delta))


def by_addition(events: Sequence[Event], delta: Fraction) -> float:
    lost = sum((each.delta for each in events), Fraction(0))
    return float(sum((each.epsilon for each in events), Fraction(0))) if lost <= delta else math.inf


def by_zcdp(events: Sequence[Event], delta: Fraction) -> float:
    spent = Zcdp().price(events)
    rest = delta - Fraction(spent.delta)
    return float(least_epsilon(Fraction(spent.nano, NANO), rest)) if rest > 0 else math.inf


def by_distributions(events: Sequence[Event], delta: Fraction) -> float:
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError:
        raise ArgumentError(
            "argument-extra",
            "privacy loss distributions need the package dp-accounting",
            "pip install 'privsql[pld]'",
        ) from None

    def made(epsilon: Fraction, lost: Fraction, ratio: Fraction) -> Any:
        if ratio:
            return distributions.from_gaussian_mechanism(1.0 / _up(root_bounds(ratio)[1]) * (1.0 - 1e-12))
        return distributions.from_privacy_parameters(
            common.DifferentialPrivacyParameters(_up(epsilon), _up(lost))
        )

    composed = None
    for (epsilon, lost, ratio), times in Counter(piece for each in events for piece in _pieces(each)).items():
        many = made(epsilon, lost, ratio).self_compose(times)
        composed = many if composed is None else composed.compose(many)
    assert composed is not None
    return float(composed.get_epsilon_for_delta(float(delta)))


def _pieces(event: Event) -> Iterator[Piece]:
    nothing = Fraction(0)
    match event:
        case Gaussian():
            yield nothing, nothing, Fraction(event.ratio)
        case Laplace() if event.linf == 1:
            yield from [(1 / Fraction(event.scale), nothing, nothing)] * event.l1
        case Keys():
            yield from [
                (Fraction(event.epsilon) / event.changes, Fraction(event.delta) / event.changes, nothing)
            ] * event.changes
        case Pure() | Choice():
            yield from [(Fraction(event.epsilon) / event.parts, nothing, nothing)] * event.parts
        case _:
            yield Fraction(event.epsilon), Fraction(event.delta), nothing


def _up(number: Fraction) -> float:
    near = float(number)
    return near if near >= number else math.nextafter(near, math.inf)
