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
        terms = [(column, weight) for column, weight in self.terms if weight]
        parts = [column if weight == 1 else f"{float(weight):.6g} * {column}" for column, weight in terms]
        text = " + ".join(parts) or "0"
        if self.whole and any(weight.denominator > 1 for _, weight in terms):
            return f"round({text})"
        return text if len(terms) < 2 else f"({text})"


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
        start = f"{float(self.low):.6g} + " if self.low else ""
        ratio = f"{float(self.high - self.low):.6g} * {self.above} / ({self.above} + {self.below})"
        return f"({start}{ratio})" if start else ratio


Estimate = Linear | Ratio
