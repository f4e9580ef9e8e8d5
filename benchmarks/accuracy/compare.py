"""Errors of many answers go in; means with their standard errors come out, and what they can tell apart.

Two tools are compared only under the same neighbours. One is called better where the difference of the means is more
than three standard errors of that difference; where it is not, nothing is called best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from statistics import fmean, stdev

SURE = 3.0  # standard errors


@dataclass(frozen=True)
class Mean:
    """The mean error of some answers, and its standard error."""

    value: float
    error: float
    draws: int

    @staticmethod
    def of(errors: Sequence[float]) -> Mean:
        return Mean(fmean(errors), stdev(errors) / sqrt(len(errors)), len(errors))

    def above(self, other: Mean) -> float:
        """By how many standard errors of their difference it is greater."""
        spread = hypot(self.error, other.error)
        difference = self.value - other.value
        if spread == 0:
            return 0.0 if difference == 0 else inf if difference > 0 else -inf
        return difference / spread

    def ratio(self, other: Mean) -> tuple[float, float]:
        """How many times the other it is, and the standard error of that."""
        if other.value == 0:
            return (1.0 if self.value == 0 else inf), 0.0
        ratio = self.value / other.value
        own = self.error / self.value if self.value else 0.0
        return ratio, ratio * hypot(own, other.error / other.value)


@dataclass(frozen=True)
class Verdict:
    """The tool with the least mean, and those that cannot be told from it."""

    least: str
    level: tuple[str, ...]

    def __str__(self) -> str:
        if not self.level:
            return self.least
        return f"not told apart: {', '.join((self.least, *self.level))}"


def judge(means: Mapping[str, Mean]) -> Verdict | None:
    """Of tools under the same neighbours; None where there is nothing to compare."""
    if len(means) < 2:
        return None
    least = min(means, key=lambda tool: means[tool].value)
    level = [tool for tool in means if tool != least and means[tool].above(means[least]) < SURE]
    return Verdict(least, tuple(level))
