"""What a hostile reading of the code found, each kept as a test: constants that two readers understood differently."""

from __future__ import annotations

import duckdb
import pytest

import privsql

POLICY = {"tables": {"t": {"columns": {"a": {"range": [0, 10]}, "x": {"range": [0, 1]}}}}}
EXACT = 10_000


@pytest.fixture
def session():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (a INTEGER, b BOOLEAN, x DOUBLE, tm TIME, nan VARCHAR)")
        mine.execute(
            "INSERT INTO t VALUES (5, true, 0.5, '12:00', 'Alice'), (7, false, 0.25, '13:00', 'Bob')"
        )
        yield privsql.connect(mine, POLICY)


def test_times_with_offsets_are_not_told_apart_by_us_alone(session):
    """DuckDB drops the offset, so that one row meets all three conditions: they are priced one by one."""
    clocks = ["12:00:00+01:00", "12:00:00+02:00", "12:00:00"]
    counts = ", ".join(f"COUNT(*) FILTER (WHERE tm = TIME '{clock}')" for clock in clocks)
    plan = session.explain(f"SELECT {counts} FROM t", epsilon=1)
    assert sum(each.l1 for each in plan.measurements) == 3


@pytest.mark.parametrize("word", ["nan", "NaN", "NaN123", "-nan", "sNaN", "Infinity"])
def test_a_decimal_that_is_no_number_is_not_written_as_a_name(session, word):
    """TRY_CAST(NaN AS DECIMAL(4,2)) would read the column nan, and fail on some of its rows."""
    sql = f"SELECT COUNT(*) FROM t WHERE a > TRY_CAST('{word}' AS DECIMAL(4,2))"
    assert "CAST(NaN" not in session.explain(sql, epsilon=1).sql
    assert session.query(sql, epsilon=EXACT).fetchall() == [(0,)]


def test_nan_is_no_key(session):
    sql = (
        "SELECT x, COUNT(*) FROM t WHERE x IN (CAST('nan' AS DOUBLE), CAST('NaN' AS DOUBLE), 0.5) GROUP BY x"
    )
    assert session.query(sql, epsilon=EXACT).fetchall() == [(0.5, 1)]


def test_order_by_names_an_output_before_a_column(session):
    sql = "SELECT -a AS a, COUNT(*) AS n FROM t WHERE a >= 9 GROUP BY t.a ORDER BY a"
    assert session.query(sql, epsilon=EXACT).fetchall() == [(-10, 0), (-9, 0)]


def test_whole_numbers_stay_whole_through_arithmetic(session):
    ((value,),) = session.query("SELECT -(COUNT(*) * 2) AS n FROM t", epsilon=EXACT).fetchall()
    assert value == -4
    assert isinstance(value, int)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT SUM(CAST(2.5 AS DECIMAL(3, 0))) FROM t", [(6,)]),
        ("SELECT COUNT(*) FROM t WHERE CAST(1e10 AS INTEGER) IS NULL", [(2,)]),
    ],
)
def test_constants_are_folded_as_duckdb_computes_them(session, sql, expected):
    assert session.query(sql, epsilon=EXACT).fetchall() == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(trunc(x, 1)) FROM t",
        "SELECT COUNT(*) FROM t LIMIT " + "1" * 5000,
        "SELECT COUNT(*) FROM t WHERE a < " + "9" * 400,
        "SELECT COUNT(*) FROM t WHERE a < 1." + "9" * 5000,
        "SELECT COUNT(*) FROM t GROUP BY " + "1" * 5000,
        "SELECT COUNT(*) FROM t ORDER BY \u00b2",
        "SELECT COUNT(*) FROM t WHERE a < CAST(1 AS DECIMAL(" + "9" * 5000 + "))",
        'SELECT COUNT(*) AS "\ud800" FROM t',
        'SELECT COUNT(*) AS "a\x00b" FROM t',
    ],
)
def test_what_cannot_be_read_is_refused_with_an_error_of_our_own(session, sql):
    with pytest.raises(privsql.PrivsqlError):
        session.query(sql, epsilon=1)
    assert session.budget.spent.epsilon == 0


HELPERS = [
    "SELECT SUM(x) AS s FROM (SELECT x FROM (SELECT x, CASE WHEN nan = 'Alice' THEN 1e12 ELSE 0 END AS privsql_value_1 FROM t))",
    "SELECT AVG(x) AS s FROM (SELECT x FROM (SELECT x, 1e12 AS privsql_value_1, 1e12 AS PRIVSQL_VALUE_2 FROM t) WHERE x > 0)",
    "SELECT SUM(x), SUM(a) FROM (SELECT x, a FROM (SELECT x, a, a + 1000000 AS privsql_value_2 FROM t))",
    "SELECT SUM(privsql_value_1) FROM (SELECT a AS privsql_value_1, 1000000 * a AS privsql_value_1_ FROM t)",
    "SELECT SUM(x) AS s FROM (SELECT x FROM (SELECT x, privsql_value_1 FROM (SELECT x, 1e12 AS privsql_value_1 FROM t)))",
]


