"""Dates and times at the ends of the calendar: no cast, text or key of them makes a query fail."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from tests.support.databases import ask


def test_seconds_beyond_the_calendar_do_not_fail_a_query():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (w TIMESTAMP_S); INSERT INTO t SELECT make_timestamp(0)::TIMESTAMP_S")
        session = privsql.connect(mine)
        assert "TRY_CAST" in session.explain("SELECT COUNT(w) FROM t", epsilon=1).sql


@pytest.mark.parametrize("micros", [-9223372036854775806, -9223372022400000001, 0])
@pytest.mark.parametrize("text", ["CAST(seen AS VARCHAR)", "concat(seen, 'x')", "seen || ''"])
def test_a_timestamp_before_the_calendar_casts_to_null_text(micros: int, text: str) -> None:
    """DuckDB raised a fatal error at the cast: every later query failed, too."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE r (micros BIGINT)")
    connection.execute("INSERT INTO r VALUES (?)", [micros])
    connection.execute("CREATE TABLE visits AS SELECT make_timestamp(micros) AS seen FROM r")
    assert ask(connection, f"SELECT COUNT(*) AS n FROM visits WHERE {text} LIKE '1%'")
    connection.execute("SELECT 1")


def test_other_timestamps_and_times_keep_their_text() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (seen TIMESTAMP, clock TIME)")
    connection.execute("""INSERT INTO visits VALUES ('-infinity', '24:00:00'), ('infinity', '00:00:00'),
                          ('290309-12-22 (BC)', NULL)""")
    session = privsql.connect(connection)
    sql = """SELECT COUNT(*) FILTER (WHERE CAST(seen AS VARCHAR) IS NOT NULL) AS a,
                    COUNT(*) FILTER (WHERE CAST(clock AS VARCHAR) <> '') AS b FROM visits"""
    assert connection.execute(session.explain(sql, epsilon=1).sql).fetchall() == [(3, 2)]


def test_the_public_time_24_00_is_not_a_key() -> None:
    """DuckDB returns 24:00 as text, which cannot be compared with times: planning raised a TypeError."""
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


def test_quantiles_of_dates_reach_the_end_of_the_calendar() -> None:
    """A grid of some days once had a last point past 9999-12-31, and could not be written."""
    connection = duckdb.connect(":memory:")
    connection.execute(
        "CREATE TABLE d AS SELECT DATE '9999-12-31' AS day, TIMESTAMP '9999-12-31 23:59:59' AS seen"
    )
    for low in ("0001-01-01", "0001-01-02", "1970-01-01", "9999-01-01"):
        policy = {
            "tables": {"d": {"columns": {name: {"range": [low, "9999-12-31"]} for name in ("day", "seen")}}}
        }
        answer = privsql.connect(connection, policy).query(
            "SELECT MEDIAN(day), MAX(day), MEDIAN(seen) FROM d", epsilon=1.0
        )
        assert len(answer.df()) == 1
