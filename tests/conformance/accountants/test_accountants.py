"""Every accountant: what it counts is never less than the truth. A new accountant is one more class here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privsql.budget.accountants import Addition, Zcdp
from privsql.budget.amount import ATTO, Cap
from privsql.policy.checks import NANO
from privsql.privacy.events import Choice, Event, Gaussian, Keys
from tests.budget.refusals import refusal
from tests.conformance.accountants.accountant_suite import (
    DELTA,
    OTHERS,
    PURE,
    AccountantConformance,
    ExactConformance,
    coins_truth,
    gaussian,
    laplace,
)


class TestPure(ExactConformance):
    accountant, events, tight = Addition(), PURE, 2.2

    def epsilon(self, events: Sequence[Event], delta: Fraction) -> float:
        return self.accountant.price(events).size


class TestApproximate(ExactConformance):
    accountant, events, tight = Addition(), [*PURE, *OTHERS], 2.2

    def epsilon(self, events: Sequence[Event], delta: Fraction) -> float:
        """If the deltas add up to more than requested, there is no such epsilon."""
        spent = self.accountant.price(events)
        return spent.size if spent.delta <= delta else math.inf


class TestZcdp(ExactConformance):
    accountant, events, tight = Zcdp(Fraction(0)), [*PURE, *OTHERS], 1.1

    def epsilon(self, events: Sequence[Event], delta: Fraction) -> float:
        spent = self.accountant.price(events)
        return self.accountant.stands_for(
            spent, Cap(NANO, math.floor(delta * ATTO) - spent.atto_delta)
        ).epsilon


class TestDistributions(AccountantConformance):
    """dp-accounting, as it is used here; it is trusted as far as this goes."""

    events, tight = [*PURE, *OTHERS], 1.001

    @pytest.fixture(autouse=True)
    def extra(self) -> None:
        pytest.importorskip("dp_accounting")

    def loss(self, events: Sequence[Any]) -> tuple[float, ...]:
        from privsql.budget.pld import batch_loss

        return (batch_loss(events, DELTA).epsilon,)

    def epsilon(self, events: Sequence[Event], delta: Fraction) -> float:
        from privsql.budget.pld import by_distributions

        return by_distributions(events, delta)

    @pytest.mark.parametrize("event", [*PURE, *OTHERS], ids=lambda each: type(each).__name__)
    def test_a_multiplicity_equals_that_many_compositions(self, event: Event) -> None:
        """Of a few, no more than by addition; of Gaussian noise, what noise of less variance costs."""
        for times in (2, 5):
            assert self.epsilon([event] * times, DELTA) <= times * self.epsilon([event], DELTA / times) * 1.01
        noise = gaussian(Fraction(1, 10))
        joint = Gaussian(Fraction(3), Fraction(1, 100), 100 * noise.ratio)
        assert self.epsilon([noise] * 100, DELTA) == pytest.approx(self.epsilon([joint], DELTA), rel=0.01)

    def test_a_batch_costs_the_least_known_bound(self) -> None:
        from privsql.budget.pld import batch_loss, by_addition, by_zcdp

        batches = (
            [laplace(Fraction(1, 10))],
            [laplace(Fraction(1, 10))] * 50,
            OTHERS,
            [Choice(Fraction(1, 10))] * 100,
        )
        for events in batches:
            known = [way(events, DELTA) for way in (self.epsilon, by_addition, by_zcdp)]
            assert batch_loss(events, DELTA).epsilon == min(known)
        assert refusal(batch_loss, PURE, Fraction(0)).code == "argument-delta"


def test_two_accountants_agree_with_distributions():
    """The worst that keys may do, as dp-accounting composes it: rho and delta say no less."""
    pytest.importorskip("dp_accounting")
    from privsql.budget.pld import by_distributions, by_zcdp

    for keys, times in itertools.product(
        (Keys(Fraction(1, 5), Fraction(1, 10**9), n) for n in (1, 2, 6)), (1, 20, 100)
    ):
        assert by_distributions([keys] * times, DELTA) <= by_zcdp([keys] * times, DELTA) * (1 + 1e-6)


def test_coins_are_equivalent_to_discrete_laplace_noise_on_a_count():
    """The truth that accountants are held to, by summing over all whole numbers."""
    rate, reach = 0.7, np.arange(-200, 201)
    laws = [np.exp(-rate * np.abs(reach - by)) * math.tanh(rate / 2) for by in (0, 1)]
    for epsilon in (0.0, 0.2, 0.6):
        delta = float(np.sum(np.maximum(0, laws[0] - math.exp(epsilon) * laws[1])))
        assert coins_truth(rate, 1, delta) == pytest.approx(epsilon, abs=1e-9)
