"""The tokens of a query go in; those of an ordinary query come out, and what BigQuery's privacy syntax said.

The clause, ANON_COUNT and its kin, `contribution_bounds_per_group => (0, 5)` and CLAMPED BETWEEN 0 AND 5 are
nothing that sqlglot parses. They are taken out token by token. Calls of functions that no text can name stand
where they were; marked_tree.py reads them in the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import Refused
from privsql.sql.privacy_clause.options import PrivacyOptions, clause_error, read_options, token_place

CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
_ANONYMOUS = {
    "ANON_COUNT": "COUNT",
    "ANON_SUM": "SUM",
    "ANON_AVG": "AVG",
    "ANON_VAR_POP": "VAR_POP",
    "ANON_STDDEV_POP": "STDDEV_POP",
    "ANON_PERCENTILE_CONT": "PERCENTILE_CONT",
    "ANON_QUANTILES": "APPROX_QUANTILES",
}
_BOUNDS = {"CONTRIBUTION_BOUNDS_PER_GROUP": "group", "CONTRIBUTION_BOUNDS_PER_ROW": "row"}


@dataclass(frozen=True)
class Bounds:
    """The ends between which one person's contribution is clamped: `per` group, row, or "" for what the
    function has.

    Without ends it only says that the call is one of BigQuery's own functions.
    """

    ends: tuple[str, str] | None
    per: str
    token: Token


@dataclass(frozen=True)
class Split:
    """An ordinary query as tokens. `mark`: how the functions are called that stand for what was taken out."""

    tokens: list[Token]
    options: PrivacyOptions | None = None
    mark: str = ""
    bounds: tuple[Bounds, ...] = ()


def split_clause(tokens: list[Token], text: str, dialect: str) -> Split:
    """Take BigQuery's privacy syntax out of a query; `options` is None where it has none."""
    selects = [place for place in range(len(tokens)) if _clause_at(tokens, place)]
    if not selects:
        _refuse_alone(tokens, dialect)
        return Split(tokens)
    first = tokens[selects[0] + 2]
    if not is_bigquery(dialect):
        raise clause_error("this is BigQuery's syntax", 'ask with dialect="bigquery"', first)
    if first.text.upper() not in CLAUSES:
        raise Refused(
            "refused-privacy-clause",
            f"SELECT WITH {first.text.upper()} is not supported: it adds no noise.",
            "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6).",
            token_place(first),
        )
    if len(selects) > 1:
        raise Refused(
            "refused-privacy-clause",
            "One SELECT of a query says its price, and this query has several that do.",
            "Leave the clauses out, and give epsilon= for the whole query.",
            token_place(tokens[selects[1] + 2]),
        )
    return _ClauseReader(tokens, _mark(text)).split(selects[0])


def is_bigquery(dialect: str) -> bool:
    """Whether a dialect is BigQuery's; sqlglot takes settings behind a comma."""
    return dialect.partition(",")[0].strip() == "bigquery"


def _clause_at(tokens: Sequence[Token], place: int) -> bool:
    """Whether SELECT WITH <word> begins here. WITH never follows SELECT in other SQL."""
    match tokens[place : place + 3]:
        case [select, with_, word]:
            return (
                select.token_type is TokenType.SELECT
                and with_.token_type is TokenType.WITH
                and word.token_type is TokenType.VAR
            )
        case _:
            return False


def _refuse_alone(tokens: Sequence[Token], dialect: str) -> None:
    """Refuse functions and arguments of private queries where no SELECT says that it is one."""
    if not is_bigquery(dialect):
        return
    for each, after in itertools.pairwise(tokens):
        called = each.token_type is TokenType.VAR and after.token_type is TokenType.L_PAREN
        if (called and each.text.upper() in _ANONYMOUS) or each.text.upper() in _BOUNDS:
            raise clause_error(
                f"{each.text} belongs to SELECT WITH DIFFERENTIAL_PRIVACY",
                "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6) ...",
                each,
            )


def _mark(text: str) -> str:
    """A name that is not in the text."""
    mark = "privsql_mark"
    while mark in text.lower():
        mark += "_"
    return mark


