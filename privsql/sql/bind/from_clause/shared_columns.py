"""Two sources that share columns go in; the columns that their join shows come out: USING, NATURAL, FULL."""

from __future__ import annotations

from privsql.algebra import build
from privsql.algebra.expressions import Column, Expression
from privsql.algebra.relations import Join, Project, Relation
from privsql.algebra.reserved import unique_names
from privsql.errors import Place, Refused, UnknownName
from privsql.sql.bind.scope import Source

# a column: its name, the tables that may qualify it, what it is, and whether it needs a qualified name
Shown = tuple[str, frozenset[str], Expression, bool]


def shared_names(left: Source, right: Source, place: Place | None) -> list[str]:
    """The names that NATURAL compares: those of both sides, in the order of the left."""
    theirs = {name.lower() for name in _visible(right)}
    unread = left.unsupported.keys() | right.unsupported.keys()
    both = {each.lower() for each in (*_visible(left), *left.unsupported)} & {*theirs, *right.unsupported}
    if both & unread:
        name = min(both & unread)
        raise Refused(
            "refused-type",
            f"NATURAL JOIN compares {name}, whose type is not supported on both sides.",
            "Name the columns: JOIN ... USING (...).",
            place,
        )
    found = list(dict.fromkeys(name for name in _visible(left) if name.lower() in theirs))
    if not found:
        raise UnknownName(
            "name-column",
            "NATURAL JOIN compares columns of the same name, and these tables share none",
            "write JOIN ... ON, or CROSS JOIN",
            place,
        )
    return found


def _visible(source: Source) -> list[str]:
    return [name for place, name in enumerate(source.names) if place not in source.hidden]


def shown(both: Source, relation: Join, left: Source, right: Source, using: list[str], form: str) -> Source:
    """The columns in the order of SELECT *: those of the left, then those of the right. USING merges two
    columns: it shows the side that cannot be NULL, and after FULL JOIN the one that is not. A qualified name
    still means the table's own column.
    """
    merged = {name.lower() for name in using}
    columns: list[Shown] = []
    if form == "FULL":
        columns += [_either(left, right, name, relation.place) for name in using]
    for source, gives_way in ((left, form in ("RIGHT", "FULL")), (right, form != "RIGHT")):
        for place, (name, each) in enumerate(source.fields()):
            hidden = place in source.hidden or (gives_way and name.lower() in merged)
            columns.append((name, source.qualifiers()[place], each.column, hidden))
    fields = relation.fields
    wanted = [each.name if isinstance(each, Column) else name for name, _, each, _ in columns]
    names = unique_names(wanted)
    inner: Relation = relation
    if names != [each.name for each in fields]:
        expressions = (each for _, _, each, _ in columns)
        inner = Project(relation, tuple(zip(names, expressions, strict=True)))
    return Source(
        inner,
        None,
        tuple(name for name, _, _, _ in columns),
        both.unsupported,
        tuple(tables for _, tables, _, _ in columns),
        frozenset(place for place, (_, _, _, hidden) in enumerate(columns) if hidden),
    )


def _either(left: Source, right: Source, name: str, place: Place | None) -> Shown:
    """The merged column of a FULL JOIN: of whichever side has the row."""
    values = [side.find(name, None, place) for side in (left, right)]
    return name, frozenset(), build.unify("coalesce", values), False
