"""Two conditions go in; whether a row can meet both comes out. The answer follows by logic alone, without any
claim about the data.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.functions import MIRRORED
from privsql.types import BOOLEAN, Kind


def are_disjoint(first: Expression | None, second: Expression | None) -> bool:
    """True only if it is certain that no row meets both conditions."""
    if first is None or second is None:
        return False
    left, right = conjuncts(first), conjuncts(second)
    return any(_contradict(a, b) for a in left for b in right)


def _contradict(a: Expression, b: Expression) -> bool:
    if negation(a) == b or negation(b) == a or _unknown(a, b) or _unknown(b, a):
        return True
    one, two = constraint(a), constraint(b)
    return one is not None and two is not None and one[0] == two[0] and _apart(one[1:], two[1:])


def _unknown(a: Expression, b: Expression) -> bool:
    """x IS NULL beside a condition that is true only where x is not NULL: x itself, NOT x, or a comparison of
    x with constants.
    """
    if not isinstance(a, Call) or a.function != "is_null":
        return False
    test = constraint(b)
    return a.args[0] in (b, negation(b)) or (test is not None and test[0] == a.args[0])


def negation(expression: Expression) -> Expression | None:
    """A condition that is true only where the expression is false: NOT p for p, IS NULL for IS NOT NULL."""
    match expression:
        case Call(function="not", args=(inner,)):
            return inner
        case Call(function="is_false", args=(inner,)):
            return inner
        case _:
            return None


def constraint(part: Expression) -> tuple[Expression, Any, bool, Any, bool, frozenset[Any] | None] | None:
    """(expression, low, low is open, high, high is open, allowed values): one expression compared with
    constants.
    """
    match part:
        case Column() if part.type.kind is Kind.BOOLEAN:
            return part, None, False, None, False, frozenset({True})
        case Call(function="is_true", args=(inner,)):
            return inner, None, False, None, False, frozenset({True})
        case Call(function="in", args=(inner, *options)) if all(isinstance(o, Literal) for o in options):
            values = [o.value for o in options if isinstance(o, Literal) and o.value is not None]
            return (
                (inner, None, False, None, False, frozenset(values))
                if all(map(_comparable, values))
                else None
            )
        case Call(function="=" | "<" | "<=" | ">" | ">=", args=(left, right)):
            operator = part.function
            if isinstance(left, Literal):
                left, right, operator = right, left, MIRRORED[operator]
            if not isinstance(right, Literal) or isinstance(left, Literal) or not _comparable(right.value):
                return None
            value = right.value
            match operator:
                case "=":
                    return left, value, False, value, False, frozenset({value})
                case "<" | "<=":
                    return left, None, False, value, operator == "<", None
                case _:
                    return left, value, operator == ">", None, False, None
    return None


def _comparable(value: Any) -> bool:
    return value is not None and not (isinstance(value, (float, Decimal)) and math.isnan(value))


def _apart(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    values_one, values_two = one[4], two[4]
    if values_one is not None and values_two is not None:
        return not values_one & values_two
    for (low, low_open, high, high_open, values), other in ((one, two), (two, one)):
        other_low, other_low_open, _, _, other_values = other
        if high is not None and other_low is not None:
            if high < other_low or (high == other_low and (high_open or other_low_open)):
                return True
        if (
            other_values is not None
            and values is None
            and all(
                (low is not None and (v < low or (v == low and low_open)))
                or (high is not None and (v > high or (v == high and high_open)))
                for v in other_values
            )
        ):
            return True
    return False


def both(first: Expression | None, second: Expression | None) -> Expression | None:
    """The conjunction of two conditions; either may be None."""
    if first is None or second is None:
        return first if second is None else second
    return Call("and", (*conjuncts(first), *conjuncts(second)), BOOLEAN)
