"""The order of rows decides nothing: the same rows in another order give the same cells."""

from __future__ import annotations

import struct

import duckdb
import pytest

import privsql
from tests.support.databases import database

SIGNS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48)]


@pytest.mark.parametrize("one", ["max(x)", "min(x)", "any_value(x)", "first(x ORDER BY day)", "last(x ORDER BY day)",
                                 "quantile_disc(x, 0.5)", "arg_min(x, day)"])  # fmt: skip
@pytest.mark.parametrize("text", ["CAST(m AS VARCHAR)", "concat(m, '')", "m || ''"])
def test_nan_sign_does_not_depend_on_row_order(one: str, text: str) -> None:
    """NaN equals NaN, but as text they were 'nan' and '-nan': reordering the same rows moved a count by everyone."""
    sql = f"SELECT COUNT(*) AS n FROM (SELECT user_id, {one} AS m FROM v GROUP BY user_id) WHERE {text} LIKE '-%'"
    found = []
    for order in (SIGNS, SIGNS[::-1]):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE v (user_id INTEGER, x DOUBLE, day INTEGER)")
        connection.executemany(
            "INSERT INTO v VALUES (?, ?, 1)", [(unit, x) for unit in range(9) for x in order]
        )
        session = privsql.connect(connection, {"tables": {"v": {"unit": "user_id"}}})
        found.append(connection.execute(session.explain(sql, epsilon=1).sql).fetchall())
    assert found[0] == found[1]


def test_zero_sign_does_not_depend_on_row_order():
    answers = set()
    for order in ("0.0", "-0.0"), ("-0.0", "0.0"):
        connection = database(
            "CREATE TABLE a (v INTEGER, x DOUBLE)",
            "CREATE TABLE b (v INTEGER)",
            "INSERT INTO b FROM range(6)",
        )
        for zero in order:
            connection.execute(f"INSERT INTO a SELECT range, {zero}::DOUBLE FROM range(6)")
        policy = {"tables": {"a": {"matches": {"v": 1}}, "b": {"matches": {"v": 1}}}}
        sql = "SELECT COUNT(*) FILTER (WHERE CAST(a.x AS VARCHAR) = '-0.0') FROM a JOIN b ON a.v = b.v"
        answers.add(
            connection.execute(privsql.connect(connection, policy).explain(sql, epsilon=1).sql).fetchone()
        )
    assert len(answers) == 1
