"""Who writes a Parquet file also writes the least and the greatest value in it; they must not decide which rows count."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privsql
from tests.conformance.engines.hostile import VALUES, World

NOT_IN_PARQUET = ("HUGEINT", "TIMESTAMP_S")  # as pyarrow writes it
GROUP = 50  # rows of one row group
NAN = float("nan")
CONDITIONS = ("{x} > {c}", "{x} <= {c}", "NOT {x} <= {c}", "{x} = {c}", "{x} <> {c}", "{x} IN ({c})", "{x} IS DISTINCT FROM {c}",
              "{x} BETWEEN {c} AND {c}", "{x} IS NULL", "coalesce({x} >= {c}, TRUE)")  # fmt: skip


def write(path: Path, rows: list[float | None], writer: str) -> None:
    """One row group, with the statistics that the writer thinks right."""
    match writer:
        case "pyarrow":
            pq.write_table(
                pa.table({"x": pa.array(rows, pa.float64()), "y": pa.array(rows, pa.float32())}), path
            )
        case "polars":
            pl.DataFrame({"x": rows}).with_columns(y=pl.col("x").cast(pl.Float32)).write_parquet(
                path, statistics=True
            )
        case "pandas":
            pd.DataFrame({"x": rows, "y": pd.array(rows, dtype="float32")}).to_parquet(path)
        case _:
            given = pa.table({"x": pa.array(rows, pa.float64())})
            with duckdb.connect() as connection:
                connection.register("given", given)
                connection.execute(f"COPY (SELECT x, x::FLOAT AS y FROM given) TO '{path}' (FORMAT parquet)")


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize(
    "condition",
    ["x > 1000", "NOT x <= 1000", "isnan(x)", "x <> 1", "y > 1000", "x > 1000 AND y > 0", "x IN (5, 2000)"],
)
def test_one_row_does_not_decide_whether_nan_rows_count(tmp_path: Path, writer: str, condition: str) -> None:
    """The attack: 500 rows counted exactly if one row was above 1000, at l1 = 1."""
    cells = []
    for last in (1.0, 2000.0):
        write(tmp_path / "z.parquet", [1.0, *([NAN] * 500), last], writer)
        with privsql.connect(tmp_path / "z.parquet") as session:
            plan = session.explain(f"SELECT COUNT(*) AS n FROM z WHERE {condition}", epsilon=1)
            cells.append(session._pipeline.engine._source.rows(plan.sql)[0][0])
    assert abs(cells[0] - cells[1]) <= plan.measurements[0].l1


def test_the_attack_works_without_the_option(tmp_path: Path) -> None:
    path, cells = tmp_path / "z.parquet", []
    for last in (1.0, 2000.0):
        write(path, [1.0, *([NAN] * 500), last], "pyarrow")
        cells.append(duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE x > 1000").fetchall()[0][0])
    assert cells == [0, 501]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("hostile"), rows=20 * GROUP)


@pytest.mark.parametrize("type_", [each for each in VALUES if each not in NOT_IN_PARQUET])
def test_conditions_mean_the_same_with_and_without_statistics(
    world: World, tmp_path: Path, type_: str
) -> None:
    """Of every type that Parquet knows, sorted so that each row group has other ends: in WHERE, where rows are skipped, and
    behind an aggregate, where they are not."""
    name = next(column for column, kind in _columns(world) if kind == type_)
    path = tmp_path / "sorted.parquet"
    arrow = world.connection.sql(f"SELECT {name} AS x FROM hostile ORDER BY {name}").to_arrow_table()
    pq.write_table(arrow, path, row_group_size=GROUP)
    with privsql.connect(path) as session:
        read = session._pipeline.engine._source.rows
        ((held,),) = read(
            "SELECT DISTINCT typeof(x) FROM sorted"
        )  # an ENUM is a text there, and so is a UUID
        for constant in VALUES[type_]:
            if constant.startswith("make_timestamp"):
                continue  # DuckDB calls the column after the constant, which has no text
            tests = [each.format(x="x", c=f"CAST({constant} AS {held})") for each in CONDITIONS]
            counts = ", ".join(f"count(*) FILTER (WHERE {test})" for test in tests)
            ((*reading,),) = read(f"SELECT {counts} FROM sorted")
            for test, count in zip(tests, reading, strict=True):
                assert read(f"SELECT count(*) FROM sorted WHERE {test}") == [(count,)], test


def _columns(world: World) -> list[tuple[str, str]]:
    found = world.connection.execute("DESCRIBE hostile").fetchall()
    return [(name, kind) for (name, *_), kind in zip(found[1:], VALUES, strict=True)]
