"""TPC-H in small, whose unit is the customer: schema, a deterministic generator in SQL, and two policies.

About 500 customers, 5,000 orders and 20,000 lineitems. A third of the customers order nothing, as TPC-H has it; the
others up to some 35 times. docs/tpch.md says what becomes of its 22 questions.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb

SCHEMA = """
CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL);
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL, n_regionkey INTEGER NOT NULL);
CREATE TABLE supplier (
    s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR NOT NULL, s_address VARCHAR NOT NULL, s_nationkey INTEGER NOT NULL,
    s_phone VARCHAR NOT NULL, s_acctbal DECIMAL(15, 2) NOT NULL, s_comment VARCHAR NOT NULL);
CREATE TABLE part (
    p_partkey INTEGER PRIMARY KEY, p_name VARCHAR NOT NULL, p_mfgr VARCHAR NOT NULL, p_brand VARCHAR NOT NULL,
    p_type VARCHAR NOT NULL, p_size INTEGER NOT NULL, p_container VARCHAR NOT NULL, p_retailprice DECIMAL(15, 2) NOT NULL);
CREATE TABLE partsupp (
    ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL, ps_availqty INTEGER NOT NULL,
    ps_supplycost DECIMAL(15, 2) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (
    c_custkey INTEGER PRIMARY KEY, c_name VARCHAR NOT NULL, c_address VARCHAR NOT NULL, c_nationkey INTEGER NOT NULL,
    c_phone VARCHAR NOT NULL, c_acctbal DECIMAL(15, 2) NOT NULL, c_mktsegment VARCHAR NOT NULL);
CREATE TABLE orders (
    o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderstatus VARCHAR NOT NULL,
    o_totalprice DECIMAL(15, 2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority VARCHAR NOT NULL,
    o_shippriority INTEGER NOT NULL, o_comment VARCHAR NOT NULL);
CREATE TABLE lineitem (
    l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL,
    l_quantity DECIMAL(15, 2) NOT NULL, l_extendedprice DECIMAL(15, 2) NOT NULL, l_discount DECIMAL(15, 2) NOT NULL,
    l_tax DECIMAL(15, 2) NOT NULL, l_returnflag VARCHAR NOT NULL, l_linestatus VARCHAR NOT NULL, l_shipdate DATE NOT NULL,
    l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR NOT NULL, l_shipmode VARCHAR NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber));
"""
# pick(i, salt, n): a number below n that looks random and is the same everywhere; one_of: such an element of a list
ROWS = """
CREATE TEMP MACRO pick(i, salt, n) AS
    ((i + 1) * (2 * salt + 1) * 2654435761 % 4294967291) * (salt + 7) % 1000003 // 3 % n;
CREATE TEMP MACRO one_of(list, i, salt) AS list[1 + pick(i, salt, len(list))];
INSERT INTO region SELECT i, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][1 + i] FROM range(5) r(i);
INSERT INTO nation SELECT i,
    ['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE', 'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ',
     'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU', 'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA',
     'UNITED KINGDOM', 'UNITED STATES'][1 + i],
    [0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1][1 + i] FROM range(25) r(i);
INSERT INTO supplier SELECT i, format('Supplier#{:03d}', i), format('{} Dock Road', i), i % 25,
    format('{}-{:03d}-{:04d}', 10 + i % 25, pick(i, 1, 1000), pick(i, 2, 10000)), pick(i, 3, 1000000) / 100.0,
    CASE WHEN i % 17 = 5 THEN 'well known for Customer and other Complaints' ELSE 'quiet' END FROM range(1, 51) r(i);
INSERT INTO part SELECT i,
    one_of(['forest', 'green', 'navy', 'rose', 'linen'], i, 1) || ' ' || one_of(['green', 'plum', 'snow', 'sky'], i, 2),
    'Manufacturer#' || (1 + i % 5), 'Brand#' || (1 + i % 5) || (1 + pick(i, 3, 5)),
    one_of(['ECONOMY', 'PROMO', 'STANDARD', 'MEDIUM'], i, 4) || ' ' || one_of(['ANODIZED', 'POLISHED'], i, 5) || ' '
        || one_of(['STEEL', 'BRASS', 'TIN'], i, 6),
    1 + pick(i, 7, 50), one_of(['SM', 'MED', 'LG', 'JUMBO'], i, 8) || ' ' || one_of(['BOX', 'CASE', 'PKG', 'BAG'], i, 9),
    900 + i FROM range(1, 401) r(i);
