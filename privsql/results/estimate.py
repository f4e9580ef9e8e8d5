"""Noisy columns go in; COUNT, SUM and AVG come out, and intervals computed from noisy values and public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.planning.accuracy import linear_half_width
from privsql.planning.estimates import Estimate, Linear, Ratio
from privsql.planning.measurement import Measurement
from privsql.sql.expressions import Call, Column, Expression, Literal
from privsql.tables import Integers
from privsql.types import NUMBERS, Kind

LARGEST_WHOLE = float(2**63 - 1024)  # the last double below 2^63: whole sums past it stop there
Floats = npt.NDArray[np.float64]


def estimate(how: Estimate, noisy: Mapping[str, Integers]) -> npt.NDArray[Any]:
    """The value of an aggregate in every cell."""
    match how:
        case Linear(terms=((column, weight),)) if weight == 1:
            return noisy[column]
        case Linear():
            total = _weighted(how, noisy)
            return np.rint(np.clip(total, -LARGEST_WHOLE, LARGEST_WHOLE)).astype(np.int64) if how.whole else total
        case Ratio():
            above, below = noisy[how.above].astype(np.float64), noisy[how.below].astype(np.float64)
            # a noisy count below 1 is taken as 1: the answer stays within the declared range whatever the noise
            share = np.clip(above / np.maximum(above + below, float(how.one)), 0.0, 1.0)
            return float(how.low) + float(how.high - how.low) * share


def _weighted(how: Linear, noisy: Mapping[str, Integers]) -> Floats:
    total = np.zeros(len(noisy[how.terms[0][0]]), dtype=np.float64)
    for column, weight in how.terms:
        total += noisy[column].astype(np.float64) * float(weight)
    return total


@dataclass(frozen=True)
class Interval:
    """Lower and upper ends, cell by cell; infinite where nothing is known."""

    low: Floats
    high: Floats


def leaf_interval(
    how: Estimate, noisy: Mapping[str, Integers], noise: Mapping[str, Measurement], level: float
) -> Interval:
    """Covers the exact aggregate (of the clamped values) with at least this probability, cell by cell."""
    if isinstance(how, Linear):
        width = linear_half_width(how, noise, level)
        value = estimate(how, noisy).astype(np.float64)
        if how.whole:  # what is counted is whole, so that parts of a unit at the ends can be left out
            return Interval(np.ceil(value - width), np.floor(value + width))
        return Interval(value - width, value + width)
    return _ratio_interval(how, noisy, noise[how.above], level)


def _ratio_interval(how: Ratio, noisy: Mapping[str, Integers], noise: Measurement, level: float) -> Interval:
    """The r that the noisy pair does not contradict: |(1 - r) A - r B| <= the noise of (1 - r) X - r Y.

    That noise is no larger than max(|X|, |Y|), and than the larger of its weights times a single half-width at the
    level for both; a fixed half-width h for all r keeps the solution closed: r = (A -+ h) / (A + B).
    """
    # |(1-r)X - rY| <= max(|X|, |Y|), so a half-width that holds for both at once holds for every r
    width = noise.half_width(1.0 - (1.0 - level) / 2.0)
    above, below = noisy[how.above].astype(np.float64), noisy[how.below].astype(np.float64)
    total = above + below
    usable = total > 0
    safe = np.where(usable, total, 1.0)
    low = np.where(usable, np.clip((above - width) / safe, 0.0, 1.0), 0.0)
    high = np.where(usable, np.clip((above + width) / safe, 0.0, 1.0), 1.0)
    # too few rows to say anything: the exact pair may be (0, 0) or have the other sign
    nothing = total <= 2 * width
    low, high = np.where(nothing, 0.0, low), np.where(nothing, 1.0, high)
    span = float(how.high - how.low)
    return Interval(float(how.low) + span * low, float(how.low) + span * high)


def interval(
    expression: Expression, leaves: Mapping[str, Interval], keys: Mapping[str, Any], size: int
) -> Interval | None:
    """Interval arithmetic through a formula; None where a function has no rule."""
    match expression:
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
        case Call():
            args = [interval(arg, leaves, keys, size) for arg in expression.args]
            return _apply(expression, args)


def _apply(call: Call, args: list[Interval | None]) -> Interval | None:
    if call.function == "nullif":
        return args[0]
    if call.function == "coalesce":
        known = [arg for arg in args if arg is not None]
        if len(known) < len(args):
            return None
        return Interval(np.minimum.reduce([a.low for a in known]), np.maximum.reduce([a.high for a in known]))
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
                return _corners(a, b)
            case "/":
                crossing = (b.low <= 0) & (b.high >= 0)
                inverse = Interval(np.where(crossing, -np.inf, 1 / b.high), np.where(crossing, np.inf, 1 / b.low))
                product = _corners(a, inverse)
                return Interval(np.where(crossing, -np.inf, product.low), np.where(crossing, np.inf, product.high))
            case "cast" if call.type.kind is Kind.INTEGER:
                return Interval(np.rint(a.low), np.rint(a.high))
            case "cast" if call.type.kind in NUMBERS:
                return a
            case "abs":
                least = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(abs(a.low), abs(a.high)))
                return Interval(least, np.maximum(abs(a.low), abs(a.high)))
            case "round":
                places = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
                return Interval(_half_away(a.low, int(places or 0)), _half_away(a.high, int(places or 0)))
            case "floor" | "ceil" | "trunc":
                step = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[call.function]
                return Interval(step(a.low), step(a.high))
            case "least":
                return Interval(np.minimum.reduce([x.low for x in known]), np.minimum.reduce([x.high for x in known]))
            case "greatest":
                return Interval(np.maximum.reduce([x.low for x in known]), np.maximum.reduce([x.high for x in known]))
            case "sqrt":
                return Interval(np.sqrt(np.maximum(a.low, 0)), np.sqrt(np.maximum(a.high, 0)))
            case "exp":
                return Interval(np.exp(a.low), np.exp(a.high))
            case "ln" | "log10" | "log2":
                log = {"ln": np.log, "log10": np.log10, "log2": np.log2}[call.function]
                return Interval(
                    np.where(a.low > 0, log(np.maximum(a.low, 1e-300)), -np.inf), log(np.maximum(a.high, 1e-300))
                )
    return None


def _half_away(values: Floats, places: int) -> Floats:
    """ROUND as SQL means it: halves go away from 0 (numpy's go to the even neighbour, and would cut an end off)."""
    unit = 10.0**-places
    rounded: Floats = np.sign(values) * np.floor(np.abs(values) / unit + 0.5) * unit
    return rounded


def _corners(a: Interval, b: Interval) -> Interval:
    products = [
        np.nan_to_num(x * y, nan=0.0, posinf=np.inf, neginf=-np.inf) for x in (a.low, a.high) for y in (b.low, b.high)
    ]
    return Interval(np.minimum.reduce(products), np.maximum.reduce(products))


__all__ = ["Interval", "estimate", "interval", "leaf_interval"]
