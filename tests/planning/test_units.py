"""People with many rows: which unit a row has, which rows of a unit are kept, and what a call may change of
it.
"""

from __future__ import annotations

import random

import duckdb
import pytest

import privsql
from tests.support.databases import ask


@pytest.fixture
def shop():
    connection = duckdb.connect()
    connection.execute("""
        CREATE TABLE customers (id INTEGER PRIMARY KEY, state VARCHAR);
        CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer_id INTEGER, total INTEGER);
        CREATE TABLE items (oid INTEGER, sku VARCHAR, qty INTEGER);
        INSERT INTO customers SELECT i, ['CA', 'NY'][1 + i % 2] FROM range(10) r(i);
        INSERT INTO orders SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i * i % 10 END, i % 9 FROM range(100) r(i);
        INSERT INTO items SELECT i % 100, 's' || i % 5, i % 3 FROM range(300) r(i);
    """)
    return connection


POLICY = {
    "tables": {
        "customers": {"unit": "id", "columns": {"state": {"values": ["CA", "NY"]}}},
        "orders": {
            "unit": "customer_id -> customers.id",
            "max_rows": 4,
            "columns": {"total": {"range": [0, 8]}},
        },
        "items": {"unit": "oid -> orders.oid", "max_rows": 6, "columns": {"qty": {"range": [0, 2]}}},
    }
}


@pytest.mark.parametrize(
    "limits", [{"max_rows": 5}, {"max_groups": 4}, {"max_rows": 0}, {"max_groups": 1.5}, {"max_rows": True}]
)
def test_declared_limits_can_only_be_lowered(shop, limits):
    orders = {**POLICY["tables"]["orders"], "max_groups": 3}
    session = privsql.connect(shop, {"tables": {**POLICY["tables"], "orders": orders}})
    with pytest.raises(privsql.ArgumentError) as caught:
        session.explain("SELECT COUNT(*) FROM orders", epsilon=1, **limits)
    assert caught.value.code == "argument-limits"


def test_default_limits_can_be_raised(shop):
    """The noise grows with them, so that this is no less private: defaults are nobody's wish."""
    tables = {"customers": {"unit": "id"}, "orders": {"unit": "customer_id -> customers.id"}}
    session = privsql.connect(shop, {"tables": tables})
    plan = session.explain("SELECT COUNT(*) FROM orders", epsilon=1, max_rows=500)
    assert plan.measurements[0].l1 == 500
    by_total = "SELECT total, COUNT(*) FROM orders GROUP BY total"
    plan = session.explain(by_total, epsilon=1, delta=1e-6, max_rows=2, max_groups=7)
    assert plan.measurements[0].l1 == 2 * 2 * 7


def test_a_limit_that_one_of_two_tables_declares_is_not_raised(shop):
    tables = {"customers": {"unit": "id"}, "orders": {"unit": "customer_id -> customers.id", "max_rows": 4}}
    session = privsql.connect(shop, {"tables": {**tables, "items": {"unit": "oid -> orders.oid"}}})
    sql = "SELECT COUNT(*) FROM orders JOIN items ON orders.oid = items.oid"
    assert session.explain(sql, epsilon=1).measurements[0].l1 == 10  # the default of items
    with pytest.raises(privsql.ArgumentError, match="the policy allows 10"):
        session.explain(sql, epsilon=1, max_rows=11)


def test_a_lower_limit_means_less_noise(shop):
    session = privsql.connect(shop, POLICY)
    assert session.explain("SELECT COUNT(*) FROM orders", epsilon=1).measurements[0].l1 == 4
    assert session.explain("SELECT COUNT(*) FROM orders", epsilon=1, max_rows=2).measurements[0].l1 == 2


def test_counts_are_cut_unit_by_unit_and_rows_without_a_unit_are_left_out(shop):
    session = privsql.connect(shop, POLICY)
    (answer,) = shop.execute(session.explain("SELECT COUNT(*) FROM orders", epsilon=1).sql).fetchone()
    expected = shop.execute(
        "SELECT sum(least(n, 4)) FROM (SELECT count(*) n FROM orders WHERE customer_id IS NOT NULL GROUP BY customer_id)"
    ).fetchone()[0]
    assert answer == expected


