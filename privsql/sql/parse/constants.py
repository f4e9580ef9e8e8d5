"""The parameters of a query and the time it was asked go in; they stand in its tree as constants.

`?`, `$1`, `$name`, `:name` and `@name` are parameters. `now()`, `current_date` and their kin are read once
for a request, in UTC, before anything is charged, so that all its releases agree on the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import ArgumentError

Parameter = tuple[str, str, str | None]  # its name or number, its type, its value as text
_DATES = ("CURDATE", "TODAY", "GET_CURRENT_DATE")
_MOMENTS = (
    "NOW",
    "TRANSACTION_TIMESTAMP",
    "GET_CURRENT_TIMESTAMP",
    "GETDATE",
    "SYSDATE",
    "STATEMENT_TIMESTAMP",
)
_NODES_OF_DATES = (exp.CurrentDate,)
_NODES_OF_MOMENTS = (exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp)
_CLOCKS = ("CURRENT_", "LOCALTIMESTAMP", *_DATES, *_MOMENTS)


@dataclass(frozen=True)
class Constants:
    """What stands for parameters, and for the time. `now`: in UTC, as DuckDB writes it; "" if not asked."""

    parameters: tuple[Parameter, ...] = ()
    now: str = ""


NOTHING = Constants()


def parameters_of(given: Sequence[Any] | Mapping[str, Any] | None) -> tuple[Parameter, ...]:
    """The parameters of a call, by number from 1 or by name, each with its type and its value as text.

    >>> parameters_of([65, "CA"])
    (('1', 'BIGINT', '65'), ('2', 'VARCHAR', 'CA'))
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        pairs = [(str(name), value) for name, value in given.items()]
        if len({name.lower() for name, _ in pairs}) < len(pairs):
            raise ArgumentError(
                "argument-params", "two parameters differ only in case", "give each name one value"
            )
    elif isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        pairs = [(str(number), value) for number, value in enumerate(given, 1)]
    else:
        raise ArgumentError(
            "argument-params",
            "params is a list, or a dict of names",
            'params=[65, "CA"], or params={"age": 65}',
        )
    return tuple((name, *_typed(name, value)) for name, value in pairs)


def _typed(name: str, value: Any) -> tuple[str, str | None]:
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # numpy's numbers
        value = value.item()
    match value:
        case None:
            return "NULL", None
        case bool():
            return "BOOLEAN", str(value).lower()
        case int() if -(2**63) <= value < 2**63:
            return "BIGINT", str(value)
        case float():
            return "DOUBLE", repr(value) if math.isfinite(value) else str(value)
        case Decimal() if value.is_finite():
            return "DECIMAL", format(value, "f")
        case str():
            return "VARCHAR", value
        case datetime():
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return "TIMESTAMP", naive.isoformat(" ")
        case date():
            return "DATE", value.isoformat()
    raise ArgumentError(
        "argument-params",
        f"parameter {name} is of the type {type(value).__name__}, which is not supported",
        "give a number, a text, a date, a time or None",
    )


def described(constants: Constants) -> str:
    """The parameters of a query, as the record of it shows them behind its text.

    >>> described(Constants(parameters_of([65, "CA"])))
    " with 1 = 65, 2 = 'CA'"
    """
    shown = (f"{name} = {_shown(type_name, value)}" for name, type_name, value in constants.parameters)
    return f" with {', '.join(shown)}" if constants.parameters else ""


def _shown(type_name: str, value: str | None) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if type_name == "VARCHAR" else value


def asks_for_time(text: str) -> bool:
    """Whether a text may name the clock; it may also be a name that looks like it."""
    upper = text.upper()
    return any(each in upper for each in _CLOCKS)


def number_marks(tokens: list[Token], text: str) -> tuple[list[Token], str]:
    """Tokens in which each ? is a text that says which one it is, and what those texts begin with."""
    if not any(each.token_type is TokenType.PLACEHOLDER for each in tokens):
        return tokens, ""
    mark = "?"
    while mark in text.replace("?", "", 1) and len(mark) <= len(text):
        mark += "?"
    numbered, number = [], 0
    for each in tokens:
        if each.token_type is TokenType.PLACEHOLDER:
            number += 1
            each = Token(TokenType.STRING, f"{mark}{number}", each.line, each.col, each.start, each.end)
        numbered.append(each)
    return numbered, mark


def with_constants(statement: exp.Expr, constants: Constants, mark: str) -> exp.Expr:
    """The statement with its parameters and the time in it. Raises ArgumentError where they do not fit."""
    given = {name.lower(): (type_name, value) for name, type_name, value in constants.parameters}
    used: set[str] = set()

    def replaced(node: exp.Expr) -> exp.Expr:
        name = _parameter(node, mark)
        if name is None:
            return _moment(node, constants.now) or node
        if name.lower() not in given:
            raise ArgumentError(
                "argument-params",
                f"the query has a parameter {name}, and no value is given for it",
                "params=[...] with a value for each ?, or params={name: value}",
            )
        used.add(name.lower())
        return constant(*given[name.lower()])

    found = statement.transform(replaced, copy=False)
    unused = [name for name in given if name not in used]
    if unused:
        raise ArgumentError(
            "argument-params",
            f"the query has no parameter {unused[0]}",
            "write ? or :name where the value belongs",
        )
    return found


def _parameter(node: exp.Expr, mark: str) -> str | None:
    """The name of the parameter that a node is; None if it is none."""
    match node:
        case exp.Literal(is_string=True) if mark and node.name.startswith(mark):
            return node.name.removeprefix(mark)
        case exp.Placeholder(this=str(name)):
            return name
        case exp.Parameter(this=exp.Expr() as inner):
            return str(inner.name)
    return None


def _moment(node: exp.Expr, now: str) -> exp.Expr | None:
    """The time, in place of a node that asks for it."""
    name = node.name.upper() if isinstance(node, exp.Anonymous) and not node.expressions else ""
    if not now or node.args.get("zone") or (isinstance(node, _NODES_OF_DATES) and node.this):
        return None
    if isinstance(node, _NODES_OF_DATES) or name in _DATES:
        return constant("DATE", now[:10])
    if isinstance(node, _NODES_OF_MOMENTS) or name in _MOMENTS:
        return constant("TIMESTAMP", now)
    return None


def constant(type_name: str, value: str | None) -> exp.Expr:
    """A constant of a type of DuckDB's, from its value as text."""
    match type_name:
        case "NULL":
            return exp.Null()
        case "BOOLEAN" if value in ("true", "false"):
            return exp.Boolean(this=value == "true")
        case "VARCHAR" if value is not None:
            return exp.Literal.string(value)
        case "BIGINT" | "DECIMAL" if value is not None:
            number = exp.Literal.number(value.lstrip("-"))
            return exp.Paren(this=exp.Neg(this=number)) if value.startswith("-") else number
        case _:
            written = exp.Null() if value is None else exp.Literal.string(value)
            return exp.Cast(this=written, to=exp.DataType.build(type_name, dialect="duckdb"))
