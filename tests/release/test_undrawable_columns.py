"""What `session.synthesize` can draw it draws within the column's type; what it cannot it refuses uncharged."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import privsql
from privsql.release.rows import synthesis
from privsql.release.rows.synthetic_rows import _whole_within
from tests.release.people import connect, people

DECLARED = {
    "huge": {"range": [0, 10**30]},
    "giant": {"values": [2**63]},
    "big": {"range": [-(2**63), 2**63 - 1]},
    "wide": {"range": [-(2**62) - 5, 2**62 + 5]},
    "small": {"range": [0, 255]},
    "double": {"range": [-1.7e308, 1.7e308]},
    "clock": {"values": ["00:00:00", "07:00:00"]},
    "price": {"range": [0, 9]},
    "day": {"range": ["2020-01-01", "2020-12-31"]},
}
PRICES = [{"epsilon": 5.0, "delta": 1e-3}, {"epsilon": 5.0, "rounds": 1}]


@pytest.fixture(scope="module")
def session():
    source = duckdb.connect()
    source.execute(
        "CREATE TABLE t AS SELECT i::HUGEINT AS huge, i::UBIGINT AS giant, i::BIGINT AS big, i::BIGINT AS wide, "
        "i::UTINYINT AS small, i::DOUBLE AS double, TIME '07:00:00' AS clock, "
        "(i / 99)::DECIMAL(3, 2) AS price, DATE '2020-01-01' AS day FROM range(99) AS r(i)"
    )
    with privsql.connect(source, {"tables": {"t": {"columns": DECLARED}}}) as session:
        yield session


@pytest.mark.parametrize("price", PRICES, ids=["maxent", "mwem"])
@pytest.mark.parametrize(("column", "bins"), [("huge", None), ("giant", None), ("wide", {"wide": 1})])
def test_whole_numbers_beyond_64_bits_are_refused_before_the_charge(session, column, bins, price):
    spent = session.budget.spent.epsilon
    with pytest.raises(privsql.Refused, match="cannot be drawn") as caught:
        session.synthesize("t", [column], bins=bins, **price)
    assert caught.value.code == "refused-large-domain" and caught.value.suggestion
    assert session.budget.spent.epsilon == spent
    with pytest.raises(privsql.Refused, match="leave") as caught:
        session.synthesize("t", [column, "small"], bins=bins, **price)


@pytest.mark.parametrize("price", PRICES, ids=["maxent", "mwem"])
@pytest.mark.parametrize(
    ("column", "bins", "low", "high"),
    [
        ("big", None, -(2**63), 2**63 - 1),
        ("wide", {"wide": 3}, -(2**62) - 5, 2**62 + 5),
        ("small", {"small": [0, 200, 10**9]}, 0, 255),
        ("double", {"double": 1}, -1.7e308, 1.7e308),
        ("clock", None, dt.time(0), dt.time(7)),
        ("price", {"price": [0, 5, 10**6]}, 0, 9.99),
        ("day", None, dt.date(2020, 1, 1), dt.date(2020, 12, 31)),
    ],
)
def test_values_are_drawn_within_the_range_and_the_type(session, column, bins, low, high, price):
    made = session.synthesize("t", [column], bins=bins, rows=500, **price)
    values = made.df()[column].dropna()
    assert len(values) and all(low <= each <= high for each in values)
    counted = f"SELECT COUNT({column}) FROM t"
    assert made.connect().execute(counted).fetchone() == (len(values),)  # none is lost by its cast


def test_the_largest_draw_is_below_the_upper_edge():
    ends = np.array([0.0, 1.0])  # a draw may be rounded to 1
    inside = np.array([0, 0])
    assert _whole_within([3, 7], inside, ends).tolist() == [3, 6]
    assert _whole_within([-5, 2**62 - 5], inside, ends).tolist() == [-5, 2**62 - 6]


def test_a_noisy_count_makes_no_more_rows_than_stated(monkeypatch):
    monkeypatch.setattr(synthesis, "_MOST_COUNTED", 50)
    with connect(people(200), neighbours="add-remove") as session:
        assert len(session.synthesize("people", ["smoker"], epsilon=Fraction(1), delta=1e-6)) == 50
        assert len(session.synthesize("people", ["smoker"], epsilon=1.0, rounds=1)) == 50
        assert len(session.synthesize("people", ["smoker"], epsilon=1, delta=1e-6, rows=70)) == 70
