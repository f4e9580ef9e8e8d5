"""DuckDB's errors go in; ours come out. None of them depends on a row."""

from __future__ import annotations

import duckdb

from privsql.errors import ArgumentError, SourceError


def unusable(error: duckdb.Error | None = None) -> SourceError:
    """The error for a source that cannot be used. `error` comes from reading the catalogue or from BEGIN, so
    it depends on no row that was not reported before.
    """
    match error:
        case duckdb.FatalException() | duckdb.InternalException():
            return SourceError(
                "source-connection",
                "DuckDB has shut this database down after a fatal error and accepts no more statements",
                "close every connection to it, open it again, and connect() to the new connection",
            )
        case duckdb.TransactionException():
            return SourceError(
                "source-connection",
                "the open transaction on this connection has failed",
                "ROLLBACK it, and run the query again",
            )
        case _:
            return SourceError(
                "source-connection", "the source cannot be used", "check whether its connection is closed"
            )


def changed() -> SourceError:
    return SourceError(
        "source-changed",
        "the tables were altered while the query was planned, so its bounds may not hold",
        "run the query again",
    )


def unreadable(name: str) -> SourceError:
    return SourceError("source-frame", f"DuckDB cannot read the frame {name}", "check its column types")


def invalid() -> SourceError:
    return SourceError("source-file", "DuckDB cannot read this file", "check that it is valid")


def settings_of_others() -> ArgumentError:
    return ArgumentError(
        "argument-memory",
        "memory_limit= works only on a database that privsql opens itself, and this one is open already",
        "SET memory_limit on that connection, or give a path that is not open in this program",
    )


def unopened() -> SourceError:
    return SourceError(
        "source-file",
        "DuckDB cannot open this file",
        "check that it is a DuckDB file; if it is open in this program already, give that connection",
    )
