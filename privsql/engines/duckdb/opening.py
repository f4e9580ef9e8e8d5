"""How to open a database, as data, so that this process and a worker process open it in the same way."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from privsql.render.duckdb import text

Config = dict[str, str | bool | int | float | list[str]]

# Load no extensions, and never take a Python variable for a table. The last setting only marks these
# databases: DuckDB lets connections with equal settings share a database, and we must not lock anybody
# else's.
CLOSED: Config = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "custom_user_agent": "privsql",
}
# Afterwards nothing outside the database can be reached, and no connection can change that.
_IS_LOCKED = "SELECT system.main.current_setting('lock_configuration')"
CLOSE = "SET GLOBAL enable_external_access = false; SET GLOBAL lock_configuration = true"

# What DuckDB raises; UnicodeDecodeError where it cuts its own message in the middle of a character.
FAILURES = (duckdb.Error, UnicodeDecodeError)

_LOCK = threading.Lock()  # two sessions that open one file at the same time must not lock each other out


@dataclass(frozen=True)
class Opening:
    """A database of our own: it may reach only `paths` and folders, and `views` are created after it is
    locked.
    """

    database: str
    read_only: bool = False
    paths: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    views: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # of this database only: memory_limit ...

    def with_settings(self, **settings: str) -> Opening:
        return replace(self, settings={**self.settings, **settings})

    @property
    def config(self) -> Config:
        return {**CLOSED, **self.settings}

    @property
    def statements(self) -> list[str]:
        """The statements that lock the database, run once, even if several connections share it."""
        return [
            f"SET GLOBAL allowed_paths = [{', '.join(text(str(each)) for each in self.paths)}]",
            f"SET GLOBAL allowed_directories = [{', '.join(text(str(each)) for each in self.folders)}]",
            CLOSE,
            *self.views,
        ]

    def open(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(self.database, read_only=self.read_only, config=self.config)
        try:
            with _LOCK:
                if not connection.execute(_IS_LOCKED).fetchall()[0][0]:
                    for statement in self.statements:
                        connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection
