"""Doors that a sixth review found, held shut: what failed for some rows only, and different things that were taken for one."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privsql

LARGEST = 2**127 - 1


def asked(source: Any, sql: str, policy: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    with privsql.connect(source, policy) as session:
        return session.query(sql, epsilon=1.0).fetchall()


@pytest.mark.parametrize("micros", [-9223372036854775806, -9223372022400000001, 0])
@pytest.mark.parametrize("text", ["CAST(seen AS VARCHAR)", "concat(seen, 'x')", "seen || ''"])
def test_a_moment_before_the_calendar_has_no_text(micros: int, text: str) -> None:
    """DuckDB failed for good at its text: every later question failed, too."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE r (micros BIGINT)")
    connection.execute("INSERT INTO r VALUES (?)", [micros])
    connection.execute("CREATE TABLE visits AS SELECT make_timestamp(micros) AS seen FROM r")
    assert asked(connection, f"SELECT COUNT(*) AS n FROM visits WHERE {text} LIKE '1%'")
    connection.execute("SELECT 1")


def test_a_moment_keeps_its_text() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (seen TIMESTAMP, clock TIME)")
    connection.execute("""INSERT INTO visits VALUES ('-infinity', '24:00:00'), ('infinity', '00:00:00'),
                          ('290309-12-22 (BC)', NULL)""")
    session = privsql.connect(connection)
    sql = """SELECT COUNT(*) FILTER (WHERE CAST(seen AS VARCHAR) IS NOT NULL) AS a,
                    COUNT(*) FILTER (WHERE CAST(clock AS VARCHAR) <> '') AS b FROM visits"""
    assert connection.execute(session.explain(sql, epsilon=1).sql).fetchall() == [(3, 2)]


@pytest.mark.parametrize("unit", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_moments_that_become_null_are_no_units(unit: str) -> None:
    """Two people past what microseconds reach were one: under add-remove one moved twice what a unit may."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits (who {unit}, k INTEGER)")
    with pytest.raises(privsql.PrivsqlError) as caught:
        asked(connection, "SELECT COUNT(*) AS n FROM visits", {"tables": {"visits": {"unit": "who"}}})
    assert caught.value.code == "policy-unit"


@pytest.mark.parametrize("made", ["VIEW t AS SELECT folded(s0) AS s FROM t0",
                                  "TABLE t (s0 VARCHAR, s VARCHAR GENERATED ALWAYS AS (folded(s0)))"])  # fmt: skip
def test_a_collation_in_a_macro_does_not_count(made: str) -> None:
    """'ab' and 'AB' were taken to exclude each other, and one row counted as both."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE MACRO folded(x) AS ((x::VARCHAR) COLLATE NOCASE); CREATE TABLE t0 (s0 VARCHAR)"
    )
    connection.execute(f"CREATE {made}")
    connection.execute(f"INSERT INTO {'t0' if 'VIEW' in made else 't'} (s0) VALUES ('ab')")
    session = privsql.connect(connection, {"tables": {"t": {}}})
    counts = ", ".join(
        f"COUNT(*) FILTER (WHERE s = '{each}') AS n{place}" for place, each in enumerate(["ab", "AB", "Ab"])
    )
    plan = session.explain(f"SELECT {counts} FROM t", epsilon=1)
    assert connection.execute(plan.sql).fetchall() == [(1, 0, 0)]


@pytest.mark.parametrize("argument", [f"CASE WHEN k >= 0 THEN {LARGEST} ELSE 0 END", "CAST('9e37' AS DECIMAL(38,0)) + 0 * k",
                                      "CASE WHEN k >= 0 THEN CAST('9e37' AS DECIMAL(38,0)) END"])  # fmt: skip
@pytest.mark.parametrize("function", ["SUM", "AVG"])
def test_public_sums_do_not_fail(argument: str, function: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT i AS x FROM range(5) r(i)")
    connection.execute("CREATE TABLE codes AS SELECT i AS k FROM range(5) r(i)")
    sql = f"SELECT COUNT(*) AS n FROM people JOIN (SELECT {function}({argument}) AS a FROM codes) AS p ON people.x < p.a"
    assert asked(connection, sql, {"tables": {"codes": {"public": True}}})


def no_text() -> pa.Table:
    offsets, letters = pa.array([0, 3, 5], pa.int32()).buffers()[1], pa.py_buffer(b"abc\xff\xfe")
    return pa.table({"s": pa.Array.from_buffers(pa.string(), 2, [None, offsets, letters])})


@pytest.mark.parametrize("frame", [no_text(), pd.DataFrame({"s": pd.Series(["a", "\ud800"], dtype=object)}),
                                   pd.DataFrame({"s": pd.Series(["a", b"\xff"], dtype=object)})])  # fmt: skip
def test_what_is_no_text_is_said_when_the_frame_is_given(frame: Any) -> None:
    """Arrow's bytes failed after the charge, pandas' with an error of its own that showed them."""
    with pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(frame)
    assert caught.value.code == "source-frame"
    assert "ud800" not in str(caught.value)


@pytest.mark.parametrize("given", [{"confidence": pd.NA}, {"confidence": 2}, {"weights": {"n": 1e308}},
                                   {"epsilon": None, "within": 10**400}])  # fmt: skip
def test_arguments_are_refused_before_the_charge(given: dict[str, Any]) -> None:
    session = privsql.connect(pd.DataFrame({"x": [1, 2]}))
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.query("SELECT COUNT(*) AS n FROM df WHERE x > 1", **{"epsilon": 1.0, **given})
    assert caught.value.code.startswith("argument-")
    assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize("last", ["60000,abc,abc", "60000,7,abc,zzz,yyy", "60000,99999999999999999999,abc"])
def test_a_csv_file_is_read_to_its_end_before_anything_is_asked(tmp_path: Path, last: str) -> None:
    """DuckDB guesses from the first lines; a later one that is not so failed every question, after its charge."""
    file, lines = tmp_path / "people.csv", ["id,x,s", *(f"{each},{each % 50},abc" for each in range(60_000))]
    file.write_text("\n".join([*lines, last]), encoding="utf-8")
    with pytest.raises(privsql.PrivsqlError, match="to its end") as refused:
        privsql.connect(file)
    assert refused.value.code == "source-file" and "abc" not in str(refused.value)
    file.write_text("\n".join(lines), encoding="utf-8")
    assert abs(asked(file, "SELECT COUNT(*) FROM people")[0][0] - 60_000) < 100


@pytest.mark.parametrize("given", [{"fresh": pd.NA}, {"prepared": pd.NA}, {"weights": pd.NA}, {"fresh": 1}])
def test_what_is_neither_true_nor_false_is_an_error_of_our_own(given: dict[str, Any]) -> None:
    session = privsql.connect(pd.DataFrame({"x": [1, 2, 3]}))
    for ask in (session.query, session.explain):
        with pytest.raises(privsql.ArgumentError):
            ask("SELECT COUNT(*) AS n FROM df", epsilon=1, **given)
    assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize("given", [{"ranges": pd.NA}, {"keys": pd.NA}, {"ranges": {"x": (0, Decimal("NaN"))}},
                                   {"ranges": {"x": np.array([0, 1])}}])  # fmt: skip
def test_ranges_and_keys_that_are_none_are_errors_of_our_own(given: dict[str, Any]) -> None:
    with pytest.raises(privsql.PrivsqlError):
        pd.DataFrame({"x": [1, 2, 3]}).dp.query("SELECT SUM(x) AS n FROM df", epsilon=1, **given)
