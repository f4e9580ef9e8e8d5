"""A column and what is declared of it go in; the cells it is counted in come out, and the cell of a row as an
expression.

Every row has a cell, whatever it holds: NULL and undeclared values have cells of their own, and numbers and
dates beyond the declared range are counted at its end. So no row is dropped, and nothing relies on what was
declared.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from privsql.algebra import build, literals
from privsql.algebra.declared import Claim
from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.errors import ArgumentError, PrivsqlError, Refused
from privsql.suggestions import Declare, Fact
from privsql.types import BOOLEAN, DOUBLE, NUMBERS, Kind, Type, integer

MOST_VALUES = 1_000  # of one column
_MOST_SINGLE = 100  # whole numbers that are counted one by one where no bins are given
_BINS = 16  # else into so many parts
_TICK = dt.timedelta(microseconds=1)
OTHER = "(other)"  # the label of undeclared values


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column: its declared values, or the parts between `edges`; then NULL, then all others.

    The last part includes its upper edge, except of whole numbers and dates. `low_open` and `high_open`: by
    what is declared, the first or last part also holds values below the first edge, or from the last edge on.
    """

    column: Column
    values: tuple[Any, ...] = ()
    edges: tuple[Any, ...] = ()
    null: bool = True
    other: bool = False
    low_open: bool = False
    high_open: bool = False

    @property
    def listed(self) -> int:
        """How many cells are values or parts of the range."""
        return len(self.edges) - 1 if self.edges else len(self.values)

    @property
    def size(self) -> int:
        return self.listed + self.null + self.other

    @property
    def dividing_edges(self) -> tuple[Any, ...]:
        """The edges with all rows of every part on one side, by what is declared."""
        first, last = self.edges[0], self.edges[-1]
        outer = [each for each, is_open in ((first, self.low_open), (last, self.high_open)) if is_open]
        return tuple(each for each in self.edges if each not in outer)

    @property
    def single(self) -> bool:
        """Whether each part of the range is one whole number, so that a cell is a value."""
        if self.low_open or self.high_open:
            return False
        return bool(self.edges) and self.column.type.kind is Kind.INTEGER and self._is_in_ones

    @property
    def _is_in_ones(self) -> bool:
        return bool(len(self.edges) - 1 == self.edges[-1] - self.edges[0])

    @property
    def labels(self) -> list[Any]:
        """What each cell is called in a table: a value, a text such as [18, 30), None for NULL, OTHER."""
        if not self.edges:
            found = list(self.values)
        elif self.single:
            found = list(self.edges[:-1])
        else:
            found = [self._part(place) for place in range(self.listed)]
        return found + [None] * self.null + [OTHER] * self.other

    def _part(self, place: int) -> str:
        low, high = self.edges[place], self.edges[place + 1]
        last = place == self.listed - 1 and self.column.type.kind is not Kind.INTEGER
        return f"[{_shown(low)}, {_shown(high)}{']' if last else ')'}"

    @property
    def code(self) -> Expression:
        """The number of the cell that a row is in: total, whatever the row holds."""
        type_ = integer(0, max(0, self.size - 1))
        last = Literal(self.size - 1, type_)
        if self.edges:
            found = self._among(0, self.listed, type_)
        else:
            tests = [
                each
                for place, value in enumerate(self.values if self.other else self.values[:-1])
                for each in (self._is(value), Literal(place, type_))
            ]
            rest = last if self.other else Literal(max(0, self.listed - 1), type_)
            found = Call("case", (*tests, rest), type_) if tests else rest
        if not self.null:
            return found
        missing = Call("is_null", (self.column,), BOOLEAN)
        return Call("case", (missing, Literal(self.listed, type_), found), type_)

    def _among(self, first: int, after: int, type_: Type) -> Expression:
        """Which of some parts, by halving. What is not below any edge, such as NaN, is in the last."""
        if after - first == 1:
            return Literal(first, type_)
        middle = (first + after) // 2
        below = build.compare("<", self.column, Literal(self.edges[middle], self._type_of_edges))
        return Call(
            "case", (below, self._among(first, middle, type_), self._among(middle, after, type_)), type_
        )

    @property
    def _type_of_edges(self) -> Type:
        kind = self.column.type.kind
        if kind is Kind.INTEGER:
            return integer(min(self.edges), max(self.edges))
        return DOUBLE if kind in NUMBERS else self.column.type

    def _is(self, value: Any) -> Expression:
        return build.compare("=", self.column, Literal(value, _type_of(value, self.column.type)))


