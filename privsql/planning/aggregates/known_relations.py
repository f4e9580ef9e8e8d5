"""The counts of a release go in; the relations between them come out: parts are at most their whole, or add
up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Release
from privsql.analysis.disjoint import are_disjoint
from privsql.analysis.facts import Facts, domain_of
from privsql.analysis.implied import exhaust, implies
from privsql.planning.aggregates.context import filtered
from privsql.planning.aggregates.count_conditions import as_count, counted, grouped, normal
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.parts import Part
from privsql.planning.aggregates.sums import Linear

Conditions = Mapping[str, Expression | None]  # of each count, by name; None: all rows


@dataclass(frozen=True)
class CountRelation:
    """Counts that add up to at most another one, or `exactly` to it; by their names in the release."""

    parts: tuple[str, ...]
    whole: str
    exactly: bool = False

    def text(self, names: Mapping[str, str]) -> str:
        """The relation for people; `names` maps counts to their names in the answer."""
        listed = " + ".join(names.get(each, each) for each in self.parts)
        return f"{listed} {'=' if self.exactly else '<='} {names.get(self.whole, self.whole)}"


def relations_of(
    release: Release, estimates: Mapping[str, Estimate], parts: Sequence[Part], facts: Facts, bounded: bool
) -> tuple[CountRelation, ...]:
    """The relations that can be proved. `bounded`: row limits apply to each count on its own, and then sums
    of parts prove nothing.
    """
    counts: dict[str, Expression | None] = {}
    for name, each in release.aggregates:
        count = normal(as_count(each), facts)
        if count.function == "count" and isinstance(estimates[name], Linear):
            counts[name] = counted(count)
    # where one measurement has several counts, each takes what the earlier ones leave of a unit's rows
    if bounded:
        alone = {column for part in parts for column in part.columns if len(part.columns) == 1}
        # all of a unit's rows are limited together
        beside = [{column for column, _ in part.all_rows} for part in parts]

        def is_whole(columns: set[str]) -> bool:
            return columns <= alone or columns == set().union(*(each for each in beside if each & columns))

        wholes = {name for name in counts if is_whole(set(estimates[name].columns))}
        return tuple(CountRelation((a,), b) for a, b in _links(counts, wholes))
    return _grouped(counts, facts)


def _links(counts: Conditions, wholes: Collection[str]) -> list[tuple[str, str]]:
    """Pairs (part, whole), without those that follow from others."""
    inside = {(a, b) for a in counts for b in wholes if a != b and implies(counts[a], counts[b])}
    strict = {(a, b) for a, b in inside if (b, a) not in inside}
    same = {(a, b) for a, b in inside - strict if list(counts).index(a) > list(counts).index(b)}
    near = {(a, b) for a, b in strict if not any((a, c) in strict and (c, b) in strict for c in counts)}
    return sorted(near | same)


def _grouped(counts: Conditions, facts: Facts) -> tuple[CountRelation, ...]:
    links = _links(counts, counts)
    single = {
        a for a in counts if sum(part == a for part, _ in links) == 1
    }  # parts of only one other count, which may be summed
    below = {b: [a for a, whole in links if whole == b] for b in counts}

    found: list[CountRelation] = []
    for whole, parts in below.items():

        def fits(part: str, group: Sequence[str]) -> bool:
            alone = all(are_disjoint(counts[part], counts[each]) for each in group)
            return {part, *group} <= single and alone

        for group in grouped(parts, fits):
            same = {*group} <= single and len(group) == 1 and implies(counts[whole], counts[group[0]])
            conditions = [each for each in (counts[name] for name in group) if each is not None]
            never_null = _never_null(filtered(facts, counts[whole]))
            all_of_it = len(group) > 1 and exhaust(conditions, counts[whole], never_null)
            found.append(CountRelation(tuple(group), whole, same or all_of_it))
    return tuple(found)


def _never_null(facts: Facts) -> Callable[[Expression], bool]:
    return lambda test: not domain_of(test, facts).nullable
