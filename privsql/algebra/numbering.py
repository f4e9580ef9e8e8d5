"""A relation goes in; how many rows of one unit it can have comes out, where ROW_NUMBER() <= k keeps so many.

Within one unit and one value of its partition, ROW_NUMBER gives no two rows the same number. RANK does, so it
bounds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.functions import MIRRORED
from privsql.algebra.relations import Filter, Project, Relation, Semi, WindowsWithinUnit


def most_numbered(relation: Relation, columns: Collection[str]) -> int | None:
    """The most rows of one unit that agree in these columns, by their numbers; None: no number is bounded."""
    return min(_bounds(relation, frozenset(columns), {}), default=None)


def _bounds(relation: Relation, same: frozenset[str], kept: Mapping[str, int]) -> Iterator[int]:
    """Bounds by each ROW_NUMBER below. `same`: columns in which the rows agree. `kept`: of so many different
    whole numbers a column may be one.
    """
    match relation:
        case Filter():
            found = dict(kept)
            for part in conjuncts(relation.predicate):
                for name, count in _positive(part):
                    found[name] = min(count, found.get(name, count))
            yield from _bounds(relation.input, same, found)
        case Project():
            stands_for = {name: each.name for name, each in relation.columns if isinstance(each, Column)}
            below: dict[str, int] = {}
            for name, count in kept.items():
                if name in stands_for:
                    inner = stands_for[name]
                    below[inner] = min(count, below.get(inner, count))
            yield from _bounds(
                relation.input, frozenset(stands_for[name] for name in same if name in stands_for), below
            )
        case Semi():
            yield from _bounds(relation.input, same, kept)
        case WindowsWithinUnit():
            for name, window in relation.windows:
                apart = all(isinstance(each, Column) and each.name in same for each in window.by)
                if window.function == "row_number" and apart and (name in kept or name in same):
                    yield 1 if name in same else max(1, kept[name])
            yield from _bounds(relation.input, same, kept)
        case _:
            return


def _positive(part: Expression) -> Iterator[tuple[str, int]]:
    """The columns that a condition restricts to some whole numbers from 1 on, and how many those are."""
    match part:
        case Call(function="=" | "<" | "<=" | ">" | ">=", args=(left, right)):
            operator = part.function
            if isinstance(left, Literal):
                left, right, operator = right, left, MIRRORED[operator]
            match left, right, operator:
                case Column(name=name), Literal(), "=":
                    yield name, 1
                case Column(name=name), Literal(value=int() as most), "<" | "<=":
                    yield name, most - (operator == "<")
        case Call(function="in", args=(Column(name=name), *options)) if all(
            isinstance(each, Literal) for each in options
        ):
            yield name, len(options)
