"""A query that selects labels goes in; whether all scores move the same way when one person's row is replaced
comes out.

Suppose that a row is joined with public candidates by a single comparison, such as bid >= price. Then it
matches all candidates up to some place in their order, so of two rows, one matches all that the other
matches. If every candidate counts a row by the candidate's own columns alone (COUNT(*), SUM(price)),
replacing one row by the other only adds to scores, or only subtracts from them.
"""

from __future__ import annotations

from privsql.algebra.expressions import Call, Expression, columns_of
from privsql.algebra.relations import Choose, Filter, Join, Project, Relation, is_public
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import stability

# the candidates' columns, and the person's columns
Sides = tuple[frozenset[str], frozenset[str]]


def moves_one_way(release: Choose, look: Look) -> bool:
    """Whether keys and score are the candidates' own, and rows match candidates in a chain."""
    sides = _chain(release.input, look)
    read = [*(key.expression for key in release.keys), *release.score.reads]
    return sides is not None and all(_names(each) <= sides[0] for each in read)


def _chain(relation: Relation, look: Look) -> Sides | None:
    """Which columns belong to which side, if rows match candidates in a chain; None otherwise."""
    match relation:
        case Join(kind="inner", on=Call(function="<" | "<=" | ">" | ">=", args=(left, right))):
            public, private = (
                (relation.left, relation.right)
                if is_public(relation.left)
                else (relation.right, relation.left)
            )
            if not is_public(public) or is_public(private) or stability(private, look).rows != 1:
                return None
            own, theirs = (frozenset(field.name for field in side.fields) for side in (public, private))
            first, second = _names(left), _names(right)
            apart = (first <= own and second <= theirs) or (first <= theirs and second <= own)
            return (own, theirs) if apart else None
        case Filter():
            sides = _chain(relation.input, look)
            read = _names(relation.predicate)
            return sides if sides is not None and any(read <= side for side in sides) else None
        case Project():
            sides = _chain(relation.input, look)
            if sides is None:
                return None
            first, second = (
                frozenset(name for name, each in relation.columns if _names(each) <= side) for side in sides
            )
            return first, second
        case _:
            return None


def _names(expression: Expression) -> frozenset[str]:
    return frozenset(column.name for column in columns_of(expression))
