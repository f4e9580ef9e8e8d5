"""Two normal values and an operator go in; the comparison in normal form comes out.

Of the order comparisons only < and <= remain. The sides of = are sorted, casts that change no value are gone,
and integers and dates are compared with <= alone: x < 5 is x <= 4. NaN needs no special case: to the engine
it equals itself and is the greatest number, so NOT (a < b) is b <= a for all values that are not NULL.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import eq, le, lt, ne
from typing import Any

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.functions import MIRRORED
from privsql.equivalence.written import written
from privsql.types import BOOLEAN, NUMBERS, Kind, Type, decimal, integer

_EITHER_WAY = frozenset({"=", "<>", "is_same", "is_distinct"})
_DECIDED: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    "is_same": eq,
    "is_distinct": ne,
}
_EXACT_DOUBLE = 2**53  # every integer up to here is also a DOUBLE


def compared(operator: str, left: Expression, right: Expression) -> Expression:
    """The comparison of two values; the result itself, if both are constants."""
    if operator in (">", ">="):
        operator, left, right = MIRRORED[operator], right, left
    left, right = _uncast(left), _uncast(right)
    if operator not in ("is_same", "is_distinct") and (_is_null(left) or _is_null(right)):
        return Literal(None, BOOLEAN)
    if isinstance(left, Literal) and isinstance(right, Literal):
        decided = _decided(operator, left, right)
        if decided is not None:
            return Literal(decided, BOOLEAN)
    elif isinstance(left, Literal) or isinstance(right, Literal):
        operator, left, right = _with_constant(operator, left, right)
    if operator in _EITHER_WAY:
        left, right = sorted((left, right), key=written)
    return Call(operator, (left, right), BOOLEAN)


def _is_null(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is None


def _uncast(value: Expression) -> Expression:
    """The operand below casts of integers to wider integers."""
    match value:
        case Call(function="cast", args=(inner,), type=to) if inner.type.kind is to.kind is Kind.INTEGER:
            return _uncast(inner) if to.low <= inner.type.low and inner.type.high <= to.high else value
    return value


def _unscaled(value: Expression) -> Expression:
    """The operand below casts that change no number: integer to DECIMAL or DOUBLE, DECIMAL to more digits."""
    match value:
        case Call(function="cast", args=(inner,), type=to) if _holds(inner.type, to):
            return _unscaled(inner)
    return value


def _holds(type_: Type, to: Type) -> bool:
    """Whether a cast to a type preserves every value exactly."""
    largest = max(abs(type_.low), abs(type_.high))
    match type_.kind, to.kind:
        case Kind.INTEGER, Kind.INTEGER:
            return to.low <= type_.low and type_.high <= to.high
        case Kind.INTEGER, Kind.DECIMAL:
            return largest < int(10 ** (to.precision - to.scale))
        case Kind.INTEGER, Kind.DOUBLE:
            return largest <= _EXACT_DOUBLE
        case Kind.DECIMAL, Kind.DECIMAL:
            return type_.scale <= to.scale and type_.precision - type_.scale <= to.precision - to.scale
    return False


def _decided(operator: str, left: Literal, right: Literal) -> bool | None:
    """The result for two constants: numbers, truth values and dates; texts only for equality."""
    one, other = _comparable(left), _comparable(right)
    if one is None or other is None or type(one) is not type(other):
        return None
    if isinstance(one, str) and operator not in _EITHER_WAY:
        return None
    return _DECIDED[operator](one, other)


def _comparable(literal: Literal) -> Any:
    value = literal.value
    if literal.type.kind in NUMBERS:
        return number(literal)
    if literal.type.kind in (Kind.BOOLEAN, Kind.TEXT):
        return value
    return value if literal.type.kind is Kind.DATE and type(value) is dt.date else None


def number(literal: Literal) -> Fraction | None:
    """The exact value of a finite number, None otherwise."""
    value = literal.value
    if (
        literal.type.kind not in NUMBERS
        or not isinstance(value, (int, float, Decimal))
        or isinstance(value, bool)
    ):
        return None
    return Fraction(value) if math.isfinite(value) else None


def _with_constant(operator: str, left: Expression, right: Expression) -> tuple[str, Expression, Expression]:
    """The comparison of a value with a constant, in the value's own type."""
    constant_first = isinstance(left, Literal)
    constant, value = (left, right) if constant_first else (right, left)
    assert isinstance(constant, Literal)
    found = _own_type(operator, value, constant, constant_first)
    if found is None:
        return operator, left, right
    operator, value, constant = found
    return (operator, constant, value) if constant_first else (operator, value, constant)


def _own_type(
    operator: str, value: Expression, constant: Literal, constant_first: bool
) -> tuple[str, Expression, Literal] | None:
    if constant.type.kind is Kind.DATE and value.type.kind is Kind.DATE and operator == "<":
        if type(constant.value) is dt.date and dt.date.min < constant.value < dt.date.max:
            day = constant.value + dt.timedelta(days=1 if constant_first else -1)
            return "<=", value, Literal(day, constant.type)
        return None
    exact, inner = number(constant), _unscaled(value)
    if exact is None:
        return None
    match inner.type.kind:
        case Kind.INTEGER if operator in ("<", "<="):
            end = _whole_end(exact, operator == "<", constant_first)
            return None if end is None else ("<=", inner, end)
        case Kind.INTEGER if exact.denominator == 1:
            end = _whole(int(exact))
            return None if end is None else (operator, inner, end)
        case Kind.DECIMAL if constant.type.kind is not Kind.DOUBLE:
            shortest = _shortest(exact)
            if shortest is None:
                return None
            value, short = build.same_type([inner, shortest])
            if isinstance(short, Literal) and value.type.kind is Kind.DECIMAL:
                return operator, value, short
        case Kind.DOUBLE if constant.type.kind is Kind.DOUBLE:
            return operator, inner, Literal(float(exact) + 0.0, constant.type)
    return None


def _whole_end(exact: Fraction, strict: bool, constant_first: bool) -> Literal | None:
    """The integer with which < or <= becomes <=: x < 5.5 is x <= 5, and 5.5 < x is 6 <= x."""
    if constant_first:
        return _whole(math.floor(exact) + 1 if strict else math.ceil(exact))
    return _whole(math.ceil(exact) - 1 if strict else math.floor(exact))


def _whole(value: int) -> Literal | None:
    type_ = integer(value, value)
    return Literal(value, type_) if type_.kind is Kind.INTEGER else None


def _shortest(exact: Fraction) -> Literal | None:
    """A decimal number with as few digits as possible."""
    scale = 0
    while (exact * 10**scale).denominator != 1:
        scale += 1
        if scale > 38:
            return None
    digits = int(exact * 10**scale)
    if scale == 0:
        return _whole(digits)
    type_ = decimal(max(len(str(abs(digits))), scale + 1), scale)
    sign = 1 if digits < 0 else 0
    value = Decimal((sign, tuple(map(int, str(abs(digits)))), -scale))
    return Literal(value, type_) if type_.kind is Kind.DECIMAL else None
