"""A way to read SQL goes in; a Look comes out: what planning may know of public rows, each question asked
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from privsql.algebra.relations import Relation, is_public
from privsql.analysis.domain import MAX_KEYS, Domain, exact, of_values
from privsql.planning.render import identifier
from privsql.planning.render_rows import rows
from privsql.types import MOMENTS, NUMBERS, Kind, Type

Read = Callable[[str], list[tuple[Any, ...]]]  # rows of SQL over public tables


class PublicLook:
    """Looks at public relations through the engine; for one plan, so that it sees them as they are now."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._seen: dict[str, list[tuple[Any, ...]]] = {}

    def domain(self, relation: Relation, column: str) -> Domain:
        type_ = next(each.type for each in relation.fields if each.name == column)
        name = identifier(column)
        different = self._rows(
            relation, f"SELECT DISTINCT {name} FROM", f"ORDER BY 1 ASC NULLS LAST LIMIT {MAX_KEYS + 2}"
        )
        values = [value for (value,) in different if value is not None and _readable(value, type_)]
        nullable = any(value is None for (value,) in different)
        if len(values) <= MAX_KEYS:
            return of_values(type_, values, nullable=nullable)
        if type_.kind not in NUMBERS | MOMENTS:
            return Domain(type_)
        ((low, high),) = self._rows(relation, f"SELECT min({name}), max({name}) FROM")
        known = _readable(low, type_) and _readable(high, type_)
        return Domain(type_, low=exact(low), high=exact(high)) if known else Domain(type_)

    def combinations(self, relation: Relation, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        names = ", ".join(identifier(each) for each in columns)
        types = {each.name: each.type for each in relation.fields}
        found = self._rows(
            relation, f"SELECT DISTINCT {names} FROM", f"ORDER BY ALL ASC NULLS LAST LIMIT {MAX_KEYS + 1}"
        )
        return [
            row
            for row in found
            if all(v is None or _readable(v, types[c]) for v, c in zip(row, columns, strict=True))
        ]

    def most_alike(self, relation: Relation, columns: Sequence[str]) -> int:
        if not columns:
            ((count,),) = self._rows(relation, "SELECT count(*) FROM")
            return int(count)
        names = ", ".join(identifier(each) for each in columns)
        ((most,),) = self._rows(
            relation, "SELECT max(n) FROM (SELECT count(*) AS n FROM", f"GROUP BY {names})"
        )
        return int(most or 0)

    def _rows(self, relation: Relation, before: str, after: str = "") -> list[tuple[Any, ...]]:
        assert is_public(relation), "only public rows are looked at"
        sql = f"{before} {rows(relation)} {after}"
        if sql not in self._seen:
            self._seen[sql] = self._read(sql)
        return self._seen[sql]


def _readable(value: Any, type_: Type) -> bool:
    """Not NaN, and no date beyond Python's calendar nor 24:00, of which DuckDB gives the text."""
    return value == value and not (type_.kind in MOMENTS | {Kind.TIME} and isinstance(value, str))
