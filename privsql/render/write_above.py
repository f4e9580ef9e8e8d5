"""The permitted part of a query that stands above the noise goes in; its text in DuckDB's SQL comes out.

Nothing private is in its reach, so sqlglot writes it: every identifier in quotes, every operand in
parentheses, without comments and hints.
"""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from privsql.errors import Refused

# What binds its operands by its rank among operators.
_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Is)
_NO_OPERATORS = (
    exp.Paren,
    exp.Dot,
    exp.PropertyEQ,
    exp.JSONExtract,
    exp.JSONExtractScalar,
    exp.Func,
    exp.Slice,
)
# Whose operands could be taken for a part of something else.
_TAKES_OPERANDS = (*_OPERATORS, exp.Bracket, exp.Dot, exp.Collate, exp.Interval)


def write_above(statement: exp.Expr) -> str:
    """The text of a tree that `permit_above` has permitted; the tree stays as it is.

    Raises:
        Refused: DuckDB's SQL has no equal for something that another dialect has.

    Example:
        >>> import sqlglot
        >>> write_above(sqlglot.parse_one("SELECT n + 1 AS m FROM r0 /* all */"))
        'SELECT "n" + 1 AS "m" FROM "r0"'
    """
    written = statement.copy()
    for node in list(written.walk()):
        if isinstance(node, exp.Hint):
            node.pop()
        elif _is_operator(node) and _is_operand(node):
            around = exp.Paren()
            node.replace(around)
            around.set("this", node)
    try:
        return written.sql("duckdb", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        raise Refused(
            "refused-dialect",
            "Something in this query has no equal in DuckDB's SQL.",
            "Write what is computed from the released values in DuckDB's SQL.",
        ) from None


def _is_operator(node: exp.Expr) -> bool:
    written = isinstance(node, _OPERATORS) and not isinstance(node, _NO_OPERATORS)
    return written or isinstance(node, exp.Connector)


def _is_operand(node: exp.Expr) -> bool:
    above = node.parent
    if isinstance(above, exp.Escape) and node.arg_key == "this":  # LIKE and ESCAPE are one operator
        return False
    if isinstance(node, exp.Connector) and type(above) is type(
        node
    ):  # a long chain, which groups as it likes
        return False
    return isinstance(above, _TAKES_OPERANDS) and not isinstance(above, exp.Paren)
