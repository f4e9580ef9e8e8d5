"""How an aggregate is computed from noisy columns: a weighted sum, or the two-sided ratio of AVG."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Linear:
    """COUNT and SUM: a weighted sum of one or two noisy columns, rounded where whole numbers are meant."""

    terms: tuple[tuple[str, Fraction], ...]
    whole: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.terms)

    @property
    def formula(self) -> str:
        parts = [column if weight == 1 else f"{float(weight):.6g} * {column}" for column, weight in self.terms]
        text = " + ".join(parts)
        return f"round({text})" if self.whole and any(weight.denominator > 1 for _, weight in self.terms) else text


@dataclass(frozen=True)
class Ratio:
    """AVG: low + (high - low) * above / (above + below), where above = sum of u, below = sum of (1 - u)."""

    above: str
    below: str
    low: Fraction
    high: Fraction
    one: int  # what one row adds to above + below

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.above, self.below)

    @property
    def formula(self) -> str:
        span = float(self.high - self.low)
        return f"{float(self.low):.6g} + {span:.6g} * {self.above} / ({self.above} + {self.below})"


Estimate = Linear | Ratio
