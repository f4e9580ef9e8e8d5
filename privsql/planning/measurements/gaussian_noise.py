"""Columns with Gaussian noise, which share one release at an epsilon and a delta with other measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privsql.errors import ArgumentError
from privsql.planning.measurements.noised import LARGEST_SCALE, Mechanism, Noised, in_words, too_noisy
from privsql.privacy.accuracy import GaussianLaw, Law
from privsql.privacy.events import Gaussian
from privsql.privacy.gaussian import least_variance, rounded_up
from privsql.privacy.sensitivity import Sensitivity
from privsql.suggestions import Argument


@dataclass(frozen=True)
class GaussianShare:
    """A part of one Gaussian release of several measurements with squared l2-sensitivities s and variances v
    = s V / share, where V covers a sensitivity of 1 at (epsilon, delta). Divided by sqrt(v), all their cells
    together move, squared, by at most sum of s / v = sum of shares / V <= 1 / V. So it is one release at that
    price (docs/proofs.md).
    """

    epsilon: Fraction
    delta: Fraction
    share: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.variance <= 0:
            raise ValueError("a share is a part of the whole, and its noise has a variance")

    def covers(self, l2_squared: int) -> bool:
        return self.variance * self.share >= l2_squared * least_variance(1, self.epsilon, self.delta)


@dataclass(frozen=True)
class GaussianMeasurement(Noised):
    """Gaussian noise on every cell, rounded to integers. Only all measurements of its release together have a
    price.
    """

    joint: GaussianShare

    def _check(self) -> None:
        paid = self.loss >= self.joint.share * self.joint.epsilon
        if not paid or not self.joint.covers(self.sensitivity.l2_squared):
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def mechanism(self) -> Mechanism:
        return Mechanism.GAUSSIAN

    @property
    def noise_scale(self) -> Fraction:
        """The standard deviation, rounded up."""
        return Fraction(math.isqrt(math.ceil(self.joint.variance * 2**40)) + 1, 2**20)

    @property
    def law(self) -> Law:
        return GaussianLaw(self.joint.variance)

    @property
    def continuous_variance(self) -> float:
        return float(self.joint.variance)

    @property
    def delta_loss(self) -> Fraction:
        return self.joint.share * self.joint.delta

    @property
    def l2(self) -> float:
        return math.sqrt(self.sensitivity.l2_squared)

    def explanation(self) -> tuple[str, ...]:
        joint, step = self.joint, self.step
        part = "" if joint.share == 1 else f" / {float(joint.share):.4g} (its share of the joint release)"
        unit = float(unit_variance(joint.epsilon, joint.delta)) ** 0.5
        sets = self.sensitivity.squares is not None
        how = "the sum of l1 * linf over the sets = " if sets else "l1 * linf = "
        squared = f", l2^2 = {how}{in_words(self.sensitivity.l2_squared * step**2)}"
        deviation = f"{float(self.noise_scale * step):,.6g}"
        return (
            self.explained_bounds(squared),
            f"{self.mechanism.value}, variance = l2^2 * {unit:,.5g}^2{part} = {deviation}^2; "
            f"{unit:,.5g} is the standard deviation for an l2-sensitivity of 1 "
            f"at epsilon {float(joint.epsilon):g}, delta {float(joint.delta):g}",
            f"each cell of these columns is within {self.explained_width()} at 95%; {self.other}",
        )


def measure_gaussian(
    columns: tuple[str, ...],
    sensitivity: Sensitivity,
    epsilon: Fraction,
    delta: Fraction,
    share: Fraction,
    what: str,
) -> GaussianMeasurement:
    """Measure with a share of one Gaussian release at (epsilon, delta)."""
    variance = rounded_up(sensitivity.l2_squared * unit_variance(epsilon, delta) / share)
    if variance > LARGEST_SCALE**2:
        raise too_noisy()
    joint = GaussianShare(epsilon, delta, share, variance)
    return GaussianMeasurement(columns, sensitivity, share * epsilon, what, joint)


def unit_variance(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The variance for an l2-sensitivity of 1. Raises ArgumentError if there is none for this epsilon and
    delta.
    """
    try:
        return least_variance(1, epsilon, delta)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "no Gaussian noise satisfies this epsilon and delta",
            [("use a larger epsilon or delta",), (Argument("mechanism", '"laplace"'),)],
        ) from None


def gaussian_event(measurements: Sequence[GaussianMeasurement]) -> Gaussian:
    """The event charged for measurements that share one release."""
    (epsilon, delta), *others = {(each.joint.epsilon, each.joint.delta) for each in measurements}
    assert not others, "measurements of several releases"
    parts = (each.sensitivity.l2_squared / each.joint.variance for each in measurements)
    return Gaussian(epsilon, delta, sum(parts, Fraction(0)))