def column_cells(
    table: str, column: Column, claim: Claim, bins: int | tuple[Any, ...] | None, exhaustive: bool
) -> ColumnCells:
    """The cells of a column. `exhaustive`: the schema says that it holds no other values than these.

    Raises Refused where neither values nor a range are declared, ArgumentError for bins that do not fit.
    """
    if claim.values is not None:
        if bins is not None:
            problem = f"{column.name} has declared values, and is counted value by value"
            raise ArgumentError("argument-bins", problem, f"leave {column.name} out of bins")
        values = tuple(dict.fromkeys(claim.values))
        if len(values) > MOST_VALUES:
            raise _too_many(column)
        return ColumnCells(column, values, null=claim.nullable, other=not exhaustive)
    given = isinstance(bins, tuple)
    if column.type.kind not in (*NUMBERS, Kind.DATE, Kind.TIMESTAMP) or (
        not given and (claim.low is None or claim.high is None)
    ):
        numbers = column.type.kind in NUMBERS
        facts = [Declare(table, ((column.name, Fact.VALUES),))]
        if numbers or column.type.kind in (Kind.DATE, Kind.TIMESTAMP):
            facts.append(Declare(table, ((column.name, Fact.RANGE if numbers else Fact.MOMENTS),)))
        problem = f"{column.name}: which values occur is itself private, and no values or range are declared"
        raise Refused("refused-unknown-cells", problem, [(each,) for each in facts])
    edges = _given_edges(column, bins) if isinstance(bins, tuple) else _edges(column, claim, bins)
    low_open, high_open = _open_ends(column, claim, edges)
    return ColumnCells(column, edges=edges, null=claim.nullable, low_open=low_open, high_open=high_open)


def _open_ends(column: Column, claim: Claim, edges: Sequence[Any]) -> tuple[bool, bool]:
    """Whether declared values lie below the first edge, and at or beyond the last one."""
    low, high = claim.low, claim.high
    if column.type.kind is Kind.INTEGER:
        low, high = (None if low is None else math.ceil(low)), (None if high is None else math.floor(high))
    return low is None or bool(low < edges[0]), high is None or bool(high >= edges[-1])


def _edges(column: Column, claim: Claim, parts: int | None) -> tuple[Any, ...]:
    """Edges of equal parts of the declared range."""
    low, high = claim.low, claim.high
    match column.type.kind:
        case Kind.INTEGER:
            first, after = math.ceil(low), math.floor(high) + 1
            count = parts or (after - first if after - first <= _MOST_SINGLE else _BINS)
            return _rounded(first, after, min(count, max(1, after - first)))
        case Kind.DATE:
            days = (high - low).days + 1
            steps = _rounded(0, days, min(parts or _BINS, days))
            if high == dt.date.max:
                raise _too_late(column)
            return tuple(low + dt.timedelta(days=each) for each in steps)
        case Kind.TIMESTAMP:
            count = parts or _BINS
            ticks = (high - low) // _TICK  # in whole numbers: a multiple of a long span overflows
            found = [low + _TICK * round(Fraction(ticks * each, count)) for each in range(count + 1)]
        case _:
            count, ends = parts or _BINS, (Fraction(low), Fraction(high))
            found = [float(ends[0] + (ends[1] - ends[0]) * each / count) for each in range(count + 1)]
    return tuple(dict.fromkeys(found)) if low < high else (low, high)


def _rounded(first: int, after: int, count: int) -> tuple[int, ...]:
    return tuple(first + (after - first) * each // count for each in range(count + 1))


def _given_edges(column: Column, edges: Sequence[Any]) -> tuple[Any, ...]:
    """The edges that the caller gave, as values of the column."""
    problem = f"the edges of {column.name} must be increasing values of its type"
    wrong = ArgumentError("argument-bins", problem, f"bins={{{column.name!r}: [LOWEST, ..., HIGHEST]}}")
    try:
        found = [_edge(column, each) for each in edges]
        if any(after <= before for before, after in pairwise(found)):
            raise wrong
    except (TypeError, ValueError, ArithmeticError, PrivsqlError):
        raise wrong from None
    return tuple(found)


def _edge(column: Column, value: Any) -> Any:
    match column.type.kind:
        case Kind.INTEGER:
            if isinstance(value, bool) or int(value) != value:
                raise ValueError
            return int(value)
        case Kind.DATE | Kind.TIMESTAMP:
            converted = literals.literal_of(value)
            found = None if converted is None else literals.convert(converted, column.type)
            if found is None or found.value is None:
                raise ValueError
            if isinstance(found.value, dt.datetime) and found.value.tzinfo is not None:
                raise ValueError  # a TIMESTAMP has no zone, and cannot be compared with one that has
            return found.value
        case _:
            if isinstance(value, bool) or not math.isfinite(value):
                raise ValueError
            return float(value)


def _type_of(value: Any, type_: Type) -> Type:
    if type_.kind is Kind.INTEGER and isinstance(value, int):
        return integer(value, value)
    return type_


def _too_many(column: Column) -> Refused:
    problem = f"{column.name} has more than {MOST_VALUES:,} declared values, each of which gets noise"
    return Refused("refused-many-cells", problem, "release coarser values")


def _too_late(column: Column) -> Refused:
    problem = f"the range of {column.name} ends with the last day there is, and its last part has no end"
    return Refused(
        "refused-unknown-cells",
        problem,
        f'bins={{"{column.name}": ["2000-01-01", "2010-01-01", "2020-01-01"]}}',
    )


def _shown(edge: Any) -> str:
    return f"{edge:g}" if isinstance(edge, float) else str(edge)
