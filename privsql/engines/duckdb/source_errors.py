"""What is wrong with a source, in words: none of them depends on a row."""

from __future__ import annotations

import duckdb

from privsql.errors import ArgumentError, SourceError


def unusable(error: duckdb.Error | None = None) -> SourceError:
    """`error` is what reading the catalogue, or BEGIN, raised: it depends on no row that was not reported
    before.
    """
    match error:
        case duckdb.FatalException() | duckdb.InternalException():
            return SourceError(
                "source-connection",
                "DuckDB has shut this database down after a fatal error, and takes no more statements on it",
                "close every connection to it, open it again, and connect() to the new connection",
            )
        case duckdb.TransactionException():
            return SourceError(
                "source-connection",
                "the transaction that is open on this connection has failed",
                "ROLLBACK it, and ask again",
            )
        case _:
            return SourceError("source-connection", "the source cannot be used", "is its connection closed?")


def changed() -> SourceError:
    return SourceError(
        "source-changed",
        "the tables were altered while the query was planned: its bounds may not hold",
        "ask again",
    )


def unreadable(name: str) -> SourceError:
    return SourceError("source-frame", f"DuckDB cannot read the frame {name}", "check its column types")


def invalid() -> SourceError:
    return SourceError("source-file", "DuckDB cannot read this file", "check that it is valid")


def settings_of_others() -> ArgumentError:
    return ArgumentError(
        "argument-memory",
        "this database is open already, and its settings are its owner's: memory_limit= is for what privsql opens itself",
        "SET memory_limit on that connection, or give a path that is not open in this program",
    )


def unopened() -> SourceError:
    return SourceError(
        "source-file",
        "DuckDB cannot open this file",
        "is it a DuckDB file? if it is open in this program already, give that connection",
    )
