"""Names in joins, subqueries and ORDER BY: each refers to what DuckDB would refer to, or the query is refused."""

from __future__ import annotations

import pytest

import privsql
from tests.support.databases import database


def test_order_by_prefers_an_output_alias_over_a_column(two_rows):
    sql = "SELECT -a AS a, COUNT(*) AS n FROM t WHERE a >= 9 GROUP BY t.a ORDER BY a"
    assert two_rows.query(sql, epsilon=10_000).fetchall() == [(-10, 0), (-9, 0)]


MEANT = {
    "SELECT COUNT(*) FROM u LEFT JOIN o USING (uid) WHERE o.uid IS NULL": "",
    "SELECT COUNT(o.uid) FROM u LEFT JOIN o USING (uid)": "",
    "SELECT COUNT(u.uid) FROM u RIGHT JOIN o USING (uid)": "",
    "SELECT COUNT(uid) FROM u RIGHT JOIN o USING (uid)": "",
    "SELECT COUNT(*) FROM u JOIN o USING (uid) JOIN o o2 USING (uid)": "",
    "SELECT COUNT(*) FROM (SELECT * FROM u LEFT JOIN o USING (uid)) WHERE y IS NULL": "",
    "SELECT COUNT(*) FROM u WHERE EXISTS (SELECT COUNT(*) FROM o WHERE o.uid = u.uid)": "refused-exists",
    "SELECT COUNT(*) FROM u WHERE EXISTS (SELECT 1 FROM o WHERE o.uid = u.uid AND u.x IN (SELECT x FROM p2))": "refused-exists",
    "SELECT COUNT(*) FROM u WHERE EXISTS (SELECT 1 FROM pub, p2 WHERE x = 3)": "name-ambiguous",
    "SELECT x FROM (SELECT DISTINCT x FROM u) GROUP BY x": "refused-no-aggregate",
    "SELECT COUNT(*) FROM u WHERE x NOT IN (SELECT x FROM pub WHERE x IS NOT NULL)": "",
    "SELECT COUNT(*) FROM u WHERE x NOT IN (SELECT x FROM pub)": "",
    "SELECT COUNT(*) FROM u WHERE x IN (SELECT x FROM pub)": "",
    "SELECT COUNT(*) FROM u WHERE NOT EXISTS (SELECT 1 FROM pub WHERE pub.x = u.x)": "",
}


@pytest.mark.parametrize("sql", MEANT)
def test_names_in_joins_and_subqueries_resolve_as_in_duckdb(sql):
    connection = database(
        "CREATE TABLE u (uid INTEGER PRIMARY KEY, x INTEGER)",
        "CREATE TABLE o (uid INTEGER, y INTEGER)",
        "CREATE TABLE pub (x INTEGER, z INTEGER)",
        "CREATE TABLE p2 (x INTEGER)",
        "INSERT INTO u VALUES (1, 1), (2, 2), (3, NULL), (4, 3)",
        "INSERT INTO o VALUES (1, 1), (1, 2), (2, NULL)",
        "INSERT INTO pub VALUES (1, 1), (NULL, 2), (2, 3)",
        "INSERT INTO p2 VALUES (7)",
    )
    o = {"unit": "uid", "max_groups": 3, "max_rows": 10}
    tables = {"u": {"unit": "uid"}, "o": o, "pub": {"public": True}, "p2": {"public": True}}
    session = privsql.connect(connection, {"tables": tables})
    if MEANT[sql]:
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.query(sql, epsilon=10_000)
        assert caught.value.code == MEANT[sql]
    else:
        assert session.query(sql, epsilon=10_000).fetchall() == connection.execute(sql).fetchall()


def test_columns_of_unsupported_types_are_not_in_scope():
    connection = database(
        "CREATE TABLE p (k TIMESTAMP, d TIMESTAMPTZ)", "CREATE TABLE t (d TIMESTAMP)",
        "INSERT INTO p VALUES ('2024-01-01', '2024-01-01'), ('2024-01-05', '2024-01-05')",
        "INSERT INTO t VALUES ('2024-01-01'), ('2024-01-02')",
    )  # fmt: skip
    session = privsql.connect(connection, {"tables": {"p": {"public": True}}})
    for sql in (
        "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM p WHERE p.k = t.d)",
        "SELECT COUNT(*) FROM t JOIN p ON p.k = t.d WHERE t.d > DATE '2020-01-01'",
    ):
        assert session.query(sql, epsilon=10_000).fetchall() == connection.execute(sql).fetchall()
