"""Numbers go in; arithmetic and casts of PostgreSQL come out that have a value, or NULL, for every number.

PostgreSQL raises an error where DOUBLE arithmetic overflows, and also where a product or quotient of two
numbers that are not 0 would be 0. Whether that happens would tell about a row. So each operation asks first,
by tests that cannot fail themselves: the results are those of IEEE 754, but products and quotients below
1e-323 are 0. Branches that cannot be taken are removed before their constants are computed, since their
tests are constant, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from privsql.types import INTEGER_BOUNDS, Type

_LONGEST_REPEATED = 600  # letters that an argument may take, however often it is written
_HOLE = re.compile(r"\{(\d)\}")


def double(value: float) -> str:
    """A constant DOUBLE."""
    if math.isnan(value):
        shown = "NaN"
    elif math.isinf(value):
        shown = "Infinity" if value > 0 else "-Infinity"
    else:
        shown = repr(value)
    return f"CAST('{shown}' AS double precision)"


INFINITY, NAN = double(math.inf), double(math.nan)
_MAX, _LEAST, _ZERO, _MINUS_INFINITY = (
    double(1.7976931348623157e308),
    double(1e-323),
    double(0.0),
    double(-math.inf),
)
# of a product: a little less than the largest number, so that rounding cannot pass that
_MOST = double(1.797693134862315e308)
_HUGE, _SMALL, _LARGE = double(8e307), double(1e-150), double(1e150)

_BEYOND = "(abs({0}) >= " + INFINITY + " OR abs({1}) >= " + INFINITY + ")"  # NaN is the greatest number
ADD = (
    f"(CASE WHEN abs({{0}}) < {_HUGE} AND abs({{1}}) < {_HUGE} THEN {{0}} + {{1}} "
    f"WHEN {_BEYOND} THEN {{0}} + {{1}} "
    f"WHEN {{1}} > {_ZERO} AND {{0}} > {_MAX} - abs({{1}}) THEN {INFINITY} "
    f"WHEN {{1}} < {_ZERO} AND - {{0}} > {_MAX} - abs({{1}}) THEN {_MINUS_INFINITY} ELSE {{0}} + {{1}} END)"
)
_PLAIN = f"abs({{0}}) BETWEEN {_SMALL} AND {_LARGE} AND abs({{1}}) BETWEEN {_SMALL} AND {_LARGE}"
_SIGNED_INFINITY = f"sign({{0}}) * sign({{1}}) * {INFINITY}"
_ONE = double(1.0)
MULTIPLY = (
    f"(CASE WHEN {_PLAIN} THEN {{0}} * {{1}} "
    f"WHEN {{0}} = {_ZERO} OR {{1}} = {_ZERO} OR {_BEYOND} THEN {{0}} * {{1}} "
    f"WHEN abs({{0}}) >= {_ONE} AND abs({{1}}) >= {_ONE} THEN "
    f"(CASE WHEN abs({{0}}) > {_MOST} / abs({{1}}) THEN {_SIGNED_INFINITY} ELSE {{0}} * {{1}} END) "
    f"WHEN abs({{0}}) < {_ONE} AND abs({{1}}) < {_ONE} THEN "
    f"(CASE WHEN abs({{0}}) < {_LEAST} / abs({{1}}) THEN {_ZERO} ELSE {{0}} * {{1}} END) "
    "ELSE {0} * {1} END)"
)
DIVIDE = (
    f"(CASE WHEN {{1}} = {_ZERO} THEN NULL WHEN {_PLAIN} THEN {{0}} / {{1}} "
    f"WHEN {{0}} = {_ZERO} OR {_BEYOND} THEN {{0}} / {{1}} "
    f"WHEN abs({{1}}) < {_ONE} THEN "
    f"(CASE WHEN abs({{0}}) > {_MOST} * abs({{1}}) THEN {_SIGNED_INFINITY} ELSE {{0}} / {{1}} END) "
    f"WHEN abs({{1}}) >= {_ONE} THEN "
    f"(CASE WHEN abs({{0}}) < {_LEAST} * abs({{1}}) THEN {_ZERO} ELSE {{0}} / {{1}} END) END)"
)
# away from zero where it is half; PostgreSQL's own round() of a DOUBLE goes to the even number
ROUND = (
    f"(trunc({{0}}) + CASE WHEN abs({{0}} - trunc({{0}})) >= {double(0.5)} THEN sign({{0}}) ELSE {_ZERO} END)"
)
OF_DOUBLES = {
    "+": ADD,
    "-": ADD.replace("{1}", "(- {1})"),
    "*": MULTIPLY,
    "/": DIVIDE,
}
# NUMERIC of any size to DOUBLE: beyond the range of doubles an infinity, and near zero 0
WIDE_TO_DOUBLE = (
    f"(CASE WHEN abs({{0}}) < 1e-300 THEN {_ZERO} "
    "WHEN abs({0}) <= 1e300 OR abs({0}) >= CAST('Infinity' AS numeric) THEN CAST({0} AS double precision) "
    f"WHEN {{0}} > 0 THEN {INFINITY} WHEN {{0}} < 0 THEN {_MINUS_INFINITY} END)"
)


def filled(form: str, args: Sequence[str], within_groups: bool = False) -> str:
    """A form with its arguments. A long argument that it has more than once is computed beside it.

    `within_groups`: the arguments hold aggregates, which must stay where they are.
    """
    times = {place: form.count(f"{{{place}}}") for place in range(len(args))}
    apart = [
        place
        for place, arg in enumerate(args)
        if times[place] > 1 and times[place] * len(arg) > _LONGEST_REPEATED and not within_groups
    ]
    shown = [f"privsql_{place}" if place in apart else f"({arg})" for place, arg in enumerate(args)]
    # in one pass: what an argument says (a text such as '{1}') is never looked into again
    text = _HOLE.sub(lambda hole: shown[int(hole[1])], form)
    if not apart:
        return text
    # the fence keeps the planner from writing the argument several times after all
    columns = ", ".join(f"{args[place]} AS privsql_{place}" for place in apart)
    return f"(SELECT {text} FROM (SELECT {columns} OFFSET 0) AS privsql_args)"


# -- arithmetic with a constant ------------------------------------------------------------------------------
def number(value: Any) -> float | None:
    """A constant as a DOUBLE, where the shorter forms hold for it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    found = float(value)
    return found if found == 0 or 1e-280 < abs(found) < 1e280 else None


