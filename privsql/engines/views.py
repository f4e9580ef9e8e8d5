"""A view goes in; what in it can fail on some row comes out, in words, or nothing. No row of any table is read.

A question about a view computes what the view computes, by DuckDB's own rules. If that fails on one person's row, the question
fails, and whoever picks rows by WHERE learns whose row it is. So DuckDB is asked what it would compute (its plan before it is
optimised, with every cast that it adds), and whatever is not listed here can fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from privsql.errors import SourceError
from privsql.planning import render
from privsql.types import INTEGER_BOUNDS

Read = Callable[[str], list[tuple[Any, ...]]]
Node = dict[str, Any]  # of DuckDB's trees

UNKNOWN = "something that DuckDB does not describe"
_WHOLE: Mapping[str, tuple[int, int]] = {**INTEGER_BOUNDS, "BOOLEAN": (0, 1)}
_HUGE = 10**99  # has more digits than any type
_FLOATS = ("FLOAT", "DOUBLE")
_MOMENTS = ("DATE", "TIME", "TIMESTAMP")
_AS_TEXT = (*_WHOLE, *_FLOATS, *_MOMENTS, "VARCHAR", "CHAR", "DECIMAL", "ENUM", "UUID", "INTERVAL")
# what each function takes, of any of these types, it takes without failing; `tests/engines/test_views.py` tries to break it
_OF_TEXT = """lower upper lcase ucase trim ltrim rtrim length strlen bit_length reverse strip_accents contains prefix suffix
    starts_with ends_with strpos instr position concat || ~~ !~~ ~~* !~~* ascii unicode levenshtein md5"""
_OF_PATTERNS = "like_escape not_like_escape ilike_escape not_ilike_escape regexp_matches regexp_full_match"  # that are constants
_OF_MOMENTS = "year month day quarter dayofweek isodow dayofyear hour minute second dayname monthname"
_OF_FLOATS = "+ - * abs floor ceil round sign isnan isinf isfinite"
_OF_ANY = "greatest least"
_OF_ALL = "struct_extract array_extract list_value unpivot_list"  # whatever they hold
TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*_OF_TEXT.split(), *_OF_PATTERNS.split()), ("VARCHAR",)),
    **dict.fromkeys(_OF_MOMENTS.split(), _MOMENTS),
    **dict.fromkeys(_OF_FLOATS.split(), _FLOATS),
    **dict.fromkeys(_OF_ANY.split(), _AS_TEXT),
}
_CLASSES = ("BOUND_REF", "BOUND_COLUMN_REF", "BOUND_CONSTANT", "BOUND_CONJUNCTION", "BOUND_CASE", "BOUND_BETWEEN", "BOUND_UNNEST")
_OPERATORS = ("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE", "COMPARE_IN", "COMPARE_NOT_IN")
_ANY_AGGREGATES = ("count", "count_star", "min", "max", "first", "last", "any_value", "arbitrary", "bool_and", "bool_or")
_SUMS = ("sum", "avg")  # of what cannot overflow: HUGEINT holds the sum of more BIGINTs than there can be rows
_SUMMED = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *_FLOATS)
_SUMMED_DIGITS = 18  # of a DECIMAL
_RANKS = ("WINDOW_ROW_NUMBER", "WINDOW_RANK", "WINDOW_RANK_DENSE")
_SOURCES = ("BASE_TABLE", "TABLE_FUNCTION")
# CREATE VIEW name (columns) AS body: the first AS that is not in quotes
_BODY = re.compile(r'(?:[^"]|"(?:[^"]|"")*")*?\bAS\b(.*)', re.DOTALL | re.IGNORECASE)


def may_fail(view: str, views: Mapping[str, list[str]], read: Read) -> str:
    """What in a view can fail on some row, or "". `views` are the definitions of all, by their name in lower case."""
    return _of_source(f"SELECT * FROM {render.identifier(view)}", view, views, read)


def _of_source(query: str, view: str, views: Mapping[str, list[str]], read: Read) -> str:
    plan = _plan(query, read)
    if plan is None:  # DuckDB does not write down how it reads files, frames and other databases
        definitions = views.get(view.lower(), [])
        body = _BODY.match(definitions[0]) if len(definitions) == 1 else None
        tree = _tree(body[1].strip(), read) if body else None
        if tree is None:
            return UNKNOWN
        failing = _without_sources(tree, views, read)
        if failing:
            return failing
        plan = _plan(_text(tree, read), read)
    return UNKNOWN if plan is None else _found(plan, "")


def _plan(query: str, read: Read) -> Any:
    found = json.loads(read(f"SELECT json_serialize_plan({render.text(query)}, optimize := false)")[0][0])
    return None if found["error"] else found["plans"]


def _tree(query: str, read: Read) -> Any:
    found = json.loads(read(f"SELECT json_serialize_sql({render.text(query)})")[0][0])
    return None if found["error"] else found


def _text(tree: Node, read: Read) -> str:
    return str(read(f"SELECT json_deserialize_sql({render.text(json.dumps(tree))}::JSON)")[0][0])


# -- what DuckDB cannot write down: sources become queries of no rows with the same columns -------------------
def _without_sources(tree: Node, views: Mapping[str, list[str]], read: Read) -> str:
    """Changes the tree; what in a view beneath it can fail, or ""."""
    macros = {name for (name,) in read("SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro'")}
    local = {entry["key"].lower() for _, place, found in _nodes(tree) if place == "cte_map" for entry in found["map"]}
    sources = [each for each in _nodes(tree) if isinstance(each[2], dict) and each[2].get("type") in _SOURCES]
    for parent, place, node in sources:
        is_table = node["type"] == "BASE_TABLE"
        name = (node if is_table else node["function"])["qualified_name"]["path"][-1]
        if name.lower() in local or name in macros:
            continue
        query = _tree("SELECT * FROM privsql_source", read)
        query["statements"][0]["node"]["from_table"] = node
        text = _text(query, read)
        failing = _of_source(text, name, views, read) if is_table and name.lower() in views else ""
        if failing:
            return failing
        try:
            columns = read(f"DESCRIBE {text}")
        except SourceError:
            continue  # it refers to something local; what remains is DuckDB's to describe, or not
        parent[place] = _empty(columns, node["alias"] or PurePath(name).stem, read)
    return ""


def _empty(columns: list[tuple[Any, ...]], alias: str, read: Read) -> Any:
    """What stands in FROM for a source with these columns: name, type, and what else DESCRIBE says."""
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS {render.identifier(name)}" for name, type_, *_ in columns)
    tree = _tree(f"SELECT * FROM (SELECT {nulls}) AS {render.identifier(alias)}", read)
    return tree["statements"][0]["node"]["from_table"]


def _nodes(node: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(parent, place, child) of everything in a tree."""
    for place, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield node, place, child
        yield from _nodes(child)


