"""SQL text goes in; its tokens come out, or a refusal of what a parser that recurses must not see, or would
read wrongly.

sqlglot reads some texts that nobody can have meant without a word, and engines read some differently; no tree
shows it.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import Place, SqlError, did_you_mean
from privsql.sql.parse.refusals import only_select
from privsql.sql.privacy_clause.options import PrivacyOptions
from privsql.sql.privacy_clause.split_tokens import CLAUSES, Split, is_bigquery, split_clause

MAX_LENGTH = 20_000
MAX_NESTING = 40
MISSING_ARGUMENT = "an argument is missing here", "check the commas and parentheses"


def tokens_of(text: str, dialect: str) -> tuple[Split, Place | None]:
    """Length and nesting, before a recursive parser sees the text; its tokens come out, without BigQuery's
    privacy syntax, and where it begins.
    """
    if not isinstance(text, str):
        raise SqlError("sql-syntax", "the SQL must be a string")
    if len(text) > MAX_LENGTH:
        raise SqlError(
            "sql-too-long", f"the SQL is longer than {MAX_LENGTH:,} characters", "write a shorter query"
        )
    if _NO_TEXT.search(text):
        raise SqlError(
            "sql-syntax", "the SQL has a NUL character or a lone surrogate", "check where it was copied from"
        )
    if not isinstance(dialect, str):
        raise SqlError("sql-dialect", "the dialect must be a string", "leave it out for DuckDB's SQL")
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except SqlglotError:
        raise SqlError("sql-syntax", "the SQL cannot be parsed", "check quotes and comments") from None
    except ValueError:
        raise SqlError(
            "sql-dialect", f"there is no dialect {dialect!r}", did_you_mean(dialect, _dialects())
        ) from None
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
            raise _wrong(
                token,
                "'!' is read differently by different engines",
                "write NOT or <>",
            )
    _refuse_unfinished(tokens)
    split = split_clause(tokens, text, dialect)
    tokens = split.tokens
    _refuse_ambiguous(text, tokens)
    _refuse_dropped(tokens, dialect)
    start = (
        Place(tokens[0].line, max(1, tokens[0].col - (tokens[0].end - tokens[0].start))) if tokens else None
    )
    # before sqlglot sees it: commands it cannot read it writes to the log, words and all
    if any(token.token_type is TokenType.SEMICOLON for token in _without_end(tokens)):
        raise SqlError("sql-statements", "only one statement at a time is read", "send them one by one")
    if tokens and tokens[0].token_type not in _BEGINNINGS:
        if _is_command(tokens[0], dialect):
            raise only_select(start)
        raise SqlError("sql-syntax", "the SQL cannot be parsed", "write SELECT ... FROM ...", start)
    return split, start


def options_in(text: object, dialect: object) -> PrivacyOptions | None:
    """What BigQuery's privacy syntax in a text says of its price and limits; None where it is not used.

    A text that cannot be read has none: reading it says what is wrong.
    """
    if not isinstance(text, str) or not isinstance(dialect, str) or not is_bigquery(dialect):
        return None
    if not any(each in text.upper() for each in CLAUSES):
        return None
    return tokens_of(text, dialect)[0].options


def _is_no_match(tokens: list[Token]) -> bool:
    """Whether these are !~ 'a' (or !~*, !~~, !~~*), in one piece and before a constant: NOT, to everybody."""
    match tokens:
        case [first, sign, pattern]:
            together = sign.text in ("~", "~*", "~~", "~~*") and sign.start == first.end + 1
            return together and pattern.token_type is TokenType.STRING
        case _:
            return False


def _refuse_unfinished(tokens: list[Token]) -> None:
    """What sqlglot passes over: a parenthesis that is not closed, AS without a name, the DISTINCT of GROUP BY
    DISTINCT.
    """
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _BRACKETS:
            opened.append(token)
        elif token.token_type in _CLOSING and (
            not opened or _BRACKETS[opened.pop().token_type] is not token.token_type
        ):
            raise _wrong(
                token,
                "this closes what was not opened",
                "check the parentheses",
            )
    if opened:
        raise _wrong(opened[-1], "this is not closed", "check the parentheses")
    for word, after in itertools.pairwise(tokens):
        if word.token_type is TokenType.ALIAS and after.token_type in (
            TokenType.COMMA,
            TokenType.FROM,
            TokenType.R_PAREN,
        ):
            raise _wrong(
                word,
                "there is no name behind AS",
                "write one, or leave AS out",
            )
        if word.token_type is TokenType.GROUP_BY and after.token_type is TokenType.DISTINCT:
            raise _wrong(
                after,
                "GROUP BY DISTINCT has no rule",
                "list the keys once",
            )


def _refuse_ambiguous(text: str, tokens: list[Token]) -> None:
    """What sqlglot and engines read differently, and no tree shows."""
    _refuse_null_in_brackets(tokens)
    _refuse_missing_arguments(tokens)
    _refuse_typed_texts(tokens)
    _refuse_unseen(text, tokens)


def _refuse_null_in_brackets(tokens: list[Token]) -> None:
    """NULL among the elements of x IN [a, b] DuckDB passes over; in IN (a, b) it makes the test unknown, and
    sqlglot does not say which brackets there were.
    """
    for place, (word, bracket) in enumerate(itertools.pairwise(tokens)):
        if word.token_type is TokenType.IN and bracket.token_type is TokenType.L_BRACKET:
            behind = tokens[place + 2 :]
            listed = itertools.takewhile(lambda each: each.token_type is not TokenType.R_BRACKET, behind)
            if any(each.token_type not in _OF_CONSTANTS for each in listed):
                raise _wrong(
                    bracket,
                    "in brackets behind IN only constants are read: NULL there is read differently",
                    "write IN ('CA', 'NY'), in parentheses",
                )


def _refuse_missing_arguments(tokens: list[Token]) -> None:
    """What is missing before a comma sqlglot may leave out, and read the next argument for it."""
    openings = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA)
    for before, comma in itertools.pairwise(tokens):
        if comma.token_type is TokenType.COMMA and before.token_type in openings:
            raise _wrong(comma, *MISSING_ARGUMENT)


def _refuse_typed_texts(tokens: list[Token]) -> None:
    """b'1' is a column and a text to sqlglot where it leaves out the AND of BETWEEN. Of DATE
    '2024'::VARCHAR one engine casts the text first, and another the date.
    """
    if any(each.token_type in (TokenType.UNPIVOT, TokenType.BETWEEN) for each in tokens):
        for word, value in itertools.pairwise(tokens):
            named = word.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
            if named and value.token_type is TokenType.STRING:
                raise _wrong(
                    value,
                    "a name before a text is a column to some engines, and a type to others",
                    "write AS between them",
                )
    for kind, value, cast in zip(tokens, tokens[1:], tokens[2:], strict=False):
        typed = kind.token_type in Parser.TYPE_TOKENS and value.token_type is TokenType.STRING
        if typed and cast.token_type is TokenType.DCOLON:
            raise _wrong(
                cast,
                "a cast behind a typed constant is read differently by different engines",
                "write CAST(DATE '...' AS ...)",
            )


def _refuse_unseen(text: str, tokens: list[Token]) -> None:
    """Characters that nobody sees: sqlglot takes some for spaces and DuckDB for letters, and others the other
    way round.
    """
    if text.isprintable():  # as most are: letters, signs and plain spaces
        return
    unseen = [place for place, letter in enumerate(text) if letter not in _SPACES and _is_unseen(letter)]
    quotes = ("'", '"', "`", "$")
    quoted = [(each.start, each.end) for each in tokens if text[each.start : each.end + 1][-1:] in quotes]
    for place in unseen:
        if not any(start <= place <= end for start, end in quoted):
            line = text.count("\n", 0, place)
            raise SqlError(
                "sql-syntax",
                "there is a character here that cannot be seen",
                "delete it, or write a plain space",
                Place(line + 1, place - text.rfind("\n", 0, place)),
            )


def _wrong(token: Token, message: str, suggestion: str) -> SqlError:
    return SqlError("sql-syntax", message, suggestion, Place(token.line, token.col))


def _refuse_dropped(tokens: list[Token], dialect: str) -> None:
    """Arguments that sqlglot leaves out without a word: it reads log2(x, 5) as log2(x)."""
    known = sqlglot.Dialect.get_or_raise(dialect).parser_class.FUNCTIONS
    for place, (word, bracket) in enumerate(itertools.pairwise(tokens)):
        if bracket.token_type is TokenType.L_PAREN and word.text.upper() in known:
            count = _arguments(tokens, place + 2)
            if count and _is_dropped(dialect, word.text.upper(), min(count, _MANY)):
                raise _wrong(
                    word,
                    f"{word.text.upper()} does not take {count} arguments",
                    "check the commas and parentheses",
                )


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
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_CLOSING = frozenset(_BRACKETS.values())
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_SPACES = frozenset(" \t\n\r\v\f")
_OF_CONSTANTS = frozenset(
    {
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.COMMA,
        TokenType.DASH,
        TokenType.TRUE,
        TokenType.FALSE,
        TokenType.DATE,
        TokenType.TIMESTAMP,
    }
)


def _is_unseen(letter: str) -> bool:
    # spaces too: at the end of a text one is a letter
    return unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs")


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


# Words a statement may begin with that is not a query. Only for the log's sake: whatever is not a SELECT
# once it is parsed is refused below.
_COMMANDS = frozenset(
    """
    ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESCRIBE
    DETACH DROP EXECUTE EXPLAIN EXPORT FORCE GRANT IMPORT INSERT INSTALL LOAD LOCK MERGE OPTIMIZE PRAGMA
    PREPARE REFRESH RENAME RESET REVOKE ROLLBACK SET SHOW START TRUNCATE UNSET UPDATE USE VACUUM
    """.split()
)
# What a query begins with, and a text without words.
_BEGINNINGS = frozenset(
    {
        TokenType.SELECT,
        TokenType.WITH,
        TokenType.FROM,
        TokenType.L_PAREN,
        TokenType.VALUES,
        TokenType.PIVOT,
        TokenType.UNPIVOT,
        TokenType.SEMICOLON,
    }
)


@functools.cache
def _dialects() -> tuple[str, ...]:
    return tuple(sorted(name for name in sqlglot.Dialect.classes if name))


def too_deep() -> SqlError:
    return SqlError("sql-too-deep", "the text is nested too deeply", "use a CTE, or simplify the expression")
