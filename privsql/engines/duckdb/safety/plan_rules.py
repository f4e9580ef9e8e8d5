"""An expression of a DuckDB plan goes in; whether it has a value for all values of its operands comes out.

What is not listed can fail. `tests/engines/test_views.py` tries what is listed on the values most likely to
break it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from privsql.algebra.patterns import check_escape, check_format
from privsql.engines.duckdb.safety.plan_nodes import (
    FLOATS,
    MOMENTS,
    SIMPLE,
    WHOLE,
    WITHOUT_TEXT,
    Node,
    Read,
    digits_of,
    element_of,
    is_local_time,
    is_wider,
    shape_of,
    text_of,
    type_id,
    type_name,
    type_of,
    uncast,
    value_of,
)
from privsql.errors import Refused, SourceError
from privsql.render.duckdb import DUCKDB
from privsql.types import INTEGER_BOUNDS

# functions that accept every value of these argument types
_OF_TEXT = """lower upper lcase ucase trim ltrim rtrim length strlen bit_length reverse strip_accents contains
    prefix suffix starts_with ends_with strpos instr concat concat_ws || ~~ !~~ ~~* !~~* ascii unicode
    levenshtein damerau_levenshtein jaro_similarity jaro_winkler_similarity string_split md5 sha256"""
_OF_MOMENTS = """year month day quarter dayofweek isodow dayofyear hour minute second dayname monthname epoch
    millisecond microsecond millennium era julian"""
_OF_DAYS = "decade century"
_OF_FLOATS = "+ - * even isnan isinf isfinite atan2"
_OF_NUMBERS = "abs sign floor ceil trunc round"  # for integers these are arithmetic
_OF_ANY = "greatest least hash"
TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_TEXT.split(), ("VARCHAR",)),
    **dict.fromkeys(_OF_MOMENTS.split(), MOMENTS),
    **dict.fromkeys(_OF_DAYS.split(), ("DATE", "TIMESTAMP")),
    **dict.fromkeys(_OF_FLOATS.split(), FLOATS),
    **dict.fromkeys(_OF_NUMBERS.split(), (*FLOATS, "DECIMAL")),
    **dict.fromkeys(_OF_ANY.split(), SIMPLE),
    **dict.fromkeys(("bit_count", "&", "|", "xor"), tuple(INTEGER_BOUNDS)),
}
# the same, where all arguments but the first are constants; a view with a malformed pattern is refused at
# once
WITH_CONSTANTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "regexp_matches regexp_full_match substring left right replace translate".split(), ("VARCHAR",)
    ),
    **dict.fromkeys(("round", "trunc"), (*FLOATS, "DECIMAL")),
    **dict.fromkeys(("//", "%"), tuple(INTEGER_BOUNDS)),
}
# Functions whose failures TRY turns into NULL. It does not catch all of them: an unknown time zone, unit or
# escape character fails despite TRY.
_TRIED = """+ - * / // % abs floor ceil trunc round sqrt ln log log2 log10 exp pow power gcd factorial
    make_date make_timestamp last_day split_part array_extract asin acos sin cos tan atan sinh cosh tanh
    degrees radians week yearweek isoyear""".split()
_TRIED_OF_UNIT = "date_trunc datetrunc date_diff datediff date_sub datesub date_part datepart".split()
_TRIED_WITH_CONSTANTS = ("regexp_extract", "regexp_replace", *WITH_CONSTANTS)
_FORMATS = ("strftime", "strptime", "try_strptime")
_ESCAPED = ("like_escape", "ilike_escape", "not_like_escape", "not_ilike_escape")
_ARITHMETIC = ("+", "-", "*", "//", "%", "abs", "sign", "round", "trunc")
_CUT = ("substring", "left", "right")
# Functions that cannot fail as we render them: on grid points, clamped moments, a unit's own list or a
# subquery with one row; asinh, whose argument's bounds the optimizer does not know there; and lpad and rpad,
# which have something to fill with, up to a constant width. list_aggr adds up whole numbers on a grid.
_OWN = """>> << epoch_us list_aggr list_sort list_slice list_transform list_unique flatten hash error
    asinh lpad rpad""".split()
_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century")
# safe for arguments of every type
_OF_ALL = ("struct_extract", "list_value", "unpivot_list", "row", "list_distinct", "pi")
_FINER = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_SMALL = 2**31  # the limit for constants that count characters or digits
_CLASSES = (
    "BOUND_REF",
    "BOUND_COLUMN_REF",
    "BOUND_CONSTANT",
    "BOUND_CONJUNCTION",
    "BOUND_CASE",
    "BOUND_BETWEEN",
    "BOUND_UNNEST",
)
_OPERATORS = (
    "OPERATOR_NOT",
    "OPERATOR_IS_NULL",
    "OPERATOR_IS_NOT_NULL",
    "OPERATOR_COALESCE",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
)
_ANY_AGGREGATES = (
    "count count_star min max first last any_value arbitrary bool_and bool_or list median".split()
)
_QUANTILES = ("quantile_cont", "quantile_disc")
# sums that cannot overflow: HUGEINT holds the sum of more BIGINTs than there can be rows
_SUMS = ("sum", "avg")
_SUMMED = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    *FLOATS,
)
_SUMMED_DIGITS = 18  # of a DECIMAL
_RANKS = ("WINDOW_ROW_NUMBER", "WINDOW_RANK", "WINDOW_RANK_DENSE")
# Window functions that cannot fail as we render them: with constants as numbers of tiles and of rows.
_OWN_WINDOWS = """WINDOW_NTILE WINDOW_PERCENT_RANK WINDOW_CUME_DIST WINDOW_LAG WINDOW_LEAD WINDOW_FIRST_VALUE
    WINDOW_LAST_VALUE WINDOW_NTH_VALUE""".split()


# The conditions on a moment before it is written as text: how the tests are joined, and each of them.
_GUARDS: Mapping[str, tuple[str, frozenset[tuple[str, Any]]]] = {
    "TIMESTAMP": (
        "CONJUNCTION_OR",
        frozenset(
            {("COMPARE_GREATERTHANOREQUALTO", "290309-12-22 (BC) 00:00:00"), ("COMPARE_EQUAL", "-infinity")}
        ),
    ),
    "TIME": (
        "CONJUNCTION_AND",
        frozenset({("COMPARE_GREATERTHANOREQUALTO", "00:00:00"), ("COMPARE_LESSTHANOREQUALTO", "24:00:00")}),
    ),
}


@dataclass(frozen=True)
class PlanRules:
    """`read` asks DuckDB whether a constant can be read as another type.

    `own`: the statement is one that we rendered. Its integers are computed in types that hold every result
    (algebra/functions.py, `result_type`; tests/conformance asks DuckDB), and some functions occur only with
    arguments that suit them. Neither need hold in an owner's view.
    """

    read: Read
    own: bool = False

    def is_safe(self, node: Node) -> bool:
        """Whether an expression has a value for all values of its operands."""
        kind, arguments = node["type"], node.get("children", [])
        types = [type_of(each) for each in arguments]
        ids = [type_id(each) for each in types]
        name = node.get("qname", {}).get("path", [""])[-1]
        match node["expression_class"]:
            case "BOUND_OPERATOR":
                return kind in _OPERATORS
            case "BOUND_AGGREGATE":
                fits = self.own and name in _SUMS and all(each in WHOLE for each in ids)
                return fits or _is_safe_aggregate(name, types)
            # A RANGE frame computes its ends, which can fail. Ours are constants, and the types in which they
            # are added to values hold the result.
            case "BOUND_WINDOW":
                computed = "EXPR" in node["start"] + node["end"] and not self.own
                own = self.own and (kind in _OWN_WINDOWS or (name in _SUMS and all(e in WHOLE for e in ids)))
                return kind in _RANKS or own or (_is_safe_aggregate(name, types) and not computed)
            case "BOUND_LAMBDA":
                return self.own
            case "BOUND_FUNCTION" if kind == "OPERATOR_CAST":
                return self._is_safe_cast(node)
            case "BOUND_FUNCTION":
                return kind.startswith("COMPARE_") or self._is_safe_function(name, node, arguments, ids)
            case other:
                return other in _CLASSES

    def _is_safe_cast(self, node: Node) -> bool:
        tried = node["function_data"]["try_cast"] and _is_simple_cast(node)
        wider = is_wider(type_of(node["children"][0]), node["return_type"])
        return tried or wider or _is_guarded(node) or self._is_value(node)

    def _is_safe_function(self, name: str, node: Node, arguments: list[Node], ids: list[str]) -> bool:
        all_floats, all_whole = (all(each in kinds for each in ids) for kinds in (FLOATS, WHOLE))
        if name in _OF_ALL or (self.own and name in _OWN):
            return True
        if name == "array_extract":
            return ids[0] in ("LIST", "TUPLE")
        if self.own and name in _ARITHMETIC and all_whole:
            return name not in ("//", "%") or _is_divisor(arguments[1])
        if name in _ESCAPED:
            return ids[0] == "VARCHAR" and _is_well_escaped(*arguments[1:])
        if name == "/" or (name == "%" and all_floats):
            return all_floats and _is_divisor(arguments[1])
        if name in ("+", "-", "*") and type_id(node["return_type"]) == "DECIMAL":
            return _holds(node["return_type"], name, [digits_of(type_of(uncast(each))) for each in arguments])
        if name == "-" and ids == ["DATE", "DATE"]:
            return True
        if name in WITH_CONSTANTS and ids[0] in WITH_CONSTANTS[name] and len(ids) > 1:
            return all(_is_small(each, name in ("//", "%")) for each in arguments[1:])
        return name in TAKES and all(each in TAKES[name] for each in ids)

    def is_tried(self, node: Node) -> bool:
        """Whether TRY turns every failure of it into NULL, provided its operands do not fail."""
        arguments = node.get("children", [])
        name = node.get("qname", {}).get("path", [""])[-1]
        if name == "timezone":
            return is_local_time(arguments, self.read)
        if name == "time_bucket":  # we write positive widths of one unit
            return self.own and [type_id(type_of(each)) for each in arguments] == ["INTERVAL", "TIMESTAMP"]
        if not all(type_id(type_of(each)) in (*SIMPLE, "LIST") for each in arguments):
            return self.is_safe(node)
        if node["type"] == "OPERATOR_CAST":
            return _is_simple_cast(node)
        if name in _TRIED_OF_UNIT:
            dated = all(type_id(type_of(each)) in ("DATE", "TIMESTAMP") for each in arguments[1:])
            return dated and value_of(uncast(arguments[0])) in _UNITS
        if name in _CUT and type_id(type_of(arguments[0])) == "VARCHAR":
            return all(type_id(type_of(each)) in WHOLE for each in arguments[1:])
        if name in _FORMATS:
            return _has_known_format(arguments[1])
        if name in _TRIED_WITH_CONSTANTS and len(arguments) > 1 and name not in ("//", "%"):
            return all(_is_small(each, False) for each in arguments[1:])
        return name in _TRIED or self.is_safe(node)

    def _is_value(self, node: Node) -> bool:
        """Whether a constant, with or without casts, is valid: a malformed one in a CASE would fail on some
        rows only.
        """
        whole, wanted = value_of(uncast(node["children"][0])), WHOLE.get(type_id(node["return_type"]))
        if isinstance(whole, int) and wanted is not None:
            return wanted[0] <= whole <= wanted[1]
        text = _constant(node)
        if text is None:
            return False
        try:
            self.read(f"SELECT {text}")
        except SourceError:
            return False
        return True


def _is_small(node: Node, divides: bool) -> bool:
    """Whether it is a text constant, or a number that is not too large nor, as a divisor, 0 or -1."""
    match uncast(node):
        case {"expression_class": "BOUND_CONSTANT", "value": {"value": str()}}:
            return not divides
        case {"expression_class": "BOUND_CONSTANT", "value": {"value": int() | dict()}} as constant:
            value = value_of(constant)
            return abs(value) < _SMALL and not (divides and value in (0, -1))
        case {"expression_class": "BOUND_FUNCTION", "qname": {"path": [*_, "replace"]}, "children": children}:
            # a function of constants is a constant
            return not divides and all(_is_small(each, False) for each in children)
    return False


def _is_well_escaped(pattern: Node, mark: Node) -> bool:
    """Whether both are constants that DuckDB accepts. It reads a pattern only when there are rows, and fails
    there, despite TRY.
    """
    texts = [value_of(uncast(each)) for each in (pattern, mark)]
    if not all(isinstance(each, str) for each in texts):
        return False
    try:
        check_escape(*texts)
    except Refused:
        return False
    return True


def _has_known_format(node: Node) -> bool:
    """Whether it is a constant whose format directives are all allowed."""
    text = value_of(uncast(node))
    try:
        check_format(text)
    except Refused:
        return False
    return isinstance(text, str)


def _is_guarded(node: Node) -> bool:
    """Whether a moment is written as text only where it has one."""
    (written,) = node["children"]
    match written, uncast(written.get("else_expr") or written):
        case {"type": "CASE_EXPR", "case_checks": [{"when_expr": test, "then_expr": then}]}, {
            "value": {"is_null": True}
        }:
            joined, wanted = _GUARDS.get(type_id(type_of(written)), ("", frozenset()))
            sides = [each.get("children", []) for each in test.get("children", [])]
            same = all(len(each) == 2 and shape_of(each[0]) == shape_of(then) for each in sides)
            found = {
                (each["type"], text_of(each)) for each in test.get("children", []) if each.get("children")
            }
            return bool(sides) and same and test["type"] == joined and found == wanted
    return False


def _is_not_zero(node: Node) -> bool:
    value = value_of(uncast(node))
    return isinstance(value, int | float) and value != 0


def _is_divisor(node: Node) -> bool:
    """Whether it is never 0: a constant other than 0, or NULL in place of 0."""
    return _is_not_zero(node) or _is_nullif(node)


def _is_zero(node: Node) -> bool:
    """Whether it is the constant 0, of any numeric type."""
    while node["type"] == "OPERATOR_CAST":
        (node,) = node["children"]
    return bool(value_of(node) == 0)


def _is_nullif(node: Node) -> bool:
    """Whether it is NULLIF(x, 0), which DuckDB represents as CASE WHEN x = 0 THEN NULL ELSE x END."""
    match uncast(node):
        case {
            "type": "CASE_EXPR",
            "case_checks": [{"when_expr": test, "then_expr": then}],
            "else_expr": other,
        }:
            match test, uncast(then):
                case {"type": "COMPARE_EQUAL", "children": [of, to]}, {"value": {"is_null": True}}:
                    return bool(_is_zero(to) and shape_of(of) == shape_of(other))
    return False


def _constant(node: Node) -> str | None:
    """A constant as SQL, with the casts around it, or None."""
    if node["type"] == "OPERATOR_CAST":
        inner, wanted = _constant(node["children"][0]), type_id(node["return_type"])
        known = inner is not None and wanted in SIMPLE and wanted != "ENUM"
        return f"CAST({inner} AS {type_name(node['return_type'])})" if known else None
    match node.get("value"):
        case {"value": str() as value, "type": {"id": "VARCHAR"}}:
            return DUCKDB.text(value)
        case {"value": int() as value, "type": {"id": "DECIMAL"} as type_}:
            return f"{Decimal(value).scaleb(-digits_of(type_)[1]):f}"
        case {"value": {"upper": int(), "lower": int()}, "type": {"id": kind}} if kind in WHOLE:
            return f"CAST('{value_of(node)}' AS {kind})"
        case {"value": bool() | int() | float() as value, "type": {"id": kind}} if kind in (
            *WHOLE,
            "DOUBLE",
        ):
            # a bare number would be a DECIMAL, which is rounded differently
            return f"CAST('{value}' AS {kind})"
    return None


def _is_safe_aggregate(name: str, types: list[Node]) -> bool:
    if name in _QUANTILES:
        return type_id(types[0]) in SIMPLE
    if name not in _SUMS:
        return name in _ANY_AGGREGATES and len(types) <= 1  # min(x, 3) is another function
    return all(
        type_id(each) in _SUMMED or (type_id(each) == "DECIMAL" and digits_of(each)[0] <= _SUMMED_DIGITS)
        for each in types
    )


def _is_simple_cast(node: Node) -> bool:
    """Whether it is a cast between types where TRY_CAST turns every failure into NULL."""
    given, wanted = type_of(node["children"][0]), node["return_type"]
    while type_id(given) in ("LIST", "ARRAY") and type_id(wanted) == "LIST":  # element by element
        given, wanted = element_of(given), element_of(wanted)
    of, to = type_id(given), type_id(wanted)
    written = of in WITHOUT_TEXT and to == "VARCHAR"
    return of in (*SIMPLE, *_FINER) and to in SIMPLE and (not written or _is_guarded(node))


def _holds(result: Node, name: str, given: list[tuple[int, int]]) -> bool:
    """Whether a DECIMAL has room for every sum, difference or product of two others, with their digits before
    and after the point.
    """
    if len(given) != 2:
        return False
    digits, scale = digits_of(result)
    (one, one_scale), (other, other_scale) = given
    before, other_before = one - one_scale, other - other_scale
    if name == "*":
        return digits - scale >= before + other_before and scale >= one_scale + other_scale
    return digits - scale > max(before, other_before) and scale >= max(one_scale, other_scale)
