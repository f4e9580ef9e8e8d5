"""The checks of the package dbapi-compliance, on public tables: their answers are exact, as the checks expect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dbapi20
import duckdb
import pytest

from privsql import dbapi

TABLES = ("dbapi20test_booze", "dbapi20test_barflys")
PUBLIC = {"tables": {name: {"public": True} for name in TABLES}}


class _Cursor(dbapi.Cursor):
    """A cursor whose INSERT and DROP go to the owner's own connection: the checks write before they read."""

    def execute(self, operation: str, parameters: Any = None, **settings: Any) -> dbapi.Cursor:
        if not operation.startswith(("insert", "create", "drop")):
            return super().execute(operation, parameters, **settings)
        self._open()
        self.answer, self._rows = None, None
        if operation.startswith("insert"):
            self.connection.owner.execute(operation, parameters)  # type: ignore[attr-defined]
        return self


class _Connection(dbapi.Connection):
    def cursor(self) -> dbapi.Cursor:
        return _Cursor(self, self.session)


class TestStandard(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    driver = SimpleNamespace(**{name: getattr(dbapi, name) for name in (*dbapi.__all__, "Warning")})
    StandardError = Exception

    def setUp(self) -> None:
        self.owner = duckdb.connect()
        self.owner.execute(f"CREATE TABLE {TABLES[0]} (name VARCHAR)")
        self.owner.execute(f"CREATE TABLE {TABLES[1]} (name VARCHAR, drink VARCHAR)")

    def tearDown(self) -> None:
        self.owner.close()

    def _connect(self) -> dbapi.Connection:
        opened = dbapi.connect(self.owner, PUBLIC, epsilon=1.0)
        connection = _Connection(opened.session, {"epsilon": 1.0})
        connection.owner = self.owner  # type: ignore[attr-defined]
        return connection

    def test_setoutputsize(self) -> None:
        """Columns have no limit: `test_setoutputsize_basic` says all there is."""

    def test_non_idempotent_close(self) -> None:
        """Closing twice is harmless, as it is with files; the standard leaves it open."""
        connection = self._connect()
        connection.close()
        connection.close()

    def test_executemany(self) -> None:
        """It would pay for answers that nobody sees."""
        with pytest.raises(dbapi.NotSupportedError, match="pay"):
            self._connect().cursor().executemany("SELECT 1", [(), ()])

    def test_nextset(self) -> None:
        """One query has one table."""
        assert not hasattr(self._connect().cursor(), "nextset")
