"""The tables that audits are tried on: nothing in them, only their schema and what was declared of them."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from typing import Any

import duckdb

SCHEMA = """
    CREATE TABLE t (k BOOLEAN, x INTEGER, y DOUBLE, s VARCHAR, r INTEGER NOT NULL, z INTEGER, w INTEGER, word VARCHAR, tags VARCHAR[],
                    apple BOOLEAN, orange BOOLEAN, banana BOOLEAN);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, code INTEGER UNIQUE, k VARCHAR, n INTEGER);
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, cid INTEGER, k VARCHAR, n INTEGER);
    CREATE TABLE items (oid INTEGER, k VARCHAR, n INTEGER);
    CREATE TABLE visits (uid INTEGER, k VARCHAR, n INTEGER, x DOUBLE, word VARCHAR);
    CREATE TABLE rooms (clinic INTEGER, patient INTEGER, n INTEGER);
    CREATE TABLE people (code INTEGER UNIQUE, k VARCHAR);
    CREATE TABLE calls (k VARCHAR, n INTEGER);
    CREATE TABLE shifts (k VARCHAR, n INTEGER);
    CREATE TABLE pub (n INTEGER, m INTEGER);
    INSERT INTO pub VALUES (1, 1), (1, 2), (1, 3), (2, 9);
"""
_KEYS = {"k": {"values": ["a", "b", "c", "d"]}, "n": {"range": [0, 9]}}
TABLES: dict[str, Any] = {
    "t": {"columns": {
        "x": {"range": [2, 5]}, "y": {"range": [-1.0, 3.0]}, "s": {"values": ["a", "b"]}, "r": {"range": [2, 5]}, "z": {"range": [-5, -2]},
        "w": {"range": [0, 20]}, "tags": {"values": ["p", "q", "r"]},
    }},
    "customers": {"unit": "id", "columns": _KEYS},
    "orders": {"unit": "cid -> customers.id", "max_groups": 2, "max_rows": 2, "columns": _KEYS},
    "items": {"unit": "oid -> orders.oid", "max_groups": 2, "max_rows": 3, "columns": _KEYS},
    "visits": {"unit": "uid", "max_groups": 2, "max_rows": 3, "columns": {**_KEYS, "x": {"range": [0, 10]}}},
    "rooms": {"unit": ["clinic", "patient"], "max_groups": 1, "max_rows": 2, "columns": {"n": _KEYS["n"]}},
    "people": {"columns": {"k": _KEYS["k"]}},
    "calls": {"matches": {"k": 3}, "columns": _KEYS},
    "shifts": {"matches": {"k": 2}, "columns": _KEYS},
    "pub": {"public": True},
}  # fmt: skip


def session(neighbours: str = "replace-one") -> Any:
    import privsql  # not above: planted mistakes come in with a new import

    connection = duckdb.connect(":memory:", config={"threads": "1"})
    connection.execute(SCHEMA)
    return privsql.connect(connection, policy={"neighbours": neighbours, "tables": TABLES})
