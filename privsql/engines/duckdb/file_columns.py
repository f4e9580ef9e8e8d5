"""A file and the table that DuckDB makes of it go in; a file is refused that has a repeated column name, or
values that cannot be read.

DuckDB renames the second of two columns whose names are equal, or differ in case alone. It checks values of
Parquet files as it reads them: text that is not UTF-8, a time past midnight, a moment in milliseconds that
microseconds do not reach. A query that meets one fails after its charge, so they are looked for beforehand.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from privsql.engines.duckdb.opening import FAILURES
from privsql.errors import SourceError
from privsql.names import repeated_name
from privsql.render.duckdb import DUCKDB

# Types whose values DuckDB takes from a Parquet file as they are.
_TAKEN = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG)?INT|U?INTEGER|FLOAT|DOUBLE|DATE|TIMESTAMP_NS|BLOB|DECIMAL\(.*\)"
)
_RENAMED = re.compile(r"(.+)_\d+", re.DOTALL)


def refuse_repeated_columns(
    connection: duckdb.DuckDBPyConnection, reader: str, file: Path, table: str
) -> None:
    """Raise SourceError if two columns of a file have the same name, or names that differ in case alone.
    DuckDB silently calls the second one x_1, and a policy that means it would be applied to the first.
    """
    try:
        names = [
            str(name) for name, *_ in connection.execute(f"DESCRIBE {DUCKDB.identifier(table)}").fetchall()
        ]
        lowered = {name.lower() for name in names}
        if not any(match[1].lower() in lowered for name in names if (match := _RENAMED.fullmatch(name))):
            return
        written = (
            _names_in_parquet(connection, file)
            if reader == "read_parquet"
            else _names_in_csv(connection, file)
        )
    except FAILURES:
        connection.close()
        raise SourceError("source-file", "DuckDB cannot read this file", "check that it is valid") from None
    repeated = repeated_name(written)
    if repeated is not None:
        connection.close()
        raise SourceError(
            "source-columns",
            f"the file has more than one column called {repeated}: names are not case-sensitive",
            "rename one of them",
        )


def refuse_unreadable_values(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise SourceError if DuckDB cannot read every value of a Parquet file."""
    try:
        described = connection.execute(f"DESCRIBE {DUCKDB.identifier(table)}").fetchall()
        checked = [DUCKDB.identifier(name) for name, type_, *_ in described if not _TAKEN.fullmatch(type_)]
        if checked:
            looked = ", ".join(f"max(hash({column}))" for column in checked)
            connection.execute(f"SELECT {looked} FROM {DUCKDB.identifier(table)}").fetchall()
    except FAILURES:
        connection.close()
        raise SourceError(
            "source-file",
            "the file has values that DuckDB cannot read: text that is not UTF-8, or a time or moment out of "
            "range",
            "write it anew without them",
        ) from None


def _names_in_parquet(connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """The names of the columns, without those nested in them: the schema is a tree in preorder."""
    nodes = connection.execute(
        f"SELECT name, num_children FROM parquet_schema({DUCKDB.text(str(file))})"
    ).fetchall()
    names, open_ = [], [nodes[0][1]]
    for name, children in nodes[1:]:
        while open_[-1] == 0:
            open_.pop()
        if len(open_) == 1:
            names.append(str(name))
        open_[-1] -= 1
        open_.append(children or 0)
    return names


def _names_in_csv(connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """The header as written, read with the options that DuckDB detects for the file."""
    path = DUCKDB.text(str(file))
    sniffed = connection.execute(
        f"SELECT HasHeader, Delimiter, Quote, Escape, Comment, SkipRows, len(Columns) FROM sniff_csv({path})"
    ).fetchall()
    header, *marks, skipped, count = sniffed[0]
    if not header:
        return []
    signs = zip(("delim", "quote", "escape", "comment"), marks, strict=True)
    options = ", ".join(f"{name} = {DUCKDB.text('' if mark == '(empty)' else mark)}" for name, mark in signs)
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(count))
    told = f"header = false, {options}, skip = {skipped}, columns = {{{columns}}}"
    first = f"read_csv({path}, auto_detect = false, {told})"
    return [
        str(name) for name in connection.execute(f"FROM {first} LIMIT 1").fetchall()[0] if name is not None
    ]
