"""Constants that are cast: what is refused because it cannot be read, DuckDB cannot read either."""

from __future__ import annotations

import duckdb
import pytest

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
def test_what_duckdb_reads_is_not_refused(name: str) -> None:
    with duckdb.connect() as connection:
        for text in [*SPELLINGS, *(each for texts in WRONG.values() for each in texts)]:
            (found,) = connection.execute(f"SELECT TRY_CAST(? AS {name}) IS NOT NULL", [text]).fetchall()
            assert not (found[0] and unreadable(Literal(text, TEXT), TYPES[name])), text


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_mistyped_constants_are_refused(name: str, text: str) -> None:
    assert unreadable(Literal(text, TEXT), TYPES[name])