# -- what a plan computes -------------------------------------------------------------------------------------
def _found(node: Any, column: str) -> str:
    """The first expression in a plan that can fail, or ""."""
    match node:
        case {"expression_class": _}:
            column = node.get("alias") or column
            if node["type"] == "OPERATOR_TRY":
                return ""
            if not _is_safe(node):
                return f"{_described(node)} (for {column})" if column else _described(node)
        case {"type": "LOGICAL_GET"} if node["qname"]["path"][-1] != "seq_scan":
            return f"the table function {node['qname']['path'][-1]}"
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return next(filter(None, (_found(child, column) for child in children)), "")


def _is_safe(node: Node) -> bool:
    """Whether an expression gives a value for all values that its parts can have."""
    kind, arguments = node["type"], node.get("children", [])
    types = [_type(each) for each in arguments]
    name = node.get("qname", {}).get("path", [""])[-1]
    match node["expression_class"]:
        case "BOUND_OPERATOR":
            return kind in _OPERATORS
        case "BOUND_AGGREGATE":
            return _is_safe_aggregate(name, types)
        case "BOUND_WINDOW":  # a frame of so much before a row computes where it begins
            return kind in _RANKS or (_is_safe_aggregate(name, types) and "EXPR" not in node["start"] + node["end"])
        case "BOUND_FUNCTION" if kind == "OPERATOR_CAST":
            tried = node["function_data"]["try_cast"] or arguments[0]["expression_class"] == "BOUND_CONSTANT"
            return tried or _is_wider(types[0], node["return_type"])
        case "BOUND_FUNCTION" if kind.startswith("COMPARE_"):
            return True
        case "BOUND_FUNCTION" if name == "/":
            return all(each["id"] in _FLOATS for each in types) and _is_not_zero(arguments[1])
        case "BOUND_FUNCTION" if node["return_type"]["id"] == "DECIMAL":
            return _holds(node["return_type"], name, [_digits(_type(_uncast(each))) for each in arguments])
        case "BOUND_FUNCTION":
            patterns = arguments[1:] if name in _OF_PATTERNS.split() else []
            taken = name in TAKES and all(each["id"] in TAKES[name] for each in types)
            return name in _OF_ALL.split() or (taken and all(_is_constant(each) for each in patterns))
        case other:
            return other in _CLASSES