def test_a_unit_two_hops_away(shop):
    session = privsql.connect(shop, POLICY)
    (answer,) = shop.execute(session.explain("SELECT SUM(qty) FROM items", epsilon=1).sql).fetchone()
    expected = shop.execute(
        "SELECT sum(least(s, 12)) FROM (SELECT sum(qty) s FROM items JOIN orders USING (oid) "
        "WHERE customer_id IS NOT NULL GROUP BY customer_id)"
    ).fetchone()[0]
    assert answer == expected


def test_fixed_keys_count_as_one_key_per_unit(shop):
    session = privsql.connect(shop, POLICY)
    sql = "SELECT state, COUNT(*) FROM orders JOIN customers ON customer_id = id GROUP BY state"
    (measurement,) = session.explain(sql, epsilon=1).measurements
    assert (measurement.l1, measurement.linf) == (8, 4)


def test_kept_rows_of_a_unit_are_independent_of_others_threads_and_order(shop):
    """The same rows of one unit among others, in another order, on other threads: its part stays the same."""
    session = privsql.connect(
        shop,
        {
            "tables": {
                "orders": {"unit": "customer_id", "max_groups": 2, "columns": {"total": {"range": [0, 8]}}}
            }
        },
    )
    sql = session.explain("SELECT total, COUNT(*), SUM(total) FROM orders GROUP BY total", epsilon=1).sql
    alone = []
    for setup in (
        "ORDER BY oid",
        "ORDER BY total DESC; SET threads = 1",
    ):
        shop.execute(
            f"CREATE OR REPLACE TEMP TABLE orders AS SELECT * FROM main.orders WHERE customer_id = 4 {setup}"
        )
        alone.append(sorted(shop.execute(sql).fetchall(), key=str))
        shop.execute("DROP TABLE temp.orders; RESET threads")
    assert alone[0] == alone[1]
    everybody = shop.execute(sql).fetchall()
    shop.execute("CREATE OR REPLACE TEMP TABLE orders AS SELECT * FROM main.orders WHERE customer_id <> 4")
    others = {row[0]: row[1:] for row in shop.execute(sql).fetchall()}
    difference = sorted(
        [
            (key, *(a - b for a, b in zip(row, others.get(key, (0, 0)), strict=True)))
            for key, *row in everybody
            if tuple(row) != tuple(others.get(key, (0, 0)))
        ],
        key=str,
    )
    assert difference == alone[0]


def test_units_of_several_columns(shop):
    shop.execute(
        "CREATE TABLE rooms AS SELECT i % 2 AS clinic, i % 5 AS patient, i % 3 AS ward FROM range(60) r(i)"
    )
    session = privsql.connect(shop, {"tables": {"rooms": {"unit": ["clinic", "patient"], "max_rows": 2}}})
    assert shop.execute(session.explain("SELECT COUNT(*) FROM rooms", epsilon=1).sql).fetchone() == (20,)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["LEFT JOIN", "JOIN", "RIGHT JOIN"])
