"""Every error that a person can meet: where it is, what is wrong and why, and what to write instead.

PrivsqlError
+-- SqlError            the text is not a single SQL query that can be parsed    (code sql-*)
|   +-- UnknownName     there is no such table or column                         (code name-*)
|   +-- Refused         a valid query that has no private answer                 (code refused-*)
+-- PolicyError         the owner's declaration does not make sense              (code policy-*)
+-- ArgumentError       an argument of a call (epsilon, keys ...) is wrong       (code argument-*)
+-- SourceError         the data source cannot be opened or used                 (code source-*)
+-- BudgetError         the budget is too small, or cannot be used this way      (code budget-*)
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
    """A place in the analyst's text: line and column, counted from 1."""

    line: int
    column: int


class PrivsqlError(Exception):
    """The base of all errors. It never carries a value of the data.

    Attributes:
        code: a stable name for the kind of error, such as "refused-rows".
        message: what is wrong, and why.
        suggestion: what to write instead.
        line, column: where in the SQL, counted from 1; None if the error is not about a place.

    Example:
        >>> import privsql
        >>> try:
        ...     privsql.policy.load_policy({"budgets": {}})
        ... except privsql.PolicyError as error:
        ...     print(error.code, "|", error.suggestion)
        policy-unknown | did you mean budget?
    """

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
        """What to write instead, in the terms of the door through which the person came."""
        return said(self._ways, self._door)

    def said_at(self, door: Door) -> Self:
        """This error, in the terms of another door."""
        self._door = door
        return self

    def with_way(self, way: Way) -> Self:
        """This error, with one more suggestion."""
        self._ways = (*self._ways, way)
        return self

    def without(self, argument: str) -> Self:
        """This error, without the suggestions that use an argument."""
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
        """This error, located at a place unless it has one already."""
        if place and self.line is None:
            self.line, self.column = place.line, place.column
        return self


class SqlError(PrivsqlError):
    """The text is not a single SQL query that can be parsed."""


class UnknownName(SqlError):
    """There is no such table or column."""


class Refused(SqlError):
    """A valid query that has no private answer."""


class PolicyError(PrivsqlError):
    """The owner's declaration does not make sense."""


class ArgumentError(PrivsqlError):
    """An argument of a call is wrong."""


class SourceError(PrivsqlError):
    """The data source cannot be opened or used."""


class BudgetError(PrivsqlError):
    """The budget is too small, or cannot be used this way."""


class EngineError(PrivsqlError):
    """The engine failed after the charge. The message is fixed: anything more would be a release."""

    def __init__(self) -> None:
        super().__init__(
            "engine-failed",
            "the query failed after it was charged; any further detail could reveal private data",
            "simplify the query, or ask the data owner to check the engine",
        )


class BoundingWarning(UserWarning):
    """Default limits apply to a query, which nobody declared: a person's rows beyond them are dropped."""


def no_more_arguments(unknown: Mapping[str, object], known: Sequence[str]) -> None:
    """Reject keywords that a call does not have, and list those it has."""
    for name in unknown:
        close = closest(name, known)
        meant = f"did you mean {close}? " if close else ""
        raise ArgumentError(
            "argument-unknown",
            f"there is no argument {name!r}",
            f"{meant}the arguments are: {', '.join(known)}",
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "did you mean ...?" for a misspelt name, otherwise the available names."""
    names = list(known)
    close = closest(name, names)
    if close:
        return f"did you mean {close}?"
    shown = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")
    return f"available: {shown}" if names else "none are available"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The name that a misspelt one most likely means."""
    lowered = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[found[0]] if found else None
