"""What 200 questions of a dashboard cost, with stored and derived answers and without, at the same error.

    python benchmarks/dashboard.py [ROWS]

A shop's table of customers, five people who look at four pages each, and filter and drill down as people do. Every question
asks for its own precision (within=), so that the error is the same whichever way it is answered.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import duckdb

import privsql

STATES, PLANS, CHANNELS = (
    ["CA", "FL", "NY", "TX", "WA"],
    ["basic", "plus", "pro"],
    ["search", "social", "friend", "mail"],
)
POLICY = {
    "tables": {"customers": {"columns": {
        "state": {"values": STATES}, "plan": {"values": PLANS}, "channel": {"values": CHANNELS}, "age": {"range": [18, 97]},
        "joined": {"range": ["2024-01-01", "2024-12-31"]}, "orders": {"range": [0, 50]}, "spent": {"range": [0, 1000]},
    }}},
}  # fmt: skip


def table(rows: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    lists = enumerate((STATES, PLANS, CHANNELS))
    listed = ", ".join(
        f"[{', '.join(map(repr, each))}][1 + (hash(i, {n}) % {len(each)})::BIGINT]" for n, each in lists
    )
    connection.execute(
        "CREATE TABLE customers (state VARCHAR NOT NULL, plan VARCHAR NOT NULL, channel VARCHAR NOT NULL, age INTEGER NOT NULL, "
        "joined DATE NOT NULL, active BOOLEAN NOT NULL, orders INTEGER NOT NULL, spent INTEGER NOT NULL)"
    )
    connection.execute(
        f"INSERT INTO customers SELECT {listed}, 18 + hash(i, 4) % 80, DATE '2024-01-01' + (hash(i, 5) % 366)::INTEGER, "
        f"hash(i, 6) % 3 > 0, hash(i, 7) % 20, hash(i, 8) % 900 FROM range({rows}) r(i)"
    )
    return connection


def questions() -> list[tuple[str, float]]:
    """Texts, each with how far its numbers may be off: 1 in 1,000 of the table for people, 1 in 50 for sums of orders."""
    draw = random.Random(2024)
    pages = [
        # the overview: numbers at the top, charts below
        ["SELECT COUNT(*) AS customers FROM customers", "SELECT COUNT(*) AS active FROM customers WHERE active",
         "SELECT state, COUNT(*) AS n FROM customers GROUP BY state ORDER BY n DESC",
         "SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan",
         "SELECT channel, COUNT(*) AS n FROM customers GROUP BY channel",
         "SELECT date_trunc('month', joined) AS month, COUNT(*) AS n FROM customers GROUP BY month ORDER BY month"],
        # people: who they are, and for one state
        ["SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM customers GROUP BY decade ORDER BY decade",
         "SELECT state, plan, COUNT(*) AS n FROM customers GROUP BY state, plan",
         "SELECT plan, COUNT(*) AS n FROM customers WHERE state = '{state}' GROUP BY plan",
         "SELECT COUNT(*) AS n FROM customers WHERE state = '{state}' AND plan = '{plan}'",
         "SELECT active, COUNT(*) AS n FROM customers GROUP BY active"],
        # growth: by month and by where people come from
        ["SELECT date_trunc('month', joined) AS month, channel, COUNT(*) AS n FROM customers GROUP BY ALL",
         "SELECT date_trunc('quarter', joined) AS quarter, COUNT(*) AS n FROM customers GROUP BY quarter",
         "SELECT channel, COUNT(*) AS n FROM customers GROUP BY channel ORDER BY n DESC LIMIT 3",
         "SELECT date_trunc('month', joined) AS month, COUNT(*) AS n FROM customers WHERE channel = '{channel}' GROUP BY month",
         "SELECT COUNT(*) AS n FROM customers WHERE channel IN ('{channel}', 'mail')"],
        # money
        ["SELECT plan, SUM(orders) AS orders FROM customers GROUP BY plan",
         "SELECT SUM(orders) AS orders FROM customers WHERE plan = '{plan}'",
         "SELECT state, SUM(orders) AS orders FROM customers GROUP BY state",
         "SELECT SUM(orders) AS orders FROM customers WHERE state <> '{state}'"],
    ]  # fmt: skip
    spelled = [("COUNT(*)", "COUNT(1)"), (" FROM customers", " FROM customers AS c"), ("SELECT ", "select ")]
    listed: list[tuple[str, float]] = []
    while (
        len(listed) < 200
    ):  # somebody opens a page, and looks at all of it, perhaps with a filter of their own
        for text in draw.choice(pages):
            text = text.format(
                state=draw.choice(STATES), plan=draw.choice(PLANS), channel=draw.choice(CHANNELS)
            )
            for old, new in spelled:
                text = text.replace(old, new) if draw.random() < 0.3 else text
            listed.append((text, 0.02 if "SUM(" in text else 0.001))
    return listed[:200]


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    listed = questions()
    with_them, without = (privsql.connect(table(rows), POLICY) for _ in range(2))
    how: Counter[str] = Counter()
    different = 0.0
    for text, part in listed:
        answer = with_them.query(text, within=part * rows)
        how["paid" if not answer.stored else "derived" if answer.plan.free else "asked before"] += 1
        alone = without.query(text, within=part * rows, fresh=True)
        different += alone.plan.epsilon if not answer.stored or answer.plan.free else 0.0
    saved, spent = with_them.budget.spent.epsilon, without.budget.spent.epsilon
    print(
        f"{len(listed)} questions of a dashboard over {rows:,} rows, within 1 in 1,000 (sums 1 in 50), 95%, all cells at once"
    )
    print(f"  each paid for by itself:       epsilon {spent:8.4f}")
    print(f"  each different one once:       epsilon {different:8.4f}")
    print(f"  with stored, derived answers:  epsilon {saved:8.4f}   {spent / saved:.1f} times less")
    print(f"  {how['paid']} paid, {how['asked before']} asked before, {how['derived']} from other answers")


if __name__ == "__main__":
    main()
