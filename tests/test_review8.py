"""Doors that an eighth review found, held shut: a point past the end of a grid, a time of day that Python does not have."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql.audit.falsify import run_exactly

NEAR = 8e14  # where doubles are 1/8 apart and a grid has steps of 1/5: its ends, 0.8 and 1.2 above, are read as 0.75 and 1.25


@pytest.mark.parametrize("value", ["1e300", "'inf'::DOUBLE", "'nan'::DOUBLE", str(NEAR + 1.125), "-1e300"])
@pytest.mark.parametrize("function", ["MEDIAN", "MIN", "MAX"])
def test_every_value_is_at_a_point_of_its_grid(function: str, value: str) -> None:
    """Rounded away from each other, the ends of a range were three steps apart where the grid has three points."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x DOUBLE)")
    session = privsql.connect(
        connection, {"tables": {"t": {"columns": {"x": {"range": [NEAR + 0.875, NEAR + 1.125]}}}}}
    )
    plan = session.explain(f"SELECT {function}(x) AS m FROM t", epsilon=1)
    connection.execute(f"INSERT INTO t VALUES ({value})")
    _, cells = run_exactly(plan, connection)  # which looks whether the points are those of the grid
    assert [key[-1] for key in cells] == [0 if value.startswith("-") else 2]


def test_a_public_time_that_python_does_not_have_is_no_key() -> None:
    """DuckDB gives 24:00 as text, which cannot be compared with times: a TypeError came out of the planning."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (slot TIME)")
    connection.execute(
        "CREATE TABLE slots AS SELECT unnest([TIME '08:00', TIME '24:00', NULL]) AS slot, unnest([1, 2, 3]) AS k"
    )
    session = privsql.connect(connection, {"tables": {"slots": {"public": True}}})
    for key in ("slots.slot", "slots.slot, k"):
        plan = session.explain(
            f"SELECT {key}, COUNT(*) AS n FROM t JOIN slots ON t.slot = slots.slot GROUP BY {key}", epsilon=1
        )
        assert plan.cells == 1


def test_keys_alone_have_no_noise_to_choose() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t AS SELECT 'a' AS k FROM range(100)")
    with pytest.raises(privsql.PrivsqlError, match="keys alone have no noise"):
        privsql.connect(connection).explain(
            "SELECT DISTINCT k FROM t", epsilon=1.0, delta=1e-6, mechanism="gaussian"
        )


BEYOND = (
    "power(1e300, 3)", "round(power(x * 1e300, 3), 1)", "1e300 * 1e300", "ceil(x * 1e308)",
    "greatest(power(1e300, 3), x)",
)  # fmt: skip


@pytest.mark.parametrize("beyond", BEYOND)
def test_a_range_that_doubles_do_not_reach_is_none(beyond: str) -> None:
    """Its ends were fractions that no float holds: an OverflowError came out."""
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t (x DOUBLE)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 5]}}}}})
    assert session.explain(f"SELECT COUNT(*) FROM t WHERE {beyond} > x", epsilon=1.0).measurements
    for asked in (f"SUM({beyond})", f"MEDIAN({beyond})", f"MAX({beyond})", f"VARIANCE({beyond})"):
        with pytest.raises(privsql.PrivsqlError, match="range"):
            session.explain(f"SELECT {asked} FROM t", epsilon=1.0)
