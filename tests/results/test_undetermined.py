"""Cells with too few rows to say anything are NULL, wherever an answer is read, and only those; show_all=True shows them."""

from __future__ import annotations

import datetime as dt
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.cli import main
from privsql.engines.duckdb.calculator import calculator
from privsql.noise import add_noise
from privsql.planning.aggregates.quantile_points import QuantilePoint
from privsql.planning.rewrites.guarded import guarded
from privsql.requests.stage import Stage
from privsql.results.finish import finish
from privsql.tables import NoisyTable
from privsql.types import Kind

FALSE_ALARM = 1e-9
SURE = 10_000.0
KEYS = ["full", "empty", "lone"]
COLUMNS = {
    "g": {"values": KEYS, "nullable": False}, "x": {"range": [0, 10]}, "y": {"range": [-5, 5]},
    "i": {"range": [1, 40]}, "d": {"range": ["2024-01-01", "2024-12-31"]},
}  # fmt: skip
SESSIONS: dict[str, Any] = {"neighbours": "replace-one", "tables": {"df": {"columns": COLUMNS}}}


@pytest.fixture
def noisy() -> None:
    """Asked for by tests that need the noise as it is; all others get noise of 0, and the same bounds on it."""


@pytest.fixture(autouse=True)
def _quiet(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "noisy" not in request.fixturenames:
        monkeypatch.setattr(
            add_noise, "discrete_laplace", lambda rate, size, source: np.zeros(size, dtype=np.int64)
        )


def frame(full: int = 4000, lone: int = 1) -> pd.DataFrame:
    dice = np.random.default_rng(5)
    size = full + lone
    return pd.DataFrame(
        {
            "g": ["full"] * full + ["lone"] * lone,
            "x": dice.uniform(2, 8, size),
            "y": dice.uniform(1, 4, size),
            "i": dice.integers(5, 30, size),
            "d": pd.Timestamp("2024-03-01") + pd.to_timedelta(dice.integers(0, 90, size), "D"),
            "p": dice.random(size) < 0.4,
        }
    )


def opened(data: pd.DataFrame | None = None, **policy: Any) -> privsql.Session:
    return privsql.connect(frame() if data is None else data, {**SESSIONS, **policy})


def by_key(answer: privsql.Answer) -> dict[str, Any]:
    return {row[0]: row[1:] for row in answer.fetchall()}


UNDETERMINED = [  # what is asked of each cell, and what it is said to be called where it is told
    "AVG(x)", "AVG(x) - 3", "round(AVG(x), 1)", "VAR_POP(x)", "VAR_SAMP(x)", "STDDEV(x)", "COVAR_SAMP(x, y)", "CORR(x, x)",
    "REGR_SLOPE(x, x)", "COUNT(*) FILTER (WHERE p) / COUNT(*)", "100.0 * COUNT(*) FILTER (WHERE p) / COUNT(*)",
    "SUM(x) / COUNT(*)", "100.0 * SUM(x) / COUNT(*)", "SUM(y) / NULLIF(COUNT(*), 0)", "SUM(i) // COUNT(*)",
    "SUM(y) / CASE WHEN COUNT(*) <> 0 THEN COUNT(*) END", "AVG(x) > 3", "1 + SUM(x) / SUM(i)",
]  # fmt: skip


@pytest.mark.parametrize("asked", UNDETERMINED)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_an_empty_cell_is_null(asked: str, relation: str) -> None:
    session = opened(neighbours=relation)
    sql = f"SELECT g, {asked} AS v FROM df GROUP BY g"
    answer = session.query(sql, epsilon=SURE)
    found = by_key(answer)
    assert found["empty"] == (None,)
    assert found["full"] != (None,)
    assert answer.receipt["undetermined"]["v"] >= 1
    shown = session.query(sql, epsilon=SURE, show_all=True)
    assert shown.stored and shown.receipt["charged"] == 0
    assert by_key(shown)["full"] == found["full"]


@pytest.mark.parametrize(
    "asked", ["VAR_SAMP(x)", "STDDEV(x)", "COVAR_SAMP(x, y)", "CORR(x, y)", "REGR_SLOPE(x, y)"]
)
def test_aggregates_that_need_two_rows_are_null_for_one(asked: str) -> None:
    found = by_key(opened().query(f"SELECT g, {asked} AS v, COUNT(*) AS n FROM df GROUP BY g", epsilon=SURE))
    assert found["lone"] == (None, 1)


def test_a_table_that_is_known_to_have_one_row() -> None:
    """Its number of rows is public, and its variance is 0; its sample variance is not defined."""
    asked = "SELECT VAR_POP(i) AS p, VAR_SAMP(i) AS s FROM df"
    ((whole, sample),) = opened(frame(0, 1)).query(asked, epsilon=SURE).fetchall()
    assert whole == pytest.approx(0, abs=0.5) and sample is None


@pytest.mark.parametrize("asked", ["AVG(x)", "SUM(x) / COUNT(*)", "COUNT(*) FILTER (WHERE p) / COUNT(*)"])
def test_one_row_suffices_without_noise(asked: str) -> None:
    assert by_key(opened().query(f"SELECT g, {asked} AS v FROM df GROUP BY g", epsilon=SURE))["lone"] != (
        None,
    )


@pytest.mark.parametrize(
    "asked", ["COUNT(*)", "SUM(x)", "COUNT(*) - 5", "COUNT(DISTINCT i)", "SUM(x) / 4", "SUM(x) / i0"]
)
def test_counts_and_sums_are_shown_always(asked: str) -> None:
    """Also divided by what is public."""
    asked = asked.replace("i0", "length(g)")
    for epsilon in (0.01, SURE):
        answer = opened().query(f"SELECT g, {asked} AS v FROM df GROUP BY g", epsilon=epsilon)
        assert all(each != (None,) for each in by_key(answer).values())
        assert answer.receipt["undetermined"] == {} and not any(
            "too few rows" in each for each in answer.warnings
        )


def test_a_whole_table_has_no_exception() -> None:
    asked = "SELECT AVG(x) AS a, COUNT(*) FILTER (WHERE p) / COUNT(*) AS share, VAR_SAMP(x) AS v, COUNT(*) AS n FROM df"
    session = opened(frame(3, 0))
    ((*told, _),) = session.query(asked, epsilon=0.05).fetchall()
    assert told == [None, None, None]
    ((*told, _),) = session.query(asked, epsilon=0.05, show_all=True).fetchall()
    assert None not in told
    assert None not in opened().query(asked, epsilon=5).fetchall()[0]


def test_a_negative_divisor_is_undetermined(noisy: None) -> None:
    """Of many empty cells some counts lie below 0 with their whole interval: their shares would be positive nonsense."""
    data = pd.DataFrame({"k": [0], "x": [1.0]})
    columns = {"k": {"range": [0, 4999], "nullable": False}, "x": {"range": [0, 1]}}
    session = privsql.connect(data, {"tables": {"df": {"columns": columns}}})
    answer = session.query("SELECT k, SUM(x) / COUNT(*) AS v, COUNT(*) AS n FROM df GROUP BY k", epsilon=1)
    ends = answer.intervals()
    below = ends["n_high"] < 0
    assert below.sum() > 10
    assert ends.loc[below, "v"].isna().all()


def test_having_and_order_by_see_null() -> None:
    session = opened()
    for clause in ("HAVING AVG(x) > -1", "HAVING AVG(x) < 100 OR AVG(x) IS NULL AND g = 'empty'"):
        rows = by_key(session.query(f"SELECT g, AVG(x) AS a FROM df GROUP BY g {clause}", epsilon=1))
        assert set(rows) == {"full"} | ({"empty"} if "IS NULL" in clause else set()), clause
    rows = session.query(
        "SELECT g FROM df GROUP BY g HAVING SUM(x) / COUNT(*) IS NULL ORDER BY g DESC", epsilon=1
    ).fetchall()
    assert rows == [("lone",), ("empty",)]
    for place, order in ((0, "NULLS FIRST"), (-1, "NULLS LAST")):
        sql = f"SELECT g, r FROM (SELECT g, SUM(x) / COUNT(*) AS r FROM df GROUP BY g) q ORDER BY r {order} LIMIT 3"
        assert session.query(sql, epsilon=1).fetchall()[place][1] is None


def test_coalesce_of_an_undetermined_cell_is_shown() -> None:
    answer = opened().query("SELECT g, COALESCE(AVG(x), -1) AS a, CASE WHEN AVG(x) > 1 THEN 'yes' ELSE 'no' END AS c "
                            "FROM df GROUP BY g", epsilon=SURE)  # fmt: skip
    assert by_key(answer)["empty"] == (-1.0, "no")
    assert answer.receipt["undetermined"] == {}


def test_distinct_and_nested_queries_keep_the_guards_apart() -> None:
    sql = "SELECT DISTINCT p / n AS share FROM (SELECT g, COUNT(*) FILTER (WHERE p) AS p, COUNT(*) AS n FROM df GROUP BY g) q"
    rows = opened().query(sql, epsilon=SURE).fetchall()
    assert (None,) in rows and len(rows) == 3  # lone: 0 or 1, as its only row has it
    inner = "SELECT g, COUNT(*) AS a, SUM(x) AS b, SUM(i) AS c FROM df GROUP BY g"
    plan = opened().explain(
        f"SELECT g, a / b AS r, (a / b) / (c // a) AS s FROM ({inner}) q WHERE a / b > 0", epsilon=1
    )
    assert sorted(call.function for call in plan.guards.values()) == [
        "/",
        "/",
        "//",
    ]  # a / b has one, used twice
    assert plan.release is not None and guarded(plan.query.relation, frozenset()).guards == {}


# -- where answers are read -------------------------------------------------------------------------------------
WHOLE = "SELECT g, AVG(x) AS a, COUNT(*) AS n, MIN(i) AS i, MAX(CAST(d AS DATE)) AS d FROM df GROUP BY g"


def by_hand(
    session: privsql.Session, sql: str, show_all: bool = False, **columns: list[int]
) -> privsql.Answer:
    """An answer over noisy numbers that are given."""
    plan = session.explain(sql, epsilon=1.0, show_all=show_all)
    some = {column: [0] * len(plan.space) for each in plan.measurements for column in each.columns}
    names = {f"{name}": how.columns[0] for name, how in plan.estimates.items()}
    values = some | {names.get(name, name): given for name, given in columns.items()}
    arrays = {name: np.array(each, dtype=np.int64) for name, each in values.items()}
    return finish(plan, NoisyTable(np.arange(len(plan.space), dtype=np.int64), arrays), calculator().finish)


def test_a_negative_grid_point_is_undetermined_and_names_the_point_of_the_prior() -> None:
    how = QuantilePoint("q", Kind.INTEGER, Kind.INTEGER, Fraction(10), Fraction(2), 50)
    noisy = {"q": np.array([0, 3, -1, -4, -50], dtype=np.int64)}
    assert how.value(noisy).tolist() == [10, 16, 10, 16, 108]
    ends = how.interval(noisy, {}, 0.95)
    assert set(ends.low) == {10.0} and set(ends.high) == {108.0}


@pytest.mark.parametrize(
    ("asked", "told", "prior"),
    [
        ("MIN(i)", 4, 7),
        ("MEDIAN(i)", 4.0, 7.0),
        ("MAX(CAST(d AS DATE))", dt.date(2024, 1, 4), dt.date(2024, 1, 7)),
        ("MEDIAN(i) * 2", 8.0, 14.0),
        ("quantile_cont(i, [0.5])", [4.0], [7.0]),
    ],
)
def test_quantiles_detect_too_few_rows(asked: str, told: Any, prior: Any) -> None:
    session, sql = opened(), f"SELECT g, {asked} AS v FROM df GROUP BY g"
    (column,) = session.explain(sql, epsilon=1.0).measurements[0].columns
    step = 3 if "DATE" in asked else None
    how = next(iter(session.explain(sql, epsilon=1.0).estimates.values()))
    assert isinstance(how, QuantilePoint)
    point = step or int((4 - how.low) / how.step)
    other = 6 if step else int((7 - how.low) / how.step)
    given = {column: [point, -1 - other, point]}
    hidden = by_key(by_hand(session, sql, **given))
    assert hidden == {"full": (told,), "empty": (None,), "lone": (told,)}
    assert by_key(by_hand(session, sql, show_all=True, **given))["empty"] == (prior,)


def test_an_undetermined_quantile_in_having_and_beside_others() -> None:
    session = opened()
    sql = "SELECT g, MIN(i) AS low FROM df GROUP BY g HAVING MIN(i) >= 0 ORDER BY low"
    column = session.explain(sql, epsilon=1.0).measurements[0].columns[0]
    answer = by_hand(session, sql, **{column: [9, -1, 3]})
    assert [row[0] for row in answer.fetchall()] == ["lone", "full"]


def test_null_has_the_type_of_its_column() -> None:
    session = opened()
    plan = session.explain(WHOLE, epsilon=1.0)
    given = {each.columns[0]: [3, -4, 3] for each in plan.of_values}
    answer = by_hand(session, WHOLE, **given)
    table = answer.df().set_index("g")
    assert table.loc["empty", ["a", "i", "d"]].isna().all() and not pd.isna(table.loc["empty", "n"])
    assert str(table["i"].dtype) == "Int64" and table["i"].loc["empty"] is pd.NA
    assert table["d"].loc["empty"] is pd.NaT and math.isnan(table["a"].loc["empty"])
    assert by_key(answer)["empty"] == (None, 0, None, None)
    arrow = answer.arrow()
    assert [arrow.column(name)[1].as_py() for name in ("a", "i", "d")] == [None] * 3
    assert [str(arrow.schema.field(name).type) for name in ("a", "i", "d")] == [
        "double",
        "int64",
        "date32[day]",
    ]
    assert [answer.pl()[name][1] for name in ("a", "i", "d")] == [None] * 3
    ends = answer.intervals().set_index("g").loc["empty"]
    assert (ends["a_low"], ends["a_high"], ends["i_low"], ends["i_high"]) == (0, 10, 1, 40)


def test_displays_and_receipts_mark_undetermined_cells() -> None:
    answer = opened().query("SELECT g, AVG(x) AS a, COUNT(*) AS n FROM df GROUP BY g", epsilon=1.0)
    assert answer.receipt["undetermined"] == {"a": 2}
    json.dumps(answer.receipt)
    sentence = "2 cells have too few rows for a meaningful number: they are NULL; show_all=True shows them."
    assert answer.warnings[-1] == sentence and sentence in answer.receipt["warnings"]
    assert str(answer).splitlines()[-1] == sentence
    assert "NULL  [0, 10]" in str(answer) and "\x1b" not in str(answer) + repr(answer)
    assert answer._repr_html_().count("color:#888888") == 2
    shown = opened().query(
        "SELECT g, AVG(x) AS a FROM df WHERE g <> 'lone' GROUP BY g", epsilon=1.0, show_all=True
    )
    assert (
        shown.warnings[-1]
        == "1 cell has too few rows for a meaningful number: the value shown there is noise."
    )
    assert shown.receipt["undetermined"] == {"a": 1} and None not in by_key(shown)["empty"]


def test_undetermined_cells_are_dimmed_on_terminals_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                                  tmp_path: Any) -> None:  # fmt: skip
    frame().to_parquet(tmp_path / "df.parquet")
    policy = tmp_path / "p.toml"
    policy.write_text(
        '[tables.df.columns]\ng = { values = ["full", "empty"], nullable = false }\nx = { range = [0, 10] }\n'
    )
    words = ["query", str(tmp_path / "df.parquet"), "SELECT g, AVG(x) AS a FROM df GROUP BY g", "--epsilon", "1",
             "--policy", str(policy)]  # fmt: skip

    def printed(*more: str) -> str:
        assert main([*words, *more]) == 0
        return capsys.readouterr().out

    assert "\x1b" not in printed()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    dimmed = [line for line in printed().splitlines() if "\x1b[2m" in line]
    assert len(dimmed) == 1 and "NULL  [0, 10]\x1b[0m" in dimmed[0] and dimmed[0].startswith("empty")
    assert printed("--format", "csv").splitlines()[2] == "empty,"
    document = json.loads(printed("--format", "json"))
    assert document["rows"][1] == {"g": "empty", "a": None}
    assert document["intervals"]["rows"][1] == {"g": "empty", "a": None, "a_low": 0.0, "a_high": 10.0}
    assert document["receipt"]["undetermined"] == {"a": 1}
    assert json.loads(printed("--format", "json", "--show-all"))["rows"][1]["a"] is not None


def test_undetermined_cells_have_no_bar() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    answer = opened().query("SELECT g, AVG(x) AS a FROM df GROUP BY g", epsilon=1.0)
    axes = answer.plot()
    assert len(axes.patches) == 1
    assert [each.get_text() for each in axes.texts] == ["NULL", "NULL"]


# -- what was paid for --------------------------------------------------------------------------------------------
def test_show_all_is_free_for_stored_answers(tmp_path: Any) -> None:
    frame().to_parquet(tmp_path / "df.parquet")
    policy = {**SESSIONS, "version": "1"}
    sql = "SELECT g, SUM(x) / COUNT(*) AS r, COUNT(*) AS n FROM df GROUP BY g"

    def ask(**how: Any) -> privsql.Answer:
        with privsql.connect(tmp_path / "df.parquet", policy, ledger=tmp_path / "l") as session:
            return session.query(sql, epsilon=0.5, **how)

    first, all_, again = ask(), ask(show_all=True), ask()
    assert (first.stored, all_.stored, again.stored) == (False, True, True)
    assert by_key(first) == by_key(again)
    assert [row[1] for row in by_key(first).values()] == [row[1] for row in by_key(all_).values()]
    assert by_key(first)["empty"][0] is None
    assert by_key(all_)["full"] == by_key(first)["full"]


