"""Sums on a grid: the SQL of sums, heights and depths, against Python's integers, at all extremes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from privsql.algebra.exact import WIDE, Cast, Fold, Name
from privsql.analysis.domain import Domain
from privsql.planning.grids.grid import Grid, grid_of
from privsql.render.duckdb import DUCKDB
from privsql.types import DOUBLE, integer

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
RANGES = [(0, 120), (-5, 20), (-7, 7), (-9, -4), (3, 3), (0, 0), (0, 1), (-(2**30), 2**30), (100, 2**30)]
NULLABLE = pytest.mark.parametrize("nullable", [True, False])


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": "1"}) as made:
        yield made


def summed(
    connection: Any, grid: Grid, type_name: str, groups: Sequence[Sequence[Any]]
) -> list[tuple[int, int, int]]:
    """Of each group the sum of its values, of their heights, and of what they lack, as DuckDB adds them up."""
    listed = [(place, each) for place, group in enumerate(groups) for each in group]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE t (place INTEGER, x {type_name})")
    places, values = [place for place, _ in listed], [value for _, value in listed]
    connection.execute(
        f"INSERT INTO t SELECT unnest(?::INTEGER[]), unnest(?::{type_name}[])", [places, values]
    )
    rows, added = Cast(Fold("count", Name("v")), WIDE, total=False), Fold("sum", Name("v"))
    shown = ", ".join(map(DUCKDB.scalar, [grid.total(added, rows), *grid.sides(added, rows)]))
    source = f"(SELECT place, {DUCKDB.scalar(grid.value(Name('x')))} AS v FROM t)"
    assert connection.execute(f"SELECT {shown} FROM {source} WHERE place < 0").fetchall() == [(0, 0, 0)]
    return [
        row[1:]
        for row in connection.execute(f"SELECT place, {shown} FROM {source} GROUP BY 1 ORDER BY 1").fetchall()
    ]


@NULLABLE
@pytest.mark.parametrize(("type_name", "bits"), INTEGERS.items())
def test_whole_numbers(connection: Any, type_name: str, bits: int, nullable: bool) -> None:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    type_ = integer(least, most)
    for low, high in RANGES:
        grid = grid_of(type_, Domain(type_, nullable, low=low, high=high))
        assert grid.narrow == (bits <= 32)
        near = [
            low - 1,
            low,
            low + 1,
            (low + high) // 2,
            high - 1,
            high,
            high + 1,
            0,
            least,
            least + 1,
            most - 1,
            most,
        ]
        values = [each for each in near if least <= each <= most]
        groups = [values, values * 3, *([each] for each in values)]
        if nullable:
            groups += [[None], [None, *values]]
        for some, found in zip(groups, summed(connection, grid, type_name, groups), strict=True):
            clamped = [min(max(each, low), high) for each in some if each is not None]
            heights = [each - low for each in clamped]
            assert found == (sum(clamped), sum(heights), sum(grid.steps - each for each in heights))


@NULLABLE
def test_fractions(connection: Any, nullable: bool) -> None:
    for low, high in [(0.0, 1.0), (-3.5, 2.25), (1e-9, 1e-8), (0.0, 1e18), (5.0, 5.0)]:
        grid = grid_of(DOUBLE, Domain(DOUBLE, nullable, low=low, high=high))
        ends = [low, high, (low + high) / 2, math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324]
        pairs = list(itertools.combinations(ends, 2))
        for some, (total, above, below) in zip(pairs, summed(connection, grid, "DOUBLE", pairs), strict=True):
            # NaN is past everything
            clamped = [Fraction(high if math.isnan(each) else min(max(each, low), high)) for each in some]
            assert abs(total * grid.step - sum(clamped)) <= 2 * grid.step
            assert (above, below) == (total - 2 * grid.low, 2 * (grid.low + grid.steps) - total)
            assert 0 <= above <= 2 * grid.steps
