"""Our own tree goes in; DuckDB text comes out. The engine never sees the analyst's text.

Every operand stands in parentheses and is cast to the type it is computed in, so that DuckDB decides nothing;
every expression that could fail on some rows is written so that it gives NULL instead.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.functions import FUNCTIONS
from privsql.algebra.relations import Choose, Distinct, Filter, Limit, Order, Project, Relation, Release, Sort
from privsql.algebra.reserved import UNIT_COLUMN
from privsql.errors import SqlError
from privsql.planning.grid import Grid
from privsql.types import INTEGER_BOUNDS, TIMESTAMP, Kind, Type, integer

CELL = "privsql_cell"  # the reserved name of the column that carries a cell's number through post-processing
UNIT = UNIT_COLUMN  # says whose a row is
FIXED_POINT = "fixed_point"  # a value on a grid, as a whole number of steps: value, step, lowest, highest

_HOLE = re.compile(r"\{(args|\d+)\}")  # where an argument goes in a function's text
_INFIX = {
    "=": "=",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "is_same": "IS NOT DISTINCT FROM",
    "is_distinct": "IS DISTINCT FROM",
}


def identifier(name: str) -> str:
    return '"' + _letters(name).replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + _letters(value).replace("'", "''") + "'"


def _letters(value: str) -> str:
    """A text that every part of DuckDB reads to its end; escapes of some dialects can make others."""
    if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SqlError("sql-syntax", "a text or a name has a character that is no text", "leave it out")
    return value


def constant(value: Any, type_: Type) -> str:
    """A literal with its type written out."""
    match value:
        case None:
            return f"CAST(NULL AS {type_.sql})"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if type_.kind is Kind.INTEGER:
            return str(value) if value >= 0 else f"({value})"
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case int() | float() if type_.kind is Kind.DOUBLE:
            return f"CAST({float(value)!r} AS DOUBLE)"
        case Decimal() if not value.is_finite():
            raise AssertionError("a DECIMAL is finite")
        case Decimal() | int():
            return (
                f"CAST({value:f} AS {type_.sql})"
                if isinstance(value, Decimal)
                else f"CAST({value} AS {type_.sql})"
            )
        case str() if type_.kind is Kind.INTERVAL:
            return f"INTERVAL {text(value)}"
        case str():
            return text(value)
        case dt.datetime():
            return f"TIMESTAMP {text(value.isoformat(sep=' '))}"
        case dt.date():
            return f"DATE {text(value.isoformat())}"
        case dt.time():
            return f"TIME {text(value.isoformat())}"
    raise AssertionError("a literal of a type without rules")


def expression(node: Expression) -> str:
    """An expression as DuckDB text, whole in itself."""
    match node:
        case Column():
            return identifier(node.name)
        case Literal():
            return constant(node.value, node.type)
        case Call():  # pragma: no branch -- nothing else is an expression
            return _call(node)


def _call(call: Call) -> str:
    """A call whose engine type is the believed one: by its syntax, by a cast of its operands, or by a cast of
    its result.
    """
    args = [expression(arg) for arg in call.args]
    match call.function:
        case "and" | "or":
            return "(" + f" {call.function.upper()} ".join(f"({arg})" for arg in args) + ")"
        case "not":
            return f"(NOT ({args[0]}))"
        case "is_null":
            return f"(({args[0]}) IS NULL)"
        case "is_true" | "is_false":
            return f"(({args[0]}) IS {call.function[3:].upper()})"
        case "in":
            return _in(call, args)
        case "case":
            whens = " ".join(
                f"WHEN {test} THEN {cast(value, branch.type, call.type)}"
                for test, value, branch in zip(args[0:-1:2], args[1:-1:2], call.args[1:-1:2], strict=True)
            )
            return f"(CASE {whens} ELSE {cast(args[-1], call.args[-1].type, call.type)} END)"
        case "coalesce" | "least" | "greatest":
            return f"{call.function}({', '.join(_operands(call, args, call.type))})"
        case "nullif":
            return _to(call.type, f"nullif({', '.join(_operands(call, args, _roomy(call)))})")
        case "row":
            return f"row({', '.join(args)})"
        case "list":
            return f"list_value({', '.join(cast(arg, each.type, each.type) for arg, each in zip(args, call.args, strict=True))})"
        case "fixed_point":
            _, step, low, high = call.args
            assert isinstance(step, Literal)
            assert isinstance(low, Literal)
            assert isinstance(high, Literal)
            return Grid(Fraction(step.value), low.value, high.value, whole=False, nullable=True).clamped(
                args[0]
            )
        case "cast":
            if call.type.kind is Kind.TEXT:
                return _text(args[0], call.args[0].type)
            return _tried(args[0], call.args[0].type, _named(call.type))
        case "date_add" | "date_shift":
            return _to(call.type, f"TRY(({args[0]}) + ({args[1]}))")
        case "date_minus":
            return _to(call.type, f"TRY(({args[0]}) - ({args[1]}))")
        case "neg":
            (inner,) = _operands(call, args, _roomy(call))
            return _to(call.type, f"(-{inner})", _roomy(call))
        case "+" | "-" | "*":
            left, right = _operands(call, args, _roomy(call))
            return _to(call.type, f"({left} {call.function} {right})", _roomy(call))
        case "/" | "//" | "%":
            # dividing by zero gives NULL, in every engine and under every setting
            above, below = _operands(call, args, _roomy(call))
            divided = f"({above} {call.function} nullif({below}, CAST(0 AS {_roomy(call).sql})))"
            return _to(call.type, divided, _roomy(call))
        case operator if operator in _INFIX:
            left, right = _comparable(call, args)
            return f"({left} {_INFIX[operator]} {right})"
        case "floor" | "ceil" | "trunc" if call.type.kind is Kind.INTEGER:
            return cast(args[0], call.args[0].type, call.type)  # DuckDB would make a DOUBLE of it
        case "abs":
            return _to(call.type, f"abs({cast(args[0], call.args[0].type, call.type)})")
        case "round" if call.args[0].type.kind is Kind.INTEGER or _places(call) < 0:
            # 127 rounds to 130, which a TINYINT cannot hold; nor can a DECIMAL(38) hold its next power of ten
            return _to(
                call.type, f"round({', '.join([cast(args[0], call.args[0].type, call.type), *args[1:]])})"
            )
    # in one pass: what an argument says (a text such as '{1}') is never looked into again
    filled = _HOLE.sub(
        lambda hole: ", ".join(args) if hole[1] == "args" else f"({args[int(hole[1])]})",
        FUNCTIONS[call.function].text,
    )
    return filled if call.type.kind is Kind.BOOLEAN else _to(call.type, filled)


def cast(rendered: str, of: Type, to: Type) -> str:
    """A value in another type: NULL where that type does not hold it, and never a failure."""
    return f"CAST({rendered} AS {to.sql})" if _holds(to, of) else _tried(rendered, of, to.sql)


def _tried(rendered: str, of: Type, name: str) -> str:
    """A cast to the type of this name that gives NULL where it fails.

    A DATE as a TIMESTAMP stands in least(): DuckDB would compare the DATE instead of the TIMESTAMP, and find
    5000000 BC, which has no TIMESTAMP, to be before 2024.
    """
    tried = f"TRY_CAST({rendered} AS {name})"
    return f"least({tried}, CAST(NULL AS {name}))" if (of.kind, name) == (Kind.DATE, TIMESTAMP.sql) else tried


def _holds(wide: Type, type_: Type) -> bool:
    """Whether the engine has a value of the wide type for each of the other, so that a plain CAST cannot
    fail.
    """
    match type_.kind, wide.kind:
        case Kind.INTEGER, Kind.INTEGER:
            (least, most), (low, high) = INTEGER_BOUNDS[wide.sql], INTEGER_BOUNDS[type_.sql]
            return least <= low and high <= most
        case (Kind.INTEGER | Kind.DECIMAL, Kind.DOUBLE) | (Kind.NULL, _):
            return True
    return type_ == wide


def _to(type_: Type, rendered: str, made: Type | None = None) -> str:
    """What a function gives, in the type it is believed to give: DuckDB's own choice of a type is not relied
    on.

    Where DuckDB has that type already it drops the cast. `made`: arithmetic in a type that both operands were
    cast to.
    """
    return rendered if made is not None and made.sql == type_.sql else f"TRY_CAST({rendered} AS {type_.sql})"


def _operands(call: Call, args: Sequence[str], to: Type) -> list[str]:
    return [cast(arg, each.type, to) for arg, each in zip(args, call.args, strict=True)]


def _text(rendered: str, type_: Type) -> str:
    """A value as text. NaN has no sign: which of two equal ones was seen first would be the order of rows.

    A moment has a text, or NULL: files, frames and make_timestamp can bring others, at whose text DuckDB
    fails for good, past TRY_CAST: all that is asked of that database afterwards fails, too.
    """
    shown = rendered
    match type_.kind:
        case Kind.DOUBLE:
            return f"replace(TRY_CAST({rendered} AS VARCHAR), '-nan', 'nan')"
        case Kind.TIMESTAMP:
            begun = f"({rendered} >= TIMESTAMP '290309-12-22 (BC) 00:00:00' OR {rendered} = TIMESTAMP '-infinity')"
            shown = f"(CASE WHEN {begun} THEN {rendered} END)"
        case Kind.TIME:
            shown = f"(CASE WHEN {rendered} BETWEEN TIME '00:00:00' AND TIME '24:00:00' THEN {rendered} END)"
    return f"TRY_CAST({shown} AS VARCHAR)"


def _named(type_: Type) -> str:
    """The DuckDB type with exactly these bounds: what a cast to TINYINT lets through must be within a
    TINYINT's.
    """
    exact = (name for name, bounds in INTEGER_BOUNDS.items() if bounds == (type_.low, type_.high))
    return next(exact, type_.sql) if type_.kind is Kind.INTEGER else type_.sql


def _roomy(call: Call) -> Type:
    """The type to compute in: it holds the result and every operand (x * 0 is small, x need not be)."""
    types = [call.type, *(arg.type for arg in call.args)]
    if any(each.kind is not Kind.INTEGER for each in types):
        return call.type
    return widest(types)


def _places(call: Call) -> int:
    places = call.args[1] if len(call.args) > 1 else None
    return int(places.value or 0) if isinstance(places, Literal) else 0


def _in(call: Call, args: Sequence[str]) -> str:
    """NULL apart from the list: DuckDB takes x IN (1, NULL) below EXISTS for true where it is not."""
    value, *listed = call.args
    known = [(arg, each) for arg, each in zip(args[1:], listed, strict=True) if not _is_null(each)]
    shown = args[0]
    if any(not _fits(each, value.type) for _, each in known):
        wide = widest([value.type, *(each.type for _, each in known)])
        shown = cast(shown, value.type, wide)
        known = [(cast(arg, each.type, wide), each) for arg, each in known]
    test = f"(({shown}) IN ({', '.join(arg for arg, _ in known)}))"
    if len(known) == len(listed):
        return test
    return f"({test} OR CAST(NULL AS BOOLEAN))" if known else "CAST(NULL AS BOOLEAN)"


def _is_null(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value is None


def _fits(node: Expression, type_: Type) -> bool:
    """Whether it can be compared with a value of that type as it is: a constant that fits is left bare, so
    that DuckDB can use its statistics.
    """
    if type_.kind is not Kind.INTEGER or node.type.kind is not Kind.INTEGER:
        return True  # the binder brought both to one type
    return isinstance(node, Literal) and isinstance(node.value, int) and type_.low <= node.value <= type_.high


def widest(types: Sequence[Type]) -> Type:
    """Whole numbers of all these types, in one type."""
    return integer(min(each.low for each in types), max(each.high for each in types))


def _comparable(call: Call, args: Sequence[str]) -> list[str]:
    """Both sides of a comparison in one type."""
    left, right = call.args
    if _fits(left, right.type) or _fits(right, left.type):
        return list(args)
    return _operands(call, args, widest([left.type, right.type]))


def terms(by: Sequence[Order]) -> list[str]:
    return [
        f"{expression(each.expression)} {'DESC' if each.descending else 'ASC'} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in by
    ]


def columns_sql(columns: Sequence[tuple[str, Expression]]) -> str:
    return ", ".join(f"{expression(each)} AS {identifier(name)}" for name, each in columns)


def finished(relation: Relation, table: str, guards: Collection[str] = ()) -> str:
    """The whole of what is above the release; whole numbers go out as BIGINT, which numpy has, not as
    HUGEINT.

    `guards`: further columns of the noisy table, which every row keeps as it keeps the number of its cell.
    """
    names = [
        f"TRY_CAST({identifier(each.name)} AS BIGINT) AS {identifier(each.name)}"
        if each.type.kind is Kind.INTEGER and each.type.sql == "HUGEINT"
        else identifier(each.name)
        for each in relation.fields
    ]
    return (
        f"SELECT {CELL}, privsql_place, {', '.join(names)} FROM ({_finishing(relation, table, list(guards))})"
    )


def _finishing(relation: Relation, table: str, guards: Sequence[str]) -> str:
    """What is above the release, as SQL over the noisy table `table`; every row keeps the number of its
    cell.
    """
    if isinstance(relation, Release | Choose):
        names = ", ".join([*guards, *(identifier(each.name) for each in relation.fields)])
        return f"SELECT {CELL}, {CELL} AS privsql_place, {names} FROM {identifier(table)}"
    assert isinstance(relation, Filter | Project | Sort | Distinct | Limit), "not above a release"
    inner = _finishing(relation.input, table, guards)
    match relation:
        case Filter():
            return f"SELECT * FROM ({inner}) WHERE {expression(relation.predicate)}"
        case Project():
            return f"SELECT {', '.join([CELL, 'privsql_place', *guards])}, {columns_sql(relation.columns)} FROM ({inner})"
        case Sort():
            # ties keep the public order of the cells; the place survives later steps
            place = f"row_number() OVER (ORDER BY {', '.join([*terms(relation.by), 'privsql_place'])})"
            return f"SELECT * REPLACE ({place} AS privsql_place) FROM ({inner})"
        case Distinct():
            names = ", ".join(identifier(each.name) for each in relation.fields)
            kept = ", ".join(f"min({each}) AS {each}" for each in (CELL, "privsql_place", *guards))
            return f"SELECT {kept}, {names} FROM ({inner}) GROUP BY {names}"
        case Limit():
            count = "" if relation.count is None else f" LIMIT {relation.count}"
            return f"SELECT * FROM ({inner}) ORDER BY privsql_place{count} OFFSET {relation.offset}"
