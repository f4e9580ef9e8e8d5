"""A plan and a confidence level go in; the half-width of every output comes out, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.errors import ArgumentError
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.plan import Accuracy, Plan
from privsql.planning.precision.noise_of_rows import alike_rows
from privsql.policy.checks import LARGEST_EPSILON, NANO, SMALLEST_EPSILON
from privsql.suggestions import Argument
from privsql.types import NUMBERS, Kind

SUREST = 0.999999  # 1 minus it, divided among a million cells, must still be above 0


def check_level(level: float) -> float:
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level <= SUREST:
        raise ArgumentError(
            "argument-level", f"a confidence level must be above 0 and at most {SUREST}", "try 0.95"
        )
    return float(level)


def accuracy_of(plan: Plan, level: float, rows: int | None = None) -> Accuracy:
    level = check_level(level)
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ArgumentError("argument-rows", "rows must be a whole number of at least 1", "rows=1000")
    widths, notes = _widths(plan, level, rows)
    known = [name for name, width in widths.items() if width is not None]
    return Accuracy(widths, level, notes, _together(plan, level, rows, known))


def _widths(
    plan: Plan, level: float, rows: int | None = None
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Each output's half-width, and a note where it is not known beforehand."""
    widths: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    for output in plan.outputs:
        leaves = plan.leaves(output.expression)
        ranks = _ranks(plan, leaves, level)
        if ranks and (len(leaves) == 1 or output.expression.type.kind is Kind.LIST):
            widths[output.name], notes[output.name] = None, ranks
            continue
        if not leaves or output.expression.type.kind not in NUMBERS:
            continue
        share = 1.0 - (1.0 - level) / len(leaves)
        width = _width(output.expression, plan, share, rows)
        widths[output.name] = width
        if width is None:
            whole = _width(output.expression, plan, share, 1)
            notes[output.name] = (
                f"+- {whole:,.4g} / rows averaged" if whole is not None else "see intervals() of the answer"
            )
    return widths, notes


def _together(plan: Plan, level: float, rows: int | None, names: Collection[str]) -> dict[str, float | None]:
    """Half-widths for all cells at once, by a union bound; empty if the number of cells is not known
    beforehand.
    """
    if plan.space.open or not names:
        return {}
    outputs = [output for output in plan.outputs if output.name in names]
    leaves = sum(len(plan.leaves(each.expression)) for each in outputs)
    share = 1.0 - (1.0 - level) / (max(1, plan.cells) * leaves)
    return {each.name: _width(each.expression, plan, share, rows) for each in outputs}


def _ranks(plan: Plan, leaves: Collection[str], level: float) -> str:
    """The error of quantiles in rows: their error in values depends on the data."""
    known = [plan.estimates[leaf].rank_error(plan.measurements, level) for leaf in leaves]
    errors = [each for each in known if each is not None]
    if not errors:
        return ""
    few, near = max(each.few for each in errors), max(each.rows for each in errors)
    one = len({each.what for each in errors}) == 1
    what = errors[0].what if one else "its rank, each on its own,"
    return (
        f"within ±{near:,} rows of {what} at {level:.0%}, ties aside;"
        f" may be undetermined with fewer than {few:,} rows"
    )


def _leaf(estimate: Estimate, plan: Plan, level: float, rows: int | None) -> float | None:
    """The largest half-width of an aggregate in any row."""
    found = []
    for each in alike_rows(plan):
        corners = 0 if plan.levels is None or each.level is None else plan.levels.corners[each.level]
        found.append(estimate.half_width(each.noise, level, rows or 0, corners))
    known = [each for each in found if each is not None]
    return max(known) if known else None


def _width(expression: Expression, plan: Plan, level: float, rows: int | None) -> float | None:
    """Propagate half-widths through sums, differences and products with constants; None where they depend on
    the answer.
    """
    match expression:
        case Literal():
            return 0.0
        case Column(name=name):
            return _leaf(plan.estimates[name], plan, level, rows) if name in plan.estimates else 0.0
        case Call(function="+" | "-", args=(left, right)):
            one, other = (_width(each, plan, level, rows) for each in (left, right))
            return None if one is None or other is None else one + other
        case Call(function="*", args=(left, right)):
            inner, factor = (right, left) if isinstance(left, Literal) else (left, right)
            return _scaled(inner, factor, plan, level, rows, divide=False)
        case Call(function="/", args=(left, right)):
            return _scaled(left, right, plan, level, rows, divide=True)
        case Call(function="neg" | "cast", args=(inner,)) if expression.type.kind in NUMBERS:
            width = _width(inner, plan, level, rows)
            return width if width is None or expression.type.kind is not Kind.INTEGER else width + 0.5
        case Call(function="greatest" | "least", args=args):
            widths = [_width(each, plan, level, rows) for each in args]
            return None if None in widths else max(each for each in widths if each is not None)
        case Call(function="round", args=(inner, *places)):
            width = _width(inner, plan, level, rows)
            digits = int(places[0].value or 0) if places and isinstance(places[0], Literal) else 0
            return None if width is None else width + 0.5 * 10.0**-digits
    return None


def _scaled(
    inner: Expression, factor: Expression, plan: Plan, level: float, rows: int | None, divide: bool
) -> float | None:
    width = _width(inner, plan, level, rows)
    if not isinstance(factor, Literal) or factor.value is None or width is None:
        return None
    amount = abs(float(factor.value))
    if divide:
        return width / amount if amount else None
    return width * amount


def epsilon_within(plan: Plan, within: float, confidence: float) -> Fraction:
    """The least epsilon at which all cells of all outputs are within +-`within` at once, with this
    confidence.
    """
    if plan.public:
        return SMALLEST_EPSILON
    if plan.space.open:
        raise ArgumentError(
            "argument-within",
            "the number of undeclared keys is not known beforehand, "
            "so no epsilon can be computed for all of them",
            [("give ", Argument("epsilon"), " instead"), ("declare the keys",)],
        )
    if isinstance(within, bool) or not isinstance(within, (int, float)) or not 0 < within <= 1e300:
        raise ArgumentError(
            "argument-within", "within must be a positive number", [(Argument("within", "20"),)]
        )
    cells = plan.cells * max(1, len(plan.outputs))
    level = 1.0 - (1.0 - check_level(confidence)) / cells

    def worst(nano: int) -> float:
        try:
            priced = plan.repriced(Fraction(nano, NANO))
        except ArgumentError:
            return math.inf  # its noise does not fit in 64 bits
        widths, _ = _widths(priced, level)
        known = [width for width in widths.values() if width is not None]
        if not known or len(known) < len(widths):
            raise ArgumentError(
                "argument-within",
                "the error of this answer depends on the data, so no epsilon can be computed beforehand",
                [("give ", Argument("epsilon"), " instead, and look at the intervals of the answer")],
            )
        return max(known)

    low, high = int(SMALLEST_EPSILON * NANO), int(LARGEST_EPSILON * NANO)
    if worst(high) > within:
        raise ArgumentError(
            "argument-within", "no epsilon gives an answer this accurate", "give a larger within"
        )
    # noise is roughly inverse to epsilon, so these guesses save most of the search
    near = worst(NANO) / within
    for share in (0.95, 1.05):
        nano = int(min(near * share, float(LARGEST_EPSILON)) * NANO)
        if low < nano < high:
            low, high = (low, nano) if worst(nano) <= within else (nano + 1, high)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if worst(middle) <= within else (middle + 1, high)
    return Fraction(low, NANO)
