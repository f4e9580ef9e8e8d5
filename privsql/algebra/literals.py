"""Constants: the text or Python value of a literal goes in with the type it must have; a typed Literal comes
out.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from privsql.algebra.expressions import Call, Expression, Literal
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    integer,
)

_INTERVAL_UNITS = "microsecond|millisecond|second|minute|hour|day|week|month|quarter|year|decade|century"
_ROOMY = Context(prec=100, rounding=ROUND_HALF_UP)  # Python's own 28 digits do not hold a DECIMAL(38)


# Texts that DuckDB reads as true or false, in any case.
_TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
# Texts that DuckDB reads, too; Python reads further ones: digits of other scripts, 20240131, 2024-W05, ten
# o'clock as 10.
_NUMBER = re.compile(r"\s*([+-]?[0-9.e+-]+|[+-]?nan|[+-]?inf(inity)?)\s*", re.ASCII | re.IGNORECASE)
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
_DAY_AND_TIME = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_TIME})?"
# Other spellings that DuckDB may read: whatever is not so fails.
_SPELT_NUMBER = re.compile(
    r"\s*([+-]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(e[+-]?[0-9]+)?|0x[0-9a-f]+|0b[01]+"
    r"|[+-]?nan|[+-]?inf(inity)?)\s*",
    re.ASCII | re.IGNORECASE,
)
_SPELT_DAY = re.compile(r"\s*[+-]?([0-9]{1,6})([-/\\ ])([0-9]{1,2})\2([0-9]{1,2})(?![0-9])", re.ASCII)
_LONGEST_NUMBER = 300  # digits; a longer one is beyond DOUBLE, too


def ordinal(text: str) -> int | None:
    """A plain whole number of at most 18 digits: LIMIT, OFFSET, GROUP BY 1."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def number(text: str) -> Literal | None:
    """'12', '1.50' or '1e3' as DuckDB would type it: an integer, a DECIMAL, a DOUBLE; None where it is none,
    or too long.
    """
    if len(text) > _LONGEST_NUMBER:
        return None
    if re.fullmatch(r"[+-]?\d+", text):
        value = int(text)
        type_ = integer(value, value)
        return Literal(value if type_.kind is Kind.INTEGER else float(value), type_)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)", text):
        exact = Decimal(text)
        exponent = exact.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        type_ = decimal(max(len(exact.as_tuple().digits), scale + 1), scale)
        return Literal(exact if type_.kind is Kind.DECIMAL else float(exact), type_)
    try:
        value_ = float(text)
    except ValueError:
        return None
    return Literal(value_ + 0.0, DOUBLE)


def interval(amount: str, unit: str) -> Literal | None:
    """INTERVAL '3' DAY; only whole amounts of one plain unit."""
    unit = unit.lower().removesuffix("s")
    if not re.fullmatch(_INTERVAL_UNITS, unit) or not re.fullmatch(r"[+-]?\d{1,6}", amount.strip()):
        return None
    return Literal(f"{int(amount)} {unit}", INTERVAL)


def convert(literal: Literal, target: Type) -> Literal | None:
    """A literal as another type, exactly as a cast would read it; None where it does not fit."""
    value = literal.value
    if value is None:
        return Literal(None, target)
    if literal.type == target:
        return literal
    try:
        converted = _convert(value, target)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    if converted is None:
        return None
    if target.kind is Kind.INTEGER:
        return Literal(converted, integer(converted, converted))
    return Literal(converted, target)


def unreadable(literal: Literal, target: Type) -> bool:
    """Whether a cast of it surely fails, in DuckDB too, which reads more spellings than we do: 1999-1-5, 1e2
    as an INTEGER.
    """
    value = literal.value
    if value is None or convert(literal, target) is not None:
        return False
    if isinstance(value, int) and not isinstance(value, bool):
        return target.kind is Kind.INTEGER  # past its ends
    if not isinstance(value, str):
        return False
    match target.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return not _SPELT_NUMBER.fullmatch(value)
        case Kind.BOOLEAN:
            return value.strip().lower() not in _TRUTHS
        case Kind.DATE | Kind.TIMESTAMP:
            day = _SPELT_DAY.match(value)
            if day is None:
                return not re.fullmatch(r"\s*([+-]?inf(inity)?|epoch)\s*", value, re.IGNORECASE)
            clock = value[day.end() + 1 :]
            return not _is_day(int(day[1]), int(day[3]), int(day[4])) or bool(
                re.fullmatch(_TIME, clock) and not _is_time(clock)
            )
        case Kind.TIME:
            spelt = _SPELT_DAY.match(value) or re.search(":|epoch", value)
            return spelt is None or bool(re.fullmatch(_TIME, value) and not _is_time(value))
        case _:
            return False


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        # the calendar repeats itself, also where Python's does not reach
        dt.date(2000 + year % 400, month, day)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    hour, minute, second = (*(float(each) for each in text.split(":")), 0.0)[:3]
    return (hour < 24 and minute < 60 and second < 60) or (hour, minute, second) == (24, 0, 0)


