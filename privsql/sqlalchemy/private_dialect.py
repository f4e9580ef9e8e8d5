"""An address goes in; connections that share one session come out, and what SQLAlchemy asks of a database."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import exc, pool, types
from sqlalchemy.engine import URL, Connection, default
from sqlalchemy.engine.interfaces import ExecutionContext, ReflectedColumn

import privsql
from privsql import dbapi
from privsql.dbapi.settings import NAMES, change_settings
from privsql.errors import PrivsqlError, UnknownName
from privsql.session import Session

_OF_CONNECT = ("policy", "ledger", "analyst", "deadline", "memory_limit", "time_quantum", "version")
_SECONDS = ("deadline", "time_quantum")
_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "BOOLEAN": types.Boolean,
    "TINYINT": types.SmallInteger,
    "SMALLINT": types.SmallInteger,
    "INTEGER": types.Integer,
    "BIGINT": types.BigInteger,
    "HUGEINT": types.Numeric,
    "DECIMAL": types.Numeric,
    "FLOAT": types.Float,
    "DOUBLE": types.Double,
    "VARCHAR": types.String,
    "DATE": types.Date,
    "TIME": types.Time,
    "TIMESTAMP": types.DateTime,
    "UUID": types.Uuid,
    "BLOB": types.LargeBinary,
}


class PrivsqlDialect(default.DefaultDialect):
    """What SQLAlchemy needs to know of privsql."""

    name, driver = "privsql", "privsql"
    default_paramstyle = "qmark"
    supports_statement_cache = supports_native_boolean = supports_native_decimal = True
    supports_alter = postfetch_lastrowid = False
    div_is_floordiv = False  # as in DuckDB, 1 / 2 is 0.5

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._lock = threading.Lock()
        self._session: Session | None = None

    @classmethod
    def import_dbapi(cls) -> Any:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Connections cost nothing: the session, which they share, is what took time to open."""
        return pool.NullPool

    # -- connections ----------------------------------------------------------------------------------------
    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The source and the options of an address: privsql:///clinic.duckdb?policy=...&epsilon=0.1."""
        options = {name: _read(name, value) for name, value in url.query.items()}
        source = options.pop("source", url.database)
        if not source:
            raise exc.ArgumentError(
                "the address names no source: write privsql:///clinic.duckdb, or privsql:///?source=ADDRESS"
            )
        return [source], options

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """A connection on the engine's own session, which the first one opens."""
        settings = {name: value for name, value in options.items() if name in NAMES}
        with self._lock:
            if self._session is None:
                others = {name: value for name, value in options.items() if name not in NAMES}
                with dbapi.database_errors.as_database_errors():
                    self._session = self._open(*arguments, **others)
        return dbapi.connect(self._session, settings=settings, **_price(settings))

    def _open(self, source: Any, **options: Any) -> Session:
        return source if isinstance(source, Session) else privsql.connect(source, **options)

    # -- queries --------------------------------------------------------------------------------------------
    def do_execute(
        self, cursor: Any, statement: str, parameters: Any, context: ExecutionContext | None = None
    ) -> None:
        """Run a query; execution options named like settings (epsilon, within ...) hold for it alone."""
        options: Mapping[str, Any] = context.execution_options if context is not None else {}
        settings = {name: options[name] for name in NAMES if name in options}
        cursor.execute(statement, parameters, **settings)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing to roll back: nothing is written, and what was charged stays charged."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        return True

    # -- reflection: what the analyst may know without cost ------------------------------------------------
    def get_table_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return list(dict.fromkeys(_session_of(connection).tables()["table"]))

    def get_view_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return []

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        return ["main"]

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        return table_name.lower() in map(str.lower, self.get_table_names(connection, schema))

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        try:
            described = _session_of(connection).tables(table_name)
        except UnknownName:
            raise exc.NoSuchTableError(table_name) from None
        columns = described[["column", "type", "nullable", "declared"]].itertuples(index=False)
        return [
            {
                "name": name,
                "type": _type_of(type_name),
                "nullable": nullable,
                "default": None,
                "comment": comment,
            }
            for name, type_name, nullable, comment in columns
        ]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        return []

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", privsql.__version__))

    def _get_default_schema_name(self, connection: Connection) -> str:
        return "main"


def _session_of(connection: Connection) -> Session:
    session: Session = connection.connection.dbapi_connection.session  # type: ignore[union-attr]
    return session


def _read(name: str, value: str | Sequence[str]) -> Any:
    """The value of an argument in an address."""
    if not isinstance(value, str):
        raise exc.ArgumentError(f"the address gives {name} more than once")
    if name in _SECONDS:
        try:
            return float(value)
        except ValueError:
            raise exc.ArgumentError(f"the address gives a {name} that is no number of seconds") from None
    if name in ("source", *_OF_CONNECT):
        return value
    try:
        changed = change_settings({}, f"SET {name} = {value}")
    except PrivsqlError as error:
        raise exc.ArgumentError(str(error)) from error
    if changed is None:
        raise exc.ArgumentError(f"the address gives {name} a value that is none")
    return next(iter(changed.values()), None)


def _price(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in ("epsilon", "delta") if name in settings}


def _type_of(name: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for a type of DuckDB; text where it has none."""
    plain = name.partition("(")[0].removeprefix("U") if not name.startswith("UUID") else "UUID"
    return _TYPES.get("TIMESTAMP" if plain.startswith("TIMESTAMP") else plain, types.String)()