def test_show_all_does_not_change_the_stored_answer() -> None:
    assert Stage("SELECT 1", 1.0, show_all=True).to_json() == Stage("SELECT 1", 1.0).to_json()


def test_show_all_first_gives_the_same_answer() -> None:
    session, sql = opened(), "SELECT g, AVG(x) AS a FROM df GROUP BY g"
    whole, told = session.query(sql, epsilon=1, show_all=True), session.query(sql, epsilon=1)
    assert told.stored and not whole.stored
    assert by_key(told)["empty"] == (None,) and by_key(whole)["empty"] != (None,)
    assert session.explain(sql, epsilon=1).sql == session.explain(sql, epsilon=1, show_all=True).sql
    assert session.budget.spent.epsilon == 1


def test_batches_and_answers_that_follow_from_others() -> None:
    sql = [
        "SELECT g, p, AVG(x) AS a, COUNT(x) AS n FROM df GROUP BY g, p",
        "SELECT g, AVG(x) AS a FROM df GROUP BY g",
    ]
    session = opened()
    for told, shown in zip(
        session.batch(sql, epsilon=1.0), session.batch(sql, epsilon=1.0, show_all=True), strict=True
    ):
        assert shown.stored
        assert told.df()["a"].isna().any() and not shown.df()["a"].isna().any()
    derived = session.query("SELECT g, SUM(x) / COUNT(x) AS r, AVG(x) AS a FROM df GROUP BY g", epsilon=0.01)
    assert derived.stored and derived.plan.free
    assert by_key(derived)["empty"] == (None, None) and None not in by_key(derived)["full"]


