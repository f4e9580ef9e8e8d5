"""What every measurement has: columns, a sensitivity, an exact price, and an explanation for people.

No measurement exists whose noise does not cover its sensitivity at its price: each class checks that on
construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from privsql.errors import ArgumentError
from privsql.planning.measurements.price import PriceInFloats
from privsql.privacy.accuracy import LaplaceLaw, Law
from privsql.privacy.sensitivity import Sensitivity

LARGEST_SCALE = 2**52  # noise of a larger scale would not fit in 64 bits


class Mechanism(StrEnum):
    """How exact numbers become noisy. Plans, receipts and ledgers contain these texts."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "Gaussian, rounded"
    CHOICE_FLIP = "report-noisy-max, exponential noise (permute-and-flip)"
    CHOICE_LAPLACE = "report-noisy-max, Laplace noise"
    CHOICE_GUMBEL = "report-noisy-max, Gumbel noise"
    CHOICE_EXPONENTIAL = "exponential mechanism"
    CHOICE_HISTOGRAM = "noisy histogram, Laplace noise, its largest cells"
    KEYS_GEOMETRIC = "truncated geometric noise, shown above a threshold"
    KEYS_GAUSSIAN = "Gaussian noise, rounded, shown above a threshold"
    KEYS_CHOSEN = "keys shown by chance, the likelier the more units they have"
    ORDER = "exponential mechanism over values"


@dataclass(frozen=True)
class Noised(PriceInFloats, ABC):
    """Integer columns of the exact result that get noise. `loss` is the exact epsilon for them."""

    columns: tuple[str, ...]
    sensitivity: Sensitivity
    loss: Fraction
    what: str
    other: str = field(default="", kw_only=True)  # another mechanism, and how noisy it would be
    # the value of 1 in its columns
    step: Fraction = field(default=Fraction(1), kw_only=True)

    def __post_init__(self) -> None:
        if self.loss <= 0 or self.sensitivity.l1 <= 0:
            raise ValueError("noise of scale zero cannot be made")
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError unless the noise covers the sensitivity at this price."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism: ...

    @property
    @abstractmethod
    def noise_scale(self) -> Fraction:
        """The scale of the noise, in the columns' units."""

    @abstractmethod
    def explanation(self) -> tuple[str, ...]:
        """The lines of EXPLAIN: the bounds, the noise, and how far off a cell may be."""

    @cached_property
    def law(self) -> Law:
        """The distribution of the noise of one cell, for intervals."""
        return LaplaceLaw(float(1 / self.noise_scale))

    @property
    def continuous_variance(self) -> float:
        """The variance of the noise before rounding, so that two ways to measure compare alike at every
        epsilon.
        """
        return 2.0 * float(self.noise_scale) ** 2

    def half_width(self, level: float) -> int:
        """The bound on the noise of one cell at this confidence level."""
        return self.law.half_width(level)

    @property
    def delta_loss(self) -> Fraction:
        return Fraction(0)

    # For people: plain numbers.
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
    def score_sensitivity(self) -> float | None:
        """How far one person can change the difference of two values' scores, where a value is selected by
        score.
        """
        return None

    def to_dict(self) -> dict[str, object]:
        score = {} if self.score_sensitivity is None else {"score_sensitivity": self.score_sensitivity}
        return {
            "columns": list(self.columns),
            "mechanism": self.mechanism.value,
            "l1": self.l1,
            "linf": self.linf,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "why": self.why,
            "what": self.what,
            **score,
        }

    def explained_bounds(self, more: str = "") -> str:
        """The sensitivity in the units of the values, and in the columns' own units, in which plan.sql can be
        checked.
        """
        found = f"l1 = {in_words(self.l1 * self.step)}, linf = {in_words(self.linf * self.step)}"
        own = ""
        if self.step != 1:
            steps = f"columns are in steps of {float(self.step):.3g}"
            own = f" ({steps}: l1 = {self.l1:,}, linf = {self.linf:,})"
        return f"{found}{own}{more}: {self.why}"

    def explained_width(self) -> str:
        return f"±{in_words(self.half_width(0.95) * self.step)}"


def in_words(value: Fraction) -> str:
    """The number for people."""
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.6g}"


def too_noisy() -> ArgumentError:
    return ArgumentError(
        "argument-epsilon",
        "at this epsilon the noise would not fit in 64-bit integers",
        "use a larger epsilon, fewer outputs, or declare a narrower range",
    )
