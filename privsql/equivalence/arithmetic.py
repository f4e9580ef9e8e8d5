"""A sum, product or quotient of normal operands goes in; its normal form comes out, with constants folded and
terms sorted.

Integers are computed in types that cannot overflow, so their sums and products may be reordered. Sums of
DOUBLEs may not: only the two operands of one operation are swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.functions import result_type
from privsql.equivalence.written import stored_type, written
from privsql.types import Kind, integer


def kept_type(new: Expression, old: Expression) -> Expression:
    """The new form if the engine stores it in the same type as the old one, else the old one."""
    return new if stored_type(new) == stored_type(old) else old


def computed(call: Call) -> Expression:
    """The normal form of + - * / // % and negation, whose operands are already in normal form."""
    known = [whole_constant(arg) for arg in call.args]
    if call.type.kind is Kind.INTEGER and None not in known:
        value = _folded(call.function, [each for each in known if each is not None])
        if value is not None:
            return kept_type(Literal(value, integer(value, value)), call)
    if call.function not in ("+", "*"):
        return call
    return Call(call.function, tuple(sorted(call.args, key=written)), call.type)


def whole_constant(expression: Expression) -> int | None:
    """The value of an integer literal."""
    match expression:
        case Literal(value=int() as value) if expression.type.kind is Kind.INTEGER and not isinstance(
            value, bool
        ):
            return value
    return None


def _folded(function: str, values: Sequence[int]) -> int | None:
    match function, values:
        case "+", (a, b):
            result = a + b
        case "-", (a, b):
            result = a - b
        case "*", (a, b):
            result = a * b
        case "neg", (a,):
            result = -a
        case "//", (a, b) if b:
            # rounds towards zero, as the engine does
            result = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "%", (a, b) if b:
            result = abs(a) % abs(b) * (-1 if a < 0 else 1)
        case _:
            return None
    return result if integer(result, result).kind is Kind.INTEGER else None


def is_whole(expression: Expression, function: str) -> bool:
    """Whether this is a sum, or a product, of integers."""
    if not isinstance(expression, Call) or expression.function != function or function not in ("+", "*"):
        return False
    return all(each.type.kind is Kind.INTEGER for each in (expression, *expression.args))


def terms(expression: Expression, function: str) -> list[Expression]:
    """The terms of a sum or the factors of a product, however it is nested."""
    found, pending = [], [expression]
    while pending:
        each = pending.pop()
        if isinstance(each, Call) and is_whole(each, function):
            pending.extend(each.args)
        else:
            found.append(each)
    return found


def chain(function: str, parts: Sequence[Expression]) -> Expression | None:
    """a + (1 + b) + 2 as ((a + b) + 3); None where an intermediate result would not be an integer any
    more.
    """
    rest = sorted((each for each in parts if whole_constant(each) is None), key=written)
    constants = [each for each in map(whole_constant, parts) if each is not None]
    if constants:
        value = reduce(lambda a, b: a + b if function == "+" else a * b, constants)
        rest.append(Literal(value, integer(value, value)))
    result = rest[0]
    for part in rest[1:]:
        type_ = result_type(function, result.type, part.type, None)
        if type_.kind is not Kind.INTEGER or part.type.kind is not Kind.INTEGER:
            return None
        result = Call(function, (result, part), type_)
    return result
