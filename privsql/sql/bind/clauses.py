"""ORDER BY, LIMIT and OFFSET: how they apply to a noisy answer, and why they are refused over private
rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Expression
from privsql.algebra.literals import ordinal
from privsql.algebra.relations import Limit, Relation
from privsql.algebra.windows import Order
from privsql.errors import Place, Refused, SqlError
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.parse.places import place_of


def order_terms(order: exp.Expr, shown: Sequence[Expression]) -> list[exp.Expr]:
    """The terms of ORDER BY, with ALL expanded to ordinals."""
    terms: list[exp.Expr] = []
    for each in order.expressions:
        if isinstance(each.this, exp.Var) and each.this.name.upper() == "ALL":
            for index in range(len(shown)):
                copy = each.copy()
                copy.set("this", exp.Literal.number(index + 1))
                terms.append(copy)
        else:
            terms.append(each)
    return terms


def bind_order(
    node: exp.Expr, binder: ExpressionBinder, shown: Sequence[Expression], names: Sequence[str] = ()
) -> Order:
    """Bind one term: an ordinal, the name of an output (which takes precedence over a column of that name),
    or an expression.
    """
    inner = node.this
    lowered = [name.lower() for name in names]
    if isinstance(inner, exp.Column) and not inner.table and lowered.count(inner.name.lower()) == 1:
        expression = shown[lowered.index(inner.name.lower())]
    elif isinstance(inner, exp.Literal) and not inner.is_string:
        expression = shown[selected("ORDER BY", inner, len(shown), place_of(node))]
    else:
        expression = binder.bind(inner)
    return Order(
        _orderable(expression, node), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    )


def selected(clause: str, written: exp.Literal, count: int, place: Place | None) -> int:
    """The index of the selected column that a number in ORDER BY or GROUP BY means."""
    number = ordinal(written.name) or 0
    if not 1 <= number <= count:
        raise SqlError(
            "sql-ordinal",
            f"{clause} counts the selected columns from 1",
            "write the number of a selected column, or its name",
            place,
        )
    return number - 1


def _orderable(expression: Expression, node: exp.Expr) -> Expression:
    try:
        return build.not_a_list(expression)
    except Refused as error:
        raise error.at(place_of(node)) from None


def whole_number(limit: exp.Expr) -> int | None:
    """The number after LIMIT, FETCH or OFFSET, if it is a constant."""
    inner = (
        (limit.args.get("count") or exp.Literal.number(1))
        if isinstance(limit, exp.Fetch)
        else limit.expression
    )
    return ordinal(inner.name) if isinstance(inner, exp.Literal) and not inner.is_string else None


def limited(relation: Relation, limit: exp.Expr | None, offset: exp.Expr | None) -> Relation:
    """The relation under LIMIT and OFFSET."""
    if limit is None and offset is None:
        return relation
    numbers = []
    for each in (limit, offset):
        number = whole_number(each) if each is not None else None
        if each is not None and (number is None or number >= 2**63):
            raise SqlError("sql-limit", "LIMIT and OFFSET take a whole number", "LIMIT 10", place_of(each))
        numbers.append(number)
    return Limit(relation, numbers[0], numbers[1] or 0)


def ordered_rows(node: exp.Expr) -> Refused:
    return Refused(
        "refused-limit",
        "ORDER BY and LIMIT over private rows are not supported: which are kept would depend on many people.",
        "Order and limit the noisy answer, outside.",
        place_of(node),
    )
