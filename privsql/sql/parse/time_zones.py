"""A parsed query goes in, with the time zone of the policy; it comes out with moments of that zone alone.

A column of type TIMESTAMP WITH TIME ZONE is read as the local time of the policy's zone, so to the rest of
privsql it is a TIMESTAMP. A constant with an offset becomes that local time here. Where the zone is UTC,
AT TIME ZONE 'UTC' changes nothing in either direction, and is left out. In a zone with summer time it would
change the hours that a clock skips, so there, and for any other zone, it is refused.
"""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

from sqlglot import exp

from privsql.errors import Refused
from privsql.policy.checks import UTC
from privsql.sql.parse.places import place_of

_NAMES_OF_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "etc/uct", "uct"})
_WITH_ZONE = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
# as DuckDB reads it; other offsets and names of zones are left to be refused
_MOMENT = re.compile(
    r"\s*(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*(Z|UTC|[+-]\d{2}(?::\d{2})?)?)?\s*",
    re.ASCII,
)


def with_one_zone(statement: exp.Expr, zone: str) -> None:
    """Rewrites in place. Raises Refused for AT TIME ZONE with another zone than UTC."""
    for node in list(statement.find_all(exp.AtTimeZone, exp.Cast)):
        match node:
            case exp.AtTimeZone():
                node.replace(_local(node, zone))
            case exp.Cast(this=exp.Literal(is_string=True) as text, to=exp.DataType(this=kind)) if (
                kind in _WITH_ZONE
            ):
                moment = moment_in(str(text.this), zone)
                if moment is not None:
                    text.set("this", moment.isoformat(sep=" "))
                    node.to.set("this", exp.DType.TIMESTAMP)


def _local(node: exp.AtTimeZone, zone: str) -> exp.Expr:
    named = node.args.get("zone")
    is_utc = isinstance(named, exp.Literal) and str(named.this).lower() in _NAMES_OF_UTC
    if zone == UTC and is_utc:
        inner = node.this
        return inner if isinstance(inner, (exp.Column, exp.Literal)) else exp.Paren(this=inner)
    raise Refused(
        "refused-zone",
        "AT TIME ZONE is supported for UTC only, where the policy's time_zone is UTC, too: elsewhere some "
        "local times occur twice, and others never.",
        f"Leave it out: TIMESTAMP WITH TIME ZONE is read as the local time of {zone}, as the policy says.",
        place_of(node),
    )


def moment_in(text: str, zone: str) -> dt.datetime | None:
    """The local time of a moment that is written as text; None where it is not plainly one."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, time, offset = found.groups()
    try:
        local = dt.datetime.combine(_day(day), _time(time or "0:00"))
        there = dt.UTC if zone == UTC else ZoneInfo(zone)
        known = dt.timezone(_offset(offset)) if offset else there
        return local.replace(tzinfo=known).astimezone(dt.UTC).astimezone(there).replace(tzinfo=None, fold=0)
    except (ValueError, OverflowError):
        return None


def _day(text: str) -> dt.date:
    year, month, day = map(int, text.split("-"))
    return dt.date(year, month, day)


def _time(text: str) -> dt.time:
    hour, minute, *rest = text.split(":")
    second, _, part = rest[0].partition(".") if rest else ("0", "", "")
    return dt.time(int(hour), int(minute), int(second), int(part.ljust(6, "0") or "0"))


def _offset(text: str) -> dt.timedelta:
    if text in ("Z", "UTC"):
        return dt.timedelta(0)
    hours, _, minutes = text[1:].partition(":")
    size = dt.timedelta(hours=int(hours), minutes=int(minutes or "0"))
    return -size if text.startswith("-") else size
