"""The table of functions: a name that is not here is refused. Each row: arguments, result, and when it is
NULL. How an engine computes one is in render/.

An argument is one of: num, double, int, text, any, bool, moment (DATE or TIMESTAMP), clock (those or TIME),
or a capitalised variant that must be a literal (INT, TEXT). A trailing '?' is optional, '*' repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    integer,
)

Gives = Callable[[Sequence[Type]], Type]


@dataclass(frozen=True)
class Function:
    """One scalar function. `partial`: it may give NULL although no argument is NULL."""

    name: str
    takes: tuple[str, ...]
    gives: Gives
    partial: bool = False
    ignores_null: bool = False  # NULL arguments do not make the result NULL


def _always(result: Type) -> Gives:
    return lambda _: result


def _first(types: Sequence[Type]) -> Type:
    return types[0]


def _absolute(types: Sequence[Type]) -> Type:
    first = types[0]
    return integer(0, max(abs(first.low), abs(first.high))) if first.kind is Kind.INTEGER else first


def _whole(types: Sequence[Type]) -> Type:
    """FLOOR and friends keep whole numbers whole; a DECIMAL may grow by a digit and becomes DOUBLE."""
    return types[0] if types[0].kind is Kind.INTEGER else DOUBLE


def _rounded(types: Sequence[Type]) -> Type:
    """Whole numbers rounded to tens, hundreds ... may pass their bounds by as much."""
    first = types[0]
    if first.kind is not Kind.INTEGER or len(types) == 1 or types[1].kind is not Kind.INTEGER:
        return _whole(types)
    past = 10 ** min(40, max(0, -types[1].low))
    return integer(first.low - past, first.high + past)


SMALL = integer(*INTEGER_BOUNDS["INTEGER"])
_FUNCTIONS: list[Function] = []


def _add(
    names: str, takes: str, gives: Type | Gives, partial: bool = False, ignores_null: bool = False
) -> None:
    rule = _always(gives) if isinstance(gives, Type) else gives
    for name in names.split():
        _FUNCTIONS.append(Function(name, tuple(takes.split()), rule, partial, ignores_null))


# -- text ----------------------------------------------------------------------------------------------------
_add("lower upper reverse strip_accents", "text", TEXT)
_add("trim ltrim rtrim", "text TEXT?", TEXT)
_add("length bit_length strlen", "text", BIGINT)
_add("ascii unicode", "text", SMALL)
_add("substring", "text int int?", TEXT, partial=True)
_add("left right", "text int", TEXT, partial=True)
_add("replace translate", "text TEXT TEXT", TEXT)
_add("split_part", "text TEXT INT", TEXT)
_add("starts_with ends_with contains", "text text", BOOLEAN)
_add("strpos", "text text", BIGINT)
_add("concat", "text text*", TEXT, ignores_null=True)
_add("concat_ws", "TEXT text text*", TEXT, ignores_null=True)
_add("||", "text text", TEXT)
_add("levenshtein damerau_levenshtein", "text TEXT", BIGINT)
_add("jaro_winkler_similarity jaro_similarity", "text TEXT", DOUBLE)
_add("like ilike similar_to", "text TEXT", BOOLEAN)
_add("like_escape ilike_escape", "text TEXT TEXT", BOOLEAN)
_add("regexp_matches regexp_full_match", "text TEXT TEXT?", BOOLEAN)
_add("regexp_replace", "text TEXT TEXT TEXT", TEXT, partial=True)
_add("regexp_extract", "text TEXT INT?", TEXT, partial=True)
# -- numbers -------------------------------------------------------------------------------------------------
_add("abs", "num", _absolute)
_add("floor ceil trunc", "num", _whole)
_add("round", "num INT?", _rounded)
_add("sign", "num", integer(-1, 1))
_add("even", "double", DOUBLE)
_add("sqrt ln log10 log2 asin acos cbrt", "double", DOUBLE, partial=True)
_add("exp sin cos tan atan sinh cosh tanh degrees radians", "double", DOUBLE, partial=True)
_add("atan2", "double double", DOUBLE)
_add("pow", "double double", DOUBLE, partial=True)
_add("pi", "", DOUBLE)
_add("isnan isinf isfinite", "double", BOOLEAN)
_add("bit_count", "int", integer(0, 128))
_add("gcd", "int int", BIGINT, partial=True)
# -- dates ---------------------------------------------------------------------------------------------------
_add("year month day quarter dayofweek isodow dayofyear decade century", "moment", BIGINT, partial=True)
_add("week yearweek isoyear", "moment", BIGINT, partial=True)
_add("hour minute second", "clock", BIGINT, partial=True)
_add("dayname monthname", "moment", TEXT, partial=True)
_add("last_day", "moment", DATE, partial=True)
_add("epoch", "moment", DOUBLE, partial=True)
_add("date_trunc", "TEXT moment", TIMESTAMP, partial=True)
_add("date_diff", "TEXT moment moment", BIGINT, partial=True)
_add("make_date", "int int int", DATE, partial=True)
_add("strftime", "moment TEXT", TEXT, partial=True)
_add("try_strptime", "text TEXT", TIMESTAMP, partial=True)

FUNCTIONS: dict[str, Function] = {function.name: function for function in _FUNCTIONS}

ALIASES = {
    "ceiling": "ceil", "power": "pow", "char_length": "length", "character_length": "length", "len": "length",
    "lcase": "lower", "ucase": "upper", "substr": "substring", "instr": "strpos", "position": "strpos",
    "prefix": "starts_with", "suffix": "ends_with", "date_part": "extract", "datepart": "extract",
    "weekday": "dayofweek", "dow": "dayofweek", "dayofmonth": "day", "weekofyear": "week", "isdow": "isodow",
    "datediff": "date_diff", "datetrunc": "date_trunc", "strptime": "try_strptime", "mean": "avg",
    "editdist3": "levenshtein", "log": "log10", "isoweek": "week", "day_of_week": "dayofweek",
    "day_of_year": "dayofyear",
}  # fmt: skip

# Parts that EXTRACT and DATE_PART know, by the function that computes each.
PARTS = {
    "year": "year", "month": "month", "day": "day", "quarter": "quarter", "week": "week", "hour": "hour",
    "minute": "minute", "second": "second", "dow": "dayofweek", "dayofweek": "dayofweek", "isodow": "isodow",
    "doy": "dayofyear", "dayofyear": "dayofyear", "decade": "decade", "century": "century", "epoch": "epoch",
    "isoyear": "isoyear", "yearweek": "yearweek", "isoweek": "week",
}  # fmt: skip
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century")

# Operators and forms that the binder builds itself: how each is written, for the documentation and the tests.
OPERATORS: dict[str, str] = {
    "+": "a + b", "-": "a - b", "*": "a * b", "/": "a / b", "//": "a // b", "%": "a % b", "neg": "-a",
    "=": "a = b", "<>": "a <> b", "<": "a < b", "<=": "a <= b", ">": "a > b", ">=": "a >= b",
    "is_distinct": "a IS DISTINCT FROM b", "is_same": "a IS NOT DISTINCT FROM b", "and": "a AND b",
    "or": "a OR b", "not": "NOT a", "is_null": "a IS NULL", "is_true": "a IS TRUE", "is_false": "a IS FALSE",
    "in": "a IN (1, 2)", "case": "CASE WHEN a THEN b ELSE c END", "coalesce": "COALESCE(a, b)",
    "nullif": "NULLIF(a, b)", "least": "LEAST(a, b)", "greatest": "GREATEST(a, b)", "cast": "CAST(a AS type)",
    "date_add": "d + INTERVAL 1 DAY", "date_shift": "d + 1", "date_minus": "d1 - d2",
}  # fmt: skip
_STRICT = frozenset("+ - * / // % neg = <> < <= > >= cast not date_add date_shift date_minus".split())


def is_strict(function: str) -> bool:
    """Whether it is NULL as soon as one of its arguments is."""
    return function in _STRICT or (function in FUNCTIONS and not FUNCTIONS[function].ignores_null)


def result_type(operator: str, left: Type, right: Type, divisor: int | None) -> Type:
    """The type in which an operation on numbers cannot overflow; `divisor` is a literal right-hand side."""
    if operator == "/":
        return DOUBLE
    if left.kind is not Kind.INTEGER or right.kind is not Kind.INTEGER:
        return DOUBLE
    match operator:
        case "+":
            return integer(left.low + right.low, left.high + right.high)
        case "-":
            return integer(left.low - right.high, left.high - right.low)
        case "*":
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            # DuckDB's multiplication cannot give the least HUGEINT
            return (
                integer(min(corners), max(corners)) if min(corners) > INTEGER_BOUNDS["HUGEINT"][0] else DOUBLE
            )
        case "//":
            if divisor and divisor > 0:
                return integer(-(abs(left.low) // divisor), abs(left.high) // divisor)
            most = max(abs(left.low), abs(left.high))
            return integer(-most, most)
        case _:
            most = max(abs(right.low), abs(right.high), abs(left.low), abs(left.high))
            if divisor and divisor > 0:
                return integer(min(left.low, -divisor), max(left.high, divisor))
            return integer(-most, most)


def common(types: Sequence[Type]) -> Type | None:
    """The type that holds the values of all (CASE branches, COALESCE, UNION), or None where there is none."""
    kinds = {each.kind for each in types if each.kind is not Kind.NULL}
    known = [each for each in types if each.kind is not Kind.NULL]
    if not known:
        return types[0]
    if kinds == {Kind.INTEGER}:
        return integer(min(each.low for each in known), max(each.high for each in known))
    if kinds <= {Kind.INTEGER, Kind.DECIMAL} and len(set(known)) > 1:
        scale = max(each.scale for each in known)
        whole = max(
            each.precision - each.scale
            if each.kind is Kind.DECIMAL
            else len(str(max(abs(each.low), abs(each.high))))
            for each in known
        )
        return decimal(whole + scale, scale)
    if kinds <= {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}:
        return known[0] if len(set(known)) == 1 else DOUBLE
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    return known[0] if len(kinds) == 1 else None
