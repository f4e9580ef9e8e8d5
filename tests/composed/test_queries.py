"""A file of analysts' queries: at an epsilon so large that there is no noise, each gives what plain DuckDB gives.

`PRIVSQL_QUERIES=file` compares the queries of another file, on the same tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql

FILE = Path(os.environ.get("PRIVSQL_QUERIES", Path(__file__).with_name("queries.sql")))
MANY = 10_000  # of epsilon
POLICY = {
    "neighbours": "add-remove",
    "tables": {
        "people": {
            "unit": "id",
            "unique": ["id"],
            "columns": {
                "state": {"values": ["CA", "NY", "TX", "WA"], "nullable": False},
                "sex": {"values": ["f", "m"], "nullable": False},
                "age": {"range": [0, 100], "nullable": False},
                "income": {"range": [0, 1000], "nullable": False},
                "joined": {"range": ["2020-01-01", "2022-12-31"], "nullable": False},
                "smoker": {"nullable": False},
            },
        },
        "visits": {
            "unit": "id",
            "max_rows": 50,
            "max_groups": 50,
            "columns": {"kind": {"values": ["a", "b"], "nullable": False}, "cost": {"range": [0, 50]}},
        },
        "states": {"public": True},
    },
}


def paragraphs() -> Iterator[str]:
    for paragraph in FILE.read_text().split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("--")]
        if lines:
            yield " ".join(lines)


QUERIES = list(paragraphs())


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    random = np.random.default_rng(7)
    size = 20_000
    people = pd.DataFrame(
        {
            "id": np.arange(size),
            "state": random.choice(["CA", "NY", "TX", "WA"], size, p=[0.4, 0.3, 0.2, 0.1]),
            "sex": random.choice(["f", "m"], size),
            "age": random.integers(0, 100, size),
            "income": random.integers(0, 1000, size),
            "smoker": random.random(size) < 0.3,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1096, size), unit="D"),
        }
    )
    visits = pd.DataFrame(
        {
            "id": random.integers(0, size, 3 * size),
            "kind": random.choice(["a", "b"], 3 * size),
            "cost": random.integers(0, 50, 3 * size),
        }
    )
    states = [("CA", "west", 39), ("NY", "east", 20), ("TX", "south", 29), ("WA", "west", 8)]
    with duckdb.connect() as connection:
        for name, frame in (("people", people), ("visits", visits)):
            connection.register(f"{name}_frame", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_frame")
            connection.unregister(f"{name}_frame")
        connection.execute("ALTER TABLE people ALTER joined TYPE DATE")
        connection.execute(
            "CREATE TABLE states (state VARCHAR PRIMARY KEY, region VARCHAR, population INTEGER)"
        )
        connection.executemany("INSERT INTO states VALUES (?, ?, ?)", states)
        yield connection


@pytest.fixture(scope="module")
def session(tables: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(tables, policy=POLICY)


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows that can be compared whatever their order: numbers rounded, NULL and NaN alike."""

    def plain(value: Any) -> Any:
        if isinstance(value, (list, np.ndarray)):
            return tuple(plain(each) for each in value)
        if isinstance(value, dict):
            return tuple((plain(name), plain(each)) for name, each in sorted(value.items(), key=str))
        if (
            value is None
            or value is pd.NA
            or value is pd.NaT
            or (isinstance(value, float) and np.isnan(value))
        ):
            return "NULL"
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if hasattr(value, "__float__") and not isinstance(value, str):
            return float(f"{float(value):.4g}")
        return str(value)

    columns = [[plain(value) for value in frame.iloc[:, place].tolist()] for place in range(frame.shape[1])]
    return sorted(zip(*columns, strict=True), key=str)


def test_there_are_queries():
    assert len(QUERIES) > 0


@pytest.mark.parametrize("sql", QUERIES, ids=range(len(QUERIES)))
def test_a_query_without_noise_is_answered_like_plain_duckdb(sql, session, tables):
    answer = session.query(sql, epsilon=MANY)
    assert rows_of(answer.df()) == rows_of(tables.execute(sql).df())
    assert str(answer)
