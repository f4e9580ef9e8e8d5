"""Conditions go in; relations between them come out: whether one implies another, and whether together they
cover every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from privsql.algebra.expressions import Call, Expression, conjuncts
from privsql.algebra.functions import OPPOSITE
from privsql.analysis.disjoint import constraint, negation


def implies(first: Expression | None, second: Expression | None) -> bool:
    """True only if it follows by logic alone that every row that meets the first condition meets the
    second.
    """
    if second is None:
        return True
    given = conjuncts(first) if first is not None else []
    return all(part in given or any(_tighter(each, part) for each in given) for part in conjuncts(second))


def _tighter(one: Expression, other: Expression) -> bool:
    """Whether one constraint on an expression allows only values that another one allows."""
    left, right = constraint(one), constraint(other)
    if left is None or right is None or left[0] != right[0]:
        return False
    (low, low_open, high, high_open, values), wide = left[1:], right[1:]
    if values is not None:
        return all(_allowed(value, wide) for value in values)
    wide_low, wide_low_open, wide_high, wide_high_open, wide_values = wide
    if wide_values is not None:
        return False
    below = wide_low is None or (
        low is not None and (low > wide_low or (low == wide_low and (low_open or not wide_low_open)))
    )
    above = wide_high is None or (
        high is not None and (high < wide_high or (high == wide_high and (high_open or not wide_high_open)))
    )
    return bool(below and above)


def _allowed(value: Any, wide: tuple[Any, bool, Any, bool, frozenset[Any] | None]) -> bool:
    low, low_open, high, high_open, values = wide
    if values is not None:
        return value in values
    return bool(
        (low is None or value > low or (value == low and not low_open))
        and (high is None or value < high or (value == high and not high_open))
    )


def exhaust(
    parts: Sequence[Expression], whole: Expression | None, never_null: Callable[[Expression], bool]
) -> bool:
    """Whether every row of the whole meets one of the parts: p and NOT p if p is never NULL, or p IS NULL as
    well.
    """
    beyond = [
        [each for each in conjuncts(part) if each not in (conjuncts(whole) if whole is not None else [])]
        for part in parts
    ]
    if any(len(each) != 1 for each in beyond):
        return False
    tests = [each[0] for each in beyond]
    for test in tests:
        others = [each for each in tests if each != test]
        opposed = [each for each in others if negation(each) == test or _opposite(test) == each]
        unknown = [
            each
            for each in others
            if isinstance(each, Call) and each.function == "is_null" and each.args[0] == test
        ]
        if len(opposed) == 1 and len(others) == 1 + len(unknown) and (unknown or never_null(test)):
            return True
    return False


def _opposite(test: Expression) -> Expression | None:
    if isinstance(test, Call) and test.function in OPPOSITE:
        return Call(OPPOSITE[test.function], test.args, test.type)
    return None
