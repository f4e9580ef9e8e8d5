"""Exact prices go in; floats for people come out."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class ExactlyPriced(Protocol):
    """What has an exact price."""

    @property
    def loss(self) -> Fraction: ...
    @property
    def delta_loss(self) -> Fraction: ...


class PriceInFloats:
    """The exact price of a measurement or a plan, as floats."""

    @property
    def epsilon(self: ExactlyPriced) -> float:
        """Its epsilon."""
        return float(self.loss)

    @property
    def delta(self: ExactlyPriced) -> float:
        """Its delta."""
        return float(self.delta_loss)
