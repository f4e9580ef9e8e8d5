"""Intervals by rules over all released numbers at once: they cover what they should, for thousands of draws."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot

import privsql
from privsql.planning.precision.interval_kinds import IntervalKind
from privsql.privacy.accuracy import LaplaceLaw
from privsql.render.write_above import write_above
from privsql.sql.boxes.box import BoxColumn, BoxTable, boxed

DRAWS, CELLS, LEVEL = 2_000, 50, 0.95
LAW = LaplaceLaw(rate=0.05)
R0 = BoxTable((BoxColumn("draw", False), BoxColumn("cell", False), BoxColumn("n", True, whole=True)))
TRUTHS = {
    "flat": np.full(CELLS, 100),
    "spread": np.arange(CELLS) * 40,
    "near zero": np.arange(CELLS) % 4,
}
# One answer a draw. The answer of the exact table has one row a draw, too.
QUERIES = {
    "maximum": "SELECT draw, MAX(n) AS x FROM r0 GROUP BY draw",
    "minimum": "SELECT draw, MIN(n) AS x FROM r0 GROUP BY draw",
    "count": "SELECT draw, COUNT(*) FILTER (WHERE n > 100) AS x FROM r0 GROUP BY draw",
    "spread": "SELECT draw, MAX(n) - MIN(n) AS x FROM r0 GROUP BY draw",
    "above average": "SELECT draw, SUM(CASE WHEN n > a THEN n ELSE 0 END) AS x FROM "
    "(SELECT draw, n, AVG(n) OVER (PARTITION BY draw) AS a FROM r0) GROUP BY draw",
    "rank": "SELECT draw, cell, RANK() OVER (PARTITION BY draw ORDER BY n DESC) AS x FROM r0",
}


def tables(truth: np.ndarray, half_width: int, seed: int = 3) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The exact cells, once for every draw; and for each draw the ends around what was released."""
    random = np.random.default_rng(seed)
    size = (DRAWS, len(truth))
    ratio = 1.0 - np.exp(-LAW.rate)
    noise = random.geometric(ratio, size) - random.geometric(ratio, size)
    keys = {"draw": np.repeat(np.arange(DRAWS), len(truth)), "cell": np.tile(np.arange(len(truth)), DRAWS)}
    released = (truth + noise).ravel()
    box = pd.DataFrame(
        {
            **keys,
            "privsql low 2": released - half_width,
            "privsql high 2": released + half_width,
            "privsql null 2": False,
        }
    )
    return pd.DataFrame({**keys, "n": np.tile(truth, DRAWS)}), box


def covered(sql: str, truth: np.ndarray, half_width: int) -> float:
    """The share of draws in which every number of the exact answer is between its ends."""
    found = boxed(sqlglot.parse_one(sql, dialect="duckdb"), {"r0": R0})
    assert found is not None
    exact, box = tables(truth, half_width)
    with duckdb.connect() as connection:
        connection.register("r0", exact)
        wanted = connection.execute(sql).df()
        connection.register("r0", box)
        ends = connection.execute(write_above(found.query)).df()
    keys = [each for each in ("draw", "cell") if each in wanted.columns]
    names = [*keys, "low", "high", *(["certain"] if not found.certain else [])]
    joined = wanted.merge(ends.set_axis(names, axis=1), on=keys, how="left")
    inside = (joined["low"] <= joined["x"]) & (joined["x"] <= joined["high"])
    return float(inside.groupby(joined["draw"]).all().mean())


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("query", QUERIES)
def test_the_box_covers_at_least_as_often_as_it_says(query, truth):
    half_width = LAW.half_width(1.0 - (1.0 - LEVEL) / CELLS)
    assert covered(QUERIES[query], TRUTHS[truth], half_width) >= LEVEL - 0.01  # 2 standard deviations


@pytest.mark.parametrize(
    ("query", "truth"), [("maximum", "flat"), ("minimum", "near zero"), ("count", "flat")]
)
def test_intervals_of_each_number_by_itself_would_not(query, truth):
    assert covered(QUERIES[query], TRUTHS[truth], LAW.half_width(LEVEL)) < 0.9


