"""`session.release`: what it answers, what it costs, and what it refuses."""

from __future__ import annotations

import json
import signal
import threading
import time
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import privsql
from privsql.engines import padding
from privsql.privacy.gaussian import greatest_ratio
from tests.release.people import WORKLOAD, connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def frame():
    return people(20_000)


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def session(request, frame):
    with connect(frame, neighbours=request.param) as session:
        yield session


@pytest.fixture(scope="module")
def release(session):
    return session.release(WORKLOAD, "people", **PRICE)


# -- answers -------------------------------------------------------------------------------------------------
QUERIES = [
    ("SELECT COUNT(*) AS n FROM people", lambda f: len(f)),
    ("SELECT COUNT(*) AS n FROM people WHERE smoker", lambda f: f.smoker.sum()),
    (
        "SELECT COUNT(*) AS n FROM people WHERE NOT smoker AND state = 'NY'",
        lambda f: ((f.state == "NY") & ~f.smoker).sum(),
    ),
    ("SELECT COUNT(*) AS n FROM people WHERE age >= 18 AND age < 65", lambda f: f.age.between(18, 64).sum()),
    ("SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 39", lambda f: f.age.between(18, 39).sum()),
    ("SELECT COUNT(*) AS n FROM people WHERE 65 <= age", lambda f: (f.age >= 65).sum()),
    (
        "SELECT COUNT(*) AS n FROM people WHERE income >= 50 AND smoker",
        lambda f: ((f.income >= 50) & f.smoker).sum(),
    ),
    ("SELECT COUNT(*) AS n FROM people WHERE state IS NULL", lambda f: f.state.isna().sum()),
    ("SELECT COUNT(state) AS n FROM people", lambda f: f.state.notna().sum()),
    (
        "SELECT COUNT(*) AS n FROM people WHERE state <> 'NY'",
        lambda f: (f.state.notna() & (f.state != "NY")).sum(),
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE smoker) AS n FROM people WHERE state IN ('CA', 'TX')",
        lambda f: (f.state.isin(["CA", "TX"]) & f.smoker).sum(),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM people WHERE smoker) AS p WHERE state = 'CA'",
        lambda f: (f.smoker & (f.state == "CA")).sum(),
    ),
    ("SELECT COUNT(*) AS n FROM people WHERE 1 = 0", lambda f: 0),
]


@pytest.mark.parametrize(("sql", "truth"), QUERIES, ids=[sql for sql, _ in QUERIES])
def test_a_counting_query_is_answered_within_its_interval(release, frame, sql, truth):
    answer = release.query(sql)
    found = answer.intervals(0.9999).iloc[0]
    assert found.n_low <= found.n <= found.n_high
    assert found.n_low <= truth(frame) <= found.n_high
    assert found.n_high - found.n_low < 4_000


def test_a_grouped_query_has_a_row_for_each_declared_key(release, frame):
    answer = release.query(
        "SELECT state, COUNT(*) AS n FROM people WHERE smoker GROUP BY state ORDER BY state"
    )
    assert [row[0] for row in answer.fetchall()] == ["CA", "NY", "TX", None]
    truth = frame[frame.smoker].groupby("state").size()[["CA", "NY", "TX"]]
    assert answer.df()["n"].iloc[:3].to_numpy() == pytest.approx(truth.to_numpy(), abs=600)


def test_what_stands_above_the_counts_is_computed_from_them(release):
    sql = "SELECT smoker, COUNT(*) / 2 AS half FROM people GROUP BY smoker HAVING COUNT(*) > 9000"
    rows = release.query(sql).fetchall()
    assert [row[0] for row in rows] == [False]
    plain = dict(release.query("SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker").fetchall())
    assert rows[0][1] == plain[False] / 2


def test_a_query_and_a_table_show_the_same(release):
    table = release.df(["smoker", "state"])
    assert list(table.columns) == ["smoker", "state", "n", "n_low", "n_high"]
    assert len(table) == 2 * 5 and table["state"].isna().sum() == 2
    for smoker in (True, False):
        found = release.query(
            f"SELECT state, COUNT(*) AS n FROM people WHERE smoker = {smoker} GROUP BY state"
        )
        shown = table[(table["smoker"] == smoker) & table["state"].isin(["CA", "NY", "TX"])]
        assert dict(zip(shown["state"], shown["n"], strict=True)).items() <= dict(found.fetchall()).items()