def of_doubles(
    sign: str, sides: tuple[str, str], known: Sequence[float | None], within_groups: bool = False
) -> str:
    """Arithmetic on two doubles, of which some are `known`: with a constant there is one test at most."""
    match sign, known:
        case "+", [_, float(constant)]:
            return filled(_plus(constant), sides[:1], within_groups)
        case "+", [float(constant), _]:
            return filled(_plus(constant), sides[1:], within_groups)
        case "-", [_, float(constant)]:
            return filled(_plus(-constant), sides[:1], within_groups)
        case "*", [_, float(constant)] if constant:
            return filled(_times(constant), sides[:1], within_groups)
        case "*", [float(constant), _] if constant:
            return filled(_times(constant), sides[1:], within_groups)
        case "/", [_, float(constant)] if constant:
            return filled(_over(constant), sides[:1], within_groups)
    return filled(OF_DOUBLES[sign], sides, within_groups)


def _plus(constant: float) -> str:
    """To a number so huge that the sum could overflow, a constant adds nothing."""
    return f"(CASE WHEN abs({{0}}) < {_HUGE} THEN {{0}} + {double(constant)} ELSE {{0}} END)"


def _times(constant: float) -> str:
    size = abs(constant)
    if size >= 1:
        return _unless_huge(double(1.797693134862315e308 / size), f"{{0}} * {double(constant)}", constant)
    return _unless_tiny(double(1e-323 / size), f"{{0}} * {double(constant)}")


def _over(constant: float) -> str:
    size = abs(constant)
    if size < 1:
        return _unless_huge(double(1.797693134862315e308 * size), f"{{0}} / {double(constant)}", constant)
    return _unless_tiny(double(1e-323 * size), f"{{0}} / {double(constant)}")


def _unless_huge(most: str, value: str, constant: float) -> str:
    infinite = double(math.copysign(math.inf, constant))
    return f"(CASE WHEN abs({{0}}) <= {most} THEN {value} ELSE {{0}} * {infinite} END)"


def _unless_tiny(least: str, value: str) -> str:
    return f"(CASE WHEN abs({{0}}) < {least} THEN {_ZERO} ELSE {value} END)"


# -- casts ---------------------------------------------------------------------------------------------------
def integer_name(type_: Type) -> str:
    """Whole numbers are computed in 64 bits where they fit, so that sums of smaller ones cannot overflow."""
    return "numeric" if type_.is_wide else "bigint"


def whole_from_whole(low: int, high: int, name: str) -> str:
    return f"(CASE WHEN {{0}} BETWEEN {low} AND {high} THEN CAST({{0}} AS {name}) END)"


def whole_from_decimal(low: int, high: int, name: str) -> str:
    return f"(CASE WHEN round({{0}}) BETWEEN {low} AND {high} THEN CAST(round({{0}}) AS {name}) END)"


def whole_from_double(low: int, high: int, wide: bool) -> str:
    """Rounded, half to even. A wide one is put together from two halves: a cast of a DOUBLE to NUMERIC keeps
    15 digits.
    """
    least, most = double(_inward(low)), double(_inward(high))
    test = f"round({{0}}) BETWEEN {least} AND {most}"
    if not wide:
        return f"(CASE WHEN {test} THEN CAST({{0}} AS bigint) END)"
    half, ends = double(2.0**64), (double(-(2.0**63)), double(_inward(2**63 - 1)))
    upper = f"CAST(trunc({{0}} / {half}) AS bigint)"
    lower = f"CAST(({{0}} - trunc({{0}} / {half}) * {half}) / {double(2.0)} AS bigint)"
    both = f"CAST({upper} AS numeric) * {2**64} + CAST({lower} AS numeric) * 2"
    small = f"{{0}} BETWEEN {ends[0]} AND {ends[1]}"
    return (
        f"(CASE WHEN {small} THEN (CASE WHEN {test} THEN CAST(CAST({{0}} AS bigint) AS numeric) END) "
        f"WHEN {test} THEN {both} END)"
    )


def decimal_from_number(to: Type) -> str:
    """NULL where it has more digits before the point than the type."""
    most = 10 ** (to.precision - to.scale)
    name = f"numeric({to.precision},{to.scale})"
    return f"(CASE WHEN abs(round({{0}}, {to.scale})) < {most} THEN CAST({{0}} AS {name}) END)"


def _inward(value: int) -> float:
    """The DOUBLE next to a whole number that is no further from zero."""
    found = float(value)
    return found if abs(int(found)) <= abs(value) else math.nextafter(found, 0.0)


def fits(type_: Type, low: int, high: int) -> bool:
    return low <= type_.low and type_.high <= high


def bounds_of(type_: Type) -> tuple[int, int]:
    """What a type that an INTEGER is computed in holds: of NUMERIC as much as of DuckDB's widest type."""
    return INTEGER_BOUNDS["HUGEINT" if type_.is_wide else "BIGINT"]
