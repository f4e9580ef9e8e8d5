"""The range of an argument goes in; a grid of at most a million points for its values comes out, with the
expressions that place them.

Integers, dates and decimals keep their own steps if those are few enough; other grids have round steps that
people would choose.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privsql.algebra.exact import PLACES, WIDE, Cases, Cast, Constant, Operation, Scalar, clamped, least, op
from privsql.analysis.domain import Domain
from privsql.types import BIGINT, DATE, DOUBLE, MOMENTS, TIMESTAMP, Kind, Type

MOST_STEPS = 2**20
_FINEST = Fraction(1, 2**52)  # of the largest value: the resolution of doubles
_LEAST = Fraction(1, 10**290)  # the smallest step that doubles can still divide by
_EPOCH, _SECOND = dt.datetime(1970, 1, 1), 10**6  # microseconds
# seconds
_TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]


@dataclass(frozen=True)
class ValueGrid:
    """The points low, low + step, ... of an argument: numbers, days (DATE) or microseconds (TIMESTAMP) since
    1970.
    """

    type: Type
    low: Fraction
    step: Fraction
    points: int

    @property
    def high(self) -> Fraction:
        return self.low + self.step * (self.points - 1)

    def place(self, argument: Scalar) -> Scalar:
        """The number of the nearest point, for an argument that is not NULL. The argument is clamped first,
        so nothing can fail.

        least and greatest treat NaN as the largest number.
        """
        return self.place_of(self.measure(argument))

    def measure(self, argument: Scalar) -> Scalar:
        """A number that grows with the place: for integers and moments the clamped distance from the low end,
        other numbers as they are.
        """
        low, high = (self._constant(each) for each in (self.low, self.high))
        match self.type.kind:
            case Kind.DATE:
                return op(Operation.DAYS_BETWEEN, clamped(argument, low, high), low)
            case Kind.TIMESTAMP:
                return op(Operation.MICROSECONDS, clamped(argument, low, high)) - int(self.low)
            case Kind.INTEGER:
                return clamped(Cast(argument, self._wide, total=False), low, high) - low
            case _:
                return Cast(argument, DOUBLE, total=False)

    def place_of(self, measure: Scalar) -> Scalar:
        if not self._whole:
            low, high, step = (Constant(float(each), DOUBLE) for each in (self.low, self.high, self.step))
            above = clamped(measure, low, high) - low
            # if a step is hardly more than the resolution of doubles, rounding may move the two ends apart by
            # a point
            place = Cast(op(Operation.ROUND, op(Operation.DIVIDE, above, step)), PLACES)
            return least(place, self.points - 1)
        if self.step == 1:
            return Cast(measure, PLACES)
        return Cast((measure + int(self.step) // 2) // int(self.step), PLACES)

    def from_place(self, place: Scalar) -> Scalar:
        """A lower bound on the measure of every value at this place or a higher one.

        Numbers are half a step around their points, and rounding moves them by another half at most: a step
        is no less than 2^-52 of the largest value. So two steps are enough. Numbers below the range are at
        its first point.
        """
        if self._whole:
            return (Cast(place, self._wide, total=False) - 1) * int(self.step)
        low, step, none = (Constant(each, DOUBLE) for each in (float(self.low), float(self.step), -math.inf))
        return Cases(((op(Operation.LESS, place, 2), none),), low + (place - 2) * step)

    def to_place(self, place: Scalar) -> Scalar:
        """An upper bound on the measure of every value at this place or a lower one. NaN is the largest
        number.
        """
        if self._whole:
            return (Cast(place, self._wide, total=False) + 1) * int(self.step)
        low, step, none = (Constant(each, DOUBLE) for each in (float(self.low), float(self.step), math.nan))
        return Cases(((op(Operation.AT_LEAST, place + 2, self.points), none),), low + (place + 2) * step)

    @property
    def _whole(self) -> bool:
        return self.type.kind is Kind.INTEGER or self.type.kind in MOMENTS

    @property
    def _wide(self) -> Type:
        """A type that holds the argument, the ends and everything between them."""
        return BIGINT if not self.type.is_wide and self.high - self.low < 2**62 else WIDE

    def _constant(self, value: Fraction) -> Scalar:
        match self.type.kind:
            case Kind.DATE:
                return Constant((_EPOCH + dt.timedelta(days=int(value))).date(), DATE)
            case Kind.TIMESTAMP:
                return Constant(_EPOCH + dt.timedelta(microseconds=int(value)), TIMESTAMP)
            case Kind.INTEGER:
                return Cast(Constant(int(value)), self._wide, total=False)
            case _:
                return Constant(float(value), DOUBLE)

    def shown(self, value: Fraction) -> str:
        """The value for people."""
        match self.type.kind:
            case Kind.DATE:
                return str((_EPOCH + dt.timedelta(days=int(value))).date())
            case Kind.TIMESTAMP:
                return str(_EPOCH + dt.timedelta(microseconds=int(value)))
            case _:
                return f"{float(value):.10g}"

    @property
    def text(self) -> str:
        """The range, with the step unless it is the type's own."""
        natural = self.type.kind in (Kind.INTEGER, Kind.DATE) and self.step == 1
        steps = "" if natural else f" on a grid of {_amount(self.step, self.type.kind)}"
        return f"[{self.shown(self.low)}, {self.shown(self.high)}]{steps}"


