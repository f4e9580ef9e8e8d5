"""Every accepted case about the shop, run on neighbours: no unit, however heavy, moves its numbers past l1 or linf.

The unit has many times the rows that are let count, with NULL, NaN, infinities, values out of range and keys that nobody
declared; it comes, goes, or is replaced, under its own name or another's. So does one row of the tables without a unit.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import lru_cache
from typing import Any

import duckdb
import pytest

from privsql.planning.plan import Plan
from tests.cases.test_cases import ALL_CASES, Case, _plan
from tests.support import shop

Rows = dict[str, list[tuple[Any, ...]]]
Cells = dict[tuple[str, ...], dict[str, int]]
CASES = [
    case
    for case in ALL_CASES
    if case.settings["schema"] == "shop"
    and "prepared" not in case.settings
    and not case.outcome.startswith(("error ", "public", "part "))
    and "within" not in case.settings
]
RELATIONS = ("replace-one", "add-remove")


def heavy_unit(who: int, draw: random.Random) -> Rows:
    one, many = draw.choice, lambda: range(draw.choice([0, 1, 3, 40]))
    rows: Rows = defaultdict(list)
    if draw.random() < 0.9:
        rows["customers"].append((who, one(["CA", "NY", "TX", None, "ZZ"]), one([20, 45, 88, None, 300])))
    for order in (10_000 + number for number in many()):
        total = one([0.0, 5.5, 99.0, 1e9, -3.0, None, float("nan"), float("inf")])
        rows["orders"].append(
            (
                order,
                who,
                total,
                f"2024-0{draw.randint(1, 3)}-{draw.randint(1, 28):02d}",
                one([True, False, None]),
            )
        )
        for line in range(one([0, 1, 5])):
            rows["items"].append(
                (order, line, f"s{draw.randint(0, 13)}", one([0, 5, 4, None, 99]), one([0, 19.5, 3, None]))
            )
        if draw.random() < 0.5:
            rows["refunds"].append((order, one([0, 30, 99, None])))
    rows["visits"] = [
        (who, one(["home", "cart", "help", "xx", None]), one([0, 30, 60, None])) for _ in many()
    ]
    rows["badges"] = [(who, one(["gold", "blue", None])) for _ in many()]
    rows["profiles"] = [(who, one([0, 10, 50, None])) for _ in range(one([0, 1]))]
    rows["rooms"] = [("n", who, one(["a", "b", None])) for _ in many()]
    rows["stays"] = [("n", who, one([0, 14, 99, None])) for _ in many()]
    return rows


def one_row(table: str, draw: random.Random) -> Rows:
    match table:
        case "surveys":
            row: tuple[Any, ...] = (draw.choice([0, 10, 99, None]), draw.choice(["CA", "NY", "TX", None]))
        case "tickets":
            row = (f"c{draw.randint(80, 95)}", draw.choice([0, 50, 99, None]))
        case _:
            row = (f"c{draw.choice([0, 3, 100, 101, 105])}", draw.choice(["hall", "box", None]))
    return {table: [row]}


def world(rows: Rows) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute(shop.TABLES)
    connection.execute(shop.ROWS)
    for table, listed in rows.items():
        if listed:
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(listed[0]))})", listed)
    return connection


def cells(connection: duckdb.DuckDBPyConnection, plan: Plan) -> Cells:
    found = connection.execute(plan.sql)
    names, keys = [each[0] for each in found.description or []], len(plan.keys)
    return {
        tuple(map(repr, row[:keys])): dict(zip(names[keys:], row[keys:], strict=True))
        for row in found.fetchall()
    }


def moved(one: Cells, other: Cells, columns: tuple[str, ...]) -> tuple[int, int]:
    changes = [
        abs((one.get(key, {}).get(column) or 0) - (other.get(key, {}).get(column) or 0))
        for key in {*one, *other}
        for column in columns
    ]
    return sum(changes), max(changes, default=0)


@lru_cache
def plans() -> list[tuple[Case, dict[str, Plan]]]:
    return [(case, {relation: _plan(case, relation) for relation in RELATIONS}) for case in CASES]


def check(absent: Rows, one: Rows, other: Rows) -> None:
    worlds = [world(rows) for rows in (absent, one, other)]
    for case, by_relation in plans():
        seen: dict[str, list[Cells]] = {}
        for relation, plan in by_relation.items():
            if plan.sql not in seen:
                seen[plan.sql] = [cells(each, plan) for each in worlds]
            nobody, first, second = seen[plan.sql]
            pairs = [(first, second)] if relation == "replace-one" else [(nobody, first), (nobody, second)]
            for measurement in plan.measurements:
                for pair in pairs:
                    l1, linf = moved(*pair, measurement.columns)
                    assert l1 <= measurement.l1 and linf <= measurement.linf, (
                        case.name,
                        relation,
                        case.sql,
                        l1,
                        linf,
                    )
    for each in worlds:
        each.close()


def _random_worlds(seed: int) -> None:
    draw = random.Random(seed)
    check({}, heavy_unit(5_001, draw), heavy_unit(draw.choice([5_001, 5_002]), draw))
    table = draw.choice(["surveys", "tickets", "seats"])
    check({}, one_row(table, draw), one_row(table, draw))


def test_there_are_cases() -> None:
    assert len(CASES) >= 140


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 14))
def test_no_unit_exceeds_the_bounds_of_a_case(seed: int) -> None:
    _random_worlds(seed)
