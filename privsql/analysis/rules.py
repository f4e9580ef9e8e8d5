"""One rule per function: the domains of the arguments go in, the domain of the result comes out.

A function without a rule of its own keeps only its type: booleans are true or false, everything else is unbounded.
That is always allowed, because a domain only chooses clamps and keys, which the rendered SQL then enforces.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privsql.analysis.domain import MAX_KEYS, Domain, of_values, union
from privsql.sql.expressions import Call, Literal
from privsql.sql.functions import FUNCTIONS
from privsql.types import BOOLEAN, Kind, Type

Rule = Callable[[Call, Sequence[Domain]], Domain]

# Results that may be NULL although no argument is.
_PARTIAL = {"/", "//", "%", "nullif", "date_add", "date_shift"}
_NEVER_NULL = {"is_null", "is_true", "is_false", "is_same", "is_distinct"}
_IGNORE_NULL = {"coalesce", "least", "greatest"}
_BOOLEANS = {"=", "<>", "<", "<=", ">", ">=", "in", "and", "or", "not"} | _NEVER_NULL
_FEW = 10_000  # so many steps of a rounded number are listed as possible keys
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip


def apply(call: Call, args: Sequence[Domain]) -> Domain:
    """The domain of a call from those of its arguments."""
    rule = RULES.get(call.function)
    result = rule(call, args) if rule is not None and not any(arg.empty for arg in args) else Domain(call.type)
    if rule is None and call.type.kind is Kind.BOOLEAN:
        result = of_values(BOOLEAN, (False, True), nullable=True)
    nullable = _nullable(call, args)
    shown = any(arg.nullable and arg.null_is_key for arg in args) or _partial(call, args)
    return replace(result, nullable=nullable, null_is_key=nullable and shown)


def _nullable(call: Call, args: Sequence[Domain]) -> bool:
    if call.function in _NEVER_NULL:
        return False
    if call.function in _IGNORE_NULL:
        return all(arg.nullable for arg in args)
    function = FUNCTIONS.get(call.function)
    if function is not None and function.ignores_null:
        return False
    return any(arg.nullable for arg in args) or _partial(call, args)


def _partial(call: Call, args: Sequence[Domain]) -> bool:
    """Whether NULL can come out where none went in, for arguments within their domains."""
    match call.function:
        case "cast":
            source = call.args[0].type
            widening = call.type.kind is source.kind and call.type.kind is not Kind.DECIMAL
            fits = widening and (
                call.type.kind is not Kind.INTEGER or (call.type.low <= source.low and source.high <= call.type.high)
            )
            return not (fits or call.type.kind is Kind.TEXT or (source.kind, call.type.kind) in _SAFE_CASTS)
        case "/" | "//" | "%":
            return not (_above(args[1], 0) or _below(args[1], 0))
        case "ln" | "log10" | "log2":
            return not (args[0].bounded and _above(args[0], 0))
        case "sqrt":
            return not (args[0].bounded and args[0].low is not None and args[0].low >= 0)
        case name if name in _WHOLE_ON_RANGES:
            return not args[-1].bounded
    function = FUNCTIONS.get(call.function)
    return call.function in _PARTIAL or (function is not None and function.partial)


def _above(domain: Domain, bound: int) -> bool:
    return domain.low is not None and domain.low > bound


def _below(domain: Domain, bound: int) -> bool:
    return domain.high is not None and domain.high < bound


# Defined for every value of a bounded range: dates fail only at infinity, these numbers only at NaN and infinity.
_WHOLE_ON_RANGES = {
    "year", "month", "day", "quarter", "dayofweek", "isodow", "dayofyear", "decade", "century", "week", "hour", "minute",
    "second", "dayname", "monthname", "epoch", "date_trunc", "exp", "sin", "cos", "cbrt", "atan", "tanh", "degrees",
    "radians",
}  # fmt: skip
_SAFE_CASTS = {
    (Kind.INTEGER, Kind.DOUBLE),
    (Kind.DECIMAL, Kind.DOUBLE),
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.TIMESTAMP, Kind.DATE),
}


# -- numbers -------------------------------------------------------------------------------------------------
def _range(type_: Type, low: Any, high: Any) -> Domain:
    return Domain(type_, low=low, high=high)


def _plus(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    return _range(call.type, _sum(a.low, b.low), _sum(a.high, b.high))


def _minus(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    return _range(call.type, _sum(a.low, _neg(b.high)), _sum(a.high, _neg(b.low)))


def _negation(call: Call, args: Sequence[Domain]) -> Domain:
    return _range(call.type, _neg(args[0].high), _neg(args[0].low))


def _corners(call: Call, a: Domain, b: Domain, operation: Callable[[Any, Any], Any]) -> Domain:
    if not (a.bounded and b.bounded):
        return Domain(call.type)
    corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _range(call.type, min(corners), max(corners))


def _times(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    if call.args[0] == call.args[1] and a.bounded:  # x * x is never negative
        squares = [a.low * a.low, a.high * a.high]
        low = Fraction(0) if a.low <= 0 <= a.high else min(squares)
        return _range(call.type, low, max(squares))
    return _corners(call, a, b, lambda x, y: x * y)


def _nonzero(domain: Domain, type_: Type) -> Domain | None:
    """A divisor without 0, which is rendered as NULL: whole numbers then start at 1 or end at -1."""
    if not domain.bounded or domain.low is None:
        return None
    if domain.low > 0 or domain.high < 0:
        return domain
    if type_.kind is not Kind.INTEGER:
        return None
    low = Fraction(1) if domain.low == 0 else domain.low
    high = Fraction(-1) if domain.high == 0 else domain.high
    if low > high:
        return None
    return replace(domain, low=low, high=high, values=None)


def _divided(call: Call, args: Sequence[Domain]) -> Domain:
    inner = call.args[1]
    whole = inner.args[0].type if isinstance(inner, Call) and inner.function == "cast" else inner.type
    divisor = _nonzero(args[1], whole)
    if divisor is None or not args[0].bounded:
        return Domain(call.type)
    if divisor.low < 0 < divisor.high:  # whole numbers on both sides of 0: the largest quotients are at -1 and 1
        ends = [args[0].low, args[0].high]
        return _range(call.type, min(*ends, *(-e for e in ends)), max(*ends, *(-e for e in ends)))
    return _corners(call, args[0], divisor, lambda x, y: Fraction(x) / y)


def _whole_divided(call: Call, args: Sequence[Domain]) -> Domain:
    quotient = _divided(call, args)
    if not quotient.bounded or quotient.low is None:
        return quotient
    return _range(call.type, Fraction(math.trunc(quotient.low)), Fraction(math.trunc(quotient.high)))


def _modulo(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    if not b.bounded or b.low is None:
        return Domain(call.type)
    most = max(abs(b.low), abs(b.high)) - (1 if call.type.kind is Kind.INTEGER else 0)
    low, high = -most, most
    if a.low is not None:
        low = Fraction(0) if a.low >= 0 else max(low, a.low)
    if a.high is not None:
        high = Fraction(0) if a.high <= 0 else min(high, a.high)
    if low > high:
        return Domain(call.type)
    return _range(call.type, low, high)


def _absolute(call: Call, args: Sequence[Domain]) -> Domain:
    (a,) = args
    low: Any = Fraction(0)
    if a.low is not None and a.low > 0:
        low = a.low
    elif a.high is not None and a.high < 0:
        low = -a.high
    high = max(abs(a.low), abs(a.high)) if a.bounded else None
    return _range(call.type, low, high)


def _rounding(step: Callable[[Any], int]) -> Rule:
    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        low = None if a.low is None else Fraction(step(a.low))
        high = None if a.high is None else Fraction(step(a.high))
        return _stepped(call.type, low, high, Fraction(1))

    return rule


def _stepped(type_: Type, low: Fraction | None, high: Fraction | None, unit: Fraction) -> Domain:
    """A range of multiples of a unit; doubles are listed where they are few, so that they can be keys."""
    if type_.kind is not Kind.DOUBLE or low is None or high is None or (high - low) / unit > _FEW:
        return _range(type_, low, high)
    first, last = int(low / unit), int(high / unit)
    return of_values(type_, [float(unit * step) for step in range(first, last + 1)], nullable=True)


def _round(call: Call, args: Sequence[Domain]) -> Domain:
    places = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
    unit = Fraction(10) ** -min(max(int(places or 0), -30), 30)
    a = args[0]
    low = None if a.low is None else math.floor(a.low / unit) * unit
    high = None if a.high is None else math.ceil(a.high / unit) * unit
    return _stepped(call.type, low, high, unit)


def _between(low: float, high: float) -> Rule:
    ends = Fraction(low), Fraction(high)
    return lambda call, args: _range(call.type, *ends)


def _from_zero(call: Call, args: Sequence[Domain]) -> Domain:
    return _range(call.type, Fraction(0), None)


def _rising(function: Callable[[float], float], floor: float | None = None) -> Rule:
    """A rising function of doubles: the ends go to the ends, a hair outwards."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        ends: list[Any] = []
        for bound, direction in ((a.low, -math.inf), (a.high, math.inf)):
            try:
                value = function(float(bound)) if bound is not None else None
            except (ValueError, OverflowError):
                value = None
            if value is None or not math.isfinite(value):
                ends.append(Fraction(floor) if direction < 0 and floor is not None else None)
            else:
                ends.append(Fraction(math.nextafter(value, direction)))
        return _range(call.type, ends[0], ends[1])

    return rule