# -- in answers ----------------------------------------------------------------------------------------------
STATES = ["AZ", "CA", "NY", "TX"]
POLICY = {
    "tables": {
        "people": {
            "columns": {"state": {"values": STATES, "nullable": False}, "age": {"range": [0, 100]}},
        }
    }
}
TOP = (
    "SELECT state, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, COUNT(*) > 1000 AS big, "
    "CASE WHEN COUNT(*) > 1000 THEN 'big' ELSE 'small' END AS size, "
    "STDDEV(COUNT(*)) OVER () AS sd FROM people GROUP BY state ORDER BY n DESC LIMIT 2"
)
MANY = "SELECT COUNT(*) AS many FROM (SELECT state FROM people GROUP BY state HAVING COUNT(*) > 500)"


@pytest.fixture
def session():
    frame = pd.DataFrame({"state": np.repeat(STATES, [100, 4000, 3999, 600]), "age": 40})
    with privsql.connect({"people": frame}, policy=POLICY) as session:
        yield session


def test_an_answer_says_which_intervals_it_has(session):
    plan = session.explain(TOP, epsilon=0.5)
    answer = session.query(TOP, epsilon=0.5)
    assert [each.interval for each in plan.outputs] == [
        IntervalKind.EXACT,
        IntervalKind.RELEASE,
        IntervalKind.BOXED,
        IntervalKind.BOXED,
        IntervalKind.NONE,
        IntervalKind.NONE,
    ]
    assert answer.boxed == ("place", "big")
    assert "place: from the intervals of all released numbers at once" in str(plan)
    assert any("No interval for size, sd" in each for each in answer.warnings)
    assert answer.receipt["boxed"] == ["place", "big"]


def test_ranks_that_the_noise_cannot_tell_apart_are_shown_so(session):
    found = session.query(TOP, epsilon=0.5).intervals(0.95)
    assert found["state"].tolist() in (["CA", "NY"], ["NY", "CA"])
    assert found["place_low"].tolist() == [1, 1]
    assert found["place_high"].tolist() == [2, 2]
    assert found["big_low"].tolist() == [True, True]
    assert found["row_certain"].tolist() == [True, True]
    assert "n_low" in found.columns
    assert "sd_low" not in found.columns


def test_a_row_that_the_noise_may_have_chosen_is_not_certain(session):
    found = session.query(TOP.replace("LIMIT 2", "LIMIT 1"), epsilon=0.5).intervals()
    assert found["row_certain"].tolist() == [False]


def test_rows_of_a_subquery_are_counted_between_their_ends(session):
    found = session.query(MANY, epsilon=0.2).intervals(0.95)
    assert found.loc[0, "many_low"] <= 3 <= found.loc[0, "many_high"]
    assert found.loc[0, "many_low"] >= 2
    sure = session.query(MANY.replace("500", "2000"), epsilon=0.2).intervals(0.95)
    assert sure.loc[0, ["many_low", "many_high"]].tolist() == [2, 2]


def test_medians_have_no_simulation_and_so_take_the_box(session):
    sql = "SELECT MEDIAN(age) - (SELECT MEDIAN(age) FROM people WHERE state = 'CA') AS d FROM people"
    answer = session.query(sql, epsilon=1.0)
    assert answer.boxed == ("d",)
    assert answer.simulated == ()
    low, high = answer.intervals().loc[0, ["d_low", "d_high"]]
    assert low <= 0 <= high


def test_a_higher_level_gives_wider_ends(session):
    answer = session.query(
        "SELECT MAX(n) AS top FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)", 0.5
    )
    narrow, wide = answer.intervals(0.5), answer.intervals(0.9999)
    assert wide.loc[0, "top_low"] < narrow.loc[0, "top_low"]
    assert narrow.loc[0, "top_high"] < wide.loc[0, "top_high"]


def test_all_released_numbers_are_between_their_ends_together(session):
    sql = "SELECT MAX(n) AS top FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)"
    answer = session.query(sql, epsilon=0.5)
    (release,) = answer.releases
    found, cells = answer.intervals(0.95), release.intervals(1 - 0.05 / len(STATES))
    assert found.loc[0, "top_low"] == cells["n_low"].max()
    assert found.loc[0, "top_high"] == cells["n_high"].max()


def test_the_printed_table_shows_the_ends(session):
    shown = str(session.query(TOP, epsilon=0.5))
    assert "[1, 2]" in shown
    assert "true  [true, true]" in shown
