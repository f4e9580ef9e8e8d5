"""People with many rows: whose a row is, what is kept of each, and what a call may change of it."""

from __future__ import annotations

import duckdb
import pytest

import privsql


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
        "orders": {"unit": "customer_id -> customers.id", "max_rows": 4, "columns": {"total": {"range": [0, 8]}}},
        "items": {"unit": "oid -> orders.oid", "max_rows": 6, "columns": {"qty": {"range": [0, 2]}}},
    }
}


@pytest.mark.parametrize("limits", [{"max_rows": 5}, {"max_groups": 4}, {"max_rows": 0}, {"max_groups": 1.5}, {"max_rows": True}])
def test_limits_can_be_lowered_only(shop, limits):
    session = privsql.connect(shop, POLICY)
    with pytest.raises(privsql.ArgumentError) as caught:
        session.explain("SELECT COUNT(*) FROM orders", epsilon=1, **limits)
    assert caught.value.code == "argument-limits"


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


def test_keys_that_a_unit_has_one_of_cost_no_more_than_one(shop):
    session = privsql.connect(shop, POLICY)
    sql = "SELECT state, COUNT(*) FROM orders JOIN customers ON customer_id = id GROUP BY state"
    (measurement,) = session.explain(sql, epsilon=1).measurements
    assert (measurement.l1, measurement.linf) == (8, 4)


def test_what_is_kept_of_a_unit_does_not_depend_on_others_threads_or_order(shop):
    """The same rows of one unit among others, in another order, on other threads: its part stays the same."""
    session = privsql.connect(
        shop, {"tables": {"orders": {"unit": "customer_id", "max_groups": 2, "columns": {"total": {"range": [0, 8]}}}}}
    )
    sql = session.explain("SELECT total, COUNT(*), SUM(total) FROM orders GROUP BY total", epsilon=1).sql
    alone = []
    for setup in (
        "ORDER BY oid",
        "ORDER BY total DESC; SET threads = 1",
    ):
        shop.execute(f"CREATE OR REPLACE TEMP TABLE orders AS SELECT * FROM main.orders WHERE customer_id = 4 {setup}")
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
    shop.execute("CREATE TABLE rooms AS SELECT i % 2 AS clinic, i % 5 AS patient, i % 3 AS ward FROM range(60) r(i)")
    session = privsql.connect(shop, {"tables": {"rooms": {"unit": ["clinic", "patient"], "max_rows": 2}}})
    assert shop.execute(session.explain("SELECT COUNT(*) FROM rooms", epsilon=1).sql).fetchone() == (20,)
