"""An expression or a relation goes in; a text comes out that is equal only for what is computed in the same
way.

Expressions are sorted and compared by this text. It contains the type in which the engine stores each result,
but not the bounds that only the analysis uses: `age + 1` has one text wherever it is INTEGER, while 1, 1.0
and '1' have different ones.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.functions import BELIEFS
from privsql.types import INTEGER_BOUNDS, Kind, Type, integer

ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "neg"})


def written(expression: Expression) -> str:
    """The expression as text: its functions, constants, columns and the types they are stored in."""
    match expression:
        case Column(name=name):
            return f"column {name!r}:{stored_type(expression)}"  # a constant may have the same text: a = 'a'
        case Literal():
            return _constant(expression)
        case Call():
            return _call(expression)


@lru_cache(maxsize=4096)  # sorting asks for the same texts again and again
def _call(call: Call) -> str:
    kind = "" if call.type.kind is Kind.BOOLEAN else f":{stored_type(call)}"
    return f"{call.function}{kind}({', '.join(map(written, call.args))})"


def _constant(literal: Literal) -> str:
    value = literal.value
    match value:
        case None | str() | bool():
            shown = repr(value)
        case int() | float() if literal.type.kind is Kind.DOUBLE:
            shown = repr(float(value))
        case Decimal():
            shown = f"{value:f}"
        case dt.date() | dt.time():
            shown = value.isoformat()
        case _:
            shown = str(value)
    return f"{shown}:{stored_type(literal)}"


def stored_type(expression: Expression) -> str:
    """The engine's type of an expression as rendered. A sum is computed, and kept, in a type that also holds
    its operands.
    """
    match expression:
        case Literal(value=int() as value) if expression.type.kind is Kind.INTEGER:
            return str(integer(value, value))
        case Literal():
            return str(expression.type)
        case Column(type=type_) | Call(function="cast", type=type_):
            return named_type(type_)
        case Call(function=function, type=type_) if function in ARITHMETIC:
            types = [type_, *(arg.type for arg in expression.args)]
            if any(each.kind is not Kind.INTEGER for each in types):
                return str(type_)
            return str(integer(min(each.low for each in types), max(each.high for each in types)))
        case Call(args=(inner,), type=type_) if (
            BELIEFS[expression.function].keeps_whole and type_.kind is Kind.INTEGER
        ):
            return stored_type(inner)
        case Call(function="nullif", args=(inner, _)):
            return stored_type(inner)
        case Call(type=type_):
            return str(type_)


def named_type(type_: Type) -> str:
    """The engine's type with exactly these bounds, as in a cast or a table's column."""
    exact = (name for name, bounds in INTEGER_BOUNDS.items() if bounds == (type_.low, type_.high))
    return str(next(exact, str(type_)) if type_.kind is Kind.INTEGER else type_)


def structure(value: Any) -> str:
    """A dataclass tree as text, names included, but without source positions and claims."""
    found: list[str] = []
    pending: list[Any] = [value]  # no recursion: it must also handle trees that are too deep for it
    while pending:
        each = pending.pop()
        match each:
            case _Written():
                found.append(each)
            case Enum():
                found.append(each.name)
            case _ if is_dataclass(each):
                parts = [(f.name, getattr(each, f.name)) for f in fields(each) if f.name not in _LEFT_OUT]
                named = [part for name, part in parts for part in (_Written(f" {name}="), part)]
                pending += [_Written(")"), *reversed(named), _Written(f"{type(each).__name__}(")]
            case tuple() | list():
                pending += [
                    _Written("]"),
                    *reversed([part for one in each for part in (one, _Written(","))]),
                    _Written("["),
                ]
            case frozenset() | set():
                found.append(f"{{{', '.join(sorted(map(structure, each)))}}}")
            case Mapping():
                found.append(
                    f"{{{', '.join(sorted(f'{structure(k)}: {structure(v)}' for k, v in each.items()))}}}"
                )
            case _:
                found.append(repr(each))
    return "".join(found)


class _Written(str):
    """Text that is already written."""


# of a table's name and its location, the name tells tables apart
_LEFT_OUT = ("place", "claims", "checks", "text", "assumed", "location")


def digest(text: str) -> str:
    """A short name for a long text; two texts with the same name are practically impossible."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def short_digest(value: Any) -> str:
    """A name for a structure, short enough to be part of a table name."""
    return digest(structure(value))[:12]
