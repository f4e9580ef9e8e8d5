"""An expression goes in; text for people comes out: as they would write it, without casts that only the
engine needs.
"""

from __future__ import annotations

from collections.abc import Mapping

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.functions import BELIEFS
from privsql.algebra.windows import FrameEnd, Window
from privsql.types import Kind


def describe(expression: Expression, names: Mapping[str, str] | None = None) -> str:
    """Readable SQL; `names` says what some columns stand for."""
    match expression:
        case Column(name=name):
            return (names or {}).get(name, name)
        case Literal():
            return _constant(expression)
        case Call(function=function):
            args = [describe(arg, names) for arg in expression.args]
            if infix := BELIEFS[function].infix:
                return f" {infix} ".join(_grouped(a, t) for a, t in zip(expression.args, args, strict=True))
            return _form(expression, args)


def _form(call: Call, args: list[str]) -> str:
    match call.function:
        case "cast":
            number = call.args[0].type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)
            return (
                args[0] if number and call.type.kind is not Kind.TEXT else f"CAST({args[0]} AS {call.type})"
            )
        case "not":
            return f"NOT {_grouped(call.args[0], args[0])}"
        case "neg":
            return f"-{_grouped(call.args[0], args[0])}"
        case "is_null" | "is_true" | "is_false":
            return f"{_grouped(call.args[0], args[0])} IS {call.function[3:].upper()}"
        case "in":
            shown = args[1:] if len(args) <= 9 else [*args[1:8], f"... {len(args) - 8} more"]
            return f"{_grouped(call.args[0], args[0])} IN ({', '.join(shown)})"
        case "list":
            return f"[{', '.join(args)}]"
        case "case":
            whens = " ".join(f"WHEN {c} THEN {v}" for c, v in zip(args[0:-1:2], args[1:-1:2], strict=True))
            return f"CASE {whens} ELSE {args[-1]} END"
        case name:
            return f"{name}({', '.join(args)})"


def _grouped(expression: Expression, text: str) -> str:
    if isinstance(expression, Call) and expression.function == "cast":
        return _grouped(expression.args[0], text)
    return f"({text})" if isinstance(expression, Call) and BELIEFS[expression.function].infix else text


def _constant(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) or hasattr(value, "as_tuple"):
        return str(value)
    return (
        f"INTERVAL {value}"
        if literal.type.kind is Kind.INTERVAL
        else "'" + str(value).replace("'", "''") + "'"
    )


def describe_window(window: Window) -> str:
    """A window function, its partition besides the unit, its order and its frame."""
    args = [describe(window.argument)] if window.argument is not None else []
    if window.number is not None:
        args.append(str(window.number))
    if window.default is not None:
        args.append(describe(window.default))
    if window.function == "count" and window.argument is None:
        args = ["*"]
    by = ", ".join(["the unit", *map(describe, window.by)])
    terms = ((describe(each.expression), " DESC" if each.descending else "") for each in window.order)
    order = ", ".join(f"{term}{direction}" for term, direction in terms)
    parts = [f"PARTITION BY {by}", *([f"ORDER BY {order}"] if order else [])]
    if window.frame is not None:
        start, end = (_frame_end(each) for each in (window.frame.start, window.frame.end))
        parts.append(f"{window.frame.kind} BETWEEN {start} AND {end}")
    return f"{window.function.upper()}({', '.join(args)}) OVER ({' '.join(parts)})"


def _frame_end(end: FrameEnd) -> str:
    if end.distance == 0:
        return "CURRENT ROW"
    far = "UNBOUNDED" if end.distance is None else str(end.distance)
    return f"{far} {'PRECEDING' if end.before else 'FOLLOWING'}"
