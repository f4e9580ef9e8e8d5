"""The range of a SUM's argument goes in; whole numbers to add up come out, with the SQL that makes them.

Between engine and noise there are integers only. The argument is clamped into its derived range with CASE
(LEAST and GREATEST would turn NULL into the bound), and laid on a grid of at most 2^30 steps, so that a cell
of a billion rows still fits 64 bits. The ends of the grid are whole numbers and the clamp is against them, so
rounding cannot pass them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privsql.analysis.domain import Domain
from privsql.types import Kind, Type

MOST_STEPS = 2**30
LARGEST_VALUE = 2**62  # values past this are refused: their sums do not fit a BIGINT
LARGEST_SUM = 2**60  # exact cells are clamped here: a clamp moves no two cells further apart


@dataclass(frozen=True)
class Grid:
    """Values are `step` times a whole number between `low` and `high`."""

    step: Fraction
    low: int
    high: int
    whole: bool
    nullable: bool
    narrow: bool = False  # whole numbers of a type so small that differences with the ends fit a BIGINT

    @property
    def extent(self) -> Fraction:
        """How wide the range is, in the units of the values."""
        return self.steps * self.step

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))

    @property
    def steps(self) -> int:
        return max(1, self.high - self.low)

    def width(self, always: bool) -> int:
        """How far one row's part can move; `always`: a row always counts, so 0 is not among its parts."""
        if always and not self.nullable:
            return self.high - self.low
        return max(self.high, 0) - min(self.low, 0)

    def value(self, argument: str) -> str:
        """What is added up: the clamped argument, or for small types something that is cheaper to compute."""
        if self.narrow:
            wide = (
                f"CAST({argument} AS BIGINT)"
                if self.nullable
                else f"coalesce(CAST({argument} AS BIGINT), {self.low})"
            )
            return f"({_distance(wide, self.low)} - {_distance(wide, self.high)})"
        return self.clamped(argument)

    def total(self, added: str, rows: str) -> str:
        """The sum of the clamped arguments, from the sum of the values and their number.

        |x - low| - |x - high| = 2 clamp(x) - (low + high): no branch a row, less time than a CASE where
        DuckDB knows from its statistics that nothing can overflow.
        """
        if self.narrow:
            return f"((coalesce({added}, 0){_times(rows, self.low + self.high)}) // 2)"
        return f"coalesce({added}, 0)"

    def sides(self, added: str, rows: str) -> tuple[str, str]:
        """The sums of the heights above the low end, and of what each lacks to `steps`."""
        if self.narrow and self.steps == self.high - self.low:
            every = f"{rows} * {self.steps}"  # a value is what its height has more than what it lacks
            return f"(({every} + coalesce({added}, 0)) // 2)", f"(({every} - coalesce({added}, 0)) // 2)"
        total = self.total(added, rows)
        return f"({total}{_times(rows, -self.low)})", f"({rows} * ({self.low + self.steps}) - {total})"

    def clamped(self, argument: str) -> str:
        """The argument on the grid, NULL staying NULL where it may occur; where it may not, no NULL comes
        out.

        What lies in the range comes first: it is nearly all, and DuckDB looks at a further branch only for
        what is left. NaN is above all numbers to DuckDB.
        """
        test, low, high = f"({argument})", str(self.low), str(self.high)
        value = f"TRY_CAST({argument} AS BIGINT)"
        if not (self.whole and self.step == 1):
            double = f"CAST({argument} AS DOUBLE)"
            scaled = f"({double} * {_double(1 / self.step)})"
            value = f"TRY_CAST({scaled} AS BIGINT)"
            if _is_power_of_two(self.step):  # then the ends are doubles, and can be compared as they are
                test, low, high = double, _double(self.low * self.step), _double(self.high * self.step)
            else:
                test = scaled
        below = f"WHEN {test} < {low} THEN {self.low} END" if self.nullable else f"ELSE {self.low} END"
        return f"(CASE WHEN {test} BETWEEN {low} AND {high} THEN {value} WHEN {test} > {high} THEN {self.high} {below})"


def grid_of(type_: Type, domain: Domain, most: int = MOST_STEPS) -> Grid:
    """A grid for an argument whose range is known, of at most so many steps from 0 to either end."""
    low, high = (Fraction(0), Fraction(0)) if domain.empty else (Fraction(domain.low), Fraction(domain.high))
    step = Fraction(1)
    whole = type_.kind is Kind.INTEGER
    if type_.kind is Kind.DECIMAL:
        step = Fraction(1, 10**type_.scale)
    size = max(abs(low), abs(high))
    if type_.kind is Kind.DOUBLE:
        step = Fraction(2) ** -min(1000, most.bit_length() - 1 - _log2_up(size)) if size else Fraction(1)
    while size / step > most:
        step *= 10 if type_.kind is Kind.DECIMAL else 2
    narrow = whole and step == 1 and type_.low >= -(2**31) and type_.high < 2**32
    return Grid(step, math.floor(low / step), math.ceil(high / step), whole, domain.nullable, narrow)


def _log2_up(size: Fraction) -> int:
    """The least whole k with size <= 2^k."""
    power = 0
    while Fraction(2) ** power < size:
        power += 1
    while Fraction(2) ** (power - 1) >= size:
        power -= 1
    return power


def _is_power_of_two(step: Fraction) -> bool:
    return step.numerator & (step.numerator - 1) == 0 == step.denominator & (step.denominator - 1)


def _distance(value: str, end: int) -> str:
    return f"abs({value} - ({end}))" if end else f"abs({value})"


def _times(rows: str, factor: int) -> str:
    """So many times the rows, to be added; nothing where that is 0."""
    return f" + {rows} * ({factor})" if factor else ""


def _double(value: Fraction) -> str:
    return f"CAST({float(value)!r} AS DOUBLE)"