def test_labels_of_a_table_are_values_and_parts_of_the_range(release):
    assert release.df(["age"])["age"].tolist() == ["[0, 18)", "[18, 40)", "[40, 65)", "[65, 100)"]
    income = release.df(["income"])["income"].fillna("-").tolist()
    assert income == ["[0, 25)", "[25, 50)", "[50, 75)", "[75, 100]", "-"]
    assert release.df(["state"])["state"].fillna("-").tolist() == ["CA", "NY", "TX", "-", "(other)"]


# -- prices --------------------------------------------------------------------------------------------------
def test_a_release_is_charged_once_and_then_free(frame):
    with connect(frame, budget={"epsilon": 1.0, "delta": 1e-6}) as session:
        before = session.explain_release(WORKLOAD, "people", **PRICE)
        assert session.budget.spent.epsilon == 0 and not before.stored and not before.refusal
        first = session.release(WORKLOAD, "people", **PRICE)
        for _ in range(3):
            first.query("SELECT COUNT(*) AS n FROM people WHERE smoker")
        again = session.release(WORKLOAD, "people", **PRICE)
        assert again.stored and again.receipt["charged"] == 0 and first.receipt["charged"] == 1
        assert again.df().equals(first.df())
        assert session.budget.spent.epsilon == 1 and len(session.history()) == 1
        assert session.explain_release(WORKLOAD, "people", **PRICE).stored
        json.dumps(first.receipt)


def test_without_budget_nothing_is_read(frame):
    with connect(frame, budget={"epsilon": 0.5, "delta": 1e-6}) as session:
        assert "is left" in session.explain_release(WORKLOAD, "people", **PRICE).refusal
        session._pipeline.engine.run = None
        with pytest.raises(privsql.BudgetError):
            session.release(WORKLOAD, "people", **PRICE)
        assert session.budget.spent.epsilon == 0


def test_a_release_that_fails_is_charged_and_says_nothing(frame, monkeypatch):
    with connect(frame, budget={"epsilon": 2.0, "delta": 1e-5}) as session:
        monkeypatch.setattr("privsql.release.releases.release_part", lambda *_: [][len(frame)])
        with pytest.raises(privsql.EngineError, match="failed after it was charged"):
            session.release(WORKLOAD, "people", **PRICE)
        assert session.budget.spent.epsilon == 1 and session.history()["failed"].all()


def test_under_zcdp_the_ledger_counts_half_the_squared_ratio(frame):
    budget = {"epsilon": 2.0, "delta": 1e-5, "accountant": "zcdp"}
    with connect(frame, budget=budget) as session:
        release = session.release(WORKLOAD, "people", **PRICE)
        ratio = greatest_ratio(Fraction(1), Fraction(1, 10**6)) ** 2
        assert session.budget.spent.rho == pytest.approx(float(ratio) / 2, rel=2e-3)
        assert release.receipt["rho"] == session.budget.spent.rho


def test_a_ledger_file_keeps_what_a_release_cost(frame, tmp_path):
    policy = {"budget": {"epsilon": 1.5, "delta": 1e-5}}
    for failure in (None, privsql.BudgetError):
        columns = {"smoker": {}, "state": {"values": ["CA"]}}
        declared = {**policy, "tables": {"people": {"columns": columns}}}
        with privsql.connect({"people": frame}, declared, ledger=tmp_path / "l.ledger") as session:
            workload = privsql.marginals(["smoker", "state"], ways=2)
            if failure is None:
                session.release(workload, "people", **PRICE)
            else:
                with pytest.raises(failure):
                    session.release(workload, "people", **PRICE)
            assert session.budget.spent.epsilon == 1


def test_another_version_of_the_data_is_released_anew(frame, tmp_path, monkeypatch):
    path, workload = tmp_path / "x.duckdb", privsql.marginals(["smoker"], ways=1)
    with duckdb.connect(path) as source:
        source.execute("CREATE TABLE people AS SELECT smoker FROM frame LIMIT 100")
    with privsql.connect(duckdb.connect(path)) as session:
        session.release(workload, "people", **PRICE)
        assert session.release(workload, "people", **PRICE).stored
        monkeypatch.setattr(session._pipeline, "version", lambda: "a later one")
        assert not session.release(workload, "people", **PRICE).stored


