"""Names that are ours: no column of an analyst or of a table can stand for one that planning adds."""

from __future__ import annotations

import re

import duckdb
import pytest

import privsql
from privsql.algebra.relations import walk

TABLES = """
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer INTEGER, kind INTEGER);
    CREATE TABLE items (oid INTEGER, qty INTEGER);
    CREATE TABLE colours AS SELECT i AS hue FROM range(4) r(i);
"""
POLICY = {"neighbours": "add-remove", "tables": {
    "orders": {"unit": "customer", "max_groups": 1, "max_rows": 2, "columns": {"kind": {"range": [0, 9]}}},
    "items": {"unit": "oid -> orders.oid", "max_groups": 1, "max_rows": 2, "columns": {"qty": {"range": [0, 5]}}},
    "colours": {"public": True},
}}  # fmt: skip
EVERYWHERE = [
    "SELECT COUNT(*) FROM (SELECT kind AS {name} FROM orders) WHERE {name} > 1",
    "SELECT {name}, COUNT(*) FROM (SELECT kind AS {name} FROM orders) GROUP BY {name}",
    "SELECT kind AS {name}, SUM(kind) FROM orders GROUP BY {name}",
    "SELECT kind AS {name}, COUNT(DISTINCT customer) AS other FROM orders GROUP BY 1 ORDER BY {name}",
    "SELECT kind AS {name} FROM orders GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1",
    "WITH c({name}) AS (SELECT kind FROM orders) SELECT SUM({name}) FROM c",
    "SELECT SUM({name}) FROM (SELECT kind FROM orders) AS t({name})",
    "SELECT COUNT(*) FROM orders JOIN (VALUES (1), (2)) AS v({name}) ON kind = {name}",
    "SELECT {name}, COUNT(*) FROM orders JOIN (SELECT hue AS {name} FROM colours) ON kind = {name} GROUP BY 1",
    "SELECT SUM(v) FROM (UNPIVOT (SELECT kind, kind + 1 AS more FROM orders) ON kind, more INTO NAME {name} VALUE v)",
    "SELECT AVG({name}) FROM (UNPIVOT (SELECT kind, kind + 1 AS more FROM orders) ON kind, more INTO NAME k VALUE {name})",
    "SELECT SUM(x) FROM (SELECT kind AS x, kind AS {name} FROM orders UNION ALL SELECT kind, 1 FROM orders)",
    "SELECT AVG({name}) FROM (SELECT customer, SUM(kind) AS {name} FROM orders GROUP BY customer)",
    "SELECT AVG(c) FROM (SELECT customer AS {name}, COUNT(*) AS c FROM orders GROUP BY customer)",
    "SELECT SUM(qty) FROM items JOIN (SELECT oid AS {name}, kind FROM orders) ON items.oid = {name}",
    "SELECT SUM(qty) FROM items JOIN (SELECT oid, kind AS {name} FROM orders) USING (oid) WHERE {name} > 2",
    "SELECT MEDIAN({name}) FROM (SELECT kind AS {name} FROM orders)",
    "SELECT COUNT(*) + 1 AS {name} FROM orders HAVING COUNT(*) > 0",
    "SELECT {name} + 1 FROM (SELECT COUNT(*) AS {name} FROM orders)",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "shop.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(TABLES)
        made.execute("INSERT INTO orders SELECT i, i, i % 10 FROM range(1, 101) r(i)")
        made.execute("INSERT INTO items SELECT i, 1 FROM range(1, 101) r(i)")
    with privsql.connect(path, POLICY) as session:
        session.prepare("items")
    return path


@pytest.mark.parametrize("name", ["privsql_other_unit", "PRIVSQL_Value_1", "privsql_rank"])
def test_reserved_names_are_safe_in_every_clause(file, name):
    """The tree has no such name, and the analyst still sees the one that was written."""
    with privsql.connect(file, POLICY) as session:
        for text in EVERYWHERE:
            sql = text.format(name=name)
            plan = session.explain(sql, epsilon=1)
            names = [field.name for each in walk(plan.query.relation) for field in each.fields]
            assert not [each for each in names if each.lower().startswith("privsql_")], sql
            assert f'"{name}"' not in plan.sql, sql  # our own privsql_value_1 is in lower case
            session.query(sql, epsilon=1)
        shown = session.query(f"SELECT kind AS {name}, COUNT(*) AS n FROM orders GROUP BY 1", epsilon=1)
        assert shown.columns == [name, "n"]


def test_reserved_names_cause_no_data_dependent_error(tmp_path):
    """The unit of the other side of a join was read from the analyst's column, and failed for one person."""
    sql = """SELECT COUNT(*) AS n FROM items JOIN (SELECT oid, CASE WHEN customer = 17 AND kind = 3 THEN 'x' ELSE '1' END
        AS privsql_other_unit FROM orders) o ON items.oid = o.oid"""
    for kind in (0, 3):
        path = tmp_path / f"{kind}.duckdb"
        with duckdb.connect(str(path)) as made:
            made.execute(TABLES)
            made.execute(
                f"INSERT INTO orders SELECT i, i, CASE WHEN i = 17 THEN {kind} ELSE 0 END FROM range(1, 101) r(i)"
            )
            made.execute("INSERT INTO items SELECT i, 1 FROM range(1, 101) r(i)")
        with privsql.connect(path, POLICY) as session:
            session.prepare("items")
            assert "privsql_other_unit" in session.explain(sql, epsilon=1).sql
            assert abs(session.query(sql, epsilon=100).fetchall()[0][0] - 100) < 5


@pytest.mark.parametrize(
    "order", ["{other} JOIN items ON items.oid = o.o", "items JOIN {other} ON items.oid = o.o"]
)
def test_sums_over_a_copy_use_its_stored_values(file, order):
    """An alias with the name of a stored value, which plan.sql shows, was added up in its place."""
    with privsql.connect(file, POLICY) as session:
        stored = session.explain("SELECT SUM(qty) FROM items JOIN orders USING (oid)", epsilon=1)
        name = re.search(r"privsql_value_\w{12}", stored.sql)[0]
        other = f"(SELECT oid AS o, 1000000 * kind AS {name} FROM orders) o"
        plan = session.explain(f"SELECT SUM(qty) AS s FROM {order.format(other=other)}", epsilon=1)
        assert name in plan.sql
        assert session._pipeline.engine.read_public(plan.sql) == session._pipeline.engine.read_public(
            stored.sql
        )


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("privsql_units", "VARCHAR"),
        ("Privsql_Last", "VARCHAR"),
        ("privsql_unit", "VARCHAR"),
        ("privsql_x", "VARCHAR"),
        ("privsql_value_1", "UHUGEINT"),  # of an unsupported type
    ],
)
def test_a_table_with_a_reserved_column_is_refused(tmp_path, name, type_):
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(f"CREATE TABLE t (who INTEGER, {name} {type_})")
    policy = {"tables": {"t": {"unit": "who", "columns": {name: {"values": ["a", "b"]}}}}}
    with privsql.connect(path, policy) as session:
        for asked in (f"{name}, COUNT(DISTINCT who) FROM t GROUP BY 1", "COUNT(DISTINCT who) FROM t"):
            with pytest.raises(
                privsql.SourceError, match=f"a column {name}: privsql needs names that"
            ) as caught:
                session.query(f"SELECT {asked}", epsilon=1)
            assert caught.value.code == "source-columns"
        assert session.budget.spent.epsilon == 0


