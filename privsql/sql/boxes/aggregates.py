"""An aggregate, or a function over a window, goes in; its value, up to the noise, comes out.

A row that may or may not be there counts for the upper end of a COUNT and not for the lower one, and moves a
sum only outwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from privsql.sql.boxes.cell_rules import conjunction
from privsql.sql.boxes.cells import (
    FALSE,
    TRUE,
    Cell,
    Fixed,
    NoRule,
    Sql,
    Truth,
    Value,
    both,
    cell_of,
    greatest,
    holds,
    is_null,
    known,
    least,
    no,
    truth_of,
    when,
)
from privsql.sql.boxes.evaluate import Evaluator

Over = Callable[[Sql], Sql]  # a plain aggregate as it is written: with OVER (...) in a window
_ZERO, _ONE = exp.Literal.number(0), exp.Literal.number(1)
# Never outside of the least and the greatest value, and never falling as one of them grows.
_MEANS = (exp.Avg, exp.Median, exp.PercentileCont, exp.PercentileDisc)
_GREATEST, _LEAST = (exp.Max, exp.LogicalOr), (exp.Min, exp.LogicalAnd)
CARRIED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)


@dataclass(frozen=True)
class _Group:
    """The rows that an aggregate is of: those that may be there, and those that are for certain."""

    over: Over
    may: Sql
    sure: Sql


def aggregate(node: exp.Expr, evaluator: Evaluator, over: Over) -> Value:
    """The value of an aggregate over the rows of a scope. Raises NoRule where its ends are not known."""
    must, condition = evaluator.scope.rows.must, None
    if isinstance(node, exp.Filter):
        node, condition = node.this, evaluator.value(node.expression.this)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        node = exp.Count(this=_ONE, big_int=True)
    if isinstance(node, exp.CountIf):
        condition = _and_also(condition, evaluator.truth(node.this))
        node = exp.Count(this=_ONE, big_int=True)
    if must == TRUE and (condition is None or isinstance(condition, Fixed)):
        found = evaluator.copied(node)
        if found is not None and condition is not None:
            found = exp.Filter(this=found, expression=exp.Where(this=condition.sql))
        if found is not None:
            return Fixed(over(found))
    truth = Truth(TRUE, FALSE, FALSE) if condition is None else evaluator.scope.keep(truth_of(condition))
    assert isinstance(truth, Truth)
    return _by_rule(node, evaluator, _Group(over, truth.true, both(must, truth.certain)))


def _and_also(condition: Value | None, other: Truth) -> Truth:
    return other if condition is None else conjunction(truth_of(condition), other)


def _by_rule(node: exp.Expr, evaluator: Evaluator, group: _Group) -> Value:
    match node:
        case exp.Count(this=exp.Distinct(expressions=[listed])):
            return _distinct(evaluator.fixed(listed), group)
        case exp.Count() if not node.expressions:
            return _count(_cell(node, evaluator), group)
        case exp.Sum() if not isinstance(node.this, exp.Distinct):
            return _sum(_cell(node, evaluator), group)
        case _ if isinstance(node, (*_GREATEST, *_LEAST)) and not node.expressions:
            return _extreme(node, _cell(node, evaluator), group)
        case _ if isinstance(node, _MEANS) and not isinstance(node.this, exp.Distinct):
            return _mean(node, _cell(node, evaluator), group)
        case _:
            raise NoRule


def _cell(node: exp.Expr, evaluator: Evaluator) -> Cell:
    """The argument of an aggregate, as columns of the rows."""
    found = evaluator.scope.keep(cell_of(evaluator.value(node.this)))
    assert isinstance(found, Cell)
    return found


def _within(group: _Group, cell: Cell) -> _Group:
    """The rows whose value is not NULL."""
    sure = both(group.sure, no(cell.null))
    return _Group(group.over, both(group.may, known(cell.low)), sure)


def _if(condition: Sql, value: Sql) -> Sql:
    return when([(condition, value)], exp.null())


def _count(cell: Cell, group: _Group) -> Cell:
    own = _within(group, cell)
    ends = [own.over(exp.Count(this=_if(each, _ONE), big_int=True)) for each in (own.sure, own.may)]
    return Cell(ends[0], ends[1], FALSE, whole=True)


def _distinct(listed: Sql, group: _Group) -> Cell:
    ends = [
        group.over(exp.Count(this=exp.Distinct(expressions=[_if(each, listed)]), big_int=True))
        for each in (group.sure, group.may)
    ]
    return Cell(ends[0], ends[1], FALSE, whole=True)


def _sum(cell: Cell, group: _Group) -> Cell:
    own = _within(group, cell)
    low = when([(own.sure, cell.low), (own.may, least(cell.low, _ZERO))], exp.null())
    high = when([(own.sure, cell.high), (own.may, greatest(cell.high, _ZERO))], exp.null())
    ends = [own.over(exp.Sum(this=each)) for each in (low, high)]
    return Cell(ends[0], ends[1], _none_of(own), cell.whole)


def _extreme(node: exp.Expr, cell: Cell, group: _Group) -> Cell:
    """Of a maximum: the greatest upper end, and the greatest lower end of a row that is there for certain."""
    own = _within(group, cell)
    top = isinstance(node, _GREATEST)
    outer, inner = (cell.high, cell.low) if top else (cell.low, cell.high)
    most, other = (exp.Max, exp.Min) if top else (exp.Min, exp.Max)
    outmost = own.over(most(this=_if(own.may, outer)))
    certain, possible = own.over(most(this=_if(own.sure, inner))), own.over(other(this=_if(own.may, inner)))
    inmost = exp.Coalesce(this=certain, expressions=[possible])
    ends = (inmost, outmost) if top else (outmost, inmost)
    return Cell(ends[0], ends[1], _none_of(own), cell.whole)


def _mean(node: exp.Expr, cell: Cell, group: _Group) -> Cell:
    """Where all rows are there for certain, the mean of either end; else between the least and the greatest
    value.
    """
    own = _within(group, cell)
    unsure = holds(own.over(exp.LogicalOr(this=both(own.may, no(own.sure)))))

    def end(value: Sql, most: type[exp.Expr]) -> Sql:
        mean = node.copy()
        mean.set("this", _if(own.may, value))
        return when([(unsure, own.over(most(this=_if(own.may, value))))], own.over(mean))

    return Cell(end(cell.low, exp.Min), end(cell.high, exp.Max), _none_of(own))


def _none_of(group: _Group) -> Sql:
    """Whether it may be that no row is there, which leaves NULL."""
    return no(holds(group.over(exp.LogicalOr(this=group.sure))))


# -- windows -------------------------------------------------------------------------------------------------
def carried(node: exp.Expr, evaluator: Evaluator, over: Over) -> Value:
    """The value of another row, which noise does not choose: LAG, LEAD, FIRST_VALUE ..."""
    if not isinstance(node, CARRIED) or evaluator.scope.rows.must != TRUE:
        raise NoRule
    found = evaluator.copied(node)
    if found is not None:
        return Fixed(over(found))
    cell, default = _cell(node, evaluator), node.args.get("default")
    instead = None if default is None else evaluator.fixed(default)

    def moved(value: Sql, otherwise: Sql | None) -> Sql:
        written = node.copy()
        written.set("this", value)
        if otherwise is not None:
            written.set("default", otherwise)
        return over(written)

    gap = None if instead is None else is_null(instead)
    null = holds(moved(cell.null, gap), TRUE)
    return Cell(moved(cell.low, instead), moved(cell.high, instead), null, cell.whole and instead is None)
