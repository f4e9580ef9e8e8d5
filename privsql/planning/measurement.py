"""Price and noise in one object: a Measurement cannot be made whose noise does not cover its sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from privsql.errors import ArgumentError
from privsql.privacy.sensitivity import Sensitivity

LARGEST_SCALE = 2**52  # noise of a larger scale would not fit 64 bits


class Mechanism(StrEnum):
    """How exact becomes noisy."""

    LAPLACE = "discrete Laplace"
    CHOICE_EXPONENTIAL = "report-noisy-max, exponential noise"
    CHOICE_LAPLACE = "report-noisy-max, Laplace noise"
    CHOICE_GUMBEL = "report-noisy-max, Gumbel noise (exponential mechanism)"

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

    def __post_init__(self) -> None:
        if self.noise_scale <= 0 or self.loss <= 0 or self.sensitivity.l1 <= 0:
            raise ValueError("noise of scale zero cannot be made")
        if self.noise_scale * self.loss < needed(self.mechanism, self.sensitivity):
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def rate(self) -> Fraction:
        """P(noise = x) ~ exp(-rate |x|)."""
        return 1 / self.noise_scale

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
        return 0.0

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
