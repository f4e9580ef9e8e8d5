"""Post-processing of noisy numbers: types and values of the expressions above a release."""

from __future__ import annotations


def test_arithmetic_on_counts_returns_integers(two_rows):
    ((value,),) = two_rows.query("SELECT -(COUNT(*) * 2) AS n FROM t", epsilon=10_000).fetchall()
    assert value == -4
    assert isinstance(value, int)
