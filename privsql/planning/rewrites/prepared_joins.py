"""A relation goes in; the one table in it that a copy can stand for comes out, and how its join with another
is written.

Joins with rows of people compare units, copy or not. What a join is on may say already that they are the
same, and a join that does not look takes a third of the time; but that would be a claim, and claims choose
while the SQL enforces. Where each row meets at most one, units are compared after the join, which takes
hardly longer than not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from privsql.algebra.owners import equated, is_unique
from privsql.algebra.relations import (
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


@dataclass(frozen=True)
class LookUp(Join):
    """An inner join of people's rows, each with at most one, or so it is said: those of different units are
    left out after it.
    """


def look_up(join: Join) -> LookUp:
    return LookUp(**{one.name: getattr(join, one.name) for one in fields(join)})


def looks_up(relation: Relation) -> bool:
    """Whether its one join may be a LookUp: conditions on one side are asked there already, others must not
    have to wait.
    """
    while isinstance(relation, Project):
        relation = relation.input
    while isinstance(relation, Filter):
        relation = relation.input
    joins = [each for each in walk(relation) if isinstance(each, Join)]
    return joins == [relation] and joins[0].kind == "inner" and joins[0].same_unit


def only_scan(relation: Relation) -> Scan | None:
    """The one table of many rows a unit below, if on the way to it each row stays by itself, or meets public
    rows or one row.
    """
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