@dataclass
class _ClauseReader:
    """Copies tokens one by one; at a clause, a function or bounds it writes something else."""

    tokens: list[Token]
    mark: str
    place: int = 0
    written: list[Token] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # where in `written` each open parenthesis stands

    def split(self, select: int) -> Split:
        options = PrivacyOptions()
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            if self.place == select:
                self._take()
                options = self._clause()
            elif token.token_type is TokenType.L_PAREN:
                self.opened.append(len(self.written))
                self._take()
            elif token.token_type is TokenType.R_PAREN:
                self._close()
            elif self._is_named(token):
                self._named_bounds()
            elif self._is_clamped(token):
                self._clamped()
            else:
                self._take()
        return Split(self.written, options, self.mark, tuple(self.bounds))

    def _take(self) -> None:
        self.written.append(self.tokens[self.place])
        self.place += 1

    def _like(self, kind: TokenType, text: str, near: Token) -> Token:
        """A token of our own, at the place of another."""
        return Token(kind, text, near.line, near.col, near.start, near.end)

    def _call(self, number: str, near: Token) -> list[Token]:
        return [
            self._like(TokenType.VAR, f"{self.mark}{number}", near),
            self._like(TokenType.L_PAREN, "(", near),
        ]

    # -- the clause ------------------------------------------------------------------------------------------
    def _clause(self) -> PrivacyOptions:
        """WITH DIFFERENTIAL_PRIVACY OPTIONS(...), behind SELECT; a call stands for it in the SELECT list."""
        near = self.tokens[self.place]
        self.place += 2
        options = PrivacyOptions()
        if self._text() == "OPTIONS":
            options = read_options(self._in_parentheses())
        while self._text() in ("DISTINCT", "ALL"):
            self._take()
        self.written += [
            *self._call("", near),
            self._like(TokenType.R_PAREN, ")", near),
            self._like(TokenType.COMMA, ",", near),
        ]
        return options

    def _text(self) -> str:
        return self.tokens[self.place].text.upper() if self.place < len(self.tokens) else ""

    def _in_parentheses(self) -> list[Token]:
        """What stands in the parentheses behind the current token; passes over them."""
        word = self.tokens[self.place]
        start = self.place + 1
        kinds = [each.token_type for each in self.tokens[start:]]
        if not kinds or kinds[0] is not TokenType.L_PAREN or TokenType.R_PAREN not in kinds:
            raise clause_error(f"{word.text} is followed by parentheses", "OPTIONS(epsilon=1.0)", word)
        end = start + kinds.index(TokenType.R_PAREN)
        self.place = end + 1
        return self.tokens[start + 1 : end]

    # -- functions and bounds --------------------------------------------------------------------------------
    def _close(self) -> None:
        """A parenthesis that ends a call of ANON_..., or one that has bounds."""
        start = self.opened.pop() if self.opened else None
        name = self.written[start - 1] if start else None
        self._take()
        if start is None or name is None or name.token_type is not TokenType.VAR:
            return
        plain = _ANONYMOUS.get(name.text.upper())
        if plain is not None:
            self.written[start - 1] = self._like(TokenType.VAR, plain, name)
            self._mark_call(start - 1, Bounds(None, "", name))

    def _mark_call(self, start: int, bounds: Bounds) -> None:
        """Put a call around the one that was just written, whose name stands at `start`."""
        self.written[start:start] = self._call(str(len(self.bounds)), bounds.token)
        self.written.append(self._like(TokenType.R_PAREN, ")", bounds.token))
        self.bounds.append(bounds)

    def _is_named(self, token: Token) -> bool:
        """Whether it is the name of an argument: name => value."""
        after = self.tokens[self.place + 1 : self.place + 2]
        return token.token_type is TokenType.VAR and bool(after) and after[0].token_type is TokenType.FARROW

    def _is_clamped(self, token: Token) -> bool:
        after = self.tokens[self.place + 1 : self.place + 2]
        between = bool(after) and after[0].token_type is TokenType.BETWEEN
        return between and token.token_type is TokenType.VAR and token.text.upper() == "CLAMPED"

    def _named_bounds(self) -> None:
        """, contribution_bounds_per_group => (0, 5))"""
        token = self.tokens[self.place]
        if token.text.upper() not in _BOUNDS:
            raise Refused(
                "refused-privacy-clause",
                f"The argument {token.text} is not supported: no aggregate here has one of that name.",
                "Leave it out. answer.intervals() says how far the noise may reach.",
                token_place(token),
            )
        if not self.written or self.written[-1].token_type is not TokenType.COMMA:
            raise clause_error(f"{token.text} comes last, behind a comma", _EXAMPLE, token)
        self.written.pop()
        self.place += 1
        inside = self._in_parentheses()
        commas = [place for place, each in enumerate(inside) if each.token_type is TokenType.COMMA]
        if len(commas) != 1:
            raise clause_error(f"{token.text} needs two numbers", _EXAMPLE, token)
        ends = self._number(inside[: commas[0]], token), self._number(inside[commas[0] + 1 :], token)
        self._bounded(Bounds(ends, _BOUNDS[token.text.upper()], token))

    def _clamped(self) -> None:
        """CLAMPED BETWEEN 0 AND 5)"""
        token = self.tokens[self.place]
        rest = self.tokens[self.place + 2 :]
        kinds = [each.token_type for each in rest]
        if TokenType.R_PAREN not in kinds or TokenType.AND not in kinds[: kinds.index(TokenType.R_PAREN)]:
            raise clause_error("CLAMPED BETWEEN needs two numbers", "CLAMPED BETWEEN 0 AND 5", token)
        middle, end = kinds.index(TokenType.AND), kinds.index(TokenType.R_PAREN)
        ends = self._number(rest[:middle], token), self._number(rest[middle + 1 : end], token)
        self.place += 2 + end
        self._bounded(Bounds(ends, "", token))

    def _number(self, tokens: Sequence[Token], near: Token) -> str:
        match tokens:
            case [number] if number.token_type is TokenType.NUMBER:
                return number.text
            case [sign, number] if (
                sign.token_type is TokenType.DASH and number.token_type is TokenType.NUMBER
            ):
                return f"-{number.text}"
        raise clause_error("the bounds of a contribution are two numbers", _EXAMPLE, near)

    def _bounded(self, bounds: Bounds) -> None:
        """Close the call that has these bounds, which is the innermost one."""
        start = self.opened.pop() if self.opened else 0
        ends_here = self.place < len(self.tokens) and self.tokens[self.place].token_type is TokenType.R_PAREN
        name = self.written[start - 1] if start else None
        if not ends_here or name is None or name.token_type is not TokenType.VAR:
            raise clause_error("bounds come last in the call of an aggregate", _EXAMPLE, bounds.token)
        plain = _ANONYMOUS.get(name.text.upper(), name.text)
        self.written[start - 1] = self._like(TokenType.VAR, plain, name)
        self._take()
        self._mark_call(start - 1, bounds)


_EXAMPLE = "SUM(x, contribution_bounds_per_group => (0, 5))"
