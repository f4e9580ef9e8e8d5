"""The answers of releases go in; the ends between which all their numbers are at once come out, and what
follows from them for the SQL above.

Each number is between its ends with so high a probability that all of them are with the probability asked
for: by a union bound, so it does not matter how their noises depend on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.planning.precision.interval_arithmetic import Interval
from privsql.results.answer import Answer
from privsql.results.simulation import Ends, as_floats, rows_of
from privsql.sql.boxes.box import Boxed, BoxTable, End
from privsql.types import BOOLEAN, Kind, Type

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class BoxResult:
    """The ends of the columns of a result by their places, row by row, and which rows are certain."""

    ends: Mapping[int, Ends]
    certain: npt.NDArray[np.bool_] | None  # None: all are


def level_of_each(answers: Mapping[str, Answer], box: Boxed, level: float) -> float:
    """The level of each number, so that all numbers that are used are between their ends at `level`."""
    cells = sum(len(answer) * len(box.reads[name]) for name, answer in answers.items())
    return 1.0 - (1.0 - level) / max(1, cells)


def with_ends(answer: Answer, table: BoxTable, level: float) -> dict[str, tuple[Any, Type]]:
    """An answer as a table of the SQL for a box: each number as two ends, and whether it may be NULL."""
    found: dict[str, tuple[Any, Type]] = {}
    known = answer.ends(level)
    for place, (each, array, output) in enumerate(
        zip(table.columns, answer.arrays, answer.plan.outputs, strict=True)
    ):
        type_ = output.expression.type
        if not each.noisy or not each.number:
            found[each.name] = array, type_
            continue
        ends = _typed(known.get(place), len(answer), type_)
        for end, values in zip((End.LOW, End.HIGH), ends, strict=True):
            found[end.name_of(place)] = values, type_
        found[End.NULL.name_of(place)] = np.ma.getmaskarray(np.ma.asarray(array)).copy(), BOOLEAN
    return found


def _typed(found: Interval | None, size: int, type_: Type) -> tuple[Any, Any]:
    """The ends of a column in its type: an integer is between its smallest and its largest value anyway."""
    low = np.full(size, -np.inf) if found is None else np.nan_to_num(found.low, nan=-np.inf, neginf=-np.inf)
    high = np.full(size, np.inf) if found is None else np.nan_to_num(found.high, nan=np.inf, posinf=np.inf)
    if type_.kind is not Kind.INTEGER:
        return low, high
    return _whole(np.floor(low), _INT64.min), _whole(np.ceil(high), _INT64.max)


def _whole(values: npt.NDArray[np.float64], extreme: int) -> Any:
    fits = np.abs(values) < 2.0**62
    return np.where(fits, np.where(fits, values, 0.0).astype(np.int64), extreme)


def read_box(box: Boxed, columns: Sequence[Any], own: Sequence[Any]) -> BoxResult:
    """The ends of the rows of an answer, whose columns are `own`, by what noise does not reach."""
    places = np.cumsum([0, *box.columns]).tolist()
    fixed = [place for place, width in enumerate(box.columns) if width == 1]
    numbers = [place for place, width in enumerate(box.columns) if width == 2]
    size = len(own[0]) if own else 0
    rows = rows_of([columns[places[place]] for place in fixed], len(columns[0]))
    wanted = rows_of([own[place] for place in fixed], size)
    once, only_once = Counter(rows), Counter(wanted)
    row_of = {row: number for number, row in enumerate(rows)}
    known = np.array([once[row] == 1 == only_once[row] for row in wanted], dtype=np.bool_)
    order = np.array([row_of.get(row, 0) for row in wanted], dtype=np.int64)

    def shown(column: Any) -> Any:
        values = as_floats(column)[order] if len(column) else np.zeros(size)
        return np.where(known, values, np.nan)

    ends = {}
    for place in numbers:
        if is_ordered(own[place]):
            low, high = (shown(columns[places[place] + offset]) for offset in (0, 1))
            ends[place] = Ends(low, np.where(np.isnan(high) & ~np.isnan(low), np.inf, high))
    if box.certain:
        return BoxResult(ends, None)
    certain = np.ma.filled(np.ma.asarray(columns[places[-1]]), False).astype(np.bool_)
    return BoxResult(ends, known & certain[order] if len(certain) else known & False)


def is_ordered(array: Any) -> bool:
    """Whether a column has numbers, or truth values."""
    return np.ma.asarray(array).dtype.kind in "iufb"
