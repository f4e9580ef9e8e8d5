"""A node of DuckDB's own plan goes in; its type, value, shape or SQL comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privsql.engines.duckdb.catalogue.catalogue_statements import SYSTEM
from privsql.types import INTEGER_BOUNDS

Node = dict[str, Any]  # of DuckDB's trees
Read = Callable[[str], list[tuple[Any, ...]]]

WHOLE: Mapping[str, tuple[int, int]] = {**INTEGER_BOUNDS, "BOOLEAN": (0, 1)}
_HUGE = 10**99  # more digits than any type has
FLOATS = ("FLOAT", "DOUBLE")
MOMENTS = ("DATE", "TIME", "TIMESTAMP")
SIMPLE = (*WHOLE, *FLOATS, *MOMENTS, "VARCHAR", "DECIMAL", "ENUM", "UUID", "INTERVAL")
# types with values that cannot be written as text: trying to fails despite TRY, and invalidates the database
WITHOUT_TEXT = ("TIMESTAMP", "TIME")


def uncast(node: Node) -> Node:
    """The expression below the casts to wider types that DuckDB adds."""
    wider = node["type"] == "OPERATOR_CAST" and is_wider(type_of(node["children"][0]), node["return_type"])
    return uncast(node["children"][0]) if wider else node


def value_of(node: Node) -> Any:
    """The value of a constant; a HUGEINT is stored in two halves."""
    found = node.get("value", {}).get("value")
    return (found["upper"] << 64) + found["lower"] if isinstance(found, dict) and "upper" in found else found


def shape_of(node: Any) -> Any:
    """An expression without its position and its alias."""
    if isinstance(node, dict):
        return {key: shape_of(each) for key, each in node.items() if key != "alias" and "location" not in key}
    return [shape_of(each) for each in node] if isinstance(node, list) else node


def type_of(node: Node) -> Node:
    """The type of an expression; the plan does not record that of conditions."""
    found: Node = node.get("return_type") or (node["value"]["type"] if "value" in node else {"id": "BOOLEAN"})
    return found


def type_id(type_: Node) -> str:
    """The name of a type. JSON is a VARCHAR with an alias, and not every text is valid JSON."""
    info = type_.get("type_info") or {}
    return str(info.get("alias") or type_["id"]) if type_["id"] != "ENUM" else "ENUM"


def element_of(listed: Node) -> Node:
    """The element type of a list."""
    of: Node = listed["type_info"]["child_type"]
    return of


def is_wider(given: Node, wanted: Node) -> bool:
    """Whether a cast cannot fail: the wanted type can hold every value of the given one."""
    of, to = type_id(given), type_id(wanted)
    if of == "NULL" or given == wanted or (of, to) == ("TIMESTAMP", "DATE"):
        return True
    if (of, to) == ("ARRAY", "LIST"):  # the elements stay as they are
        return element_of(given) == element_of(wanted)
    if to == "VARCHAR":
        return of in SIMPLE and of not in WITHOUT_TEXT
    if to == "DOUBLE":
        return of in (*WHOLE, "FLOAT", "DECIMAL")
    if to == "DECIMAL" and (of == "DECIMAL" or of in WHOLE):
        digits, scale = digits_of(wanted)
        own, own_scale = digits_of(given)
        return digits - scale >= own - own_scale and scale >= own_scale
    return (
        of in WHOLE and to in INTEGER_BOUNDS and WHOLE[to][0] <= WHOLE[of][0] and WHOLE[of][1] <= WHOLE[to][1]
    )


def digits_of(type_: Node) -> tuple[int, int]:
    """A DECIMAL's number of digits, and how many of them follow the point."""
    info = type_.get("type_info") or {}
    if "width" in info:
        return info["width"], info["scale"]
    return max(len(str(abs(end))) for end in WHOLE.get(type_id(type_), (_HUGE,))), 0


def described(node: Node) -> str:
    """An expression as an owner writes it, with types in place of its operands."""
    name = node.get("qname", {}).get("path", [node["type"]])[-1]
    types = [type_name(type_of(each)) for each in node.get("children", [])]
    if node["type"] == "OPERATOR_CAST":
        return f"CAST({types[0]} AS {type_name(node['return_type'])})"
    if node.get("is_operator") and len(types) == 2:
        return f"{types[0]} {name} {types[1]}"
    return f"{name}({', '.join(types)})"


def type_name(type_: Node) -> str:
    return "DECIMAL({}, {})".format(*digits_of(type_)) if type_id(type_) == "DECIMAL" else type_id(type_)


def text_of(comparison: Node) -> Any:
    """The constant of a comparison, as it was written."""
    constant = comparison["children"][-1]
    inner = constant["children"][0] if constant["type"] == "OPERATOR_CAST" else constant
    return value_of(inner)


def is_local_time(arguments: list[Node], read: Read) -> bool:
    """Whether timezone() of these is an instant's local time in a zone that DuckDB knows: TRY does not catch
    others.
    """
    if [type_id(type_of(each)) for each in arguments] != ["VARCHAR", "TIMESTAMP WITH TIME ZONE"]:
        return False
    zone = value_of(uncast(arguments[0]))
    return isinstance(zone, str) and (zone,) in read(f"SELECT name FROM {SYSTEM}.pg_timezone_names()")
