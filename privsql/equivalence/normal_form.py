"""An expression goes in; its normal form comes out: equal in every row or, for a condition, true in the same
rows.

As a value, an expression keeps all three truth values: NOT moves down to the comparisons by De Morgan, which
holds for NULL too, and IN becomes OR. As a condition, NULL and FALSE are the same: x IS TRUE is x, and x IS
NOT NULL adds nothing to x > 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain as one_after_another

from privsql.algebra import literals
from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.functions import BELIEFS, OPPOSITE, Nulls, is_strict
from privsql.equivalence.arithmetic import chain, computed, is_whole, kept_type, terms
from privsql.equivalence.comparisons import compared
from privsql.equivalence.written import ARITHMETIC, named_type, stored_type, written
from privsql.types import BOOLEAN, Kind

_TRUE, _FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)
_DUAL = {"and": "or", "or": "and"}


def normal(expression: Expression, required: frozenset[str] = frozenset()) -> Expression:
    """A form with the same value in every row, stored in the same type; columns in `required` are never
    NULL.
    """
    return _Normal(required).value(expression)


def normal_condition(expression: Expression, required: frozenset[str] = frozenset()) -> Expression:
    """A form that is true in the same rows, and FALSE or NULL in the others."""
    return _Normal(required).condition(expression)


def negated(condition: Expression) -> Expression:
    return Call("not", (condition,), BOOLEAN)


def not_null(expression: Expression) -> Expression:
    return negated(Call("is_null", (expression,), BOOLEAN))


def all_of(parts: Sequence[Expression]) -> Expression:
    return Call("and", tuple(parts), BOOLEAN) if parts else _TRUE


@dataclass(frozen=True)
class _Normal:
    required: frozenset[str]

    # -- values --------------------------------------------------------------------------------------------
    def value(self, expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.type.kind is Kind.BOOLEAN:
            return self.logic(expression, True)
        return self.plain(expression) if isinstance(expression, Call) else expression

    def plain(self, call: Call) -> Expression:
        """A call that is not a logical operation."""
        if call.function == "case":
            places = enumerate(call.args)
            both = (
                self.value(arg) if self._is_value(call, place) else self.condition(arg)
                for place, arg in places
            )
            return Call("case", tuple(both), call.type)
        if call.function == "cast" and call.type.kind is Kind.TEXT and call.args[0].type.kind is Kind.DOUBLE:
            return call  # as text, NaN has a sign, and which of two is kept depends on their order
        if is_whole(call, call.function):
            parts = [
                part for each in terms(call, call.function) for part in terms(self.value(each), call.function)
            ]
            found = chain(call.function, parts)
            if found is not None and stored_type(found) == stored_type(call):
                return found
        args = tuple(self.value(arg) for arg in call.args)
        same = Call(call.function, args, call.type)
        if call.function in ARITHMETIC:
            return computed(same)
        match same:
            case Call(function="cast"):
                return _cast(same)
            case Call(function=function, args=(inner,)) if (
                BELIEFS[function].keeps_whole and call.type.kind is Kind.INTEGER
            ):
                return inner
            case Call(function="least" | "greatest", type=type_) if type_.kind is not Kind.DOUBLE:
                # -0.0 and 0.0 are equal but not identical
                return Call(same.function, tuple(sorted(args, key=written)), type_)
        return same

    @staticmethod
    def _is_value(case: Call, place: int) -> bool:
        return place % 2 == 1 or place == len(case.args) - 1

    # -- logic: the value of a condition or of its negation, in three-valued logic -------------------------
    def logic(self, expression: Expression, positive: bool) -> Expression:
        match expression:
            case Literal(value=bool() as value):
                return Literal(value is positive, BOOLEAN)
            case Literal():
                return Literal(None, BOOLEAN)
            case Call(function="not", args=(inner,)):
                return self.logic(inner, not positive)
            case Call(function="and" | "or" as function, args=args):
                return _junction(
                    function if positive else _DUAL[function], (self.logic(arg, positive) for arg in args)
                )
            case Call(function="in", args=(value, *options)):
                tests = (Call("=", (value, option), BOOLEAN) for option in options)
                return _junction("or" if positive else "and", (self.logic(test, positive) for test in tests))
            case Call(function=function, args=(left, right)) if function in OPPOSITE:
                return self._comparison(function if positive else OPPOSITE[function], left, right)
            case Call(function="is_same" | "is_distinct", args=(left, right)):
                return self._sameness(left, right, (expression.function == "is_same") is positive)
            case Call(function="is_null", args=(inner,)):
                return self._missing(inner, positive)
            case Call(function="cast", args=(inner,)) if inner.type.kind is Kind.BOOLEAN:
                return self.logic(inner, positive)
            case Call():
                asked = _truth_test(expression)
                if asked is not None:
                    return self._certainly(asked[0], asked[1] is positive)
                atom = self.plain(expression)
            case Column():
                atom = expression
        return atom if positive else negated(atom)

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Expression:
        left, right = self.value(left), self.value(right)
        for one, other in ((left, right), (right, left)):
            match one, operator:
                case Literal(value=bool() as value), "=" | "<>":  # p = TRUE is p, for NULL as well
                    return self.logic(other, value is (operator == "="))
        return compared(operator, left, right)

    def _sameness(self, left: Expression, right: Expression, same: bool) -> Expression:
        """IS NOT DISTINCT FROM, or its negation."""
        one, other = self.value(left), self.value(right)
        for first, second in ((one, other), (other, one)):
            match first:
                case Literal(value=None):
                    return self._missing(second, same)
                case Literal(value=bool() as value):
                    return self._certainly(second if value else negated(second), same)
        if written(one) == written(other):
            return Literal(same, BOOLEAN)
        if self._never_null(one) and self._never_null(other):
            return compared("=" if same else "<>", one, other)
        return compared("is_same" if same else "is_distinct", one, other)

    def _missing(self, inner: Expression, positive: bool) -> Expression:
        """IS NULL, or its negation."""
        match self.value(inner):
            case Literal(value=value):
                return Literal((value is None) is positive, BOOLEAN)
            case known if self._never_null(known):
                return Literal(not positive, BOOLEAN)
            case Call(function="not", args=(test,)):
                return self._missing(test, positive)
            case Call(function=function, args=args) if function in OPPOSITE:
                return _junction("or" if positive else "and", (self._missing(arg, positive) for arg in args))
            case Call(function="case", args=(test, value, Literal(value=None))):
                there = all_of([Call("is_true", (test,), BOOLEAN), not_null(value)])
                return self.logic(there, not positive)
            case known:
                test = Call("is_null", (known,), BOOLEAN)
                return test if positive else negated(test)

    def _certainly(self, inner: Expression, positive: bool) -> Expression:
        """IS TRUE, or its negation: never NULL."""
        condition = self.condition(inner)
        if self._never_null(condition):
            return self.logic(condition, positive)
        test = Call("is_true", (condition,), BOOLEAN)
        return test if positive else negated(test)

    def _never_null(self, expression: Expression) -> bool:
        match expression:
            case Literal(value=value):
                return value is not None
            case Column(name=name):
                return name in self.required
            case Call(function=function, type=type_) if (
                BELIEFS[function].nulls is Nulls.NEVER and type_.kind is Kind.BOOLEAN
            ):
                return True
            case Call(function=function, args=args) if function in OPPOSITE or function in (
                "and",
                "or",
                "not",
            ):
                return all(map(self._never_null, args))
            case Call(function="coalesce", args=args):
                return any(map(self._never_null, args))
            case Call(function="case", args=args):
                return all(
                    self._never_null(arg)
                    for place, arg in enumerate(args)
                    if self._is_value(expression, place)
                )
        return False

    # -- conditions: where they are true -------------------------------------------------------------------
    def condition(self, expression: Expression) -> Expression:
        return self._true(self.logic(expression, True))

    def _true(self, expression: Expression) -> Expression:
        match expression:
            case Literal(value=value):
                return _TRUE if value is True else _FALSE
            case Call(function="is_true", args=(inner,)):
                return self._true(inner)
            case Call(function="is_same", args=(left, right)) if self._never_null(left) or self._never_null(
                right
            ):
                return compared("=", left, right)
            case Call(function="or", args=args):
                return _junction("or", map(self._true, args))
            case Call(function="and", args=args):
                return without_needless(_junction("and", map(self._true, args)))
        return expression


def _truth_test(call: Call) -> tuple[Expression, bool] | None:
    """The test inside a call that is never NULL, and the call's value where the test is true; None
    otherwise.
    """
    match call:
        case Call(function="is_true", args=(test,)):
            return test, True
        case Call(function="is_false", args=(test,)):
            return negated(test), True
        case Call(function="case", args=(test, Literal(value=True), Literal(value=False))):
            return test, True
        case Call(function="case", args=(test, Literal(value=False), Literal(value=True))):
            return test, False
        case Call(function="coalesce", args=(test, Literal(value=bool() as otherwise))):
            # COALESCE(p, FALSE) is p IS TRUE; COALESCE(p, TRUE) is NOT (NOT p IS TRUE)
            return (negated(test), False) if otherwise else (test, True)
        case _:
            return None


def without_needless(condition: Expression) -> Expression:
    """A conjunction without those IS NOT NULL parts that its other parts imply."""
    parts = conjuncts(condition)
    kept = [part for part in parts if _presumed(part) is None]
    known = frozenset[str]().union(*map(there, kept))
    kept += [part for part in parts if (value := _presumed(part)) is not None and value not in known]
    return _junction("and", kept)


def both(conditions: Sequence[Expression], others: Sequence[Expression]) -> Expression:
    """The conjunction of conditions that are in normal form already."""
    return without_needless(_junction("and", [*conditions, *others]))


def _presumed(part: Expression) -> str | None:
    """The text of the expression that a part tests for IS NOT NULL, if that is all it tests."""
    match part:
        case Call(function="not", args=(Call(function="is_null", args=(inner,)),)):
            return written(inner)
    return None


def there(condition: Expression) -> frozenset[str]:
    """The texts of the expressions that cannot be NULL in a row where the condition is true."""
    match condition:
        case Call(function="and", args=args):
            return frozenset().union(*map(there, args))
        case Call(function="or", args=args):
            return frozenset.intersection(*map(there, args))
        case Call(function="not", args=(Call(function="is_null", args=(inner,)),)):
            return _with_parts(inner)
        case Call(function="not", args=(Call(function="is_true"),)):
            return frozenset()
        case _:
            return _with_parts(condition)


def _with_parts(expression: Expression) -> frozenset[str]:
    """The text of an expression that is not NULL, and of all its operands that cannot be NULL then."""
    inner: Iterable[frozenset[str]] = ()
    if isinstance(expression, Call) and is_strict(expression.function):
        inner = map(_with_parts, expression.args)
    return frozenset(one_after_another([written(expression)], *inner))


def _junction(function: str, parts: Iterable[Expression]) -> Expression:
    """AND or OR of parts in normal form: flat, sorted, without duplicates or constants that decide
    nothing.
    """
    found: dict[str, Expression] = {}
    for part in parts:
        for each in part.args if isinstance(part, Call) and part.function == function else (part,):
            found[written(each)] = each
    deciding, idle = (_FALSE, _TRUE) if function == "and" else (_TRUE, _FALSE)
    if written(deciding) in found:
        return deciding
    found.pop(written(idle), None)
    kept = tuple(found[each] for each in sorted(found))
    return idle if not kept else kept[0] if len(kept) == 1 else Call(function, kept, BOOLEAN)


def _cast(cast: Call) -> Expression:
    """A cast in normal form: dropped if it has no effect, computed for a constant. A cast of an integer skips
    wider intermediate types.
    """
    (inner,) = cast.args
    if isinstance(inner, Literal):
        converted = literals.convert(inner, cast.type)
        return cast if converted is None else kept_type(converted, cast)
    if inner.type == cast.type and stored_type(inner) == named_type(cast.type):
        return inner
    match inner:
        case Call(function="cast", args=(first,), type=by) if first.type.kind is by.kind is Kind.INTEGER:
            if by.low <= first.type.low and first.type.high <= by.high:
                return _cast(Call("cast", (first,), cast.type))
    return cast
