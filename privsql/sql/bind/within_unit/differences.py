"""The two sides of EXCEPT or INTERSECT go in; the rows of the left that the right has not, or has too, come
out.

Rows are compared in all columns, which must tell the unit: equal rows are then of one unit, and the rendered
SQL compares the units besides.
"""

from __future__ import annotations

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression
from privsql.algebra.owners import Whose, owner
from privsql.algebra.relations import (
    Project,
    Relation,
    Semi,
    UnionAll,
    WindowsWithinUnit,
    is_public,
    is_released,
)
from privsql.algebra.reserved import unique_names
from privsql.algebra.windows import Window
from privsql.errors import Place, Refused
from privsql.sql.bind.join import apart
from privsql.sql.bind.scope import Source
from privsql.sql.bind.union import paired
from privsql.sql.bind.within_unit.different import distinct_rows
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal
from privsql.types import BIGINT, BOOLEAN, Kind


def compared(left: Source, right: Source, node: exp.Except | exp.Intersect) -> Source:
    """EXCEPT and INTERSECT, with ALL or without."""
    place = place_of(node)
    name = type(node).__name__
    clause = name.upper()
    if is_public(left.relation) or is_released(left.relation) or is_released(right.relation):
        raise refusal(name, place)
    left, right = (each.all_read(clause, place) for each in (left, right))
    shown, (kept, other) = paired(left, right, node)
    if any(each.type.kind is Kind.INTERVAL for each in kept.fields):
        raise build.no_intervals(place)
    _within_unit(kept, other, clause, place)
    every = not node.args.get("distinct")
    if every and is_public(other):
        raise Refused(
            f"refused-{name.lower()}",
            f"{clause} ALL with public rows is not supported: equal rows are counted within one person.",
            f"Write {clause}, or x IN (SELECT ...).",
            place,
        )
    found = _matched(kept, other, anti=isinstance(node, exp.Except), every=every)
    source = Source(found, None, shown)
    return source if every else distinct_rows(source, place)


def _within_unit(kept: Relation, other: Relation, clause: str, place: Place | None) -> None:
    """Refuse rows that may be equal to another person's."""
    both = kept if is_public(other) else UnionAll((kept, other))
    whose = owner(both)
    if whose.whose is not Whose.UNITS or not whose.tells(each.name for each in both.fields):
        raise Refused(
            f"refused-{clause.lower()}",
            f"{clause} compares rows of many people here: its columns do not name the unit.",
            f"Select the unit on both sides: SELECT user_id FROM a {clause} SELECT user_id FROM b. Or filter "
            "with WHERE.",
            place,
        )


def _matched(kept: Relation, other: Relation, anti: bool, every: bool) -> Relation:
    """The rows that the other side has too, or has not. With ALL, equal rows of one unit are numbered, and
    the numbers are compared, too.
    """
    fields = kept.fields
    if every:
        kept, other = _numbered(kept), _numbered(other)
    beside = apart(Source(other, None, tuple(each.name for each in other.fields)), kept).relation
    tests: list[Expression] = [
        Call("is_same", (one.column, two.column), BOOLEAN)
        for one, two in zip(kept.fields, beside.fields, strict=True)
    ]
    on = tests[0] if len(tests) == 1 else Call("and", tuple(tests), BOOLEAN)
    found: Relation = Semi(kept, beside, on, anti, same_unit=not is_public(other))
    return Project(found, tuple((each.name, each.column) for each in fields)) if every else found


def _numbered(rows: Relation) -> Relation:
    """Rows with a number for each among those of its unit that are equal to it."""
    fixed = owner(rows).fixed
    by = tuple(each.column for each in rows.fields if each.name not in fixed)
    name = unique_names([*(each.name for each in rows.fields), "row_number"])[-1]
    return WindowsWithinUnit(rows, ((name, Window("row_number", None, BIGINT, by, ())),))
