"""Every error a person can see: a place, what was asked, why privacy forbids it, what to write instead.

PrivsqlError
+-- SqlError            the text is not one SQL question that can be read        (code sql-*)
|   +-- UnknownName     a table or column that is not there                      (code name-*)
|   +-- Refused         understood, but it has no private answer                 (code refused-*)
+-- PolicyError         what the owner declared does not make sense              (code policy-*)
+-- ArgumentError       an argument of a call (epsilon, keys ...)                (code argument-*)
+-- SourceError         the data source cannot be opened or used                 (code source-*)
+-- BudgetError         the budget does not suffice                              (code budget-*)
+-- EngineError         the engine failed after the charge; one fixed sentence   (code engine-*)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where in the analyst's text: 1-based line and column."""

    line: int
    column: int


class PrivsqlError(Exception):
    """The base of all errors; never carries a value of the data."""

    def __init__(self, code: str, message: str, suggestion: str = "", place: Place | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.suggestion = suggestion
        self.line = place.line if place else None
        self.column = place.column if place else None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line else ""
        hint = f"\nhint: {self.suggestion}" if self.suggestion else ""
        return f"{where}{self.message} [{self.code}]{hint}"

    def at(self, place: Place | None) -> PrivsqlError:
        """The same error at a place, unless it has one already."""
        if place and self.line is None:
            self.line, self.column = place.line, place.column
        return self


class SqlError(PrivsqlError):
    """The text cannot be read as one SQL question."""


class UnknownName(SqlError):
    """A table or column that is not there."""


class Refused(SqlError):
    """Understood, and there is no private answer to it."""


class PolicyError(PrivsqlError):
    """The owner's declaration does not make sense."""


class ArgumentError(PrivsqlError):
    """An argument of a call does not make sense."""


class SourceError(PrivsqlError):
    """The data source cannot be opened or used."""


class BudgetError(PrivsqlError):
    """The budget does not suffice, or cannot be used this way."""


class EngineError(PrivsqlError):
    """The engine failed after the charge. One fixed sentence: anything more would be a release."""

    def __init__(self) -> None:
        super().__init__(
            "engine-failed",
            "the query could not be completed; it has been charged, and nothing more can be said without "
            "telling about the data",
            "simplify the query, or ask the owner of the data to look at the engine",
        )


class BoundingWarning(UserWarning):
    """Limits that nobody declared apply to a query: what a person has beyond them is dropped."""


def no_more_arguments(unknown: Mapping[str, object], known: Iterable[str]) -> None:
    """Refuses keywords that a call does not have."""
    for name in unknown:
        raise ArgumentError("argument-unknown", f"there is no argument {name!r}", did_you_mean(name, known))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' did you mean ...?' for a misspelt name, or the names there are."""
    names = list(known)
    lowered = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    shown = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    return f"there is: {shown}" if names else "there are none"
