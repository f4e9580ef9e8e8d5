"""A file of analysts' queries over one person's rows: at an epsilon of 10,000 each gives what plain DuckDB gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql

MANY = 10_000  # of epsilon
POLICY = {
    "neighbours": "add-remove",
    "tables": {
        "users": {
            "unit": "id",
            "unique": ["id"],
            "columns": {"state": {"values": ["CA", "NY"], "nullable": False}},
        },
        "visits": {
            "unit": "user_id",
            "max_rows": 20,
            "max_groups": 20,
            "columns": {
                "kind": {"values": ["a", "b"], "nullable": False},
                "cost": {"range": [0, 50], "nullable": False},
                "price": {"range": [0, 10], "nullable": False},
                "score": {"range": [0, 9]},
                "day": {"range": ["2024-01-01", "2024-12-31"], "nullable": False},
            },
        },
    },
}


def paragraphs() -> Iterator[str]:
    for paragraph in Path(__file__).with_name("queries.sql").read_text().split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("--")]
        if lines:
            yield " ".join(lines)


QUERIES = list(paragraphs())


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """No user has more than 20 visits, and no two visits of a user are at the same time."""
    random = np.random.default_rng(11)
    size, rows = 4_000, 16_000
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.permutation(366 * 24 * 60)[:rows], unit="min")
    users = pd.DataFrame({"id": np.arange(size), "state": random.choice(["CA", "NY"], size)})
    visits = pd.DataFrame(
        {
            "user_id": np.arange(rows) // 20 * 5 + random.integers(0, 5, rows),
            "moment": at,
            "kind": random.choice(["a", "b"], rows, p=[0.7, 0.3]),
            "cost": random.integers(0, 51, rows),
            "price": random.integers(0, 81, rows) / 8,
            "score": np.where(random.random(rows) < 0.2, None, random.integers(0, 10, rows)),
        }
    )
    with duckdb.connect() as connection:
        for name, frame in (("users_frame", users), ("visits_frame", visits)):
            connection.register(name, frame)
        connection.execute("CREATE TABLE users AS SELECT * FROM users_frame")
        connection.execute(
            "CREATE TABLE visits AS SELECT user_id, CAST(moment AS TIMESTAMP) AS moment, CAST(moment AS DATE) AS day, kind, "
            "cost, price, CAST(score AS INTEGER) AS score FROM visits_frame"
        )
        connection.unregister("users_frame")
        connection.unregister("visits_frame")
        yield connection


@pytest.fixture(scope="module")
def session(tables: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(tables, policy=POLICY)


def test_there_are_at_least_40_queries() -> None:
    assert len(QUERIES) >= 40


@pytest.mark.parametrize("sql", QUERIES, ids=range(len(QUERIES)))
def test_a_query_of_one_persons_rows_is_answered_like_plain_duckdb(
    sql: str, session: privsql.Session, tables: duckdb.DuckDBPyConnection
) -> None:
    ours = session.query(sql, epsilon=MANY).df()
    theirs = tables.execute(sql).df()
    names = list(theirs.columns)
    assert list(ours.columns) == names
    labels = [
        name
        for name in names
        if name in ("kind", "state", "k", "before", "months", "third") or "_kind" in name
    ]
    if labels:
        ours, theirs = (frame.sort_values(labels).reset_index(drop=True) for frame in (ours, theirs))
    assert len(ours) == len(theirs)
    for name in names:
        mine, other = ours[name].tolist(), theirs[name].tolist()
        if name in labels:
            assert [str(each) for each in mine] == [str(each) for each in other]
        else:  # the scale of the noise is at most some thousandths of 20 rows of one user
            np.testing.assert_allclose(
                np.array(mine, dtype=float), np.array(other, dtype=float), rtol=0.003, atol=1.01
            )
