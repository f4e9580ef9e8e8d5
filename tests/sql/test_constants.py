"""Constants in casts: a constant is refused as malformed only if DuckDB cannot read it either."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql.algebra.expressions import Literal
from privsql.algebra.literals import unreadable
from privsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIME, TIMESTAMP, decimal, integer

TYPES = {
    "BIGINT": BIGINT, "TINYINT": integer(-128, 127), "DOUBLE": DOUBLE, "DECIMAL(5, 2)": decimal(5, 2), "BOOLEAN": BOOLEAN,
    "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIME": TIME,
}  # fmt: skip
SPELLINGS = (
    "1999-1-5|2000-02-29|1999/12/31|1999 12 31|1999\\12\\31| 1999-01-01 |epoch|infinity|-inf|0044-03-15 (BC)|-0044-03-15"
    "|99999-01-01|1999-01-01 10:00|1999-01-01 24:00:00|1999-01-01T10:00:00Z|1999-01-01 10:00:00+05|10:00|24:00:00|1:2:3"
    "|0000-02-29|-4-02-29|12|1_000|0x1F|0b11|1e2|1.5|-3|+4| 7 |nan|.5|5.|1.5e3|5.e1|true|T|yes|N|0|1-1-1|1999-1-1 1:2:3.5"
).split("|")
WRONG = {
    "DATE": ["2000-02-30", "31.12.1999", "12/31/1999", "today", "1999-00-10", "1900-02-29", ""],
    "TIMESTAMP": ["2000-02-30 10:00", "1999-01-01 25:00:00", "yesterday"],
    "TIME": ["25:00:00", "10:60", "noon"],
    "BIGINT": ["x", "12abc", "1,000", "$5"],
    "BOOLEAN": ["maybe", "2"],
}


@pytest.mark.parametrize("name", TYPES)
def test_constants_that_duckdb_accepts_are_not_refused(name: str) -> None:
    with duckdb.connect() as connection:
        for text in [*SPELLINGS, *(each for texts in WRONG.values() for each in texts)]:
            (found,) = connection.execute(f"SELECT TRY_CAST(? AS {name}) IS NOT NULL", [text]).fetchall()
            assert not (found[0] and unreadable(Literal(text, TEXT), TYPES[name])), text


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_mistyped_constants_are_refused(name: str, text: str) -> None:
    assert unreadable(Literal(text, TEXT), TYPES[name])


@pytest.mark.parametrize("word", ["nan", "NaN", "NaN123", "-nan", "sNaN", "Infinity"])
def test_nan_decimal_is_not_rendered_as_a_column_name(two_rows, word):
    """TRY_CAST(NaN AS DECIMAL(4,2)) would read the column nan, and fail on some of its rows."""
    sql = f"SELECT COUNT(*) FROM t WHERE a > TRY_CAST('{word}' AS DECIMAL(4,2))"
    assert "CAST(NaN" not in two_rows.explain(sql, epsilon=1).sql
    assert two_rows.query(sql, epsilon=10_000).fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT SUM(CAST(2.5 AS DECIMAL(3, 0))) FROM t", [(6,)]),
        ("SELECT COUNT(*) FROM t WHERE CAST(1e10 AS INTEGER) IS NULL", [(2,)]),
    ],
)
def test_constants_are_folded_as_duckdb_computes_them(two_rows, sql, expected):
    assert two_rows.query(sql, epsilon=10_000).fetchall() == expected


@pytest.mark.parametrize(("text", "type_"), [
    ("\u0665", "INTEGER"), ("\uff15", "DOUBLE"), ("\xa05", "BIGINT"), ("1__0", "DECIMAL(5,2)"), ("20240131", "TIMESTAMP"),
    ("2024-W05-3", "TIMESTAMP"), ("2024-01-31Q10:30", "TIMESTAMP"), ("2024-01-31 10:30:00,5", "TIMESTAMP"), ("10", "TIME"),
    ("T10:30", "TIME"), ("202\u0664-01-31", "DATE"),
    ("5", "INTEGER"), (" 5 ", "INTEGER"), ("1e3", "DOUBLE"), ("1.50", "DECIMAL(5,2)"), ("2024-01-31", "DATE"),
    ("2024-01-31T10:30", "TIMESTAMP"), ("2024-01-31 10:30:15.25", "TIMESTAMP"), ("10:30", "TIME"),
])  # fmt: skip
def test_text_casts_to_a_constant_only_where_duckdb_casts_it(text: str, type_: str) -> None:
    """Python's parsers accept more: a cast that is NULL in DuckDB had a value."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    sql = f"SELECT COUNT(*) AS n FROM t WHERE TRY_CAST('{text}' AS {type_}) IS NULL"
    plan = privsql.connect(connection).explain(sql, epsilon=1)
    assert connection.execute(plan.sql).fetchall() == connection.execute(sql).fetchall()
