"""SQL text goes in; one parsed SELECT comes out in which every node and every argument has a rule, or a refusal.

Refuse by default: PERMITTED lists each node class with the arguments that the binder reads. A class that is not
there, or an argument that is set and not listed, is refused. There is no list of forbidden things.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import Place, Refused, SqlError, did_you_mean
from privsql.sql.dialects import dialect_name, refuse_other_meanings
from privsql.sql.permitted import PERMITTED, SAME_AS, WAYS_OUT
from privsql.sql.places import place_of
from privsql.sql.spellings import write_plainly

MAX_LENGTH = 20_000
MAX_NESTING = 40
MAX_NODES = 6_000


def parse(text: str, dialect: str) -> exp.Expr:
    """Exactly one SELECT, parsed and permitted node by node."""
    tokens, start = _measure(text, dialect)
    try:
        parser = sqlglot.Dialect.get_or_raise(dialect).parser(error_message_context=0)  # words of the text it would log
        statements = [each for each in parser.parse(tokens, text) if each is not None]
    except RecursionError:
        raise too_deep() from None
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        line, column = details[0].get("line"), details[0].get("col")
        place = Place(line, column) if line and column else None
        raise SqlError("sql-syntax", "this is not SQL that can be read", "check the text near here", place) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # some malformed texts break sqlglot itself
        raise SqlError("sql-syntax", "this is not SQL that can be read", "check for missing arguments", start) from None
    if not statements:
        raise SqlError("sql-empty", "there is no SQL here", "write a SELECT")
    if len(statements) > 1:
        raise SqlError("sql-statements", "only one statement at a time is read", "send them one by one")
    _refuse_half_between(tokens, statements[0])
    return permitted(statements[0], dialect, start)


def permitted(statement: exp.Expr, dialect: str, start: Place | None) -> exp.Expr:
    """One SELECT, written plainly, every node of which has a rule."""
    if not isinstance(statement, (exp.Select, exp.Union, exp.Subquery)):
        raise Refused("refused-statement", "only SELECT can be asked", "write SELECT ... FROM ...", start)
    write_plainly(statement)
    try:
        _permit(statement, cuts_text=dialect_name(dialect) != "duckdb")
        refuse_other_meanings(statement, dialect)
    except SqlError as error:
        raise error.at(start) from None
    return statement


def _measure(text: str, dialect: str) -> tuple[list[Token], Place | None]:
    """Length and nesting, before a recursive parser sees the text; its tokens come out, and where it begins."""
    if not isinstance(text, str):
        raise SqlError("sql-syntax", "the SQL must be a string")
    if len(text) > MAX_LENGTH:
        raise SqlError("sql-too-long", f"the text is longer than {MAX_LENGTH:,} characters", "ask a shorter question")
    if _NO_TEXT.search(text):
        raise SqlError("sql-syntax", "the text has a character that is no text", "check where it was copied from")
    if not isinstance(dialect, str):
        raise SqlError("sql-dialect", "the dialect must be a string", "leave it out for DuckDB's SQL")
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except SqlglotError:
        raise SqlError("sql-syntax", "this is not SQL that can be read", "check quotes and comments") from None
    except ValueError:
        raise SqlError("sql-dialect", f"there is no dialect {dialect!r}", did_you_mean(dialect, _dialects())) from None
    depth, run = 0, 0
    for place, token in enumerate(tokens):
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END):
            depth -= 1
        run = run + 1 if token.token_type in (TokenType.NOT, TokenType.DASH, TokenType.TILDE) else 0
        if depth > MAX_NESTING or run > MAX_NESTING:
            raise too_deep()
        sign = token.text == "!" and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        if sign and not _is_no_match(tokens[place : place + 3]):
            # sqlglot reads `x ! in (1)` as NOT IN, DuckDB as a factorial: nobody can have meant it
            raise SqlError("sql-syntax", "'!' is read differently by different engines", "write NOT or <>",
                           Place(token.line, token.col))  # fmt: skip
    _refuse_unfinished(tokens)
    _refuse_ambiguous(text, tokens)
    _refuse_dropped(tokens, dialect)
    start = Place(tokens[0].line, max(1, tokens[0].col - (tokens[0].end - tokens[0].start))) if tokens else None
    # before sqlglot sees it: commands it cannot read it writes to the log, words and all
    if any(token.token_type is TokenType.SEMICOLON for token in _without_end(tokens)):
        raise SqlError("sql-statements", "only one statement at a time is read", "send them one by one")
    if tokens and tokens[0].token_type not in _BEGINNINGS:
        if _is_command(tokens[0], dialect):
            raise Refused("refused-statement", "only SELECT can be asked", "write SELECT ... FROM ...", start)
        raise SqlError("sql-syntax", "this is not SQL that can be read", "write SELECT ... FROM ...", start)
    return tokens, start


def _refuse_half_between(tokens: list[Token], statement: exp.Expr) -> None:
    """sqlglot reads x BETWEEN 1 5 AND y as (x BETWEEN 1 AND 5) AND y: every AND of the tree must be one of the text."""
    between = next((each for each in tokens if each.token_type is TokenType.BETWEEN), None)
    if between is not None:
        written = sum(each.token_type in (TokenType.AND, TokenType.DAMP) for each in tokens)
        if written < sum(1 for _ in statement.find_all(exp.And, exp.Between)):
            raise SqlError("sql-syntax", "BETWEEN needs AND between its ends", "write x BETWEEN 1 AND 5",
                           Place(between.line, between.col))  # fmt: skip


def _is_no_match(tokens: list[Token]) -> bool:
    """Whether these are !~ 'a' (or !~*, !~~, !~~*), in one piece and before a constant: NOT, to everybody."""
    match tokens:
        case [first, sign, pattern]:
            together = sign.text in ("~", "~*", "~~", "~~*") and sign.start == first.end + 1
            return together and pattern.token_type is TokenType.STRING
        case _:
            return False


def _refuse_unfinished(tokens: list[Token]) -> None:
    """What sqlglot passes over: a parenthesis that is not closed, AS without a name, the DISTINCT of GROUP BY DISTINCT."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _BRACKETS:
            opened.append(token)
        elif token.token_type in _CLOSING and (not opened or _BRACKETS[opened.pop().token_type] is not token.token_type):
            raise SqlError("sql-syntax", "this closes what was not opened", "check the parentheses", Place(token.line, token.col))
    if opened:
        raise SqlError("sql-syntax", "this is not closed", "check the parentheses", Place(opened[-1].line, opened[-1].col))
    for word, after in itertools.pairwise(tokens):
        if word.token_type is TokenType.ALIAS and after.token_type in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN):
            raise SqlError("sql-syntax", "there is no name behind AS", "write one, or leave AS out", Place(word.line, word.col))
        if word.token_type is TokenType.GROUP_BY and after.token_type is TokenType.DISTINCT:
            raise SqlError("sql-syntax", "GROUP BY DISTINCT has no rule", "list the keys once", Place(after.line, after.col))


