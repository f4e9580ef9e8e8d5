"""Rules for dates and timestamps: the range of a moment goes in, the domain of one of its parts comes out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from privsql.algebra.buckets import bucket_of, buckets_between, next_bucket
from privsql.algebra.expressions import Call, Literal
from privsql.analysis.domain import MAX_KEYS, Domain, Rule, of_values
from privsql.types import Kind, Type

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _range(type_: Type, low: Any, high: Any) -> Domain:
    return Domain(type_, low=low, high=high)


def _part(function: Callable[[Any], int]) -> Rule:
    """A part of a date that increases with it: the year, the decade."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        ends = [None if end is None else Fraction(function(end)) for end in (a.low, a.high)]
        return _range(call.type, ends[0], ends[1])

    return rule


def _cyclic(low: int, high: int, function: Callable[[Any], int] | None = None) -> Rule:
    """A part that repeats: the month within the year, the hour."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        if function is not None and a.low is not None and a.high is not None and a.low.year == a.high.year:
            return _range(call.type, Fraction(function(a.low)), Fraction(function(a.high)))
        return _range(call.type, Fraction(low), Fraction(high))

    return rule


def _hour(call: Call, args: Sequence[Domain]) -> Domain:
    """0 to 23, and 24 because DuckDB's TIME includes 24:00:00."""
    return _range(call.type, Fraction(0), Fraction(24 if args[0].type.kind is Kind.TIME else 23))


def _names(values: tuple[str, ...]) -> Rule:
    return lambda call, args: of_values(call.type, values, nullable=True)


def _truncated(call: Call, args: Sequence[Domain]) -> Domain:
    unit = call.args[0].value if isinstance(call.args[0], Literal) else None
    low, high = args[1].low, args[1].high
    if low is None or high is None or unit is None:
        return Domain(call.type)
    first, last = truncate(unit, low), truncate(unit, high)
    if steps_between(unit, first, last) > MAX_KEYS:
        return _range(call.type, first, last)
    values, current = [], first
    while current <= last:
        values.append(current)
        try:
            current = next_step(unit, current)
        except (OverflowError, ValueError):  # beyond the end of Python's calendar
            break
    return of_values(call.type, values, nullable=True)


def truncate(unit: str, moment: dt.date) -> dt.datetime:
    """The result of DuckDB's date_trunc."""
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    day = dt.datetime(moment.year, moment.month, moment.day)
    match unit:
        case "second":
            return moment.replace(microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "day":
            return day
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case "decade":
            return dt.datetime(max(1, day.year // 10 * 10), 1, 1)
        case _:
            # DuckDB's centuries begin in 1900, 2000 ...
            return dt.datetime(max(1, day.year // 100 * 100), 1, 1)


def next_step(unit: str, moment: dt.datetime) -> dt.datetime:
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}.get(unit)
    if months is None:
        seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}[unit]
        return moment + dt.timedelta(seconds=seconds)
    total = moment.year * 12 + moment.month - 1 + months
    return moment.replace(year=total // 12, month=total % 12 + 1)


def _bucketed(call: Call, args: Sequence[Domain]) -> Domain:
    step = call.args[0].value if isinstance(call.args[0], Literal) else None
    low, high = args[1].low, args[1].high
    if low is None or high is None or not isinstance(step, str):
        return Domain(call.type)
    first, last = bucket_of(step, low), bucket_of(step, high)
    if first is None or last is None:
        return Domain(call.type)
    if buckets_between(step, first, last) > MAX_KEYS:
        return _range(call.type, first, last)
    values: list[dt.datetime] = []
    current: dt.datetime | None = first
    while current is not None and current <= last:
        values.append(current)
        current = next_bucket(step, current)
    return of_values(call.type, values, nullable=True)


def steps_between(unit: str, first: dt.datetime, last: dt.datetime) -> int:
    seconds = {"second": 1, "minute": 60, "hour": 3600}.get(unit, 86400)
    return int((last - first).total_seconds() // seconds)


_INDEX: dict[str, Callable[[Any], int]] = {  # the unit boundaries that date_diff counts between two moments
    "day": lambda d: d.toordinal(),
    "month": lambda d: d.year * 12 + d.month,
    "year": lambda d: d.year,
    "quarter": lambda d: d.year * 4 + (d.month - 1) // 3,
}


def _between_dates(call: Call, args: Sequence[Domain]) -> Domain:
    """date_diff(unit, from, to), and to - from in days."""
    unit: Any = "day"
    start, end = args[-2], args[-1]
    if call.function == "date_minus":
        start, end = end, start
    else:
        unit = call.args[0].value if isinstance(call.args[0], Literal) else None
    index = _INDEX.get(unit)
    if index is None or None in (start.low, start.high, end.low, end.high):
        return Domain(call.type)
    return _range(
        call.type, Fraction(index(end.low) - index(start.high)), Fraction(index(end.high) - index(start.low))
    )


def _whole_between(call: Call, args: Sequence[Domain]) -> Domain:
    """date_sub: whole units, so nearer to 0 than the boundaries between, by one at most."""
    found = _between_dates(call, args)
    low = None if found.low is None else found.low - (1 if found.low > 0 else 0)
    high = None if found.high is None else found.high + (1 if found.high < 0 else 0)
    return _range(call.type, low, high)


MOMENT_RULES: dict[str, Rule] = {
    "year": _part(lambda d: int(d.year)),
    "decade": _part(lambda d: int(d.year) // 10),
    "century": _part(lambda d: (int(d.year) - 1) // 100 + 1),
    "month": _cyclic(1, 12, lambda d: int(d.month)),
    "quarter": _cyclic(1, 4, lambda d: (int(d.month) + 2) // 3),
    "day": _cyclic(1, 31),
    "week": _cyclic(1, 53),
    "dayofyear": _cyclic(1, 366, lambda d: int(d.timetuple().tm_yday)),
    "dayofweek": _cyclic(0, 6),
    "isodow": _cyclic(1, 7),
    "hour": _hour,
    "minute": _cyclic(0, 59),
    "second": _cyclic(0, 59),
    "dayname": _names(DAYS),
    "monthname": _names(MONTHS),
    "millisecond": _cyclic(0, 59_999),
    "microsecond": _cyclic(0, 59_999_999),
    "millennium": _part(lambda d: (int(d.year) - 1) // 1000 + 1),
    "era": _cyclic(0, 1),
    "date_trunc": _truncated,
    "time_bucket": _bucketed,
    "date_diff": _between_dates,
    "date_sub": _whole_between,
    "date_minus": _between_dates,
}
