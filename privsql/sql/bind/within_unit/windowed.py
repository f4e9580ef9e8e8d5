"""A node goes in; whether a window function takes it comes out."""

from __future__ import annotations

from sqlglot import exp


def is_windowed(node: exp.Expr) -> bool:
    """Whether it is the function of a window, and so no aggregate of rows."""
    while node.arg_key == "this" and isinstance(
        node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
    ):
        node = node.parent
    return node.arg_key == "this" and isinstance(node.parent, exp.Window)
