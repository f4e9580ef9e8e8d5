"""ROLLUP, CUBE and GROUPING SETS: levels that agree exactly, are never worse than separate answers, and have true intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.analysis.levels import levelled
from privsql.noise.randomness import SystemRandomness
from privsql.noise.samplers import discrete_laplace
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from privsql.privacy.least_squares import Levels, classes, fitted, rounded, weights
from privsql.privacy.weighted_sums import counted

FALSE_ALARM = 1e-9


# -- the pure numerics -----------------------------------------------------------------------------------------
def product(shape: Sequence[int], sets: Sequence[tuple[int, ...]]) -> Levels:
    names = tuple(f"k{axis}" for axis in range(len(shape)))
    groups = tuple(KeyGroup((name,), (range(size),)) for name, size in zip(names, shape, strict=True))
    return levelled(KeySpace(names, groups), tuple(sets))[1]


def ragged(sets: Sequence[tuple[int, ...]]) -> Levels:
    """Days of some months, which have different lengths, beside a yes or no."""
    days = pd.date_range("2023-12-20", "2024-03-03")
    listed = KeyGroup(("year", "month", "day"), (days.year.tolist(), days.month.tolist(), days.day.tolist()))
    space = KeySpace(("year", "month", "day", "smoker"), (listed, KeyGroup(("smoker",), ([True, False],))))
    return levelled(space, tuple(sets))[1]


def dense(levels: Levels, times: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The sums as a matrix, and the least squares estimates of all rows from what was measured as another."""
    matrix = np.zeros((levels.rows, levels.cells))
    for place, start in zip(levels.places, levels.starts, strict=True):
        matrix[place + start, np.arange(levels.cells)] = 1.0
    scaled = levels.scale(times)[:, None] * matrix
    return matrix, matrix @ np.linalg.pinv(scaled)


CUBE = [kept for size in range(3, -1, -1) for kept in itertools.combinations(range(3), size)]
SHAPES: list[tuple[Levels, tuple[int, ...]]] = [
    (product((5,), [(0,), ()]), (1, 2)),
    (product((5, 4), [(0, 1), (0,), ()]), (1, 1, 2)),
    (product((3, 4), [(0,), (1,)]), (1, 1)),
    (product((3, 4), [(0,), (1,), ()]), (1, 1, 1)),
    (product((3, 1, 2), CUBE), (1, 1, 1, 1, 1, 1, 1, 2)),
    (ragged([(0, 1, 2), (0, 1), (0,), ()]), (1, 1, 1, 2)),
    (ragged([(0, 1, 2, 3), (0, 1), ()]), (1, 1, 2)),
    (ragged([(0, 1), (3,), ()]), (1, 1, 2)),
    (ragged([(0, 1, 3), (1,), (3,)]), (1, 1, 1)),
]


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_least_squares_against_dense_algebra(levels: Levels, times: tuple[int, ...]) -> None:
    matrix, estimates = dense(levels, times)
    measured = 10.0 * np.random.default_rng(7).normal(size=levels.rows)
    cells = fitted(levels, times, measured)
    np.testing.assert_allclose(levels.sums(cells), estimates @ measured, atol=1e-9)
    np.testing.assert_allclose(levels.sums(cells), matrix @ cells, atol=1e-9)
    np.testing.assert_allclose(levels.spread(measured), matrix.T @ measured, atol=1e-9)


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_the_variance_of_every_row_is_known(levels: Levels, times: tuple[int, ...]) -> None:
    """Rows of one class have the same weights, and these are the estimate's; nothing is noisier than it was measured."""
    _, estimates = dense(levels, times)
    kinds = classes(levels)
    assert kinds is not None
    for kind in range(kinds.max() + 1):
        rows = np.flatnonzero(kinds == kind)
        found = weights(levels, times, int(rows[0]))
        for row in rows:
            known = counted(estimates[row])
            assert [count for _, count in known] == [count for _, count in found]
            np.testing.assert_allclose([w for w, _ in known], [w for w, _ in found], atol=1e-8)
        alone = 1.0 / levels.scale(times)[rows[0]] ** 2
        assert sum(count * weight**2 for weight, count in found) <= alone * (1.0 + 1e-9)


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_rounded_levels_stay_close_and_add_up(levels: Levels, times: tuple[int, ...]) -> None:
    for draw in range(20):
        cells = 3.0 * np.random.default_rng(draw).normal(size=levels.cells)
        off = np.abs(levels.whole_sums(rounded(levels, cells)) - levels.sums(cells))
        for corners, start, size in zip(levels.corners, levels.starts, levels.sizes, strict=True):
            assert off[start : start + size].max() <= corners / 2.0 + 1e-9
    whole = np.arange(levels.cells, dtype=np.float64) - 7.0
    assert (rounded(levels, whole) == whole).all()


