"""What a hostile reading of units, joins and unknown keys found; each was a way in, or a wrong answer."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import privsql


def database(*statements: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for each in statements:
        connection.execute(each)
    return connection


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
def test_an_equality_within_one_side_says_nothing_of_matches(sql):
    connection = database(
        "CREATE TABLE t (id INTEGER UNIQUE, x INTEGER)", "CREATE TABLE pub AS SELECT 1 AS a, 1 AS b FROM range(100)",
    )  # fmt: skip
    plan = privsql.connect(connection, PUBLIC).explain(sql, epsilon=1)
    before = connection.execute(plan.sql).fetchone()[0]
    connection.execute("INSERT INTO t VALUES (1, 1)")
    assert connection.execute(plan.sql).fetchone()[0] - before <= plan.measurements[0].l1


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_nor_does_it_make_a_join_one_to_one(kind):
    connection = database("CREATE TABLE t (id INTEGER UNIQUE)", "CREATE TABLE r (rid INTEGER UNIQUE)")
    with pytest.raises(privsql.Refused) as caught:
        privsql.connect(connection).explain(
            f"SELECT COUNT(*) FROM t {kind} r ON t.id = t.id AND r.rid = r.rid", epsilon=1
        )
    assert caught.value.code == "refused-join"


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("CASE WHEN hiv THEN 100000000000 ELSE 0 END", "SELECT CAST(a AS DECIMAL(38, 30)) FROM (VALUES (5)) v(a)"),
        ("CASE WHEN hiv THEN DATE '2024-01-01' + 1800000000 ELSE DATE '2024-01-01' END",
         "SELECT CAST('2024-01-02' AS TIMESTAMP) FROM (VALUES (5)) v(a)"),
        ("CASE WHEN hiv THEN 18446744073709551615 ELSE 0 END", "SELECT CAST(a AS DECIMAL(38, 37)) FROM (VALUES (5)) v(a)"),
    ],
)  # fmt: skip
def test_not_in_fails_on_no_row(value, other):
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {value} NOT IN ({other})"
    outcomes = set()
    for hiv in ("true", "false"):
        connection = database("CREATE TABLE t (hiv BOOLEAN)", f"INSERT INTO t VALUES ({hiv})")
        try:
            privsql.connect(connection).query(sql, epsilon=1)
            outcomes.add("answered")
        except privsql.PrivsqlError as error:
            outcomes.add(error.code)
    assert len(outcomes) == 1
    assert outcomes != {"engine-failed"}


@pytest.mark.parametrize(
    "key",
    [
        "CASE WHEN hiv THEN DATE '2024-01-01' + 1800000000 ELSE DATE '2024-01-01' END",
        "CASE WHEN hiv THEN CAST('infinity' AS DATE) ELSE DATE '2024-01-01' END",
        "CASE WHEN hiv THEN CAST('infinity' AS TIMESTAMP) ELSE CAST('2024-01-01' AS TIMESTAMP) END",
        "CASE WHEN hiv THEN CAST('24:00:00' AS TIME) ELSE CAST('12:00:00' AS TIME) END",
        "d", "ts", "tm", "iv", "h", "c", "u", "dbl",
    ],
)  # fmt: skip
def test_reading_keys_that_nobody_declared_fails_on_no_row(key):
    columns = "hiv BOOLEAN, d DATE, ts TIMESTAMP, tm TIME, iv INTERVAL, h HUGEINT, c DECIMAL(18, 3), u UBIGINT, dbl DOUBLE"
    rows = {
        "odd": "(true, 'infinity', '290000-01-01', '24:00:00', INTERVAL 5000000 YEAR, "
        "-170141183460469231731687303715884105727, 1, 18446744073709551615, 'nan')",
        "plain": "(false, '2024-01-01', '2024-01-01', '12:00', INTERVAL 1 DAY, 1, 1, 1, 1)",
    }
    outcomes = set()
    for row in rows.values():
        connection = database(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {row}")
        try:
            privsql.connect(connection).query(
                f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1, delta=1e-9
            )
            outcomes.add("answered")
        except privsql.PrivsqlError as error:
            outcomes.add(error.code)
    assert len(outcomes) == 1
    assert outcomes != {"engine-failed"}


def test_a_call_cannot_change_whose_privacy_a_budget_counts():
    frame = pd.DataFrame({"uid": [1] * 50, "row": range(50)})
    frame.dp.protect(unit="uid", budget=1.0, max_rows=10)
    with pytest.raises(privsql.ArgumentError) as caught:
        frame.dp.query("SELECT COUNT(*) FROM df", epsilon=1, unit="row")
    assert caught.value.code == "argument-unit"
    frame.dp.query("SELECT COUNT(*) FROM df", epsilon=0.5, unit="uid")


def test_which_zero_is_kept_does_not_depend_on_the_order_of_rows():
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


# -- what it means -------------------------------------------------------------------------------------------
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
    "SELECT x FROM (SELECT DISTINCT x FROM u) GROUP BY x": "refused-distinct",
    "SELECT COUNT(*) FROM u WHERE x NOT IN (SELECT x FROM pub WHERE x IS NOT NULL)": "",
    "SELECT COUNT(*) FROM u WHERE x NOT IN (SELECT x FROM pub)": "",
    "SELECT COUNT(*) FROM u WHERE x IN (SELECT x FROM pub)": "",
    "SELECT COUNT(*) FROM u WHERE NOT EXISTS (SELECT 1 FROM pub WHERE pub.x = u.x)": "",
}


@pytest.mark.parametrize("sql", MEANT)
def test_answers_mean_what_the_sql_says_or_are_refused(sql):
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


def test_columns_without_rules_are_out_of_sight():
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


def test_what_public_rows_people_meet_is_certain():
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


def test_only_pairs_of_keys_that_can_occur_come_from_the_exact_sql():
    tables = ("CREATE TABLE t (u INTEGER, x INTEGER)",)
    policy = {
        "neighbours": "add-remove",
        "tables": {"t": {"unit": "u", "max_rows": 1, "columns": {"x": {"values": [1, 2]}}}},
    }
    connection = database(*tables)
    plan = privsql.connect(connection, policy).explain(
        "SELECT x % 2 AS a, x > 1 AS b, COUNT(*) FROM t GROUP BY 1, 2", epsilon=1
    )
    connection.execute("INSERT INTO t SELECT 7, i FROM range(5) r(i)")
    moved = sum(row[-1] for row in connection.execute(plan.sql).fetchall())
    assert moved <= plan.measurements[0].l1


def test_a_join_with_a_bound_on_matches_inside_a_subquery():
    connection = database("CREATE TABLE a (k INTEGER, v BOOLEAN)", "CREATE TABLE b (k INTEGER UNIQUE)")
    session = privsql.connect(connection, {"tables": {"a": {"matches": {"k": 2}}}})
    inner = session.explain("SELECT v, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY v", epsilon=1)
    outer = session.explain(
        "SELECT v, COUNT(*) FROM (SELECT a.v FROM a JOIN b ON a.k = b.k) q GROUP BY v", epsilon=1
    )
    assert outer.measurements[0].l1 == inner.measurements[0].l1


def test_how_shown_keys_are_kept_tells_nothing_of_hidden_ones():
    sql = "SELECT CASE WHEN hiv THEN NULL ELSE x END AS k, COUNT(*) AS n FROM t GROUP BY 1"
    kinds = set()
    for hiv in ("true", "false"):
        for rows in (1, 500):  # one key hidden alone, and beside one that is shown
            connection = database(
                "CREATE TABLE t (hiv BOOLEAN, x INTEGER)", f"INSERT INTO t VALUES ({hiv}, 5)"
            )
            connection.execute(f"INSERT INTO t SELECT false, 7 FROM range({rows})")
            answer = privsql.connect(connection).query(sql, epsilon=1, delta=1e-9)
            seen = (answer.arrays[0], answer.noisy.keys["k"])
            kinds.add((rows, str(answer.df().dtypes["k"]), *(type(each).__name__ for each in seen)))
    assert len(kinds) == 2


def test_intervals_are_no_keys_and_no_labels():
    connection = database("CREATE TABLE t (x INTEGER, i INTERVAL)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 1]}}}}})
    tagged = " UNION ALL ".join(
        f"SELECT x, INTERVAL {each} AS k FROM t" for each in ("30 DAY", "1 MONTH", "720 HOUR")
    )
    for sql in (f"SELECT k, COUNT(*) FROM ({tagged}) GROUP BY k", "SELECT i, COUNT(*) FROM t GROUP BY i"):
        with pytest.raises(privsql.Refused):
            session.explain(sql, epsilon=1)


def test_within_on_public_tables_and_delta_without_epsilon():
    connection = database(
        "CREATE TABLE pub AS SELECT 1 AS x", "CREATE TABLE t AS SELECT 'a' AS k FROM range(100)"
    )
    session = privsql.connect(connection, {"budget": {"delta": 1e-6}, **PUBLIC})
    assert session.query("SELECT COUNT(*) AS n FROM pub", within=3).fetchall() == [(1,)]
    with pytest.raises(privsql.BudgetError):
        session.query("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-3)


def test_a_range_is_not_searched_for_where_delta_does_not_suffice():
    connection = database("CREATE TABLE t AS SELECT 'a' AS k, 1 AS x FROM range(100)")
    policy = {"budget": {"epsilon": 5, "delta": 1e-9}, "tables": {"t": {"columns": {"x": {"range": "auto"}}}}}
    session = privsql.connect(connection, policy)
    with pytest.raises(privsql.BudgetError):
        session.query("SELECT k, SUM(x) FROM t GROUP BY k", epsilon=1, delta=1e-6)
    assert session.budget.spent.epsilon == 0
