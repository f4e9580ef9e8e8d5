"""nonnegative=True and consistent=True: the nearest numbers that could be true, on request only; intervals stay true."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import privsql
from privsql.algebra.expressions import Call, Column, Literal
from privsql.analysis.implied import exhaust, implies
from privsql.privacy.least_squares import fitted
from privsql.privacy.projections import (
    PartsOfWhole,
    nonnegative_cells,
    onto_relations,
    onto_simplex,
    whole_nonnegative,
    whole_within,
)
from privsql.types import BOOLEAN, integer
from tests.planning.test_levels import SHAPES, Levels, dense

FALSE_ALARM = 1e-9
RANDOM = np.random.default_rng(5)


# -- the pure numerics -----------------------------------------------------------------------------------------
def test_onto_a_simplex() -> None:
    for size in (1, 2, 50, 1000):
        for total in (0.5, 30.0, 4000.0):
            values = 20.0 * RANDOM.normal(size=size)
            found = onto_simplex(values, total)
            assert found.min() >= 0.0
            assert found.sum() == pytest.approx(total)
            lowered = values - found  # all that are positive are lowered by the same, others by less
            assert np.ptp(lowered[found > 0.0]) < 1e-9
            assert (lowered[found == 0.0] <= lowered[found > 0.0].max() + 1e-9).all()
    assert (onto_simplex(np.array([3.0, -9.0]), -6.0) == 0.0).all()


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_no_cell_is_negative_and_levels_are_fitted(levels: Levels, times: tuple[int, ...]) -> None:
    """Against a solver of quadratic problems, the total being held by a large weight."""
    matrix, _ = dense(levels, times)
    scaled = levels.scale(times)[:, None] * matrix
    cells = RANDOM.poisson(1.5, size=levels.cells) * (RANDOM.random(levels.cells) < 0.3)
    _assert_fitted(levels, times, scaled, scaled @ cells + RANDOM.laplace(size=levels.rows, scale=3.0))


@pytest.mark.parametrize(("levels", "times"), SHAPES)
def test_negative_cells_with_nonnegative_sums(levels: Levels, times: tuple[int, ...]) -> None:
    """Found by the canary fuzzer: no cell was free to move at first, and a division by zero came after the charge."""
    matrix, _ = dense(levels, times)
    scaled = levels.scale(times)[:, None] * matrix
    measured = 50.0 + RANDOM.random(levels.rows)
    finest = next((s for s, size in enumerate(levels.sizes) if size == levels.cells), None)
    if finest is not None:
        measured[levels.starts[finest] : levels.starts[finest] + levels.cells] = (
            -RANDOM.random(levels.cells) - 1.0
        )
    _assert_fitted(levels, times, scaled, measured)


def _assert_fitted(levels: Levels, times: tuple[int, ...], scaled: np.ndarray, measured: np.ndarray) -> None:
    free = fitted(levels, times, measured)
    found = nonnegative_cells(levels, times, measured, free)
    total = max(0.0, float(free.sum()))
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(total, abs=1e-6)
    held = np.vstack([scaled, 1e5 * np.ones(levels.cells)])
    best, _ = optimize.nnls(held, np.concatenate([measured, [1e5 * total]]), maxiter=100_000)
    misfit, least = (float(((scaled @ each - measured) ** 2).sum()) for each in (found, best))
    assert misfit <= least * (1.0 + 1e-3) + 1e-3


def test_rounding_leaves_nothing_negative_and_keeps_the_total() -> None:
    values = onto_simplex(5.0 * RANDOM.normal(size=500), 321.4)
    for order in (None, RANDOM.permutation(500)):
        whole = whole_nonnegative(values, order)
        assert whole.min() >= 0
        assert whole.sum() == 321
        assert np.abs(whole - values).max() <= 1.0


RELATIONS = [
    [PartsOfWhole((1,), 0)],
    [PartsOfWhole((1, 2), 0), PartsOfWhole((3,), 1)],
    [PartsOfWhole((1, 2, 3), 0, exactly=True)],
    [PartsOfWhole((1, 2), 0, exactly=True), PartsOfWhole((3,), 1), PartsOfWhole((3,), 2)],
    [PartsOfWhole((1,), 0), PartsOfWhole((2,), 0), PartsOfWhole((3,), 1), PartsOfWhole((3,), 2)],
]


@pytest.mark.parametrize("relations", RELATIONS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_relations_hold_and_the_numbers_are_the_nearest(
    relations: list[PartsOfWhole], nonnegative: bool
) -> None:
    values, variances = 4.0 * RANDOM.normal(size=(4, 30)), [1.0, 2.0, 0.5, 3.0]
    found = onto_relations(values, variances, relations, nonnegative)
    whole = whole_within(found, relations)
    for each in relations:
        gap = found[list(each.parts)].sum(axis=0) - found[each.whole]
        assert (np.abs(gap) if each.exactly else gap).max() < 1e-6
        gap = whole[list(each.parts)].sum(axis=0) - whole[each.whole]
        assert (gap == 0 if each.exactly else gap <= 0).all()
    assert np.abs(whole - found).max() <= 2.0
    if nonnegative:
        assert found.min() > -1e-6
        assert whole.min() >= 0
    for cell in range(5):
        limits = [
            {
                "type": "eq" if each.exactly else "ineq",
                "fun": lambda z, e=each: z[e.whole] - z[list(e.parts)].sum(),
            }
            for each in relations
        ]
        bounds = [(0.0, None)] * 4 if nonnegative else None
        best = optimize.minimize(
            lambda z, c=cell: float((((z - values[:, c]) ** 2) / variances).sum()), values[:, cell], bounds=bounds,
            constraints=limits, method="SLSQP", options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        np.testing.assert_allclose(found[:, cell], best.x, atol=1e-4)


def test_a_projection_is_never_further_from_the_truth() -> None:
    truth, relations = np.array([[10.0], [6.0], [4.0], [1.0]]), RELATIONS[3]
    variances = [2.0, 1.0, 1.0, 3.0]
    values = truth + RANDOM.laplace(size=(4, 5000)) * 5.0
    found = onto_relations(values, variances, relations, nonnegative=True)
    before, after = (
        ((each - truth) ** 2 / np.array(variances)[:, None]).sum(axis=0) for each in (values, found)
    )
    assert (after <= before + 1e-6).all()


AGE, SMOKER = Column("age", integer(-(2**31), 2**31 - 1)), Column("smoker", BOOLEAN)


def test_relations_between_counts_are_recognized() -> None:
    def over(value: int, operator: str = ">") -> Call:
        return Call(operator, (AGE, Literal(value, integer(value, value))), BOOLEAN)

    both = Call("and", (SMOKER, over(30)), BOOLEAN)
    no, unknown = Call("not", (SMOKER,), BOOLEAN), Call("is_null", (SMOKER,), BOOLEAN)
    listed = Call("in", (AGE, *(Literal(each, integer(each, each)) for each in (31, 40))), BOOLEAN)
    for first, second in (
        (both, SMOKER),
        (both, over(20)),
        (both, None),
        (over(30), over(30, ">=")),
        (listed, over(30)),
        (over(5, "="), over(5, "<=")),
    ):
        assert implies(first, second)
    for first, second in (
        (SMOKER, both),
        (over(20), over(30)),
        (None, SMOKER),
        (over(30, ">="), over(30)),
        (over(30), listed),
        (over(3, "<"), over(1)),
    ):
        assert not implies(first, second)
    assert exhaust([SMOKER, no, unknown], None, lambda _: False)
    assert exhaust([over(3, "<"), over(3, ">=")], None, lambda _: True)
    assert exhaust([no, SMOKER], None, lambda _: True)
    assert not exhaust([SMOKER, no], None, lambda _: False)
    assert not exhaust([over(3, "<"), over(4, ">=")], None, lambda _: True)
    assert not exhaust([SMOKER, unknown], None, lambda _: True)


# -- through the session -----------------------------------------------------------------------------------------
CELLS = 400
POLICY = {
    "tables": {
        "df": {
            "columns": {
                "k": {"range": [0, CELLS - 1]},
                "x": {"range": [0, 10]},
                "d": {"range": [-5, 5]},
            }
        }
    }
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    index = np.arange(3000)
    return pd.DataFrame({
        "k": (index**2 // 40) % CELLS % 90, "x": index % 11, "d": index % 11 - 5, "p": index % 3 == 0,
        "q": pd.array([[True, False, None][each] for each in index % 3], dtype="boolean"), "age": index % 60,
    })  # fmt: skip


@pytest.fixture(scope="module")
def session(frame: pd.DataFrame) -> privsql.Session:
    return privsql.connect(frame, POLICY)


COUNTS = """SELECT k, COUNT(*) AS n, COUNT(*) FILTER (WHERE q) AS yes, COUNT(*) FILTER (WHERE NOT q) AS no,
            COUNT(*) FILTER (WHERE q IS NULL) AS unknown, COUNT(*) FILTER (WHERE age > 50 AND q) AS old, SUM(x) AS s, SUM(d) AS t
            FROM df GROUP BY k"""


def test_projections_are_opt_in(session: privsql.Session) -> None:
    answer = session.query(COUNTS, epsilon=0.7)
    shown = answer.df()
    assert (shown["n"] < 0).any()
    assert (shown["yes"] > shown["n"]).any()
    for name in ("yes", "no", "unknown", "old", "t"):
        assert any((shown[name] == each).all() for each in answer.noisy.noisy_columns.values())
    assert answer.receipt["projected"] == {"nonnegative": [], "consistent": []}


def test_not_negative_and_totals_are_kept(session: privsql.Session) -> None:
    plain, moved = (session.query(COUNTS, epsilon=0.7, nonnegative=asked) for asked in (False, True))
    assert moved.stored  # the same noisy cells: nothing more is released, and nothing is charged
    assert moved.receipt["charged"] == 0.0
    assert moved.receipt["projected"]["nonnegative"] == ["n", "yes", "no", "unknown", "old", "s"]
    before, after = plain.df(), moved.df()
    for name in ("n", "yes", "no", "unknown", "old", "s"):
        assert after[name].min() == 0
        assert after[name].dtype == np.int64
        # each cell of the first two is computed from two noisy columns, and rounded by itself as long as nothing is asked
        assert abs(after[name].sum() - max(0, before[name].sum())) <= (60 if name in ("n", "s") else 0)
    assert (after["t"] == before["t"]).all()  # may be negative in truth
    assert "at least 0, with the same totals" in str(moved.plan)


def test_parts_fit_into_their_whole(session: privsql.Session) -> None:
    for nonnegative in (False, True):
        answer = session.query(COUNTS, epsilon=0.7, consistent=True, nonnegative=nonnegative)
        shown = answer.df()
        assert (shown["yes"] + shown["no"] + shown["unknown"] == shown["n"]).all()
        assert (shown["old"] <= shown["yes"]).all()
        assert not nonnegative or shown[["n", "yes", "no", "unknown", "old"]].min(axis=None) >= 0
        assert answer.receipt["projected"]["consistent"] == ["yes + no + unknown = n", "old <= yes"]
        assert json.loads(json.dumps(answer.receipt)) == answer.receipt


def test_clipping_would_have_been_biased(frame: pd.DataFrame) -> None:
    """A session of its own: what others have been asked is combined with the answer, and has less noise.

    Laplace of scale 20 in 4,000 cells, 90 of them not empty: their sum scatters by 1,789 and passes 12,500 with a chance of
    5e-11; clipping adds 39,301, scattered by 1,107, and stays below 30,000 with a chance of 1e-18 (Chernoff's bounds).
    """
    cells = 10 * CELLS
    session = privsql.connect(frame, {"tables": {"df": {"columns": {"k": {"range": [0, cells - 1]}}}}})
    sql = "SELECT k, COUNT(*) AS n FROM df GROUP BY k"
    answer = session.query(sql, epsilon=0.1)
    assert answer.plan.measurements[0].scale == 20.0
    kept = session.query(sql, epsilon=0.1, nonnegative=True).df()["n"]
    assert len(kept) == cells and kept.min() == 0
    assert abs(kept.sum() - len(frame)) < 12_500 < 30_000 < answer.df()["n"].clip(lower=0).sum() - len(frame)


@pytest.mark.parametrize(
    "asked", [{"nonnegative": True}, {"consistent": True}, {"nonnegative": True, "consistent": True}]
)
def test_intervals_keep_coverage_and_contain_the_shown_number(
    session: privsql.Session, frame: pd.DataFrame, asked: dict[str, bool]
) -> None:
    answer = session.query(COUNTS, epsilon=0.7, fresh=True, **asked)
    q = frame["q"].astype("object")
    real = {
        "n": frame, "yes": frame[q == True], "no": frame[q == False], "unknown": frame[q.isna()],  # noqa: E712
        "old": frame[(q == True) & (frame["age"] > 50)],  # noqa: E712
    }  # fmt: skip
    for level in (0.5, 0.9):
        table = answer.intervals(level)
        for name, rows in real.items():
            true = rows.groupby("k").size().reindex(range(CELLS), fill_value=0).to_numpy()
            low, high = table[f"{name}_low"].to_numpy(float), table[f"{name}_high"].to_numpy(float)
            assert ((low <= table[name]) & (table[name] <= high)).all()
            inside = int(((low <= true) & (true <= high)).sum())  # the noise of the cells is independent
            assert stats.binomtest(inside, CELLS, level, alternative="less").pvalue > FALSE_ALARM, (
                name,
                level,
            )
        assert "nonnegative" not in asked or (table["n_low"] >= 0).all()


def test_rollup_without_negative_numbers(session: privsql.Session, frame: pd.DataFrame) -> None:
    sql = "SELECT k // 100 AS h, k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM df GROUP BY ROLLUP (h, k)"
    plain = session.query(sql, epsilon=0.5).df()
    answer = session.query(sql, epsilon=0.5, nonnegative=True)
    shown = answer.df()
    finest, middle, total = (
        shown[shown["k"].notna()],
        shown[shown["k"].isna() & shown["h"].notna()],
        shown.iloc[-1],
    )
    assert (plain["n"] < 0).any()
    for name in ("n", "s"):
        assert shown[name].min() >= 0
        assert finest[name].sum() == middle[name].sum() == total[name]
        assert (finest.groupby("h")[name].sum().to_numpy() == middle[name].to_numpy()).all()
        assert abs(total[name] - plain.iloc[-1][name]) <= 1
    table = answer.intervals(0.9)
    assert ((table["n_low"] <= table["n"]) & (table["n"] <= table["n_high"])).all()
    sizes = frame.groupby("k").size().reindex(range(CELLS), fill_value=0)
    low, high = table["n_low"][:CELLS], table["n_high"][:CELLS]
    inside = int(((low <= sizes) & (sizes <= high)).sum())
    assert inside > 0.8 * CELLS


def test_parts_over_several_sets_are_refused(session: privsql.Session) -> None:
    sql = "SELECT p, COUNT(*) AS n, COUNT(*) FILTER (WHERE q) AS yes FROM df GROUP BY ROLLUP (p)"
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.explain(sql, epsilon=1.0, consistent=True)
    assert caught.value.code == "refused-consistent"
    alone = "SELECT p, COUNT(*) AS n FROM df GROUP BY ROLLUP (p)"
    assert session.explain(alone, epsilon=1.0, consistent=True).consistent


def test_bounded_units_prove_fewer_relations() -> None:
    """Several counts in one measurement share the rows of a unit that are used: a part may then exceed its whole."""
    frame = pd.DataFrame(
        {"who": np.arange(300) // 5, "p": np.arange(300) % 2 == 0, "q": np.arange(300) % 3 == 0}
    )
    policy = {"tables": {"df": {"unit": "who", "max_rows": 1}}}
    filters = {"a": "p", "b": "NOT p", "c": "NOT p AND q"}
    parts = ", ".join(f"COUNT(*) FILTER (WHERE {test}) AS {name}" for name, test in filters.items())
    sql = f"SELECT COUNT(*) AS n, {parts} FROM df"
    with privsql.connect(frame, policy) as session:
        plan = session.explain(sql, epsilon=1.0, consistent=True)
        exact = session.query(sql, epsilon=10_000).df().iloc[0]
        assert (
            exact["a"] + exact["b"] == 60 and exact["c"] > exact["b"]
        )  # a unit's one row is counted under p, or under NOT p
        assert plan.projections["consistent"] == ["a <= n", "b <= n", "c <= n"]


def test_invalid_projection_arguments_are_refused(session: privsql.Session, frame: pd.DataFrame) -> None:
    for name in ("nonnegative", "consistent"):
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.query("SELECT COUNT(*) AS n FROM df", epsilon=1.0, **{name: "yes"})
        assert caught.value.code == "argument-projection"
    small = frame.head(40).copy()
    out = small.dp.query(
        "SELECT k, COUNT(*) AS n FROM df GROUP BY k", epsilon=1.0, ranges={"k": (0, 200)}, nonnegative=True
    )
    assert out["n"].min() == 0
    assert out.dp.receipt["projected"]["nonnegative"] == ["n"]
    label = session.query(
        "SELECT k FROM df GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1",
        epsilon=1.0,
        nonnegative=True,
        consistent=True,
    )
    assert len(label.df()) == 1


def test_on_the_command_line(frame: pd.DataFrame, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    from privsql.cli import main

    frame[["p", "x"]].to_csv(tmp_path / "people.csv", index=False)
    sql = "SELECT p, COUNT(*) AS n, COUNT(*) FILTER (WHERE x > 5) AS m FROM people GROUP BY p"
    assert (
        main(
            [
                "query",
                str(tmp_path / "people.csv"),
                sql,
                "--epsilon",
                "0.001",
                "--nonnegative",
                "--consistent",
                "--format",
                "json",
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert all(0 <= row["m"] <= row["n"] for row in answer["rows"])
    assert answer["receipt"]["projected"] == {"nonnegative": ["n", "m"], "consistent": ["m <= n"]}
