"""A query goes in; DuckDB's own plan for it comes out, and whether anything in it can fail on some row.

We make no assumption about how DuckDB reads a text. We read its plan, before it is optimised and with every
cast that DuckDB adds. A function or cast can fail unless plan_rules.py knows that it has a value for all
values.
"""

from __future__ import annotations

import json
import re
from typing import Any

from privsql.engines.duckdb.catalogue.catalogue_statements import SYSTEM
from privsql.engines.duckdb.safety.plan_nodes import described
from privsql.engines.duckdb.safety.plan_rules import PlanRules, Read
from privsql.render.duckdb import DUCKDB

_OPERATIONS = frozenset(
    f"LOGICAL_{name}"
    for name in "AGGREGATE_AND_GROUP_BY ANY_JOIN ASOF_JOIN COMPARISON_JOIN CROSS_PRODUCT CTE_REF DELIM_GET "
    "DELIM_JOIN DISTINCT DUMMY_SCAN EMPTY_RESULT EXCEPT EXPRESSION_GET FILTER GET INTERSECT LIMIT "
    "MATERIALIZED_CTE ORDER_BY POSITIONAL_JOIN PROJECTION SAMPLE TOP_N UNION UNNEST WINDOW".split()
)
_NAN = re.compile(
    r'(?<!\\)"value":-?NAN'
)  # how DuckDB writes a constant that is not a number, which JSON lacks


def plan_of(read: Read, query: str) -> Any:
    """DuckDB's plan before optimisation, or None where DuckDB does not serialize it (files, frames, other
    databases).
    """
    written = read(f"SELECT {SYSTEM}.json_serialize_plan({DUCKDB.text(query)}, optimize := false)")[0][0]
    found = json.loads(_NAN.sub('"value":NaN', written))
    return None if found["error"] else found["plans"]


def may_fail(node: Any, rules: PlanRules, column: str = "") -> str:
    """A description of the first expression in a plan that can fail on some row, or "". `column`: the column
    it is computed for.
    """
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    match node:
        case {"expression_class": _, "type": "OPERATOR_TRY", "children": [tried]}:
            # only a call directly inside TRY: DuckDB computes deeper subexpressions that two TRYs share
            # outside of both
            found = may_fail(tried.get("children", list(tried.values())), rules, node.get("alias") or column)
            if found:
                return f"{found} deep inside TRY"
            return "" if rules.is_tried(tried) else f"{described(tried)}, which TRY does not catch"
        case {"expression_class": _}:
            column = node.get("alias") or column
            if not rules.is_safe(node):
                return f"{described(node)} (for {column})" if column else described(node)
        case {"type": "LOGICAL_GET"} if node["qname"]["path"][-1] != "seq_scan":
            return f"the table function {node['qname']['path'][-1]}"
        case {"join_type": "SINGLE"}:
            return "a subquery that must have one row"
        case {"type": str() as operation} if (
            operation.startswith("LOGICAL_") and operation not in _OPERATIONS
        ):
            return operation.removeprefix("LOGICAL_").replace("_", " ")
        case {"type": "EXPRESSION_VALUE" | "EXPRESSION_PERCENTAGE"}:
            return "a LIMIT or OFFSET"
    for child in children:
        if isinstance(child, (dict, list)):  # texts and numbers compute nothing
            found = may_fail(child, rules, column)
            if found:
                return found
    return ""
