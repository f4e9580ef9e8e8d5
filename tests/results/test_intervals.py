"""Intervals cover what they should, at every level, and are not much wider than the noise needs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.privacy.accuracy import laplace_half_width

FALSE_ALARM = 1e-9
CELLS = 4000
ROWS = 12  # rows a cell, all cells alike: one query is four thousand runs
VALUES = np.array([3.0, 4.5, 7.25, 9.0, 1.0, 0.5, 6.0, 8.5, 2.0, 5.0, 10.0, -2.0])


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def crowd(request) -> privsql.Session:
    frame = pd.DataFrame(
        {
            "k": np.repeat(np.arange(CELLS), ROWS),
            "x": np.tile(VALUES, CELLS),
            "i": np.tile(np.arange(ROWS), CELLS),
            "m": np.tile(np.where(np.arange(ROWS) % 3 == 0, np.nan, VALUES), CELLS),
        }
    )
    columns = {
        "k": {"range": [0, CELLS - 1]},
        "x": {"range": [-5, 10]},
        "i": {"range": [2, 11]},
        "m": {"range": [-5, 10]},
    }
    return privsql.connect(frame, {"neighbours": request.param, "tables": {"df": {"columns": columns}}})


CLAMPED = float(np.clip(np.arange(ROWS), 2, 11).sum())
SEEN = VALUES[np.arange(ROWS) % 3 != 0]


def covers(table: pd.DataFrame, name: str, truth: float, level: float) -> float:
    """Asserts that at least the level of the cells cover the truth; gives the share that does."""
    low, high = table[f"{name}_low"].to_numpy(dtype=float), table[f"{name}_high"].to_numpy(dtype=float)
    inside = int(np.sum((low <= truth + 1e-4) & (truth - 1e-4 <= high)))
    assert stats.binomtest(inside, len(table), level, alternative="less").pvalue > FALSE_ALARM, (
        f"{name}: {inside / len(table)} for {level}"
    )
    return inside / len(table)


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_counts_sums_and_averages(crowd, epsilon):
    sql = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, COUNT(m) AS c, SUM(m) AS t, AVG(m) AS b FROM df GROUP BY k"
    answer = crowd.query(sql, epsilon=epsilon)
    truths = {
        "n": ROWS,
        "s": VALUES.sum(),
        "a": VALUES.mean(),
        "c": len(SEEN),
        "t": SEEN.sum(),
        "b": SEEN.mean(),
    }
    for level in (0.5, 0.9, 0.99):
        table = answer.intervals(level)
        for name, truth in truths.items():
            covers(table, name, truth, level)


def test_separate_sums_and_counts(crowd):
    answer = crowd.query("SELECT k, SUM(i) AS s FROM df GROUP BY k", epsilon=1)
    filtered = crowd.query("SELECT k, COUNT(*) FILTER (WHERE x > 5) AS n FROM df GROUP BY k", epsilon=1)
    for level in (0.5, 0.8, 0.95, 0.999):
        covers(answer.intervals(level), "s", CLAMPED, level)
        covers(filtered.intervals(level), "n", float((VALUES > 5).sum()), level)


def test_intervals_of_a_single_noise_are_tight(crowd):
    sql, draws = (
        "SELECT k, SUM(i) AS s FROM df GROUP BY k",
        4,
    )  # one draw of the cells alone has too little power at 50%
    answers = [crowd.query(sql, epsilon=1, fresh=True) for _ in range(draws)]
    for level in (0.5, 0.8, 0.95):
        inside = 0
        for answer in answers:
            ends = answer.intervals(level)
            reach = np.abs(ends["s"] - CLAMPED)
            inside += int(
                (reach <= 0.8 * (ends["s_high"] - ends["s"])).sum()
            )  # a fifth narrower would cover too little
        assert stats.binomtest(inside, draws * CELLS, level, alternative="less").pvalue < FALSE_ALARM


FORMULAS = {
    "COUNT(*) + 5": ROWS + 5,
    "2 * COUNT(*) - 1": 2 * ROWS - 1,
    "-COUNT(*)": -ROWS,
    "COUNT(*) / 4": ROWS / 4,
    "round(COUNT(*) / 8)": round(ROWS / 8 + 1e-9),
    "round(COUNT(*) / 8, 1)": 1.5,
    "CAST(COUNT(*) / 7 AS INTEGER)": 2,
    "SUM(i) / COUNT(*)": CLAMPED / ROWS,
    "100.0 * SUM(i) / COUNT(*)": 100 * CLAMPED / ROWS,
    "SUM(i) - COUNT(*) FILTER (WHERE x > 5)": CLAMPED - (VALUES > 5).sum(),
    "abs(COUNT(*) - 12)": 0,
    "greatest(COUNT(*), 3)": ROWS,
    "least(COUNT(*), 3)": 3,
    "sqrt(abs(COUNT(*)))": math.sqrt(ROWS),
    "floor(COUNT(*) / 5)": 2,
    "ceil(COUNT(*) / 5)": 3,
    "coalesce(nullif(COUNT(*), 0), 0)": ROWS,
    "COUNT(*) * COUNT(*)": ROWS * ROWS,
    "round(AVG(x), 1)": round(VALUES.mean(), 1),
    "AVG(x) + AVG(m)": VALUES.mean() + SEEN.mean(),
    "ln(greatest(COUNT(*), 1))": math.log(ROWS),
    "COUNT(*) + k - k": ROWS,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas(crowd, formula):
    answer = crowd.query(f"SELECT k, {formula} AS f FROM df GROUP BY k", epsilon=2)
    for level in (0.6, 0.95):
        covers(answer.intervals(level), "f", FORMULAS[formula], level)
    table = answer.intervals(0.95)
    finite = np.isfinite(table["f_low"].to_numpy(dtype=float)) & np.isfinite(
        table["f_high"].to_numpy(dtype=float)
    )
    assert finite.mean() > 0.5, "an interval without ends says nothing"
    shown = table["f"].to_numpy(dtype=float)
    known = finite & ~np.isnan(shown)
    assert (table["f_low"].to_numpy(dtype=float)[known] <= shown[known] + 1e-9).all()
    assert (shown[known] <= table["f_high"].to_numpy(dtype=float)[known] + 1e-9).all()


def test_interval_ends_are_rounded_like_the_value(crowd):
    """2.5 is shown as 3, so an interval that ends at 2.5 must end at 3."""
    table = crowd.query(
        "SELECT k, COUNT(*) AS n, round(COUNT(*) / 2) AS f FROM df GROUP BY k", epsilon=1
    ).intervals(0.9)
    for end in ("low", "high"):
        half = table[f"n_{end}"] / 2
        assert (table[f"f_{end}"] == np.sign(half) * np.floor(half.abs() + 0.5)).all()


def test_ordered_filtered_and_limited_answers_keep_their_own_intervals(crowd):
    sql = "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM df GROUP BY k) WHERE n > 5 ORDER BY n DESC, k LIMIT 1000 OFFSET 10"
    table = crowd.query(sql, epsilon=1).intervals(0.9)
    width = table["n_high"] - table["n_low"]
    assert width.nunique() == 1
    assert ((table["n_low"] + table["n_high"]) / 2 == table["n"]).all()


def test_an_average_over_no_rows_spans_the_range(crowd):
    frame = pd.DataFrame({"x": pd.Series([], dtype="float64")})
    session = privsql.connect(frame, {"tables": {"df": {"columns": {"x": {"range": [-5, 10]}}}}})
    for _ in range(10):
        row = (
            session.query("SELECT AVG(x) AS a FROM df", epsilon=0.1, fresh=True, show_all=True)
            .intervals()
            .iloc[0]
        )
        assert -5 <= row["a_low"] <= row["a"] <= row["a_high"] <= 10


def test_averages_of_many_rows_are_narrow():
    frame = pd.DataFrame({"x": np.linspace(0, 100, 20_001)})
    session = privsql.connect(frame, {"tables": {"df": {"columns": {"x": {"range": [0, 100]}}}}})
    answer = session.query("SELECT AVG(x) AS a FROM df", epsilon=1)
    row, sure = answer.intervals(0.95).iloc[0], answer.intervals(0.999999).iloc[0]
    assert row["a_high"] - row["a_low"] < 0.2
    assert sure["a_low"] <= 50 <= sure["a_high"]  # that of 95% misses it once in a hundred runs or so
    assert sure["a_high"] - sure["a_low"] < 1
    promised = session.explain("SELECT AVG(x) AS a FROM df", epsilon=1).accuracy(0.95, rows=20_001)["a"]
    assert promised == pytest.approx((row["a_high"] - row["a_low"]) / 2, rel=0.4)


# -- before anything is spent ----------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_stated_accuracy_matches_simulation(crowd, level):
    sql = "SELECT k, COUNT(*) AS n, SUM(i) AS s, 3 * SUM(i) - 1 AS f FROM df GROUP BY k"
    answer = crowd.query(sql, epsilon=1.5)
    promised = answer.plan.accuracy(level)
    frame = answer.df()
    for name, truth in {"n": ROWS, "s": CLAMPED, "f": 3 * CLAMPED - 1}.items():
        off = np.abs(frame[name].to_numpy(dtype=float) - truth)
        inside = int((off <= promised[name] + 1e-9).sum())
        assert stats.binomtest(inside, CELLS, level, alternative="less").pvalue > FALSE_ALARM
        assert promised[name] <= 1.7 * np.quantile(off, level) + 2  # and not much more than needed


@pytest.mark.slow
def test_within_holds_for_all_cells():
    frame = pd.DataFrame({"k": np.arange(50)})
    session = privsql.connect(frame, {"tables": {"df": {"columns": {"k": {"range": [0, 49]}}}}})
    sql = "SELECT k, COUNT(*) AS n, COUNT(*) FILTER (WHERE k > 3) AS m FROM df GROUP BY k"
    plan = session.explain(sql, within=15, confidence=0.8)
    kept = 0
    for _ in range(120):
        frame = session.query(sql, within=15, confidence=0.8, fresh=True).df()
        kept += bool(
            (np.abs(frame["n"] - 1) <= 15).all() and (np.abs(frame["m"] - (frame["k"] > 3)) <= 15).all()
        )
    assert stats.binomtest(kept, 120, 0.8, alternative="less").pvalue > FALSE_ALARM
    assert (
        kept < 120
    )  # 0.8 would keep all of 120 runs with probability 1e-12, and Bonferroni is nearly exact here
    cheaper = plan.repriced(plan.loss * 99 / 100)
    assert (
        cheaper.accuracy(1 - 0.2 / (plan.cells * 3))["n"] > 15
        or cheaper.accuracy(1 - 0.2 / (plan.cells * 2))["n"] > 15
    )


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-12])
def test_half_widths_are_the_smallest_that_cover(rate, level):
    def covered(width):
        return 1 - 2 * math.exp(-rate * (width + 1)) / (1 + math.exp(-rate)) if width >= 0 else 0.0

    width = laplace_half_width(rate, level)
    assert covered(width) >= level - 1e-12
    assert width == 0 or covered(width - 1) < level + 1e-12
