"""An expression of a DuckDB plan goes in; whether it has a value for all values that its parts can have comes out.

What is not listed can fail. `tests/engines/test_views.py` tries what is listed on the values most likely to break it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from privsql.errors import SourceError
from privsql.planning import render
from privsql.types import INTEGER_BOUNDS

Read = Callable[[str], list[tuple[Any, ...]]]
Node = dict[str, Any]  # of DuckDB's trees

_WHOLE: Mapping[str, tuple[int, int]] = {**INTEGER_BOUNDS, "BOOLEAN": (0, 1)}
_HUGE = 10**99  # has more digits than any type
_FLOATS = ("FLOAT", "DOUBLE")
_MOMENTS = ("DATE", "TIME", "TIMESTAMP")
_SIMPLE = (*_WHOLE, *_FLOATS, *_MOMENTS, "VARCHAR", "DECIMAL", "ENUM", "UUID", "INTERVAL")
# what each function takes, of any of these types, it takes without failing
_OF_TEXT = """lower upper lcase ucase trim ltrim rtrim length strlen bit_length reverse strip_accents contains prefix suffix
    starts_with strpos instr concat concat_ws || ~~ !~~ ~~* !~~* ascii unicode levenshtein md5 sha256"""
_OF_MOMENTS = "year month day quarter dayofweek isodow dayofyear hour minute second dayname monthname"
_OF_FLOATS = "+ - * abs floor ceil round sign isnan isinf isfinite"
_OF_ANY = "greatest least hash"
TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_TEXT.split(), ("VARCHAR",)),
    **dict.fromkeys(_OF_MOMENTS.split(), _MOMENTS),
    **dict.fromkeys(_OF_FLOATS.split(), _FLOATS),
    **dict.fromkeys(_OF_ANY.split(), _SIMPLE),
}
# the same, where all arguments but the first are constants; a malformed pattern is refused as soon as there is such a view
WITH_CONSTANTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys("regexp_matches regexp_full_match substring left right replace".split(), ("VARCHAR",)),
    "round": _FLOATS,
    **dict.fromkeys(("//", "%"), tuple(INTEGER_BOUNDS)),
}
# What TRY makes NULL where it fails. It does not catch all: an unknown time zone, unit or escape letter fails all the same.
_TRIED = """+ - * / // % abs floor ceil round sqrt ln log log2 log10 exp pow power gcd factorial make_date last_day split_part
    array_extract""".split()
_TRIED_OF_UNIT = ("date_trunc", "datetrunc", "date_diff", "datediff", "date_part", "datepart")
_TRIED_WITH_CONSTANTS = ("strftime", "strptime", "regexp_extract", "regexp_replace", *WITH_CONSTANTS)
_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century")
_OF_ALL = ("struct_extract", "list_value", "unpivot_list")  # whatever they hold
_SMALL = 2**31  # a constant that is a number of letters, or of digits
_CLASSES = ("BOUND_REF", "BOUND_COLUMN_REF", "BOUND_CONSTANT", "BOUND_CONJUNCTION", "BOUND_CASE", "BOUND_BETWEEN", "BOUND_UNNEST")
_OPERATORS = ("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "COMPARE_IN", "COMPARE_NOT_IN")
_ANY_AGGREGATES = ("count", "count_star", "min", "max", "first", "last", "any_value", "arbitrary", "bool_and", "bool_or")
_SUMS = ("sum", "avg")  # of what cannot overflow: HUGEINT holds the sum of more BIGINTs than there can be rows
_SUMMED = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *_FLOATS)
_SUMMED_DIGITS = 18  # of a DECIMAL
_RANKS = ("WINDOW_ROW_NUMBER", "WINDOW_RANK", "WINDOW_RANK_DENSE")


@dataclass(frozen=True)
class Rules:
    """`read` is asked whether a constant can be read as another type."""

    read: Read

    def is_safe(self, node: Node) -> bool:
        """Whether an expression gives a value for all values that its parts can have."""
        kind, arguments = node["type"], node.get("children", [])
        types = [_type(each) for each in arguments]
        ids = [_id(each) for each in types]
        name = node.get("qname", {}).get("path", [""])[-1]
        match node["expression_class"]:
            case "BOUND_OPERATOR":
                return kind in _OPERATORS
            case "BOUND_AGGREGATE":
                return _is_safe_aggregate(name, types)
            case "BOUND_WINDOW":  # a frame of so much before a row computes where it begins
                return kind in _RANKS or (_is_safe_aggregate(name, types) and "EXPR" not in node["start"] + node["end"])
            case "BOUND_FUNCTION" if kind == "OPERATOR_CAST":
                tried = node["function_data"]["try_cast"] and _is_simple_cast(node)
                return tried or _is_wider(types[0], node["return_type"]) or self._is_value(node)
            case "BOUND_FUNCTION" if kind.startswith("COMPARE_") or name in _OF_ALL:
                return True
            case "BOUND_FUNCTION" if name == "array_extract":
                return ids[0] == "LIST"
            case "BOUND_FUNCTION" if name == "/":
                return all(each in _FLOATS for each in ids) and (_is_not_zero(arguments[1]) or _is_nullif(arguments[1]))
            case "BOUND_FUNCTION" if name in ("+", "-", "*") and _id(node["return_type"]) == "DECIMAL":
                return _holds(node["return_type"], name, [_digits(_type(_uncast(each))) for each in arguments])
            case "BOUND_FUNCTION" if name == "-" and ids == ["DATE", "DATE"]:
                return True
            case "BOUND_FUNCTION" if name in WITH_CONSTANTS and ids[0] in WITH_CONSTANTS[name] and len(ids) > 1:
                return all(_is_small(each, name in ("//", "%")) for each in arguments[1:])
            case "BOUND_FUNCTION":
                return name in TAKES and all(each in TAKES[name] for each in ids)
            case other:
                return other in _CLASSES

    def is_tried(self, node: Node) -> bool:
        """Whether TRY makes NULL of whatever it fails on, where its parts do not fail."""
        arguments = node.get("children", [])
        name = node.get("qname", {}).get("path", [""])[-1]
        if not all(_id(_type(each)) in (*_SIMPLE, "LIST") for each in arguments):
            return self.is_safe(node)
        if node["type"] == "OPERATOR_CAST":
            return _is_simple_cast(node)
        if name in _TRIED_OF_UNIT:
            dated = all(_id(_type(each)) in ("DATE", "TIMESTAMP") for each in arguments[1:])
            return dated and _uncast(arguments[0]).get("value", {}).get("value") in _UNITS
        if name in _TRIED_WITH_CONSTANTS and len(arguments) > 1 and name not in ("//", "%"):
            return all(_is_small(each, False) for each in arguments[1:])
        return name in _TRIED or self.is_safe(node)

    def _is_value(self, node: Node) -> bool:
        """Whether a constant, cast or not, is one: in CASE a malformed one would fail on some rows only."""
        text = _constant(node)
        if text is None:
            return False
        try:
            self.read(f"SELECT {text}")
        except SourceError:
            return False
        return True


def _uncast(node: Node) -> Node:
    """What was there before DuckDB made it wider."""
    wider = node["type"] == "OPERATOR_CAST" and _is_wider(_type(node["children"][0]), node["return_type"])
    return _uncast(node["children"][0]) if wider else node


def _is_small(node: Node, divides: bool) -> bool:
    """Whether it is a constant text or a number that is neither too large nor, to divide by, 0 or -1."""
    match _uncast(node):
        case {"expression_class": "BOUND_CONSTANT", "value": {"value": str()}}:
            return not divides
        case {"expression_class": "BOUND_CONSTANT", "value": {"value": int() as value}}:
            return abs(value) < _SMALL and not (divides and value in (0, -1))
    return False


def _is_not_zero(node: Node) -> bool:
    value = _uncast(node).get("value", {}).get("value")
    return isinstance(value, int | float) and value != 0


def _is_nullif(node: Node) -> bool:
    """NULLIF(x, 0), which DuckDB writes as CASE WHEN x = 0 THEN NULL ELSE x END."""
    match _uncast(node):
        case {"type": "CASE_EXPR", "case_checks": [{"when_expr": test, "then_expr": then}], "else_expr": other}:
            match test, _uncast(then):
                case {"type": "COMPARE_EQUAL", "children": [of, to]}, {"value": {"is_null": True}}:
                    return bool(_uncast(to).get("value", {}).get("value") == 0 and _shape(of) == _shape(other))
    return False


def _shape(node: Any) -> Any:
    """An expression without where it is written, and what it is called."""
    if isinstance(node, dict):
        return {key: _shape(each) for key, each in node.items() if key != "alias" and "location" not in key}
    return [_shape(each) for each in node] if isinstance(node, list) else node


def _constant(node: Node) -> str | None:
    """As SQL, with the casts around it, or None."""
    if node["type"] == "OPERATOR_CAST":
        inner, wanted = _constant(node["children"][0]), _id(node["return_type"])
        known = inner is not None and wanted in _SIMPLE and wanted != "ENUM"
        return f"CAST({inner} AS {_named(node['return_type'])})" if known else None
    match node.get("value"):
        case {"value": str() as value, "type": {"id": "VARCHAR"}}:
            return render.text(value)
        case {"value": int() as value, "type": {"id": "DECIMAL"} as type_}:
            return f"{Decimal(value).scaleb(-_digits(type_)[1]):f}"
        case {"value": bool() | int() | float() as value, "type": {"id": kind}} if kind in (*_WHOLE, "DOUBLE"):
            return f"CAST('{value}' AS {kind})"  # as a bare number it would be a DECIMAL, which is rounded otherwise
    return None


def _is_safe_aggregate(name: str, types: list[Node]) -> bool:
    if name not in _SUMS:
        return name in _ANY_AGGREGATES and len(types) <= 1  # min(x, 3) is another one
    return all(_id(each) in _SUMMED or (_id(each) == "DECIMAL" and _digits(each)[0] <= _SUMMED_DIGITS) for each in types)


def _type(node: Node) -> Node:
    """That of an expression; of conditions it is not written down."""
    found: Node = node.get("return_type") or (node["value"]["type"] if "value" in node else {"id": "BOOLEAN"})
    return found


def _id(type_: Node) -> str:
    """JSON is a VARCHAR with another name, and not every text is one."""
    info = type_.get("type_info") or {}
    return str(info.get("alias") or type_["id"]) if type_["id"] != "ENUM" else "ENUM"


def _is_simple_cast(node: Node) -> bool:
    """Of types between which a cast that fails gives NULL, if it is tried."""
    return _id(_type(node["children"][0])) in _SIMPLE and _id(node["return_type"]) in _SIMPLE


def _is_wider(given: Node, wanted: Node) -> bool:
    """Whether a cast cannot fail: DuckDB has a value of the wanted type for each of the given one."""
    of, to = _id(given), _id(wanted)
    if of == "NULL" or given == wanted or (of, to) == ("TIMESTAMP", "DATE"):
        return True
    if to == "VARCHAR":
        return of in _SIMPLE
    if to == "DOUBLE":
        return of in (*_WHOLE, "FLOAT", "DECIMAL")
    if to == "DECIMAL" and (of == "DECIMAL" or of in _WHOLE):
        digits, scale = _digits(wanted)
        own, own_scale = _digits(given)
        return digits - scale >= own - own_scale and scale >= own_scale
    return of in _WHOLE and to in INTEGER_BOUNDS and _WHOLE[to][0] <= _WHOLE[of][0] and _WHOLE[of][1] <= _WHOLE[to][1]


def _holds(result: Node, name: str, given: list[tuple[int, int]]) -> bool:
    """Whether a DECIMAL has room for every sum, difference or product of two others: digits before and after the point."""
    if len(given) != 2:
        return False
    digits, scale = _digits(result)
    (one, one_scale), (other, other_scale) = given
    before, other_before = one - one_scale, other - other_scale
    if name == "*":
        return digits - scale >= before + other_before and scale >= one_scale + other_scale
    return digits - scale > max(before, other_before) and scale >= max(one_scale, other_scale)


def _digits(type_: Node) -> tuple[int, int]:
    """How many, and how many of them after the point."""
    info = type_.get("type_info") or {}
    if "width" in info:
        return info["width"], info["scale"]
    return max(len(str(abs(end))) for end in _WHOLE.get(_id(type_), (_HUGE,))), 0


def described(node: Node) -> str:
    """As an owner writes it, with types in the place of what is computed."""
    name = node.get("qname", {}).get("path", [node["type"]])[-1]
    types = [_named(_type(each)) for each in node.get("children", [])]
    if node["type"] == "OPERATOR_CAST":
        return f"CAST({types[0]} AS {_named(node['return_type'])})"
    if node.get("is_operator") and len(types) == 2:
        return f"{types[0]} {name} {types[1]}"
    return f"{name}({', '.join(types)})"


def _named(type_: Node) -> str:
    return "DECIMAL({}, {})".format(*_digits(type_)) if _id(type_) == "DECIMAL" else _id(type_)