def test_rounding_error_does_not_grow_with_cells() -> None:
    levels = product((300, 300), [(0, 1), (0,), (1,), ()])
    cells = 3.0 * np.random.default_rng(1).normal(size=levels.cells)
    off = np.abs(levels.whole_sums(rounded(levels, cells)) - levels.sums(cells))
    assert off[:90_000].max() <= 2.0
    assert off[90_000:].max() <= 1.0
    assert off[-1] <= 0.5


def test_too_many_distinct_rows_have_no_classes() -> None:
    pairs = [(a, b) for a in range(40) for b in range(40) if (a * b) % 7 < 3]
    group = KeyGroup(("a", "b"), ([a for a, _ in pairs], [b for _, b in pairs]))
    _, levels = levelled(KeySpace(("a", "b"), (group,)), ((0, 1), (0,), (1,), ()))
    assert classes(levels) is None
    assert classes(ragged([(0, 1, 2), (0, 1), ()])) is not None


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_no_level_is_worse_than_measured_alone(levels: Levels, times: tuple[int, ...]) -> None:
    """Over many draws the mean squared error of every level is what the weights say, and below that of the sums as measured."""
    draws, rate = 200, 0.5
    noise = discrete_laplace(Fraction(rate), draws * levels.rows, SystemRandomness()).reshape(
        draws, levels.rows
    )
    variance = 1.0 / (math.cosh(rate) - 1.0)
    _, estimates = dense(levels, times)
    errors = noise @ estimates.T
    for start, size, many in zip(levels.starts, levels.sizes, times, strict=True):
        expected = variance * float((estimates[start : start + size] ** 2).sum(axis=1).mean())
        found = (errors[:, start : start + size] ** 2).mean(axis=1)
        spread = found.std(ddof=1) / math.sqrt(draws)
        assert abs(found.mean() - expected) < 8.0 * spread
        assert expected <= variance / many**2 * (1.0 + 1e-9)


# -- through the session -----------------------------------------------------------------------------------------
STATES, BANDS = ["CA", "NY", "TX", None], [0, 1, 2]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    index = np.arange(900)
    return pd.DataFrame(
        {
            "state": np.array(["CA", "NY", "TX", None, "ZZ"], dtype=object)[index * 7 % 5],
            "band": index * 11 % 3,
            "x": (index * 37 % 101).astype(float),
            "i": index % 8,
        }
    )


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def session(request: pytest.FixtureRequest, people: pd.DataFrame) -> privsql.Session:
    columns = {
        "state": {"values": ["CA", "NY", "TX", None]},
        "band": {"range": [0, 2]},
        "x": {"range": [0, 100]},
        "i": {"range": [2, 6]},
    }
    return privsql.connect(people, {"neighbours": request.param, "tables": {"df": {"columns": columns}}})


SQL = """SELECT state, band, GROUPING(state, band) AS g, COUNT(*) AS n, SUM(i) AS s, AVG(x) AS a, COUNT(x) AS c, SUM(x) AS t
         FROM df GROUP BY {}"""


def truth(people: pd.DataFrame) -> pd.DataFrame:
    known = people[people["state"].isin(["CA", "NY", "TX"]) | people["state"].isna()].copy()
    known["state"] = known["state"].where(known["state"].notna(), "NULL")
    known["i"] = known["i"].clip(2, 6)
    parts = []
    for kept, number in ((["state", "band"], 0), (["state"], 1), (["band"], 2), ([], 3)):
        grouped = known.groupby(kept or (lambda _: 0))
        part = grouped.agg(n=("x", "size"), s=("i", "sum"), a=("x", "mean"), t=("x", "sum")).reset_index()
        parts.append(part.assign(g=number))
    return pd.concat(parts).assign(c=lambda each: each["n"])


