"""The rows that a count counts, as one condition; which counts exclude each other, or are part of another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from privsql.algebra.expressions import Aggregate, Call, Expression, Literal, conjuncts
from privsql.analysis.disjoint import are_disjoint, both
from privsql.analysis.facts import Facts, domain_of
from privsql.planning.aggregates.context import filtered
from privsql.types import BOOLEAN, Kind

Item = TypeVar("Item")


def as_count(aggregate: Aggregate) -> Aggregate:
    """Turn SUM(CASE WHEN p THEN 1 ELSE 0 END) into the count of rows where p is true."""
    match aggregate:
        case Aggregate(
            function="sum", argument=Call(function="case", args=(test, Literal(value=1), Literal(value=rest)))
        ):
            if (
                rest in (0, None)
                and aggregate.argument is not None
                and aggregate.argument.type.kind is Kind.INTEGER
            ):
                return replace(
                    aggregate, function="count", argument=None, condition=both(aggregate.condition, test)
                )
    return aggregate


def normal(aggregate: Aggregate, facts: Facts) -> Aggregate:
    """Turn COUNT(x) into a count of rows where x is not NULL, or into COUNT(*) if x is never NULL."""
    if aggregate.function != "count" or aggregate.argument is None:
        return aggregate
    if not domain_of(aggregate.argument, filtered(facts, aggregate.condition)).nullable:
        return replace(aggregate, argument=None)
    return aggregate


def counted(count: Aggregate) -> Expression | None:
    if count.argument is None:
        return count.condition
    missing = Call("is_null", (count.argument,), BOOLEAN)
    return both(count.condition, Call("not", (missing,), BOOLEAN))


def disjoint_groups(counts: Iterable[tuple[str, Aggregate]]) -> list[list[tuple[str, Aggregate]]]:
    """Group counts so that every two in a group exclude each other."""
    return grouped(
        counts, lambda one, group: all(are_disjoint(counted(one[1]), counted(each)) for _, each in group)
    )


def grouped(items: Iterable[Item], fits: Callable[[Item, Sequence[Item]], bool]) -> list[list[Item]]:
    """Put each item into the first group that it fits into, or else into one of its own."""
    groups: list[list[Item]] = []
    for each in items:
        group = next((group for group in groups if fits(each, group)), None)
        if group is None:
            groups.append([each])
        else:
            group.append(each)
    return groups


def shares_of(
    counts: Mapping[str, Aggregate], divided: Collection[tuple[str, str]]
) -> Iterator[tuple[str, list[str]]]:
    """Counts that are divided by another one, and are disjoint parts of it."""
    used: set[str] = set()
    for whole in dict.fromkeys(below for _, below in divided if below in counts):
        shares: list[str] = []
        for above in dict.fromkeys(above for above, below in divided if below == whole and above in counts):
            alone = all(are_disjoint(counted(counts[above]), counted(counts[each])) for each in shares)
            if above != whole and above not in used and alone and _is_part(counts[above], counts[whole]):
                shares.append(above)
        if shares and whole not in used:
            used |= {whole, *shares}
            yield whole, shares


def _is_part(part: Aggregate, whole: Aggregate) -> bool:
    """Whether every row of one count is in the other one too, and the other has more."""
    given, required = counted(part), counted(whole)
    return given is not None and (required is None or set(conjuncts(required)) <= set(conjuncts(given)))


def without(whole: Aggregate, parts: Sequence[Aggregate]) -> Aggregate:
    """The count of the rows that are in none of the parts."""
    condition = counted(whole)
    for each in parts:
        inside = counted(each)
        assert inside is not None
        met = Call("is_true", (inside,), BOOLEAN)
        condition = both(condition, Call("not", (met,), BOOLEAN))
    return replace(whole, argument=None, condition=condition)
