"""A relation goes in; the domain of each of its columns comes out, bottom-up, tightened by WHERE and CHECK."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privsql.analysis import rules
from privsql.analysis.domain import Domain, exact, of_values, tighten, union
from privsql.sql.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.sql.relations import (
    Claim,
    Filter,
    Project,
    Relation,
    Scan,
    UnionAll,
    Unpivot,
    Values,
)
from privsql.types import BOOLEAN, TEXT, Kind, Type

Facts = Mapping[Expression, Domain]


def derive(relation: Relation) -> Facts:
    """What is known of the columns (and of filtered expressions) of a relation over rows."""
    match relation:
        case Scan():
            facts: Facts = {each.column: _claimed(each.type, relation.claims[each.name]) for each in relation.fields}
            for check in relation.checks:
                facts = refine(facts, check, true_or_null=True)
            return facts
        case Values():
            return {
                each.column: union(each.type, [domain_of(row[index], {}) for row in relation.rows])
                for index, each in enumerate(relation.fields)
            }
        case Filter():
            return refine(derive(relation.input), relation.predicate)
        case Project():
            below = derive(relation.input)
            return {Column(name, each.type): domain_of(each, below) for name, each in relation.columns}
        case UnionAll():
            parts = [derive(each) for each in relation.inputs]
            return {
                each.column: union(
                    each.type,
                    [part[side.fields[index].column] for part, side in zip(parts, relation.inputs, strict=True)],
                )
                for index, each in enumerate(relation.fields)
            }
        case Unpivot():
            below = derive(relation.input)
            on = [domain_of(Column(name, relation.value.type), below) for name, _ in relation.on]
            facts = {
                column: domain for column, domain in below.items() if column in {f.column for f in relation.fields}
            }
            labels = of_values(TEXT, [label for _, label in relation.on], nullable=False)
            return {**facts, Column(relation.name, TEXT): labels, relation.value.column: union(relation.value.type, on)}
        case _:
            raise AssertionError("only relations over rows have domains")


def _claimed(type_: Type, claim: Claim) -> Domain:
    if claim.values is not None:
        domain = of_values(type_, claim.values, claim.nullable, claim.null_is_key)
        if claim.low is None:
            return domain
        within = tighten(domain, exact(claim.low), exact(claim.high))
        return replace(within, nullable=claim.nullable, null_is_key=domain.null_is_key)
    low, high = exact(claim.low), exact(claim.high)
    if low is None and type_.kind is Kind.INTEGER and type_.high - type_.low < 2**17:
        low, high = Fraction(type_.low), Fraction(type_.high)  # TINYINT and SMALLINT are ranges by themselves
    return Domain(type_, claim.nullable, claim.null_is_key, low, high)


def domain_of(expression: Expression, facts: Facts) -> Domain:
    """The domain of an expression over columns with known facts."""
    known = facts.get(expression)
    if known is not None:
        return known
    match expression:
        case Column():
            return Domain(expression.type)
        case Literal():
            return _constant(expression)
        case Call(function="case"):
            return _case(expression, facts)
        case Call():
            return rules.apply(expression, [domain_of(arg, facts) for arg in expression.args])


def _constant(literal: Literal) -> Domain:
    value = literal.value
    if value is None:
        return Domain(literal.type, nullable=True, empty=True, values=())
    if isinstance(value, float) and not math.isfinite(value):
        return Domain(literal.type, nullable=False, null_is_key=False, empty=True)
    return of_values(literal.type, (value,), nullable=False)


def _case(call: Call, facts: Facts) -> Domain:
    """Each branch where its condition holds; the branches before it are only known not to have been taken."""
    parts = []
    for condition, value in zip(call.args[0:-1:2], call.args[1:-1:2], strict=True):
        parts.append(domain_of(value, refine(facts, condition)))
    parts.append(domain_of(call.args[-1], facts))
    return union(call.type, parts)


# -- conditions ----------------------------------------------------------------------------------------------
def refine(facts: Facts, predicate: Expression, true_or_null: bool = False) -> Facts:
    """What is known of the rows where the predicate is true (a CHECK also lets NULL pass)."""
    for part in conjuncts(predicate):
        new = _learn(facts, part)
        if true_or_null:
            new = {
                each: replace(domain, nullable=old.nullable, null_is_key=old.null_is_key)
                for each, domain in new.items()
                for old in [domain_of(each, facts)]
            }
        facts = {**facts, **new}
    return facts


_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "is_same": "is_same"}


def _learn(facts: Facts, part: Expression) -> dict[Expression, Domain]:
    match part:
        case Call(function="or", args=args):
            return _either([refine(facts, arg) for arg in args], facts)
        case Call(function="is_true", args=(inner,)):
            return dict(_learn_all(facts, inner))
        case Call(function="not", args=(Call(function="is_null", args=(inner,)),)):
            return {inner: domain_of(inner, facts).not_null()}
        case Call(function="is_null", args=(inner,)):
            return {inner: Domain(inner.type, nullable=True, empty=True, values=())}
        case Call(function="not", args=(inner,)) if inner.type.kind is Kind.BOOLEAN and isinstance(inner, Column):
            return {inner: of_values(BOOLEAN, (False,), nullable=False)}
        case Column() if part.type.kind is Kind.BOOLEAN:
            return {part: of_values(BOOLEAN, (True,), nullable=False)}
        case Call(function="in", args=(inner, *options)) if all(isinstance(o, Literal) for o in options):
            listed = [o.value for o in options if isinstance(o, Literal) and o.value is not None]
            return {inner: tighten(domain_of(inner, facts), values=[_same_kind(v, inner.type) for v in listed])}
        case Call(function="<>", args=(left, right)):
            if isinstance(left, Literal):
                left, right = right, left
            rest = domain_of(left, facts).not_null()
            if isinstance(right, Literal) and right.value is not None and rest.values is not None:
                rest = of_values(
                    rest.type, (v for v in rest.values if v != _same_kind(right.value, left.type)), nullable=False
                )
            return {} if isinstance(left, Literal) else {left: rest}
        case Call(function=function, args=(left, right)) if function in _FLIPPED:
            if isinstance(left, Literal) and not isinstance(right, Literal):
                left, right, function = right, left, _FLIPPED[function]
            if isinstance(right, Literal):
                return _compared(facts, left, function, right.value)
            if function != "is_same":
                return {side: domain_of(side, facts).not_null() for side in (left, right)}
    return {}


def _learn_all(facts: Facts, predicate: Expression) -> Facts:
    learned = refine(facts, predicate)
    return {each: domain for each, domain in learned.items() if facts.get(each) != domain}


def _compared(facts: Facts, inner: Expression, operator: str, value: Any) -> dict[Expression, Domain]:
    bound = exact(value)
    if value is None or bound is None or isinstance(inner, Literal):
        return {}
    domain = domain_of(inner, facts)
    through: dict[Expression, Domain] = {}
    if isinstance(inner, Call) and inner.function == "cast" and inner.args[0].type.kind in (Kind.INTEGER, Kind.DECIMAL):
        if inner.type.kind in (Kind.DECIMAL, Kind.DOUBLE):  # widening keeps order: what is learned holds below the cast
            through = _compared(facts, inner.args[0], operator, value)
    return {**through, **_compared_directly(inner, domain, operator, value, bound)}


def _compared_directly(
    inner: Expression, domain: Domain, operator: str, value: Any, bound: Any
) -> dict[Expression, Domain]:
    if inner.type.kind is Kind.INTEGER and operator in ("=", "is_same") and bound != math.floor(bound):
        return {inner: Domain(inner.type, nullable=False, null_is_key=False, empty=True, values=())}
    if inner.type.kind is Kind.TEXT and operator not in ("=", "is_same"):
        if domain.values is None:
            return {inner: domain.not_null()}
    if operator in ("=", "is_same"):
        return {inner: tighten(domain, values=[_same_kind(value, inner.type)])}
    below = operator in ("<", "<=")
    step = _STEPS.get(inner.type.kind) if operator in ("<", ">") else None
    if step is not None and (inner.type.kind is not Kind.INTEGER or bound == math.floor(bound)):
        with contextlib.suppress(OverflowError):  # at the ends of Python's calendar the bound itself will do
            bound = bound - step if below else bound + step
    found = tighten(domain, high=bound) if below else tighten(domain, low=bound)
    if operator in ("<", ">") and found.values is not None:
        found = of_values(found.type, (v for v in found.values if exact(v) != exact(value)), nullable=False)
    return {inner: found}


# The distance to the next value of a type, for strict comparisons.
_STEPS: dict[Kind, Any] = {
    Kind.INTEGER: 1,
    Kind.DATE: dt.timedelta(days=1),
    Kind.TIMESTAMP: dt.timedelta(microseconds=1),
}


def _same_kind(value: Any, type_: Type) -> Any:
    """A constant as the values of that type are kept: whole numbers as int, so that sets compare."""
    if type_.kind is Kind.INTEGER and isinstance(value, float) and value == int(value):
        return int(value)
    return value


def _either(branches: list[Facts], facts: Facts) -> dict[Expression, Domain]:
    """What holds in every branch of an OR."""
    touched = {each for branch in branches for each, domain in branch.items() if facts.get(each) != domain}
    return {
        each: union(each.type, [domain_of(each, branch) for branch in branches])
        for each in touched
        if all(each in branch for branch in branches)
    }
