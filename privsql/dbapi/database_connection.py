"""A source and a policy go in; a connection of PEP 249 comes out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privsql.connecting import connect as open_session
from privsql.dbapi import database_errors
from privsql.dbapi.database_cursor import DatabaseCursor
from privsql.dbapi.database_errors import InterfaceError, as_database_errors
from privsql.dbapi.settings import checked_settings
from privsql.policy.checks import delta_of
from privsql.session import Session


class DatabaseConnection:
    """A connection of PEP 249: a session, and the settings that its queries get.

    Nothing is written, so `commit` and `rollback` do nothing: a rollback does not give a charge back.
    """

    Warning = database_errors.Warning
    Error = database_errors.Error
    InterfaceError = database_errors.InterfaceError
    DatabaseError = database_errors.DatabaseError
    DataError = database_errors.DataError
    OperationalError = database_errors.OperationalError
    IntegrityError = database_errors.IntegrityError
    InternalError = database_errors.InternalError
    ProgrammingError = database_errors.ProgrammingError
    NotSupportedError = database_errors.NotSupportedError

    def __init__(self, session: Session, settings: Mapping[str, Any], *, owns_session: bool = True) -> None:
        with as_database_errors():
            self.settings = checked_settings({}, settings)
        self._session, self._owns_session, self._closed = session, owns_session, False

    @property
    def session(self) -> Session:
        """The session, with its budget and its history.

        Raises:
            InterfaceError: the connection is closed.
        """
        if self._closed:
            raise InterfaceError("argument-closed", "the connection is closed", "open another one")
        return self._session

    def cursor(self) -> DatabaseCursor:
        """A new cursor, which starts with the settings of the connection.

        Returns:
            The cursor.

        Raises:
            InterfaceError: the connection is closed.

        Example:
            >>> connection.cursor().execute("SELECT COUNT(*) AS n FROM visits").description[0][0]
            'n'
        """
        return DatabaseCursor(self, self.session)

    def commit(self) -> None:
        """Does nothing: nothing is written."""
        self.session  # noqa: B018 -- raises where the connection is closed

    def rollback(self) -> None:
        """Does nothing: nothing is written, and what was charged stays charged."""
        self.session  # noqa: B018

    def close(self) -> None:
        """Close the connection and the session that it opened."""
        if not self._closed and self._owns_session:
            self._session.close()
        self._closed = True

    def __enter__(self) -> DatabaseConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    source: Any,
    policy: Any = None,
    *,
    epsilon: float | Fraction | None = None,
    delta: float = 0.0,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> DatabaseConnection:
    """Open a connection as PEP 249 describes it.

    Arguments:
        source: as in `privsql.connect`; or a session that is open already, which stays open.
        policy: as in `privsql.connect`.
        epsilon, delta: what each query costs. `SET epsilon = 0.5` changes it later.
        settings: other arguments of `Session.query` that each query gets.
        options: as in `privsql.connect`: ledger, analyst, deadline, memory_limit, time_quantum, version.

    Returns:
        The connection.

    Raises:
        DatabaseError: the source cannot be opened, the policy does not fit it, or an argument is wrong.

    Example:
        >>> connection = privsql.dbapi.connect({"t": pd.DataFrame({"x": [1, 2]})}, epsilon=1.0)
        >>> len(connection.cursor().execute("SELECT COUNT(*) FROM t").fetchall())
        1
    """
    with as_database_errors():
        given = checked_settings({}, {} if settings is None else settings)
        price = {"epsilon": epsilon, "delta": float(delta_of(delta)) or None}
        checked = checked_settings(given, {name: each for name, each in price.items() if each is not None})
    if isinstance(source, Session):
        return DatabaseConnection(source, checked, owns_session=False)
    with as_database_errors():
        session = open_session(source, policy, **options)
    return DatabaseConnection(session, checked)