def _convert(value: Any, target: Type) -> Any:
    """None where the type does not hold the value."""
    match target.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return _number(value, target)
        case Kind.TEXT:
            return value if isinstance(value, str) else None
        case Kind.BOOLEAN if isinstance(value, bool):
            return value
        case Kind.BOOLEAN if isinstance(value, str):
            return _TRUTHS.get(value.lower())
        case Kind.DATE:
            return _day(value)
        case Kind.TIMESTAMP:
            return _moment(value)
        case Kind.TIME if isinstance(value, dt.time):
            return value if value.tzinfo is None else None
        case Kind.TIME if isinstance(value, str) and re.fullmatch(_TIME, value):
            return dt.time.fromisoformat(value)
        case _:
            return None


def _number(value: Any, target: Type) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    match target.kind:
        case Kind.INTEGER:
            if isinstance(value, (float, Decimal)) and not (math.isfinite(value) and value == int(value)):
                return None
            whole = int(value)
            return whole if target.low <= whole <= target.high else None
        case Kind.DECIMAL:
            if isinstance(value, float):
                return None
            if not Decimal(value).is_finite():
                return None  # a DECIMAL has no NaN; written out, it would be read as a name
            exact = Decimal(value).quantize(Decimal(1).scaleb(-target.scale), context=_ROOMY)
            return exact if len(exact.as_tuple().digits) <= target.precision else None
        case _:
            # one zero: -0.0 equals 0.0 in Python, and is not the same to every function
            return float(value) + 0.0


def _day(value: Any) -> dt.date | None:
    match value:
        case dt.datetime():
            return value.date() if value.time() == dt.time() else None
        case dt.date():
            return value
        case str() if re.fullmatch(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*", value, re.ASCII):
            return dt.date.fromisoformat(value.strip())
        case _:
            return None


def _moment(value: Any) -> dt.datetime | None:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None) if value.tzinfo is None else None
        case dt.date():
            return dt.datetime.combine(value, dt.time())
        case str() if re.fullmatch(_DAY_AND_TIME, value):
            return dt.datetime.fromisoformat(value)
        case _:
            return None


def literal_of(value: Any) -> Literal | None:
    """A Python value from a policy as a literal of its natural type."""
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # numpy scalars
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    match value:
        case None:
            return Literal(None, NULL)
        case bool():
            return Literal(value, BOOLEAN)
        case int():
            return Literal(value, integer(value, value))
        case float():
            return Literal(value, DOUBLE)
        case Decimal() if value.is_finite():
            return number(f"{value:f}")  # 1E+18 would be a DOUBLE
        case str():
            return Literal(value, TEXT)
        case dt.datetime():
            return Literal(value, TIMESTAMP)
        case dt.date():
            return Literal(value, DATE)
        case dt.time(tzinfo=None):
            return Literal(value, TIME)
        case _:
            return None


def whole(value: int) -> Literal:
    """A whole number that fits BIGINT."""
    return Literal(value, integer(value, value) if BIGINT.low <= value <= BIGINT.high else DOUBLE)


def text_constant(value: Expression) -> Expression:
    """A text joined from constants, as a constant: '%' || 'CA' || '%' is a pattern, and so is lower('%CA%').

    Beyond ASCII, engines do not agree on the case of letters: such a call stays as it is.
    """
    if not isinstance(value, Call) or value.function not in ("||", "concat", "lower", "upper"):
        return value
    parts = [text_constant(each) for each in value.args]
    texts = [each.value for each in parts if isinstance(each, Literal) and isinstance(each.value, str)]
    if len(texts) < len(parts):
        return value
    whole = "".join(texts)
    match value.function:
        case "lower" if whole.isascii():
            return Literal(whole.lower(), TEXT)
        case "upper" if whole.isascii():
            return Literal(whole.upper(), TEXT)
        case "||" | "concat":
            return Literal(whole, TEXT)
        case _:
            return value
