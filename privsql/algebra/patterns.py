"""Formats, patterns and options of functions: each is read piece by piece, and a piece without a rule is
refused.

They are constants that the analyst wrote, and DuckDB has a language of its own for each. It must not be
trusted with what it happens to take: `%n` in strftime returned other people's text from memory, `%n`, `%z`
and `%Z` change the type of strptime, and `\\C` of a regular expression gives half a letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from privsql.algebra.expressions import Expression, Literal
from privsql.errors import Refused

LONGEST = 100  # characters of a replacement, or of a text that each row is measured against

# What strftime and strptime may be given: total under TRY, of this row alone, and leaving strptime a
# TIMESTAMP.
DIRECTIVES: dict[str, str] = {
    "%a": "day of the week, Mon",
    "%A": "day of the week, Monday",
    "%b": "month, Jan",
    "%B": "month, January",
    "%c": "%Y-%m-%d %H:%M:%S",
    "%d": "day, 01 to 31",
    "%-d": "day, 1 to 31",
    "%f": "microseconds, six digits",
    "%g": "milliseconds, three digits",
    "%G": "year of the ISO week",
    "%h": "month, Jan",
    "%H": "hour, 00 to 23",
    "%-H": "hour, 0 to 23",
    "%I": "hour, 01 to 12",
    "%-I": "hour, 1 to 12",
    "%j": "day of the year, 001 to 366",
    "%-j": "day of the year, 1 to 366",
    "%m": "month, 01 to 12",
    "%-m": "month, 1 to 12",
    "%M": "minute, 00 to 59",
    "%-M": "minute, 0 to 59",
    "%p": "AM or PM",
    "%S": "second, 00 to 59",
    "%-S": "second, 0 to 59",
    "%T": "%H:%M:%S",
    "%u": "day of the week, 1 (Monday) to 7",
    "%U": "week of the year from its first Sunday",
    "%V": "ISO week",
    "%w": "day of the week, 0 (Sunday) to 6",
    "%W": "week of the year from its first Monday",
    "%x": "%Y-%m-%d",
    "%X": "%H:%M:%S",
    "%y": "year, 00 to 99",
    "%-y": "year, 0 to 99",
    "%Y": "year",
    "%%": "%",
}
OPTIONS: dict[str, str] = {  # of regular expressions
    "c": "case matters",
    "g": "replace all matches, not the first only",
    "i": "case does not matter",
    "l": "the pattern is plain text",
    "m": "^ and $ match at line ends",
    "n": "^ and $ match at line ends",
    "p": "^ and $ match at line ends",
    "s": ". matches line ends, too",
}
_DIRECTIVE = re.compile(r"%-?.?", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{\^?\w+\}|[A-Z])|x(?:\{[0-9A-Fa-f]{1,6}\}|[0-9A-Fa-f]{2})|[dDsSwWbBAzaftnrvQE]|[^\w\s]|$)"
)
_GROUP = re.compile(r"\(\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?[:)])")
_STEP = re.compile(r"[1-9]\d{0,5} (?:second|minute|hour|day|week|month|quarter|year)")
_REWRITE = re.compile(r"\\[0-9\\]")


def check_constants(function: str, takes: Sequence[str], args: Sequence[Expression]) -> None:
    """Refuse a call with a constant that has no rule, before anything is read or charged.

    `takes`: the kind of each argument, as in the table of functions.
    """
    for place, (kind, arg) in enumerate(zip(takes, args, strict=True)):
        text = _text(arg)
        match kind:
            case "FORMAT":
                check_format(text)
            case "REGEX":
                _check_regular(text)
            case "OPTIONS":
                _check_options(text)
            case "ESCAPE":
                check_escape(_text(args[place - 1]), text)
            case "SHORT":
                _check_length(function, text)
            case "REWRITE":
                _check_length(function, text)
                _check_rewrite(text)
            case "FILL":
                _check_fill(function, args[place - 1], text)
            case "STEP":
                check_step(text)


def _text(argument: Expression) -> str | None:
    value = argument.value if isinstance(argument, Literal) else None
    return value if isinstance(value, str) else None


def _refused(problem: str, suggestion: str) -> Refused:
    return Refused("refused-pattern", problem, suggestion)


def wrong_escape() -> Refused:
    return _refused("ESCAPE must be one plain character, written out.", "Write LIKE '10#%' ESCAPE '#'.")


def check_format(text: str | None) -> None:
    for directive in _DIRECTIVE.findall(text or ""):
        if directive not in DIRECTIVES:
            raise _refused(
                f"The format directive {directive} is not supported.",
                "Use directives such as %Y, %m, %d, %H, %M, %S and %f; write %% for a percent sign.",
            )


def _check_regular(pattern: str | None) -> None:
    """Escapes and groups that RE2 documents, without `\\C`, which matches half a letter."""
    text, place = pattern or "", 0
    while place < len(text):
        known = {"\\": _ESCAPE, "(": _GROUP}.get(text[place])
        if known is None or (text[place] == "(" and text[place : place + 2] != "(?"):
            place += 1
            continue
        piece = known.match(text, place)
        if piece is None:
            raise _refused(
                f"The regular expression has {text[place : place + 3]!r}, which is not supported.",
                r"Use plain characters, [...], groups, \d, \s, \w, \b, \pL and their opposites.",
            )
        place = piece.end()


def _check_length(function: str, text: str | None) -> None:
    if len(text or "") > LONGEST:
        raise _refused(
            f"This constant of {function} is longer than {LONGEST} characters: every row would take longer.",
            "Use a shorter one.",
        )


def _check_rewrite(text: str | None) -> None:
    if "\\" in _REWRITE.sub("", text or ""):
        raise _refused(
            "A backslash in a replacement stands before the number of a group.",
            r"Write \1 for the first group, \\ for a backslash.",
        )


def _check_options(text: str | None) -> None:
    for option in text or "":
        if option not in OPTIONS:
            raise _refused(
                f"There is no option {option!r} of regular expressions.", "Use 'i', 'g', 's' or 'm'."
            )


def _check_fill(function: str, width: Expression, text: str | None) -> None:
    """DuckDB fails where there is nothing to fill with, at rows that are shorter."""
    _check_length(function, text)
    letters = width.value if isinstance(width, Literal) else None
    if text == "" or (isinstance(letters, int) and letters > LONGEST):
        raise _refused(
            f"{function} fills with at least one character, up to {LONGEST} in all.",
            f"Write {function}(x, 5, '0').",
        )


def check_step(text: str | None) -> None:
    """The width of a bucket of time: a positive whole number of one unit."""
    if text is not None and not _STEP.fullmatch(text):
        raise _refused(
            "The width of a bucket is a positive whole number of one unit.",
            "Write time_bucket(INTERVAL '15 minutes', t).",
        )


def check_escape(pattern: str | None, mark: str | None) -> None:
    """DuckDB fails on a malformed pattern only at rows that match it so far, and TRY does not hold that
    back.
    """
    if mark is None or pattern is None:
        return
    if len(mark) != 1 or not mark.isascii():
        raise wrong_escape()
    if pattern.replace(mark * 2, "").endswith(mark):
        raise _refused("This pattern ends in its escape character.", "Write LIKE '10#%' ESCAPE '#'.")
