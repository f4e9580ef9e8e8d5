"""TIMESTAMP WITH TIME ZONE is read in the policy's time zone, whatever an owner sets, and no value makes a query fail."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import privsql
from privsql.sql.parse.time_zones import moment_in
from privsql.types import IN_UTC, column_type, element_type

INSTANTS = [
    "290309-12-22 (BC) 00:00:00+00",
    "294247-01-10 04:00:54.775806+00",
    "infinity",
    "-infinity",
    "epoch",
    "1582-10-04 12:00:00+00",
    "0044-03-15 (BC) 12:00:00+00",
    "2024-03-31 00:30:00+00",  # half an hour before the clocks of Berlin go forward
    "2024-03-31 01:00:00+00",
    "2024-10-27 00:30:00+00",  # and twice 02:30 when they go back
    "2024-10-27 01:30:00+00",
    "2024-12-31 23:30:00+00",
]
RANGE = {"range": [dt.date(2024, 1, 1), dt.date(2025, 1, 1)]}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]


def opened(setting: str = "UTC") -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"SET GLOBAL TimeZone = '{setting}'; SET TimeZone = '{setting}'")
    connection.execute("CREATE TABLE t (id INTEGER, seen TIMESTAMP WITH TIME ZONE, plain TIMESTAMP)")
    for each in INSTANTS:
        connection.execute(f"INSERT INTO t VALUES (1, '{each}'::TIMESTAMPTZ, TIMESTAMP '2024-01-01')")
    connection.execute("INSERT INTO t VALUES (1, NULL, NULL)")
    return connection


def connected(zone: str | None, source: Any = None, **more: Any) -> privsql.Session:
    policy: dict[str, Any] = {"tables": {"t": {"columns": {"seen": RANGE}}}}
    if zone is not None:
        policy["time_zone"] = zone
    return privsql.connect(opened() if source is None else source, policy=policy, **more)


def rows(session: privsql.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.query(sql, epsilon=5000).fetchall()


def code(session: privsql.Session, sql: str) -> str:
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.explain(sql, epsilon=1)
    return caught.value.code


@pytest.mark.parametrize("setting", ["UTC", "America/New_York"])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "condition",
    [
        "year(seen) = 2024 AND month(seen) = 10",
        "hour(seen) = 2",
        "seen::DATE = DATE '2024-10-27'",
        "seen >= TIMESTAMP '2024-10-27 02:00:00'",
        "date_trunc('day', seen) = TIMESTAMP '2025-01-01'",
        "seen BETWEEN TIMESTAMP '2024-03-31 01:00:00' AND TIMESTAMP '2024-10-27 02:30:00'",
        "seen IS NULL",
    ],
)
def test_conditions_mean_the_local_time_of_the_policy(setting: str, zone: str, condition: str) -> None:
    source = opened(setting)
    plain = opened(zone)
    # out of the calendar of the zone: NULL
    local = f"(SELECT try(timezone('{zone}', seen)) AS seen FROM t)"
    expected = plain.execute(f"SELECT count(*) FROM {local} WHERE {condition}").fetchall()
    assert rows(connected(zone, source), f"SELECT COUNT(*) FROM t WHERE {condition}") == expected


def test_the_zone_is_utc_unless_the_policy_names_another() -> None:
    assert rows(connected(None), "SELECT COUNT(*) FROM t WHERE seen = TIMESTAMP '2024-12-31 23:30:00'") == [
        (1,)
    ]
    berlin = connected("Europe/Berlin")
    assert rows(berlin, "SELECT COUNT(*) FROM t WHERE seen = TIMESTAMP '2025-01-01 00:30:00'") == [(1,)]


@pytest.mark.parametrize("zone", ZONES)
def test_no_instant_makes_a_query_fail(zone: str) -> None:
    session = connected(zone)
    for sql in (
        "SELECT COUNT(*) FROM t WHERE CAST(seen AS VARCHAR) LIKE '2%'",
        "SELECT month(seen) AS m, COUNT(*) FROM t GROUP BY 1",
        "SELECT MIN(seen), MAX(seen), MEDIAN(seen) FROM t",
        "SELECT COUNT(DISTINCT seen) FROM t",
        "SELECT COUNT(*) FROM t WHERE seen + INTERVAL 1 YEAR > plain OR date_diff('day', plain, seen) > 3",
        "SELECT date_trunc('week', seen) AS w, COUNT(*) FROM t GROUP BY 1",
        "SELECT SUM(epoch(seen)) FROM t WHERE seen > TIMESTAMP '2024-01-01' AND FALSE",
    ):
        try:
            session.query(sql, epsilon=1)
        except privsql.Refused:  # before anything is charged
            continue
    assert not session.history()["failed"].any()


@pytest.mark.parametrize(
    ("sql", "n"),
    [
        ("seen >= TIMESTAMPTZ '2024-10-27 02:30:00+02'", 5),
        ("seen >= TIMESTAMP WITH TIME ZONE '2024-10-27 00:30:00Z'", 5),
        ("seen >= CAST('2024-10-27T00:30:00+00:00' AS TIMESTAMPTZ)", 5),
        ("seen = TIMESTAMPTZ '2024-10-26 19:30-05'", 1),
        ("seen AT TIME ZONE 'UTC' = TIMESTAMP '2024-10-27 00:30:00'", 1),
        ("(seen AT TIME ZONE 'utc')::DATE = DATE '2024-10-27'", 2),
        ("plain AT TIME ZONE 'UTC' < seen", 7),
    ],
)
def test_constants_and_at_time_zone_of_utc(sql: str, n: int) -> None:
    source = opened()
    assert source.execute(f"SELECT count(*) FROM t WHERE {sql}").fetchall() == [(n,)]
    # the last two instants that DuckDB has, infinity among them
    assert rows(connected("UTC", source), f"SELECT COUNT(*) FROM t WHERE {sql}") == [(n,)]


@pytest.mark.parametrize(
    ("zone", "condition", "expected"),
    [
        ("UTC", "seen AT TIME ZONE 'Europe/Berlin' > plain", "refused-zone"),
        ("UTC", "seen AT TIME ZONE CAST(id AS VARCHAR) > plain", "refused-zone"),
        ("Europe/Berlin", "seen AT TIME ZONE 'Europe/Berlin' > plain", "refused-zone"),
        ("Europe/Berlin", "seen AT TIME ZONE 'UTC' > plain", "refused-zone"),
        ("UTC", "CAST(id AS TIMESTAMPTZ) > seen", "refused-cast"),
        ("UTC", "seen > TIMESTAMPTZ '2024-01-01 Europe/Berlin'", "refused-cast"),
        ("UTC", "seen > TIMESTAMPTZ 'infinity'", "refused-cast"),
        ("UTC", "timezone('UTC', seen) > plain", "refused-syntax"),
    ],
)
def test_other_zones_are_refused(zone: str, condition: str, expected: str) -> None:
    assert code(connected(zone), f"SELECT COUNT(*) FROM t WHERE {condition}") in (
        expected,
        "refused-function",
    )


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2024-07-01 12:00:00+02", "UTC", dt.datetime(2024, 7, 1, 10)),
        ("2024-07-01 12:00:00+02", "Europe/Berlin", dt.datetime(2024, 7, 1, 12)),
        ("2024-07-01T12:00:00.5Z", "Europe/Berlin", dt.datetime(2024, 7, 1, 14, 0, 0, 500_000)),
        ("2024-07-01", "Europe/Berlin", dt.datetime(2024, 7, 1)),
        ("2024-07-01 12:00-05:30", "UTC", dt.datetime(2024, 7, 1, 17, 30)),
        ("2024-03-31 02:30:00", "Europe/Berlin", dt.datetime(2024, 3, 31, 3, 30)),  # no clock showed it
        ("2024-02-30", "UTC", None),
        ("2024-07-01 12:00:00+25", "UTC", None),
        ("9999-12-31 23:59:59-01", "UTC", None),
        ("2024-07-01 12:00-0530", "UTC", None),  # DuckDB takes it for the name of a zone
        ("tomorrow", "UTC", None),
    ],
)
def test_constants_are_converted_as_duckdb_converts_them(
    text: str, zone: str, moment: dt.datetime | None
) -> None:
    assert moment_in(text, zone) == moment
    if moment is not None:
        connection = opened(zone)
        found = connection.execute(f"SELECT epoch_us(timezone('{zone}', TIMESTAMPTZ '{text}'))").fetchall()
        assert found == [((moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1),)]


@pytest.mark.parametrize("zone", ["nowhere", "europe/nowhere", "../etc/passwd", "UTC' --", "", 5, None])
def test_a_zone_that_is_none_is_refused(zone: Any) -> None:
    with pytest.raises(privsql.PolicyError) as caught:
        privsql.connect(opened(), policy={"time_zone": zone})
    assert caught.value.code == "policy-zone"


def test_a_zone_that_duckdb_does_not_know_is_refused_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TRY does not catch that a zone is unknown, and DuckDB would notice only where there are rows."""
    policy = privsql.Policy(time_zone="Europe/Nowhere")
    session = privsql.connect(opened(), policy=policy)
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.query("SELECT COUNT(*) FROM t WHERE year(seen) = 2024", epsilon=1)
    assert caught.value.code in ("refused-can-fail", "sql-engine")
    assert session.budget.spent.epsilon == 0


def test_an_instant_is_no_unit_and_no_key_of_a_join() -> None:
    source = opened()
    source.execute("CREATE TABLE u (seen TIMESTAMPTZ PRIMARY KEY)")
    with pytest.raises(privsql.PolicyError, match="cannot identify people"):
        privsql.connect(source, policy={"tables": {"t": {"unit": "seen"}}}).explain(
            "SELECT COUNT(*) FROM t", epsilon=1
        )
    session = privsql.connect(source)
    assert code(session, "SELECT COUNT(*) FROM t JOIN u ON t.seen = u.seen") == "refused-join"


def test_answers_in_another_zone_are_not_those_that_are_stored(tmp_path: Path) -> None:
    ledger, file = tmp_path / "t.ledger", tmp_path / "t.duckdb"
    with opened() as source:
        source.execute(f"ATTACH '{file}' AS kept; CREATE TABLE kept.t AS FROM t")
    sql = "SELECT COUNT(*) FROM t WHERE hour(seen) = 0"
    for zone in ("UTC", "Europe/Berlin"):
        policy = {"time_zone": zone, "budget": {"epsilon": 1e4}}
        with privsql.connect(file, policy=policy, ledger=ledger) as session:
            assert not session.query(sql, epsilon=1).receipt["stored"]
            assert session.query(sql, epsilon=1).receipt["stored"]


def test_frames_with_zones() -> None:
    days = pd.date_range("2024-01-01", periods=10, tz="Europe/Berlin")
    sql = "SELECT COUNT(*) AS n FROM df WHERE t >= TIMESTAMP '2024-01-04 23:00:00'"
    for unit in ("s", "ms", "us", "ns"):
        frame = pd.DataFrame({"t": days.as_unit(unit)})
        assert frame.dp.query(sql, epsilon=5000)["n"][0] == 6
    table = pa.table({"t": pa.array([0, 10**9], pa.timestamp("s", "UTC"))})
    assert rows(privsql.connect({"df": table}), "SELECT COUNT(*) FROM df WHERE year(t) = 2001") == [(1,)]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_frame_whose_instants_do_not_fit_is_refused_at_once(unit: str) -> None:
    """DuckDB would fail when it reads them, after the charge."""
    table = pa.table({"t": pa.array([2**62], pa.timestamp(unit, "UTC"))})
    for frame in (table, table.to_pandas(timestamp_as_object=False)):
        with pytest.raises(privsql.SourceError):
            privsql.connect({"t": frame})


def test_lists_of_instants_are_not_read() -> None:
    known = column_type("TIMESTAMP WITH TIME ZONE")
    assert known is not None
    assert known.cast == IN_UTC
    assert element_type("TIMESTAMP WITH TIME ZONE[]") is None


def test_a_declared_moment_has_no_offset() -> None:
    ends = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2025, 1, 1, tzinfo=dt.UTC)]
    session = privsql.connect(opened(), policy={"tables": {"t": {"columns": {"seen": {"range": ends}}}}})
    assert code(session, "SELECT MIN(seen) FROM t") == "policy-values"