def value_grid(type_: Type, domain: Domain) -> ValueGrid:
    """A grid for an argument with a known range."""
    low, high = (
        (Fraction(0), Fraction(0))
        if domain.empty
        else (_number(each, type_) for each in (domain.low, domain.high))
    )
    least = (high - low) / MOST_STEPS
    if type_.kind in (Kind.DECIMAL, Kind.DOUBLE):
        least = max(least, max(abs(low), abs(high)) * _FINEST)
    least = max(least, _LEAST) if least else least
    match type_.kind:
        case Kind.INTEGER | Kind.DATE:
            step = next(each for each in _nice() if each >= least)
        case Kind.TIMESTAMP:
            times = (Fraction(each * _SECOND) for each in _TIMES)
            step = next(
                (each for each in (*_below_a_second(), *times) if each >= least), Fraction(math.ceil(least))
            )
        case Kind.DECIMAL:
            step = next(each for each in _nice(-type_.scale) if each >= least)
        case _:
            step = next(
                each for each in _nice(math.floor(math.log10(least)) if least else 0) if each >= least
            )
    if type_.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):  # make the ends multiples of the step
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    points = math.ceil((high - low) / step) + 1
    if type_.kind in MOMENTS and low + step * (points - 1) > _number(dt.datetime.max, type_):
        points -= 1  # Python's calendar ends there, and so does the last step
    return ValueGrid(type_, low, step, points)


def _number(value: Any, type_: Type) -> Fraction:
    match value:
        case dt.datetime():
            away = value - _EPOCH
            return Fraction(away.days if type_.kind is Kind.DATE else away // dt.timedelta(microseconds=1))
        case dt.date():
            days = (value - _EPOCH.date()).days
            return Fraction(days if type_.kind is Kind.DATE else days * 86400 * _SECOND)
        case _:
            return Fraction(value)


def _nice(power: int = 0) -> Iterator[Fraction]:
    """Yield 10^power times 1, 2, 5, 10, 20, 50 ..."""
    while True:
        yield from (digit * Fraction(10) ** power for digit in (1, 2, 5))
        power += 1


def _below_a_second() -> Iterator[Fraction]:
    for each in _nice():  # pragma: no branch -- they have no end
        if each >= _SECOND:
            return
        yield each


def _amount(step: Fraction, kind: Kind) -> str:
    if kind is Kind.DATE:
        return f"{int(step):,} days"
    if kind is not Kind.TIMESTAMP:
        return f"{float(step):,.10g}"
    return f"{int(step):,} microseconds" if step < _SECOND else f"{float(step / _SECOND):,.10g} seconds"