def _refuse_ambiguous(text: str, tokens: list[Token]) -> None:
    """Characters that nobody sees: sqlglot takes some for spaces and DuckDB for letters, and others the other way round.

    So is DATE '2024-01-31'::VARCHAR: to one the text is cast first, to the other the date. What is missing before a comma sqlglot
    may leave out, and read the next argument for it; so it may the AND of BETWEEN, where b'1' is a column and a text to it. NULL
    among the elements of x IN [a, b] DuckDB passes over; in IN (a, b) it makes the test unknown, and sqlglot does not say which
    brackets there were.
    """
    for place, (word, bracket) in enumerate(itertools.pairwise(tokens)):
        if word.token_type is TokenType.IN and bracket.token_type is TokenType.L_BRACKET:
            listed = itertools.takewhile(lambda each: each.token_type is not TokenType.R_BRACKET, tokens[place + 2 :])
            if any(each.token_type not in _OF_CONSTANTS for each in listed):
                raise SqlError("sql-syntax", "in brackets behind IN only constants are read: NULL there is read differently",
                               "write IN ('CA', 'NY'), in parentheses", Place(bracket.line, bracket.col))  # fmt: skip
    for before, comma in itertools.pairwise(tokens):
        if comma.token_type is TokenType.COMMA and before.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA):
            raise SqlError("sql-syntax", "an argument is missing here", "check the commas and parentheses",
                           Place(comma.line, comma.col))  # fmt: skip
    if any(each.token_type in (TokenType.UNPIVOT, TokenType.BETWEEN) for each in tokens):
        for word, value in itertools.pairwise(tokens):
            if value.token_type is TokenType.STRING and word.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                raise SqlError("sql-syntax", "a name before a text is a column to some engines, and a type to others",
                               "write AS between them", Place(value.line, value.col))  # fmt: skip
    for kind, value, cast in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (kind.token_type in Parser.TYPE_TOKENS and value.token_type is TokenType.STRING
                and cast.token_type is TokenType.DCOLON):  # fmt: skip
            raise SqlError("sql-syntax", "a cast behind a typed constant is read differently by different engines",
                           "write CAST(DATE '...' AS ...)", Place(cast.line, cast.col))  # fmt: skip
    if text.isprintable():  # as most are: letters, signs and plain spaces
        return
    unseen = [place for place, letter in enumerate(text) if letter not in _SPACES and _is_unseen(letter)]
    quoted = [(each.start, each.end) for each in tokens if text[each.start : each.end + 1][-1:] in ("'", '"', "`", "$")]
    for place in unseen:
        if not any(start <= place <= end for start, end in quoted):
            line = text.count("\n", 0, place)
            raise SqlError("sql-syntax", "there is a character here that cannot be seen", "delete it, or write a plain space",
                           Place(line + 1, place - text.rfind("\n", 0, place)))  # fmt: skip