@pytest.mark.parametrize(
    "how",
    ["ROLLUP (state, band)", "CUBE (state, band)", "band, ROLLUP (state)", "GROUPING SETS ((state), (band))"],
)
def test_margins_agree_exactly(session: privsql.Session, how: str) -> None:
    """Every total is the sum of what it is a total of, to the last unit; whole numbers stay whole."""
    for epsilon in (0.3, 3.0):
        frame = session.query(SQL.format(how), epsilon=epsilon).df()
        for name in ("n", "s", "c"):
            assert frame[name].dtype == np.int64
        finest = frame[frame["g"] == 0]
        if finest.empty:
            margins = frame.groupby("g")[["n", "s", "c"]].sum()
            assert (margins.nunique() == 1).all()
            continue
        for number, kept in ((1, "state"), (2, "band")):
            margin = frame[frame["g"] == number]
            if not margin.empty:
                sums = finest.groupby(kept, dropna=False, sort=False)[["n", "s", "c", "t"]].sum()
                found = margin.set_index(kept)[["n", "s", "c", "t"]].reindex(sums.index)
                assert (found[["n", "s", "c"]] == sums[["n", "s", "c"]]).all(axis=None)
                np.testing.assert_allclose(found["t"], sums["t"], rtol=1e-9, atol=1e-6)
        if (frame["g"] == 3).any():
            total = frame[frame["g"] == 3].iloc[0]
            assert (total[["n", "s", "c"]] == finest[["n", "s", "c"]].sum()).all()


def test_a_null_key_and_a_total_are_two_rows(session: privsql.Session, people: pd.DataFrame) -> None:
    frame = session.query(
        "SELECT state, GROUPING(state) AS g, COUNT(*) AS n FROM df GROUP BY ROLLUP (state)", epsilon=10_000
    ).df()
    assert frame["state"].isna().tolist() == [False, False, False, True, True]
    assert frame["g"].tolist() == [0, 0, 0, 0, 1]
    assert frame["n"].tolist()[3:] == [
        int(people["state"].isna().sum()),
        int((people["state"] != "ZZ").sum()),
    ]


