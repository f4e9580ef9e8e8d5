"""A pandas frame and the names of DuckDB's types go in; a DuckDB database with that table comes out."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pandas as pd


def table_of_rows(name: str, frame: pd.DataFrame, types: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database in memory with one table; columns are cast to these types. Nothing here is private."""
    connection = duckdb.connect()
    columns = [
        duckdb.ColumnExpression(column).cast(duckdb.type(types[column])).alias(column)
        for column in frame.columns
    ]
    connection.from_df(frame).select(*columns).create(name)
    return connection
