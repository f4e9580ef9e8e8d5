"""A histogram of values and a search go in; the statement of a shorter histogram comes out: single values
near the ranks, bins elsewhere.

A value far from its rank is almost never selected, so there the number of rows in a bin of many points is
enough, and grouping by bins is several times faster. For MIN and MAX all rows except the first or last ones,
a public number of them, form one bin: they need not even be grouped. Which bins are near affects only speed:
if a bin is selected after all, the whole histogram is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from privsql.algebra.exact import (
    Constant,
    Earlier,
    Fold,
    Matching,
    Name,
    Operation,
    Ordered,
    Over,
    Pairs,
    Rows,
    Scalar,
    Select,
    Single,
    Stacked,
    WithSteps,
    least,
    names,
    op,
    total,
    whole,
)
from privsql.algebra.reserved import ROWS_COLUMN, VALUE_COLUMN, WIDTH_COLUMN
from privsql.planning.grids.value_grid import ValueGrid
from privsql.privacy.quantile_search import Search

SHIFT = 10  # a bin has 2^10 points
FEWEST = 2**15  # grids with fewer points are not binned
MOST_ROWS = 2**16  # rows at one end, which the engine keeps in order
_SURE = 1e-15  # the probability that a bin is selected
_VALUES, _COARSE, _RANKED, _BINS = "privsql_values", "privsql_coarse", "privsql_ranked", "privsql_bins"
_EDGES, _NEAR, _REST, _MEASURE = "privsql_edges", "privsql_near", "privsql_rest", "privsql_measure"
_BIN, _BEFORE, _ALL, _LOW, _HIGH = (
    "privsql_bin",
    "privsql_before",
    "privsql_all",
    "privsql_low",
    "privsql_high",
)


@dataclass(frozen=True)
class Bins:
    """The rows of a histogram one by one, with keys and a value on a grid. `tests` separate declared keys
    from others.
    """

    keys: tuple[tuple[str, Scalar], ...]
    tests: tuple[Scalar, ...]
    value: Scalar
    grid: ValueGrid
    rows: Rows
    where: tuple[Scalar, ...]

    def statement(self, search: Search) -> WithSteps:
        """Select keys, the first point of a bin or the value itself, the number of its points, and the number
        of its rows.
        """
        ends = _ends(search)
        if not self.keys and ends and max(ends.values()) <= MOST_ROWS:
            return self._by_ends(ends)
        own = names([name for name, _ in self.keys])
        placed = (VALUE_COLUMN, self.grid.place(self.value))
        binned = (_BIN, op(Operation.SHIFT_RIGHT, Name(VALUE_COLUMN), SHIFT))
        counted = Select(
            (*own, binned, (ROWS_COLUMN, Fold("count"))), Earlier(_VALUES), keys=len(own) + 1, fenced=True
        )
        near = Select((*own, binned, (VALUE_COLUMN, Name(VALUE_COLUMN))), Earlier(_VALUES))
        same = (*(name for name, _ in own), _BIN)
        apart = Select(
            (
                *own,
                (VALUE_COLUMN, op(Operation.SHIFT_LEFT, Name(_BIN), SHIFT)),
                (WIDTH_COLUMN, Constant(1 << SHIFT)),
                (ROWS_COLUMN, Name(ROWS_COLUMN)),
            ),
            Earlier(_BINS),
            (op(Operation.NOT, Name(_NEAR)),),
        )
        one_by_one = Select(
            (
                *own,
                (VALUE_COLUMN, Name(VALUE_COLUMN)),
                (WIDTH_COLUMN, Constant(1)),
                (ROWS_COLUMN, Fold("count")),
            ),
            Matching(near, Select(names(same), Earlier(_BINS), (Name(_NEAR),)), same),
            keys=len(own) + 1,
        )
        steps = (
            (_VALUES, Select((*self.keys, placed), self.rows, self.where), False),
            (_COARSE, Select((), counted, self.tests, everything=True), True),
            (_RANKED, self._ranked(tuple(each for _, each in own)), True),
            (_BINS, Select(((_NEAR, _is_near(search)),), Earlier(_RANKED), everything=True), True),
        )
        return WithSteps(steps, Stacked((apart, one_by_one)))

    def _ranked(self, by: tuple[Scalar, ...]) -> Select:
        """Bins with the rows before them and the rows of all bins, per key."""
        rows = Name(ROWS_COLUMN)
        upto = Over("sum", rows, by, (Name(_BIN),), running=True)
        columns = ((_BEFORE, upto - rows), (_ALL, Over("sum", rows, by)))
        return Select(columns, Earlier(_COARSE), everything=True)

    def _by_ends(self, ends: Mapping[int, int]) -> WithSteps:
        """Single values at the places of the first (0) or last (1) rows, or further out; one bin in between.

        Rows are sorted by their measure, which is faster than computing the place of every row; only rows
        that may be near get a place.
        """
        grid, measure, low, high = self.grid, Name(_MEASURE), Name(_LOW), Name(_HIGH)
        value, rows = Name(VALUE_COLUMN), Name(ROWS_COLUMN)
        measured = Select(((_MEASURE, grid.measure(self.value)),), self.rows, self.where)

        def edge(end: int) -> Scalar:
            some = Select(
                ((_MEASURE, measure),), measured, order=(Ordered(measure, end == 1),), limit=ends[end]
            )
            last = Fold("min" if end else "max", measure)
            return grid.place_of(Single(Select(((_MEASURE, last),), some)))

        edges = (
            (_LOW, edge(0) if 0 in ends else Constant(-1)),
            (_HIGH, edge(1) if 1 in ends else Constant(grid.points)),
        )
        limits = {0: (Operation.AT_MOST, grid.to_place(low)), 1: (Operation.AT_LEAST, grid.from_place(high))}
        far = [op(limits[end][0], measure, _of_step(limits[end][1], _EDGES)) for end in ends]
        placed = Select(((VALUE_COLUMN, grid.place_of(measure)),), measured, (op(Operation.OR, *far),))
        counted = Select(((VALUE_COLUMN, value), (ROWS_COLUMN, Fold("count"))), placed, keys=1)
        outside = op(Operation.OR, op(Operation.AT_MOST, value, low), op(Operation.AT_LEAST, value, high))
        all_rows = Single(Select(((ROWS_COLUMN, Fold("count")),), measured))
        between = whole(all_rows - _of_step(total(rows), _NEAR))
        one, rest = (WIDTH_COLUMN, Constant(1)), (ROWS_COLUMN, rows)
        last = (
            Select(((VALUE_COLUMN, value), one, rest), Earlier(_NEAR)),
            Select(
                ((VALUE_COLUMN, low + 1), (WIDTH_COLUMN, high - low - 1), rest),
                Pairs(Earlier(_REST), Earlier(_EDGES)),
                (op(Operation.GREATER, rows, 0),),
            ),
        )
        steps = (
            (_EDGES, Select(edges, None), True),
            (
                _NEAR,
                Select(names((VALUE_COLUMN, ROWS_COLUMN)), Pairs(counted, Earlier(_EDGES)), (outside,)),
                True,
            ),
            (_REST, Select(((ROWS_COLUMN, between),), None), True),
        )
        return WithSteps(steps, Stacked(last))


def _of_step(value: Scalar, step: str) -> Scalar:
    """A value over the one row, or all rows, of a step."""
    return Single(Select(((VALUE_COLUMN, value),), Earlier(step)))


def _ends(search: Search) -> dict[int, int]:
    """How many rows from the ends of MIN (0) and MAX (1) may matter; empty if the search has other
    quantiles.
    """
    if any(step.fraction not in (0, 1) for step in search.steps):
        return {}
    return {
        int(step.fraction): step.margin + math.ceil(search.rank_error(place, 1.0 - _SURE))
        for place, step in enumerate(search.steps)
    }


def _is_near(search: Search) -> Scalar:
    """Whether the rows of a bin are so near the rank of a quantile that the bin may be selected."""
    all_rows, before, rows = Name(_ALL), Name(_BEFORE), Name(ROWS_COLUMN)
    tests = []
    for place, step in enumerate(search.steps):
        q, within = search.whole(place), math.ceil(search.rank_error(place, 1.0 - _SURE))
        rank = all_rows * q.numerator
        if step.margin:
            first = op(Operation.GREATEST, rank, step.margin * q.denominator)
            last = least(rank, (all_rows - step.margin) * q.denominator)
            rank = first if q == 0 else last
        slack = within * q.denominator
        starts = op(Operation.AT_MOST, before * q.denominator, rank + slack)
        ends = op(Operation.AT_LEAST, (before + rows) * q.denominator, rank - slack)
        tests.append(op(Operation.AND, starts, ends))
    return op(Operation.OR, *tests)
