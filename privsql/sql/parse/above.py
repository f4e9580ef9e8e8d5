"""The part of a query that stands above the noise goes in; nothing comes out but a refusal, if anything in it
could read or change what is not the query's own.

What stands here is computed from noisy and public values only, so there is no privacy to lose: the rules
keep the engine's settings, files, catalogue, clock and randomness out of reach. Refused by default, node by
node and argument by argument, and functions by their DuckDB names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from privsql.errors import Place, SqlError
from privsql.sql.parse.above_nodes import ABOVE, COLLATIONS, NUMBER, TABLE_FUNCTIONS, TYPES, WORD, WORDS
from privsql.sql.parse.above_refusals import (
    function_refused,
    refused_above,
    syntax_refused,
    table_function_refused,
    table_refused,
)
from privsql.sql.parse.engine_functions import ALLOWED
from privsql.sql.parse.gate import MAX_NODES, refuse_malformed, shown
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import only_select, refusal, way_out_of
from privsql.sql.parse.tokens import MISSING_ARGUMENT

_STATEMENTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Pivot)
# Functions with arguments that decide what they do.
_LIST_AGGREGATES = frozenset({"aggregate", "array_aggr", "array_aggregate", "list_aggr", "list_aggregate"})
# Refusals of the gate whose words hold above the noise, too.
_SAME_WORDS = frozenset({"CurrentDate"})
# What sqlglot names otherwise than DuckDB.
_ENGINE_NAMES = {"rand": "random"}
_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Is)
# What is written as an operator or as a call: @x, x ^@ y, x && y, x @> y, x ~ y.
_OPERATORS_OR_CALLS = (exp.Abs, exp.StartsWith, exp.ArrayOverlaps, exp.ArrayContainsAll, exp.RegexpLike)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
# Operators that DuckDB ranks with ||, and sqlglot elsewhere.
_BESIDE_PIPES = frozenset(
    {
        exp.BitwiseAnd,
        exp.BitwiseOr,
        exp.BitwiseLeftShift,
        exp.BitwiseRightShift,
        exp.StartsWith,
        exp.ArrayOverlaps,
        exp.ArrayContainsAll,
    }
)
# What is divided between a release and the SQL above it.
_TAKEN_APART = (exp.Select, exp.Group, exp.Subquery, exp.From, exp.Join, exp.With, exp.CTE)
# Clauses that sqlglot calls otherwise.
_CLAUSES = {"locks": "FOR UPDATE"}
_NEEDED = {kind: tuple(name for name, needed in kind.arg_types.items() if needed) for kind in ABOVE}


def permit_above(statement: exp.Expr, tables: Collection[str] = ()) -> None:
    """Refuse whatever in an outer query has no rule.

    Args:
        statement: the outer query, over noisy and public tables.
        tables: the names of those tables; CTEs of the statement need not be named.

    Raises:
        Refused: something in it is not supported above the noise; with its place in the text.

    Example:
        >>> import sqlglot
        >>> permit_above(sqlglot.parse_one("SELECT n, rank() OVER (ORDER BY n) FROM r0"), {"r0"})
    """
    if not isinstance(statement, _STATEMENTS):
        raise only_select(place_of(statement))
    known = frozenset(map(_folded, tables))
    for count, node in enumerate(statement.walk(bfs=False, prune=_is_hint)):
        if count > MAX_NODES:
            raise SqlError("sql-too-long", "the query has too many parts", "write a simpler query")
        if not _is_hint(node):  # which is not written, either
            _permit_node(node, known)


def loses_clauses(statement: exp.Expr) -> bool:
    """Whether a query has clauses without a rule, such as FOR UPDATE, which taking it apart would drop."""
    try:
        for node in statement.find_all(*_TAKEN_APART):
            _permit_arguments(node, ABOVE[type(node)])
    except SqlError:
        return True
    return False


def _permit_arguments(node: exp.Expr, allowed: Mapping[str, bool]) -> None:
    for name, value in node.args.items():
        if value is None or value is False or value == []:
            continue
        if name not in allowed or (allowed[name] and not isinstance(value, bool)):
            raise _unknown_argument(node, name, value)


def _is_hint(node: exp.Expr) -> bool:
    return isinstance(node, exp.Hint)


def _permit_node(node: exp.Expr, tables: frozenset[str]) -> None:
    allowed = ABOVE.get(type(node))
    if allowed is None:
        raise _unknown(node)
    refuse_malformed(node)
    _refuse_other_grouping(node)
    if any(node.args.get(name) is None for name in _NEEDED[type(node)]):
        raise SqlError("sql-syntax", *MISSING_ARGUMENT, _place(node))
    _permit_arguments(node, allowed)
    for name, value in node.args.items():
        if value is None or value is False or value == []:
            continue
        for each in value if isinstance(value, list) else [value]:
            _permit_value(node, name, each)
    _permit_particular(node, tables)


def _permit_value(node: exp.Expr, name: str, value: object) -> None:
    """A node is looked at by itself; what is written as it stands must be a word or a number."""
    match node, value:
        case (_, exp.Expr() | bool() | int()) | (exp.Identifier(), str()):
            return
        case exp.DataType(), exp.DType():
            if value in TYPES:
                return
            raise refused_above("cast", _place(node))
        case (exp.Literal(is_string=True) | exp.RawString(), str()):
            return
        case exp.Literal(), str() if NUMBER.fullmatch(value):
            return
        case (exp.Literal(), _):
            raise refused_above("constant", _place(node))
        case _, str():
            words = WORDS.get((type(node), name))
            if WORD.fullmatch(value) if words is None else value.upper() in words:
                return
    raise _unknown(node)


def _permit_particular(node: exp.Expr, tables: frozenset[str]) -> None:
    """What depends on more than the class of a node."""
    match node:
        case exp.Anonymous():
            _permit_call(node)
        case exp.Table():
            _permit_table(node, tables)
        case exp.Pivot() if not node.args.get("unpivot"):
            # of PIVOT t ON ... the values stand among its expressions
            for each in (*node.args.get("fields", ()), *(node.expressions if node.args.get("this") else ())):
                if not isinstance(each, exp.In) or not _are_constants(each.expressions):
                    raise refused_above("pivot", _place(node))
        case exp.Dot() if not isinstance(node.expression, exp.Identifier):
            raise refused_above("method", _place(node))
        case exp.UnixToTime() if node.args.get("scale") != exp.UnixToTime.MILLIS:  # to_timestamp()
            raise function_refused("to_timestamp", _place(node))
        case exp.DateAdd() if not node.args.get("unit") and not isinstance(node.expression, exp.Interval):
            raise refused_above("days", _place(node))
        case exp.Collate() if node.expression.name.lower() not in COLLATIONS:
            raise refused_above("collate", _place(node))
        case exp.Lateral() if not isinstance(node.this, (exp.Subquery, exp.Unnest, exp.Explode)):
            raise table_function_refused(_engine_name(node.this), _place(node))


def _are_constants(listed: list[exp.Expr]) -> bool:
    return bool(listed) and not any(each.find(exp.Query, exp.Column) for each in listed)


def _refuse_other_grouping(node: exp.Expr) -> None:
    """Operators side by side that DuckDB groups otherwise than sqlglot does."""
    if isinstance(node, exp.Is) and not isinstance(node.expression, (exp.Null, exp.Boolean)):
        raise refused_above("precedence", _place(node))
    if not _is_operator(node):
        return
    for operand in (node.this, node.args.get("expression")):
        if isinstance(operand, exp.Expr) and _is_operator(operand) and _is_grouped_otherwise(node, operand):
            raise refused_above("precedence", _place(operand))


def _is_grouped_otherwise(node: exp.Expr, operand: exp.Expr) -> bool:
    kinds = {type(node), type(operand)}
    return (
        _is_arrow(node) != _is_arrow(operand)
        or (exp.DPipe in kinds and bool(kinds & _BESIDE_PIPES))
        or (isinstance(operand, exp.BitwiseNot) and isinstance(node, _ARITHMETIC) and operand is node.this)
    )


def _is_arrow(node: exp.Expr) -> bool:
    """Whether it is x -> y or x ->> y, and not a call of json_extract."""
    return isinstance(node, (exp.JSONExtract, exp.JSONExtractScalar)) and "only_json_types" in node.args


def _is_operator(node: exp.Expr) -> bool:
    if isinstance(node, _OPERATORS_OR_CALLS):  # sqlglot keeps the place of a call's name
        return "line" not in node.meta
    if isinstance(node, (exp.And, exp.Or, exp.Xor)) or _is_arrow(node):
        return True
    return isinstance(node, _OPERATORS) and not isinstance(
        node, (exp.Func, exp.Paren, exp.Dot, exp.PropertyEQ)
    )


def _permit_call(call: exp.Anonymous) -> None:
    """A function without a class of its own."""
    if not isinstance(call.this, str):  # in quotes, or with a schema
        raise function_refused(call.name, _place(call))
    name, arguments = call.this.lower(), call.expressions
    if name not in ALLOWED:
        raise function_refused(name, _place(call))
    if name == "age" and len(arguments) != 2:
        raise refused_above("age", _place(call))
    if name in _LIST_AGGREGATES:
        match arguments:
            case [_, exp.Literal(is_string=True) as literal, *_] if literal.name.lower() in ALLOWED:
                return
        raise refused_above("aggregate-name", _place(call))


def _permit_table(table: exp.Table, known: frozenset[str]) -> None:
    """A table of the caller, a CTE that is in sight, or a function that makes rows of its arguments."""
    match table.this:
        case exp.Identifier() as name:
            in_sight = known | set(_ctes_in_sight(table))
            if _folded(name.name) not in in_sight:
                raise table_refused(name.name, in_sight, _place(table))
        case exp.GenerateSeries():
            return
        case exp.Anonymous(this=str(name)) if name.lower() in TABLE_FUNCTIONS:
            return
        case other:
            raise table_function_refused(_engine_name(other), _place(table))


def _folded(name: str) -> str:
    """A name as DuckDB compares it: only the letters of ASCII have a case."""
    return name.encode().lower().decode()


def _ctes_in_sight(node: exp.Expr) -> Iterator[str]:
    """The CTEs that a table may name: of the statements around it, and of its own WITH those before it."""
    child, above = node, node.parent
    while above is not None:
        if isinstance(above, exp.With):
            for cte in above.expressions:
                if cte is child:
                    break
                yield _folded(cte.alias)
            # its own statement is seen to; go on with what is around that
            above = above.parent
        elif isinstance(above.args.get("with_"), exp.With):
            yield from (_folded(cte.alias) for cte in above.args["with_"].expressions)
        if above is not None:
            child, above = above, above.parent


def _place(node: exp.Expr) -> Place | None:
    """Where a node begins; of one without a token of its own, what is around it."""
    place, above = place_of(node), node.parent
    while place is None and above is not None:
        place, above = place_of(above), above.parent
    return place


def _engine_name(node: exp.Expr) -> str:
    """The name of a function, as DuckDB has it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    name = shown(node).lower()
    return _ENGINE_NAMES.get(name, name)


def _unknown(node: exp.Expr) -> SqlError:
    """The refusal of a class without a rule."""
    place, name = _place(node), way_out_of(node)
    if name in _SAME_WORDS:
        return refusal(name, place)
    if isinstance(node, exp.AtTimeZone):
        return refused_above("time-zone", place)
    if isinstance(node, exp.TableSample):
        return refused_above("tablesample", place)
    if isinstance(node, exp.Func):
        return function_refused(_engine_name(node), place)
    return syntax_refused(shown(node), place)


def _unknown_argument(node: exp.Expr, name: str, value: object) -> SqlError:
    """The refusal of an argument without a rule."""
    if name in ("db", "catalog"):
        return refused_above("schema", _place(node))
    if name == "recursive":
        return refused_above("recursive", _place(node))
    child = value[0] if isinstance(value, list) else value
    if isinstance(child, exp.TableSample) or (
        isinstance(child, exp.Expr) and way_out_of(child) in _SAME_WORDS
    ):
        return _unknown(child)
    clause = _CLAUSES.get(name, name.rstrip("_").replace("_", " ").upper())
    what = "" if name == "this" else f" with {clause}"
    return syntax_refused(f"{shown(node)}{what}", _place(node))
