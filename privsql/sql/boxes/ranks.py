"""BoxRows and what they are ordered by go in; between which places each row may stand comes out.

A row stands behind all that certainly come before it, and before none that may. Every pair of rows is
compared: these tables are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from privsql.sql.boxes.cells import (
    FALSE,
    TRUE,
    Cell,
    Sql,
    both,
    either,
    holds,
    known,
    least,
    no,
    when,
)
from privsql.sql.boxes.program import BoxRows, Program, at, column, qualified, reading

_ZERO, _ONE = exp.Literal.number(0), exp.Literal.number(1)
_OTHER, _THIS = "privsql_other", "privsql_this"


@dataclass(frozen=True)
class OrderKey:
    """What rows are ordered by."""

    cell: Cell
    descending: bool
    nulls_first: bool


Comparison = Callable[[Sequence[OrderKey], Sequence[OrderKey]], Sql]


# -- pairs ---------------------------------------------------------------------------------------------------
def _before_by(a: OrderKey, b: OrderKey) -> Sql:
    """Whether one key may come before another, and differ."""
    x, y = (b.cell, a.cell) if a.descending else (a.cell, b.cell)
    smaller = holds(exp.LT(this=x.low, expression=y.high))
    if a.nulls_first:
        return either(smaller, both(a.cell.null, known(b.cell.low)))
    return either(smaller, both(known(a.cell.low), b.cell.null))


def _tied_by(a: OrderKey, b: OrderKey) -> Sql:
    """Whether two keys may be equal."""
    x, y = a.cell, b.cell
    meet = both(exp.LTE(this=x.low, expression=y.high), exp.LTE(this=y.low, expression=x.high))
    return either(holds(meet), both(x.null, y.null))


def _before(one: Sequence[OrderKey], other: Sequence[OrderKey], tied: Sql = FALSE) -> Sql:
    """Whether one row may come before another; `tied`: what is said where all keys are equal."""
    found = tied
    for a, b in zip(reversed(one), reversed(other), strict=True):
        found = either(_before_by(a, b), both(_tied_by(a, b), found))
    return found


def _before_or_tied(one: Sequence[OrderKey], other: Sequence[OrderKey]) -> Sql:
    return _before(one, other, TRUE)


# -- places --------------------------------------------------------------------------------------------------
def places(
    program: Program, rows: BoxRows, keys: Sequence[OrderKey], partition: Sequence[Sql], ties_share: bool
) -> tuple[BoxRows, Cell]:
    """The rows with the first and the last place that each may have, from 1.

    `ties_share`: equal rows share a place, as in RANK; else they are in any order, as in ROW_NUMBER.
    """
    rows, kept = program.keep(rows, [each.cell for each in keys])
    keys = [
        OrderKey(cell, key.descending, key.nulls_first)
        for key, cell in zip(keys, kept, strict=True)
        if isinstance(cell, Cell)
    ]
    other, this = ([_at(key, alias) for key in keys] for alias in (_OTHER, _THIS))
    alike = [
        exp.NullSafeEQ(this=qualified(each, _OTHER), expression=qualified(each, _THIS)) for each in partition
    ]
    comparison: Comparison = _before if ties_share else _before_or_tied
    # it is before this one for certain if this one is neither before it nor tied with it
    certainly = both(qualified(rows.must, _OTHER), no(_before_or_tied(this, other)))
    first = _counted(rows, [*alike, certainly])
    last = _counted(rows, [*alike, comparison(other, this)])
    itself = when([(comparison(this, this), _ONE)], _ZERO)
    low, high = program.column(), program.column()
    items = {
        low: exp.Add(this=_ONE, expression=first),
        high: exp.Sub(this=exp.Add(this=_ONE, expression=last), expression=itself),
    }
    return program.extend(rows, items, _THIS), Cell(column(low), column(high), FALSE, whole=True)


def _at(key: OrderKey, alias: str) -> OrderKey:
    cell = at(key.cell, alias)
    assert isinstance(cell, Cell)
    return OrderKey(cell, key.descending, key.nulls_first)


def _counted(rows: BoxRows, conditions: Sequence[Sql]) -> Sql:
    found = reading(rows.name, _OTHER)
    found.set("expressions", [exp.Count(this=exp.Star(), big_int=True)])
    return found.where(both(*conditions).copy()).subquery()


def dense(place: Cell) -> Cell:
    """The same for DENSE_RANK: all rows before may be equal."""
    return Cell(least(place.low, exp.Literal.number(2)), place.high, FALSE, whole=True)


def cut(program: Program, rows: BoxRows, place: Cell, first: int, many: int | None) -> BoxRows:
    """The rows that may be among `many` behind the first ones."""
    start = exp.Literal.number(first)
    may: Sql = exp.GT(this=place.high, expression=start)
    sure: Sql = exp.GT(this=place.low, expression=start)
    if many is not None:
        end = exp.Literal.number(first + many)
        may = both(may, exp.LTE(this=place.low, expression=end))
        sure = both(sure, exp.LTE(this=place.high, expression=end))
    name = program.column()
    rows = program.extend(rows, {name: both(rows.must, sure)})
    written = reading(rows.name)
    written.set("expressions", [exp.Star()])
    return BoxRows(program.add(written.where(may.copy())), column(name), rows.open)
