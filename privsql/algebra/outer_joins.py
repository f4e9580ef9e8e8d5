"""Joins that keep public rows which no private row meets: their padded rows are nobody's."""

from __future__ import annotations

from dataclasses import replace

from privsql.algebra.relations import Join, Project, Relation, is_public


def pads_public_rows(relation: Relation) -> bool:
    """Whether this is a LEFT or FULL JOIN of public rows with private ones."""
    return (
        isinstance(relation, Join)
        and relation.kind in ("left", "full")
        and is_public(relation.left)
        and not is_public(relation.right)
    )


def without_padded(relation: Relation) -> Relation:
    """Such a join without its padded public rows; any other relation as it is."""
    if not pads_public_rows(relation):
        return relation
    assert isinstance(relation, Join)
    if relation.kind == "left":
        return replace(relation, kind="inner")
    turned = replace(relation, left=relation.right, right=relation.left, kind="left")
    return Project(turned, tuple((each.name, each.column) for each in relation.fields))
