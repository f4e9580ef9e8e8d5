"""A relation goes in; the one table in it that a copy can stand for comes out, and which joins need not look at units then."""

from __future__ import annotations

from collections.abc import Iterator

from privsql.sql.expressions import Column
from privsql.sql.owners import equated, is_unique
from privsql.sql.relations import (
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Semi,
    Unpivot,
    is_public,
    walk,
)

Pair = tuple[str, str]


def only_scan(relation: Relation) -> Scan | None:
    """The one table of many rows a unit below, if on the way to it each row stays by itself, or meets public rows or one row."""
    match relation:
        case Scan(private=True, unit=unit) if unit is not None and not unit.unique:
            return relation
        case Filter() | Project() | Unpivot():
            return only_scan(relation.input)
        case Semi() if is_public(relation.other) or (relation.same_unit and not relation.null_aware):
            return _apart(only_scan(relation.input), relation.other)
        case Join() if is_public(relation.right):
            return only_scan(relation.left)
        case Join() if is_public(relation.left) and relation.kind == "inner":
            return only_scan(relation.right)
        case Join(same_unit=True):
            pairs = equated(relation.on, relation.left, relation.right)
            found = None
            if is_unique(relation.right, [b for _, b in pairs]):
                found = _apart(only_scan(relation.left), relation.right)
            if found is None and relation.kind == "inner" and is_unique(relation.left, [a for a, _ in pairs]):
                found = _apart(only_scan(relation.right), relation.left)
            return found
        case _:
            return None


def _apart(scan: Scan | None, other: Relation) -> Scan | None:
    """A table that does not meet itself: of two that are the same, nobody could say which was copied."""
    return None if scan is not None and scan in walk(other) else scan


def tells_unit(join: Join) -> bool:
    """Whether what an inner join is on says already that both rows are of one unit.

    So it is where the columns by which the rows of one table refer to those of the other, and to their unit, are equated with
    what they refer to: the row found is the one that the unit was read from. Or where the unit itself is equated.
    """
    pairs = equated(join.on, join.left, join.right)
    if join.kind != "inner":
        return False
    for one in _private(join.left):
        for other in _private(join.right):
            named = [(_from(join.left, a, one), _from(join.right, b, other)) for a, b in pairs]
            found = {(a, b) for a, b in named if a is not None and b is not None}
            if _refers(one, other, found) or _refers(other, one, {(b, a) for a, b in found}) or _same(one, other, found):
                return True
    return False


def _private(relation: Relation) -> Iterator[Scan]:
    return (each for each in walk(relation) if isinstance(each, Scan) and each.private)


def _from(relation: Relation, name: str, scan: Scan) -> str | None:
    """What a column is called in a table, if it comes from there as it is."""
    match relation:
        case Scan():
            return name if relation == scan else None
        case Filter() | Semi():
            return _from(relation.input, name, scan)
        case Project():
            inner = dict(relation.columns)[name]
            return _from(relation.input, inner.name, scan) if isinstance(inner, Column) else None
        case Join(kind="inner"):
            left = any(each.name == name for each in relation.left.fields)
            return _from(relation.left if left else relation.right, name, scan)
        case _:
            return None


def _refers(one: Scan, other: Scan, pairs: set[Pair]) -> bool:
    """Whether pairs of columns that are equal say that a row of one table has its unit from that row of the other."""
    target = None if one.unit is None else one.unit.refers_to
    if target is None or one.unit is None or target.table != other.table or target.unit != other.unit:
        return False
    return set(zip(one.unit.columns, target.columns, strict=True)) <= pairs


def _same(one: Scan, other: Scan, pairs: set[Pair]) -> bool:
    """Whether the unit itself is what is equal."""
    if one.unit is None or other.unit is None or one.unit.refers_to is not None or other.unit.refers_to is not None:
        return False
    return one.unit.kinds == other.unit.kinds and set(zip(one.unit.columns, other.unit.columns, strict=True)) <= pairs
