"""The table of functions: a name that is not here is refused. Each row: arguments, result, and DuckDB text
that cannot fail.

An argument is one of: num, double, int, text, any, bool, moment (DATE or TIMESTAMP), clock (those or TIME),
or a capitalised variant that must be a literal (INT, TEXT). A trailing '?' is optional, '*' repeats. `{0}` in
the text is the first argument, `{args}` all of them; every argument arrives in parentheses. TRY stands
directly around what can fail, and takes only what cannot: what two of them share, DuckDB computes once,
outside of both.
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
    text: str
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
    names: str, takes: str, gives: Type | Gives, text: str, partial: bool = False, ignores_null: bool = False
) -> None:
    rule = _always(gives) if isinstance(gives, Type) else gives
    for name in names.split():
        rendered = text.replace("{name}", name)
        _FUNCTIONS.append(Function(name, tuple(takes.split()), rule, rendered, partial, ignores_null))


# What makes text longer is cut at 10,000 characters, so that no row can be made to fill the memory.
# -- text ----------------------------------------------------------------------------------------------------
_add("lower upper reverse strip_accents", "text", TEXT, "{name}({0})")
_add("trim ltrim rtrim", "text TEXT?", TEXT, "{name}({args})")
_add("length", "text", BIGINT, "length({0})")
_add("bit_length strlen", "text", BIGINT, "{name}({0})")
_add("ascii unicode", "text", SMALL, "{name}({0})")
_add("substring", "text int int?", TEXT, "TRY(substring({args}))", partial=True)
_add("left right", "text int", TEXT, "TRY({name}({args}))", partial=True)
_add("replace", "text TEXT TEXT", TEXT, "left(replace({args}), 10000)")
_add("translate", "text TEXT TEXT", TEXT, "translate({args})")
_add(
    "split_part", "text TEXT INT", TEXT, "TRY(split_part({args}))"
)  # without TRY, DuckDB 2.0 fails on a column of NULLs
_add("starts_with ends_with contains", "text text", BOOLEAN, "{name}({args})")
_add("strpos", "text text", BIGINT, "strpos({args})")
_add("concat", "text text*", TEXT, "left(concat({args}), 10000)", ignores_null=True)
_add("concat_ws", "TEXT text text*", TEXT, "left(concat_ws({args}), 10000)", ignores_null=True)
_add("||", "text text", TEXT, "left({0} || {1}, 10000)")
_add("levenshtein damerau_levenshtein", "text TEXT", BIGINT, "{name}({args})")
_add("jaro_winkler_similarity jaro_similarity", "text TEXT", DOUBLE, "{name}({args})")
_add("like ilike", "text TEXT", BOOLEAN, "({0} {name} {1})")
_add("like_escape ilike_escape", "text TEXT TEXT", BOOLEAN, "{name}({args})")
_add("similar_to", "text TEXT", BOOLEAN, "({0} SIMILAR TO {1})")
_add("regexp_matches regexp_full_match", "text TEXT TEXT?", BOOLEAN, "{name}({args})")
# DuckDB reads the pattern of regexp_matches when it plans, and those of the others only when rows come,
# outside TRY: whether a malformed one fails would tell whether there are such rows. So it is read by
# regexp_matches first, which is then a constant, with the same options: a pattern may be too large only where
# 'i' has every letter in both cases.
_READ = "(CASE WHEN regexp_matches('', {{1}}{}) IS NOT NULL THEN {} END)"
_add(
    "regexp_replace",
    "text TEXT TEXT TEXT",
    TEXT,
    _READ.format(", replace({3}, 'g', '')", "left(TRY(regexp_replace({args})), 10000)"),
    partial=True,
)
# \C matches one byte, and a part of a letter is no text: DuckDB fails on the rows where it is all that was
# found
_add("regexp_extract", "text TEXT INT?", TEXT, _READ.format("", "TRY(regexp_extract({args}))"), partial=True)
# -- numbers -------------------------------------------------------------------------------------------------
_add("abs", "num", _absolute, "abs({0})")
_add("floor ceil trunc", "num", _whole, "{name}({0})")
_add("round", "num INT?", _rounded, "round({args})")
_add("sign", "num", integer(-1, 1), "sign({0})")
_add("even", "double", DOUBLE, "even({0})")
_add("sqrt ln log10 log2", "double", DOUBLE, "TRY({name}({0}))", partial=True)
_add("asin acos", "double", DOUBLE, "TRY({name}({0}))", partial=True)
_add(
    "exp sin cos tan atan sinh cosh tanh degrees radians", "double", DOUBLE, "TRY({name}({0}))", partial=True
)
# DuckDB 2.0 takes its own cbrt for monotone, and fails where two neighbouring values of the data show that it
# is not quite
_add("cbrt", "double", DOUBLE, "(sign({0}) * TRY(pow(abs({0}), 1.0 / 3.0)))", partial=True)
_add("atan2", "double double", DOUBLE, "atan2({args})")
_add("pow", "double double", DOUBLE, "TRY(pow({args}))", partial=True)
_add("pi", "", DOUBLE, "pi()")
_add("isnan isinf isfinite", "double", BOOLEAN, "{name}({0})")
_add("bit_count", "int", integer(0, 128), "bit_count({0})")
_add("gcd", "int int", BIGINT, "TRY(gcd({args}))", partial=True)
# -- dates ---------------------------------------------------------------------------------------------------
_add(
    "year month day quarter dayofweek isodow dayofyear decade century",
    "moment",
    BIGINT,
    "{name}({0})",
    partial=True,
)
# DuckDB's optimizer calls these on the least and greatest value of a column, outside TRY, and fails where
# dates end; it knows nothing of a sum, so it leaves them alone behind + INTERVAL 0 DAY. The sum has a TRY of
# its own: two functions of one sum share it, and DuckDB would compute it before, outside their TRY.
_add("week yearweek isoyear", "moment", BIGINT, "TRY({name}(TRY({0} + INTERVAL 0 DAY)))", partial=True)
_add("hour minute second", "clock", BIGINT, "{name}({0})", partial=True)
_add("dayname monthname", "moment", TEXT, "{name}({0})", partial=True)
_add("last_day", "moment", DATE, "TRY(last_day({0}))", partial=True)
_add("epoch", "moment", DOUBLE, "epoch({0})", partial=True)
_add("date_trunc", "TEXT moment", TIMESTAMP, "TRY(date_trunc({0}, TRY({1} + INTERVAL 0 DAY)))", partial=True)
_add("date_diff", "TEXT moment moment", BIGINT, "TRY(date_diff({args}))", partial=True)
_add("make_date", "int int int", DATE, "TRY(make_date({args}))", partial=True)
_add("strftime", "moment TEXT", TEXT, "TRY(strftime({args}))", partial=True)
_add("try_strptime", "text TEXT", TIMESTAMP, "TRY(try_strptime({args}))", partial=True)

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
