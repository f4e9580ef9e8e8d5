"""Simulated intervals: they cover what they should, and there is none where the noise is too skewed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.results.simulation import DRAWS, simulated_ends

TRIALS, CELLS = 1_500, 5
SCALE = 20.0


def shares(cells: np.ndarray) -> np.ndarray:
    return cells / cells.sum(axis=-1, keepdims=True)


def totals(cells: np.ndarray) -> np.ndarray:
    return np.cumsum(cells, axis=-1)


def covered(function, truth: np.ndarray, scale: float, level: float = 0.95) -> float:
    """How often the interval holds the exact value, with noise of SCALE and simulated noise of `scale`."""
    random, hits = np.random.default_rng(5), 0
    exact = function(truth)
    for _ in range(TRIALS):
        released = truth + random.laplace(0, SCALE, CELLS)
        draws = function(released + random.laplace(0, scale, (DRAWS, CELLS)))
        ends = simulated_ends(function(released), draws, level)
        hits += int(((ends.low <= exact) & (exact <= ends.high)).sum())
    return hits / (TRIALS * CELLS)


@pytest.mark.parametrize("function", [shares, totals])
@pytest.mark.parametrize("truth", [np.full(CELLS, 1000.0), np.array([5000.0, 2000.0, 900.0, 300.0, 100.0])])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_simulated_intervals_cover_as_often_as_they_say(function, truth, level):
    assert covered(function, truth, SCALE, level) == pytest.approx(level, abs=0.015)


def test_too_little_simulated_noise_is_noticed():
    assert covered(shares, np.full(CELLS, 1000.0), 0.8 * SCALE) < 0.935


def test_a_quotient_by_almost_nothing_has_no_interval():
    random = np.random.default_rng(1)
    draws = 5.0 / np.abs(random.normal(0.5, 1.0, (DRAWS, 1)))
    assert np.isnan(simulated_ends(np.array([10.0]), draws, 0.95).low).all()


def test_a_level_that_needs_more_draws_has_no_interval():
    random = np.random.default_rng(2)
    draws = random.normal(0.0, 1.0, (DRAWS, 1))
    assert np.isfinite(simulated_ends(np.zeros(1), draws, 0.995).low).all()
    assert np.isnan(simulated_ends(np.zeros(1), draws, 0.999).low).all()


def test_a_draw_without_a_value_leaves_no_interval():
    draws = np.zeros((DRAWS, 2))
    draws[3, 1] = np.nan
    ends = simulated_ends(np.zeros(2), draws, 0.95)
    assert np.isfinite(ends.low[0])
    assert np.isnan(ends.low[1])


@pytest.mark.slow
def test_intervals_of_a_session_cover_shares_and_running_totals():
    frame = pd.DataFrame({"state": ["CA"] * 400 + ["NY"] * 300 + ["TX"] * 50})
    keys = {"state": {"values": ["CA", "NY", "TX"], "nullable": False}}
    session = privsql.connect({"people": frame}, {"tables": {"people": {"columns": keys}}})
    sql = (
        "SELECT state, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct, "
        "SUM(COUNT(*)) OVER (ORDER BY state) AS run FROM people GROUP BY state ORDER BY state"
    )
    exact = {"pct": np.array([400, 300, 50]) / 7.5, "run": np.array([400, 700, 750])}
    hits = dict.fromkeys(exact, 0)
    for _ in range(150):
        found = session.query(sql, epsilon=0.5, fresh=True).intervals(0.9)
        for name, values in exact.items():
            low, high = found[f"{name}_low"].to_numpy(), found[f"{name}_high"].to_numpy()
            hits[name] += int(((low <= values) & (values <= high)).sum())
    for name, count in hits.items():  # 450 intervals: sd 0.014, and those of one answer move together
        assert count / 450 == pytest.approx(0.9, abs=0.07), name
