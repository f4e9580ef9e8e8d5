"""SQL text goes in; what DuckDB's own parser reads comes out in the neutral form, by json_serialize_sql; None: no SQL to it."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import duckdb

from tests.fuzz import neutral
from tests.fuzz.neutral import Node

_COMPARE = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_DISTINCT_FROM": "is_distinct",
    "COMPARE_NOT_DISTINCT_FROM": "is_same",
}  # fmt: skip
_SET_OPERATIONS = {
    "UNION": "union",
    "UNION_BY_NAME": "union by name",
    "EXCEPT": "except",
    "INTERSECT": "intersect",
}
_SIGNS = frozenset("+ - * / // % ** ^ || & | << >> ~ @ ^@ ~~ !~~ ~~* !~~* ~~~ -> ->> <@ @> && !".split())
_INTERVALS = {f"to_{unit}": unit for unit in (
    "microseconds", "milliseconds", "seconds", "minutes", "hours", "days", "weeks", "months", "quarters", "years", "decades", "centuries")}  # fmt: skip


class UnreadError(Exception):
    """A form that this reader does not know: never taken for equal to anything."""


class UnknownOperatorError(UnreadError):
    """A function or operator that DuckDB has not: no SQL to it, though it parses. A run of signs, as in `a %- b`, is one operator."""


@lru_cache(maxsize=1)
def _functions() -> frozenset[str]:
    """The names of functions that DuckDB has."""
    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        listed = connection.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return frozenset(name for (name,) in listed)


class DuckDBReader:
    """One connection without data that parses texts."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": "1"})
        self._fetched: dict[str, dict[str, Any] | None] = {}

    def prefetch(self, sql: list[str]) -> None:
        """Have some texts parsed together, which takes less time; `read` finds them."""
        if len(self._fetched) > 1_000:
            self._fetched.clear()
        if new := [each for each in dict.fromkeys(sql) if each not in self._fetched]:
            self._fetched.update(zip(new, self.trees(new), strict=True))

    def trees(self, sql: list[str]) -> list[dict[str, Any] | None]:
        rows = self._connection.execute(
            "SELECT json_serialize_sql(t) FROM (SELECT unnest($1) AS t)", [sql]
        ).fetchall()
        return [_statement(json.loads(row)) for (row,) in rows]

    def read(self, sql: str) -> Node | None:
        tree = self._fetched[sql] if sql in self._fetched else self.trees([sql])[0]
        try:
            return None if tree is None else query(tree)
        except UnknownOperatorError:
            return None

    def expression(self, sql: str) -> Node:
        found = self.read(f"SELECT {sql}")
        if found is None:
            raise UnreadError(sql)
        return found[2][0][0]

    def close(self) -> None:
        self._connection.close()


def _statement(parsed: dict[str, Any]) -> dict[str, Any] | None:
    return None if parsed.get("error") or len(parsed["statements"]) != 1 else parsed["statements"][0]["node"]


def query(node: dict[str, Any]) -> Node:
    kind = node["type"]
    ctes = [
        (each["key"], tuple(each["value"].get("aliases") or ()), query(_of_cte(each["value"])))
        for each in node.get("cte_map", {}).get("map", [])
    ]
    modifiers = {each["type"]: each for each in node.get("modifiers", [])}
    if kind == "SELECT_NODE":
        different = modifiers.get("DISTINCT_MODIFIER")
        distinct = (
            tuple(map(expression, different.get("distinct_on_targets") or ())) or True if different else False
        )
        if node.get("sample"):
            raise UnreadError("SAMPLE")
        keys = [expression(each) for each in node.get("group_expressions", [])]
        sets = neutral.groups([keys[place] for place in each] for each in node.get("group_sets", []))
        by: Node = "all" if node.get("aggregate_handling") == "FORCE_AGGREGATES" else sets
        items = [(expression(each), each.get("alias", "")) for each in node["select_list"]]
        read = neutral.select(
            items, source(node["from_table"]), _maybe(node.get("where_clause")), by, _maybe(node.get("having")), distinct,
            _maybe(node.get("qualify")),
        )  # fmt: skip
    elif kind == "SET_OPERATION_NODE" and node["setop_type"] in _SET_OPERATIONS:
        sides = [query(each) for each in node["children"]]
        read = sides[0]
        for side in sides[1:]:
            read = neutral.set_operation(
                _SET_OPERATIONS[node["setop_type"]], bool(node.get("setop_all")), read, side
            )
    else:
        raise UnreadError(kind)
    order = [_ordered(each) for each in modifiers.get("ORDER_MODIFIER", {}).get("orders", [])]
    limits = modifiers.get("LIMIT_MODIFIER", {})
    if limits.get("limit_type", "ROW_COUNT") != "ROW_COUNT":
        raise UnreadError("LIMIT %")
    read = neutral.tail(read, order, _maybe(limits.get("limit")), _maybe(limits.get("offset")))
    return neutral.with_names(ctes, read)