def _power(call: Call, args: Sequence[Domain]) -> Domain:
    base, exponent = args
    if not base.bounded or base.low is None or exponent.low is None or exponent.low != exponent.high:
        return Domain(call.type)
    power = exponent.low
    if power.denominator != 1 or not 0 <= power <= 64:
        return Domain(call.type)
    ends = [base.low ** int(power), base.high ** int(power)]
    low = Fraction(0) if power % 2 == 0 and base.low <= 0 <= base.high and power > 0 else min(ends)
    return _range(call.type, low, max(ends))


def _least(call: Call, args: Sequence[Domain]) -> Domain:
    known = [arg.high for arg in args if arg.high is not None and not arg.nullable]
    high = (
        min(known)
        if known
        else max((a.high for a in args), default=None)
        if all(a.high is not None for a in args)
        else None
    )
    low = min(a.low for a in args) if all(a.low is not None for a in args) else None
    return _choice(call, args, low, high)


def _greatest(call: Call, args: Sequence[Domain]) -> Domain:
    known = [arg.low for arg in args if arg.low is not None and not arg.nullable]
    low = (
        max(known)
        if known
        else min((a.low for a in args), default=None)
        if all(a.low is not None for a in args)
        else None
    )
    high = max(a.high for a in args) if all(a.high is not None for a in args) else None
    return _choice(call, args, low, high)


