"""SQL text goes in; one parsed SELECT comes out in which every node and every argument has a rule, or a
refusal.

Refuse by default: PERMITTED lists each node class with the arguments that the binder reads. A class that is
not there, or an argument that is set and not listed, is refused. There is no list of forbidden things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import Place, Refused, SqlError
from privsql.sql.parse.constants import NOTHING, Constants, number_marks, with_constants
from privsql.sql.parse.dialect_spellings import write_as_duckdb
from privsql.sql.parse.dialects import dialect_name, refuse_other_meanings
from privsql.sql.parse.permitted import PERMITTED
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import only_select, refusal, way_out_of
from privsql.sql.parse.rewritten.function_refusals import refusal_of_call
from privsql.sql.parse.spellings import write_plainly
from privsql.sql.parse.tokens import MISSING_ARGUMENT, tokens_of, too_deep
from privsql.sql.privacy_clause.marked_tree import read_marks

MAX_NODES = 6_000


# Rewrites a SELECT in place before its nodes are permitted.
Rewrite = Callable[[exp.Expr], None]


def parse(
    text: str, dialect: str, constants: Constants = NOTHING, rewrite: Rewrite | None = None
) -> exp.Expr:
    """Exactly one SELECT, parsed and permitted node by node."""
    return permitted(*_parsed(text, dialect, constants), rewrite)


def one_statement(
    text: str, dialect: str, constants: Constants = NOTHING, rewrite: Rewrite | None = None
) -> tuple[exp.Expr, Place | None]:
    """Exactly one SELECT, written plainly, and where it begins; nothing in it is permitted yet."""
    statement, _, start = _parsed(text, dialect, constants)
    _refuse_other_statements(statement, start)
    write_as_duckdb(statement, dialect)
    write_plainly(statement)
    if rewrite is not None:
        rewrite(statement)
    return statement, start


def _parsed(text: str, dialect: str, constants: Constants) -> tuple[exp.Expr, str, Place | None]:
    split, start = tokens_of(text, dialect)
    tokens, mark = number_marks(split.tokens, text)
    try:
        # words of the text it would log
        parser = sqlglot.Dialect.get_or_raise(dialect).parser(error_message_context=0)
        statements = [each for each in parser.parse(tokens, text) if each is not None]
    except RecursionError:
        raise too_deep() from None
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        line, column = details[0].get("line"), details[0].get("col")
        place = Place(line, column) if line and column else None
        raise SqlError("sql-syntax", "the SQL cannot be parsed", "check the text near here", place) from None
    # some malformed texts break sqlglot itself
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise SqlError(
            "sql-syntax", "the SQL cannot be parsed", "check for missing arguments", start
        ) from None
    if not statements:
        raise SqlError("sql-empty", "there is no SQL here", "write a SELECT")
    if len(statements) > 1:
        raise SqlError("sql-statements", "only one statement at a time is read", "send them one by one")
    _refuse_half_between(tokens, statements[0])
    return with_constants(read_marks(statements[0], split), constants, mark), dialect, start


def permitted(
    statement: exp.Expr, dialect: str, start: Place | None, rewrite: Rewrite | None = None
) -> exp.Expr:
    """One SELECT, written plainly, every node of which has a rule."""
    _refuse_other_statements(statement, start)
    write_as_duckdb(statement, dialect)
    write_plainly(statement)
    if rewrite is not None:
        rewrite(statement)
    try:
        _permit(statement, cuts_text=dialect_name(dialect) != "duckdb")
        refuse_other_meanings(statement, dialect)
    except SqlError as error:
        raise error.at(start) from None
    return statement


def _refuse_other_statements(statement: exp.Expr, start: Place | None) -> None:
    if not isinstance(statement, (exp.Select, exp.SetOperation, exp.Subquery)):
        raise only_select(start)


def _refuse_half_between(tokens: list[Token], statement: exp.Expr) -> None:
    """sqlglot reads x BETWEEN 1 5 AND y as (x BETWEEN 1 AND 5) AND y: every AND of the tree must be one of
    the text.
    """
    between = next((each for each in tokens if each.token_type is TokenType.BETWEEN), None)
    if between is not None:
        written = sum(each.token_type in (TokenType.AND, TokenType.DAMP) for each in tokens)
        if written < sum(1 for _ in statement.find_all(exp.And, exp.Between)):
            raise SqlError(
                "sql-syntax",
                "BETWEEN needs AND between its ends",
                "write x BETWEEN 1 AND 5",
                Place(between.line, between.col),
            )


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
# Arguments without which there is no such node.
_NEEDED = {kind: tuple(name for name, needed in kind.arg_types.items() if needed) for kind in PERMITTED}


def _permit(statement: exp.Expr, cuts_text: bool) -> None:
    for count, node in enumerate(statement.walk(bfs=False)):
        if count > MAX_NODES:
            raise SqlError("sql-too-long", "the query has too many parts", "write a simpler query")
        allowed = PERMITTED.get(type(node))
        if allowed is None:
            raise _refuse(node, node, shown(node))
        refuse_malformed(node)
        if not cuts_text:
            _refuse_cut_text(node)
        if any(node.args.get(name) is None for name in _NEEDED[type(node)]):
            raise SqlError("sql-syntax", *MISSING_ARGUMENT, place_of(node))
        for name, value in node.args.items():
            _permit_argument(node, name, value, allowed)


def refuse_malformed(node: exp.Expr) -> None:
    """Texts that sqlglot reads and that mean nothing, or not the same to everybody."""
    match node:
        case exp.Identifier() if not node.this:
            found = "a name must not be empty", "give it a name of at least one letter"
        case exp.Select() if not node.expressions:
            found = "this SELECT selects nothing", "SELECT COUNT(*) FROM ..."
        case exp.Star(parent=exp.Count() as count) if any(node.args.values()):
            wrong = "COUNT(*) counts rows, whatever their columns"
            raise SqlError("sql-syntax", wrong, "write COUNT(*)", place_of(count))
        case _ if isinstance(node, _COMPARISONS) and (
            isinstance(node.this, _COMPARISONS) or isinstance(node.expression, _COMPARISONS)
        ):
            found = (
                "comparisons in a row mean different things to different people",
                "write 1 < x AND x < 5, or parentheses around one of them",
            )
        case _:
            return
    raise SqlError("sql-syntax", *found, place_of(node))


def _refuse_cut_text(node: exp.Expr) -> None:
    """VARCHAR(3), which cuts nothing in DuckDB."""
    if isinstance(node, exp.DataType) and node.expressions and node.is_type(*exp.DataType.TEXT_TYPES):
        raise Refused(
            "refused-cast",
            "In DuckDB the size of a text type cuts nothing off.",
            "Leave the size out, or write LEFT(x, 3).",
            place_of(node),
        )


def _permit_argument(node: exp.Expr, name: str, value: object, allowed: Mapping[str, bool]) -> None:
    if allowed.get(name) and isinstance(value, exp.Expr):
        raise SqlError(
            "sql-syntax",
            f"{shown(node)} does not take so many arguments",
            "check the commas and parentheses",
            place_of(value) or place_of(node),
        )
    if name in allowed or value is None or value is False or value == []:
        return
    child = value[0] if isinstance(value, list) else value
    blamed = child if isinstance(child, exp.Expr) else node
    if name in ("db", "catalog", "recursive"):
        raise refusal("Recursive" if name == "recursive" else "Schema", place_of(node))
    what = "" if name == "this" else f" with {name.rstrip('_').replace('_', ' ').upper()}"
    raise _refuse(blamed, node, f"{shown(node)}{what}")


def shown(node: exp.Expr) -> str:
    """A node as people write it: PERCENTILE_CONT, TABLE SAMPLE."""
    if isinstance(node, exp.Func):
        return node.sql_name()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _refuse(blamed: exp.Expr, node: exp.Expr, what: str) -> Refused:
    place, above = place_of(blamed), blamed.parent
    # a node without a token of its own: where the thing around it begins
    while place is None and above is not None:
        place, above = place_of(above), above.parent
    own = refusal_of_call(node, place)
    if own is not None:
        return own
    for each in (blamed, node):
        name = way_out_of(each)
        if name is not None:
            return refusal(name, place)
    return Refused(
        "refused-syntax",
        f"{what} is not supported: how far one person can move its result is not known.",
        "See docs/sql.md.",
        place,
    )
