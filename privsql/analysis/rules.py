"""One rule per function: the domains of the arguments go in, the domain of the result comes out.

A rule says which values a result may have; whether it may be NULL follows from the function's row in
algebra/functions.py. A function without a rule keeps only its type: booleans are true or false, everything
else is unbounded. That is always safe, because a domain only chooses clamps and keys, which the rendered SQL
then enforces.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from privsql.algebra.expressions import Call, Literal
from privsql.algebra.functions import BELIEFS, FIXED_POINT, Nulls, Undefined
from privsql.analysis.domain import Domain, Rule, of_values, union
from privsql.analysis.moment_rules import MOMENT_RULES
from privsql.analysis.number_rules import NUMBER_RULES
from privsql.types import BOOLEAN, Kind, Type

_SAFE_CASTS = {
    (Kind.INTEGER, Kind.DOUBLE),
    (Kind.DECIMAL, Kind.DOUBLE),
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.TIMESTAMP, Kind.DATE),
}


def apply(call: Call, args: Sequence[Domain]) -> Domain:
    """The domain of a call, from the domains of its arguments."""
    rule = RULES.get(call.function)
    result = (
        rule(call, args) if rule is not None and not any(arg.empty for arg in args) else Domain(call.type)
    )
    # needed even where an argument is always NULL: x > 1 OR NULL
    if result.values is None and call.type.kind is Kind.BOOLEAN:
        result = of_values(BOOLEAN, (False, True), nullable=True)
    nullable = _nullable(call, args)
    shown = any(arg.nullable and arg.null_is_key for arg in args) or _partial(call, args)
    return replace(result, nullable=nullable, null_is_key=nullable and shown)


def _nullable(call: Call, args: Sequence[Domain]) -> bool:
    match BELIEFS[call.function].nulls:
        case Nulls.NEVER:
            return False
        case Nulls.SKIPPED:
            return all(arg.nullable for arg in args)
        case Nulls.STRICT | Nulls.PASSED:
            return any(arg.nullable for arg in args) or _partial(call, args)
        case nulls:
            assert_never(nulls)


def _partial(call: Call, args: Sequence[Domain]) -> bool:
    """Whether the result can be NULL although no argument is, for arguments within their domains."""
    match BELIEFS[call.function].undefined:
        case Undefined.NOWHERE:
            return False
        case Undefined.SOMEWHERE:
            return True
        case Undefined.AT_INFINITY:  # a time of day is never infinite
            return not (args[-1].bounded or args[-1].type.kind is Kind.TIME)
        case Undefined.BY_ZERO:
            return not (_above(args[1], 0) or _below(args[1], 0))
        case Undefined.BELOW_ZERO:
            return not (args[0].bounded and args[0].low is not None and args[0].low >= 0)
        case Undefined.UP_TO_ZERO:
            return not (args[0].bounded and _above(args[0], 0))
        case Undefined.BY_TYPE:
            return not always_fits(call.args[0].type, call.type)
        case undefined:
            assert_never(undefined)


def always_fits(source: Type, target: Type) -> bool:
    """Whether a cast has a value for every value of the source type."""
    if target.kind is source.kind and target.kind is not Kind.DECIMAL:
        return target.kind is not Kind.INTEGER or (target.low <= source.low and source.high <= target.high)
    return target.kind is Kind.TEXT or (source.kind, target.kind) in _SAFE_CASTS


def _above(domain: Domain, bound: int) -> bool:
    return domain.low is not None and domain.low > bound


def _below(domain: Domain, bound: int) -> bool:
    return domain.high is not None and domain.high < bound


# -- conditionals and casts ----------------------------------------------------------------------------------
def _coalesce(call: Call, args: Sequence[Domain]) -> Domain:
    reached: list[Domain] = []
    for arg in args:
        reached.append(arg)
        if not arg.nullable:
            break
    return union(call.type, reached)


def _nullif(call: Call, args: Sequence[Domain]) -> Domain:
    first = args[0]
    if first.values is not None and isinstance(call.args[1], Literal):
        return of_values(call.type, (v for v in first.values if v != call.args[1].value), nullable=True)
    return first


def _cast(call: Call, args: Sequence[Domain]) -> Domain:
    (a,), source, target = args, call.args[0].type.kind, call.type.kind
    if source is Kind.BOOLEAN and target is Kind.INTEGER:
        return of_values(call.type, (int(v) for v in a.values or (False, True)), nullable=a.nullable)
    if source in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE) and target in (Kind.DECIMAL, Kind.DOUBLE):
        unit = Fraction(1, 10**call.type.scale) if target is Kind.DECIMAL else None
        low = math.floor(a.low / unit) * unit if unit and a.low is not None else a.low
        high = math.ceil(a.high / unit) * unit if unit and a.high is not None else a.high
        return Domain(call.type, low=low, high=high)
    if source in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE) and target is Kind.INTEGER:
        low = None if a.low is None else Fraction(max(math.floor(a.low), call.type.low))
        high = None if a.high is None else Fraction(min(math.ceil(a.high), call.type.high))
        if low is not None and high is not None and low > high:
            return Domain(call.type)
        return replace(
            Domain(call.type, low=low, high=high), values=a.values if source is Kind.INTEGER else None
        )
    if (source, target) == (Kind.DATE, Kind.TIMESTAMP) and a.bounded:
        low, high = (dt.datetime.combine(end, dt.time()) for end in (a.low, a.high))
        return Domain(call.type, low=low, high=high)
    if (source, target) == (Kind.TIMESTAMP, Kind.DATE) and a.bounded:
        return Domain(call.type, low=a.low.date(), high=a.high.date())
    return a if source is target else Domain(call.type)


RULES: dict[str, Rule] = {
    **NUMBER_RULES,
    **MOMENT_RULES,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "cast": _cast,
    FIXED_POINT: lambda call, args: replace(args[0], type=call.type),
}
