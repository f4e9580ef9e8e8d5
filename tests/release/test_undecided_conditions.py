"""A condition that a release does not decide is refused; one that it decides counts what plain SQL counts."""

from __future__ import annotations

import duckdb
import pytest

import privsql

PRICE = {"epsilon": 50.0, "delta": 1e-3}  # hardly any noise
DECLARED = {
    "age": {"range": [0, 119]},
    "share": {"range": [0, 1]},
    "price": {"range": [0, 9]},
    "day": {"range": ["2024-01-01", "2024-12-30"]},
    "moment": {"range": ["2024-01-01", "2024-12-30"]},
    "a": {"values": ["x"]},
    "c": {"values": ["x"]},
    "v": {"values": [1, 2]},
    "w": {"range": [0, 3]},
    "double": {"values": [1e300]},
    "big": {"values": [2**63 - 1]},
    "tiny": {"values": [127]},
    "exact": {"values": [9.99]},
    "last": {"values": ["9999-12-31"]},
    "late": {"values": ["9999-12-31"]},
    "clock": {"values": ["00:00:00"]},
    "flag": {"values": [True, False]},
}


@pytest.fixture(scope="module")
def session():
    source = duckdb.connect()
    source.execute(
        "CREATE TABLE t AS SELECT i % 120 AS age, (i % 11) / 10.0::DOUBLE AS share, "
        "CAST(i % 10 AS DECIMAL(6, 2)) AS price, DATE '2024-01-01' + CAST(i % 365 AS INTEGER) AS day, "
        "TIMESTAMP '2024-01-01' + to_days(CAST(i % 365 AS INTEGER)) AS moment, "
        "chr(120 + CAST(i % 3 AS INTEGER)) AS a, chr(120 + CAST(i % 2 AS INTEGER)) AS c, "
        "i % 4 AS v, i // 4 % 4 AS w, if(i % 4 = 0, 1e300, i % 4)::DOUBLE AS double, "
        "if(i % 4 = 0, 9223372036854775807, i % 4)::BIGINT AS big, "
        "if(i % 4 = 0, 127, i % 4)::TINYINT AS tiny, "
        "if(i % 4 = 0, 9.99, 0.5)::DECIMAL(3, 2) AS exact, "
        "if(i % 4 = 0, DATE '9999-12-31', DATE '2000-01-01') AS last, "
        "if(i % 4 = 0, TIMESTAMP '9999-12-31', TIMESTAMP '2000-01-01') AS late, "
        "if(i % 4 = 0, TIME '00:00:00', TIME '07:00:00') AS clock, i % 4 = 0 AS flag "
        "FROM range(1200) AS r(i)"
    )
    with privsql.connect(source, {"tables": {"t": {"columns": DECLARED}}}) as session:
        session.truth = lambda sql: source.execute(sql).fetchall()[0][0]
        yield session


def answered(session, columns, bins, condition):
    release = session.release(privsql.marginals(columns, len(columns), bins), "t", **PRICE)
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    return release.query(sql).intervals(0.9999).iloc[0], session.truth(sql)


@pytest.mark.parametrize(
    ("columns", "bins", "condition"),
    [
        (["age"], {"age": [30, 40, 50]}, "age < 30"),  # its first part holds all below 40
        (["age"], {"age": [30, 40, 50]}, "age >= 50"),
        (["age"], {"age": [30, 40, 50]}, "age <= 29"),
        (["age"], {"age": [30, 31, 32]}, "age = 30"),
        (["age"], {"age": [30, 31, 32]}, "age > 40"),
        (["share"], {"share": 2}, "share >= 1"),  # its last part holds 1
        (["share"], {"share": 2}, "share < 1"),
        (["share"], {"share": [0.2, 0.5]}, "share < 0.2"),
        (["price"], {"price": 3}, "price >= 9"),
        (["day"], {"day": ["2024-02-01", "2024-03-01"]}, "day < DATE '2024-02-01'"),
        (["day"], {"day": ["2024-01-01", "2024-03-01"]}, "day < DATE '9999-12-31'"),
        (["day"], {"day": ["2024-01-01", "2024-03-01"]}, "day > DATE '9999-12-31'"),
        (["moment"], {"moment": 2}, "moment >= TIMESTAMP '2024-12-30'"),
        (["a", "c"], None, "a = c"),  # both hold undeclared values
        (["a", "c"], None, "a <> c"),
        (["a", "c"], None, "a IN (c)"),
        (["a", "c"], None, "a IN ('x', c)"),
        (["v", "w"], None, "v = w"),
        (["v", "w"], None, "w <> v"),
    ],
)
def test_a_condition_that_a_release_does_not_decide_is_refused(session, columns, bins, condition):
    with pytest.raises(privsql.Refused) as caught:
        answered(session, columns, bins, condition)
    assert caught.value.code == "refused-not-released" and caught.value.suggestion


@pytest.mark.parametrize(
    ("columns", "bins", "condition"),
    [
        (["age"], {"age": [30, 40, 50]}, "age < 40"),
        (["age"], {"age": [30, 40, 50]}, "age > 39"),
        (["age"], {"age": [0, 40, 120]}, "age >= 120"),
        (["age"], {"age": [0, 40, 120]}, "age >= 0"),
        (["age"], {"age": [30, 31, 32]}, "age <= 30"),
        (["share"], {"share": [0, 0.5, 2]}, "share >= 2"),
        (["share"], {"share": 2}, "share < 0.5"),
        (["day"], {"day": 2}, "day > DATE '2024-12-30'"),
    ],
)
def test_a_condition_at_an_edge_counts_what_plain_sql_counts(session, columns, bins, condition):
    found, truth = answered(session, columns, bins, condition)
    assert found.n == pytest.approx(truth, abs=8)


def test_parts_that_hold_more_than_their_value_are_no_keys(session):
    release = session.release(privsql.marginals(["age"], 1, {"age": [30, 31, 32]}), "t", **PRICE)
    with pytest.raises(privsql.Refused, match="in parts"):
        release.query("SELECT age, COUNT(*) AS n FROM t WHERE age >= 29 AND age < 33 GROUP BY age")


@pytest.mark.parametrize(
    "condition",
    [
        "double = 1e300",
        "double <> 1e300",
        "big = 9223372036854775807",
        "big <> 9223372036854775807",
        "tiny <> 127",
        "exact = 9.99",
        "exact <> 9.99",
        "last = DATE '9999-12-31'",
        "last <> DATE '9999-12-31'",
        "late <> TIMESTAMP '9999-12-31'",
        "clock = TIME '00:00:00'",
        "clock <> TIME '00:00:00'",
        "flag = TRUE",
        "flag <> TRUE",
    ],
)
def test_undeclared_values_never_equal_a_declared_one(session, condition):
    found, truth = answered(session, [condition.split()[0]], None, condition)
    assert found.n == pytest.approx(truth, abs=8)