def _is_safe_aggregate(name: str, types: list[Node]) -> bool:
    if name not in _SUMS:
        return name in _ANY_AGGREGATES
    return all(each["id"] in _SUMMED or (each["id"] == "DECIMAL" and _digits(each)[0] <= _SUMMED_DIGITS) for each in types)


def _type(node: Node) -> Node:
    """That of an expression; of conditions it is not written down."""
    found: Node = node.get("return_type") or (node["value"]["type"] if "value" in node else {"id": "BOOLEAN"})
    return found


def _uncast(node: Node) -> Node:
    """What was there before DuckDB made it wider."""
    return _uncast(node["children"][0]) if node["type"] == "OPERATOR_CAST" and _is_safe(node) else node


def _is_constant(node: Node) -> bool:
    return bool(_uncast(node)["expression_class"] == "BOUND_CONSTANT")


def _is_not_zero(node: Node) -> bool:
    value = _uncast(node).get("value", {}).get("value")
    return isinstance(value, int | float) and value != 0


def _holds(result: Node, name: str, given: list[tuple[int, int]]) -> bool:
    """Whether a DECIMAL has room for every sum, difference or product of two others: digits before and after the point."""
    if name not in ("+", "-", "*") or len(given) != 2:
        return False
    digits, scale = _digits(result)
    (one, one_scale), (other, other_scale) = given
    before, other_before = one - one_scale, other - other_scale
    if name == "*":
        return digits - scale >= before + other_before and scale >= one_scale + other_scale
    return digits - scale > max(before, other_before) and scale >= max(one_scale, other_scale)


def _is_wider(given: Node, wanted: Node) -> bool:
    """Whether a cast cannot fail: DuckDB has a value of the wanted type for each of the given one."""
    of, to = given["id"], wanted["id"]
    if of == "NULL" or given == wanted or (of, to) == ("TIMESTAMP", "DATE"):
        return True
    if to == "VARCHAR":
        return of in _AS_TEXT
    if to == "DOUBLE":
        return of in (*_WHOLE, "FLOAT", "DECIMAL")
    if to == "DECIMAL" and (of == "DECIMAL" or of in _WHOLE):
        digits, scale = _digits(wanted)
        own, own_scale = _digits(given)
        return digits - scale >= own - own_scale and scale >= own_scale
    return of in _WHOLE and to in INTEGER_BOUNDS and _WHOLE[to][0] <= _WHOLE[of][0] and _WHOLE[of][1] <= _WHOLE[to][1]


def _digits(type_: Node) -> tuple[int, int]:
    """How many, and how many of them after the point."""
    info = type_.get("type_info")
    return (info["width"], info["scale"]) if info else (max(len(str(abs(end))) for end in _WHOLE.get(type_["id"], (_HUGE,))), 0)


def _described(node: Node) -> str:
    """As an owner writes it, with types in the place of what is computed."""
    name = node.get("qname", {}).get("path", [node["type"]])[-1]
    types = [_named(_type(each)) for each in node.get("children", [])]
    if node["type"] == "OPERATOR_CAST":
        return f"CAST({types[0]} AS {_named(node['return_type'])})"
    if node.get("is_operator") and len(types) == 2:
        return f"{types[0]} {name} {types[1]}"
    return f"{name}({', '.join(types)})"


def _named(type_: Node) -> str:
    return "DECIMAL({}, {})".format(*_digits(type_)) if type_["id"] == "DECIMAL" else str(type_["id"])
