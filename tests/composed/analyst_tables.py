"""Three made-up databases in one, as analysts have them: a shop, a clinic and flights, and what their owners declare.

The limits are as high as the data, so that nothing is dropped and answers differ from plain DuckDB's by noise alone.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd

COUNTRIES = ["DE", "FR", "IT", "NL", "PL"]
SEGMENTS = ["consumer", "business", "public"]
CHANNELS = ["web", "app", "store"]
STATUSES = ["placed", "paid", "shipped", "returned"]
DEPARTMENTS = ["cardiology", "dermatology", "neurology", "oncology", "pediatrics"]
CARRIERS = ["AA", "B6", "DL", "EV", "UA", "WN"]
ORIGINS = ["EWR", "JFK", "LGA"]
DESTINATIONS = ["ATL", "BOS", "LAX", "MIA", "ORD", "SFO"]
_ORDERS, _ITEMS, _APPOINTMENTS = 8, 24, 12  # the most of one customer, and of one patient


def _values(*listed: str) -> dict[str, object]:
    return {"values": list(listed), "nullable": False}


def _range(low: object, high: object) -> dict[str, object]:
    return {"range": [low, high], "nullable": False}


POLICY: dict[str, dict[str, object]] = {
    "customers": {
        "unit": "customer_id",
        "unique": ["customer_id"],
        "columns": {
            "country": _values(*COUNTRIES),
            "segment": _values(*SEGMENTS),
            "signup": _range("2022-01-01", "2023-12-31"),
            "birth_year": _range(1940, 2005),
            "newsletter": {"nullable": False},
        },
    },
    "orders": {
        "unit": "customer_id -> customers.customer_id",
        "unique": ["order_id"],
        "max_rows": _ORDERS,
        "max_groups": _ORDERS,
        "columns": {
            "status": _values(*STATUSES),
            "channel": _values(*CHANNELS),
            "placed": _range("2022-01-01", "2024-12-31"),
            "amount": _range(0, 500),
        },
    },
    "items": {
        "unit": "order_id -> orders.order_id",
        "max_rows": _ITEMS,
        "max_groups": _ITEMS,
        "columns": {"quantity": _range(1, 5), "price": _range(0, 100), "product_id": _range(1, 12)},
    },
    "products": {"public": True},
    "targets": {"public": True},
    "patients": {
        "unit": "patient_id",
        "unique": ["patient_id"],
        "columns": {
            "sex": _values("f", "m"),
            "insurance": _values("private", "public", "none"),
            "age": _range(0, 99),
            "bmi": _range(15, 45),
            "smoker": {"nullable": False},
        },
    },
    "appointments": {
        "unit": "patient_id -> patients.patient_id",
        "max_rows": _APPOINTMENTS,
        "max_groups": _APPOINTMENTS,
        "columns": {
            "department": _values(*DEPARTMENTS),
            "day": _range("2023-01-01", "2024-12-31"),
            "minutes": _range(5, 60),
            "cost": _range(0, 300),
            "no_show": {"nullable": False},
        },
    },
    "departments": {"public": True},
    "flights": {
        "columns": {
            "month": _range(1, 12),
            "hour": _range(5, 23),
            "carrier": _values(*CARRIERS),
            "origin": _values(*ORIGINS),
            "dest": _values(*DESTINATIONS),
            "dep_delay": {"range": [-20, 180]},
            "arr_delay": {"range": [-40, 200]},
            "distance": _range(100, 3000),
            "flown": _range("2013-01-01", "2013-12-31"),
        },
    },
    "airlines": {"public": True},
    "airports": {"public": True},
}


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables. The same rows each time."""
    random = np.random.default_rng(19)
    for name, frame in {**_shop(random), **_clinic(random), "flights": _flights(random)}.items():
        connection.register(f"{name}_frame", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_frame")
        connection.unregister(f"{name}_frame")
    for table, column in (
        ("customers", "signup"),
        ("orders", "placed"),
        ("appointments", "day"),
        ("flights", "flown"),
    ):
        connection.execute(f"ALTER TABLE {table} ALTER {column} TYPE DATE")
    connection.execute(
        "CREATE TABLE products (product_id INTEGER PRIMARY KEY, category VARCHAR, name VARCHAR, list_price INTEGER)"
    )
    kinds = ["books", "garden", "toys"]
    connection.executemany(
        "INSERT INTO products VALUES (?, ?, ?, ?)",
        [(number, kinds[number % 3], f"product {number}", 10 * number) for number in range(1, 13)],
    )
    connection.execute("CREATE TABLE targets (country VARCHAR PRIMARY KEY, target INTEGER, region VARCHAR)")
    goals, regions = (
        [500_000, 700_000, 300_000, 200_000, 900_000],
        ["north", "south", "south", "north", "east"],
    )
    connection.executemany(
        "INSERT INTO targets VALUES (?, ?, ?)", list(zip(COUNTRIES, goals, regions, strict=True))
    )
    connection.execute(
        "CREATE TABLE departments (department VARCHAR PRIMARY KEY, floor INTEGER, budget INTEGER)"
    )
    connection.executemany(
        "INSERT INTO departments VALUES (?, ?, ?)",
        [(name, place % 3, 100_000 * (place + 1)) for place, name in enumerate(DEPARTMENTS)],
    )
    connection.execute("CREATE TABLE airlines (carrier VARCHAR PRIMARY KEY, name VARCHAR)")
    connection.executemany(
        "INSERT INTO airlines VALUES (?, ?)", [(each, f"{each} Airlines") for each in CARRIERS]
    )
    connection.execute("CREATE TABLE airports (faa VARCHAR PRIMARY KEY, city VARCHAR, coast VARCHAR)")
    cities = ["Atlanta", "Boston", "Los Angeles", "Miami", "Chicago", "San Francisco"]
    coasts = ["east", "east", "west", "east", "none", "west"]
    connection.executemany(
        "INSERT INTO airports VALUES (?, ?, ?)", list(zip(DESTINATIONS, cities, coasts, strict=True))
    )


def _shop(random: np.random.Generator) -> dict[str, pd.DataFrame]:
    size = 3_000
    signup = random.integers(0, 730, size)
    customers = pd.DataFrame(
        {
            "customer_id": np.arange(size),
            "country": random.choice(COUNTRIES, size, p=[0.35, 0.25, 0.2, 0.12, 0.08]),
            "segment": random.choice(SEGMENTS, size, p=[0.6, 0.3, 0.1]),
            "signup": pd.Timestamp("2022-01-01") + pd.to_timedelta(signup, unit="D"),
            "birth_year": random.integers(1940, 2006, size),
            "newsletter": random.random(size) < 0.4,
        }
    )
    owner = np.repeat(np.arange(size), random.integers(0, _ORDERS + 1, size))
    count = len(owner)
    placed = np.minimum(signup[owner] + random.integers(0, 500, count), 1095)
    orders = pd.DataFrame(
        {
            "order_id": np.arange(count),
            "customer_id": owner,
            "placed": pd.Timestamp("2022-01-01") + pd.to_timedelta(placed, unit="D"),
            "status": random.choice(STATUSES, count, p=[0.1, 0.2, 0.6, 0.1]),
            "channel": random.choice(CHANNELS, count, p=[0.5, 0.3, 0.2]),
            "amount": random.integers(5, 500, count),
        }
    )
    of_order = np.repeat(np.arange(count), random.integers(1, 4, count))
    items = pd.DataFrame(
        {
            "order_id": of_order,
            "product_id": random.integers(1, 13, len(of_order)),
            "quantity": random.integers(1, 6, len(of_order)),
            "price": random.integers(1, 100, len(of_order)),
        }
    )
    return {"customers": customers, "orders": orders, "items": items}


def _clinic(random: np.random.Generator) -> dict[str, pd.DataFrame]:
    size = 2_000
    patients = pd.DataFrame(
        {
            "patient_id": np.arange(size),
            "sex": random.choice(["f", "m"], size),
            "insurance": random.choice(["private", "public", "none"], size, p=[0.3, 0.6, 0.1]),
            "age": random.integers(0, 100, size),
            "bmi": random.integers(15, 46, size),
            "smoker": random.random(size) < 0.25,
        }
    )
    owner = np.repeat(np.arange(size), random.integers(0, _APPOINTMENTS + 1, size))
    count = len(owner)
    appointments = pd.DataFrame(
        {
            "patient_id": owner,
            "department": random.choice(DEPARTMENTS, count, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 731, count), unit="D"),
            "minutes": random.integers(5, 61, count),
            "cost": random.integers(20, 300, count),
            "no_show": random.random(count) < 0.12,
        }
    )
    return {"patients": patients, "appointments": appointments}


def _flights(random: np.random.Generator) -> pd.DataFrame:
    size = 20_000
    flown = pd.Timestamp("2013-01-01") + pd.to_timedelta(random.integers(0, 365, size), unit="D")
    delay = np.clip(random.exponential(25, size) - 10, -20, 180).astype(int)
    departed = random.random(size) < 0.97
    return pd.DataFrame(
        {
            "flown": flown,
            "month": flown.month,
            "hour": random.integers(5, 24, size),
            "carrier": random.choice(CARRIERS, size, p=[0.2, 0.15, 0.2, 0.15, 0.2, 0.1]),
            "origin": random.choice(ORIGINS, size, p=[0.4, 0.35, 0.25]),
            "dest": random.choice(DESTINATIONS, size, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1]),
            "dep_delay": pd.Series(delay).where(departed).astype("Int64"),
            "arr_delay": pd.Series(np.clip(delay + random.integers(-20, 20, size), -40, 200))
            .where(departed)
            .astype("Int64"),
            "distance": random.integers(100, 3001, size),
        }
    )
