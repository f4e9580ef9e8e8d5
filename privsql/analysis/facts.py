"""Facts about columns and a condition go in; the facts about the rows that meet it come out."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.functions import MIRRORED, OPPOSITE, is_strict
from privsql.analysis import rules
from privsql.analysis.domain import Domain, exact, of_values, tighten, union
from privsql.types import BOOLEAN, Kind, Type

Facts = Mapping[Expression, Domain]


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
        case Call():  # pragma: no branch -- nothing else is an expression
            return rules.apply(expression, [domain_of(arg, facts) for arg in expression.args])


def _constant(literal: Literal) -> Domain:
    value = literal.value
    if value is None:
        return Domain(literal.type, nullable=True, empty=True, values=())
    if isinstance(value, float) and not math.isfinite(value):
        return Domain(literal.type, nullable=False, null_is_key=False, empty=True)
    return of_values(literal.type, (value,), nullable=False)


def _case(call: Call, facts: Facts) -> Domain:
    """The domain of a CASE: each branch where its condition holds and no earlier one does."""
    parts = []
    for condition, value in zip(call.args[0:-1:2], call.args[1:-1:2], strict=True):
        parts.append(domain_of(value, refine(facts, condition)))
        facts = _untrue(facts, condition)
    parts.append(domain_of(call.args[-1], facts))
    return union(call.type, parts)


def _untrue(facts: Facts, condition: Expression) -> Facts:
    """Facts about the rows where a condition is false or NULL: just enough to bound a clamp written as
    CASE.
    """
    match condition:
        case Call(function="is_null"):  # never NULL
            return refine(facts, Call("not", (condition,), BOOLEAN))
        case Call(function="<" | "<=" | ">" | ">=" as function, args=(left, right)):
            ends = [each.value for each in (left, right) if isinstance(each, Literal)]
            if (
                len(ends) == 1
                and ends[0] is not None
                and not (isinstance(ends[0], float) and math.isnan(ends[0]))
            ):
                return refine(facts, Call(OPPOSITE[function], (left, right), BOOLEAN), true_or_null=True)
    return facts


# -- conditions ----------------------------------------------------------------------------------------------
def refine(facts: Facts, predicate: Expression, true_or_null: bool = False) -> Facts:
    """Facts about the rows where the predicate is true (a CHECK also lets NULL pass)."""
    for part in conjuncts(predicate):
        new = _stated(facts, part, true_or_null)
        if true_or_null:
            new = {
                each: replace(domain, nullable=old.nullable, null_is_key=old.null_is_key)
                for each, domain in new.items()
                for old in [domain_of(each, facts)]
            }
        else:
            new = {**_present(facts, part), **new}
        facts = {**facts, **new}
    return facts


def _present(facts: Facts, condition: Expression) -> dict[Expression, Domain]:
    """Expressions that are not NULL where a condition is true or false, because NULL would make it NULL."""
    found: dict[Expression, Domain] = {}
    if isinstance(condition, Call) and (condition.function == "in" or is_strict(condition.function)):
        for each in condition.args[:1] if condition.function == "in" else condition.args:
            found.update({} if isinstance(each, Literal) else {each: domain_of(each, facts).not_null()})
            found.update(_present(facts, each))
    return found


def _stated(facts: Facts, part: Expression, true_or_null: bool) -> dict[Expression, Domain]:
    """What a condition implies about the values of the expressions in it, NULL apart."""
    match part:
        case Call(function="or", args=args):
            return _either([refine(facts, arg, true_or_null) for arg in args], facts)
        case Call(function="is_true", args=(inner,)):
            return _learned(facts, refine(facts, inner))
        case Call(function="not", args=(Call(function="is_null", args=(inner,)),)):
            return {inner: domain_of(inner, facts).not_null(), **_present(facts, inner)}
        case Call(function="is_null", args=(inner,)):
            return {inner: Domain(inner.type, nullable=True, empty=True, values=())}
        case Call(function="not", args=(inner,)) if inner.type.kind is Kind.BOOLEAN and isinstance(
            inner, Column
        ):
            return {inner: of_values(BOOLEAN, (False,), nullable=False)}
        case Column() if part.type.kind is Kind.BOOLEAN:
            return {part: of_values(BOOLEAN, (True,), nullable=False)}
        case Call(function="in", args=(inner, *options)) if all(isinstance(o, Literal) for o in options):
            if true_or_null and any(isinstance(o, Literal) and o.value is None for o in options):
                return {}  # never false
            return {inner: tighten(domain_of(inner, facts), values=_constants(options, inner.type))}
        case Call(function="not", args=(Call(function="in", args=(inner, *options)),)):
            return _other_than(facts, inner, options)
        case Call(function="<>", args=(left, right)):
            return (
                _other_than(facts, right, [left])
                if isinstance(left, Literal)
                else _other_than(facts, left, [right])
            )
        case Call(function="not", args=(Call() as inner,)):
            positive = _negated(inner)
            return {} if positive is None else _learned(facts, refine(facts, positive, true_or_null))
        case Call(function="=" | "is_same" | "<" | "<=" | ">" | ">=", args=(left, right)):
            function = part.function
            if isinstance(left, Literal) and not isinstance(right, Literal):
                left, right, function = right, left, MIRRORED.get(function, function)
            if isinstance(right, Literal):
                return _compared(facts, left, function, right.value)
    return {}


def _negated(condition: Call) -> Expression | None:
    """The condition equivalent to NOT of this one in three-valued logic, without the NOT."""
    match condition:
        case Call(function="not", args=(inner,)):
            return inner
        case Call(function="and" | "or" as function, args=args):
            other = "or" if function == "and" else "and"
            return Call(other, tuple(Call("not", (each,), BOOLEAN) for each in args), BOOLEAN)
        case Call(function=function, args=args) if function in OPPOSITE:
            return Call(OPPOSITE[function], args, BOOLEAN)
    return None


def _other_than(facts: Facts, inner: Expression, options: Sequence[Expression]) -> dict[Expression, Domain]:
    """The domain of an expression that is not NULL and equals none of these options."""
    if isinstance(inner, Literal):
        return {}
    rest = domain_of(inner, facts).not_null()
    excluded = set(_constants(options, inner.type))
    if rest.values is not None and excluded:
        rest = of_values(rest.type, (value for value in rest.values if value not in excluded), nullable=False)
    return {inner: rest}


def _constants(options: Sequence[Expression], type_: Type) -> list[Any]:
    return [
        _same_kind(each.value, type_)
        for each in options
        if isinstance(each, Literal) and each.value is not None
    ]


def _learned(before: Facts, after: Facts) -> dict[Expression, Domain]:
    return {each: domain for each, domain in after.items() if before.get(each) != domain}


def _compared(facts: Facts, inner: Expression, operator: str, value: Any) -> dict[Expression, Domain]:
    bound = exact(value)
    if value is None or bound is None or isinstance(inner, Literal):
        return {}
    domain = domain_of(inner, facts)
    through: dict[Expression, Domain] = {}
    if (
        isinstance(inner, Call)
        and inner.function == "cast"
        and inner.args[0].type.kind in (Kind.INTEGER, Kind.DECIMAL)
    ):
        # widening preserves the order, so the bounds hold below the cast as well
        if inner.type.kind in (Kind.DECIMAL, Kind.DOUBLE):
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
        with contextlib.suppress(OverflowError):  # at the ends of Python's calendar the bound itself suffices
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
    """A constant in the representation that the type uses: integers as int, so that sets compare."""
    if type_.kind is Kind.INTEGER and isinstance(value, float) and value == int(value):
        return int(value)
    return value


def _either(branches: list[Facts], facts: Facts) -> dict[Expression, Domain]:
    """Facts that hold in every branch of an OR."""
    touched = {each for branch in branches for each, domain in branch.items() if facts.get(each) != domain}
    return {
        each: _in_order(
            union(each.type, [domain_of(each, branch) for branch in branches]), domain_of(each, facts)
        )
        for each in touched
        if all(each in branch for branch in branches)
    }


def _in_order(found: Domain, before: Domain) -> Domain:
    """The values in the order in which they were declared, not as a condition lists them."""
    if found.values is None or before.values is None or not set(found.values) <= set(before.values):
        return found
    kept = set(found.values)
    return replace(found, values=tuple(value for value in before.values if value in kept))
