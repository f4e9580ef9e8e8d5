"""SQL counting queries over one table go in; what they count comes out, over cells that tell it apart."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.relations import Field, Scan
from privsql.analysis.keys import Evaluate
from privsql.errors import ArgumentError, Refused
from privsql.planning.marginals.column_cells import MOST_VALUES, ColumnCells
from privsql.planning.marginals.plan_residuals import ResidualTask, cells_of
from privsql.planning.marginals.range_workload import Ranges
from privsql.planning.marginals.strategy_plan import CountingQueries
from privsql.privacy.marginals.strategies import MOST_KINDS, KindQueries
from privsql.release.answer_query import Counted, cells_meeting
from privsql.release.cell_conditions import read_columns
from privsql.types import NUMBERS, Kind

MOST_COUNTS = 2_000  # of all queries of a part, one for each key
MOST_TOGETHER = 2**16  # combinations of cells
_ORDERED = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True)
class AskedQueries:
    """What some queries count, and the cells of the columns that they name."""

    counted: tuple[Counted, ...]
    cells: Mapping[str, ColumnCells]
    evaluate: Evaluate

    @property
    def sets(self) -> list[frozenset[str]]:
        """The columns of each query."""
        return [_names(each) for each in self.counted]

    def together(self, columns: Sequence[str], what: str) -> CountingQueries | None:
        """The queries over these columns alone, by the kinds of rows that they tell apart; None where these
        are too many.
        """
        own = tuple(self.cells[each] for each in columns)
        if math.prod(each.size for each in own) > MOST_TOGETHER:
            return None
        asked = [each for each in self.counted if _names(each) <= set(columns)]
        rows = [mask.reshape(-1) for each in asked for mask in self.masks(each, own)]
        if not rows or len(rows) > MOST_COUNTS:
            return None
        listed = np.array(rows)
        _, first, kind_of = np.unique(listed, axis=1, return_index=True, return_inverse=True)
        if len(first) > MOST_KINDS:
            return None
        order = np.argsort(np.argsort(first))
        kinds = listed[:, np.sort(first)].astype(np.float64)
        queries = KindQueries(kinds.T @ kinds, len(rows), kinds, ordered=len(own) == 1)
        return CountingQueries(what, own, order[kind_of.reshape(-1)].astype(np.int64), queries)

    def masks(self, each: Counted, columns: Sequence[ColumnCells]) -> Iterator[Any]:
        """For every count and every key of a query, the cells of some columns that it counts."""
        names = [column.column.name for column in columns]
        axes = [names.index(key) for key in each.keys]
        for conditions in each.conditions.values():
            mask = cells_meeting(columns, range(len(columns)), conditions, self.evaluate)
            for chosen in product(*(range(columns[axis].size) for axis in axes)):
                index: list[Any] = [slice(None)] * len(columns)
                for axis, cell in zip(axes, chosen, strict=True):
                    index[axis] = slice(cell, cell + 1)
                part = np.zeros_like(mask)
                part[tuple(index)] = mask[tuple(index)]
                if part.any():
                    yield part


def asked_queries(counted: Sequence[Counted], task: ResidualTask) -> AskedQueries:
    """What some queries count, with cells at the edges of their conditions."""
    names = list(dict.fromkeys(name for each in counted for name in sorted(_names(each))))
    if not names:
        problem = "none of these queries names a column"
        raise ArgumentError("argument-workload", problem, "ask session.query for the number of rows")
    cells = {name: cells_of(task, name, _bins(task.scan, name, counted)) for name in names}
    return AskedQueries(tuple(counted), cells, task.evaluate)


def _names(each: Counted) -> frozenset[str]:
    conditions = [one for some in each.conditions.values() for one in some]
    return frozenset((*each.keys, *read_columns(conditions)))


def range_queries(asked: Ranges, task: ResidualTask) -> CountingQueries:
    """All ranges or prefixes of a column."""
    cells = cells_of(task, asked.column, asked.bins)
    name = cells.column.name
    if not cells.edges:
        problem = f"{name} has declared values, which have no order here"
        raise ArgumentError("argument-workload", problem, f"privsql.marginals([{name!r}], ways=1)")
    parts, kinds = cells.listed, cells.size
    if kinds > MOST_KINDS:
        problem = f"{name} has {kinds} parts, and the most is {MOST_KINDS}"
        raise Refused("refused-many-cells", problem, f"bins={MOST_KINDS // 2}")
    places = np.arange(parts)
    low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
    gram = np.eye(kinds)
    gram[:parts, :parts] = parts - high if asked.prefixes else (low + 1) * (parts - high)
    many = (parts if asked.prefixes else parts * (parts + 1) // 2) + kinds - parts
    what = f"all {'prefixes' if asked.prefixes else 'ranges'} of {name}"
    return CountingQueries(what, (cells,), np.arange(kinds), KindQueries(gram, many, None, ordered=True))


# -- where conditions cut a column ---------------------------------------------------------------------------
def _bins(scan: Scan, name: str, counted: Sequence[Counted]) -> int | tuple[Any, ...] | None:
    """The edges that the conditions on a column need; None where its values or whole numbers are counted
    one by one anyway.
    """
    field = next((each for each in scan.fields if each.name == name), None)
    claim = None if field is None else scan.claims[field.name]
    if field is None or claim is None or claim.values is not None:
        return None
    if field.type.kind not in (*NUMBERS, Kind.DATE, Kind.TIMESTAMP):
        return None
    conditions = [one for each in counted for some in each.conditions.values() for one in some]
    constants, single = _constants(conditions, name)
    single = single or any(name in each.keys for each in counted)
    if field.type.kind is Kind.INTEGER and claim.low is not None and claim.high is not None:
        wide = math.floor(claim.high) - math.ceil(claim.low) + 1
        if single and 0 < wide <= MOST_VALUES:
            return int(wide)
    edges = sorted({edge for each in constants for edge in _edges(each, field)})
    if not edges:
        return None
    return (_below(edges[0], field, claim.low), *edges, _above(edges[-1], field, claim.high))


def _constants(conditions: Sequence[Expression], name: str) -> tuple[list[tuple[str, Any]], bool]:
    """The constants that a column is compared with by <, <=, > and >=; and whether single values matter."""
    found: list[tuple[str, Any]] = []
    single = False
    for call in (each for condition in conditions for each in _calls(condition)):
        own = [
            place for place, each in enumerate(call.args) if isinstance(each, Column) and each.name == name
        ]
        if not own:
            continue
        if call.function in _ORDERED and len(call.args) == 2:
            other = call.args[1 - own[0]]
            mirrored = own[0] == 1
            upper = call.function in ("<=", ">") if not mirrored else call.function in (">=", "<")
            if isinstance(other, Literal) and other.value is not None:
                found.append(("after" if upper else "at", other.value))
        elif call.function != "is_null":
            single = True
    return found, single


def _is_column(expression: Expression, name: str) -> bool:
    return isinstance(expression, Column) and expression.name == name


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for each in expression.args:
            yield from _calls(each)


def _edges(constant: tuple[str, Any], field: Field) -> Iterator[Any]:
    """The edge that a comparison divides a column at; none where no edge could."""
    how, value = constant
    match field.type.kind:
        case Kind.INTEGER if isinstance(value, int | float | Decimal) and math.isfinite(value):
            if value == math.floor(value):
                yield int(value) + (how == "after")
        case Kind.DATE if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            if how == "at":
                yield value
            elif value < dt.date.max:
                yield value + dt.timedelta(days=1)
        case Kind.TIMESTAMP if isinstance(value, dt.datetime):
            yield value
        case Kind.DOUBLE | Kind.DECIMAL if isinstance(value, int | float | Decimal) and math.isfinite(value):
            yield float(value)


def _below(edge: Any, field: Field, low: Any) -> Any:
    """A value below an edge, from which its lower part begins: the declared one, if there is one."""
    match field.type.kind:
        case Kind.INTEGER:
            return math.ceil(low) if low is not None and low < edge else edge - 1
        case Kind.DATE | Kind.TIMESTAMP:
            return low if low is not None and low < edge else edge - dt.timedelta(days=1)
        case _:
            return float(low) if low is not None and low < edge else edge - max(1.0, abs(edge))


def _above(edge: Any, field: Field, high: Any) -> Any:
    """A value above an edge, at which its upper part ends."""
    match field.type.kind:
        case Kind.INTEGER:
            return math.floor(high) + 1 if high is not None and high >= edge else edge + 1
        case Kind.DATE:
            return (
                high + dt.timedelta(days=1)
                if high is not None and high >= edge
                else edge + dt.timedelta(days=1)
            )
        case Kind.TIMESTAMP:
            return high if high is not None and high > edge else edge + dt.timedelta(days=1)
        case _:
            return float(high) if high is not None and high > edge else edge + max(1.0, abs(edge))
