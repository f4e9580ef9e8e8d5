"""Post-processing of noisy numbers: types and values of the expressions above a release."""

from __future__ import annotations

import pandas as pd
import pytest

import privsql


def test_arithmetic_on_counts_returns_integers(two_rows):
    ((value,),) = two_rows.query("SELECT -(COUNT(*) * 2) AS n FROM t", epsilon=10_000).fetchall()
    assert value == -4
    assert isinstance(value, int)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("TIMESTAMP 'infinity'", "infinity"),
        ("TIMESTAMP '-infinity'", "-infinity"),
        ("TIMESTAMP '290000-01-01 00:00:00'", "290000-01-01"),
        ("TIMESTAMP '290000-01-01 10:00:00'", "290000-01-01 10:00:00"),
        ("DATE '200000-01-01'", "200000-01-01"),
    ],
)
def test_moments_beyond_the_calendar_of_python_are_text(moment, text):
    frame = pd.DataFrame({"state": ["CA"] * 100})
    with privsql.connect({"people": frame}) as session:
        answer = session.query(
            f"SELECT {moment} AS d, n * n AS m FROM (SELECT COUNT(*) AS n FROM people)", 1.0
        )
    assert answer.fetchall()[0][0] == text
    assert answer.df().loc[0, "d"] == text
    assert text in str(answer)
    assert answer.arrow().column("d").to_pylist() == [text]
