"""How an aggregate is computed from noisy columns: a weighted sum, the two-sided ratio of AVG, moments, or a
grid point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsql.types import Kind

Terms = tuple[tuple[str, Fraction], ...]  # noisy columns with their weights
ALL_ROWS = "all_rows"
# The unit of the public number of rows: noise for a change of one such part does not show.
PARTS_OF_A_ROW = 2**24


@dataclass(frozen=True)
class Linear:
    """COUNT and SUM: a weighted sum of one or two noisy columns, rounded if the result is an integer."""

    terms: Terms
    whole: bool
    signed: bool = False  # its columns may be negative

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.terms)

    @property
    def nonnegative(self) -> bool:
        """Whether the measured number cannot be negative."""
        return not self.signed and all(weight >= 0 for _, weight in self.terms)

    @property
    def formula(self) -> str:
        terms = [(column, weight) for column, weight in self.terms if weight]
        parts = [_times(column, weight) for column, weight in terms]
        text = " + ".join(parts) or "0"
        if self.whole and any(weight.denominator > 1 for _, weight in terms):
            return f"round({text})"
        return text if len(terms) < 2 else f"({text})"


@dataclass(frozen=True)
class Ratio:
    """AVG: low + (high - low) * above / (above + below), where above = sum of u, below = sum of (1 - u)."""

    above: Terms
    below: Terms
    low: Fraction
    high: Fraction
    one: int  # what a row adds to above + below

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for column, _ in (*self.above, *self.below)))

    @property
    def formula(self) -> str:
        above, total = Linear(self.above, whole=False).formula, Linear(self.total, whole=False).formula
        start = f"{float(self.low):.6g} + " if self.low else ""
        total = f"({total})" if len(self.total) == 1 and total not in self.columns else total
        ratio = f"{float(self.high - self.low):.6g} * {above} / {total}"
        return f"({start}{ratio})" if start else ratio

    @cached_property
    def total(self) -> Terms:
        """The terms of above + below."""
        weights: dict[str, Fraction] = {}
        for column, weight in (*self.above, *self.below):
            weights[column] = weights.get(column, Fraction(0)) + weight
        return tuple((column, weight) for column, weight in weights.items() if weight)


def _times(column: str, weight: Fraction) -> str:
    if column == ALL_ROWS:
        return f"{_times('', weight * PARTS_OF_A_ROW)}{column} / {PARTS_OF_A_ROW}"
    return column if weight == 1 else f"{float(weight):.6g} * {column}"


@dataclass(frozen=True)
class Variable:
    """One argument of a spread: u, its height above `low` divided by `width`, is between 0 and 1.

    `squared`: the features are u^2, 2u(1-u), (1-u)^2; otherwise u, 1-u.
    """

    low: Fraction
    width: Fraction
    squared: bool

    @property
    def features(self) -> int:
        return 3 if self.squared else 2


@dataclass(frozen=True)
class Spread:
    """VAR, STDDEV, COVAR, CORR, REGR: from sums of products of the features of one or two variables,
    row-major in the first.

    `row`: what a row adds to the last of three columns, the public number of rows; the other two are the sums
    of u and 2u(1-u).
    """

    function: str
    columns: tuple[str, ...]
    first: Variable
    second: Variable | None
    one: Fraction  # what a row adds to all columns together
    swapped: bool = False  # the function's first argument is the second variable
    row: int | None = None

    @property
    def formula(self) -> str:
        names = f"{self.columns[0]} to {self.columns[-1]}" if self.row is None else ", ".join(self.columns)
        return f"{self.function} of {names}"


@dataclass(frozen=True)
class QuantilePoint:
    """A quantile: the value of a grid point. `on` is the kind of the grid, `kind` that of the result.

    Dates count in days, timestamps in microseconds since 1970.
    """

    column: str
    on: Kind
    kind: Kind
    low: Fraction
    step: Fraction
    points: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def high(self) -> Fraction:
        return self.low + self.step * (self.points - 1)

    @property
    def formula(self) -> str:
        return f"the value at {self.column}"


Estimate = Linear | Ratio | Spread | QuantilePoint
