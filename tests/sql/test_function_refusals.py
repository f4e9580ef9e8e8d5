"""Functions without a rule: each says why, and what it suggests is a query that runs."""

from __future__ import annotations

import re

import duckdb
import pytest

import privsql
from privsql import PrivsqlError, Refused
from privsql.sql.parse.rewritten.function_refusals import _BY_NAME

COLUMNS = {
    "x": {"range": [1, 99]}, "k": {"values": ["Smith", "b"]}, "d": {"range": ["2000-01-01", "2020-01-01"]},
}  # fmt: skip


def session() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 1 + i % 99 AS x, ['Smith', 'b'][1 + i % 4 // 3] AS k, DATE '2001-01-01' AS d "
        "FROM range(400) r(i)"
    )
    return privsql.connect(
        connection,
        {"neighbours": "add-remove", "budget": {"epsilon": 10_000}, "tables": {"t": {"columns": COLUMNS}}},
    )


@pytest.mark.parametrize("suggestion", sorted({instead for _, instead in _BY_NAME.values()}))
def test_every_suggested_query_is_answered(suggestion: str) -> None:
    asked = session()
    for found in re.findall(r"SELECT .*?(?=\. Of| with declared|$)", suggestion):
        answer = asked.query(found, epsilon=50)
        assert len(answer.fetchall()) >= 1
        if "entropy" in found:
            ((entropy,),) = answer.fetchall()
            assert entropy == pytest.approx(0.8113, abs=0.1)


@pytest.mark.parametrize(("dialect", "text"), [
    ("duckdb", "SELECT histogram(k) AS h FROM t"),
    ("duckdb", "SELECT entropy(k) AS h FROM t"),
    ("duckdb", "SELECT product(x) AS h FROM t"),
    ("duckdb", "SELECT mad(x) AS h FROM t"),
    ("duckdb", "SELECT skewness(x) AS h FROM t"),
    ("snowflake", "SELECT skew(x) AS h FROM t"),
    ("duckdb", "SELECT COUNT(*) AS n FROM t WHERE random() < 0.1"),
    ("mysql", "SELECT COUNT(*) AS n FROM t WHERE rand() < 0.1"),
    ("clickhouse", "SELECT topK(3)(k) AS h FROM t"),
    ("bigquery", "SELECT APPROX_TOP_COUNT(k, 3) AS h FROM t"),
    ("tsql", "SELECT COUNT(*) AS n FROM t WHERE soundex(k) = 'S'"),
    ("postgres", "SELECT COUNT(*) AS n FROM t WHERE age(d, d) = '1'"),
    ("hive", "SELECT collect_set(k) AS h FROM t"),
    ("sqlite", "SELECT listagg(k) AS h FROM t"),
])  # fmt: skip
def test_function_is_refused_with_a_reason(dialect: str, text: str) -> None:
    with pytest.raises(PrivsqlError) as error:
        session().explain(text, epsilon=1, dialect=dialect)
    assert isinstance(error.value, Refused)
    assert error.value.code in ("refused-function", "refused-arrayagg")
    assert "how far one person can move its result" not in str(error.value)
    assert error.value.line == 1


@pytest.mark.parametrize(
    "text", ["EVERY(x > 1)", "LOGICAL_OR(x > 1)", "BIT_AND(x)", "BOOL_OR(x > 1)", "BIT_XOR(x)"]
)
def test_bits_and_truths_of_many_people_are_refused_under_every_name(text: str) -> None:
    for dialect in ("duckdb", "postgres", "trino", "sqlite", "oracle"):
        with pytest.raises(PrivsqlError) as error:
            session().explain(f"SELECT {text} AS v FROM t", epsilon=1, dialect=dialect)
        assert error.value.code in ("refused-logicalor", "refused-bitwiseoragg")
