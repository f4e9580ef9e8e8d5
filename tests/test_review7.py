"""Doors that a seventh review found, held shut: the order of rows, texts that grow without end, other readings of constants."""

from __future__ import annotations

import struct

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import privsql

SIGNS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48)]


@pytest.mark.parametrize("one", ["max(x)", "min(x)", "any_value(x)", "first(x ORDER BY day)", "last(x ORDER BY day)",
                                 "quantile_disc(x, 0.5)", "arg_min(x, day)"])  # fmt: skip
@pytest.mark.parametrize("text", ["CAST(m AS VARCHAR)", "concat(m, '')", "m || ''"])
def test_the_order_of_rows_does_not_decide_the_sign_of_nan(one: str, text: str) -> None:
    """NaN equals NaN, and as text they were 'nan' and '-nan': the same rows in another order moved a count by all people."""
    sql = f"SELECT COUNT(*) AS n FROM (SELECT user_id, {one} AS m FROM v GROUP BY user_id) WHERE {text} LIKE '-%'"
    found = []
    for order in (SIGNS, SIGNS[::-1]):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE v (user_id INTEGER, x DOUBLE, day INTEGER)")
        connection.executemany(
            "INSERT INTO v VALUES (?, ?, 1)", [(unit, x) for unit in range(9) for x in order]
        )
        session = privsql.connect(connection, {"tables": {"v": {"unit": "user_id"}}})
        found.append(connection.execute(session.explain(sql, epsilon=1).sql).fetchall())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "written", ["CAST(CAST({} AS VARCHAR) AS TIMESTAMP)", "cbrt({})", "CAST(CAST({} AS VARCHAR) AS TIME)"]
)
@pytest.mark.parametrize("below", [False, True])
def test_what_is_written_several_times_counts_several_times(written: str, below: bool) -> None:
    """Casts of casts grew threefold at every level: twenty of them were gigabytes of SQL, or a day of DuckDB's time."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (x " + ("DOUBLE" if "cbrt" in written else written.split()[-1].rstrip(")")) + ")"
    )
    inner = "t" if below else "x"
    for _ in range(14 if "cbrt" in written else 9):
        inner = f"(SELECT {written.format('x')} AS x FROM {inner})" if below else written.format(inner)
    sql = f"SELECT COUNT(x) AS n FROM {inner}" if below else f"SELECT COUNT({inner}) AS n FROM t"
    with pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(connection).explain(sql, epsilon=1)
    assert caught.value.code == "sql-too-long"


def half_letters() -> pa.Array:
    offsets, letters = pa.array([0, 3, 5], pa.int32()).buffers()[1], pa.py_buffer(b"abc\xff\xfe")
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, letters])


@pytest.mark.parametrize("column", [pd.Series(pd.arrays.ArrowExtensionArray(half_letters())),
                                    pd.Series(["a", "\ud800"], dtype="string[python]"),
                                    pd.Series(["a", "\ud800"], dtype=object)])  # fmt: skip
@pytest.mark.parametrize("storage", ["python", "pyarrow"])
def test_pandas_texts_that_are_none_are_said_when_the_frame_is_given(
    column: pd.Series[str], storage: str
) -> None:
    """upper(s) failed after the charge, on the rows that had them alone; `python`: as where there is no pyarrow."""
    with pd.option_context("mode.string_storage", storage), pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(pd.DataFrame({"s": column}))
    assert caught.value.code == "source-frame"
    assert privsql.connect(pd.DataFrame({"s": pd.Series(["a", None], dtype="string[python]")})).explain(
        "SELECT COUNT(s) AS n FROM df", epsilon=1
    )


def test_arg_min_is_null_where_there_is_no_place() -> None:
    """NULL was left out of the keys, and COUNT(first) counted everybody: the place may be NULL where the value never is."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v (user_id INTEGER, state VARCHAR NOT NULL, age INTEGER NOT NULL, day DATE)"
    )
    connection.execute("""INSERT INTO v SELECT i // 2, 'CA', 5, CASE WHEN i // 2 < 4 THEN DATE '2024-01-01' END
                          FROM range(20) r(i)""")
    columns = {"state": {"values": ["CA", "NY"]}, "age": {"range": [0, 9]}}
    session = privsql.connect(connection, {"tables": {"v": {"unit": "user_id", "columns": columns}}})
    first = "(SELECT user_id, arg_min(state, day) AS k, max_by(age, day) AS age FROM v GROUP BY user_id)"
    keyed = session.query(f"SELECT k, COUNT(*) AS n FROM {first} GROUP BY k", epsilon=5000).fetchall()
    assert keyed == [("CA", 4), ("NY", 0), (None, 6)]
    assert session.query(f"SELECT COUNT(age) AS n FROM {first}", epsilon=5000).fetchall() == [(4,)]


@pytest.mark.parametrize(("text", "type_"), [
    ("\u0665", "INTEGER"), ("\uff15", "DOUBLE"), ("\xa05", "BIGINT"), ("1__0", "DECIMAL(5,2)"), ("20240131", "TIMESTAMP"),
    ("2024-W05-3", "TIMESTAMP"), ("2024-01-31Q10:30", "TIMESTAMP"), ("2024-01-31 10:30:00,5", "TIMESTAMP"), ("10", "TIME"),
    ("T10:30", "TIME"), ("202\u0664-01-31", "DATE"),
    ("5", "INTEGER"), (" 5 ", "INTEGER"), ("1e3", "DOUBLE"), ("1.50", "DECIMAL(5,2)"), ("2024-01-31", "DATE"),
    ("2024-01-31T10:30", "TIMESTAMP"), ("2024-01-31 10:30:15.25", "TIMESTAMP"), ("10:30", "TIME"),
])  # fmt: skip
def test_a_text_is_read_as_a_constant_where_duckdb_reads_it(text: str, type_: str) -> None:
    """Python reads more of them: a cast that is NULL to DuckDB had a value."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    sql = f"SELECT COUNT(*) AS n FROM t WHERE TRY_CAST('{text}' AS {type_}) IS NULL"
    plan = privsql.connect(connection).explain(sql, epsilon=1)
    assert connection.execute(plan.sql).fetchall() == connection.execute(sql).fetchall()


@pytest.mark.parametrize(("dialect", "condition", "found"), [
    ("oracle", "GREATEST(x, NULL) IS NULL", 2), ("hive", "LEAST(x, y) IS NULL", 1), ("redshift", "CONCAT(s, NULL) IS NULL", 2),
    ("postgres", "GREATEST(x, NULL) IS NULL", 0),
])  # fmt: skip
def test_null_means_what_it_means_there(dialect: str, condition: str, found: int) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS x, CASE WHEN i = 1 THEN i END AS y, 'a' AS s FROM range(2) r(i)"
    )
    plan = privsql.connect(connection).explain(
        f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1, dialect=dialect
    )
    assert connection.execute(plan.sql).fetchall() == [(found,)]


@pytest.mark.parametrize("type_", ["TIMESTAMPTZ", "INTEGER[]", "STRUCT(a INTEGER)"])
def test_rows_without_a_column_that_has_rules_can_be_counted(type_: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {type_}); INSERT INTO t SELECT NULL FROM range(30)")
    assert privsql.connect(connection).query("SELECT COUNT(*) FROM t", epsilon=5000).fetchall() == [(30,)]
