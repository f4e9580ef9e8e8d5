"""Constants and casts: their nodes go in; literals and calls of cast come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.expressions import Expression, Literal
from privsql.errors import Refused, SqlError
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    NULL,
    TEXT,
    TIME,
    TIMESTAMP,
    Type,
    decimal,
    integer,
)

Bind = Callable[[exp.Expr | None], Expression]

_TYPES: dict[str, Type] = {
    "BOOLEAN": BOOLEAN,
    **{
        name: integer(*INTEGER_BOUNDS[name])
        for name in ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "UBIGINT")
    },
    "INT": integer(*INTEGER_BOUNDS["INTEGER"]),
    "UINT": integer(*INTEGER_BOUNDS["UINTEGER"]),
    "BIGINT": BIGINT,
    "INT128": integer(*INTEGER_BOUNDS["HUGEINT"]),
    **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR"), TEXT),
    "DATE": DATE,
    "TIME": TIME,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), TIMESTAMP),
}


def _literal(bind: Bind, node: exp.Literal) -> Literal:
    if node.is_string:
        return Literal(str(node.this), TEXT)
    found = literals.number(str(node.this))
    if found is None:
        raise SqlError("sql-syntax", "this number cannot be read")
    return found


def word(node: exp.Expr) -> str:
    """A date part or unit as written: day, 'day', ('day'). For NOT 'day', sqlglot would return the same
    word.
    """
    while isinstance(node, exp.Paren) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEXT_TYPES)
    ):
        node = node.this
    if not isinstance(node, (exp.Literal, exp.Var, exp.Column, exp.Identifier)):
        raise SqlError("sql-arguments", "a part or unit of time is a word", "write date_trunc('month', d)")
    return str(node.name)


def interval(bind: Bind, node: exp.Interval) -> Literal:
    """INTERVAL 3 DAY, INTERVAL '3 days': a whole number of one unit."""
    amount = bind(node.this) if node.this is not None else None
    unit = node.args.get("unit")
    text = str(amount.value) if isinstance(amount, Literal) and amount.value is not None else ""
    if unit is None and text.count(" ") == 1:
        text, name = text.split(" ")
    else:
        name = word(unit) if unit is not None else ""
    found = literals.interval(text, name)
    if found is None:
        raise Refused(
            "refused-interval", "An interval must be a whole number of one unit.", "Write INTERVAL 3 MONTH."
        )
    return found


def _cast(bind: Bind, node: exp.Cast) -> Expression:
    target = node.to
    length = _length(target)
    if length is not None:  # VARCHAR(2) truncates, in the dialects that keep the length
        return build.call(
            "left", [build.convert(bind(node.this), TEXT, explicit=True), literals.whole(length)]
        )
    to = _type(target)
    value = bind(node.this)
    constant = value if isinstance(value, Literal) and not isinstance(node, exp.TryCast) else None
    if constant is not None and literals.unreadable(constant, to):
        raise build.type_error(
            f"this constant cannot be read as {to}",
            suggestion="write one that can, as in DATE '2024-01-31' or 42; TRY_CAST, where NULL is meant",
        )
    return build.convert(value, to, explicit=True)


def _name(target: exp.DataType) -> str:
    return str(target.this.name if hasattr(target.this, "name") else target.this)


def _length(target: exp.DataType) -> int | None:
    """The 2 of VARCHAR(2)."""
    plain = _TYPES.get(_name(target)) is TEXT and not target.args.get("nested")
    return literals.ordinal(target.expressions[0].name) if plain and len(target.expressions) == 1 else None


def _type(target: exp.DataType) -> Type:
    name, sizes = _name(target), [each.name for each in target.expressions]
    if name == "DECIMAL":
        return _decimal(sizes)
    if name not in _TYPES or target.args.get("nested"):
        plain = name not in ("UUID", "INTERVAL")
        way_out = "Cast to a plain type." if plain else "Compare the text instead."
        raise Refused("refused-cast", f"Casts to {name} are not supported.", way_out)
    to = _TYPES[name]
    # TIMESTAMP(3) drops everything below 1 ms
    if sizes and (to, sizes) not in ((TEXT, ["MAX"]), (TIMESTAMP, ["6"])):
        raise Refused(
            "refused-cast",
            "Casts to a type with a size, such as TIMESTAMP(3), are not supported.",
            "Leave the size out, or cut with LEFT or date_trunc.",
        )
    return to


def _decimal(sizes: list[str]) -> Type:
    given = [literals.ordinal(each) for each in sizes]
    params = [each for each in given if each is not None]
    precision, scale = (*params, 0)[:2] if params else (18, 3)
    if len(params) < len(given) or len(given) > 2 or not 1 <= precision <= 38 or scale > precision:
        raise SqlError(
            "sql-arguments", "DECIMAL(precision, scale) needs 1 <= precision <= 38", "DECIMAL(18, 3)"
        )
    return decimal(precision, scale)


CONSTANTS: Mapping[type[exp.Expr], Callable[[Bind, Any], Expression]] = {
    exp.Literal: _literal,
    exp.RawString: lambda bind, node: Literal(str(node.this), TEXT),
    exp.Boolean: lambda bind, node: Literal(bool(node.this), BOOLEAN),
    exp.Null: lambda bind, node: Literal(None, NULL),
    exp.Interval: interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