def test_errors_are_predicted_before_paying(session, release):
    plan = session.explain_release(WORKLOAD, "people", **PRICE)
    by_name = {each.columns: each for each in plan.errors}
    assert len(by_name) == 4 + 6
    assert by_name["smoker",].half_width() == pytest.approx(1.96 * by_name["smoker",].deviation, rel=1e-3)
    table = release.df(["smoker"])
    assert ((table["n_high"] - table["n_low"]) / 2).min() <= by_name["smoker",].half_width() + 1
    assert "one cell is within" in str(plan) and "4-way" not in str(plan)


# -- refusals ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT SUM(age) AS n FROM people", "not a count"),
        ("SELECT COUNT(*) AS n FROM people WHERE age > 30", "not at their edges"),
        ("SELECT COUNT(*) AS n FROM people WHERE age % 2 = 0", "not at their edges"),
        ("SELECT COUNT(*) AS n FROM people WHERE income <= 50", "not at their edges"),
        ("SELECT COUNT(*) AS n FROM people WHERE state LIKE 'G%'", "not declared"),
        ("SELECT COUNT(*) AS n FROM people WHERE state = 'Guam'", "not declared"),
        ("SELECT COUNT(*) AS n FROM people WHERE smoker AND state = 'CA' AND age < 18", "at most 2"),
        ("SELECT age, COUNT(*) AS n FROM people GROUP BY age", "value by value"),
        ("SELECT UPPER(state) AS s, COUNT(*) AS n FROM people GROUP BY s", "not a column"),
        ("SELECT COUNT(DISTINCT state) AS n FROM people", "not a count"),
        ("SELECT COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS n FROM people", "divides"),
        ("SELECT state FROM people GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", "counts rows"),
    ],
)
def test_what_does_not_follow_is_refused(release, sql, why):
    with pytest.raises(privsql.Refused, match=why) as caught:
        release.query(sql)
    assert caught.value.code == "refused-not-released" and caught.value.suggestion


def test_columns_that_were_not_released_are_refused(frame):
    with connect(frame) as session:
        release = session.release(privsql.marginals(["smoker"]), "people", **PRICE)
        with pytest.raises(privsql.Refused, match="state is not among"):
            release.query("SELECT COUNT(*) AS n FROM people WHERE state = 'CA'")
        with pytest.raises(privsql.UnknownName):
            release.df(["state"])
        with pytest.raises(privsql.ArgumentError):
            release.df(["smoker", "smoker"])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"columns": []}, "argument-columns"),
        ({"columns": "age"}, "argument-columns"),
        ({"columns": ["age", "AGE"]}, "argument-columns"),
        ({"columns": ["age"], "ways": 0}, "argument-ways"),
        ({"columns": ["age"], "ways": True}, "argument-ways"),
        ({"columns": ["age"], "bins": {"state": 3}}, "argument-bins"),
        ({"columns": ["age"], "bins": {"age": 0}}, "argument-bins"),
        ({"columns": ["age"], "bins": {"age": "x"}}, "argument-bins"),
        ({"columns": [f"c{i}" for i in range(60)], "ways": 6}, "argument-marginals"),
    ],
)
def test_a_workload_that_makes_no_sense_is_rejected(arguments, code):
    with pytest.raises(privsql.ArgumentError) as caught:
        privsql.marginals(**arguments)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("columns", "bins", "code"),
    [
        (["nobody"], None, "name-column"),
        (["name"], None, "refused-unknown-cells"),
        (["weight"], None, "refused-unknown-cells"),
        (["state"], {"state": 3}, "argument-bins"),
        (["age"], {"age": [0, 0, 5]}, "argument-bins"),
        (["age"], {"age": [0, 0.5]}, "argument-bins"),
        (["age"], {"age": ["a", "b"]}, "argument-bins"),
    ],
)
def test_a_column_without_declared_cells_is_refused(columns, bins, code):
    frame = people(10).assign(name="x", weight=1.5)
    with connect(frame) as session, pytest.raises(privsql.PrivsqlError) as caught:
        session.explain_release(privsql.marginals(columns, bins=bins), "people", **PRICE)
    assert caught.value.code == code and caught.value.suggestion


