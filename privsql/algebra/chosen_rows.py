"""Whether noise decides which rows of a released relation there are."""

from __future__ import annotations

from privsql.algebra.relations import Choose, Distinct, Filter, Limit, Relation, Release, below


def chooses_rows(relation: Relation) -> bool:
    """A label that is chosen by its scores, or rows that HAVING, LIMIT or DISTINCT select."""
    inner = [relation]
    while not isinstance(inner[-1], (Release, Choose)):
        inner += below(inner[-1])
    return any(isinstance(each, (Filter, Limit, Distinct, Choose)) for each in inner)
