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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from privsql.suggestions import POLICY, Argument, Door, Way, said, ways_of


@dataclass(frozen=True)
class Place:
    """Where in the analyst's text: 1-based line and column."""

    line: int
    column: int


class PrivsqlError(Exception):
    """The base of all errors; never carries a value of the data."""

    def __init__(
        self, code: str, message: str, suggestion: str | Sequence[Way] = "", place: Place | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self._ways: tuple[Way, ...] = ways_of(suggestion)
        self._door: Door = POLICY
        self.line = place.line if place else None
        self.column = place.column if place else None

    @property
    def suggestion(self) -> str:
        """What to write instead, in the terms of the door that the person came through."""
        return said(self._ways, self._door)

    def said_at(self, door: Door) -> Self:
        """The same error in the terms of another door."""
        self._door = door
        return self

    def with_way(self, way: Way) -> Self:
        """The same error with one more way out."""
        self._ways = (*self._ways, way)
        return self

    def without(self, argument: str) -> Self:
        """The same error without the ways out that take an argument."""
        self._ways = tuple(
            way
            for way in self._ways
            if not any(isinstance(each, Argument) and each.name == argument for each in way)
        )
        return self

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


def no_more_arguments(unknown: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuses keywords that a call does not have; all that it has are listed."""
    for name in unknown:
        close = closest(name, known)
        meant = f"did you mean {close}? " if close else ""
        raise ArgumentError(
            "argument-unknown",
            f"there is no argument {name!r}",
            f"{meant}the arguments are: {', '.join(known)}",
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' did you mean ...?' for a misspelt name, or the names there are."""
    names = list(known)
    close = closest(name, names)
    if close:
        return f"did you mean {close}?"
    shown = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    return f"there is: {shown}" if names else "there are none"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The name that a misspelt one probably means."""
    lowered = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[found[0]] if found else None