def _choice(call: Call, args: Sequence[Domain], low: Any, high: Any) -> Domain:
    either = union(call.type, args)
    return replace(either, low=low, high=high) if call.type.kind is not Kind.TEXT else either


# -- conditionals --------------------------------------------------------------------------------------------
def _coalesce(call: Call, args: Sequence[Domain]) -> Domain:
    reached: list[Domain] = []
    for arg in args:
        reached.append(arg)
        if not arg.nullable:
            break
    return union(call.type, reached)


def _nullif(call: Call, args: Sequence[Domain]) -> Domain:
    first = args[0]
    if first.values is not None and isinstance(call.args[1], Literal):
        return of_values(call.type, (v for v in first.values if v != call.args[1].value), nullable=True)
    return first


def _cast(call: Call, args: Sequence[Domain]) -> Domain:
    (a,), source, target = args, call.args[0].type.kind, call.type.kind
    if source is Kind.BOOLEAN and target is Kind.INTEGER:
        return of_values(call.type, (int(v) for v in a.values or (False, True)), nullable=a.nullable)
    if source in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE) and target in (Kind.DECIMAL, Kind.DOUBLE):
        unit = Fraction(1, 10**call.type.scale) if target is Kind.DECIMAL else None
        low = math.floor(a.low / unit) * unit if unit and a.low is not None else a.low
        high = math.ceil(a.high / unit) * unit if unit and a.high is not None else a.high
        return _range(call.type, low, high)
    if source in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE) and target is Kind.INTEGER:
        low = None if a.low is None else Fraction(max(math.floor(a.low), call.type.low))
        high = None if a.high is None else Fraction(min(math.ceil(a.high), call.type.high))
        if low is not None and high is not None and low > high:
            return Domain(call.type)
        return replace(_range(call.type, low, high), values=a.values if source is Kind.INTEGER else None)
    if (source, target) == (Kind.DATE, Kind.TIMESTAMP) and a.bounded:
        return _range(call.type, *(dt.datetime.combine(end, dt.time()) for end in (a.low, a.high)))
    if (source, target) == (Kind.TIMESTAMP, Kind.DATE) and a.bounded:
        return _range(call.type, a.low.date(), a.high.date())
    return a if source is target else Domain(call.type)


# -- moments -------------------------------------------------------------------------------------------------
def _part(function: Callable[[Any], int]) -> Rule:
    """A part of a date that rises with it: the year, the decade."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        ends = [None if end is None else Fraction(function(end)) for end in (a.low, a.high)]
        return _range(call.type, ends[0], ends[1])

    return rule


def _cyclic(low: int, high: int, function: Callable[[Any], int] | None = None) -> Rule:
    """A part that comes round again: the month within its year, the hour."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        if function is not None and a.low is not None and a.high is not None and a.low.year == a.high.year:
            return _range(call.type, Fraction(function(a.low)), Fraction(function(a.high)))
        return _range(call.type, Fraction(low), Fraction(high))

    return rule


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
        except (OverflowError, ValueError):  # the end of Python's calendar
            break
    return of_values(call.type, values, nullable=True)


