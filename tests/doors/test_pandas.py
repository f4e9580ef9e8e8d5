"""df.dp: what protect() says stays with a frame and with frames made from it; what changes is seen; nothing is kept alive."""

from __future__ import annotations

import gc
import json
import pickle
import threading
import weakref

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql import ArgumentError, BudgetError, PrivsqlError, Refused
from tests.conftest import clinic

EXACT = 10_000
COUNT = "SELECT COUNT(*) AS n FROM df"
KEYS = {"state": ["CA", "NY", "TX"]}


def count(frame: pd.DataFrame, where: str = "TRUE", **options) -> int:
    return int(frame.dp.query(f"{COUNT} WHERE {where}", epsilon=EXACT, **options)["n"].iloc[0])


@pytest.fixture
def df():
    return clinic(120)


# -- asking ----------------------------------------------------------------------------------------------------
def test_the_example_of_the_interface():
    df = pd.DataFrame({"grade": ["A", "B", "A", "F"]})
    sql = "SELECT grade, COUNT(*) AS n FROM df GROUP BY grade"
    out = df.dp.query(sql, epsilon=EXACT, keys={"grade": ["A", "B", "C", "D", "F"]})
    assert isinstance(out, pd.DataFrame)
    assert out.to_numpy().tolist() == [["A", 2], ["B", 1], ["C", 0], ["D", 0], ["F", 1]]
    assert out["n"].dtype == np.int64
    assert list(out.dp.intervals(0.95).columns) == ["grade", "n", "n_low", "n_high"]
    assert json.loads(json.dumps(out.dp.receipt))["epsilon"] == EXACT
    assert len(out.dp.plot().patches) == 5
    assert out.dp.plan.measurements[0].l1 == 2


def test_query_keywords_apply_once_and_protect_keywords_stay(df):
    sql = "SELECT state, AVG(cost) AS m FROM df GROUP BY state"
    assert len(df.dp.query(sql, epsilon=1, keys=KEYS, ranges={"cost": (0, 1000)})) == 3
    with pytest.raises(Refused):
        df.dp.query(sql, epsilon=1)
    assert df.dp.protect(ranges={"cost": (0, 1000)}, keys=KEYS) is df
    assert len(df.dp.query(sql, epsilon=1)) == 3
    assert len(df.dp.query(sql, epsilon=1, keys={"state": ["CA", None]})) == 2  # the call's own come first


def test_explain_reads_no_data_and_spends_nothing(df):
    plan = df.dp.explain(COUNT, epsilon=0.5)
    assert isinstance(plan, privsql.Plan)
    assert df.dp.budget.spent.epsilon == 0
    assert df.dp.history().empty


@pytest.mark.parametrize(("neighbours", "l1"), [("replace-one", 2), ("add-remove", 1)])
def test_both_neighbour_relations(df, neighbours, l1):
    sql = "SELECT state, COUNT(*) FROM df GROUP BY state"
    assert df.dp.explain(sql, epsilon=1, keys=KEYS, neighbours=neighbours).measurements[0].l1 == l1
    out = df.dp.query(sql, epsilon=1, keys=KEYS, neighbours=neighbours)
    assert out.dp.receipt["neighbours"] == neighbours
    other = clinic(10)
    other.dp.protect(neighbours=neighbours, keys=KEYS, budget=1)
    assert other.dp.explain(sql, epsilon=1).measurements[0].l1 == l1
    different = "add-remove" if neighbours == "replace-one" else "replace-one"
    with pytest.raises(BudgetError) as caught:
        other.dp.query(sql, epsilon=0.1, neighbours=different)
    assert caught.value.code == "budget-neighbours"
    assert other.dp.budget.spent.epsilon == 0


def test_options_of_a_query(df):
    out = df.dp.query(COUNT, within=10, confidence=0.9)
    assert 0 < out.dp.receipt["epsilon"] < 1
    again = df.dp.query(COUNT, within=10, confidence=0.9)
    assert again.dp.receipt["stored"]
    assert not df.dp.query(COUNT, within=10, confidence=0.9, fresh=True).dp.receipt["stored"]
    df.dp.query("SELECT COUNTIF(smoker) AS n FROM df", epsilon=1, dialect="bigquery")
    label = df.dp.query("SELECT mode(state) AS s FROM df", epsilon=1, keys=KEYS, mechanism="gumbel")
    assert "Gumbel" in label.dp.receipt["measurements"][0]["mechanism"]