@pytest.mark.parametrize("how", [{}, {"nonnegative": True}])
def test_levels_of_a_rollup(how: dict[str, Any]) -> None:
    sql = "SELECT g, p, AVG(x) AS a, COUNT(x) FILTER (WHERE i > 9) / COUNT(x) AS s, COUNT(x) AS n FROM df GROUP BY ROLLUP (g, p)"
    answer = opened().query(sql, epsilon=1.0, **how)
    table = answer.df()
    empty, whole = table["g"].isin(["empty", "lone"]), table["g"].isna()
    assert table.loc[empty, ["a", "s"]].isna().all(axis=None)
    assert table.loc[whole, ["a", "s"]].notna().all(axis=None)
    ends = answer.intervals()
    told = ends["a"].notna()
    assert (ends.loc[told, "a_low"] <= ends.loc[told, "a"]).all() and ends["a_low"].notna().all()


@pytest.mark.parametrize(
    "how", [{"nonnegative": True}, {"consistent": True}, {"nonnegative": True, "consistent": True}]
)
def test_undetermined_cells_under_projections(how: dict[str, Any]) -> None:
    """Whether a cell is undetermined does not depend on where its counts were moved to."""
    session = opened()
    sql = "SELECT g, COUNT(*) FILTER (WHERE p) / COUNT(*) AS s, COUNT(*) FILTER (WHERE p) AS p, COUNT(*) AS n FROM df GROUP BY g"
    plain, moved = session.query(sql, epsilon=1.0), session.query(sql, epsilon=1.0, **how)
    assert moved.stored
    assert [row[0] is None for row in by_key(plain).values()] == [
        row[0] is None for row in by_key(moved).values()
    ]
    assert by_key(moved)["empty"][0] is None