HELPERS = [
    "SELECT SUM(x) AS s FROM (SELECT x FROM (SELECT x, CASE WHEN nan = 'Alice' THEN 1e12 ELSE 0 END AS privsql_value_1 FROM t))",
    "SELECT AVG(x) AS s FROM (SELECT x FROM (SELECT x, 1e12 AS privsql_value_1, 1e12 AS PRIVSQL_VALUE_2 FROM t) WHERE x > 0)",
    "SELECT SUM(x), SUM(a) FROM (SELECT x, a FROM (SELECT x, a, a + 1000000 AS privsql_value_2 FROM t))",
    "SELECT SUM(privsql_value_1) FROM (SELECT a AS privsql_value_1, 1000000 * a AS privsql_value_1_ FROM t)",
    "SELECT SUM(x) AS s FROM (SELECT x FROM (SELECT x, privsql_value_1 FROM (SELECT x, 1e12 AS privsql_value_1 FROM t)))",
]


@pytest.mark.parametrize("sql", HELPERS)
def test_an_analysts_column_is_never_read_as_a_helper_column(sql):
    """The clamped value has a column of its own. One below with its name, no longer selected, must not be read for it."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (a INTEGER, b BOOLEAN, x DOUBLE, tm TIME, nan VARCHAR)")
        columns = {"a": {"range": [0, 10]}, "x": {"range": [0, 1]}}
        plan = privsql.connect(mine, {"tables": {"t": {"columns": columns}}}).explain(sql, epsilon=1)
        mine.execute("INSERT INTO t VALUES (3, true, 0.25, '12:00', 'Bob')")
        before = mine.execute(plan.sql).fetchall()[0]
        mine.execute("UPDATE t SET nan = 'Alice', a = 9, x = 1.0")
        after = mine.execute(plan.sql).fetchall()[0]
    names = [column for measurement in plan.measurements for column in measurement.columns]
    moved = dict(zip(names, (abs(one - two) for one, two in zip(before, after, strict=True)), strict=True))
    for measurement in plan.measurements:
        assert sum(moved[column] for column in measurement.columns) <= measurement.l1


def test_keys_can_have_the_names_of_measured_columns(two_rows):
    sql = "SELECT b AS count, a > 6 AS count, COUNT(*) FILTER (WHERE a > 5) AS x, COUNT(*) AS z FROM t GROUP BY 1, 2"
    rows = two_rows.query(sql, epsilon=10_000).fetchall()
    assert (True, False, 0, 1) in rows
    assert (False, True, 1, 1) in rows
    for name in ("count_1", "sum_1", "above_1", "below_2", "score_1", "order_1", "moment_1", "Moment_2"):
        for aggregate in ("COUNT(*)", "SUM(a)", "AVG(a)", "VAR_POP(a)", "MEDIAN(a)"):
            sql = f"SELECT b AS {name}, {aggregate} FROM t GROUP BY 1"
            assert len(two_rows.query(sql, epsilon=1).fetchall()) >= 2
