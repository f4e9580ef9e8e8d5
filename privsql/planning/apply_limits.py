"""A draft goes in; it comes out with the limits of the call, and with per-unit sums of DOUBLEs on a
fixed-point grid.

DuckDB adds floats in whatever order threads deliver them, so the total of a person whose rows did not change
could still change in its last digit. Whole numbers give the same sum in every order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privsql.algebra.expressions import Aggregate, Call, Literal
from privsql.algebra.functions import FIXED_POINT
from privsql.algebra.relations import Group, Limits, Relation, Scan, WindowsWithinUnit, rebuilt, walk
from privsql.algebra.reserved import is_ours
from privsql.algebra.windows import AGGREGATES, Window
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
    """Apply the limits of the call to the relation below the release."""
    limited = with_limits(draft.release.input, draft.task.offer.limits)
    release = replace(draft.release, input=settled(limited, draft.task.look))
    if any(is_ours(field.name) for each in walk(release.input) for field in each.fields):
        raise AssertionError("a column that could stand for one of ours")  # the binder renames such columns
    return replace(draft, release=release)


def settled(relation: Relation, look: Look) -> Relation:
    """Make every sum within a unit independent of the order of rows."""

    def settle(each: Relation) -> Relation:
        if isinstance(each, WindowsWithinUnit):
            return replace(
                each, windows=tuple((name, _settled(one, each, look)) for name, one in each.windows)
            )
        if not isinstance(each, Group) or not each.per_unit:
            return each
        return replace(
            each, aggregates=tuple((name, _fixed(one, each, look)) for name, one in each.aggregates)
        )

    return rebuilt(relation, settle)


def with_limits(relation: Relation, wanted: Mapping[str, int]) -> Relation:
    """Apply the limits of a call. A call may lower a declared limit, and raise a default.

    A larger limit is no less private, since the noise grows with it: whether it is allowed is up to the data
    owner.
    """
    if not wanted:
        return relation
    for name, value in wanted.items():
        most = most_allowed(relation, name)
        if most is not None and value > most:
            what = f"a call may lower {name} but not raise it, and the policy allows {most}"
            raise ArgumentError("argument-limits", what, [(Argument(name, str(most)), " or less")])

    def limit(each: Relation) -> Relation:
        if not isinstance(each, Scan) or each.limits is None:
            return each
        return replace(each, limits=_limited(each.limits, wanted))

    return rebuilt(relation, limit)


def most_allowed(relation: Relation, name: str) -> int | None:
    """The largest value that a call may set; None if no table of the query declares this limit."""
    undeclared = all(name in each.assumed for each in table_limits(relation))
    return None if undeclared else int(getattr(limits_of(relation), name))


def _limited(own: Limits, wanted: Mapping[str, int]) -> Limits:
    declared = wanted.keys() - own.assumed
    lowered = {name: min(wanted[name], getattr(own, name)) for name in declared}
    return replace(own, **{**wanted, **lowered}, assumed=own.assumed - wanted.keys())


def _settled(window: Window, rows: WindowsWithinUnit, look: Look) -> Window:
    if window.function not in AGGREGATES:
        return window
    return replace(window, argument=_fixed(window.aggregate, rows, look).argument)


def _fixed(aggregate: Aggregate, group: Group | WindowsWithinUnit, look: Look) -> Aggregate:
    argument = aggregate.argument
    if aggregate.function not in ("sum", "avg") or argument is None or _adds_up_exactly(argument.type):
        return aggregate
    parts = [part for part in (argument, aggregate.condition) if part is not None]
    facts = derive(group.input, names_in(parts), look)
    domain = domain_of(argument, facts if aggregate.condition is None else refine(facts, aggregate.condition))
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "a sum within one unit needs the range of its argument, which is not known",
            [*Undeclared(group.input, look).ranges(argument, aggregate.condition), within(argument)],
            aggregate.place,
        )
    grid = grid_of(DOUBLE, domain)
    ends = (Literal(str(grid.step), BIGINT), Literal(grid.low, _STEPS), Literal(grid.high, _STEPS))
    return replace(aggregate, argument=Call(FIXED_POINT, (argument, *ends), _STEPS))


def _adds_up_exactly(type_: Type) -> bool:
    """Whether DuckDB sums this type in integers that cannot overflow."""
    if type_.kind is Kind.INTEGER:
        return not may_overflow(type_)
    return type_.kind is Kind.DECIMAL and type_.precision <= 18
