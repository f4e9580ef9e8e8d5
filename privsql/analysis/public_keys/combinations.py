"""Keys of a release go in; the combinations of those that come from one public relation come out.

A join that equates a column with a public one carries the keys across: after JOIN airlines a USING (carrier),
the pairs of f.carrier and a.name are those of airlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privsql.algebra.expressions import Column
from privsql.algebra.owners import equated
from privsql.algebra.relations import Distinct, Filter, Join, Key, Project, Relation, Semi, is_public
from privsql.analysis.domain import MAX_KEYS, Domain
from privsql.analysis.facts import Facts, domain_of
from privsql.analysis.keys import KeyGroup, options_of
from privsql.analysis.public_rows import Look
from privsql.types import Kind, Type

MOST_COMBINATIONS = MAX_KEYS  # the most combinations of public keys that are listed


@dataclass(frozen=True)
class _Origin:
    """The public relation that a key is taken from, or whose column it equals, and the column's name there.

    `padded`: behind a LEFT JOIN, so that rows without a match have NULL in its columns; `equal`: the key is a
    column of the other side, which has its own value in such rows.
    """

    public: Relation
    where: str  # the sides of the joins that lead to it: one table may be joined twice
    column: str
    padded: bool = False
    equal: bool = False


def public_groups(relation: Relation, keys: Sequence[Key], facts: Facts, look: Look) -> list[KeyGroup]:
    """If two or more keys are columns of one public relation, or equal to them, only the combinations that it
    contains can occur.
    """
    found: dict[tuple[Relation, str, bool], list[tuple[Key, _Origin]]] = {}
    for key in keys:
        origin = _origin(relation, key.expression, "") if isinstance(key.expression, Column) else None
        if origin is not None:
            found.setdefault((origin.public, origin.where, origin.padded), []).append((key, origin))
    groups = []
    for (public, _, padded), together in found.items():
        if len(together) < 2:
            continue
        columns = list(dict.fromkeys(origin.column for _, origin in together))
        places = [columns.index(origin.column) for _, origin in together]
        met = [place for place, (_, origin) in enumerate(together) if origin.equal]  # NULL equals nothing
        listed = (tuple(row[place] for place in places) for row in look.combinations(public, columns))
        rows = [row for row in listed if all(row[place] is not None for place in met)]
        domains = [domain_of(key.expression, facts) for key, _ in together]
        if padded:
            unmatched = _unmatched([origin for _, origin in together], domains)
            if unmatched is None:
                continue
            rows = list(dict.fromkeys([*rows, *unmatched]))
        kept = [
            row
            for row in rows
            if all(_is_inside(value, domain) for value, domain in zip(row, domains, strict=True))
        ]
        if len(kept) <= MOST_COMBINATIONS:
            found_values = tuple([row[place] for row in kept] for place in range(len(together)))
            groups.append(KeyGroup(tuple(key.name for key, _ in together), found_values))
    return groups


def _unmatched(origins: Sequence[_Origin], domains: Sequence[Domain]) -> list[tuple[Any, ...]] | None:
    """The keys of rows that match no public row; None where they are not listed here."""
    own = [place for place, each in enumerate(origins) if each.equal]
    if len(own) > 1:
        return None
    values = options_of(domains[own[0]]) if own else [None]
    if values is None:
        return None
    return [tuple(value if place in own else None for place in range(len(origins))) for value in values]


def _is_inside(value: Any, domain: Domain) -> bool:
    if value is None:
        return domain.nullable
    return value == value and (domain.values is None or value in domain.values)


def _origin(relation: Relation, column: Column, where: str) -> _Origin | None:
    """Where the values of a column come from, or what they equal, if that is public."""
    name = column.name
    if is_public(relation):
        return _Origin(relation, where, name)
    match relation:
        case Filter() | Semi() | Distinct():
            return _origin(relation.input, column, where)
        case Project():
            inner = dict(relation.columns)[name]
            return _origin(relation.input, inner, where) if isinstance(inner, Column) else None
        case Join(kind="inner" | "left"):
            return _origin_in_join(relation, column, where)
        case _:
            return None


def _origin_in_join(join: Join, column: Column, where: str) -> _Origin | None:
    left, right = f"{where}l", f"{where}r"
    if column.name in {each.name for each in join.left.fields}:
        side, here, other, there = join.left, left, join.right, right
    elif join.kind == "left":
        is_one = is_public(join.right)
        return _Origin(join.right, right, column.name, padded=True) if is_one else None
    else:
        side, here, other, there = join.right, right, join.left, left
    found = _origin(side, column, here)
    if found is not None or not is_public(other):
        return found
    types = {each.name: each.type for each in other.fields}
    for own, theirs in equated(join.on, side, other):
        if own == column.name and _listed_alike(column.type, types[theirs]):
            return _Origin(other, there, theirs, padded=join.kind == "left", equal=True)
    return None


def _listed_alike(one: Type, other: Type) -> bool:
    """Whether equal values of these types are one key: not 0.0 and -0.0, nor DECIMALs of different scales."""
    kinds = one.kind is other.kind and one.kind not in (Kind.DOUBLE, Kind.INTERVAL, Kind.TIME)
    return kinds and (one.kind is not Kind.DECIMAL or one.scale == other.scale)
