"""A shop, for text cases about people with many rows: tables, a policy and rows that stay within its limits.

The customer is the unit, two hops away from items; visits, badges and profiles have the same unit under other names.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

TABLES = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, state VARCHAR, age INTEGER);
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer_id INTEGER, total DOUBLE, day DATE, paid BOOLEAN);
    CREATE TABLE items (oid INTEGER, line INTEGER, sku VARCHAR, qty INTEGER, price DECIMAL(8, 2), UNIQUE (oid, line));
    CREATE TABLE refunds (refunded INTEGER UNIQUE, amount INTEGER);
    CREATE TABLE visits (who INTEGER, page VARCHAR, minutes INTEGER);
    CREATE TABLE badges (who INTEGER, badge VARCHAR);
    CREATE TABLE profiles (pid INTEGER PRIMARY KEY, score INTEGER);
    CREATE TABLE rooms (clinic VARCHAR, patient INTEGER, ward VARCHAR);
    CREATE TABLE stays (clinic VARCHAR, patient INTEGER, nights INTEGER);
    CREATE TABLE surveys (score INTEGER, state VARCHAR);
    CREATE TABLE tickets (code VARCHAR UNIQUE, paid INTEGER);
    CREATE TABLE seats (code VARCHAR UNIQUE, place VARCHAR);
    CREATE TABLE skus (sku VARCHAR PRIMARY KEY, kind VARCHAR, weight INTEGER);
    CREATE TABLE prices (price INTEGER);
    CREATE TABLE labels (state VARCHAR, label VARCHAR);
    INSERT INTO skus SELECT 's' || i, ['toy', 'food', 'book'][1 + i % 3], i FROM range(12) r(i);
    INSERT INTO prices SELECT 10 * i FROM range(1, 6) r(i);
    INSERT INTO labels VALUES ('CA', 'west'), ('CA', 'coast'), ('NY', 'east'), ('NY', 'coast'), ('TX', 'south'), (NULL, 'none');
"""
# at most 3 orders, 6 items, 3 visits, 2 badges a customer; some refer to nobody, some badges are nobody's
ROWS = """
    INSERT INTO customers SELECT i, ['CA', 'NY', 'TX'][1 + i % 3], 18 + i % 60 FROM range(300) r(i);
    INSERT INTO orders SELECT i, i % 280, i % 100, DATE '2024-01-01' + (i % 60)::INTEGER, i % 4 > 0 FROM range(700) r(i);
    INSERT INTO items SELECT i // 2, i % 2, 's' || (i % 12), 1 + i % 5, (i % 40) / 2 FROM range(1400) r(i);
    INSERT INTO refunds SELECT 7 * i, i % 31 FROM range(90) r(i);
    INSERT INTO visits SELECT i % 320, ['home', 'cart', 'help'][1 + (i % 320) % 3], i % 31 FROM range(900) r(i);
    INSERT INTO badges SELECT CASE WHEN i % 9 > 0 THEN i % 200 END, ['gold', 'blue'][1 + i % 2] FROM range(400) r(i);
    INSERT INTO profiles SELECT 2 * i, i % 11 FROM range(150) r(i);
    INSERT INTO rooms SELECT ['n', 's'][1 + i % 2], i % 50, ['a', 'b'][1 + (i % 50) % 2] FROM range(200) r(i);
    INSERT INTO stays SELECT ['n', 's'][1 + i % 2], i % 40, i % 15 FROM range(120) r(i);
    INSERT INTO surveys SELECT i % 11, ['CA', 'NY', 'TX'][1 + i % 3] FROM range(100) r(i);
    INSERT INTO tickets SELECT 'c' || i, i % 51 FROM range(80) r(i);
    INSERT INTO seats SELECT 'c' || (i + 10), ['hall', 'box'][1 + i % 2] FROM range(90) r(i);
"""
_STATE = {"values": ["CA", "NY", "TX"]}
POLICY: dict[str, Any] = {
    "tables": {
        "customers": {"unit": "id", "columns": {"state": _STATE, "age": {"range": [18, 90]}}},
        "orders": {
            "unit": "customer_id -> customers.id",
            "max_groups": 4,
            "max_rows": 5,
            "columns": {
                "total": {"range": [0, 100]},
                "day": {"range": [dt.date(2024, 1, 1), dt.date(2024, 2, 29)]},
            },
        },
        "items": {
            "unit": "oid -> orders.oid",
            "max_rows": 20,
            "columns": {"qty": {"range": [0, 5]}, "price": {"range": [0, 20]}},
        },
        "refunds": {"unit": "refunded -> orders.oid", "columns": {"amount": {"range": [0, 30]}}},
        "visits": {
            "unit": "who",
            "columns": {"page": {"values": ["home", "cart", "help"]}, "minutes": {"range": [0, 30]}},
        },
        "badges": {
            "unit": "who",
            "max_groups": 2,
            "max_rows": 2,
            "columns": {"badge": {"values": ["gold", "blue"]}},
        },
        "profiles": {"unit": "pid", "columns": {"score": {"range": [0, 10]}}},
        "rooms": {"unit": ["clinic", "patient"], "columns": {"ward": {"values": ["a", "b"]}}},
        "stays": {"unit": ["clinic", "patient"], "max_rows": 6, "columns": {"nights": {"range": [0, 14]}}},
        "surveys": {"columns": {"score": {"range": [0, 10]}, "state": _STATE}},
        "tickets": {"columns": {"paid": {"range": [0, 50]}}},
        "seats": {"columns": {"place": {"values": ["hall", "box"]}}},
        "skus": {"public": True},
        "prices": {"public": True},
        "labels": {"public": True},
    }
}
