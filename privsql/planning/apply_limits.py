"""A draft goes in; the same comes out with the limits of the call, and with sums of one unit's DOUBLEs taken
in whole steps of a grid.

DuckDB adds floats in whatever order threads bring them, so that the total of a person nobody touched could
change in its last digit, and that person's part with it. Whole numbers add up the same in every order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privsql.algebra.expressions import Aggregate, Call, Literal
from privsql.algebra.functions import FIXED_POINT
from privsql.algebra.relations import Group, Limits, Relation, Scan, rebuilt, walk
from privsql.algebra.reserved import is_ours
from privsql.analysis.derive import derive, names_in
from privsql.analysis.facts import domain_of, refine
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import limits_of, table_limits
from privsql.analysis.undeclared import Undeclared, within
from privsql.errors import ArgumentError, Refused
from privsql.planning.draft import Draft
from privsql.planning.grids.grid import grid_of
from privsql.suggestions import Argument
from privsql.types import BIGINT, DOUBLE, Kind, Type, integer, may_overflow

_STEPS = integer(-(2**62), 2**62)


def apply_limits(draft: Draft) -> Draft:
    """The relation below the release, under the limits of the call."""
    limited = with_limits(draft.release.input, draft.task.offer.limits)
    release = replace(draft.release, input=settled(limited, draft.task.look))
    if any(is_ours(field.name) for each in walk(release.input) for field in each.fields):
        raise AssertionError("a column that could stand for one of ours")  # the binder gives them other names
    return replace(draft, release=release)


def settled(relation: Relation, look: Look) -> Relation:
    """The relation with every per-unit sum independent of the order of rows."""

    def settle(each: Relation) -> Relation:
        if not isinstance(each, Group) or not each.per_unit:
            return each
        return replace(
            each, aggregates=tuple((name, _fixed(one, each, look)) for name, one in each.aggregates)
        )

    return rebuilt(relation, settle)


def with_limits(relation: Relation, wanted: Mapping[str, int]) -> Relation:
    """The relation with the limits of a call: what is declared may be lowered, a default also raised.

    A larger limit is no less private, since the noise grows with it: whether it may be is the owner's to say.
    """
    if not wanted:
        return relation
    for name, value in wanted.items():
        most = most_allowed(relation, name)
        if most is not None and value > most:
            what = f"{name} may be lowered, not raised: the policy allows {most}"
            raise ArgumentError("argument-limits", what, [(Argument(name, str(most)), " or less")])

    def limit(each: Relation) -> Relation:
        if not isinstance(each, Scan) or each.limits is None:
            return each
        return replace(each, limits=_limited(each.limits, wanted))

    return rebuilt(relation, limit)


def most_allowed(relation: Relation, name: str) -> int | None:
    """The largest that a call may ask for; None: no table that matters declares this limit."""
    undeclared = all(name in each.assumed for each in table_limits(relation))
    return None if undeclared else int(getattr(limits_of(relation), name))


def _limited(own: Limits, wanted: Mapping[str, int]) -> Limits:
    declared = wanted.keys() - own.assumed
    lowered = {name: min(wanted[name], getattr(own, name)) for name in declared}
    return replace(own, **{**wanted, **lowered}, assumed=own.assumed - wanted.keys())


def _fixed(aggregate: Aggregate, group: Group, look: Look) -> Aggregate:
    argument = aggregate.argument
    if aggregate.function not in ("sum", "avg") or argument is None or _adds_up_exactly(argument.type):
        return aggregate
    parts = [part for part in (argument, aggregate.condition) if part is not None]
    facts = derive(group.input, names_in(parts), look)
    domain = domain_of(argument, facts if aggregate.condition is None else refine(facts, aggregate.condition))
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "the total of one unit needs a range for what is added up: it is not known",
            [*Undeclared(group.input, look).ranges(argument, aggregate.condition), within(argument)],
            aggregate.place,
        )
    grid = grid_of(DOUBLE, domain)
    ends = (Literal(str(grid.step), BIGINT), Literal(grid.low, _STEPS), Literal(grid.high, _STEPS))
    return replace(aggregate, argument=Call(FIXED_POINT, (argument, *ends), _STEPS))


def _adds_up_exactly(type_: Type) -> bool:
    """Whether DuckDB sums this type in whole numbers that cannot overflow."""
    if type_.kind is Kind.INTEGER:
        return not may_overflow(type_)
    return type_.kind is Kind.DECIMAL and type_.precision <= 18
