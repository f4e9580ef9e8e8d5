"""The table of functions: all that is believed of each function and operator stands in its row, once.

A name without a row is refused. A row is local by being here: the value of a call depends on its own
arguments alone, never on other rows, on the time or on memory. How an engine computes a function, so that
it cannot fail on any row, is one line of its dialect in render/. tests/conformance tries these rows on
the real engine: types, NULL, failures and locality.

An argument is one of: num, double, int, text, any, bool, moment (DATE or TIMESTAMP), alike (moments, all
brought to one type), clock (DATE, TIMESTAMP or TIME), or a capitalised kind that must be a constant: INT,
TEXT, or a text in a language of its own, which algebra/patterns.py checks. A trailing '?' is optional,
'*' repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

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


class Nulls(Enum):
    """What NULL among the arguments does to the result."""

    STRICT = auto()  # the result is NULL as soon as one argument is
    PASSED = auto()  # the result can be NULL where an argument is, and need not be: AND, CASE
    SKIPPED = auto()  # the result is NULL only where all arguments are: COALESCE
    NEVER = auto()  # the result is never NULL: IS NULL, CONCAT


class Undefined(Enum):
    """For which arguments the result may be NULL although none of them is."""

    NOWHERE = auto()
    SOMEWHERE = auto()
    AT_INFINITY = (
        auto()
    )  # only NaN, infinities, and dates beyond Python's calendar: nothing in a bounded range
    BY_ZERO = auto()  # where the second argument is 0
    BELOW_ZERO = auto()  # and at NaN and infinity
    UP_TO_ZERO = auto()  # the same, and at 0
    BY_TYPE = auto()  # depends on the types: a CAST


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """What is believed of a function or operator.

    `equal_alike`: numbers that are equal give equal results; 0.0 and -0.0 are not told apart.
    `keeps_whole`: a whole number comes out as it went in.
    `repeats`: how often an argument is written where the call is rendered.
    `infix`: what stands between its two arguments, where it is written so.
    """

    name: str
    nulls: Nulls = Nulls.STRICT
    undefined: Undefined = Undefined.NOWHERE
    equal_alike: bool = False
    keeps_whole: bool = False
    repeats: int = 1
    infix: str = ""


@dataclass(frozen=True, kw_only=True)
class Function(Beliefs):
    """A function that is called by its name: the arguments it takes, and the type it gives for theirs."""

    takes: tuple[str, ...]
    gives: Gives


@dataclass(frozen=True, kw_only=True)
class Operator(Beliefs):
    """An operator or form that the binder builds and types itself; `form` shows how it is written.

    `opposite`, of a comparison: NOT (a < b) is a >= b, of NULL as well.
    `mirrored`, of a comparison: a < b is b > a.
    """

    form: str
    opposite: str = ""
    mirrored: str = ""


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
_SOMEWHERE, _AT_INFINITY = Undefined.SOMEWHERE, Undefined.AT_INFINITY


def _function(
    names: str, takes: str, gives: Type | Gives, undefined: Undefined = Undefined.NOWHERE, **beliefs: Any
) -> Iterator[Function]:
    """A row for each of the names."""
    rule = _always(gives) if isinstance(gives, Type) else gives
    for name in names.split():
        yield Function(name=name, takes=tuple(takes.split()), gives=rule, undefined=undefined, **beliefs)


def _infix(sign: str, name: str = "", form: str = "", **beliefs: Any) -> Operator:
    """A row of an operator that stands between its arguments."""
    return Operator(name=name or sign, form=form or f"a {sign} b", infix=sign, **beliefs)


def _compared(sign: str, opposite: str, mirrored: str) -> Operator:
    return _infix(sign, equal_alike=True, opposite=opposite, mirrored=mirrored)


_FUNCTIONS = (
    # -- text ------------------------------------------------------------------------------------------------
    *_function("lower upper reverse strip_accents", "text", TEXT),
    *_function("trim ltrim rtrim", "text TEXT?", TEXT),
    *_function("length bit_length strlen", "text", BIGINT),
    *_function("ascii unicode", "text", SMALL),
    *_function("substring", "text int int?", TEXT, _SOMEWHERE),
    *_function("left right", "text int", TEXT, _SOMEWHERE),
    *_function("replace", "text TEXT SHORT", TEXT),
    *_function("translate", "text TEXT TEXT", TEXT),
    *_function("lpad rpad", "text INT FILL", TEXT),
    *_function("md5 sha256", "text", TEXT),
    *_function("split_part", "text TEXT INT", TEXT),
    *_function("starts_with ends_with contains", "text text", BOOLEAN),
    *_function("strpos", "text text", BIGINT),
    *_function("concat", "text text*", TEXT, nulls=Nulls.NEVER),
    *_function("concat_ws", "TEXT text text*", TEXT, nulls=Nulls.NEVER),
    *_function("||", "text text", TEXT, infix="||"),
    *_function("levenshtein damerau_levenshtein", "text SHORT", BIGINT),
    *_function("jaro_winkler_similarity jaro_similarity", "text SHORT", DOUBLE),
    *_function("like", "text LIKE", BOOLEAN, infix="LIKE"),
    *_function("ilike", "text LIKE", BOOLEAN, infix="ILIKE"),
    *_function("like_escape ilike_escape", "text LIKE ESCAPE", BOOLEAN),
    *_function("similar_to", "text REGEX", BOOLEAN),
    *_function("regexp_matches regexp_full_match", "text REGEX OPTIONS?", BOOLEAN),
    *_function("regexp_replace", "text REGEX REWRITE OPTIONS", TEXT, _SOMEWHERE),
    *_function("regexp_extract", "text REGEX INT?", TEXT, _SOMEWHERE),
    # -- numbers ---------------------------------------------------------------------------------------------
    *_function("abs", "num", _absolute, equal_alike=True),
    *_function("floor ceil trunc", "num", _whole, equal_alike=True, keeps_whole=True),
    *_function("round", "num INT?", _rounded, equal_alike=True),
    *_function("truncate", "num INT", _rounded, equal_alike=True),
    *_function("sign", "num", integer(-1, 1)),
    *_function("even", "double", DOUBLE),
    *_function("sqrt", "double", DOUBLE, Undefined.BELOW_ZERO),
    *_function("ln log10 log2", "double", DOUBLE, Undefined.UP_TO_ZERO),
    *_function("asin acos", "double", DOUBLE, _SOMEWHERE),
    *_function("exp sin cos atan tanh degrees radians", "double", DOUBLE, _AT_INFINITY),
    *_function("cbrt", "double", DOUBLE, _AT_INFINITY, repeats=2),
    *_function("tan sinh cosh", "double", DOUBLE, _SOMEWHERE),
    *_function("asinh", "double", DOUBLE),
    *_function("atan2", "double double", DOUBLE),
    *_function("pow", "double double", DOUBLE, _SOMEWHERE),
    *_function("pi", "", DOUBLE),
    *_function("isnan isinf isfinite", "double", BOOLEAN, equal_alike=True),
    *_function("bit_count", "int", integer(0, 128)),
    *_function("gcd", "int int", BIGINT, _SOMEWHERE),
    *_function("bitand bitor bitxor", "int int", BIGINT),
    # -- dates -----------------------------------------------------------------------------------------------
    *_function("year month day quarter dayofweek isodow dayofyear", "moment", BIGINT, _AT_INFINITY),
    *_function("decade century week", "moment", BIGINT, _AT_INFINITY),
    *_function("yearweek isoyear", "moment", BIGINT, _SOMEWHERE),
    *_function("hour minute second millisecond microsecond", "clock", BIGINT, _AT_INFINITY),
    *_function("millennium era", "moment", BIGINT, _AT_INFINITY),
    *_function("julian", "moment", DOUBLE, _AT_INFINITY),
    *_function("dayname monthname", "moment", TEXT, _AT_INFINITY),
    *_function("last_day", "moment", DATE, _SOMEWHERE),
    *_function("epoch", "moment", DOUBLE, _AT_INFINITY),
    *_function("date_trunc", "UNIT moment", TIMESTAMP, _AT_INFINITY),
    *_function("time_bucket", "STEP moment", TIMESTAMP, _SOMEWHERE),
    *_function("date_diff date_sub", "UNIT alike alike", BIGINT, _SOMEWHERE),
    *_function("make_date", "int int int", DATE, _SOMEWHERE),
    *_function("make_timestamp", "int int int int int double", TIMESTAMP, _SOMEWHERE),
    *_function("from_epoch", "double", TIMESTAMP, _SOMEWHERE),
    *_function("strftime", "moment FORMAT", TEXT, _SOMEWHERE),
    *_function("try_strptime", "text FORMAT", TIMESTAMP, _SOMEWHERE),
)
_OPERATORS = (
    _infix("+", equal_alike=True),
    _infix("-", equal_alike=True),
    _infix("*", equal_alike=True),
    _infix("/", undefined=Undefined.BY_ZERO),
    _infix("//", undefined=Undefined.BY_ZERO),
    _infix("%", undefined=Undefined.BY_ZERO),
    Operator(name="neg", form="-a", equal_alike=True),
    _compared("=", "<>", "="),
    _compared("<>", "=", "<>"),
    _compared("<", ">=", ">"),
    _compared("<=", ">", ">="),
    _compared(">", "<=", "<"),
    _compared(">=", "<", "<="),
    _infix("IS DISTINCT FROM", "is_distinct", nulls=Nulls.NEVER, equal_alike=True),
    _infix("IS NOT DISTINCT FROM", "is_same", nulls=Nulls.NEVER, equal_alike=True),
    _infix("AND", "and", nulls=Nulls.PASSED),
    _infix("OR", "or", nulls=Nulls.PASSED),
    Operator(name="not", form="NOT a"),
    Operator(name="is_null", form="a IS NULL", nulls=Nulls.NEVER, equal_alike=True),
    Operator(name="is_true", form="a IS TRUE", nulls=Nulls.NEVER),
    Operator(name="is_false", form="a IS FALSE", nulls=Nulls.NEVER),
    Operator(name="in", form="a IN (1, 2)", nulls=Nulls.PASSED, equal_alike=True),
    Operator(name="case", form="CASE WHEN a THEN b ELSE c END", nulls=Nulls.PASSED, equal_alike=True),
    Operator(name="coalesce", form="COALESCE(a, b)", nulls=Nulls.SKIPPED, equal_alike=True),
    Operator(name="nullif", form="NULLIF(a, b)", nulls=Nulls.PASSED, undefined=_SOMEWHERE, equal_alike=True),
    Operator(name="least", form="LEAST(a, b)", nulls=Nulls.SKIPPED),
    Operator(name="greatest", form="GREATEST(a, b)", nulls=Nulls.SKIPPED),
    Operator(name="cast", form="CAST(a AS type)", undefined=Undefined.BY_TYPE),
    _infix("+", "date_add", "d + INTERVAL 1 DAY", undefined=_SOMEWHERE),
    _infix("+", "date_shift", "d + 1", undefined=_SOMEWHERE),
    _infix("-", "date_minus", "d1 - d2"),
)
# What only privsql itself builds: a row of values, several quantiles, and a number in steps of a grid.
FIXED_POINT = "fixed_point"  # value, step, lowest, highest
_OUR_OWN = (
    Operator(name="row", form="(a, b)", nulls=Nulls.PASSED),
    Operator(name="list", form="[a, b]", nulls=Nulls.PASSED),
    Operator(name=FIXED_POINT, form="fixed_point(a, step, low, high)", nulls=Nulls.PASSED),
)

FUNCTIONS: dict[str, Function] = {each.name: each for each in _FUNCTIONS}
OPERATORS: dict[str, Operator] = {each.name: each for each in _OPERATORS}
BELIEFS: dict[str, Beliefs] = {**FUNCTIONS, **OPERATORS, **{each.name: each for each in _OUR_OWN}}
OPPOSITE: Mapping[str, str] = {each.name: each.opposite for each in _OPERATORS if each.opposite}
MIRRORED: Mapping[str, str] = {each.name: each.mirrored for each in _OPERATORS if each.mirrored}

# -- other names ---------------------------------------------------------------------------------------------
_ALIASES = """
    ceil ceiling
    pow power
    length char_length character_length len
    lower lcase
    upper ucase
    substring substr
    strpos instr position
    starts_with prefix
    ends_with suffix
    extract date_part datepart
    dayofweek weekday dow day_of_week
    dayofyear day_of_year
    day dayofmonth
    week weekofyear isoweek
    isodow isdow
    date_diff datediff
    date_sub datesub
    date_trunc datetrunc
    try_strptime strptime
    avg mean
    levenshtein editdist3
    log10 log
"""


def _by_alias(text: str) -> dict[str, str]:
    """One function a line, before its other names."""
    rows = (line.split() for line in text.strip().splitlines())
    return {alias: name for name, *aliases in rows for alias in aliases}


ALIASES = _by_alias(_ALIASES)
# Parts that EXTRACT and DATE_PART know, by the function that computes each.
PARTS = {
    "dow": "dayofweek",
    "doy": "dayofyear",
    "isoweek": "week",
    **{
        name: name
        for name in (
            "year month day quarter week hour minute second dayofweek isodow dayofyear decade century epoch "
            "isoyear yearweek millisecond microsecond millennium era julian"
        ).split()
    },
}
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century")


def kind_of(take: str) -> str:
    """The kind of value that an argument of a row holds: a constant in a language of its own is a text."""
    kind = take.rstrip("?*")
    return "text" if kind.isupper() and kind != "INT" else kind.lower()


def is_strict(function: str) -> bool:
    """Whether it is NULL as soon as one of its arguments is."""
    return BELIEFS[function].nulls is Nulls.STRICT


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