# -- budgets ---------------------------------------------------------------------------------------------------
def test_a_budget_is_shared_by_frames_made_from_a_frame(df):
    df.dp.protect(budget=1.0)
    made = [
        df,
        df[df["age"] > 50],
        df.copy(),
        df.head(10),
        df.assign(z=1),
        df.sort_values("age"),
        df[["age", "state"]],
        df.rename(columns={"age": "years"}),
        df.dropna(),
        df.reset_index(drop=True),
    ]
    for index, frame in enumerate(made):
        frame.dp.query(COUNT, epsilon=0.1)
        assert df.dp.budget.spent.epsilon == pytest.approx(0.1 * (index + 1))
        assert frame.dp.budget.remaining.epsilon == pytest.approx(1 - 0.1 * (index + 1))
    for frame in made:
        with pytest.raises(BudgetError) as caught:
            frame.dp.query(f"{COUNT} WHERE TRUE", epsilon=0.1, fresh=True)
        assert caught.value.code == "budget-exhausted"


def test_protecting_twice_with_a_budget_is_refused(df):
    df.dp.protect(budget=1.0)
    for frame in (df, df.head(5), df.copy()):
        for budget in (5.0, None):
            with pytest.raises(BudgetError) as caught:
                frame.dp.protect(budget=budget)
            assert caught.value.code == "budget-protected"
    assert df.dp.budget.limit.epsilon == 1.0


def test_protecting_twice_without_a_budget_is_allowed(df):
    df.dp.protect(keys=KEYS)
    df.dp.protect(keys=KEYS, budget=2.0)
    assert df.dp.budget.limit.epsilon == 2.0


def test_two_frames_have_two_budgets():
    one, two = clinic(10), clinic(10)
    one.dp.protect(budget=1.0)
    two.dp.protect(budget=2.0)
    one.dp.query(COUNT, epsilon=0.5)
    assert (one.dp.budget.spent.epsilon, two.dp.budget.spent.epsilon) == (0.5, 0.0)


@pytest.mark.parametrize("budget", [0, -1, "x", float("nan"), True])
def test_invalid_budgets_of_frames_are_refused(df, budget):
    with pytest.raises(ArgumentError):
        df.dp.protect(budget=budget)
    assert df.attrs == {}
    count(df)


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": 3},
        {"keys": {"state": "CA"}},
        {"keys": {"state": []}},
        {"ranges": {"age": 3}},
        {"ranges": {"age": (9, 1)}},
        {"ranges": {3: (0, 1)}},
        {"neighbours": "none"},
        {"keys": {"state": [["x"]]}},
        {"ranges": [1]},
    ],
)
def test_invalid_declarations_are_refused(df, wrong):
    for call in (lambda: df.dp.protect(**wrong), lambda: df.dp.query(COUNT, epsilon=1, **wrong)):
        with pytest.raises(PrivsqlError):
            call()
    assert df.dp.budget.spent.epsilon == 0
    for unknown in ({"keys": {"nobody": [1]}}, {"ranges": {"nobody": (0, 1)}}, {"unit": "nobody"}):
        with pytest.raises(PrivsqlError):
            df.dp.query(COUNT, epsilon=1, **unknown)


def test_attrs_are_preserved(df, tmp_path):
    df.attrs["source"] = "ward 3"
    df.dp.protect(budget=1.0)
    df.to_parquet(tmp_path / "x.parquet")
    df.to_json(tmp_path / "x.json", date_format="iso")
    df.to_csv(tmp_path / "x.csv")
    df.to_pickle(tmp_path / "x.pkl")
    assert pd.read_parquet(tmp_path / "x.parquet").shape == df.shape
    assert pickle.loads(pickle.dumps(df)).dp.budget.limit.epsilon == 1.0  # the same process still knows it
    assert df.attrs["source"] == "ward 3"
    pd.concat([df, df])
    df.merge(df.head(2), on="user")
    df.groupby("state").size()
    assert isinstance(df.describe(), pd.DataFrame)
    str(df)
    df._repr_html_()