def test_undeclared_keys_may_have_undetermined_cells() -> None:
    data = frame().assign(g=lambda each: each["g"].where(each.index % 4 > 0, "some"))
    session = privsql.connect(data, {"tables": {"df": {"columns": {"x": {"range": [0, 10]}}}}})
    answer = session.query(
        "SELECT g, AVG(x) AS a, SUM(x) / COUNT(*) AS r FROM df GROUP BY g", epsilon=1, delta=1e-6
    )
    assert set(by_key(answer)) >= {"full", "some"} and answer.receipt["undetermined"] == {}


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_show_all_must_be_true_or_false(value: Any) -> None:
    session, sql = opened(), "SELECT g, AVG(x) AS a FROM df GROUP BY g"
    for ask in (session.query, session.explain):
        with pytest.raises(privsql.ArgumentError, match="show_all is True or False"):
            ask(sql, epsilon=1, show_all=value)
    assert session.budget.spent.epsilon == 0


def test_the_frame_accessor_has_show_all() -> None:
    data = frame()
    asked = {"epsilon": 1, "keys": {"g": KEYS}, "ranges": {"x": (0, 10)}}
    sql = "SELECT g, AVG(x) AS a FROM df GROUP BY g"
    told, whole = data.dp.query(sql, **asked), data.dp.query(sql, **asked, show_all=True)
    assert told["a"].isna().sum() == 2 and whole["a"].isna().sum() == 0
    assert whole.dp.receipt["stored"]


