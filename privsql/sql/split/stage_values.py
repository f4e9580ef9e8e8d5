"""Noisy values that a later release reads as constants: example values stand in its text until they are
known.

A release of a second stage may depend on noisy values of the first in any way, since composition is adaptive:
for every value that the constants can have, it is a release with a bound of its own, at the same price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from privsql.errors import Refused

_GIVEN = "privsql_given"  # in the meta of a node that stands for a given
_NUMBERS = ("INT", "DOUBLE", "DECIMAL", "FLOAT", "REAL")
Columns = tuple[tuple[str, str], ...]  # names, and types in the engine
Rows = tuple[tuple[str | None, ...], ...]  # values as text


class Shape(Enum):
    """How many values a given is."""

    SCALAR = "a value"
    LIST = "the values of one column"
    TABLE = "a table"


@dataclass(frozen=True)
class StageValue:
    """What an earlier stage tells a later one: a query over its answers, and the columns of the result."""

    name: str
    query: exp.Expr
    shape: Shape
    columns: Columns


def example(given: StageValue) -> Rows:
    """Values of the right types, for planning before the true ones are known."""
    return (
        tuple(
            "1" if _is_number(type_name) else _EXAMPLES.get(type_name, "a") for _, type_name in given.columns
        ),
    )


_EXAMPLES = {"DATE": "2000-01-01", "BOOLEAN": "true", "TIMESTAMP": "2000-01-01 00:00:00", "TIME": "00:00:00"}


def placeholder(given: StageValue, stands_for: exp.Expr) -> exp.Expr:
    """A node that stands where the noisy query stood, with example values in it."""
    node = _written(given, stands_for, example(given))
    node.meta[_GIVEN] = given.name
    return node


def givens_in(statement: exp.Expr) -> list[str]:
    """The names of the givens whose examples stand in a statement."""
    found = (node.meta.get(_GIVEN) for node in statement.walk())
    return list(dict.fromkeys(str(name) for name in found if name is not None))


def with_values(statement: exp.Expr, givens: Sequence[StageValue], values: Mapping[str, Rows]) -> exp.Expr:
    """The statement with the values that are known in place of the examples."""
    known = {each.name: each for each in givens if each.name in values}

    def replaced(node: exp.Expr) -> exp.Expr:
        given = known.get(str(node.meta.get(_GIVEN)))
        return node if given is None else _written(given, node, values[given.name])

    return statement.copy().transform(replaced)


def rows_of(given: StageValue, columns: Sequence[Any]) -> Rows:
    """The rows of a result as text, in which the record of a query can hold them."""
    listed = [
        [_text(value, type_name) for value in column.tolist()]
        for column, (_, type_name) in zip(columns, given.columns, strict=True)
    ]
    return tuple(zip(*listed, strict=True))


def _written(given: StageValue, node: exp.Expr, rows: Rows) -> exp.Expr:
    types = [type_name for _, type_name in given.columns]
    match given.shape:
        case Shape.SCALAR:
            return _constant(rows[0][0] if rows else None, types[0])
        case Shape.LIST:
            if not rows:
                return exp.Boolean(this=False)
            return exp.In(this=node.this.copy(), expressions=[_constant(row[0], types[0]) for row in rows])
        case Shape.TABLE:
            listed = rows or (tuple(None for _ in types),)
            tuples = [exp.Tuple(expressions=[_constant(*each) for each in zip(row, types)]) for row in listed]
            names = [exp.to_identifier(name, quoted=True) for name, _ in given.columns]
            known = node.args.get("alias")
            name = None if known is None else known.this
            alias = exp.to_identifier(f"{given.name}_rows") if name is None else name.copy()
            values = exp.Values(expressions=tuples, alias=exp.TableAlias(this=alias, columns=names))
            return values if rows else _nothing(values, names)


def _nothing(values: exp.Values, names: Sequence[exp.Expr]) -> exp.Expr:
    """A table of no rows, with the types of the columns of one."""
    alias = values.args["alias"]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("none"), columns=alias.args["columns"]))
    inner = exp.Select(
        expressions=[exp.column(each.name, quoted=True) for each in names],
        from_=exp.From(this=values),
        where=exp.Where(this=exp.Boolean(this=False)),
    )
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=alias.this))


def _constant(value: str | None, type_name: str) -> exp.Expr:
    """A value in its type."""
    if type_name.strip('"') == "NULL":
        return exp.Null()
    if value is None:
        written: exp.Expr = exp.Null()
    elif _is_number(type_name) and value.lstrip("-").replace(".", "", 1).isdigit():
        written = exp.Literal.number(value.lstrip("-"))
        written = exp.Neg(this=written) if value.startswith("-") else written
    else:
        written = exp.Literal.string(value)
    to = "BIGINT" if type_name in ("HUGEINT", "UBIGINT") else type_name
    try:
        return exp.Cast(this=written, to=exp.DataType.build(to, dialect="duckdb"))
    except SqlglotError:
        raise Refused(
            "refused-stages",
            f"A noisy value of the type {type_name} cannot be a constant of a second stage.",
            "Cast it to a number, a text or a date.",
        ) from None


def _is_number(type_name: str) -> bool:
    return any(each in type_name for each in _NUMBERS) and not type_name.startswith("INTERVAL")


def _text(value: Any, type_name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, float) else str(value)
    return text[:10] if type_name == "DATE" else text
