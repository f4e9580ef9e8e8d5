"""Numbers between two ends go in; the ends of what is computed from them come out.

Each rule gives ends that hold whatever its operands are, so the same released number may stand in several of
them: the result is then wider than it need be, but never too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from privsql.sql.boxes.cells import (
    FALSE,
    TRUE,
    Cell,
    NoRule,
    Sql,
    Truth,
    both,
    either,
    finite,
    greatest,
    holds,
    is_null,
    least,
    no,
    when,
)

_ZERO = exp.Literal.number(0)


# -- arithmetic: the ends, to be made `finite`, and where they are right -------------------------------------
def _sum(a: Cell, b: Cell) -> tuple[Cell, Sql]:
    low, high = exp.Add(this=a.low, expression=b.low), exp.Add(this=a.high, expression=b.high)
    return Cell(low, high, either(a.null, b.null), a.whole and b.whole), TRUE


def _difference(a: Cell, b: Cell) -> tuple[Cell, Sql]:
    low, high = exp.Sub(this=a.low, expression=b.high), exp.Sub(this=a.high, expression=b.low)
    return Cell(low, high, either(a.null, b.null), a.whole and b.whole), TRUE


def _corners(a: Cell, b: Cell, operation: type[exp.Expr]) -> list[Sql]:
    firsts, seconds = dict.fromkeys((a.low, a.high)), dict.fromkeys((b.low, b.high))
    return [operation(this=x, expression=y) for x in firsts for y in seconds]


def _product(a: Cell, b: Cell) -> tuple[Cell, Sql]:
    found = _corners(a, b, exp.Mul)
    null, whole = either(a.null, b.null), a.whole and b.whole
    return Cell(least(*found), greatest(*found), null, whole), TRUE


def _quotient(a: Cell, b: Cell) -> tuple[Cell, Sql]:
    """Any number, or NULL, where the divisor may be 0."""
    found = _corners(a, b, exp.Div)
    above, below = exp.GT(this=b.low, expression=_ZERO), exp.LT(this=b.high, expression=_ZERO)
    clear = holds(either(above, below))
    return Cell(least(*found), greatest(*found), either(a.null, b.null, no(clear))), clear


ARITHMETIC: Mapping[type[exp.Expr], Callable[[Cell, Cell], tuple[Cell, Sql]]] = {
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
}


def negative(a: Cell) -> Cell:
    return finite(Cell(exp.Neg(this=a.high), exp.Neg(this=a.low), a.null, a.whole))


# -- functions of one number ---------------------------------------------------------------------------------
# Those that never fall as their argument grows.
RISING = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc, exp.Sign, exp.Exp)
# Those that never fall where they have a value, which is above 0.
ABOVE_ZERO = (exp.Ln, exp.Log, exp.Sqrt)
RISING_TYPES = (*exp.DataType.REAL_TYPES, exp.DType.BIGINT, exp.DType.INT, exp.DType.INT128)


def rising(node: exp.Expr, a: Cell, argument: str = "this") -> Cell:
    """A function that never falls, of one argument; the others are constants."""
    if isinstance(node, exp.Cast) and not node.to.is_type(*RISING_TYPES):
        raise NoRule
    if isinstance(node, exp.Cast):  # where an end does not fit, the value may be any number
        node = exp.TryCast(this=node.this, to=node.to)
    cell = Cell(_with(node, a.low, argument), _with(node, a.high, argument), a.null)
    return finite(cell, missing=is_null(a.low))


def above_zero(node: exp.Expr, a: Cell, argument: str = "this") -> Cell:
    """The same for what has a value above 0 only; any number where the argument may be 0 or less."""
    positive = holds(exp.GT(this=a.low, expression=_ZERO))
    return finite(rising(node, a, argument), positive)


def magnitude(a: Cell) -> Cell:
    ends = [exp.Abs(this=each) for each in (a.low, a.high)]
    around = holds(
        both(exp.LTE(this=a.low, expression=_ZERO), exp.GTE(this=a.high, expression=_ZERO)),
    )
    return finite(Cell(when([(around, _ZERO)], least(*ends)), greatest(*ends), a.null, a.whole))


def _with(node: exp.Expr, value: Sql, argument: str) -> Sql:
    written = node.copy()
    written.set(argument, value)
    return written


# -- choices -------------------------------------------------------------------------------------------------
def greatest_of(cells: Sequence[Cell]) -> Cell:
    """The greatest of those that are not NULL."""
    sure = greatest(*(when([(each.null, exp.null())], each.low) for each in cells))
    any_of_them = least(*(each.low for each in cells))
    low = exp.Coalesce(this=sure, expressions=[any_of_them])
    null, whole = both(*(each.null for each in cells)), all(each.whole for each in cells)
    return Cell(low, greatest(*(each.high for each in cells)), null, whole)


def least_of(cells: Sequence[Cell]) -> Cell:
    sure = least(*(when([(each.null, exp.null())], each.high) for each in cells))
    any_of_them = greatest(*(each.high for each in cells))
    high = exp.Coalesce(this=sure, expressions=[any_of_them])
    null, whole = both(*(each.null for each in cells)), all(each.whole for each in cells)
    return Cell(least(*(each.low for each in cells)), high, null, whole)


def first_of(cells: Sequence[Cell]) -> Cell:
    """The first that is not NULL."""
    found = cells[-1]
    for each in reversed(cells[:-1]):
        low = when([(no(each.null), each.low)], least(each.low, found.low))
        high = when([(no(each.null), each.high)], greatest(each.high, found.high))
        found = Cell(low, high, both(each.null, found.null), each.whole and found.whole)
    return found


def case_of(branches: Sequence[tuple[Truth, Cell]], default: Cell) -> Cell:
    """CASE: the first branch that may be taken, and all behind it up to one that is taken for certain."""
    found = default
    for condition, value in reversed(branches):
        never, always = no(condition.true), condition.certain
        low = when([(never, found.low), (always, value.low)], least(value.low, found.low))
        high = when([(never, found.high), (always, value.high)], greatest(value.high, found.high))
        null = when([(never, found.null), (always, value.null)], either(value.null, found.null))
        found = Cell(low, high, null, value.whole and found.whole)
    return found


NOTHING = Cell(exp.null(), exp.null(), exp.true(), whole=True)


# -- comparisons ---------------------------------------------------------------------------------------------
def _less(a: Cell, b: Cell) -> Truth:
    true, false = exp.LT(this=a.low, expression=b.high), exp.GTE(this=a.high, expression=b.low)
    return Truth(holds(true), holds(false), either(a.null, b.null))


def _at_most(a: Cell, b: Cell) -> Truth:
    true, false = exp.LTE(this=a.low, expression=b.high), exp.GT(this=a.high, expression=b.low)
    return Truth(holds(true), holds(false), either(a.null, b.null))


def equal(a: Cell, b: Cell) -> Truth:
    meet = both(exp.LTE(this=a.low, expression=b.high), exp.LTE(this=b.low, expression=a.high))
    # the same number, whatever the noise is: both are single points
    apart = either(exp.LT(this=a.low, expression=b.high), exp.LT(this=b.low, expression=a.high))
    return Truth(holds(meet), holds(apart), either(a.null, b.null))


def opposite(a: Truth) -> Truth:
    return Truth(a.false, a.true, a.null)


COMPARISONS: Mapping[type[exp.Expr], Callable[[Cell, Cell], Truth]] = {
    exp.LT: _less,
    exp.LTE: _at_most,
    exp.GT: lambda a, b: _less(b, a),
    exp.GTE: lambda a, b: _at_most(b, a),
    exp.EQ: equal,
    exp.NEQ: lambda a, b: opposite(equal(a, b)),
}


def conjunction(a: Truth, b: Truth) -> Truth:
    null = either(both(a.null, either(b.true, b.null)), both(b.null, either(a.true, a.null)))
    return Truth(both(a.true, b.true), either(a.false, b.false), null)


def disjunction(a: Truth, b: Truth) -> Truth:
    return opposite(conjunction(opposite(a), opposite(b)))


def missing(a: Cell) -> Truth:
    """Whether a value is NULL."""
    return Truth(a.null, no(is_null(a.low)), FALSE)