def truncate(unit: str, moment: dt.date) -> dt.datetime:
    """What DuckDB's date_trunc gives."""
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
            return dt.datetime(max(1, day.year // 100 * 100), 1, 1)  # DuckDB's centuries begin in 1900, 2000 ...


def next_step(unit: str, moment: dt.datetime) -> dt.datetime:
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}.get(unit)
    if months is None:
        seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}[unit]
        return moment + dt.timedelta(seconds=seconds)
    total = moment.year * 12 + moment.month - 1 + months
    return moment.replace(year=total // 12, month=total % 12 + 1)


def steps_between(unit: str, first: dt.datetime, last: dt.datetime) -> int:
    seconds = {"second": 1, "minute": 60, "hour": 3600}.get(unit, 86400)
    return int((last - first).total_seconds() // seconds)


_INDEX: dict[str, Callable[[Any], int]] = {  # units in which date_diff counts the borders between two moments
    "day": lambda d: d.toordinal(), "month": lambda d: d.year * 12 + d.month, "year": lambda d: d.year,
    "quarter": lambda d: d.year * 4 + (d.month - 1) // 3,
}  # fmt: skip


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
    return _range(call.type, Fraction(index(end.low) - index(start.high)), Fraction(index(end.high) - index(start.low)))


# -- helpers and the table -----------------------------------------------------------------------------------
def _sum(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def _neg(a: Any) -> Any:
    return None if a is None else -a


def _booleans(call: Call, args: Sequence[Domain]) -> Domain:
    return of_values(BOOLEAN, (False, True), nullable=True)


RULES: dict[str, Rule] = {
    "+": _plus, "-": _minus, "*": _times, "/": _divided, "//": _whole_divided, "%": _modulo, "neg": _negation,
    "abs": _absolute, "floor": _rounding(math.floor), "ceil": _rounding(math.ceil), "trunc": _rounding(math.trunc),
    "round": _round, "sign": _between(-1, 1), "pow": _power, "least": _least, "greatest": _greatest,
    "exp": _rising(math.exp, 0.0), "ln": _rising(math.log), "log10": _rising(math.log10), "log2": _rising(math.log2),
    "sqrt": _rising(math.sqrt, 0.0), "cbrt": _rising(math.cbrt), "atan": _between(-2, 2), "asin": _between(-2, 2),
    "acos": _between(0, 4), "atan2": _between(-4, 4), "sin": _between(-1, 1), "cos": _between(-1, 1),
    "tanh": _between(-1, 1), "sinh": _rising(math.sinh), "degrees": _rising(math.degrees), "radians": _rising(math.radians),
    "pi": _between(3, 4), "bit_count": _between(0, 128), "jaro_similarity": _between(0, 1),
    "jaro_winkler_similarity": _between(0, 1), "length": _from_zero, "strlen": _from_zero, "bit_length": _from_zero,
    "strpos": _from_zero, "levenshtein": _from_zero, "damerau_levenshtein": _from_zero,
    "ascii": _between(0, 0x10FFFF), "unicode": _between(-1, 0x10FFFF),
    "coalesce": _coalesce, "nullif": _nullif, "cast": _cast,
    "year": _part(lambda d: int(d.year)), "decade": _part(lambda d: int(d.year) // 10),
    "century": _part(lambda d: (int(d.year) - 1) // 100 + 1), "month": _cyclic(1, 12, lambda d: int(d.month)),
    "quarter": _cyclic(1, 4, lambda d: (int(d.month) + 2) // 3), "day": _cyclic(1, 31), "week": _cyclic(1, 53),
    "dayofyear": _cyclic(1, 366, lambda d: int(d.timetuple().tm_yday)), "dayofweek": _cyclic(0, 6),
    "isodow": _cyclic(1, 7), "hour": _cyclic(0, 23), "minute": _cyclic(0, 59), "second": _cyclic(0, 59),
    "dayname": _names(DAYS), "monthname": _names(MONTHS), "date_trunc": _truncated,
    "date_diff": _between_dates, "date_minus": _between_dates,
    **dict.fromkeys(_BOOLEANS, _booleans),
}  # fmt: skip