def _of_cte(value: dict[str, Any]) -> dict[str, Any]:
    return value["query_node"] if "query_node" in value else value["query"]["node"]


def _maybe(node: dict[str, Any] | None) -> Node | None:
    return None if node is None else expression(node)


def _ordered(node: dict[str, Any]) -> Node:
    inner = node["expression"]
    read = "all" if inner["class"] == "STAR" and inner.get("columns") else expression(inner)
    first = node["null_order"] in ("NULLS FIRST", "NULLS_FIRST", "ORDER_NULLS_FIRST")
    return neutral.ordered(read, node["type"] == "DESCENDING", first)


# -- FROM ----------------------------------------------------------------------------------------------------
def source(node: dict[str, Any]) -> Node:
    alias, columns = node.get("alias", ""), node.get("column_name_alias") or []
    if node.get("sample"):
        raise UnreadError("SAMPLE")
    match node["type"]:
        case "EMPTY":
            return ()
        case "BASE_TABLE":
            path = [node.get("catalog_name"), node.get("schema_name"), node["table_name"]]
            return neutral.table(".".join(filter(None, path)), alias, columns)
        case "SUBQUERY":
            return neutral.subquery(query(node["subquery"]["node"]), alias, columns)
        case "EXPRESSION_LIST":  # of VALUES; what DuckDB calls it nobody wrote
            return ("values", tuple(tuple(expression(each) for each in row) for row in node["values"]))
        case "JOIN":
            kind = node["join_type"].lower()
            using = node.get("using_columns") or []
            match node["ref_type"]:
                case "CROSS":
                    kind = "cross"
                case "NATURAL":
                    kind = f"natural {kind}"
                case other if other != "REGULAR":
                    raise UnreadError(other)
            return neutral.join(
                kind, source(node["left"]), source(node["right"]), _maybe(node.get("condition")), using
            )
        case "SHOW_REF":
            return ("shown",)
        case "TABLE_FUNCTION":
            return (
                "opened",
                expression(node["function"]),
                alias.lower(),
                tuple(each.lower() for each in columns),
            )
        case "PIVOT" if node.get("unpivot_names"):
            (pivot,) = node["pivots"]
            entries = tuple(
                (expression(each["star_expr"]), each.get("alias", "")) for each in pivot["entries"]
            )
            names = (
                tuple(map(str.lower, node["unpivot_names"])),
                tuple(map(str.lower, pivot["unpivot_names"])),
            )
            below = source(node["source"])
            return (
                "unpivot",
                below,
                *names,
                entries,
                bool(node.get("include_nulls")),
                alias.lower(),
                tuple(columns),
            )
    raise UnreadError(node["type"])


# -- expressions ---------------------------------------------------------------------------------------------
def expression(node: dict[str, Any]) -> Node:
    kind = node["type"]
    match node["class"]:
        case "CONSTANT":
            return _constant(node.get("literal", node))
        case "COLUMN_REF":
            return neutral.column(node["column_names"])
        case "STAR":
            if node.get("columns") or node.get("expr"):
                raise UnreadError("COLUMNS")
            excluded = [
                each if isinstance(each, str) else each["column"] for each in node.get("exclude_list") or []
            ]
            replaced = [(each["key"], expression(each["value"])) for each in node.get("replace_list") or []]
            renamed = [(each["key"]["column"], each["value"]) for each in node.get("rename_list") or []]
            return neutral.star(node.get("relation_name", ""), excluded, replaced, renamed)
        case "CAST":
            return _cast(node)
        case "COMPARISON":
            return neutral.compared(_COMPARE[kind], expression(node["left"]), expression(node["right"]))
        case "CONJUNCTION":
            return neutral.junction(
                kind.removeprefix("CONJUNCTION_").lower(), [expression(each) for each in node["children"]]
            )
        case "BETWEEN":
            return neutral.between(
                expression(node["input"]), expression(node["lower"]), expression(node["upper"])
            )
        case "CASE":
            checks = [
                (expression(each["when_expr"]), expression(each["then_expr"])) for each in node["case_checks"]
            ]
            return neutral.case(checks, expression(node["else_expr"]))
        case "OPERATOR":
            return _operator(kind, [expression(each) for each in node["children"]])
        case "FUNCTION":
            return _function(node)
        case "COLLATE":
            return ("collate", node["collation"].lower(), expression(node["child"]))
        case "SUBQUERY":
            return _subquery(node)
        case "LAMBDA" if node.get("syntax_type", "LAMBDA_KEYWORD") != "SINGLE_ARROW":
            named = expression(node["lhs"])
            names = [named] if named[0] == "column" else list(named[2])
            return ("lambda", tuple(each[1] for each in names), expression(node["expr"]))
        case "WINDOW":
            return _window(node)
    raise UnreadError(f"{node['class']} {kind}")


def _constant(literal: dict[str, Any]) -> Node:
    match literal.get("kind"):
        case "NULL_LITERAL":
            return neutral.NULL
        case "BOOLEAN":
            return neutral.truth(literal["text"].lower() == "true")
        case "STRING":
            return neutral.text(literal.get("text", ""))
        case "INTEGER" | "NUMERIC":
            return neutral.number(literal["text"])
    raise UnreadError(f"a constant {literal}")


