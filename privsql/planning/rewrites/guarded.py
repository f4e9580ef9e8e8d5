"""The query above a release goes in; it comes out with a guard on every quotient and every list of
aggregates.

A guard is a column of the noisy table. It is true in cells where the released numbers cannot tell the divisor
from 0, or where an aggregate in the list has too few rows. There the quotient or list is NULL, and so is
everything computed from it, in HAVING and ORDER BY too, by the rules of SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from privsql.algebra.expressions import Call, Column, Expression, Literal, columns_of, substitute
from privsql.algebra.relations import Choose, Distinct, Filter, Limit, Project, Relation, Release, Sort
from privsql.types import BOOLEAN

QUOTIENTS = frozenset({"/", "//"})
_PREFIX = "privsql_guard_"  # reserved, like all names that begin with privsql_

Meant = dict[str, Expression]  # the columns of a relation, as expressions over those of the release


@dataclass(frozen=True)
class Guarded:
    """`guards`: the names of the further columns of the noisy table, and the call that each one guards."""

    relation: Relation
    guards: Mapping[str, Call]


def guarded(relation: Relation, aggregates: frozenset[str]) -> Guarded:
    """Guard the quotients and lists of a relation. `aggregates`: the noisy columns of the release."""
    guards = _Guards(aggregates)
    above, _ = guards.relation(relation)
    return Guarded(above, {name: call for call, name in guards.names.items()})


def guarded_part(call: Call) -> tuple[Expression, ...]:
    """What must be determined for a call to be meaningful: the divisor of a quotient, every element of a
    list.
    """
    if call.function in QUOTIENTS:
        return call.args[1:]
    return call.args if call.function == "list" else ()


@dataclass
class _Guards:
    aggregates: frozenset[str]
    names: dict[Call, str] = field(default_factory=dict)

    def relation(self, relation: Relation) -> tuple[Relation, Meant]:
        match relation:
            case Release() | Choose():
                return relation, {each.name: each.column for each in relation.fields}
            case Project():
                below, meant = self.relation(relation.input)
                columns = tuple((name, self.expression(each, meant)) for name, each in relation.columns)
                return Project(below, columns), {
                    name: substitute(each, meant) for name, each in relation.columns
                }
            case Filter():
                below, meant = self.relation(relation.input)
                return Filter(below, self.expression(relation.predicate, meant)), meant
            case Sort():
                below, meant = self.relation(relation.input)
                by = tuple(
                    replace(each, expression=self.expression(each.expression, meant)) for each in relation.by
                )
                return Sort(below, by), meant
            case Limit() | Distinct():
                below, meant = self.relation(relation.input)
                return replace(relation, input=below), meant
            case _:
                raise AssertionError("not above a release")

    def expression(self, expression: Expression, meant: Meant) -> Expression:
        if not isinstance(expression, Call):
            return expression
        call = replace(expression, args=tuple(self.expression(each, meant) for each in expression.args))
        inlined = substitute(expression, meant)
        assert isinstance(inlined, Call)
        if not any(
            column.name in self.aggregates for part in guarded_part(inlined) for column in columns_of(part)
        ):
            return call
        name = self.names.setdefault(inlined, f"{_PREFIX}{len(self.names)}")
        return Call("case", (Column(name, BOOLEAN), Literal(None, call.type), call), call.type)
