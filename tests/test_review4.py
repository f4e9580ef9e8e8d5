"""What a hostile reading of prices, choices, quantiles and sets of keys found; each was a way in, a failure or a wrong answer."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.partition_selection import KeyMeasurement


def of_units(max_rows: int, max_groups: int = 7) -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT range % 50 AS u, 'k' || (range % 7) AS k, range AS x FROM range(1000)"
    )
    table = {
        "unit": "u",
        "max_groups": max_groups,
        "max_rows": max_rows,
        "columns": {"x": {"range": [0, 1000]}},
    }
    return privsql.connect(connection, {"tables": {"t": table}})


BOTH = "SELECT k, COUNT(*), COUNT(DISTINCT u) FROM t GROUP BY k"


def test_keys_are_let_out_once_and_other_counts_have_noise_that_covers_them():
    """The second count got Laplace noise of the scale that Gaussian noise would have had: many times its loss."""
    plan = of_units(1, 50).explain(BOTH, epsilon=1, delta=1e-6)
    assert plan.delta <= 1e-6
    first, *others = sorted(plan.measurements, key=lambda each: not isinstance(each, KeyMeasurement))
    assert isinstance(first, KeyMeasurement)
    for each in others:  # what noise/add_noise.py draws for them is discrete Laplace of this scale
        assert each.mechanism is Mechanism.LAPLACE
        assert each.l1 / each.scale <= each.epsilon * 1.0000001


@pytest.mark.parametrize("max_rows", [1, 3])
def test_rows_and_units_of_keys_that_nobody_declared_are_counted_together(max_rows):
    answer = of_units(max_rows).query(BOTH, epsilon=1, delta=1e-6)
    assert answer.receipt["delta"] == 1e-6


@pytest.mark.parametrize(
    "sql", ["SELECT k, MEDIAN(x) FROM t GROUP BY k", "SELECT k, MAX(x), COUNT(*) FROM t GROUP BY k"]
)
def test_quantiles_of_no_key_at_all_are_an_empty_answer(sql):
    """At this price no key is shown, all but surely: it was charged, and then failed."""
    assert len(of_units(1).query(sql, epsilon=0.01, delta=1e-12)) == 0


def test_intervals_of_a_spread_that_is_all_noise_warn_of_nothing():
    """2bc / max(0, 1e-300) overflowed; pytest makes a warning an error, a user sees a line of numpy's."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 7 AS x, range % 5 AS y FROM range(100)")
    policy = {"tables": {"t": {"columns": {"x": {"range": [0, 6]}, "y": {"range": [0, 4]}}}}}
    session = privsql.connect(connection, policy)
    for _ in range(5):
        session.query("SELECT CORR(x, y), REGR_SLOPE(y, x) FROM t", epsilon=1e-4, fresh=True).intervals()


def test_weights_are_of_the_question_not_of_the_search_for_a_range():
    """explain() took them, query() said that there was no such output: those of the search were looked at."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 100 AS x FROM range(5000)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": "auto"}}}}})
    sql, weights = "SELECT SUM(x) AS s, COUNT(*) AS n FROM t", {"s": 3}
    session.explain(sql, epsilon=1, weights=weights)
    assert session.query(sql, epsilon=1, weights=weights).columns == ["s", "n"]
