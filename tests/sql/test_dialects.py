"""What an answer under dialect= means, where the outcome of a text case does not show it."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import privsql


def test_len_of_tsql_does_not_count_spaces_at_the_end() -> None:
    names = pd.DataFrame({"name": ["ab ", "ab", " b", "abc"] * 10})
    answer = names.dp.query("SELECT COUNT(*) AS n FROM df WHERE LEN(name) = 2", epsilon=1e4, dialect="tsql")
    assert answer["n"].tolist() == [30]
    assert names.dp.query("SELECT COUNT(*) AS n FROM df WHERE LEN(name) = 2", epsilon=1e4)["n"].tolist() == [
        20
    ]


@pytest.mark.parametrize(("dialect", "condition", "found"), [
    ("oracle", "GREATEST(x, NULL) IS NULL", 2), ("hive", "LEAST(x, y) IS NULL", 1), ("redshift", "CONCAT(s, NULL) IS NULL", 2),
    ("postgres", "GREATEST(x, NULL) IS NULL", 0),
])  # fmt: skip
def test_null_arguments_follow_the_dialect(dialect: str, condition: str, found: int) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS x, CASE WHEN i = 1 THEN i END AS y, 'a' AS s FROM range(2) r(i)"
    )
    plan = privsql.connect(connection).explain(
        f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1, dialect=dialect
    )
    assert connection.execute(plan.sql).fetchall() == [(found,)]
