"""A function that reads SQL goes in; a Look comes out: what planning may know about public rows, each
statement run once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from privsql.algebra.exact import Dialect, Fold, Name, Ordered, Rows, Select, names
from privsql.algebra.relations import Relation, is_public
from privsql.algebra.reserved import ROWS_COLUMN
from privsql.analysis.domain import MAX_KEYS, Domain, exact, of_values
from privsql.types import MOMENTS, NUMBERS, Kind, Type

Read = Callable[[str], list[tuple[Any, ...]]]  # the rows of a statement over public tables


class PublicLook:
    """Reads public relations through the engine. It serves one plan, so it sees the rows as they are now."""

    def __init__(self, read: Read, dialect: Dialect) -> None:
        self._read, self._dialect = read, dialect
        self._seen: dict[Select, list[tuple[Any, ...]]] = {}

    def domain(self, relation: Relation, column: str) -> Domain:
        type_ = next(each.type for each in relation.fields if each.name == column)
        values = [value for (value,) in self._different(relation, [column], MAX_KEYS + 2)]
        known = [value for value in values if value is not None and _readable(value, type_)]
        if len(known) <= MAX_KEYS:
            return of_values(type_, known, nullable=None in values)
        if type_.kind not in NUMBERS | MOMENTS:
            return Domain(type_)
        ends = tuple((name, Fold(name, Name(column))) for name in ("min", "max"))
        ((low, high),) = self._rows(relation, Select(ends, Rows(relation)))
        readable = _readable(low, type_) and _readable(high, type_)
        return Domain(type_, low=exact(low), high=exact(high)) if readable else Domain(type_)

    def combinations(self, relation: Relation, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        types = {each.name: each.type for each in relation.fields}
        found = self._different(relation, columns, MAX_KEYS + 1)
        return [
            row
            for row in found
            if all(v is None or _readable(v, types[c]) for v, c in zip(row, columns, strict=True))
        ]

    def most_alike(self, relation: Relation, columns: Sequence[str]) -> int:
        counted = (ROWS_COLUMN, Fold("count"))
        groups = Select((*names(columns), counted), Rows(relation), keys=len(columns))
        ((most,),) = self._rows(relation, Select(((ROWS_COLUMN, Fold("max", Name(ROWS_COLUMN))),), groups))
        return int(most or 0)

    def _different(self, relation: Relation, columns: Sequence[str], most: int) -> list[tuple[Any, ...]]:
        """The distinct rows of these columns, in order, at most so many."""
        order = tuple(Ordered(Name(each)) for each in columns)
        distinct = Select(names(columns), Rows(relation), order=order, limit=most, different=True)
        return self._rows(relation, distinct)

    def _rows(self, relation: Relation, statement: Select) -> list[tuple[Any, ...]]:
        assert is_public(relation), "only public rows are looked at"
        if statement not in self._seen:
            self._seen[statement] = self._read(self._dialect.statement(statement))
        return self._seen[statement]


def _readable(value: Any, type_: Type) -> bool:
    """False for NaN, and for dates outside Python's calendar and 24:00, which DuckDB returns as text."""
    return value == value and not (type_.kind in MOMENTS | {Kind.TIME} and isinstance(value, str))