def test_a_declared_bound_on_matches_is_enforced(relation, kind):
    """visits JOIN doctors: people on both sides. One row less, more or other in each: no bound is passed, and it is attained."""
    tables = """CREATE OR REPLACE TABLE visits (doctor INTEGER, x INTEGER);
        CREATE OR REPLACE TABLE doctors (id INTEGER UNIQUE, y INTEGER)"""
    connection = duckdb.connect()
    connection.execute(tables)
    policy = {
        "neighbours": relation,
        "tables": {
            "visits": {"matches": {"doctor": 3}, "columns": {"x": {"range": [0, 4]}}},
            "doctors": {"columns": {"y": {"range": [0, 4]}}},
        },
    }
    session = privsql.connect(connection, policy)
    sql = f"SELECT x, y, COUNT(*) AS n FROM visits {kind} doctors ON doctor = id GROUP BY x, y"
    plan = session.explain(sql, epsilon=1)
    (measurement,) = plan.measurements
    rng, most = random.Random(5), 0

    def cells(visits, doctors):
        connection.execute(tables)
        for name, rows in (("visits", visits), ("doctors", doctors)):
            if rows:
                connection.execute(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
        return {row[:2]: row[2] for row in connection.execute(plan.sql).fetchall()}

    for _ in range(60):
        visits = [(rng.randrange(3), rng.randrange(5)) for _ in range(rng.choice([2, 8, 20]))]
        doctors = [(each, rng.randrange(5)) for each in range(3)]
        other, others = visits[1:], doctors[1:]
        if relation == "replace-one":
            other, others = [(rng.randrange(3), rng.randrange(5)), *other], [(0, rng.randrange(5)), *others]
        one, two = cells(visits, doctors), cells(other, others)
        changes = [abs(one.get(key, 0) - two.get(key, 0)) for key in {*one, *two}]
        assert sum(changes) <= measurement.l1
        assert max(changes, default=0) <= measurement.linf
        most = max(most, sum(changes))
    assert most > measurement.l1 / 4
    assert not measurement.sensitivity.monotone


def test_joins_with_others_need_a_bound():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (doctor INTEGER); CREATE TABLE doctors (id INTEGER UNIQUE)")
    with pytest.raises(privsql.Refused) as caught:
        privsql.connect(connection).explain(
            "SELECT COUNT(*) FROM visits JOIN doctors ON doctor = id", epsilon=1
        )
    assert "matches" in caught.value.suggestion
    bounded = privsql.connect(connection, {"tables": {"visits": {"matches": {"doctor": 5}}}})
    plan = bounded.explain("SELECT COUNT(*) FROM visits JOIN doctors ON doctor = id", epsilon=1)
    assert plan.measurements[0].l1 == 2 + 5  # a visit may take another's place; a doctor has five


def test_pandas_units(shop):
    frame = shop.execute("SELECT customer_id, total FROM orders").df()
    sql = "SELECT SUM(total) AS s FROM df"
    plan = frame.dp.explain(sql, epsilon=1, unit="customer_id", ranges={"total": (0, 8)}, max_rows=20)
    assert plan.measurements[0].l1 == 160
    frame.dp.protect(unit="customer_id", ranges={"total": (0, 8)}, max_rows=5)
    assert frame.dp.explain(sql, epsilon=1).measurements[0].l1 == 40
    assert frame.dp.explain(sql, epsilon=1, max_rows=2).measurements[0].l1 == 16
    with pytest.raises(privsql.ArgumentError):
        frame.dp.explain(sql, epsilon=1, max_rows=6)


def test_a_reference_between_decimals_of_different_scales_is_refused():
    """Comparing them fails on a number of 38 digits: one person's row would cause an error after the charge."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE a (u DECIMAL(38, 0))")
        mine.execute("CREATE TABLE b (u DECIMAL(38, 10) UNIQUE, v DECIMAL(20, 0) UNIQUE, y INTEGER)")
        for column, fits in (("u", False), ("v", True)):
            tables = {"a": {"unit": f"u -> b.{column}", "max_rows": 9}, "b": {"unit": "y"}}
            session = privsql.connect(mine, {"tables": tables})
            if fits:
                assert session.query("SELECT COUNT(*) FROM a", epsilon=1).fetchall()
                continue
            with pytest.raises(privsql.PolicyError, match="by columns of different types"):
                session.query("SELECT COUNT(*) FROM a", epsilon=1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("one", "two"), [("DECIMAL(38, 0)", "DECIMAL(38, 20)"), ("DECIMAL(30, 0)", "DECIMAL(18, 10)")]
)
def test_units_of_different_decimal_scales_are_not_merged(one: str, two: str, neighbours: str) -> None:
    """DuckDB rounds both to a common type: the units 1.2 and 1.4 became one person."""
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE a (id {one}, k VARCHAR NOT NULL); CREATE TABLE b (id {two}, k VARCHAR NOT NULL)"
    )
    table = {"unit": "id", "max_groups": 1, "columns": {"k": {"values": ["A", "B"]}}}
    session = privsql.connect(
        connection, policy={"neighbours": neighbours, "tables": {"a": table, "b": table}}
    )
    with pytest.raises(privsql.PrivsqlError) as error:
        session.explain(
            "SELECT k, COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) GROUP BY k", epsilon=1.0
        )
    assert error.value.code == "refused-owners"
    session.explain(
        "SELECT k, COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM a) GROUP BY k", epsilon=1.0
    )


@pytest.mark.parametrize("unit", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_timestamps_that_may_become_null_cannot_be_the_unit(unit: str) -> None:
    """Two people beyond the range of microseconds were one: under add-remove, one of them moved the count by twice the bound."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits (who {unit}, k INTEGER)")
    with pytest.raises(privsql.PrivsqlError) as caught:
        ask(connection, "SELECT COUNT(*) AS n FROM visits", {"tables": {"visits": {"unit": "who"}}})
    assert caught.value.code == "policy-unit"