INSERT INTO partsupp SELECT i, 1 + (i + j * 13) % 50, 1 + pick(4 * i + j, 1, 300), 1 + pick(4 * i + j, 2, 100000) / 100.0
    FROM range(1, 401) r(i), range(4) s(j);
INSERT INTO customer SELECT i, format('Customer#{:04d}', i), format('{} Elm Street', i), pick(i, 1, 25),
    format('{}-{:03d}-{:04d}', 10 + pick(i, 1, 25), pick(i, 2, 1000), pick(i, 3, 10000)), pick(i, 4, 1100000) / 100.0 - 999,
    one_of(['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'], i, 5) FROM range(1, 501) r(i);
INSERT INTO orders
    SELECT i, who + (who - 1) // 2, CASE WHEN day > 1260 THEN 'O' WHEN i % 40 = 0 THEN 'P' ELSE 'F' END, 0,
        DATE '1992-01-01' + day, one_of(['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'], i, 4), 0,
        CASE WHEN i % 50 = 7 THEN 'very special packing requests' ELSE 'none' END
    FROM (SELECT i, 1 + CAST(floor(pick(i, 1, 333) * (0.5 + pick(i, 2, 1000) / 2000)) AS INTEGER) AS who,
                 CAST(pick(i, 3, 2406) AS INTEGER) AS day FROM range(1, 5001) r(i));
INSERT INTO lineitem
    SELECT o, part, 1 + (part + pick(n, 2, 4) * 13) % 50, line, quantity, quantity * (900 + part), pick(n, 4, 11) / 100.0,
        pick(n, 5, 9) / 100.0,
        CASE WHEN shipped + 10 > DATE '1995-06-17' THEN 'N' WHEN pick(n, 6, 2) = 0 THEN 'R' ELSE 'A' END,
        CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END,
        shipped, ordered + CAST(30 + pick(n, 7, 61) AS INTEGER), shipped + CAST(1 + pick(n, 8, 30) AS INTEGER),
        one_of(['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'], n, 9),
        one_of(['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'], n, 10)
    FROM (SELECT o_orderkey AS o, line, 8 * o_orderkey + line AS n, 1 + pick(8 * o_orderkey + line, 1, 400) AS part,
                 1 + pick(8 * o_orderkey + line, 3, 50) AS quantity, o_orderdate AS ordered,
                 o_orderdate + CAST(1 + pick(8 * o_orderkey + line, 11, 121) AS INTEGER) AS shipped
          FROM orders, range(1, 8) r(line) WHERE line <= 1 + pick(o_orderkey, 5, 7));
UPDATE orders SET o_totalprice = (SELECT sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)) FROM lineitem
WHERE l_orderkey = o_orderkey);
"""
_FROM, _TO = dt.date(1992, 1, 1), dt.date(1998, 12, 31)
_PUBLIC = ("part", "supplier", "partsupp", "nation", "region")


def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(":memory:")
    found.execute(SCHEMA)
    found.execute(ROWS)
    return found


def policy(max_groups: int, order_rows: int, line_rows: int) -> dict[str, Any]:
    """Customers are the units; what they order is theirs. Everything about parts and suppliers is public."""
    dates = {name: {"range": [_FROM, _TO]} for name in ("l_shipdate", "l_commitdate", "l_receiptdate")}
    return {
        "tables": {
            **{name: {"public": True} for name in _PUBLIC},
            "customer": {"unit": "c_custkey", "columns": {"c_acctbal": {"range": [-1_000, 10_000]}}},
            "orders": {
                "unit": "o_custkey -> customer.c_custkey",
                "max_groups": max_groups,
                "max_rows": order_rows,
                "columns": {
                    "o_orderdate": {"range": [_FROM, _TO]},
                    "o_orderpriority": {
                        "values": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
                    },
                },
            },
            "lineitem": {
                "unit": "l_orderkey -> orders.o_orderkey",
                "max_groups": max_groups,
                "max_rows": line_rows,
                "columns": {
                    "l_quantity": {"range": [0, 50]},
                    "l_extendedprice": {"range": [0, 65_000]},
                    "l_discount": {"range": [0, Decimal("0.1")]},
                    "l_tax": {"range": [0, Decimal("0.08")]},
                    "l_returnflag": {"values": ["A", "N", "R"]},
                    "l_linestatus": {"values": ["F", "O"]},
                    "l_shipmode": {"values": ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]},
                    **dates,
                },
            },
        }
    }


POLICY = policy(max_groups=3, order_rows=20, line_rows=60)  # as an owner might set it
NOTHING_LOST = policy(max_groups=1_000, order_rows=200, line_rows=200)  # more than any customer has
