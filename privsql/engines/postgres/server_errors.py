"""Failures of PostgreSQL go in; ours come out. PostgreSQL's own words are never passed on: they quote
values.
"""

from __future__ import annotations

from privsql.errors import ArgumentError, SourceError, SqlError


def no_driver() -> ArgumentError:
    return ArgumentError(
        "argument-extra",
        "PostgreSQL is read through psycopg, which is not installed",
        "pip install 'privsql[postgres]'",
    )


def unreachable() -> SourceError:
    return SourceError(
        "source-connection",
        "PostgreSQL cannot be reached with this address",
        "check host, port, database, user and password with psql",
    )


def unusable() -> SourceError:
    return SourceError(
        "source-connection",
        "PostgreSQL does not answer, or the connection was cut",
        "run the query again; a new connection is made for it",
    )


def not_accepted() -> SqlError:
    return SqlError(
        "sql-engine",
        "PostgreSQL does not accept this query: a constant in it may be malformed, "
        "or the role of this connection may not read a table",
        "check the constants, and GRANT SELECT on the tables to the role",
    )


def unsuitable(what: str, cure: str) -> SourceError:
    return SourceError("source-kind", what, cure)