# -- how often ---------------------------------------------------------------------------------------------------
CELLS = 4000
ASKED = {
    "a": "AVG(x)", "v": "VAR_SAMP(x)", "c": "CORR(x, y)", "s": "100.0 * COUNT(*) FILTER (WHERE i > 2) / COUNT(*)",
    "r": "SUM(x) / COUNT(y)",
}  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_empty_cells_are_nearly_always_null(epsilon: float, relation: str, noisy: None) -> None:
    """At least 95 of 100: fewer than that by chance would be seen once in a thousand million runs."""
    kinds = {"k": "int64", "x": "float64", "y": "float64", "i": "int64"}
    data = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds.items()})
    columns = {
        "k": {"range": [1, CELLS]},
        "x": {"range": [-5, 10]},
        "y": {"range": [0, 1]},
        "i": {"range": [0, 9]},
    }
    session = privsql.connect(data, {"neighbours": relation, "tables": {"df": {"columns": columns}}})
    for name, asked in ASKED.items():
        hidden = int(
            session.query(f"SELECT k, {asked} AS v FROM df GROUP BY k", epsilon=epsilon)
            .df()["v"]
            .isna()
            .sum()
        )
        assert stats.binomtest(hidden, CELLS, 0.95, alternative="less").pvalue > FALSE_ALARM, (
            name,
            hidden / CELLS,
        )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", ["a", "v", "s", "r"])
def test_cells_with_many_rows_are_hardly_ever_undetermined(epsilon: float, name: str, noisy: None) -> None:
    """Fewer than 1 in 100 with four times as many rows as the noise of their count is wide. (A correlation needs more.)"""
    asked, cells = ASKED[name], 1000
    columns = {
        "k": {"range": [1, cells]},
        "x": {"range": [-5, 10]},
        "y": {"range": [0, 1]},
        "i": {"range": [0, 9]},
    }
    policy = {"tables": {"df": {"columns": columns}}}
    empty = pd.DataFrame({"k": [1], "x": [0.0], "y": [0.5], "i": [1]})
    beside = f"SELECT k, {asked} AS v, COUNT({'*' if name == 's' else 'y' if name == 'r' else 'x'}) AS n FROM df GROUP BY k"
    width = privsql.connect(empty, policy).explain(beside, epsilon=epsilon).accuracy(0.95)["n"]
    assert width is not None
    rows = math.ceil(4 * width)
    data = pd.DataFrame({"k": np.repeat(np.arange(1, cells + 1), rows)})
    turn = np.tile(np.arange(rows), cells)
    data = data.assign(x=np.where(turn % 2, -5.0, 10.0), y=turn % 3 / 2, i=turn % 10)
    hidden = int(privsql.connect(data, policy).query(beside, epsilon=epsilon).df()["v"].isna().sum())
    assert stats.binomtest(hidden, cells, 0.01, alternative="greater").pvalue > FALSE_ALARM, hidden / cells
