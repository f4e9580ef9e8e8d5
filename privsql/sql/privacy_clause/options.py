"""The tokens of OPTIONS(epsilon=1, privacy_unit_column=id) go in; the options of a request come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from privsql.errors import Place, Refused, SqlError, did_you_mean


@dataclass(frozen=True)
class PrivacyOptions:
    """What the text itself says of its price, its unit and its limits; None where it says nothing."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    unit: tuple[str, ...] = ()  # the column, with the name of its table before it where there is one


# The options that are read, as the fields above; kappa is what WITH ANONYMIZATION called the limit of groups.
_KNOWN = {
    "epsilon": "epsilon",
    "delta": "delta",
    "max_groups_contributed": "max_groups",
    "kappa": "max_groups",
    "max_rows_contributed": "max_rows",
    "privacy_unit_column": "unit",
}
# Others that BigQuery or GoogleSQL know: why they are refused, and what to write instead.
_UNSUPPORTED = {
    "k_threshold": (
        "a threshold by itself has no delta: how likely it shows a key of one person is not known.",
        "Write delta=1e-6; the threshold follows from it.",
    ),
    "min_privacy_units_per_group": (
        "the least number of people of a key is the data owner's to decide.",
        "Leave it out. min_units in the policy says it for all queries.",
    ),
    "group_selection_strategy": (
        "which keys are shown follows from the policy: declared keys always, others if enough people have "
        "them.",
        "Leave it out.",
    ),
    "aggregation_threshold": ("a threshold without noise is not private.", "Leave it out."),
}


def token_place(token: Token) -> Place:
    """Where a token begins."""
    return Place(token.line, max(1, token.col - (token.end - token.start)))


def clause_error(message: str, suggestion: str, token: Token) -> SqlError:
    """The text of the clause is not as BigQuery writes it."""
    return SqlError("sql-syntax", message, suggestion, token_place(token))


def read_options(tokens: Sequence[Token]) -> PrivacyOptions:
    """The options between the parentheses of OPTIONS."""
    given: dict[str, Any] = {}
    for option in _listed(tokens):
        match option:
            case [name, sign, *value] if sign.token_type is TokenType.EQ and value:
                field = _field(name)
            case _:
                raise clause_error("an option is a name, = and a value", "epsilon=1.0", option[0])
        if field in given:
            raise clause_error(f"{name.text} is given twice", "name each option once", name)
        given[field] = _value(field, name, value)
    return PrivacyOptions(**given)


def _listed(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each option."""
    found: list[list[Token]] = [[]]
    for each in tokens:
        if each.token_type is TokenType.COMMA:
            found.append([])
        else:
            found[-1].append(each)
    return [each for each in found if each]


def _field(name: Token) -> str:
    known = _KNOWN.get(name.text.lower())
    if known is not None:
        return known
    why, way_out = _UNSUPPORTED.get(
        name.text.lower(), ("there is no such option.", did_you_mean(name.text.lower(), sorted(_KNOWN)))
    )
    raise Refused(
        "refused-privacy-clause",
        f"The option {name.text} is not supported: {why}",
        way_out,
        token_place(name),
    )


def _value(field: str, name: Token, value: Sequence[Token]) -> Fraction | int | tuple[str, ...]:
    if field == "unit":
        return _column(name, value)
    if len(value) != 1 or value[0].token_type is not TokenType.NUMBER:
        _refuse_value(name, "a number")
    try:
        number = Fraction(value[0].text)
    except ValueError:
        _refuse_value(name, "a number")
    if field in ("epsilon", "delta"):
        return number
    if number.denominator != 1 or number < 1:
        _refuse_value(name, "a whole number from 1 on")
    return int(number)


def _refuse_value(name: Token, wanted: str) -> NoReturn:
    example = {"a number": "1.0"}.get(wanted, "2")
    raise clause_error(f"{name.text} is {wanted} here", f"{name.text.lower()}={example}", name)


def _column(name: Token, value: Sequence[Token]) -> tuple[str, ...]:
    """id, or members.id."""
    names, dots = value[::2], value[1::2]
    named = all(each.token_type in (TokenType.VAR, TokenType.IDENTIFIER) for each in names)
    if not named or len(names) > 2 or len(names) != len(dots) + 1:
        raise clause_error(f"{name.text} is the name of a column", "privacy_unit_column=id", name)
    if any(each.token_type is not TokenType.DOT for each in dots):
        raise clause_error(f"{name.text} is the name of a column", "privacy_unit_column=id", name)
    return tuple(each.text for each in names)