def test_at_a_large_epsilon_levels_match_plain_sql(session: privsql.Session, people: pd.DataFrame) -> None:
    frame = session.query(SQL.format("CUBE (state, band)"), epsilon=10_000).df()
    frame["state"] = frame["state"].where(frame["state"].notna() | (frame["g"] >= 2), "NULL")
    for _, row in truth(people).iterrows():
        same = frame[frame["g"] == row["g"]]
        for key in ("state", "band"):
            if isinstance(row[key], str) or row[key] == row[key]:
                same = same[same[key] == row[key]]
        (mine,) = same.to_dict("records")
        assert mine["n"] == mine["c"] == row["n"]
        assert mine["s"] == pytest.approx(row["s"], abs=1)
        assert mine["a"] == pytest.approx(row["a"], abs=0.2)
        assert mine["t"] == pytest.approx(row["t"], abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_cover(session: privsql.Session, people: pd.DataFrame, draws: int) -> None:
    """One row of every level in each of many independent draws; the shown number always lies in its
    interval.
    """
    exact = truth(people)
    first = session.query(SQL.format("CUBE (state, band)"), epsilon=1.0, show_all=True).df()
    rows, real = [], []
    for g, state, band in ((0, "CA", 1), (1, "TX", None), (2, None, 2), (3, None, None)):
        rows.append(
            int(np.flatnonzero((first["g"] == g) & _is(first["state"], state) & _is(first["band"], band))[0])
        )
        real.append(exact[(exact["g"] == g) & _is(exact["state"], state) & _is(exact["band"], band)].iloc[0])
    inside = {(row, name, level): 0 for row in rows for name in "nsact" for level in (0.5, 0.95)}
    for _ in range(draws):
        answer = session.query(SQL.format("CUBE (state, band)"), epsilon=1.0, fresh=True, show_all=True)
        for level in (0.5, 0.95):
            table = answer.intervals(level)
            for name in "nsact":
                low, high = table[f"{name}_low"].to_numpy(float), table[f"{name}_high"].to_numpy(float)
                assert ((low - 1e-9 <= table[name]) & (table[name] <= high + 1e-9)).all()
                for row, true in zip(rows, real, strict=True):
                    inside[row, name, level] += low[row] - 1e-4 <= float(true[name]) <= high[row] + 1e-4
    for (row, name, level), count in inside.items():
        assert stats.binomtest(count, draws, level, alternative="less").pvalue > FALSE_ALARM, (
            row,
            name,
            level,
            count,
        )


def _is(column: pd.Series, value: object) -> pd.Series:
    return column.isna() if value is None else column == value


@pytest.mark.parametrize("draws", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_never_worse_than_separate_answers(
    session: privsql.Session, people: pd.DataFrame, draws: int
) -> None:
    """At equal epsilon: each level measured alone with a third of it, against all of them together."""
    exact = truth(people)
    known_rows = "FROM df WHERE state IN ('CA', 'NY', 'TX')"
    questions = {
        0: f"SELECT state, band, COUNT(*) AS n {known_rows} GROUP BY ALL",
        1: f"SELECT state, COUNT(*) AS n {known_rows} GROUP BY ALL",
        3: f"SELECT COUNT(*) AS n {known_rows}",
    }
    together = f"SELECT state, band, GROUPING(state, band) AS g, COUNT(*) AS n {known_rows} GROUP BY ROLLUP (state, band)"
    known = exact[exact["state"] != "NULL"]
    real = {0: known[known["g"] == 0]["n"].to_numpy(), 1: known[known["g"] == 1]["n"].to_numpy()}
    real[3] = np.array([real[1].sum()])
    errors = {(g, way): [] for g in questions for way in ("apart", "together")}
    for _ in range(draws):
        answer = session.query(together, epsilon=0.6, fresh=True).df()
        for g, sql in questions.items():
            apart = session.query(sql, epsilon=0.2, fresh=True).df()["n"].to_numpy()
            errors[g, "apart"].append(float(((apart - real[g]) ** 2).mean()))
            errors[g, "together"].append(
                float(((answer[answer["g"] == g]["n"].to_numpy() - real[g]) ** 2).mean())
            )
    for g in questions:
        apart, joint = np.array(errors[g, "apart"]), np.array(errors[g, "together"])
        slack = 6.0 * math.sqrt(apart.var(ddof=1) / draws + joint.var(ddof=1) / draws)
        assert joint.mean() <= apart.mean() + slack, (g, joint.mean(), apart.mean())
    plan = session.explain(together, epsilon=0.6)
    for (
        g,
        sql,
    ) in questions.items():  # and before anything is spent: the noise that is added is no more than theirs
        alone = session.explain(sql, epsilon=0.2).measurements[0]
        (mine,) = plan.measurements
        times = mine.sensitivity.total_times if g == 3 else 1
        assert mine.noise_scale / times <= alone.noise_scale


def test_explain_says_what_is_gained(session: privsql.Session) -> None:
    plan = session.explain(SQL.format("ROLLUP (state, band)"), epsilon=1.0)
    text = str(plan)
    assert "in the sets (state, band), (state), ()" in text
    assert "least squares over all sets makes them agree" in text
    assert plan.keys == ["state", "band", "privsql_set"]
    answer = session.query(SQL.format("ROLLUP (state, band)"), epsilon=1.0)
    assert answer.receipt["least_squares_over"] == ["(state, band)", "(state)", "()"]
    assert answer.receipt["projected"] == {"nonnegative": [], "consistent": []}


def test_gaussian_noise_is_fitted_too(session: privsql.Session, people: pd.DataFrame) -> None:
    answer = session.query(SQL.format("CUBE (state, band)"), epsilon=1.0, delta=1e-6, mechanism="gaussian")
    assert all(isinstance(each, GaussianMeasurement) for each in answer.plan.measurements)
    (count,) = session.explain(
        "SELECT state, band, COUNT(*) AS n FROM df GROUP BY CUBE (state, band)", epsilon=1.0
    ).measurements
    # three sets in which one person moves two cells by 1, and a total that is measured twice; or four cells by 1
    assert count.sensitivity.l2_squared == (3 * 2 + 2**2 if count.l1 == 8 else 4)
    frame = answer.df()
    assert (
        frame[frame["g"] == 0]["n"].sum()
        == frame[frame["g"] == 3]["n"].iloc[0]
        == frame[frame["g"] == 2]["n"].sum()
    )
    table = answer.intervals(0.999_999)
    (total,) = table[table["g"] == 3].to_dict("records")
    assert total["n_low"] <= int((people["state"] != "ZZ").sum()) <= total["n_high"]


def test_units_are_bounded_cell_by_cell() -> None:
    pages, days = np.tile(np.arange(30) % 3, 200), np.tile(np.arange(30) % 2, 200)
    visits = pd.DataFrame({"who": np.repeat(np.arange(200), 30), "page": pages, "m": days})
    columns = {"page": {"range": [0, 2]}, "m": {"range": [0, 1]}}
    policy = {"tables": {"df": {"unit": "who", "max_groups": 2, "max_rows": 4, "columns": columns}}}
    sql = "SELECT page, m, GROUPING(page, m) AS g, COUNT(*) AS n FROM df GROUP BY ROLLUP (page, m)"
    with privsql.connect(visits, policy) as session:
        plan = session.explain(sql, epsilon=1.0)
        (count,) = plan.measurements
        assert (count.l1, count.linf) == (
            3 * 2 * 2 * 4,
            2 * 2 * 4,
        )  # three sets, replace-one, 2 keys of 4 rows; the total twice
        pages = session.explain(
            "SELECT page, m, COUNT(*) AS n FROM df GROUP BY page, ROLLUP (m)", epsilon=1.0
        )
        assert pages.measurements[0].linf == 2 * 4  # both of a unit's cells may be of one page
        frame = session.query(sql, epsilon=10_000).df()
        assert frame[frame["g"] == 3]["n"].iloc[0] == 200 * 2 * 4 == frame[frame["g"] == 0]["n"].sum()
        session.prepare("df")
        stored = session.explain(sql, epsilon=1.0)
        assert stored.measurements[0].l1 == 3 * 2 * 8
        assert session.query(sql, epsilon=10_000).df()["n"].sum() == 3 * 200 * 8


def test_keys_that_nobody_declared_have_no_totals(session: privsql.Session) -> None:
    for delta in (0.0, 1e-6):
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.explain("SELECT x, COUNT(*) AS n FROM df GROUP BY ROLLUP (x)", epsilon=1.0, delta=delta)
        assert caught.value.code == "refused-unknown-keys"
        assert "delta" not in caught.value.suggestion


def test_long_lists_of_keys_are_refused() -> None:
    frame = pd.DataFrame({"k": np.arange(0, 60_000, 3)})
    with privsql.connect(
        frame, {"tables": {"df": {"columns": {"k": {"values": list(range(0, 60_000, 3))}}}}}
    ) as session:
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.explain("SELECT k, COUNT(*) AS n FROM df GROUP BY ROLLUP (k)", epsilon=1.0)
        assert caught.value.code == "refused-many-keys"
        assert session.explain("SELECT k, COUNT(*) AS n FROM df GROUP BY k", epsilon=1.0).cells == 20_000


@pytest.mark.slow
def test_within_finds_an_epsilon_for_all_levels(session: privsql.Session) -> None:
    sql = "SELECT state, band, COUNT(*) AS n FROM df GROUP BY ROLLUP (state, band)"
    plan = session.explain(sql, within=30)
    assert plan.accuracy(1 - 0.05 / (plan.cells * 3))["n"] <= 30
    assert plan.repriced(plan.loss * 9 / 10).accuracy(1 - 0.05 / (plan.cells * 3))["n"] > 30
