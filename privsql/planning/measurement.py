"""Price and noise in one object: a Measurement cannot be made whose noise does not cover its sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from privsql.errors import ArgumentError
from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.gaussian import half_width as gaussian_half_width
from privsql.privacy.key_selection import (
    Contribution,
    GaussianThreshold,
    KeyRelease,
    OptimalSelection,
    best,
    optimal_selection,
)
from privsql.privacy.sensitivity import Sensitivity

LARGEST_SCALE = 2**52  # noise of a larger scale would not fit 64 bits


class Mechanism(StrEnum):
    """How exact becomes noisy."""

    LAPLACE = "discrete Laplace"
    CHOICE_EXPONENTIAL = "report-noisy-max, exponential noise"
    CHOICE_LAPLACE = "report-noisy-max, Laplace noise"
    CHOICE_GUMBEL = "report-noisy-max, Gumbel noise (exponential mechanism)"
    KEYS_GEOMETRIC = "truncated geometric noise, shown above a threshold"
    KEYS_GAUSSIAN = "discrete Gaussian noise, shown above a threshold"
    KEYS_CHOSEN = "keys shown by chance, the likelier the more units they have"

    @property
    def chooses(self) -> bool:
        return self in (Mechanism.CHOICE_EXPONENTIAL, Mechanism.CHOICE_LAPLACE, Mechanism.CHOICE_GUMBEL)


@dataclass(frozen=True)
class Measurement:
    """Some integer columns of the exact result, the noise they get, and what that costs.

    `loss` is the epsilon of this measurement, exactly; `noise_scale` the scale of its noise, in the columns' units.
    """

    columns: tuple[str, ...]
    mechanism: Mechanism
    sensitivity: Sensitivity
    loss: Fraction
    noise_scale: Fraction
    what: str
    key_release: KeyRelease | None = None  # how keys that nobody declared are let out, with this measurement

    def __post_init__(self) -> None:
        if self.noise_scale <= 0 or self.loss <= 0 or self.sensitivity.l1 <= 0:
            raise ValueError("noise of scale zero cannot be made")
        if self.key_release is not None:
            touched = self.key_release.contribution
            if self.key_release.epsilon > self.loss or touched.rows < self.sensitivity.linf:
                raise ValueError("the release of keys does not cover the sensitivity")
            if touched.changes * touched.rows < self.sensitivity.l1:
                raise ValueError("the release of keys does not cover the sensitivity")
        elif self.noise_scale * self.loss < needed(self.mechanism, self.sensitivity):
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def rate(self) -> Fraction:
        """P(noise = x) ~ exp(-rate |x|)."""
        return 1 / self.noise_scale

    def half_width(self, level: float) -> int:
        """The noise of one cell stays within this so surely."""
        if isinstance(self.key_release, GaussianThreshold):
            return gaussian_half_width(self.key_release.variance, level)
        return laplace_half_width(float(self.rate), level)

    @property
    def delta_loss(self) -> Fraction:
        return self.key_release.delta if self.key_release is not None else Fraction(0)

    # What people read: plain numbers.
    @property
    def l1(self) -> int:
        return self.sensitivity.l1

    @property
    def linf(self) -> int:
        return self.sensitivity.linf

    @property
    def why(self) -> str:
        return self.sensitivity.why

    @property
    def scale(self) -> float:
        return float(self.noise_scale)

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def delta(self) -> float:
        return float(self.delta_loss)

    def to_dict(self) -> dict[str, object]:
        return {
            "columns": list(self.columns), "mechanism": self.mechanism.value, "l1": self.l1, "linf": self.linf,
            "scale": self.scale, "epsilon": self.epsilon, "delta": self.delta, "why": self.why, "what": self.what,
        }  # fmt: skip


def needed(mechanism: Mechanism, sensitivity: Sensitivity) -> int:
    """What epsilon times the scale must reach: l1 for Laplace, linf or twice that for a choice."""
    if mechanism.chooses:
        return sensitivity.linf * choice_factor(mechanism, sensitivity)
    return sensitivity.l1


def choice_factor(mechanism: Mechanism, sensitivity: Sensitivity) -> int:
    """Scores that all move the same way move the winner's lead half as far."""
    return 1 if sensitivity.monotone else 2


def measure(
    columns: tuple[str, ...], mechanism: Mechanism, sensitivity: Sensitivity, loss: Fraction, what: str
) -> Measurement:
    """The least noise that covers the sensitivity at this price."""
    scale = Fraction(needed(mechanism, sensitivity)) / loss
    if scale > LARGEST_SCALE:
        raise ArgumentError(
            "argument-epsilon",
            "at this epsilon the noise would be larger than 64-bit numbers can hold",
            "use a larger epsilon, fewer outputs, or declare a narrower range",
        )
    return Measurement(columns, mechanism, sensitivity, loss, scale, what)


def measure_keys(
    columns: tuple[str, ...], sensitivity: Sensitivity, touched: Contribution, loss: Fraction, delta: Fraction,
    min_units: int, counted: bool, what: str,
) -> Measurement:  # fmt: skip
    """A release of keys that nobody declared: with their counts, or (`counted` false) by themselves."""
    try:
        release: KeyRelease = (_best if counted else optimal_selection)(loss, delta, touched, min_units)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "at this epsilon and delta keys that nobody declared cannot be shown",
            "use a delta below epsilon / 2, such as 1e-6, and a larger epsilon",
        ) from None
    scale = Fraction(touched.changes * touched.rows) / loss
    match release:
        case GaussianThreshold():
            mechanism, scale = Mechanism.KEYS_GAUSSIAN, Fraction(math.isqrt(math.ceil(release.variance)) + 1)
        case OptimalSelection():
            mechanism = Mechanism.KEYS_CHOSEN
        case _:
            mechanism = Mechanism.KEYS_GEOMETRIC
    return Measurement(columns, mechanism, sensitivity, loss, scale, what, release)


_best = lru_cache(maxsize=64)(best)  # a search that takes some milliseconds
