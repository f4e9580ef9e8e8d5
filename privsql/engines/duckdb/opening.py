"""How a database is opened, as data: the same in this process and in one that can be killed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from privsql.render.duckdb import text

Config = dict[str, str | bool | int | float | list[str]]

# Nothing is loaded, and no variable of the program is taken for a table. The last one does nothing but mark
# these databases: DuckDB lets connections with equal settings share one, and nobody else's may be locked by
# us.
CLOSED: Config = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "custom_user_agent": "privsql",
}
# Nothing outside the database can be reached, and nothing of this can be changed afterwards, by any
# connection to it.
CLOSE = "SET GLOBAL enable_external_access = false; SET GLOBAL lock_configuration = true"

# What DuckDB raises, also where it cuts a message of its own within a letter, so that it is no text any more.
FAILURES = (duckdb.Error, UnicodeDecodeError)

_LOCK = threading.Lock()  # two sessions that open one file at once must not lock each other out


@dataclass(frozen=True)
class Opening:
    """A database that only we use: `paths` and folders are all it may reach; `views` are made once it is
    closed.
    """

    database: str
    read_only: bool = False
    paths: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    views: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # of this database alone: memory_limit ...

    def with_settings(self, **settings: str) -> Opening:
        return replace(self, settings={**self.settings, **settings})

    @property
    def config(self) -> Config:
        return {**CLOSED, **self.settings}

    @property
    def statements(self) -> list[str]:
        """What closes it; run once, also where several connections share the database."""
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
                if not connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
                    for statement in self.statements:
                        connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection
