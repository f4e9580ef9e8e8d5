"""Queries that failed, or answered, by what DuckDB made of an expression and not by what was believed of it."""

from __future__ import annotations

from functools import cache

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.engines.duckdb.twin import Twin
from privsql.render.duckdb_functions import FORMS

BOB = "id = 7 AND diag = 'HIV'"
_BIG = f"SUM(CASE WHEN {BOB} THEN 10000000000000000000 ELSE 0 END)"
FAILED = [
    f"floor(CAST(CASE WHEN {BOB} THEN 1e37 ELSE 1 END AS DECIMAL(38,0))) < round(CAST(id AS DECIMAL(38,2)), 2)",
    f"ceil(CAST(CASE WHEN {BOB} THEN 1e37 ELSE 1 END AS DECIMAL(38,0))) IN (trunc(CAST(id AS DECIMAL(38,2))), 5)",
    f"nullif(round(CAST(CASE WHEN {BOB} THEN 1e37 ELSE 1 END AS DECIMAL(38,0))), round(CAST(id AS DECIMAL(38,2)), 2)) IS NULL",
    f"strptime(diag, '%Y.%f') < CASE WHEN {BOB} THEN TIMESTAMP '9999-12-31' ELSE TIMESTAMP '2000-01-01' END",
    "pow(x, date_diff('minute', d, ts)) >= date_diff('week', d, tns) * x",
    "date_diff('hour', d, ts) > 1 OR date_diff('year', coalesce(tms, ts), d) > 1",
]
PER_UNIT = [
    "v % 7 = 1",
    "coalesce(v, 1) = 2",
    "least(v, 5) = 2",
    "v // 2 = 1",
    "CASE WHEN v > 3 THEN v ELSE 1 END = 2",
    "bit_count(v) = 3",
]


def database(sick: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("""CREATE TABLE t AS SELECT i AS id, 'flu' AS diag, TIMESTAMP '2024-01-01' AS ts, DATE '2024-01-01' AS d,
        1.5 :: DOUBLE AS x, TIMESTAMP_NS '2024-01-01' AS tns, TIMESTAMP_MS '2024-01-01' AS tms, 3 :: TINYINT AS ti
        FROM range(50) r(i)""")
    if sick:
        connection.execute("UPDATE t SET diag = 'HIV', d = DATE '5881580-07-10' WHERE id = 7")
    return connection


shared = cache(database)  # for tests that only ask


@pytest.mark.parametrize("condition", FAILED)
def test_conditions_fail_on_no_row(condition: str) -> None:
    """Each failed after the charge exactly if person 7 had the diagnosis: an exact bit for any epsilon."""
    for sick in (False, True):
        with privsql.connect(shared(sick)) as session:
            session.query(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1e-6)


@pytest.mark.parametrize("condition", PER_UNIT)
def test_totals_of_one_person_never_fail(condition: str) -> None:
    for sick in (False, True):
        with privsql.connect(shared(sick), {"tables": {"t": {"unit": "id"}}}) as session:
            session.query(
                f"SELECT COUNT(*) AS n FROM (SELECT id, {_BIG} AS v FROM t GROUP BY id) WHERE {condition}",
                epsilon=1e-6,
            )


def test_totals_beyond_64_bits_are_correct() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i // 2 AS id, 18446744073709551615 :: UBIGINT AS x FROM range(200) r(i)"
    )
    with privsql.connect(connection, {"tables": {"t": {"unit": "id", "max_rows": 2}}}) as session:
        sql = "SELECT COUNT(*) AS n FROM (SELECT id, SUM(x) AS v FROM t GROUP BY id) WHERE v = 36893488147419103230"
        assert session.query(sql, epsilon=1e4).fetchall() == [(100,)]


def test_a_range_of_the_smallest_doubles_is_planned() -> None:
    """It was a bare ValueError."""
    with privsql.connect(database(False)) as session:
        session.explain("SELECT MEDIAN(least(greatest(ln(1 / ti), 0), 100)) AS m FROM t", epsilon=1.0)


def test_casts_added_by_duckdb_are_checked() -> None:
    """A cast that we did not write, and that can fail, is refused before the charge: on the twin, without a row."""
    with privsql.connect(
        pd.DataFrame({"d": pd.to_datetime(["2024-01-01"]), "s": ["a"], "i": [1]})
    ) as session:
        twin = Twin(session._pipeline.schema, {})
        twin.check("SELECT count(*) AS n FROM df WHERE TRY_CAST(s AS INTEGER) = 3")
        for failing in (
            "CAST(s AS INTEGER) = 3",
            "s = 3",
            "ln(i) > 1",
            "1 // i = 1",
            "TRY(left(s, i // i)) = 'a'",
            "CAST(d AS VARCHAR) = 'x'",
            "TRY_CAST(d AS VARCHAR) = 'x'",
            "strftime(d, '%Y') = 'x'",
        ):
            with pytest.raises(privsql.SqlError) as caught:
                twin.check(f"SELECT count(*) AS n FROM df WHERE {failing}")
            assert caught.value.code == "refused-can-fail", failing
        twin.close()


