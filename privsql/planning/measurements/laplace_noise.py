"""Columns with discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsql.planning.measurements.noised import LARGEST_SCALE, Mechanism, Noised, in_words, too_noisy
from privsql.privacy.events import Event, Laplace
from privsql.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class LaplaceMeasurement(Noised):
    """P(noise = x) ~ exp(-rate |x|) for every cell."""

    rate: Fraction

    def _check(self) -> None:
        if self.rate <= 0 or self.loss < self.sensitivity.l1 * self.rate:
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def mechanism(self) -> Mechanism:
        return Mechanism.LAPLACE

    @property
    def noise_scale(self) -> Fraction:
        return 1 / self.rate

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events that it charges."""
        return (Laplace(self.loss, self.l1, self.linf, self.noise_scale),)

    def explanation(self) -> tuple[str, ...]:
        other = f"; {self.other}" if self.other else ""
        return (
            self.explained_bounds(),
            explained_scale(self, "l1", self.l1),
            f"each cell of these columns is within {self.explained_width()} at 95%{other}",
        )


def measure_laplace(
    columns: tuple[str, ...], sensitivity: Sensitivity, loss: Fraction, what: str
) -> LaplaceMeasurement:
    """The least Laplace noise that covers the sensitivity at this price."""
    return LaplaceMeasurement(columns, sensitivity, loss, what, least_rate(sensitivity.l1, loss))


def least_rate(needed: int, loss: Fraction) -> Fraction:
    """The largest rate (one over the scale) whose loss covers this sensitivity."""
    if needed > LARGEST_SCALE * loss:
        raise too_noisy()
    return loss / needed


def explained_scale(measurement: Noised, name: str, bound: int) -> str:
    """How the scale of the noise follows from the sensitivity and epsilon."""
    factor = round(measurement.scale * measurement.epsilon / bound)
    times = f"{factor} * " if factor != 1 else ""
    step = measurement.step
    return (
        f"{measurement.mechanism.value}, scale = {times}{name} / epsilon"
        f" = {times}{in_words(bound * step)} / {measurement.epsilon:g}"
        f" = {float(measurement.noise_scale * step):,.6g}"
    )
