"""Rules for numbers: the ranges of the arguments go in; the range of the result comes out, by interval
arithmetic.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privsql.algebra.expressions import Call, Literal
from privsql.analysis.domain import Domain, Rule, of_values, union
from privsql.types import Kind, Type

_FEW = 10_000  # up to this many steps of a rounded number are listed as possible keys
_LARGEST = Fraction(sys.float_info.max)


def _range(type_: Type, low: Any, high: Any) -> Domain:
    """A range without those ends that no double reaches: nothing computed with doubles could be compared with
    them.
    """
    low, high = (None if end is None or abs(end) > _LARGEST else end for end in (low, high))
    return Domain(type_, low=low, high=high)


def _listed(rule: Rule, operation: Callable[[float, float], float]) -> Rule:
    """The rule, which also lists the results if one side is listed and the other a constant: floor(x / 5) * 5
    can be a key.

    Both sides are doubles, and Python's arithmetic on them agrees with DuckDB's, digit for digit.
    """

    def listed(call: Call, args: Sequence[Domain]) -> Domain:
        found = rule(call, args)
        constants = [isinstance(arg, Literal) for arg in call.args]
        a, b = (arg.values for arg in args)
        if (
            call.type.kind is not Kind.DOUBLE
            or sum(constants) != 1
            or not a
            or not b
            or max(len(a), len(b)) > _FEW
        ):
            return found
        values = [operation(float(x), float(y)) + 0.0 for x in a for y in b]  # + 0.0 turns -0.0 into 0.0
        return of_values(call.type, values, nullable=True) if all(map(math.isfinite, values)) else found

    return listed


def _plus(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    return _range(call.type, _sum(a.low, b.low), _sum(a.high, b.high))


def _minus(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    return _range(call.type, _sum(a.low, _neg(b.high)), _sum(a.high, _neg(b.low)))


def _negation(call: Call, args: Sequence[Domain]) -> Domain:
    return _range(call.type, _neg(args[0].high), _neg(args[0].low))


def _corners(call: Call, a: Domain, b: Domain, operation: Callable[[Any, Any], Any]) -> Domain:
    if not (a.bounded and b.bounded):
        return Domain(call.type)
    corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _range(call.type, min(corners), max(corners))


def _times(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    if call.args[0] == call.args[1] and a.bounded:  # x * x is never negative
        squares = [a.low * a.low, a.high * a.high]
        low = Fraction(0) if a.low <= 0 <= a.high else min(squares)
        return _range(call.type, low, max(squares))
    return _corners(call, a, b, lambda x, y: x * y)


def _nonzero(domain: Domain, type_: Type) -> Domain | None:
    """The domain of a divisor without 0, which is rendered as NULL: integers then start at 1 or end at -1."""
    if not domain.bounded or domain.low is None:
        return None
    if domain.low > 0 or domain.high < 0:
        return domain
    if type_.kind is not Kind.INTEGER:
        return None
    low = Fraction(1) if domain.low == 0 else domain.low
    high = Fraction(-1) if domain.high == 0 else domain.high
    if low > high:
        return None
    return replace(domain, low=low, high=high, values=None)


def _divided(call: Call, args: Sequence[Domain]) -> Domain:
    inner = call.args[1]
    whole = inner.args[0].type if isinstance(inner, Call) and inner.function == "cast" else inner.type
    divisor = _nonzero(args[1], whole)
    if divisor is None or not args[0].bounded:
        return Domain(call.type)
    # integers on both sides of 0: the largest quotients are at -1 and 1
    if divisor.low < 0 < divisor.high:
        ends = [args[0].low, args[0].high]
        return _range(call.type, min(*ends, *(-e for e in ends)), max(*ends, *(-e for e in ends)))
    return _corners(call, args[0], divisor, lambda x, y: Fraction(x) / y)


def _whole_divided(call: Call, args: Sequence[Domain]) -> Domain:
    quotient = _divided(call, args)
    if not quotient.bounded or quotient.low is None:
        return quotient
    return _range(call.type, Fraction(math.trunc(quotient.low)), Fraction(math.trunc(quotient.high)))


def _modulo(call: Call, args: Sequence[Domain]) -> Domain:
    a, b = args
    if not b.bounded or b.low is None:
        return Domain(call.type)
    most = max(abs(b.low), abs(b.high)) - (1 if call.type.kind is Kind.INTEGER else 0)
    low, high = -most, most
    if a.low is not None:
        low = Fraction(0) if a.low >= 0 else max(low, a.low)
    if a.high is not None:
        high = Fraction(0) if a.high <= 0 else min(high, a.high)
    if low > high:
        return Domain(call.type)
    return _range(call.type, low, high)


def _absolute(call: Call, args: Sequence[Domain]) -> Domain:
    (a,) = args
    low: Any = Fraction(0)
    if a.low is not None and a.low > 0:
        low = a.low
    elif a.high is not None and a.high < 0:
        low = -a.high
    high = max(abs(a.low), abs(a.high)) if a.bounded else None
    return _range(call.type, low, high)


def _rounding(step: Callable[[Any], int]) -> Rule:
    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        low = None if a.low is None else Fraction(step(a.low))
        high = None if a.high is None else Fraction(step(a.high))
        return _stepped(call.type, low, high, Fraction(1))

    return rule


def _stepped(type_: Type, low: Fraction | None, high: Fraction | None, unit: Fraction) -> Domain:
    """A range of multiples of a unit; doubles are listed if there are few of them, so that they can be
    keys.
    """
    found = _range(type_, low, high)
    if (
        type_.kind is not Kind.DOUBLE
        or low is None
        or high is None
        or not found.bounded
        or (high - low) / unit > _FEW
    ):
        return found
    first, last = int(low / unit), int(high / unit)
    return of_values(type_, [float(unit * step) for step in range(first, last + 1)], nullable=True)


def _round(call: Call, args: Sequence[Domain]) -> Domain:
    places = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
    unit = Fraction(10) ** -min(max(int(places or 0), -30), 30)
    a = args[0]
    low = None if a.low is None else math.floor(a.low / unit) * unit
    high = None if a.high is None else math.ceil(a.high / unit) * unit
    return _stepped(call.type, low, high, unit)


def _common_bits(call: Call, args: Sequence[Domain]) -> Domain:
    """Bits that a number which is not negative shares with another: no more than its own."""
    tops = [each.high for each in args if each.low is not None and each.low >= 0 and each.high is not None]
    return _range(call.type, Fraction(0), min(tops)) if tops else Domain(call.type)


def _between(low: float, high: float) -> Rule:
    ends = Fraction(low), Fraction(high)
    return lambda call, args: _range(call.type, *ends)


def _from_zero(call: Call, args: Sequence[Domain]) -> Domain:
    return _range(call.type, Fraction(0), None)


def _rising(function: Callable[[float], float], floor: float | None = None) -> Rule:
    """An increasing function of doubles: the ends map to the ends, moved slightly outwards."""

    def rule(call: Call, args: Sequence[Domain]) -> Domain:
        a = args[0]
        ends: list[Any] = []
        for bound, direction in ((a.low, -math.inf), (a.high, math.inf)):
            try:
                value = function(float(bound)) if bound is not None else None
            except (ValueError, OverflowError):
                value = None
            if value is None or not math.isfinite(value):
                ends.append(Fraction(floor) if direction < 0 and floor is not None else None)
            else:
                ends.append(Fraction(math.nextafter(value, direction)))
        return _range(call.type, ends[0], ends[1])

    return rule


def _power(call: Call, args: Sequence[Domain]) -> Domain:
    base, exponent = args
    if not base.bounded or base.low is None or exponent.low is None or exponent.low != exponent.high:
        return Domain(call.type)
    power = exponent.low
    if power.denominator != 1 or not 0 <= power <= 64:
        return Domain(call.type)
    ends = [base.low ** int(power), base.high ** int(power)]
    low = Fraction(0) if power % 2 == 0 and base.low <= 0 <= base.high and power > 0 else min(ends)
    return _range(call.type, low, max(ends))


def _least(call: Call, args: Sequence[Domain]) -> Domain:
    known = [arg.high for arg in args if arg.high is not None and not arg.nullable]
    high = min(known) if known else _if_known(max, [arg.high for arg in args])
    return _choice(call, args, _if_known(min, [arg.low for arg in args]), high)


def _greatest(call: Call, args: Sequence[Domain]) -> Domain:
    known = [arg.low for arg in args if arg.low is not None and not arg.nullable]
    low = max(known) if known else _if_known(min, [arg.low for arg in args])
    return _choice(call, args, low, _if_known(max, [arg.high for arg in args]))


def _if_known(pick: Callable[[Sequence[Any]], Any], ends: Sequence[Any]) -> Any:
    return None if any(end is None for end in ends) else pick(ends)


def _choice(call: Call, args: Sequence[Domain], low: Any, high: Any) -> Domain:
    return replace(union(call.type, args), low=low, high=high)


def _sum(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def _neg(a: Any) -> Any:
    return None if a is None else -a


NUMBER_RULES: dict[str, Rule] = {
    "+": _listed(_plus, operator.add),
    "-": _listed(_minus, operator.sub),
    "*": _listed(_times, operator.mul),
    "/": _divided,
    "//": _whole_divided,
    "%": _modulo,
    "neg": _negation,
    "abs": _absolute,
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "trunc": _rounding(math.trunc),
    "round": _round,
    "truncate": _round,
    "bitand": _common_bits,
    "sign": _between(-1, 1),
    "pow": _power,
    "least": _least,
    "greatest": _greatest,
    "exp": _rising(math.exp, 0.0),
    "ln": _rising(math.log),
    "log10": _rising(math.log10),
    "log2": _rising(math.log2),
    "sqrt": _rising(math.sqrt, 0.0),
    "cbrt": _rising(math.cbrt),
    "atan": _between(-2, 2),
    "asin": _between(-2, 2),
    "acos": _between(0, 4),
    "atan2": _between(-4, 4),
    "sin": _between(-1, 1),
    "cos": _between(-1, 1),
    "tanh": _between(-1, 1),
    "sinh": _rising(math.sinh),
    "asinh": _rising(math.asinh),
    "degrees": _rising(math.degrees),
    "radians": _rising(math.radians),
    "pi": _between(3, 4),
    "bit_count": _between(0, 128),
    "jaro_similarity": _between(0, 1),
    "jaro_winkler_similarity": _between(0, 1),
    "length": _from_zero,
    "strlen": _from_zero,
    "bit_length": _from_zero,
    "strpos": _from_zero,
    "levenshtein": _from_zero,
    "damerau_levenshtein": _from_zero,
    "ascii": _between(0, 0x10FFFF),
    "unicode": _between(-1, 0x10FFFF),
}
