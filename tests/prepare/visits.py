"""Visits of forty people, some with many rows: a policy, a file of them, and what tests of prepared copies ask of a plan."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

STATES = ["CA", "NY", "TX"]
VISITS: dict[str, Any] = {
    "unit": "user_id",
    "max_groups": 2,
    "max_rows": 3,
    "columns": {
        "state": {"values": STATES},
        "amount": {"range": [0, 99]},
        "price": {"range": [0, 10]},
        "kind": {"values": ["a", "b"]},
    },
}
POLICY: dict[str, Any] = {"tables": {"visits": VISITS}}
ROWS = """
    SELECT CASE WHEN i % 17 > 0 THEN (i * i % 40)::INTEGER END AS user_id, ['CA', 'NY', 'TX', 'ZZ', NULL][1 + i % 5] AS state,
           (i * 37 % 120)::INTEGER AS amount, CASE WHEN i % 5 > 0 THEN (i % 90) / 7.0::DOUBLE ELSE -0.0 END AS price,
           ['a', 'b'][1 + i % 2]::ENUM('a', 'b') AS kind, DATE '2024-01-01' + (i % 30)::INTEGER AS day, [i] AS unusable
    FROM range({rows}) r(i)
"""
BY_STATE = "SELECT state, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY state"
WRITTEN = "the source of visits has changed since it was prepared"


def other(**changes: Any) -> dict[str, Any]:
    """The policy with another word on the visits."""
    return {"tables": {"visits": {**VISITS, **changes}}}


@cache
def _made(rows: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "visits.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute(f"CREATE TABLE visits AS {ROWS.format(rows=rows)}")
        return file.read_bytes()


def make(file: Path, rows: int = 2000) -> Path:
    """A file of visits; DuckDB makes one of each length, as it takes it a hundred times as long as to write the bytes."""
    file.write_bytes(_made(rows))
    return file


def change(file: Path, sql: str) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute(sql)


def change_elsewhere(file: Path, *statements: str, then: str = "connection.close()") -> None:
    """In another process, as most changes are, each by a connection of its own."""
    once = f"connection = duckdb.connect({str(file)!r}); connection.execute(sql); {then}"
    program = f"import duckdb, os\nfor sql in {statements}:\n    {once}"
    subprocess.run([sys.executable, "-c", program], check=True)


def uses_copy(plan: Any) -> bool:
    return "privsql_prepared" in plan.sql


def copy_of(plan: Any) -> str:
    """The name of the copy that a plan reads, or whose totals; fails if it reads none."""
    return str(plan.sql.split('privsql_prepared.main."')[1].split('"')[0]).removesuffix("_by_rank")


def reads_totals(plan: Any) -> bool:
    """Whether a plan reads what the copy adds up to by rank, and not the copy."""
    return uses_copy(plan) and plan.sql.count("_by_rank") == plan.sql.count("privsql_prepared") == 1


def with_copies(file: Path) -> duckdb.DuckDBPyConnection:
    """Plain DuckDB on a file and the copies beside it: plan.sql runs there, without privsql."""
    plain = duckdb.connect(str(file), read_only=True)
    plain.execute(f"ATTACH '{file}.prepared' AS privsql_prepared (READ_ONLY)")
    return plain
