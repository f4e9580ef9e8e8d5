"""What every accountant must do, whatever it counts: a suite to inherit from; and the truth that it is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privsql import BudgetError
from privsql.budget.accountants import Accountant
from privsql.budget.amount import Cap
from privsql.policy.checks import NANO
from privsql.privacy.events import Choice, Event, Gaussian, GaussianKeys, Keys, Laplace, Pure
from privsql.privacy.gaussian import greatest_ratio

DELTA = Fraction(1, 10**6)
ONE = Cap(NANO, 10**12)  # epsilon 1, delta 1e-6


def laplace(epsilon: Fraction, l1: int = 1, linf: int = 1) -> Laplace:
    return Laplace(epsilon, l1, linf, l1 / epsilon)


def gaussian(epsilon: Fraction, delta: Fraction = Fraction(1, 10**8)) -> Gaussian:
    """The least noise for that."""
    return Gaussian(epsilon, delta, greatest_ratio(epsilon, delta) ** 2)


PURE = [Pure(Fraction(1, 5)), Choice(Fraction(1, 3)), laplace(Fraction(1, 10)), laplace(Fraction(1, 7), 6, 3)]
OTHERS = [
    gaussian(Fraction(1, 4)), Keys(Fraction(1, 2), Fraction(1, 10**9), 4),
    GaussianKeys(Fraction(1, 2), Fraction(1, 10**8), Fraction(1, 200), Fraction(1, 10**10)),
]  # fmt: skip


# -- the truth -------------------------------------------------------------------------------------------------
def epsilon_at(delta: float, delta_above: Callable[[float], float], most: float = 200.0) -> float:
    """The epsilon at which a falling function reaches delta, from below."""
    low, high = 0.0, most
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta_above(middle) > delta else (low, middle)
    return low


def gaussian_truth(ratio: float, delta: float) -> float:
    """Of normal noise on what moves by sqrt(ratio) standard deviations (Balle, Wang 2018): no accountant can say less."""
    shift = math.sqrt(ratio)

    def above(epsilon: float) -> float:
        near, far = epsilon / shift - shift / 2.0, epsilon / shift + shift / 2.0
        return (math.erfc(near / math.sqrt(2.0)) - math.exp(epsilon) * math.erfc(far / math.sqrt(2.0))) / 2.0

    return epsilon_at(delta, above)


def coins_truth(rate: float, times: int, delta: float) -> float:
    """Of so many coins that are rate-private; discrete Laplace noise on a count that moves by 1 is one, since
    |x| - |x - 1| is 1 or -1 for whole x."""
    right = 1.0 / (1.0 + math.exp(-rate))

    def above(epsilon: float) -> float:
        return math.fsum(
            math.comb(times, wrong) * right ** (times - wrong) * (1.0 - right) ** wrong
            * max(0.0, -math.expm1(epsilon - rate * (times - 2 * wrong)))
            for wrong in range(times + 1)
        )  # fmt: skip

    return epsilon_at(delta, above)


def converted(rho: float, epsilon: float) -> float:
    """delta by the formula as it is printed, over many orders: inf of exp((a-1)(a rho - epsilon))/(a-1) (1-1/a)^a."""
    low, high = -12.0, 18.0
    for _ in range(4):
        points = np.linspace(low, high, 2001)
        above = np.exp(points)  # a - 1
        logs = above * ((1 + above) * rho - epsilon) - points - (1 + above) * np.log1p(1 / above)
        best = int(np.argmin(logs))
        low, high = points[max(best - 2, 0)], points[min(best + 2, 2000)]
    return float(np.exp(np.min(logs)))


# -- the suite -------------------------------------------------------------------------------------------------
class AccountantConformance:
    """Inherit, and define `lost` (comparable losses) and the epsilon of a loss at a delta."""

    events: Sequence[Event]
    tight = 1.5  # no worse than so many times the truth, for a hundred counts

    def loss(self, events: Sequence[Any]) -> tuple[float, ...]:
        raise NotImplementedError

    def epsilon(self, events: Sequence[Event], delta: Fraction) -> float:
        raise NotImplementedError

    def test_each_event_costs_something(self) -> None:
        for each in self.events:
            assert max(self.loss([each])) > 0

    def test_order_does_not_matter(self) -> None:
        there, back = self.loss(self.events), self.loss([*reversed(self.events)])
        assert there == pytest.approx(back, rel=1e-9)

    def test_loss_never_decreases(self) -> None:
        for number in range(1, len(self.events) + 1):
            less, more = (
                self.loss(self.events[: number - 1] or self.events[:1]),
                self.loss(self.events[:number]),
            )
            assert all(before <= after for before, after in zip(less, more, strict=True))
            assert number == 1 or less != more

    def test_unknown_events_are_refused(self) -> None:
        class Other(Pure):
            """Looks like an event, and says what it likes."""

            epsilon = Fraction(1, 10**9)  # type: ignore[assignment]

        for unknown in (None, 1, "Pure", Fraction(1), Pure, object.__new__(Other)):
            with pytest.raises(BudgetError) as caught:
                self.loss([self.events[0], unknown])
            assert caught.value.code == "budget-event"
        with pytest.raises(BudgetError) as caught:
            self.loss([])
        assert caught.value.code == "budget-amount"

    @pytest.mark.parametrize("times", [1, 2, 10, 100])
    @pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)])
    def test_laplace_noise_costs_no_less_than_the_truth(self, rate: Fraction, times: int) -> None:
        truth = coins_truth(float(rate), times, float(DELTA))
        assert truth <= self.epsilon([laplace(rate)] * times, DELTA) * (1.0 + 1e-9)
        spread = [laplace(2 * rate, 2)] * max(1, times // 2)  # two counts that move by 1 each
        assert coins_truth(float(rate), 2 * len(spread), float(DELTA)) <= self.epsilon(spread, DELTA) * (
            1.0 + 1e-9
        )

    @pytest.mark.parametrize("times", [1, 7, 100])
    @pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1, 10), Fraction(1)])
    def test_gaussian_noise_costs_no_less_than_the_truth(self, epsilon: Fraction, times: int) -> None:
        event = gaussian(epsilon)
        if not any(isinstance(each, Gaussian) for each in self.events):
            assert self.loss([event])[1] > 0  # a delta, which no pure budget allows
            return
        truth = gaussian_truth(times * float(event.ratio), float(DELTA))
        assert truth <= self.epsilon([event] * times, DELTA) * (1.0 + 1e-9)

    def test_and_not_much_more(self) -> None:
        truth, found = (
            coins_truth(0.1, 100, float(DELTA)),
            self.epsilon([laplace(Fraction(1, 10))] * 100, DELTA),
        )
        assert truth <= found <= self.tight * truth


class ExactConformance(AccountantConformance):
    """Of those that count in whole numbers."""

    accountant: Accountant

    def loss(self, events: Sequence[Any]) -> tuple[float, ...]:
        found = self.accountant.price(events)
        return found.nano, found.atto_delta

    @pytest.mark.parametrize("times", [2, 3, 10, 1000])
    def test_a_multiplicity_equals_repeated_composition(self, times: int) -> None:
        """Up to rounding, which is upwards: together, or one at a time."""
        for event in self.events:
            for once, together in zip(self.loss([event]), self.loss([event] * times), strict=True):
                assert times * (once - 1) < together <= times * once or once == together == 0

    def test_nothing_is_rounded_away(self) -> None:
        """A tiny event costs one of the smallest coins, never none."""
        assert self.loss([Pure(Fraction(1, 10**12))]) == (1, 0)
        assert self.loss([laplace(Fraction(1, 10**9), 1)])[0] == 1
