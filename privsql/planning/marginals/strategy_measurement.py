"""Counts of kinds of rows, multiplied with a strategy, with Gaussian noise: noise and price in one object."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsql.planning.measurements.noised import LARGEST_SCALE, too_noisy
from privsql.privacy.gaussian import greatest_ratio, rounded_up
from privsql.privacy.marginals.residual_price import Neighbouring
from privsql.privacy.marginals.residual_variances import EXACT
from privsql.privacy.marginals.strategies import Fit, fit_of
from privsql.privacy.marginals.strategy_price import strategy_change
from privsql.tables import Integers

_ROUNDING = 1 / 12  # what rounding adds to the variance of a number


@dataclass(frozen=True, eq=False)
class StrategyMeasurement:
    """The product of a matrix of whole numbers with the counts, with rounded Gaussian noise on every number.

    Raises ValueError on construction if the noise does not cover what one unit can change at this epsilon and
    delta.
    """

    strategy: Integers
    variance: Fraction
    by: Neighbouring
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def ratio(self) -> Fraction:
        """The squared change that one unit can make, in deviations of the noise."""
        return strategy_change(self.strategy, self.variance, self.by)

    def __post_init__(self) -> None:
        if self.ratio > greatest_ratio(self.epsilon, self.delta) ** 2:
            raise ValueError("the noise does not cover the sensitivity")

    @cached_property
    def fit(self) -> Fit:
        """What is known of the counts."""
        return fit_of(self.strategy, float(self.variance) + _ROUNDING, self.by.total_is_public)


def measure_strategy(
    strategy: Integers, by: Neighbouring, epsilon: Fraction, delta: Fraction, share: Fraction
) -> StrategyMeasurement:
    """The noise of a strategy that may use this share of the squared ratio of (epsilon, delta)."""
    most = greatest_ratio(epsilon, delta) ** 2 * share * (1 - Fraction(1, 2**32))  # as prices are rounded up
    variance = max(EXACT, rounded_up(strategy_change(strategy, Fraction(1), by) / most))
    if variance > LARGEST_SCALE**2:
        raise too_noisy()
    return StrategyMeasurement(strategy, variance, by, epsilon, delta)
