"""What a refusal suggests runs: each refused query beside the one that follows its suggestion."""

from __future__ import annotations

import duckdb
import pytest

import privsql

POLICY = {
    "tables": {
        "t": {
            "unit": "id",
            "max_rows": 5,
            "max_groups": 5,
            "columns": {"k": {"values": ["a", "b"]}, "x": {"range": [0, 9]}},
        },
        "s": {"public": True},
    }
}
# A refused query, words of its suggestion, and a query that does what they say.
CASES = [
    ("SELECT k, x FROM t", "SELECT COUNT(*), AVG(x) ... GROUP BY", "SELECT k, COUNT(*), AVG(x) FROM t GROUP BY k"),
    ("SELECT BIT_OR(x) FROM t", "COUNT(*) FILTER (WHERE x // 4 % 2 = 1)", "SELECT COUNT(*) FILTER (WHERE x // 4 % 2 = 1) FROM t"),
    ("SELECT LIST(x) FROM t", "COUNT(*) ... GROUP BY declared keys", "SELECT k, COUNT(*) FROM t GROUP BY k"),
    ("SELECT BOOL_OR(x > 2) FROM t", "COUNT(*) FILTER (WHERE ...)", "SELECT COUNT(*) FILTER (WHERE x > 2) FROM t"),
    ("SELECT arg_max(k, x) FROM t", "FROM (SELECT k", "SELECT arg_max(k, n) FROM (SELECT k, SUM(x) n FROM t GROUP BY k)"),
    ("DELETE FROM t", "SELECT ... FROM", "SELECT COUNT(*) FROM t"),
    ("SELECT COUNT(*) FROM t WHERE COUNT(*) > 2", "HAVING", "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 2"),
    ("SELECT k, x, COUNT(*) FROM t GROUP BY k", "put it into COUNT, SUM or AVG", "SELECT k, AVG(x), COUNT(*) FROM t GROUP BY k"),
    ("SELECT COUNT(*) FROM t WHERE 1 < x < 5", "1 < x AND x < 5", "SELECT COUNT(*) FROM t WHERE 1 < x AND x < 5"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "noisier", "SELECT COUNT(*) FROM t"),
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i % 50 AS id, ['a', 'b'][1 + i % 2] AS k, i % 10 AS x FROM range(200) r(i)"
    )
    connection.execute("CREATE TABLE s AS SELECT 1 AS x")
    return privsql.connect(connection, policy=POLICY)


@pytest.mark.parametrize(("refused", "words", "mended"), CASES, ids=lambda each: each[:40])
def test_a_query_that_follows_the_suggestion_is_answered(
    refused: str, words: str, mended: str, session: privsql.Session
) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.explain(refused, epsilon=1)
    assert words in caught.value.suggestion
    assert session.query(mended, epsilon=1).columns
