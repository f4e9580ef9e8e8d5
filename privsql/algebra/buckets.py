"""Buckets of time as DuckDB's time_bucket has them: a width and a moment go in, where its bucket begins comes
out.
"""

from __future__ import annotations

import datetime as dt

_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
ORIGIN = dt.datetime(2000, 1, 3)  # a Monday
_FIRST_MONTH = 2000 * 12  # buckets of months begin in January


def bucket_of(step: str, moment: dt.date) -> dt.datetime | None:
    """The beginning of the bucket of so many units ('15 minute') that a moment is in; None before Python's
    calendar.
    """
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    amount, unit = _read(step)
    try:
        if unit in _MONTHS:
            width = amount * _MONTHS[unit]
            month = _month_of(moment)
            return _of_month(month - (month - _FIRST_MONTH) % width)
        width_of_time = dt.timedelta(seconds=amount * _SECONDS[unit])
        return moment - (moment - ORIGIN) % width_of_time
    except (OverflowError, ValueError):
        return None


def next_bucket(step: str, start: dt.datetime) -> dt.datetime | None:
    """The beginning of the bucket after that; None beyond Python's calendar."""
    amount, unit = _read(step)
    try:
        if unit in _MONTHS:
            return _of_month(_month_of(start) + amount * _MONTHS[unit])
        return start + dt.timedelta(seconds=amount * _SECONDS[unit])
    except (OverflowError, ValueError):
        return None


def buckets_between(step: str, first: dt.datetime, last: dt.datetime) -> int:
    """About how many buckets there are."""
    amount, unit = _read(step)
    seconds = amount * _SECONDS.get(unit, 86_400 * 28 * _MONTHS.get(unit, 1))
    return int((last - first).total_seconds() // seconds)


def falls_together(step: str, origin: dt.datetime) -> bool:
    """Whether buckets that begin at an origin are those that DuckDB has without one."""
    return bucket_of(step, origin) == origin


def _read(step: str) -> tuple[int, str]:
    amount, unit = step.split(" ")
    return int(amount), unit


def _month_of(moment: dt.datetime) -> int:
    return moment.year * 12 + moment.month - 1


def _of_month(number: int) -> dt.datetime:
    return dt.datetime(number // 12, number % 12 + 1, 1)
