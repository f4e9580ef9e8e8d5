"""The range of a SUM's argument goes in; integers to sum come out, with the expressions that compute them.

Only integers pass between engine and noise. The argument is clamped into its derived range with CASE (LEAST
and GREATEST would turn NULL into the bound), and rounded to a grid of at most 2^30 steps, so that a cell of a
billion rows still fits in 64 bits. The ends of the grid are integers and the clamp is against them, so
rounding cannot pass them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privsql.algebra.exact import Cases, Cast, Constant, Operation, Scalar, coalesced, op, whole
from privsql.analysis.domain import Domain
from privsql.types import BIGINT, DOUBLE, Kind, Type

MOST_STEPS = 2**30
LARGEST_VALUE = 2**62  # larger values are refused: their sums do not fit in a BIGINT
LARGEST_SUM = 2**60  # exact cells are clamped to this; a clamp never moves two cells further apart


@dataclass(frozen=True)
class Grid:
    """The values `step` times an integer between `low` and `high`."""

    step: Fraction
    low: int
    high: int
    whole: bool
    nullable: bool
    narrow: bool = False  # integers of a type so small that differences with the ends fit in a BIGINT

    @property
    def extent(self) -> Fraction:
        """The width of the range, in the units of the values."""
        return self.steps * self.step

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))

    @property
    def steps(self) -> int:
        return max(1, self.high - self.low)

    def width(self, always: bool) -> int:
        """How far one row's summand can move. `always`: a row always counts, so its summand is never 0 for
        absence.
        """
        if always and not self.nullable:
            return self.high - self.low
        return max(self.high, 0) - min(self.low, 0)

    def value(self, argument: Scalar) -> Scalar:
        """The summand: the clamped argument, or for small types something cheaper to compute."""
        if not self.narrow:
            return self.clamped(argument)
        wide: Scalar = Cast(argument, BIGINT, total=False)
        present = wide if self.nullable else coalesced(wide, self.low)
        return _distance(present, self.low) - _distance(present, self.high)

    def total(self, added: Scalar, rows: Scalar) -> Scalar:
        """The sum of the clamped arguments, from the sum of the values and their number.

        |x - low| - |x - high| = 2 clamp(x) - (low + high): no branch per row, and faster than a CASE where
        DuckDB knows from its statistics that nothing can overflow.
        """
        if self.narrow:
            return _plus(coalesced(added), rows, self.low + self.high) // 2
        return coalesced(added)

    def sides(self, added: Scalar, rows: Scalar) -> tuple[Scalar, Scalar]:
        """The sums of the heights above the low end, and of the depths, `steps` minus each height."""
        if self.narrow and self.steps == self.high - self.low:
            every = rows * self.steps  # a narrow value is height minus depth
            return (every + coalesced(added)) // 2, (every - coalesced(added)) // 2
        total = self.total(added, rows)
        return _plus(total, rows, -self.low), rows * (self.low + self.steps) - total

    def clamped(self, argument: Scalar) -> Scalar:
        """The argument on the grid. NULL stays NULL if it may occur; otherwise no NULL comes out.

        Where NULL may occur, ELSE keeps it: the test of a NULL is NULL, so the cast of it is NULL. A number
        is between the ends, above them, or below; DuckDB sorts NaN above all numbers. The cast stands in one
        branch only: DuckDB then takes three quarters of the time of a branch for each side, and no time for
        the test where its statistics show that nothing lies outside.
        """
        test, value = argument, whole(argument)
        low, high = (Constant(each) for each in (self.low, self.high))
        if not (self.whole and self.step == 1):
            double = Cast(argument, DOUBLE, total=False)
            scaled = double * _double(1 / self.step)
            test, value = scaled, whole(scaled)
            if _is_power_of_two(self.step):  # then the ends are exact doubles, and can be compared directly
                test, low, high = double, _double(self.low * self.step), _double(self.high * self.step)
        within = op(Operation.BETWEEN, test, low, high)
        above = (op(Operation.GREATER, test, high), Constant(self.high))
        if self.nullable:
            nearest = Cases((above,), Constant(self.low))
            return Cases(((op(Operation.NOT, within), nearest),), value)
        return Cases(((within, value), above), Constant(self.low))


def grid_of(type_: Type, domain: Domain, most: int = MOST_STEPS) -> Grid:
    """A grid for an argument with a known range, of at most so many steps from 0 to either end."""
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


def _distance(value: Scalar, end: int) -> Scalar:
    return op(Operation.ABS, value - end if end else value)


def _plus(value: Scalar, rows: Scalar, factor: int) -> Scalar:
    """The value plus so many times the rows; just the value if that is 0."""
    return value + rows * factor if factor else value


def _double(value: Fraction) -> Constant:
    return Constant(float(value), DOUBLE)