# -- changes ---------------------------------------------------------------------------------------------------
def test_changes_in_place_are_noticed():
    df = pd.DataFrame(
        {
            "a": np.arange(100),
            "t": ["x"] * 100,
            "b": [True] * 100,
            "c": pd.array([1] * 100, dtype="Int64"),
            "k": pd.Categorical(["p"] * 100, categories=["p", "q"]),
            "z": pd.date_range("2024", periods=100, tz="UTC"),
        }
    )
    assert count(df, "a >= 50") == 50
    df.loc[0, "a"] = 99
    assert count(df, "a >= 50") == 51
    df["a"] = 0
    assert count(df, "a >= 50") == 0
    df.iloc[:7, 0] = 60
    assert count(df, "a >= 50") == 7
    df.loc[3, "t"] = "y"
    assert count(df, "t = 'y'") == 1
    df.loc[5:9, "b"] = False
    assert count(df, "NOT b") == 5
    df.loc[5:6, "c"] = pd.NA
    assert count(df, "c IS NULL") == 2
    df.at[8, "c"] = 7
    assert count(df, "c = 7") == 1
    df.loc[2, "k"] = "q"
    assert count(df, "k = 'q'") == 1
    df["k"] = df["k"].cat.rename_categories({"p": "q", "q": "p"})
    assert count(df, "k = 'q'") == 99
    df.loc[4:6, "z"] = pd.Timestamp("2020-01-01", tz="UTC")
    assert count(df) == 100
    for index in range(10):
        df.loc[index, "a"] = -1
    df = df[df["a"] >= 0]
    assert count(df) == 90
    df["new"] = 5
    assert count(df, "new = 5") == 90
    df.columns = [*df.columns[:-1], "old"]
    assert count(df, '"old" = 5') == 90
    df.pop("z")
    df.insert(0, "first", 1)
    assert count(df, '"first" = 1') == 90
    df.loc[1000] = df.iloc[0]
    assert count(df) == 91


def test_a_stored_answer_belongs_to_the_data_it_was_made_from():
    df = pd.DataFrame({"a": np.arange(100)})
    first = df.dp.query(COUNT, epsilon=1)
    assert df.dp.query(COUNT, epsilon=1).dp.receipt["stored"]
    assert df.dp.query(COUNT, epsilon=1)["n"].iloc[0] == first["n"].iloc[0]
    df.loc[0, "a"] = 5
    assert not df.dp.query(COUNT, epsilon=1).dp.receipt["stored"]
    assert df.dp.budget.spent.epsilon == 2.0


def test_stored_answers_work_for_every_kind_of_column():
    df = pd.DataFrame(
        {
            "int": [1, 2],
            "float": [1.0, None],
            "text": ["a", None],
            "object": pd.Series([1, "x"], dtype="object"),
            "bool": [True, False],
            "nullable": pd.array([1, None], dtype="Int64"),
            "maybe": pd.array([True, None], dtype="boolean"),
            "category": pd.Categorical(["p", "q"]),
            "day": pd.to_datetime(["2024-01-01", None]),
            "zone": pd.date_range("2024", periods=2, tz="UTC"),
        }
    )
    df.dp.query(COUNT, epsilon=1)
    assert df.dp.query(COUNT, epsilon=1).dp.receipt["stored"]
    assert df.dp.budget.spent.epsilon == 1.0


def test_the_frame_itself_is_never_changed(df):
    before = df.copy(deep=True)
    df.dp.query(COUNT, epsilon=1)
    pd.testing.assert_frame_equal(df, before)
    assert df.attrs == {}


def test_odd_indexes_do_not_matter():
    df = pd.DataFrame({"a": [1, 2, 3]}, index=["x", "x", None])
    assert count(df) == 3
    assert count(df.set_index("a", drop=False)) == 3


# -- answers ---------------------------------------------------------------------------------------------------
def test_a_frame_without_an_answer_raises(df):
    out = df.dp.query(COUNT, epsilon=1)
    for frame in (df, out.copy(), out.head(1)):
        for call in (
            lambda f=frame: f.dp.intervals(),
            lambda f=frame: f.dp.receipt,
            lambda f=frame: f.dp.plot(),
            lambda f=frame: f.dp.plan,
        ):
            with pytest.raises(ArgumentError) as caught:
                call()
            assert caught.value.code == "argument-answer"
    assert out.dp.receipt["epsilon"] == 1.0


