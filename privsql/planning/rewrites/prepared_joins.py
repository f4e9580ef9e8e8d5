"""A relation goes in; the one table in it that a copy can replace comes out, and the form of its join with
another table.

Joins of private rows compare units, with or without a copy. The join condition may already imply that the
units are equal, and a join without the comparison takes a third of the time. But that would rely on a claim,
and a claim may choose a plan while the SQL must enforce it. Where each row meets at most one row, units are
compared after the join, which costs almost nothing.
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
    """An inner join of private rows in which each row meets at most one, or is claimed to. Pairs of different
    units are dropped after the join.
    """


def look_up(join: Join) -> LookUp:
    return LookUp(**{one.name: getattr(join, one.name) for one in fields(join)})


def looks_up(relation: Relation) -> bool:
    """Whether its one join may be a LookUp: conditions on one side are applied there already, and others must
    not have to wait.
    """
    while isinstance(relation, Project):
        relation = relation.input
    while isinstance(relation, Filter):
        relation = relation.input
    joins = [each for each in walk(relation) if isinstance(each, Join)]
    return joins == [relation] and joins[0].kind == "inner" and joins[0].same_unit


def only_scan(relation: Relation) -> Scan | None:
    """The one table below with many rows per unit, if on the way to it each row stays alone, or meets public
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
    """A table that does not join itself: of two equal scans nobody could say which one was copied."""
    return None if scan is not None and scan in walk(other) else scan
