"""Keys taken from one public relation go in; their combinations that occur there come out, as one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Distinct, Filter, Join, Key, Project, Relation, Semi, is_public
from privsql.analysis.domain import MAX_KEYS, Domain
from privsql.analysis.facts import Facts, domain_of
from privsql.analysis.keys import KeyGroup
from privsql.analysis.public_rows import Look


def public_groups(relation: Relation, keys: Sequence[Key], facts: Facts, look: Look) -> list[KeyGroup]:
    """Where two keys or more are columns of one public relation, only pairs that it holds can occur."""
    found: dict[Relation, list[tuple[Key, str]]] = {}
    for key in keys:
        origin = _origin(relation, key.expression.name) if isinstance(key.expression, Column) else None
        if origin is not None:
            found.setdefault(origin[0], []).append((key, origin[1]))
    groups = []
    for public, together in found.items():
        if len(together) < 2:
            continue
        rows = look.combinations(public, [column for _, column in together])
        domains = [domain_of(key.expression, facts) for key, _ in together]
        kept = [
            row
            for row in rows
            if all(_inside(value, domain) for value, domain in zip(row, domains, strict=True))
        ]
        if len(kept) <= MAX_KEYS:
            columns = tuple([row[place] for row in kept] for place in range(len(together)))
            groups.append(KeyGroup(tuple(key.name for key, _ in together), columns))
    return groups


def _inside(value: Any, domain: Domain) -> bool:
    if value is None:
        return domain.nullable
    return value == value and (domain.values is None or value in domain.values)


def _origin(relation: Relation, name: str) -> tuple[Relation, str] | None:
    """The public relation a column is taken from, and what it is called there."""
    if is_public(relation):
        return relation, name
    match relation:
        case Filter() | Semi() | Distinct():
            return _origin(relation.input, name)
        case Project():
            inner = dict(relation.columns)[name]
            return _origin(relation.input, inner.name) if isinstance(inner, Column) else None
        case Join():
            side = relation.left if name in {each.name for each in relation.left.fields} else relation.right
            return None if side is relation.right and relation.kind == "left" else _origin(side, name)
        case _:
            return None
