"""A condition and the cells of a release go in; for every cell whether its rows meet it comes out, or a
refusal where that depends on what the release does not tell.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from privsql.analysis.keys import Evaluate
from privsql.errors import Refused
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.types import NUMBERS, Kind

_MODERN = dt.date(2000, 1, 1).toordinal()
Mask = npt.NDArray[np.bool_]

_LISTED = frozenset({"=", "<>", "in", "is_null"})  # of a value that is not declared, these tell all the same
_SIDES = {"<": 0, ">=": 0, "<=": 1, ">": 1}  # 1: a whole number equal to the constant is on its lower side
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def condition_mask(condition: Expression, cells: Mapping[str, ColumnCells], evaluate: Evaluate) -> Mask:
    """Whether the rows of each combination of cells of these columns meet the condition, an axis a column.

    Raises Refused where some rows of a cell may meet it and others not.
    """
    for name, each in cells.items():
        _check(condition, name, each)
    values = [_representatives(each) for each in cells.values()]
    grid = np.indices([len(each) for each in values]).reshape(len(values), -1)
    columns = {
        each.column: [listed[place] for place in places]
        for each, listed, places in zip(cells.values(), values, grid.tolist(), strict=True)
    }
    (found,) = evaluate([condition], columns)
    return np.array([each is True for each in found], dtype=np.bool_).reshape([len(each) for each in values])


def _check(condition: Expression, name: str, cells: ColumnCells) -> None:
    """Refuse a condition by which rows of one cell differ."""
    for call in _calls_on(condition, name):
        if cells.edges and not cells.single and not _is_at_edge(call, cells):
            edges = ", ".join(str(each) for each in cells.dividing_edges) or "none"
            problem = f"the release has {name} in parts, and this condition is not at their edges ({edges})"
            raise Refused("refused-not-released", problem, "compare with an edge, or release finer parts")
        if cells.other and not _names_listed(call, cells):
            problem = f"this condition on {name} depends on values that are not declared"
            raise Refused("refused-not-released", problem, "compare with declared values, by =, <> or IN")


def _calls_on(expression: Expression, name: str) -> Iterator[Call | Column]:
    """Every call that has this column as an argument; the column itself where it is a condition."""
    match expression:
        case Column(name=own) if own == name:
            yield expression
        case Call(args=args):
            if any(isinstance(each, Column) and each.name == name for each in args):
                yield expression
            for each in args:
                if not isinstance(each, Column):
                    yield from _calls_on(each, name)


def _is_at_edge(call: Call | Column, cells: ColumnCells) -> bool:
    """Whether a comparison with a constant is met by all rows of a part, or by none."""
    if not isinstance(call, Call):
        return False
    if call.function == "is_null":
        return True
    if call.function not in _SIDES or len(call.args) != 2:
        return False
    left, right = call.args
    function = call.function
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    if not isinstance(left, Column) or not isinstance(right, Literal):
        return False
    edge = right.value
    if edge is None:  # no row meets it
        return True
    if _SIDES[function]:
        if (
            cells.column.type.kind is Kind.INTEGER
            and isinstance(edge, (int, float, Decimal))
            and edge % 1 == 0
        ):
            edge = int(edge) + 1  # not edge + 1, which rounds
        elif cells.column.type.kind is Kind.DATE and isinstance(edge, dt.date) and edge < dt.date.max:
            edge = edge + dt.timedelta(days=1)
        else:
            return False
    return edge in cells.dividing_edges


def _names_listed(call: Call | Column, cells: ColumnCells) -> bool:
    if not isinstance(call, Call) or call.function not in _LISTED:
        return False
    others = [each for each in call.args if each != cells.column]
    # another column may hold the same undeclared values, and which rows do is not released
    return all(isinstance(each, Literal) and each.value in cells.values for each in others)


def _representatives(cells: ColumnCells) -> list[Any]:
    """A value of each cell. Of the undeclared values it is one that no declared value equals."""
    found: list[Any] = list(cells.edges[:-1]) if cells.edges else list(cells.values)
    if cells.edges and cells.column.type.kind in NUMBERS and cells.column.type.kind is not Kind.INTEGER:
        found = [float(each) for each in found]
    return found + [None] * cells.null + ([_unlike(cells)] if cells.other else [])


def _unlike(cells: ColumnCells) -> Any:
    """A value of the column's type that no declared value equals."""
    type_, many = cells.column.type, len(cells.values) + 1
    found: Iterable[Any] = ()
    taken = set(cells.values)
    match type_.kind:
        case Kind.BOOLEAN:  # with both declared nothing is in this cell, and NULL meets no condition
            found = (True, False, None)
        case Kind.TEXT:
            found = (max(cells.values, key=len) + "~",)
        case Kind.DATE:
            found = (dt.date.fromordinal(each) for each in range(_MODERN, _MODERN + many))
        case Kind.TIMESTAMP:
            found = (dt.datetime.fromordinal(each) for each in range(_MODERN, _MODERN + many))
        case Kind.TIME:
            found = (dt.time(microsecond=each) for each in range(many))
        case Kind.INTEGER:
            first = 0 if type_.low <= 0 and many <= type_.high else type_.low
            found = range(first, min(first + many, type_.high + 1))
        case Kind.DOUBLE:
            found = (float(each) for each in range(many))
        case Kind.DECIMAL:
            taken |= {Decimal(str(each)) for each in cells.values}
            steps = range(min(many, 10**type_.precision))
            found = (Decimal(each).scaleb(-type_.scale) for each in steps)
    for each in found:
        if each not in taken:
            return each
    problem = f"no value stands for those of {cells.column.name} that are not declared"
    raise Refused("refused-not-released", problem, f"leave {cells.column.name} out of the query")


def read_columns(expressions: Sequence[Expression]) -> list[str]:
    """The names of all columns that some expressions read, each once."""
    return list(dict.fromkeys(column.name for each in expressions for column in columns_of(each)))
