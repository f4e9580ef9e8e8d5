"""Joins: how many rows one person's row can meet, and when that is known."""

from __future__ import annotations

import pytest

import privsql
from tests.support.databases import database

PUBLIC = {"tables": {"pub": {"public": True}}}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t JOIN pub ON pub.a = pub.a",
        "SELECT COUNT(*) FROM t JOIN (VALUES (1), (2), (3), (4)) v(a) ON v.a = v.a",
        "SELECT COUNT(*) FROM t LEFT JOIN pub ON pub.a = pub.b",
        "SELECT COUNT(*) FROM t, pub WHERE pub.a = pub.b",
    ],
)
def test_an_equality_within_one_side_does_not_bound_matches(sql):
    connection = database(
        "CREATE TABLE t (id INTEGER UNIQUE, x INTEGER)", "CREATE TABLE pub AS SELECT 1 AS a, 1 AS b FROM range(100)",
    )  # fmt: skip
    plan = privsql.connect(connection, PUBLIC).explain(sql, epsilon=1)
    before = connection.execute(plan.sql).fetchone()[0]
    connection.execute("INSERT INTO t VALUES (1, 1)")
    assert connection.execute(plan.sql).fetchone()[0] - before <= plan.measurements[0].l1


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_an_equality_within_one_side_does_not_make_a_join_one_to_one(kind):
    connection = database("CREATE TABLE t (id INTEGER UNIQUE)", "CREATE TABLE r (rid INTEGER UNIQUE)")
    with pytest.raises(privsql.Refused) as caught:
        privsql.connect(connection).explain(
            f"SELECT COUNT(*) FROM t {kind} r ON t.id = t.id AND r.rid = r.rid", epsilon=1
        )
    assert caught.value.code == "refused-join"


def test_public_subqueries_with_ties_at_a_limit_are_refused():
    connection = database(
        "CREATE TABLE big AS SELECT i % 10 AS j, i AS a FROM range(100) r(i)", "CREATE TABLE t (id INTEGER)"
    )
    session = privsql.connect(connection, {"tables": {"big": {"public": True}}})
    for sql in (
        "SELECT COUNT(*) FROM t JOIN (SELECT j, MAX(a) AS a FROM big GROUP BY j LIMIT 5) q ON q.a = t.id",
        "SELECT COUNT(*) FROM t WHERE id IN (SELECT a FROM big ORDER BY j LIMIT 5)",
    ):
        with pytest.raises(privsql.Refused) as caught:
            session.explain(sql, epsilon=1)
        assert caught.value.code == "refused-limit"
    assert (
        "ORDER BY" in session.explain("SELECT SUM(a / 3) AS s FROM big", epsilon=1).sql
    )  # the same digits every time


def test_declared_matches_hold_inside_a_subquery():
    connection = database("CREATE TABLE a (k INTEGER, v BOOLEAN)", "CREATE TABLE b (k INTEGER UNIQUE)")
    session = privsql.connect(connection, {"tables": {"a": {"matches": {"k": 2}}}})
    inner = session.explain("SELECT v, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY v", epsilon=1)
    outer = session.explain(
        "SELECT v, COUNT(*) FROM (SELECT a.v FROM a JOIN b ON a.k = b.k) q GROUP BY v", epsilon=1
    )
    assert outer.measurements[0].l1 == inner.measurements[0].l1