def test_an_answer_keeps_its_intervals_when_the_analyst_changes_it(df):
    out = df.dp.query(COUNT, epsilon=1)
    intervals = out.dp.intervals()
    out["n"] = 0
    pd.testing.assert_frame_equal(out.dp.intervals(), intervals)


def test_the_answer_of_a_protected_frame_carries_no_budget(df):
    df.dp.protect(budget=1.0)
    out = df.dp.query(COUNT, epsilon=1.0)
    assert out.attrs == {}
    assert out.dp.receipt["charged"] == 1.0


# -- memory and threads ----------------------------------------------------------------------------------------
def test_frames_are_not_kept_alive():
    frames = [clinic(50) for _ in range(3)]
    outs = [frame.dp.query(COUNT, epsilon=1) for frame in frames]
    frames[1].dp.protect(budget=2.0)  # what was asked before counts
    frames[1].dp.query(COUNT, epsilon=1)
    dying = [weakref.ref(each) for each in (*frames, *outs)]
    states = len(privsql.frame.state._STATES)
    del frames, outs
    gc.collect()
    assert [each() for each in dying] == [None] * 6
    assert len(privsql.frame.state._STATES) <= states - 6


def test_threads_on_one_frame(df):
    df.dp.protect(budget=1.0)
    problems, gate = [], threading.Barrier(10)

    def ask(index):
        gate.wait()
        try:
            assert len(df.dp.query(f"{COUNT} WHERE change > {index}", epsilon=0.2)) == 1
            problems.append("paid")
        except BudgetError:
            problems.append("refused")
        except BaseException as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(map(str, problems)) == ["paid"] * 5 + ["refused"] * 5
    assert df.dp.budget.remaining.epsilon == 0


def test_integers_beside_null_stay_integers() -> None:
    frame = pd.DataFrame({"year": pd.array([2020, 2021, None, 2021] * 100, dtype="Int64")})
    out = frame.dp.query(
        "SELECT year, COUNT(*) AS n FROM df GROUP BY year", epsilon=10_000, keys={"year": [2020, 2021, None]}
    )
    assert out.dtypes.astype(str).tolist() == ["Int64", "int64"]
    assert out["year"].tolist() == [2020, 2021, pd.NA]
    assert str(out.dp.intervals()["year"].dtype) == "Int64"


def test_a_column_that_duckdb_cannot_read_is_named() -> None:
    for bad in (
        pd.period_range("2020-01", periods=3, freq="M"),
        pd.arrays.SparseArray([0, 1, 2]),
        [1j, 2j, 3j],
    ):
        frame = pd.DataFrame({"x": [1, 2, 3], "odd one": bad})
        with pytest.raises(privsql.PrivsqlError) as raised:
            frame.dp.query("SELECT COUNT(*) AS n FROM df", epsilon=1.0)
        assert raised.value.code == "source-frame" and "odd one" in str(raised.value)
        assert len(frame.drop(columns=["odd one"]).dp.query("SELECT COUNT(*) AS n FROM df", epsilon=1.0)) == 1


def test_object_columns_are_text_whatever_they_hold():
    import pandas as pd

    for values in ([1, 2, 3], [1, "abc", None], ["a", "b", "c"]):
        frame = pd.DataFrame({"o": pd.Series(values, dtype=object)})
        plan = frame.dp.explain("SELECT COUNT(*) FROM df WHERE o LIKE '1%'", epsilon=1)
        assert plan.measurements[0].l1 == 1


def test_a_call_cannot_change_the_unit_of_a_budget():
    frame = pd.DataFrame({"uid": [1] * 50, "row": range(50)})
    frame.dp.protect(unit="uid", budget=1.0, max_rows=10)
    with pytest.raises(privsql.ArgumentError) as caught:
        frame.dp.query("SELECT COUNT(*) FROM df", epsilon=1, unit="row")
    assert caught.value.code == "argument-unit"
    frame.dp.query("SELECT COUNT(*) FROM df", epsilon=0.5, unit="uid")
