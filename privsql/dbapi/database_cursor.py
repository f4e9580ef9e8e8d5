"""SQL and parameters go in; rows of private answers come out, in the way of PEP 249."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from privsql.dbapi.database_errors import InterfaceError, NotSupportedError, as_database_errors
from privsql.dbapi.settings import change_settings, checked_settings
from privsql.results.composed_answer import AnyAnswer
from privsql.session import Session

if TYPE_CHECKING:
    from privsql.dbapi.database_connection import DatabaseConnection

Row = tuple[Any, ...]
Description = tuple[str, str, None, None, None, None, bool]


class DatabaseCursor:
    """A cursor of PEP 249: it runs one query at a time, and fetches its rows.

    Attributes:
        arraysize: how many rows `fetchmany` fetches.
        connection: the connection it belongs to.
        answer: the Answer of the last query, with intervals and receipt; None before the first one.
    """

    def __init__(self, connection: DatabaseConnection, session: Session) -> None:
        self.connection, self.arraysize = connection, 1
        self.answer: AnyAnswer | None = None
        self._session = session
        self._rows: list[Row] | None = None
        self._fetched, self._closed = 0, False

    # -- running --------------------------------------------------------------------------------------------
    def execute(
        self,
        operation: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> DatabaseCursor:
        """Run one query, or a SET or RESET statement.

        Arguments:
            operation: the SQL.
            parameters: values for ? and $1 as a sequence, for :name as a mapping.
            settings: arguments of `Session.query` for this query alone, such as epsilon=0.5.

        Returns:
            The cursor itself.

        Raises:
            DatabaseError: the query is refused, the budget does not suffice, or the engine failed.

        Example:
            >>> cursor.execute("SELECT COUNT(*) FROM visits WHERE age >= ?", [65]).rowcount
            1
        """
        self._open()
        self.answer, self._rows, self._fetched = None, None, 0
        with as_database_errors():
            changed = (
                change_settings(self.connection.settings, operation) if isinstance(operation, str) else None
            )
            if changed is not None:
                self.connection.settings = changed
                return self
            given = checked_settings(self.connection.settings, settings)
            self.answer = self._session.query(operation, **given, params=parameters or None)
        return self

    def executemany(self, operation: str, parameters: Sequence[Any]) -> None:
        """Refused: the answers of all but the last run would be paid for and lost.

        Raises:
            NotSupportedError: always.
        """
        self._open()
        raise NotSupportedError(
            "argument-executemany",
            "executemany would pay for answers that nobody sees",
            "call execute for each query, or Session.batch for several at one price",
        )

    # -- fetching -------------------------------------------------------------------------------------------
    @property
    def description(self) -> tuple[Description, ...] | None:
        """Name, type and nullability of each column; None before the first query."""
        if self.answer is None:
            return None
        columns = zip(self.answer.columns, self.answer.types, strict=True)
        return tuple((name, type_name, None, None, None, None, True) for name, type_name in columns)

    @property
    def rowcount(self) -> int:
        """The number of rows of the last query; -1 before the first one."""
        return -1 if self.answer is None else len(self.answer)

    @property
    def rownumber(self) -> int | None:
        """The place of the next row, counted from 0; None before the first query."""
        return None if self.answer is None else self._fetched

    def fetchone(self) -> Row | None:
        """The next row.

        Returns:
            A tuple; None after the last row.

        Raises:
            InterfaceError: no query has run, or the cursor is closed.

        Example:
            >>> cursor.execute("SELECT COUNT(*) FROM visits").fetchone() is None
            False
        """
        found = self._next(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows.

        Arguments:
            size: how many; by default `arraysize`.

        Returns:
            A list of tuples, which is empty after the last row.

        Raises:
            InterfaceError: no query has run, or the cursor is closed.

        Example:
            >>> len(cursor.execute("SELECT state, COUNT(*) FROM visits GROUP BY state").fetchmany(2))
            2
        """
        wanted: object = self.arraysize if size is None else size
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
            problem = "fetchmany takes a whole number of rows, and so does arraysize"
            raise InterfaceError("argument-fetch", problem, "fetchmany(100)")
        return self._next(wanted)

    def fetchall(self) -> list[Row]:
        """All remaining rows.

        Returns:
            A list of tuples.

        Raises:
            InterfaceError: no query has run, or the cursor is closed.

        Example:
            >>> len(cursor.execute("SELECT COUNT(*) FROM visits").fetchall())
            1
        """
        return self._next(len(self._all()))

    def df(self) -> pd.DataFrame:
        """The whole answer as a pandas frame.

        Returns:
            A new frame.

        Raises:
            InterfaceError: no query has run, or the cursor is closed.

        Example:
            >>> cursor.execute("SELECT COUNT(*) AS n FROM visits").df().columns.tolist()
            ['n']
        """
        self._all()
        assert self.answer is not None
        return self.answer.df()

    def fetch_arrow_table(self) -> Any:
        """The whole answer as a pyarrow Table (extra: privsql[arrow]).

        Returns:
            A pyarrow.Table.

        Raises:
            InterfaceError: no query has run, or the cursor is closed.

        Example:
            >>> cursor.execute("SELECT COUNT(*) AS n FROM visits").fetch_arrow_table().column_names
            ['n']
        """
        self._all()
        assert self.answer is not None
        with as_database_errors():
            return self.answer.arrow()

    # -- required by PEP 249 -------------------------------------------------------------------------------
    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: parameters have the types of their values."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: columns have no limit."""

    def close(self) -> None:
        """Close the cursor; its answer can no longer be fetched."""
        self._closed, self._rows = True, None

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> DatabaseCursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if self._closed:
            raise InterfaceError("argument-closed", "the cursor is closed", "make another one")
        self.connection.session  # noqa: B018 -- raises where the connection is closed

    def _all(self) -> list[Row]:
        self._open()
        if self.answer is None:
            raise InterfaceError("argument-fetch", "there is nothing to fetch", "run a query first")
        if self._rows is None:
            self._rows = self.answer.fetchall()
        return self._rows

    def _next(self, size: int) -> list[Row]:
        found = self._all()[self._fetched : self._fetched + size]
        self._fetched += len(found)
        return found
