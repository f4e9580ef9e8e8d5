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
        mine.execute("INSERT INTO t VALUES (5, true, 0.5, '12:00', 'Alice'), (7, false, 0.25, '13:00', 'Bob')")
        yield privsql.connect(mine, POLICY)


def test_times_with_offsets_are_not_told_apart_by_us_alone(session):
    """DuckDB drops the offset, so that one row meets all three conditions: they are priced one by one."""
    clocks = ["12:00:00+01:00", "12:00:00+02:00", "12:00:00"]
    counts = ", ".join(f"COUNT(*) FILTER (WHERE tm = TIME '{clock}')" for clock in clocks)
    plan = session.explain(f"SELECT {counts} FROM t", epsilon=1)
    assert sum(each.l1 for each in plan.measurements) == 3


@pytest.mark.parametrize("word", ["nan", "NaN", "NaN123", "-nan", "sNaN", "Infinity"])
def test_a_decimal_that_is_no_number_is_not_written_as_a_name(session, word):
    """CAST(NaN AS DECIMAL(4,2)) would read the column nan, and fail on some of its rows."""
    sql = f"SELECT COUNT(*) FROM t WHERE a > CAST('{word}' AS DECIMAL(4,2))"
    assert "CAST(NaN" not in session.explain(sql, epsilon=1).sql
    assert session.query(sql, epsilon=EXACT).fetchall() == [(0,)]


def test_nan_is_no_key(session):
    sql = "SELECT x, COUNT(*) FROM t WHERE x IN (CAST('nan' AS DOUBLE), CAST('NaN' AS DOUBLE), 0.5) GROUP BY x"
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