def _cast(node: dict[str, Any]) -> Node:
    to, inner = _type(node["type_expr"]), expression(node["child"])
    return neutral.cast(to, inner, bool(node.get("try_cast")))


def _type(node: dict[str, Any]) -> Node:
    if node["class"] != "TYPE":
        return expression(node)
    inner = [_type(each) for each in node.get("children") or []]
    return neutral.type_of(
        node["type_name"], [int(each[2]) if each[0] == "number" else each for each in inner]
    )


def _operator(kind: str, args: list[Node]) -> Node:
    match kind:
        case "OPERATOR_NOT":
            return neutral.denied(args[0])
        case "OPERATOR_IS_NULL":
            return ("is_null", args[0])
        case "OPERATOR_IS_NOT_NULL":
            return neutral.denied(("is_null", args[0]))
        case "COMPARE_IN" | "COMPARE_NOT_IN":
            inside = ("in", args[0], tuple(args[1:]))
            return inside if kind == "COMPARE_IN" else neutral.denied(inside)
        case "OPERATOR_COALESCE":
            return neutral.call("coalesce", args)
        case "ARRAY_CONSTRUCTOR":
            return neutral.call("list_value", args)
        case "OPERATOR_TRY":
            return ("try", args[0])
        case "GROUPING_FUNCTION":
            return neutral.call("grouping", args)
        case "ARRAY_EXTRACT":
            return ("element", *args)
    raise UnreadError(kind)


def _function(node: dict[str, Any]) -> Node:
    name = node["function_name"].lower()
    if node.get("schema") or node.get("catalog"):
        raise UnreadError("a function of a schema")
    args = [expression(each.get("expression", each)) for each in node.get("arguments") or []]
    if name in _INTERVALS and len(args) == 1 and args[0][0] == "cast":
        return _interval(_INTERVALS[name], args[0])
    if node.get("is_operator") and (
        not name[0].isalpha() and (name not in _SIGNS or (name == "@" and len(args) > 1))
    ):
        raise UnknownOperatorError(name)
    if name == "count_star":
        name, args = "count", [neutral.STAR]
    if name not in _functions() or (name == "count" and len(args) > 1):
        raise UnknownOperatorError(name)
    order = [_ordered(each) for each in (node.get("order_bys") or {}).get("orders", [])]
    return neutral.call(name, args, bool(node.get("distinct")), _maybe(node.get("filter")), order)


def _window(node: dict[str, Any]) -> Node:
    if node.get("exclude_clause", "NO_OTHER") != "NO_OTHER":
        raise UnreadError("EXCLUDE")
    listed = [
        *(node.get("arguments") or node.get("children") or []),
        node.get("offset_expr"),
        node.get("default_expr"),
    ]
    args = [expression(each.get("expression", each)) for each in listed if each is not None]
    name = node["function_name"].lower()
    if name == "count_star" or (name == "count" and not args):
        name, args = "count", [neutral.STAR]
    own = [_ordered(each) for each in node.get("arg_orders") or []]
    function = neutral.call(name, args, bool(node.get("distinct")), _maybe(node.get("filter_expr")), own)
    frame = tuple(
        (node[end].removeprefix("EXPR_"), _maybe(node.get(f"{end}_expr"))) for end in ("start", "end")
    )
    by, order = [expression(each) for each in node["partitions"]], [_ordered(each) for each in node["orders"]]
    return neutral.over(function, by, order, frame, bool(node.get("ignore_nulls")))


def _interval(unit: str, amount: Node) -> Node:
    """to_days(CAST(trunc(CAST(3 AS DOUBLE)) AS INTEGER)) is how DuckDB writes INTERVAL 3 DAY."""
    while amount[0] == "cast" or (amount[0] == "call" and amount[1] == "trunc"):
        amount = amount[2] if amount[0] == "cast" else amount[2][0]
    if amount[0] in ("number", "text"):
        return neutral.interval(amount[-1], {"centuries": "century"}.get(unit, unit))
    raise UnreadError("an interval that is computed")


def _subquery(node: dict[str, Any]) -> Node:
    inner = query(node["subquery"]["node"])
    match node["subquery_type"]:
        case "EXISTS":
            return ("exists", inner)
        case "ANY" if node["comparison_type"] == "COMPARE_EQUAL":
            opened = inner[2][0][0] if inner[0] == "select" and len(inner[2]) == 1 and inner[3] == () else ()
            if opened[:2] == ("call", "unnest") and opened[2][0][:2] == (
                "call",
                "list_value",
            ):  # x = ANY([1, 2])
                return ("in", expression(node["child"]), opened[2][0][2])
            return ("in_query", expression(node["child"]), inner)
        case "SCALAR":
            return ("scalar", inner)
    raise UnreadError(f"{node['subquery_type']} {node['comparison_type']}")
