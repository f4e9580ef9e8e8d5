"""Intervals of noisy numbers go in; intervals of formulas over them come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.planning.aggregates.measure_aggregates import scaled_column
from privsql.planning.precision.interval_arithmetic import Floats, Interval, product, quotient
from privsql.types import NUMBERS, Kind

Leaves = Mapping[str, Interval]
Quotients = Mapping[tuple[str, str], Interval]


def interval(
    expression: Expression,
    leaves: Leaves,
    keys: Mapping[str, Any],
    size: int,
    quotients: Quotients | None = None,
) -> Interval | None:
    """Interval arithmetic through a formula; None if a function has no rule."""
    match expression:
        case Call(function="/", args=(above, below)) if (
            quotients and (share := _share(above, below, quotients)) is not None
        ):
            return share
        case Column(name=name):
            if name in leaves:
                return leaves[name]
            values = keys.get(name)
            if values is None or expression.type.kind not in NUMBERS:
                return None
            numbers = np.array([math.nan if value is None else float(value) for value in values])
            return Interval(numbers, numbers)
        case Literal(value=value):
            if value is None or expression.type.kind not in NUMBERS:
                return None
            constant = np.full(size, float(value))
            return Interval(constant, constant)
        case Call(function="case"):
            return _hull([interval(arg, leaves, keys, size, quotients) for arg in _branches(expression.args)])
        case Call():
            args = [interval(arg, leaves, keys, size, quotients) for arg in expression.args]
            return _apply(expression, args)


def _share(above: Expression, below: Expression, quotients: Quotients) -> Interval | None:
    """A count divided by another one of which it is a part: more accurate than from the two intervals."""
    (part, factor), (whole, divisor) = scaled_column(above), scaled_column(below)
    found = quotients.get((part, whole)) if part is not None and whole is not None and divisor == 1 else None
    if found is None:
        return None
    ends = found.low * float(factor), found.high * float(factor)
    return Interval(np.minimum(*ends), np.maximum(*ends))


def _branches(args: Sequence[Expression]) -> list[Expression]:
    """The possible results of CASE, except NULL."""
    return [arg for arg in (*args[1:-1:2], args[-1]) if not (isinstance(arg, Literal) and arg.value is None)]


def _hull(parts: Sequence[Interval | None]) -> Interval | None:
    """The smallest interval that contains all of them."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return Interval(np.minimum.reduce([a.low for a in known]), np.maximum.reduce([a.high for a in known]))


_RISING: dict[str, Callable[[Floats], Floats]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sqrt": lambda values: np.sqrt(np.maximum(values, 0)),
    "exp": np.exp,
}
_LOGARITHMS: dict[str, Callable[[Floats], Floats]] = {"ln": np.log, "log10": np.log10, "log2": np.log2}


def _apply(call: Call, args: list[Interval | None]) -> Interval | None:
    if call.function == "nullif":
        return args[0]
    if call.function == "coalesce":
        return _hull(args)
    known = [arg for arg in args if arg is not None]
    if not known or len(known) < len(args):
        return None
    a, b = known[0], known[1] if len(known) > 1 else known[0]
    with np.errstate(all="ignore"):
        match call.function:
            case "+":
                return Interval(a.low + b.low, a.high + b.high)
            case "-":
                return Interval(a.low - b.high, a.high - b.low)
            case "neg":
                return Interval(-a.high, -a.low)
            case "*":
                return product(a, b)
            case "/":
                return quotient(a, b)
            case "cast" if call.type.kind in NUMBERS:
                whole = call.type.kind is Kind.INTEGER
                return Interval(np.rint(a.low), np.rint(a.high)) if whole else a
            case "abs":
                return _magnitude(a)
            case "round":
                return _rounded(a, call)
            case "least" | "greatest":
                end = np.minimum.reduce if call.function == "least" else np.maximum.reduce
                return Interval(end([each.low for each in known]), end([each.high for each in known]))
            case function if function in _RISING:
                return Interval(_RISING[function](a.low), _RISING[function](a.high))
            case function if function in _LOGARITHMS:
                log = _LOGARITHMS[function]
                low = np.where(a.low > 0, log(np.maximum(a.low, 1e-300)), -np.inf)
                return Interval(low, log(np.maximum(a.high, 1e-300)))
    return None


def _magnitude(a: Interval) -> Interval:
    least = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(abs(a.low), abs(a.high)))
    return Interval(least, np.maximum(abs(a.low), abs(a.high)))


def _rounded(a: Interval, call: Call) -> Interval:
    places = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
    return Interval(_half_away(a.low, int(places or 0)), _half_away(a.high, int(places or 0)))


def _half_away(values: Floats, places: int) -> Floats:
    """Round as SQL does: halves go away from 0. numpy's round half to even would cut off an end."""
    unit = 10.0**-places
    rounded: Floats = np.sign(values) * np.floor(np.abs(values) / unit + 0.5) * unit
    return rounded