def test_arguments_of_a_release_are_checked(frame):
    with connect(frame) as session:
        for arguments, code in [
            ({"workload": ["age"]}, "argument-workload"),
            ({"table": "nobody"}, "name-table"),
            ({"table": 3}, "name-table"),
            ({"epsilon": 0}, "argument-epsilon"),
            ({"max_rows": 0}, "argument-limits"),
            ({"colour": 1}, "argument-unknown"),
        ]:
            with pytest.raises(privsql.PrivsqlError) as caught:
                session.release(**{"workload": WORKLOAD, "table": "people", **PRICE, **arguments})
            assert caught.value.code == code


def test_a_public_table_is_not_released(frame):
    with connect(frame, table={"public": True}) as session, pytest.raises(privsql.Refused, match="is public"):
        session.release(WORKLOAD, "people", **PRICE)


def test_a_view_pays_for_its_total(frame):
    source = duckdb.connect()
    source.execute("CREATE TABLE t AS SELECT smoker FROM frame LIMIT 100")
    source.execute("CREATE VIEW v AS SELECT smoker FROM t WHERE smoker")
    with privsql.connect(source, {"tables": {"v": {}}}) as session:
        workload = privsql.marginals(["smoker"], ways=1)
        assert not session.explain_release(workload, "v", **PRICE).measurement.by.total_is_public
        assert session.explain_release(workload, "t", **PRICE).measurement.by.total_is_public


def test_many_rows_of_one_unit_are_cut_and_that_is_said(frame):
    rows = frame.assign(person=np.arange(len(frame)) // 10)
    with connect(rows, table={"unit": "person", "max_groups": 2, "max_rows": 1}) as session:
        release = session.release(WORKLOAD, "people", **PRICE)
        assert release.plan.measurement.by.rows == 2
        assert 3_000 < release.rows < 5_000
        answer = release.query("SELECT COUNT(*) AS n FROM people WHERE smoker")
        assert any("keep 2" in each for each in release.warnings)
        assert any("keep 2" in each for each in answer.warnings)


def test_limits_that_nobody_declared_are_warned_of(frame):
    with (
        connect(frame.assign(person=1), table={"unit": "person"}) as session,
        pytest.warns(privsql.BoundingWarning),
    ):
        session.release(WORKLOAD, "people", **PRICE)


def test_a_boolean_with_one_declared_value_keeps_the_other_apart(frame):
    with connect(frame, table={"columns": {"smoker": {"values": [True]}}}) as session:
        release = session.release(privsql.marginals(["smoker"]), "people", **PRICE)
        table = release.df(["smoker"])
        assert table["smoker"].tolist()[0] is True and table["smoker"].tolist()[-1] == "(other)"
        assert table["n"].iloc[0] == pytest.approx(frame.smoker.sum(), abs=200)


def test_an_answer_from_a_release_has_a_receipt(release):
    answer = release.query("SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker")
    assert answer.receipt["charged"] == 0 and "marginals" in json.dumps(answer.receipt)
    assert "n" in str(answer) and answer.stored


def test_ctrl_c_while_the_time_is_padded_loses_no_release(monkeypatch):
    workload, sleep, sent = privsql.marginals(["smoker"]), time.sleep, []

    def interrupted(seconds: float) -> None:
        if not sent and threading.current_thread() is threading.main_thread():
            sent.append(seconds)
            signal.raise_signal(signal.SIGINT)
        sleep(seconds)

    with connect(people(20), time_quantum=0.5) as session:
        monkeypatch.setattr(padding.time, "sleep", interrupted)
        before = signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # a job in the background ignores it
        try:
            with pytest.raises(KeyboardInterrupt, match="its charge stands"):
                session.release(workload, "people", **PRICE)
        finally:
            signal.signal(signal.SIGINT, before)
        assert sent
        assert session.release(workload, "people", **PRICE).stored
        assert session.budget.spent.epsilon == 1
