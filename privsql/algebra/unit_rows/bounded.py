"""A relation goes in; how many rows of one unit it may have, or one row may meet, comes out."""

from __future__ import annotations

from privsql.algebra.expressions import Column
from privsql.algebra.owners import by_unit_alone, equated, owner
from privsql.algebra.relations import Filter, Group, Join, Project, Relation, Scan, Semi, below


def allowed_matches(relation: Relation, column: str) -> int | None:
    """How many rows may share a value of a column, as the owner declared it; more are dropped."""
    match relation:
        case Scan():
            return dict(relation.matches).get(column)
        case Project():
            inner = dict(relation.columns)[column]
            return allowed_matches(relation.input, inner.name) if isinstance(inner, Column) else None
        case Filter() | Semi():
            return allowed_matches(relation.input, column)
        case _:
            return None


def is_bounded(relation: Relation) -> bool:
    """Whether the rows of one person here are at most a number that is known without bounding them."""
    match relation:
        case Scan():
            return relation.unit is None or relation.unit.unique
        case Group() if relation.per_unit:
            return by_unit_alone(relation, owner(relation.input)) or is_bounded(relation.input)
        case Semi():
            return is_bounded(relation.input)
        case Join(kind="left", same_unit=True) if meets_one_group(relation):
            return is_bounded(relation.left)
        case _:
            return all(is_bounded(each) for each in below(relation))


def meets_one_group(join: Join) -> bool:
    """Whether a row of the left meets at most one row of the right, since that is grouped by columns that the
    join equates. It follows from the query alone, not from what an owner declares.
    """
    wanted = {name for _, name in equated(join.on, join.left, join.right)}
    relation = join.right
    while isinstance(relation, (Project, Filter)):
        if isinstance(relation, Project):
            columns = dict(relation.columns)
            wanted = {each.name for name in wanted if isinstance(each := columns[name], Column)}
        relation = relation.input
    return (
        isinstance(relation, Group) and bool(relation.keys) and {key.name for key in relation.keys} <= wanted
    )
