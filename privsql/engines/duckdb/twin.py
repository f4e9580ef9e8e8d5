"""A schema goes in; the same tables without rows come out, on which DuckDB says whether it accepts a
statement.

DuckDB plans with statistics of the data, and even evaluates functions on them, so whether the private
database accepts a statement may depend on its rows. A check before the charge must not, so it runs on the
twin. Some failures show only when a statement runs, such as a pattern that is too large. So the twin runs it,
without the statistics that would tell DuckDB that there is nothing to do. DuckDB's own plan is read as well:
a statement is refused if a function or a cast in it could fail on some row, whatever we believed when we
rendered it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import duckdb

from privsql.algebra.reserved import DATABASE
from privsql.engines.duckdb.opening import CLOSE, CLOSED, FAILURES, Config
from privsql.engines.duckdb.safety.plan_rules import PlanRules
from privsql.engines.duckdb.safety.plans import may_fail, plan_of
from privsql.errors import Refused, SourceError, SqlError
from privsql.render.duckdb import DUCKDB, identifier
from privsql.schema import Schema

_PLAIN: Config = {**CLOSED, "threads": "1", "disabled_optimizers": "statistics_propagation"}
_PATIENCE = 20.0  # seconds that a statement may take without rows; planning a million keys takes some


@lru_cache(maxsize=1)
def without_data() -> duckdb.DuckDBPyConnection:
    """The one database of this process for data that is not private: opening a database takes 20 ms, a
    further connection no time.
    """
    connection = duckdb.connect(":memory:", config=_PLAIN)
    connection.execute(CLOSE)
    return connection


atexit.register(without_data.cache_clear)  # closes it before the interpreter exits


def not_accepted() -> SqlError:
    return SqlError(
        "sql-engine",
        "DuckDB does not accept this query: a constant, a pattern or a format in it may be malformed",
        "check the regular expressions, date formats and constants",
    )


def _can_fail(what: str) -> SqlError:
    return Refused(
        "refused-can-fail",
        f"DuckDB could fail on some row when it computes {what}, and a failure would tell about that row.",
        "Write this part of the query differently. privsql should have guarded it: please report the query.",
    )


class Twin:
    """The tables of a schema, empty, and the prepared copies of some, by name with their columns."""

    def __init__(self, schema: Schema, copies: Mapping[str, str]) -> None:
        self.schema, self.copies = schema, copies
        self._lock = threading.Lock()
        self._accepted: set[str] = set()
        # temporary tables belong to one connection and end with it; but the copies need a database with a
        # name of its own
        located = [table.location[:2] for table in schema.tables if table.location]
        alone = bool(copies or located)
        self._connection = duckdb.connect(":memory:", config=_PLAIN) if alone else without_data().cursor()
        self._create_schemas(dict.fromkeys(located))
        for table in schema.tables:
            columns = ", ".join(
                f"{identifier(each.name)} {each.type_name}"
                for each in table.columns
                if each.type is not None or each.elements is not None
            )
            # rows can be counted even if no column has a supported type
            made = columns or "privsql_nothing BOOLEAN"
            place = DUCKDB.table(table.name, table.location)
            kind = "TABLE" if table.location else "TEMP TABLE"
            self._connection.execute(f"CREATE {kind} {place} ({made})")
        if copies:
            self._connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        if alone:
            self._connection.execute(CLOSE)
        for name, columns in copies.items():
            self._connection.execute(f"CREATE TABLE {DATABASE}.main.{identifier(name)} ({columns})")

    def _create_schemas(self, schemas: Iterable[tuple[str, ...]]) -> None:
        """The databases and schemas of tables that are named in full."""
        for database, schema in schemas:
            if database.lower() != "memory":
                self._connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {identifier(database)}")
            self._connection.execute(
                f"CREATE SCHEMA IF NOT EXISTS {identifier(database)}.{identifier(schema)}"
            )

    def check(self, sql: str) -> None:
        """Refuse a statement that DuckDB cannot plan, or cannot begin to run."""
        if sql in self._accepted:
            return
        late = threading.Timer(_PATIENCE, self._connection.interrupt)
        late.daemon = True
        try:
            with self._lock:
                late.start()
                self._connection.execute(sql).fetchmany(1)
                plan = plan_of(self._read, sql)
                failing = "it" if plan is None else may_fail(plan, PlanRules(self._read, own=True))
        except FAILURES:
            raise not_accepted() from None
        finally:
            late.cancel()
            if late.is_alive():
                # a thread that outlives the interpreter would keep DuckDB objects, which DuckDB reports as
                # leaks
                late.join()
        if failing:
            raise _can_fail(failing)
        self._accepted.add(sql)

    def _read(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql).fetchall()
        except FAILURES as error:
            raise SourceError("source-connection", str(error)) from None

    def close(self) -> None:
        self._connection.close()
