"""Files of analysts' queries: at an epsilon so large that there is no noise, each gives what plain DuckDB gives.

`PRIVSQL_QUERIES=file` compares the queries of another file, on the same tables.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from tests.composed import analyst_tables

_OWN = (Path(__file__).with_name("queries.sql"), Path(__file__).with_name("analysts.sql"))
FILES = (Path(os.environ["PRIVSQL_QUERIES"]),) if "PRIVSQL_QUERIES" in os.environ else _OWN
_WAITS = "-- waits: "
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
        **analyst_tables.POLICY,
    },
}


@dataclass(frozen=True)
class Query:
    """One paragraph of a file. `waits`: what it needs that is not there yet."""

    sql: str
    waits: str = ""


def paragraphs(file: Path) -> Iterator[Query]:
    for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
        listed = paragraph.splitlines()
        lines = [line for line in listed if line.strip() and not line.startswith("--")]
        waits = [line.removeprefix(_WAITS) for line in listed if line.startswith(_WAITS)]
        if lines:
            yield Query("\n".join(lines), "".join(waits))


QUERIES = [query for file in FILES for query in paragraphs(file)]
ANSWERED = [query.sql for query in QUERIES if not query.waits]
WAITING = [query for query in QUERIES if query.waits]


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
        analyst_tables.fill(connection)
        yield connection


@pytest.fixture(scope="module")
def session(tables: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(tables, policy=POLICY)


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows that can be compared: plain numbers, NULL and NaN alike."""

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
            return float(value)
        return str(value)

    columns = [[plain(value) for value in frame.iloc[:, place].tolist()] for place in range(frame.shape[1])]
    return list(zip(*columns, strict=True))


def alike(one: Any, other: Any, slack: float = 0.0) -> bool:
    """Whether two cells are the same but for what noise is left at this epsilon."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=2e-3, abs_tol=max(0.02, slack))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def unmatched(
    ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]], noise: float = 0.0
) -> list[tuple[Any, ...]]:
    """The rows of either side that have no equal on the other one, whatever their order. `noise`: how far a released
    number may be off; a column of small numbers, such as shares, by a few hundredths of its largest at most.
    """
    slacks = [min(noise, 0.03 * max(map(_size, column), default=0.0)) for column in zip(*theirs, strict=True)]
    left = list(ours)
    missing = []
    for row in theirs:
        place = next((number for number, each in enumerate(left) if all(map(alike, each, row, slacks))), None)
        if place is None:
            missing.append(row)
        else:
            left.pop(place)
    return [*missing, *left]


def _size(cell: Any) -> float:
    return abs(cell) if isinstance(cell, float) and math.isfinite(cell) else 0.0


def noise_of(plan: privsql.Plan) -> float:
    """What noise hardly ever passes, in a sum or difference of two released numbers."""
    return 2 * max((each or 0.0 for each in plan.accuracy(0.999999).values()), default=0.0)


def test_there_are_queries():
    assert len(ANSWERED) > 150 or FILES is not _OWN


@pytest.mark.parametrize("sql", ANSWERED, ids=range(len(ANSWERED)))
def test_a_query_without_noise_is_answered_like_plain_duckdb(sql, session, tables):
    answer = session.query(sql, epsilon=MANY)
    noise = 0.0 if not answer.plan.measurements else noise_of(answer.plan)
    assert unmatched(rows_of(answer.df()), rows_of(tables.execute(sql).df()), noise) == []
    assert str(answer)


@pytest.mark.parametrize("query", WAITING, ids=lambda query: query.waits)
def test_a_query_that_waits_is_still_refused(query, session, tables):
    assert tables.execute(query.sql).fetchall()
    try:
        answer = session.query(query.sql, epsilon=MANY)
    except privsql.Refused:
        return
    assert unmatched(rows_of(answer.df()), rows_of(tables.execute(query.sql).df())) == []
    pytest.fail(f"answered now, and rightly: remove the line {_WAITS!r} above it in analysts.sql")


def test_rows_that_differ_are_found():
    assert unmatched([(1.0, "a")], [(1.0005, "a")]) == []
    assert unmatched([(1.0, "a"), (2.0, "a")], [(1.0, "b"), (2.0, "a")]) == [(1.0, "b"), (1.0, "a")]
    assert unmatched([(1.0,), (1.0,)], [(1.0,)]) == [(1.0,)]
