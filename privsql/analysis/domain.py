"""What values an expression may have: a range, a finite set, NULL or not. These are claims, never trusted:
the SQL enforces them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privsql.algebra.expressions import Call
from privsql.types import Kind, Type

MAX_KEYS = 1_000_000
_MANY = 2**40  # longer ranges are cut to this: Python could not compute their length


@dataclass(frozen=True)
class Domain:
    """`low` and `high` are inclusive, None where unknown; `values` lists the non-NULL values if they are few.

    `nullable`: NULL may occur. `null_is_key`: NULL is shown as a key where it may occur. This is False if a
    complete key set was declared without NULL.
    """

    type: Type
    nullable: bool = True
    null_is_key: bool = True
    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None
    empty: bool = False  # no finite value: NaN or infinity as a constant, or a condition that no row meets

    @property
    def bounded(self) -> bool:
        return self.empty or (self.low is not None and self.high is not None)

    def finite(self) -> Sequence[Any] | None:
        """The non-NULL values in order if they can be listed, else None."""
        if self.empty:
            return ()
        if self.values is not None:
            return self.values
        if self.low is None or self.high is None:
            return None
        if self.type.kind is Kind.INTEGER:
            first = math.ceil(self.low)
            return range(first, min(math.floor(self.high), first + _MANY) + 1)
        if self.type.kind is Kind.DATE:
            return DayRange(self.low, self.high)
        return None

    def not_null(self) -> Domain:
        return replace(self, nullable=False, null_is_key=False)


class DayRange(Sequence[dt.date]):
    """The days from one date to another, generated on demand."""

    def __init__(self, low: dt.date, high: dt.date) -> None:
        self.low, self.days = low, max(0, (high - low).days + 1)

    def __len__(self) -> int:
        return self.days

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.low + dt.timedelta(days=each) for each in range(self.days)[index]]
        return self.low + dt.timedelta(days=range(self.days)[index])


def exact(value: Any) -> Any:
    """A finite number as a Fraction, None for NaN and infinities; other values unchanged."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return Fraction(value) if math.isfinite(value) else None
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    return Fraction(value) if hasattr(value, "as_tuple") else value


def of_values(type_: Type, values: Iterable[Any], nullable: bool, null_is_key: bool = True) -> Domain:
    """The domain of a finite set, with the range that follows from it."""
    listed = tuple(
        dict.fromkeys(value for value in values if value == value)
    )  # NaN is not a key and lies in no range
    if not listed:
        return Domain(type_, nullable, null_is_key and nullable, empty=True, values=())
    low = high = None
    if type_.kind not in (Kind.TEXT, Kind.BOOLEAN):
        ordered = [exact(value) for value in listed]
        if all(value is not None for value in ordered):
            low, high = min(ordered), max(ordered)
    return Domain(type_, nullable, null_is_key and nullable, low, high, listed)


def union(type_: Type, parts: Sequence[Domain]) -> Domain:
    """The values that are in any of the domains."""
    nullable = any(part.nullable for part in parts)
    null_is_key = any(part.nullable and part.null_is_key for part in parts)
    filled = [part for part in parts if not part.empty]
    if not filled:
        return Domain(type_, nullable, null_is_key, empty=True, values=())
    low = high = None
    if all(part.low is not None for part in filled):
        low = min(part.low for part in filled)
    if all(part.high is not None for part in filled):
        high = max(part.high for part in filled)
    values = None
    listed = [part.values for part in filled]
    if all(each is not None for each in listed):
        values = tuple(dict.fromkeys(value for each in listed if each is not None for value in each))
    return Domain(type_, nullable, null_is_key, low, high, values)


def tighten(domain: Domain, low: Any = None, high: Any = None, values: Sequence[Any] | None = None) -> Domain:
    """The values of a domain that are not NULL and lie within the new bounds."""
    kept = domain.values
    if values is not None:
        allowed = set(values)
        kept = tuple(values) if kept is None else tuple(value for value in kept if value in allowed)
    if kept is not None:
        kept = tuple(
            value
            for value in kept
            if (low is None or _at_least(value, low)) and (high is None or _at_least(high, value))
        )
        result = of_values(domain.type, kept, nullable=False)
        if (
            values is not None
            and domain.values is None
            and domain.low is not None
            and domain.high is not None
        ):
            inside = [v for v in kept if _at_least(v, domain.low) and _at_least(domain.high, v)]
            result = of_values(domain.type, inside, nullable=False)
        return result
    new_low = domain.low if low is None else low if domain.low is None else max(domain.low, low)
    new_high = domain.high if high is None else high if domain.high is None else min(domain.high, high)
    if domain.type.kind is Kind.INTEGER:
        new_low = None if new_low is None else Fraction(math.ceil(new_low))
        new_high = None if new_high is None else Fraction(math.floor(new_high))
    empty = new_low is not None and new_high is not None and new_low > new_high
    if empty:
        return Domain(domain.type, nullable=False, null_is_key=False, empty=True, values=())
    return replace(domain, low=new_low, high=new_high, nullable=False, null_is_key=False, empty=domain.empty)


def _at_least(value: Any, bound: Any) -> bool:
    left, right = exact(value), exact(bound)
    return left is not None and right is not None and bool(left >= right)


Rule = Callable[[Call, Sequence[Domain]], Domain]