@pytest.mark.parametrize("sql", HELPERS)
def test_a_column_of_the_analyst_cannot_take_the_place_of_a_helper_column(sql):
    """The clamped value has a column of its own; one below with its name, not selected any more, must not be read for it."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (a INTEGER, b BOOLEAN, x DOUBLE, tm TIME, nan VARCHAR)")
        plan = privsql.connect(mine, POLICY).explain(sql, epsilon=1)
        mine.execute("INSERT INTO t VALUES (3, true, 0.25, '12:00', 'Bob')")
        before = mine.execute(plan.sql).fetchall()[0]
        mine.execute("UPDATE t SET nan = 'Alice', a = 9, x = 1.0")
        after = mine.execute(plan.sql).fetchall()[0]
    names = [column for measurement in plan.measurements for column in measurement.columns]
    moved = dict(zip(names, (abs(one - two) for one, two in zip(before, after, strict=True)), strict=True))
    for measurement in plan.measurements:
        assert sum(moved[column] for column in measurement.columns) <= measurement.l1


def test_keys_do_not_take_the_names_of_measured_columns(session):
    sql = "SELECT b AS count, a > 6 AS count, COUNT(*) FILTER (WHERE a > 5) AS x, COUNT(*) AS z FROM t GROUP BY 1, 2"
    rows = session.query(sql, epsilon=EXACT).fetchall()
    assert (True, False, 0, 1) in rows
    assert (False, True, 1, 1) in rows
    for name in ("count_1", "sum_1", "above_1", "below_2", "score_1", "order_1", "moment_1", "Moment_2"):
        for aggregate in ("COUNT(*)", "SUM(a)", "AVG(a)", "VAR_POP(a)", "MEDIAN(a)"):
            assert (
                len(session.query(f"SELECT b AS {name}, {aggregate} FROM t GROUP BY 1", epsilon=1).fetchall())
                >= 2
            )


def test_a_reference_by_decimals_of_another_scale_is_refused():
    """Comparing them fails on a number of 38 digits: one person's row would decide about an error after the charge."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE a (u DECIMAL(38, 0))")
        mine.execute("CREATE TABLE b (u DECIMAL(38, 10) UNIQUE, v DECIMAL(20, 0) UNIQUE, y INTEGER)")
        for column, fits in (("u", False), ("v", True)):
            tables = {"a": {"unit": f"u -> b.{column}", "max_rows": 9}, "b": {"unit": "y"}}
            session = privsql.connect(mine, {"tables": tables})
            if fits:
                assert session.query("SELECT COUNT(*) FROM a", epsilon=1).fetchall()
                continue
            with pytest.raises(privsql.PolicyError, match="by columns of other types"):
                session.query("SELECT COUNT(*) FROM a", epsilon=1)


def test_keys_that_doubles_cannot_tell_apart_are_refused_before_the_charge():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (h HUGEINT, m DECIMAL(30, 20))")
        session = privsql.connect(mine)
        for sql in ("SELECT h, COUNT(*) FROM t WHERE h IN (1152921504606846976, 1152921504606846979) GROUP BY h",
                    "SELECT m, COUNT(*) FROM t WHERE m IN (0.10000000000000000001, 0.1) GROUP BY m"):  # fmt: skip
            with pytest.raises(privsql.Refused) as caught:
                session.query(sql, epsilon=1)
            assert caught.value.code == "refused-fine-keys"
        assert session.budget.spent.epsilon == 0


def test_logarithms_to_a_base_written_as_a_decimal(session):
    assert session.query("SELECT COUNT(*) FROM t WHERE log(2.0, x) < 0", epsilon=EXACT).fetchall() == [(2,)]


def test_whatever_fails_after_the_charge_is_one_fixed_sentence(session, monkeypatch):
    import privsql.requests.stages

    monkeypatch.setattr(privsql.requests.stages, "add_noise", lambda *_: 1 // 0)
    with pytest.raises(privsql.EngineError) as caught:
        session.query("SELECT COUNT(*) FROM t", epsilon=1)
    assert str(caught.value) == str(privsql.EngineError())
    assert session.budget.spent.epsilon == 1


def test_seconds_past_the_calendar_do_not_make_a_query_fail():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (w TIMESTAMP_S); INSERT INTO t SELECT make_timestamp(0)::TIMESTAMP_S")
        session = privsql.connect(mine)
        assert "TRY_CAST" in session.explain("SELECT COUNT(w) FROM t", epsilon=1).sql


def test_columns_of_objects_are_text_whatever_they_hold():
    import pandas as pd

    for values in ([1, 2, 3], [1, "abc", None], ["a", "b", "c"]):
        frame = pd.DataFrame({"o": pd.Series(values, dtype=object)})
        plan = frame.dp.explain("SELECT COUNT(*) FROM df WHERE o LIKE '1%'", epsilon=1)
        assert plan.measurements[0].l1 == 1


def test_a_column_without_rules_cannot_take_the_place_of_a_helper_column():
    with duckdb.connect() as mine:
        mine.execute(
            "CREATE TABLE t (x INTEGER, privsql_value_1 UHUGEINT); INSERT INTO t VALUES (5, 1000000)"
        )
        session = privsql.connect(mine, {"tables": {"t": {"columns": {"x": {"range": [0, 10]}}}}})
        with pytest.raises(
            privsql.SourceError, match="a column privsql_value_1: privsql needs names that begin so itself"
        ):
            session.explain("SELECT SUM(x) FROM t", epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE split_part(s, '-', 1) = 'a'",
        "SELECT COUNT(yearweek(d)), COUNT(isoyear(d)), COUNT(date_trunc('month', d)) FROM t",
        "SELECT COUNT(cbrt(n * pi())) FROM t",
    ],
)
def test_duckdb_plans_the_same_whatever_the_statistics_are(sql):
    """Found among 200,000 cases: columns of NULLs only, dates at the end of the calendar, a cbrt that is not quite monotone."""
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (s VARCHAR, d DATE, n UTINYINT)")
        plan = privsql.connect(mine).explain(sql, epsilon=1)
        mine.execute("INSERT INTO t VALUES (NULL, '5881580-07-10', 0), (NULL, '2024-01-01', 255)")
        for last in range(256):
            mine.execute("UPDATE t SET n = ? WHERE d = '2024-01-01'", [last])
            mine.execute(plan.sql).fetchall()