@pytest.mark.parametrize(
    "text", ["CAST(ts AS VARCHAR)", "TRY_CAST(ts AS VARCHAR)", "concat(ts, '')", "ts || ''"]
)
def test_a_view_that_casts_any_timestamp_to_text_is_refused(text: str) -> None:
    """Before 290309-12-22 (BC) it has none, and the database was dead afterwards."""
    connection = database(False)
    connection.execute(f"CREATE VIEW v AS SELECT id, {text} AS t FROM t")
    with privsql.connect(connection, {"tables": {"v": {}}}) as session, pytest.raises(privsql.PrivsqlError):
        session.query("SELECT COUNT(*) AS n FROM v WHERE t = 'x'", epsilon=1.0)


def test_a_view_may_cast_a_guarded_timestamp_to_text() -> None:
    connection = database(False)
    guarded = (
        "CASE WHEN ts >= TIMESTAMP '290309-12-22 (BC) 00:00:00' OR ts = TIMESTAMP '-infinity' THEN ts END"
    )
    connection.execute(
        f"CREATE VIEW v AS SELECT id, CAST({guarded} AS VARCHAR) AS t, TRY(strftime(ts, '%Y-%m')) AS m FROM t"
    )
    with privsql.connect(connection, {"tables": {"v": {}}}) as session:
        session.query("SELECT COUNT(*) AS n FROM v WHERE t = 'x' OR m = 'y'", epsilon=1.0)


def test_a_decimal_with_too_many_digits_is_refused_at_connect() -> None:
    """DuckDB makes such a one of a HUGEINT, and failed at its text after the charge."""
    end = duckdb.sql("SELECT CAST(-170141183460469231731687303715884105728 AS HUGEINT) AS x").to_arrow_table()
    with pytest.raises(privsql.SourceError):
        privsql.connect(end)
    fits = duckdb.sql("SELECT CAST(99999999999999999999999999999999999999 AS HUGEINT) AS x").to_arrow_table()
    with privsql.connect(fits) as session:
        session.query("SELECT COUNT(*) AS n FROM df WHERE CAST(x AS VARCHAR) = 'a'", epsilon=1.0)


@pytest.mark.parametrize("number", [10**37, -(10**37), 2**64, -(2**64) - 1, 10**38 - 1])
def test_a_large_constant_is_not_a_failing_cast(number: int) -> None:
    """DuckDB writes a HUGEINT in two halves: x = CAST(1e37 AS DECIMAL(38,0)) was refused as something that could fail."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT CAST(i AS DECIMAL(38,0)) AS x FROM range(9) r(i)")
    asked = f"SELECT COUNT(*) AS n FROM t WHERE x IS DISTINCT FROM CAST({number} AS DECIMAL(38,0))"
    asked += f" AND CASE WHEN x >= 0 THEN CAST('{number}' AS DECIMAL(38,0)) END <> x"
    assert privsql.connect(connection).query(asked, epsilon=10_000).fetchall() == [(9,)]


@pytest.mark.parametrize(
    "kind", ["TINYINT", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(18,2)", "DECIMAL(38,0)", "FLOAT"]
)
@pytest.mark.parametrize("function", ["AVG", "SUM"])
def test_averages_of_one_person_work_for_every_number_type(kind: str, function: str) -> None:
    """AVG of UBIGINT was refused as something that could fail."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT i AS u, CAST(1 AS {kind}) AS x FROM range(50) r(i)")
    policy = {"tables": {"t": {"unit": "u", "columns": {"x": {"range": [0, 100]}}}}}
    asked = f"SELECT COUNT(*) AS n FROM (SELECT u, {function}(x) AS v FROM t GROUP BY u) WHERE v > 0"
    assert privsql.connect(connection, policy).query(asked, epsilon=10_000).fetchall() == [(50,)]


def test_log_accepts_a_decimal_base(two_rows):
    assert two_rows.query("SELECT COUNT(*) FROM t WHERE log(2.0, x) < 0", epsilon=10_000).fetchall() == [(2,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE split_part(s, '-', 1) = 'a'",
        "SELECT COUNT(yearweek(d)), COUNT(isoyear(d)), COUNT(date_trunc('month', d)) FROM t",
        "SELECT COUNT(cbrt(n * pi())) FROM t",
    ],
)
def test_the_sql_runs_whatever_the_column_statistics_are(sql):
    """Found among 200,000 cases: columns of NULLs only, dates at the end of the calendar, a cbrt that is not quite monotone."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (s VARCHAR, d DATE, n UTINYINT)")
        plan = privsql.connect(mine).explain(sql, epsilon=1)
        mine.execute("INSERT INTO t VALUES (NULL, '5881580-07-10', 0), (NULL, '2024-01-01', 255)")
        for last in range(256):
            mine.execute("UPDATE t SET n = ? WHERE d = '2024-01-01'", [last])
            mine.execute(plan.sql).fetchall()


def test_the_optimizer_derives_no_bounds_through_asinh() -> None:
    """It would compute them while planning, outside TRY, and fail where they are in the wrong order."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i / 7.0 :: DOUBLE AS x FROM range(100) r(i)")
    bare, ours = (
        connection.execute(f"SELECT stats({sql}) FROM t LIMIT 1").fetchone()[0]
        for sql in ("asinh(x)", FORMS["asinh"].format("x"))
    )
    assert "min" in bare
    assert "min" not in ours
