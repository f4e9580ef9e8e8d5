"""A parsed query goes in; functions of other engines in it are written with functions that have a rule."""

from __future__ import annotations

from sqlglot import exp

from privsql.sql.parse.rewritten.aggregate_names import AGGREGATES, plain_aggregate
from privsql.sql.parse.rewritten.case_names import has_rising_ends, plain_case
from privsql.sql.parse.rewritten.date_names import plain_date
from privsql.sql.parse.rewritten.function_names import SCALARS
from privsql.sql.parse.rewritten.templates import Rewriter


def write_other_names(statement: exp.Expr) -> None:
    """Rewrites in place, from the innermost functions outwards, so that arguments are plain already."""
    rewriter = Rewriter({**SCALARS, **AGGREGATES})
    for node in reversed(list(statement.walk(bfs=False))):
        if node is statement or (isinstance(node, exp.WidthBucket) and not has_rising_ends(node)):
            continue
        plain = plain_case(node) or plain_date(node) or plain_aggregate(node)
        found = (plain, []) if plain is not None else rewriter.rewritten(node)
        if found is not None:
            _put(node, *found)


def _put(node: exp.Expr, written: exp.Expr, aggregates: list[exp.AggFunc]) -> None:
    """In place of the node; a FILTER behind it goes behind each of its new aggregates."""
    behind = node.parent
    above = behind.parent if isinstance(behind, exp.Filter) else behind
    if isinstance(above, exp.Window) and aggregates and not isinstance(written, (exp.AggFunc, exp.Filter)):
        return  # OVER stands behind one aggregate only
    if not aggregates or not isinstance(behind, exp.Filter) or behind.this is not node:
        node.replace(written)
        return
    condition = behind.expression.this
    whole = exp.Paren(this=written)
    for aggregate in aggregates:
        own = aggregate.parent
        if isinstance(own, exp.Filter) and own.this is aggregate:
            both = exp.And(
                this=exp.Paren(this=own.expression.this), expression=exp.Paren(this=condition.copy())
            )
            own.set("expression", exp.Where(this=both))
        else:
            filtered = exp.Filter(expression=exp.Where(this=condition.copy()))
            aggregate.replace(filtered)
            filtered.set("this", aggregate)
    behind.replace(whole.this)
