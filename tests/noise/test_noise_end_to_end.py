"""The noise that reaches an analyst is the noise of the plan: scale, every column, every key, intervals, choices.

20,000 keys on a table without rows give 20,000 draws from one query. Thresholds are near 1e-9, so they never flake.
"""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pytest

import privsql
from privsql.noise.add_noise import add_noise
from privsql.noise.randomness import SystemRandomness
from privsql.tables import ExactTable

KEYS = 20_000
POLICY = {
    "tables": {
        "t": {
            "columns": {"k": {"range": [0, KEYS - 1]}, "x": {"range": [0, 10]}, "s": {"values": ["a", "b"]}}
        }
    }
}


def _session(rows: str = "", neighbours: str = "replace-one") -> privsql.Session:
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    connection.execute("CREATE TABLE t (k INTEGER NOT NULL, x INTEGER NOT NULL, s VARCHAR)")
    if rows:
        connection.execute(f"INSERT INTO t {rows}")
    return privsql.connect(connection, policy={**POLICY, "neighbours": neighbours})


def _mean_size(scale: float) -> float:
    """E|X| of discrete Laplace noise of this scale: 2q / (1 - q^2)."""
    q = math.exp(-1.0 / scale)
    return 2.0 * q / (1.0 - q * q)


def _assert_scale(noise: Any, scale: float) -> None:
    # |X| has a standard deviation of at most 1.1 scale here: 6.5 of them in the mean
    assert abs(np.abs(noise).mean() - _mean_size(scale)) < 6.5 * 1.1 * scale / math.sqrt(len(noise))


@pytest.mark.parametrize(("sql", "scale"), [("COUNT(*)", 2 / 0.1), ("SUM(x)", 2 * 10 / 0.1)])
def test_every_key_has_noise_of_the_right_scale(sql: str, scale: float) -> None:
    frame = _session().query(f"SELECT k, {sql} AS n FROM t GROUP BY k", epsilon=0.1).df()
    assert list(frame["k"]) == list(range(KEYS))  # absent keys too, in their public order
    _assert_scale(frame["n"].to_numpy(), scale)


def test_two_measurements_share_epsilon() -> None:
    frame = _session().query("SELECT k, SUM(x) AS a, COUNT(s) AS b FROM t GROUP BY k", epsilon=0.2).df()
    _assert_scale(frame["a"].to_numpy(), 20 / 0.1)
    _assert_scale(frame["b"].to_numpy(), 2 / 0.1)


def test_both_sides_of_an_average_have_noise() -> None:
    frame = (
        _session()
        .query("SELECT k, AVG(x) AS a, SUM(x) AS b, COUNT(*) AS c FROM t GROUP BY k", epsilon=0.1)
        .df()
    )
    scale = 2 * 10 / 0.1  # of each side, in steps of the grid
    # SUM = 10 above / 10, COUNT = (above + below) / 10: one noise and two
    _assert_scale(frame["b"].to_numpy(), scale)
    below = frame["c"].to_numpy() * 10 - frame["b"].to_numpy()
    assert abs(np.abs(below).mean() - _mean_size(scale)) < 6.5 * 1.1 * scale / math.sqrt(KEYS) + 5.0


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("sql", ["COUNT(*)", "SUM(x)"])
def test_intervals_have_their_stated_coverage(sql: str, level: float) -> None:
    shown = _session().query(f"SELECT k, {sql} AS n FROM t GROUP BY k", epsilon=0.5).intervals(level)
    covered = ((shown["n_low"] <= 0) & (shown["n_high"] >= 0)).mean()
    slack = 6.5 * math.sqrt(level * (1 - level) / KEYS)
    assert covered > level - slack
    assert covered < level + (1 - level) * 0.5 + slack  # nor much wider than need be


def test_undeclared_keys_never_appear() -> None:
    rows = f"SELECT CASE WHEN range % 2 = 0 THEN -1 ELSE {KEYS} END, 5, 'a' FROM range(8000)"
    frame = _session(rows).query("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1.0).df()
    assert len(frame) == KEYS
    assert frame["n"].abs().max() < 100


def test_a_null_key_is_a_key() -> None:
    rows = "SELECT 1, 5, CASE WHEN range < 2000 THEN NULL ELSE 'zzz' END FROM range(5000)"
    frame = _session(rows).query("SELECT s, COUNT(*) AS n FROM t GROUP BY s", epsilon=1.0).df()
    assert list(frame["s"].fillna("(null)")) == ["a", "b", "(null)"]
    assert abs(frame["n"].iloc[2] - 2000) < 200
    assert frame["n"].iloc[:2].abs().max() < 200


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_selection_errs_as_often_as_the_plan_says(neighbours: str) -> None:
    """Exponential noise of rate r: b overtakes a, which is 2 ahead, with probability q^2 / 2, q = e^-r."""
    plan = _session(neighbours=neighbours).explain(
        "SELECT s FROM t WHERE s IS NOT NULL GROUP BY s ORDER BY COUNT(*) DESC LIMIT 1", epsilon=1.0
    )
    column = plan.measurements[0].columns[0]
    exact = ExactTable({"s": np.array(["a", "b"], dtype=object)}, {column: np.array([2, 0], dtype=np.int64)})
    rate = (
        1.0 / 2.0 if neighbours == "replace-one" else 1.0
    )  # epsilon / (2 linf); half the noise where scores are monotone
    q, draws = math.exp(-rate), 1500
    wrong = q**2 / 2
    found = np.mean([add_noise(plan, [exact], SystemRandomness()).cells[0] == 1 for _ in range(draws)])
    assert abs(found - wrong) < 6.5 * math.sqrt(wrong * (1 - wrong) / draws)
