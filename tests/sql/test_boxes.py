"""The SQL for boxes: whatever numbers between their ends the released cells have, the result is between its ends."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot

from privsql.render.write_above import write_above
from privsql.sql.boxes.box import BoxColumn, Boxed, BoxTable, End, boxed

PARTS = {
    "r0": BoxTable(
        (
            BoxColumn("state", False),
            BoxColumn("region", False),
            BoxColumn("n", True, whole=True),
            BoxColumn("m", True),
            BoxColumn("t", True, number=False),
        )
    ),
    "r1": BoxTable((BoxColumn("state", False), BoxColumn("k", True, whole=True))),
    "p0": BoxTable((BoxColumn("state", False), BoxColumn("weight", False))),
    "o0": BoxTable((BoxColumn("state", False), BoxColumn("n", True, whole=True)), open=True),
}
STATES = ["AZ", "CA", "NY", "OR", "TX", "WA"]
QUERIES = [
    each.strip()
    for each in (Path(__file__).parent / "boxes.sql").read_text(encoding="utf-8").split("\n\n")
    if not each.strip().startswith("--")
]


def box_of(sql: str) -> Boxed | None:
    return boxed(sqlglot.parse_one(sql, dialect="duckdb"), PARTS)


class World:
    """Random ends for every released number, public tables, and points between the ends."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        states = [each for each in STATES if self.random.random() < 0.9]
        few = self.random.random() < 0.5
        self.tables = {
            "r0": pd.DataFrame(
                {"state": states, "region": self.random.choice(["east", "west"], len(states))}
            ),
            "r1": pd.DataFrame({"state": [each for each in STATES if self.random.random() < 0.7]}),
            "p0": pd.DataFrame({"state": STATES[:4], "weight": [1.5, -2.0, None, 0.0]}),
        }
        self.ends: dict[tuple[str, str], tuple[Any, Any, Any]] = {}
        for table, part in (("r0", PARTS["r0"]), ("r1", PARTS["r1"])):
            for each in part.columns:
                if each.noisy and each.number:
                    self.ends[table, each.name] = self._ends(len(self.tables[table]), each.whole, few)
        self.connection = duckdb.connect()

    def _ends(self, size: int, whole: bool, few: bool) -> tuple[Any, Any, Any]:
        middle = self.random.choice([-1, 0, 1, 2, 5, 5, 6, 10, 100] if few else range(-20, 120), size)
        width = self.random.choice([0, 0, 1, 3, 30], size)
        low, high = middle - width, middle + self.random.choice([0, 1, 2, 20], size)
        null = np.zeros(size, dtype=bool) if whole else self.random.random(size) < 0.2
        return (low, high, null) if whole else (low / 2, high / 2, null)

    def point(self) -> dict[str, pd.DataFrame]:
        """The tables as they might be."""
        found = {name: table.copy() for name, table in self.tables.items()}
        for (table, name), (low, high, null) in self.ends.items():
            share = self.random.choice([0.0, 1.0, self.random.random()], len(low))
            if self.random.random() < 0.3:
                share = self.random.random(len(low))
            value = low + share * (high - low)
            integers = low.dtype.kind == "i"
            value = np.rint(value).astype(np.int64) if integers else np.rint(value * 2) / 2
            gone = null & (self.random.random(len(low)) < 0.5)
            found[table][name] = (
                pd.array(value, dtype="Int64") if integers else pd.array(value, dtype="Float64")
            )
            found[table].loc[gone, name] = pd.NA
        found["r0"]["t"] = self.random.random(len(found["r0"]))
        return found

    def box(self) -> dict[str, pd.DataFrame]:
        found = {name: table.copy() for name, table in self.tables.items()}
        for (table, name), ends in self.ends.items():
            place = [each.name for each in PARTS[table].columns].index(name)
            for end, values in zip(End, ends, strict=True):
                found[table][end.name_of(place)] = values
        return found

    def run(self, sql: str, tables: dict[str, pd.DataFrame]) -> list[tuple[Any, ...]]:
        for name, table in tables.items():
            self.connection.register(name, table)
        return self.connection.execute(sql).fetchall()


def inside(value: Any, low: Any, high: Any) -> bool:
    """Whether a value is between two ends, as DuckDB orders them; NULL always is."""
    if value is None:
        return True
    if low is None or high is None:
        return False
    if isinstance(value, str):
        return bool(low <= value <= high)
    value, low, high = float(value), float(low), float(high)
    slack = 1e-9 * max(1.0, abs(value)) if math.isfinite(value) else 0.0
    above = low <= value + slack or math.isnan(value)
    return above and (math.isnan(high) or (not math.isnan(value) and value <= high + slack))


def halves(found: Boxed, row: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any], bool]:
    """The values of a row that noise does not reach, the ends of the others, and whether it is certain."""
    fixed, ends, place = [], [], 0
    for width in found.columns:
        part = row[place : place + width]
        place += width
        fixed += [repr(part[0])] if width == 1 else []
        ends.append(part if width == 2 else None)
    return tuple(fixed), ends, found.certain or bool(row[place])


def broken(found: Boxed, sql: str, seed: int, points: int = 8) -> str:
    """How a point of a box breaks what the box says; empty if none does."""
    world = World(seed)
    box = [halves(found, row) for row in world.run(write_above(found.query), world.box())]
    possible = Counter(key for key, _, _ in box)
    for _ in range(points):
        tables = world.point()
        rows = world.run(sql, tables)
        seen: Counter[Any] = Counter()
        for row in rows:
            key = tuple(repr(each) for each, width in zip(row, found.columns, strict=True) if width == 1)
            seen[key] += 1
            matching = [ends for known, ends, _ in box if known == key]
            if not any(
                all(end is None or inside(value, *end) for value, end in zip(row, ends, strict=True))
                for ends in matching
            ):
                return f"row {row} is in none of {matching}\n{tables}"
        certain = Counter(key for key, _, sure in box if sure)
        if seen - possible:
            return f"rows that cannot be: {seen - possible}\n{tables}"
        if certain - seen:
            return f"rows that are missing: {certain - seen}\n{tables}"
    return ""


@pytest.mark.parametrize("sql", QUERIES)
def test_whatever_the_cells_are_the_result_is_between_its_ends(sql: str) -> None:
    found = box_of(sql)
    assert found is not None
    for seed in range(3):
        assert not (how := broken(found, sql, seed)), f"seed {seed}: {how}"
