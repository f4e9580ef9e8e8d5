"""A PrivsqlError goes in; the exception that PEP 249 has for it comes out, with the same code and suggestion.

Error
+-- InterfaceError          a closed cursor or connection; nothing to fetch
+-- DatabaseError
    +-- ProgrammingError    SQL that cannot be parsed, an unknown name, a wrong argument or policy
    +-- NotSupportedError   a valid query that has no private answer
    +-- OperationalError    the budget does not suffice, the source cannot be used, the engine failed
    +-- DataError, IntegrityError, InternalError    never raised: they would depend on the data
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from privsql.errors import (
    ArgumentError,
    BudgetError,
    EngineError,
    PolicyError,
    PrivsqlError,
    Refused,
    SourceError,
    SqlError,
)


class Warning(Exception):
    """An important warning (PEP 249). privsql warns with privsql.BoundingWarning instead."""


class Error(PrivsqlError):
    """The base of all errors of this interface; a PrivsqlError, with its code and its suggestion."""

    @classmethod
    def of(cls, error: PrivsqlError) -> Self:
        """The same error, as an exception of this class."""
        made = cls(error.code, error.message, error.suggestion)
        made.line, made.column = error.line, error.column
        return made


class InterfaceError(Error):
    """The interface was used wrongly: a closed cursor, or nothing to fetch."""


class DatabaseError(Error):
    """The base of errors that concern the database."""


class DataError(DatabaseError):
    """Never raised: it would depend on the data."""


class OperationalError(DatabaseError):
    """The budget does not suffice, the source cannot be used, or the engine failed."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The SQL cannot be parsed, names something unknown, or an argument or the policy is wrong."""


class NotSupportedError(DatabaseError):
    """A valid query that has no private answer."""


@contextmanager
def as_database_errors() -> Iterator[None]:
    """Raise every PrivsqlError inside as an exception of PEP 249."""
    try:
        yield
    except Error:
        raise
    except PrivsqlError as error:
        raise _kind_of(error).of(error) from error


def _kind_of(error: PrivsqlError) -> type[Error]:
    match error:
        case Refused():
            return NotSupportedError
        case SqlError() | ArgumentError() | PolicyError():
            return ProgrammingError
        case BudgetError() | SourceError() | EngineError():
            return OperationalError
        case _:
            return DatabaseError
