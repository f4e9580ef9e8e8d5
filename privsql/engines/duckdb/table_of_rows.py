"""A pandas frame and the names of DuckDB's types go in; a DuckDB database with that table comes out, or a
Parquet file of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd

from privsql.errors import SourceError
from privsql.render.duckdb import identifier, text

_FRAME = "privsql_rows"


def table_of_rows(name: str, frame: pd.DataFrame, types: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database in memory with one table; columns are cast to these types. Nothing here is private.

    A value that its type does not have, such as (other) in an ENUM, becomes NULL.
    """
    connection = duckdb.connect()
    columns = ", ".join(
        f"TRY_CAST({identifier(each)} AS {types[each]}) AS {identifier(each)}" for each in frame.columns
    )
    connection.register(_FRAME, frame)
    connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT {columns} FROM {_FRAME}")
    connection.unregister(_FRAME)
    return connection


def parquet_of_rows(name: str, frame: pd.DataFrame, types: Mapping[str, str], path: str) -> None:
    """Write the same table to a Parquet file. Raises SourceError where the file cannot be written."""
    with table_of_rows(name, frame, types) as connection:
        try:
            connection.execute(f"COPY {identifier(name)} TO {text(path)} (FORMAT parquet)")
        except duckdb.Error:
            problem = "the Parquet file cannot be written"
            raise SourceError("source-file", problem, "check its folder and permissions") from None
