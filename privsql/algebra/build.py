"""Typed expressions go in, with what is to be done to them; one typed expression comes out, or a reason why
not.

Every value is brought to the type it is computed in here, so that DuckDB has nothing left to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from privsql.algebra import literals
from privsql.algebra.expressions import Call, Expression, Literal, size_of
from privsql.algebra.functions import FUNCTIONS, Function, common, kind_of, result_type
from privsql.algebra.patterns import check_constants
from privsql.errors import Place, Refused, SqlError
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    MOMENTS,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
    integer,
)

MAX_SIZE = 10_000
_OF_NULL = {
    "text": TEXT,
    "bool": BOOLEAN,
    "int": BIGINT,
    "moment": TIMESTAMP,
    "alike": TIMESTAMP,
    "clock": TIMESTAMP,
}


def small(value: Expression) -> Expression:
    """The value, if it is not too large once written out: what is compared twice at each of many levels grows
    beyond bounds.
    """
    if size_of(value) > MAX_SIZE:
        raise SqlError(
            "sql-too-long",
            "an expression becomes too large once it is written out",
            "refer to them less often",
        )
    return value


def true() -> Literal:
    return Literal(True, BOOLEAN)


def call(name: str, args: Sequence[Expression]) -> Expression:
    """A function of the table, with its arguments checked and brought to the types it takes."""
    function = FUNCTIONS[name]
    takes = _expand(function, len(args))
    if takes is None:
        raise SqlError(
            "sql-arguments",
            f"{name} takes {_signature(function)}, not {len(args)} arguments",
            "give it those arguments",
        )
    bound = tuple(_argument(function, each, want) for each, want in zip(args, takes, strict=True))
    # of two types DuckDB would cast one, and fail where a TIMESTAMP does not reach that DATE
    if "alike" in takes:
        first = takes.index("alike")
        bound = (*bound[:first], *same_type(bound[first:]))
    check_constants(name, takes, bound)
    return Call(name, bound, function.gives([each.type for each in bound]))


def _argument(function: Function, value: Expression, want: str) -> Expression:
    value = literals.text_constant(value) if want.isupper() else value
    if want.isupper() and not isinstance(value, Literal):
        raise Refused(
            "refused-pattern",
            f"This argument of {function.name} must be a constant: one that comes from a row could fail "
            "there.",
            "Write a constant, as in LIKE 'A%'.",
        )
    kind = value.type.kind
    if kind is Kind.NULL:
        return Literal(None, _OF_NULL.get(kind_of(want), DOUBLE))
    match kind_of(want):
        case "any":
            return value
        case "num" if kind in NUMBERS:
            return value
        case "double" if kind in NUMBERS:
            return convert(value, DOUBLE)
        case "int" if kind is Kind.INTEGER:
            return convert(value, BIGINT) if value.type.is_wide else value
        case "text" if kind is Kind.TEXT:
            return value
        case "bool" if kind is Kind.BOOLEAN:
            return value
        case "moment" | "alike" | "clock" if kind in MOMENTS:
            return value
        case "clock" if kind is Kind.TIME:
            return value
        case "moment" | "alike" | "clock" if isinstance(value, Literal) and kind is Kind.TEXT:
            return convert(value, TIMESTAMP)
    raise type_error(
        f"{function.name} takes {_signature(function)}, not {value.type}", suggestion="cast the argument"
    )


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    return Call(operator, tuple(comparable(with_truths([left, right]))), BOOLEAN)


def comparable(values: Sequence[Expression]) -> list[Expression]:
    """Values brought to one type in which two constants are equal only where they are written alike: not so
    30 days and 1 month.
    """
    found = same_type(values)
    if any(each.type.kind is Kind.INTERVAL for each in found):
        raise type_error(
            "intervals cannot be compared here",
            suggestion="compare dates, or date_diff('day', a, b) with a number",
        )
    return found


def arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    kinds = (left.type.kind, right.type.kind)
    if kinds[0] in MOMENTS or kinds[1] in MOMENTS:
        return _moment_arithmetic(operator, left, right)
    left, right = (as_number(each, operator) for each in (left, right))
    divisor = right.value if isinstance(right, Literal) and isinstance(right.value, int) else None
    result = result_type(operator, left.type, right.type, divisor)
    if operator == "//" and result.kind is not Kind.INTEGER:
        raise type_error("// divides whole numbers only", suggestion="write floor(a / b)")
    return Call(operator, (left, right), result)


def _moment_arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    match (operator, left.type.kind, right.type.kind):
        case ("+" | "-", Kind.DATE | Kind.TIMESTAMP, Kind.INTERVAL):
            return Call("date_add", (left, _signed(operator, right)), TIMESTAMP)
        case ("+", Kind.INTERVAL, Kind.DATE | Kind.TIMESTAMP):
            return Call("date_add", (right, left), TIMESTAMP)
        case ("+" | "-", Kind.DATE, Kind.INTEGER):
            days = right if operator == "+" else negate(right)
            return Call("date_shift", (left, convert(days, integer(*INTEGER_BOUNDS["INTEGER"]))), DATE)
        case ("-", Kind.DATE, Kind.DATE):
            return Call("date_minus", (left, right), BIGINT)
    raise type_error(
        f"{left.type} {operator} {right.type} has no rule",
        suggestion="use date_diff('day', a, b) or d + INTERVAL 1 DAY",
    )


def _signed(operator: str, value: Expression) -> Expression:
    if operator == "+":
        return value
    if not isinstance(value, Literal) or value.value is None:
        raise type_error("an interval must be written out as a constant", suggestion="INTERVAL 3 DAY")
    amount, unit = str(value.value).split(" ")
    return Literal(f"{-int(amount)} {unit}", value.type)


def negate(value: Expression) -> Expression:
    value = as_number(value, "-")
    if isinstance(value, Literal) and value.value is not None:
        # Python's minus rounds a Decimal to 28 digits
        negated: Any = value.value.copy_negate() if isinstance(value.value, Decimal) else 0 - value.value
        return Literal(negated, integer(negated, negated) if value.type.kind is Kind.INTEGER else value.type)
    return Call("neg", (value,), result_type("-", integer(0, 0), value.type, None))


def no_intervals(place: Place | None) -> Refused:
    return Refused(
        "refused-type",
        "Intervals are not supported as keys, in COUNT(DISTINCT ...) and as results within a unit: 30 days "
        "and "
        "1 month are equal and look different.",
        "Compute days: date_diff('day', a, b).",
        place,
    )


def not_a_list(value: Expression) -> Expression:
    """The value, if something can be done with it."""
    if value.type.kind is Kind.LIST:
        raise Refused(
            "refused-list",
            "A list of quantiles can be shown only; nothing can be computed from it.",
            "Ask for each quantile by itself: quantile_cont(x, 0.25), quantile_cont(x, 0.5).",
        )
    return value


def unify(name: str, args: list[Expression]) -> Expression:
    unified = same_type(args) if name == "coalesce" else comparable(args)
    return Call(name, tuple(unified), shared_type(unified))


def convert(value: Expression, to: Type, explicit: bool = False) -> Expression:
    """A cast; of a literal, the literal read as that type."""
    if isinstance(value, Literal):
        converted = literals.convert(value, to)
        if converted is not None:
            return converted
        if not explicit:
            raise type_error(f"this constant is not a {to}")
    return value if value.type == to and not explicit else Call("cast", (value,), to)


def with_truths(values: Sequence[Expression]) -> list[Expression]:
    """Values to be compared: beside a BOOLEAN the constants 1 and 0 are true and false, in every
    comparison.
    """
    numbers = [each for each in values if each.type.kind is Kind.INTEGER]
    kinds = {each.type.kind for each in values} - {Kind.NULL}
    if kinds != {Kind.BOOLEAN, Kind.INTEGER} or not all(
        isinstance(each, Literal) and each.value in (0, 1) for each in numbers
    ):
        return list(values)
    return [
        Literal(each.value == 1, BOOLEAN)
        if isinstance(each, Literal) and each.type.kind is Kind.INTEGER
        else each
        for each in values
    ]


def same_type(values: Sequence[Expression]) -> list[Expression]:
    """Values brought to one type, so that DuckDB has nothing left to decide."""
    kinds = {each.type.kind for each in values}
    if kinds - {Kind.NULL} == {Kind.BOOLEAN, Kind.INTEGER}:  # true is 1 beside whole numbers
        values = [
            Call("cast", (each,), integer(0, 1)) if each.type.kind is Kind.BOOLEAN else each
            for each in values
        ]
    if len(kinds - {Kind.NULL, Kind.TEXT}) and Kind.TEXT in kinds:
        # 'constants' next to other types are read as those types, as SQL does
        goal = common([each.type for each in values if each.type.kind is not Kind.TEXT])
        if goal is not None and goal.kind is not Kind.NULL:
            wide = BIGINT if goal.kind is Kind.INTEGER else goal
            values = [
                _constant(each, wide) if isinstance(each, Literal) and each.type.kind is Kind.TEXT else each
                for each in values
            ]
    goal = common([each.type for each in values])
    if goal is None:
        shown = " and ".join(sorted({str(each.type) for each in values}))
        raise type_error(f"{shown} do not go together", suggestion="cast one of them")
    if goal.kind is Kind.NULL:
        goal = TEXT
    if goal.kind is Kind.DOUBLE:
        return [convert(each, goal) for each in values]
    return [
        each if each.type.kind is goal.kind and goal.kind is not Kind.DECIMAL else convert(each, goal)
        for each in values
    ]


def _constant(value: Literal, to: Type) -> Expression:
    converted = literals.convert(value, to)
    if converted is None and to.kind is Kind.INTEGER:
        converted = literals.convert(value, DOUBLE)
        # DuckDB would round it: 'x > 50.5' has no one meaning
        if converted is not None and converted.value % 1 != 0:
            converted = None
    if converted is None and to.kind is Kind.DATE:
        converted = literals.convert(value, TIMESTAMP)
    if converted is None:
        raise type_error(
            f"this text constant cannot be read as {to}",
            suggestion="write a constant of that type, as in DATE '2024-01-31' or 42",
        )
    return converted


def as_number(value: Expression, operator: str) -> Expression:
    if value.type.kind is Kind.NULL:
        return Literal(None, DOUBLE)
    if value.type.kind not in NUMBERS:
        texts = operator == "+" and value.type.kind is Kind.TEXT
        hint = "cast it, or join texts: concat(a, b)" if texts else "cast it"
        raise type_error(f"{operator} needs numbers, this is {value.type}", suggestion=hint)
    return value


def as_text(value: Expression) -> Expression:
    return value if value.type.kind in (Kind.TEXT, Kind.NULL) else Call("cast", (value,), TEXT)


def _expand(function: Function, count: int) -> list[str] | None:
    """The argument kinds for a call with that many arguments, or None."""
    takes: list[str] = []
    for want in function.takes:
        if want.endswith("*"):
            takes += [want[:-1]] * max(0, count - len(takes))
        elif want.endswith("?"):
            takes += [want[:-1]] if len(takes) < count else []
        else:
            takes.append(want)
    return takes if len(takes) == count else None


def null_if_any(values: Sequence[Expression], result: Expression) -> Expression:
    """The result, or NULL where one of the values is NULL."""
    doubtful = [each for each in values if not isinstance(each, Literal) or each.value is None]
    if not doubtful:
        return result
    tests = tuple(Call("is_null", (each,), BOOLEAN) for each in doubtful)
    missing = tests[0] if len(tests) == 1 else Call("or", tests, BOOLEAN)
    return Call("case", (missing, Literal(None, result.type), result), result.type)


def shared_type(values: Sequence[Expression]) -> Type:
    """The type of values that same_type brought together: whole numbers keep their own bounds, so it must
    hold them all.
    """
    shared = common([each.type for each in values])
    assert shared is not None
    return shared


def _signature(function: Function) -> str:
    words = {
        "num": "a number",
        "double": "a number",
        "int": "a whole number",
        "moment": "a date or timestamp",
        "alike": "a date or timestamp",
        "clock": "a date, timestamp or time",
    }
    kinds = [kind_of(each) for each in function.takes]
    shown = [words.get(kind, kind) for kind in kinds]
    return f"({', '.join(shown)})"


def type_error(message: str, place: Place | None = None, suggestion: str = "") -> SqlError:
    return SqlError("sql-type", message, suggestion, place)
