"""A relation goes in; the same comes out with sums of one unit's DOUBLEs taken in whole steps of a grid.

DuckDB adds floats in whatever order threads bring them, so that the total of a person nobody touched could change in its
last digit, and that person's part with it. Whole numbers add up the same in every order.
"""

from __future__ import annotations

from dataclasses import replace

from privsql.analysis.derive import derive, domain_of, names_in, refine
from privsql.analysis.look import Look
from privsql.errors import Refused
from privsql.planning.grid import grid_of
from privsql.planning.render import FIXED_POINT
from privsql.sql.expressions import Aggregate, Call, Literal, columns_of
from privsql.sql.relations import Group, Join, Relation, Scan, Semi, UnionAll, Values, is_public
from privsql.types import BIGINT, DOUBLE, Kind, Type, integer

_STEPS = integer(-(2**62), 2**62)


def settled(relation: Relation, look: Look) -> Relation:
    """The relation with every per-unit sum independent of the order of rows."""
    match relation:
        case _ if is_public(relation):
            return relation
        case Scan() | Values():
            return relation
        case UnionAll():
            return replace(relation, inputs=tuple(settled(each, look) for each in relation.inputs))
        case Join():
            return replace(relation, left=settled(relation.left, look), right=settled(relation.right, look))
        case Semi():
            return replace(relation, input=settled(relation.input, look), other=settled(relation.other, look))
        case Group(per_unit=True):
            group = replace(relation, input=settled(relation.input, look))
            return replace(group, aggregates=tuple((name, _fixed(each, group, look)) for name, each in group.aggregates))
        case _:
            return replace(relation, input=settled(relation.input, look))


def _fixed(aggregate: Aggregate, group: Group, look: Look) -> Aggregate:
    argument = aggregate.argument
    if aggregate.function not in ("sum", "avg") or argument is None or _adds_up_exactly(argument.type):
        return aggregate
    parts = [part for part in (argument, aggregate.condition) if part is not None]
    facts = derive(group.input, names_in(parts), look)
    domain = domain_of(argument, facts if aggregate.condition is None else refine(facts, aggregate.condition))
    if not domain.bounded:
        names = sorted({column.name for column in columns_of(argument)})
        raise Refused(
            "refused-unbounded",
            "the total of one unit needs a range for what is added up: it is not known",
            f"declare a range (policy: {names[0]} = {{range = [0, 100]}})" if names else "clamp it: LEAST(GREATEST(..., 0), 100)",
            aggregate.place,
        )
    grid = grid_of(DOUBLE, domain)
    ends = (Literal(str(grid.step), BIGINT), Literal(grid.low, _STEPS), Literal(grid.high, _STEPS))
    return replace(aggregate, argument=Call(FIXED_POINT, (argument, *ends), _STEPS))


def _adds_up_exactly(type_: Type) -> bool:
    """Whether DuckDB sums this type in whole numbers that cannot overflow."""
    if type_.kind is Kind.INTEGER:
        return type_.sql != "HUGEINT"
    return type_.kind is Kind.DECIMAL and type_.precision <= 18