def _refuse_dropped(tokens: list[Token], dialect: str) -> None:
    """Arguments that sqlglot leaves out without a word: it reads log2(x, 5) as log2(x)."""
    known = sqlglot.Dialect.get_or_raise(dialect).parser_class.FUNCTIONS
    for place, (word, bracket) in enumerate(itertools.pairwise(tokens)):
        if bracket.token_type is TokenType.L_PAREN and word.text.upper() in known:
            count = _arguments(tokens, place + 2)
            if count and _is_dropped(dialect, word.text.upper(), min(count, _MANY)):
                raise SqlError("sql-syntax", f"{word.text.upper()} does not take {count} arguments",
                               "check the commas and parentheses", Place(word.line, word.col))  # fmt: skip


def _arguments(tokens: list[Token], start: int) -> int:
    """How many there are from behind a parenthesis to its end, or to ORDER BY."""
    count, depth, begins = 0, 0, True
    for place in range(start, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind in _BRACKETS) - (kind in _CLOSING)
        if depth < 0 or (depth == 0 and kind is TokenType.ORDER_BY):
            break
        count += begins
        begins = depth == 0 and kind is TokenType.COMMA
    return count


@functools.lru_cache(maxsize=4_096)
def _is_dropped(dialect: str, name: str, count: int) -> bool:
    """Whether the last of so many is; tried on names. Where sqlglot refuses so many itself, it may say so."""
    given = [f"privsql_{number}_" for number in range(count)]
    try:
        read = repr(sqlglot.parse_one(f"SELECT {name}({', '.join(given)})", read=dialect)).lower()
    except (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return False
    return given[-1].removeprefix("privsql") not in read  # of a format, letters are read as parts of a date


_MANY = 8  # arguments: what keeps so many keeps any number
_BRACKETS = {
    TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET, TokenType.L_BRACE: TokenType.R_BRACE,
}  # fmt: skip
_CLOSING = frozenset(_BRACKETS.values())
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_SPACES = frozenset(" \t\n\r\v\f")
_OF_CONSTANTS = frozenset({
    TokenType.STRING, TokenType.NUMBER, TokenType.COMMA, TokenType.DASH, TokenType.TRUE, TokenType.FALSE, TokenType.DATE,
    TokenType.TIMESTAMP,
})  # fmt: skip


def _is_unseen(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs")  # spaces too: at the end of a text one is a letter


def _is_command(first: Token, dialect: str) -> bool:
    spoken = sqlglot.Dialect.get_or_raise(dialect)
    known = {*spoken.parser_class.STATEMENT_PARSERS, *spoken.tokenizer_class.COMMANDS}
    return first.text.upper() in _COMMANDS or first.token_type in known


def _without_end(tokens: list[Token]) -> list[Token]:
    """The tokens without semicolons at either end, which say nothing."""
    last = len(tokens)
    while last and tokens[last - 1].token_type is TokenType.SEMICOLON:
        last -= 1
    return tokens[:last]


# Words a statement may begin with that is not a question. Only for the log's sake: whatever is not a SELECT once it
# is parsed is refused below.
_COMMANDS = frozenset(
    "ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESCRIBE DETACH DROP EXECUTE "
    "EXPLAIN EXPORT FORCE GRANT IMPORT INSERT INSTALL LOAD LOCK MERGE OPTIMIZE PRAGMA PREPARE REFRESH RENAME RESET REVOKE "
    "ROLLBACK SET SHOW START TRUNCATE UNSET UPDATE USE VACUUM".split()
)
# What a question begins with, and a text without words.
_BEGINNINGS = frozenset({
    TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.VALUES, TokenType.PIVOT, TokenType.UNPIVOT,
    TokenType.SEMICOLON,
})  # fmt: skip


@functools.cache
def _dialects() -> tuple[str, ...]:
    return tuple(sorted(name for name in sqlglot.Dialect.classes if name))


# Arguments without which there is no such node.
_NEEDED = {kind: tuple(name for name, needed in kind.arg_types.items() if needed) for kind in PERMITTED}


def too_deep() -> SqlError:
    return SqlError("sql-too-deep", "the text is nested too deeply", "use a CTE, or simplify the expression")


def _permit(statement: exp.Expr, cuts_text: bool) -> None:
    for count, node in enumerate(statement.walk(bfs=False)):
        if count > MAX_NODES:
            raise SqlError("sql-too-long", "the query has too many parts", "ask a simpler question")
        allowed = PERMITTED.get(type(node))
        if allowed is None:
            raise _refuse(node, node, f"{_shown(node)} has no rule")
        if isinstance(node, exp.Identifier) and not node.this:
            raise SqlError("sql-syntax", "a name must not be empty", "give it a name of at least one letter", place_of(node))
        if isinstance(node, exp.Select) and not node.expressions:
            raise SqlError("sql-syntax", "this SELECT selects nothing", "SELECT COUNT(*) FROM ...", place_of(node))
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Count) and any(node.args.values()):
            raise SqlError("sql-syntax", "COUNT(*) counts rows, whatever their columns", "write COUNT(*)", place_of(node.parent))
        if isinstance(node, _COMPARISONS) and (isinstance(node.this, _COMPARISONS) or isinstance(node.expression, _COMPARISONS)):
            raise SqlError("sql-syntax", "comparisons in a row mean different things to different people",
                           "write 1 < x AND x < 5, or parentheses around one of them", place_of(node))  # fmt: skip
        if isinstance(node, exp.DataType) and not cuts_text and node.expressions and node.is_type(*exp.DataType.TEXT_TYPES):
            raise Refused("refused-cast", "in DuckDB the size of a text cuts nothing",
                          "leave it out, or write LEFT(x, 3)", place_of(node))  # fmt: skip
        if any(node.args.get(name) is None for name in _NEEDED[type(node)]):
            raise SqlError("sql-syntax", "an argument is missing here", "check the commas and parentheses", place_of(node))
        if (
            isinstance(node, exp.Query)
            and isinstance(node.parent, (exp.Binary, exp.Unary, exp.Func, exp.Alias, exp.Between))
            and not isinstance(node.parent, (exp.Exists, exp.In))
        ):
            raise Refused("refused-exists", *WAYS_OUT["Exists"], place_of(node))
        for name, value in node.args.items():
            if allowed.get(name) and isinstance(value, exp.Expr):
                raise SqlError("sql-syntax", f"{_shown(node)} does not take so many arguments",
                               "check the commas and parentheses", place_of(value) or place_of(node))  # fmt: skip
            if name not in allowed and value is not None and value is not False and value != []:
                child = value[0] if isinstance(value, list) else value
                blamed = child if isinstance(child, exp.Expr) else node
                if name in ("db", "catalog", "recursive"):
                    known = "Recursive" if name == "recursive" else "Schema"
                    raise Refused(f"refused-{known.lower()}", *WAYS_OUT[known], place_of(node))
                what = "" if name == "this" else f" with {name.rstrip('_').replace('_', ' ').upper()}"
                raise _refuse(blamed, node, f"{_shown(node)}{what} has no rule")


def _shown(node: exp.Expr) -> str:
    """A node as people write it: PERCENTILE_CONT, TABLE SAMPLE."""
    if isinstance(node, exp.Func):
        return node.sql_name()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _refuse(blamed: exp.Expr, node: exp.Expr, reason: str) -> Refused:
    place, above = place_of(blamed), blamed.parent
    while place is None and above is not None:  # a node without a token of its own: where the thing around it begins
        place, above = place_of(above), above.parent
    for each in (blamed, node):
        name = SAME_AS.get(type(each).__name__, type(each).__name__)
        if name in WAYS_OUT:
            return Refused(f"refused-{name.lower()}", *WAYS_OUT[name], place)
    return Refused(
        "refused-syntax",
        f"{reason}, so no bound on one person's part is known",
        "see the list of supported SQL in the README",
        place,
    )
