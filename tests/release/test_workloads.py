"""Releases of SQL queries, ranges and prefixes, alone and together with marginals."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.planning.marginals.joint_plan import JointPlan
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.privacy.gaussian import greatest_ratio
from tests.release.people import BINS, COLUMNS, WORKLOAD, connect, people
from tests.release.test_residual_noise import HOSTILE

PRICE = {"epsilon": 1.0, "delta": 1e-6}
BUDGET = {"epsilon": 10.0, "delta": 1e-4}
QUERIES = [
    "SELECT COUNT(*) AS n FROM people WHERE age > 50",
    "SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY state",
    "SELECT smoker, COUNT(*) AS n, COUNT(state) AS s FROM people "
    "WHERE income >= 12.5 AND age BETWEEN 20 AND 40 GROUP BY smoker ORDER BY smoker",
    "SELECT COUNT(*) FILTER (WHERE age = 30) AS n FROM people WHERE state IN ('CA', 'NY')",
    "SELECT COUNT(*) AS n FROM people WHERE age IS NULL OR 65 <= age",
]


@pytest.fixture(scope="module")
def frame():
    return people(20_000)


@pytest.fixture(scope="module", params=["replace-one", "add-remove"])
def session(request, frame):
    with connect(frame, neighbours=request.param) as session:
        yield session


@pytest.fixture(scope="module")
def release(session):
    return session.release(QUERIES, **PRICE)


def exactly(frame, sql):
    return duckdb.sql(sql.replace("FROM people", "FROM frame")).df()


# -- lists of queries ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", range(len(QUERIES)))
def test_every_query_of_a_list_is_answered_within_its_interval(release, frame, place):
    found, truth = release.answers()[place].intervals(0.9999), exactly(frame, QUERIES[place])
    keys = [each for each in truth.columns if each in ("state", "smoker")]
    truth = truth[~truth[keys].isin(["Guam"]).any(axis=1)].reset_index(drop=True)
    assert found[keys].equals(truth[keys].astype(found[keys].dtypes)) or not keys
    for name in set(truth.columns) - set(keys):
        assert (found[f"{name}_low"] <= truth[name]).all() and (truth[name] <= found[f"{name}_high"]).all()
        assert ((found[f"{name}_high"] - found[f"{name}_low"]) < 300).all()


def test_what_follows_from_a_list_is_answered_and_nothing_else(release):
    both = release.query("SELECT COUNT(*) AS n FROM people WHERE state IN ('CA', 'NY') OR state = 'TX'")
    assert (both.intervals()["n_high"] - both.intervals()["n_low"] < 300).all()
    for sql in (
        "SELECT COUNT(*) AS n FROM people WHERE age > 50 AND smoker",
        "SELECT COUNT(*) AS n FROM people WHERE age > 33",
        "SELECT COUNT(*) AS n FROM people WHERE income >= 50",
    ):
        with pytest.raises(privsql.Refused, match="refused-not-released"):
            release.query(sql)


def test_a_list_is_more_accurate_than_its_queries_one_by_one(session):
    """Forty overlapping ranges, whose joint noise grows far less than that of a batch does."""
    texts = [f"SELECT COUNT(*) AS n FROM people WHERE age >= {low}" for low in range(10, 90, 2)]
    plan = session.explain_release(texts, **PRICE)
    alone = session.explain(texts[0], epsilon=1 / len(texts)).accuracy(0.95)["n"]
    assert 1.96 * plan.parts[0].deviation < alone / 3


def test_a_list_over_many_columns_is_measured_as_marginals():
    """All pairs of twelve columns: too many combinations together, and dear pair by pair."""
    random = np.random.default_rng(0)
    names = [f"c{place}" for place in range(12)]
    frame = pd.DataFrame({each: random.integers(0, 4, 500) for each in names})
    columns = {each: {"range": [0, 3]} for each in names}
    texts = [
        f"SELECT {a}, {b}, COUNT(*) AS n FROM people GROUP BY {a}, {b}"
        for place, a in enumerate(names)
        for b in names[:place]
    ]
    with privsql.connect({"people": frame}, {"tables": {"people": {"columns": columns}}}) as session:
        plan = session.explain_release(texts, **PRICE)
        (part,) = plan.parts
        assert isinstance(part, ResidualPlan) and "some 2-way marginals" in part.what
        assert len(session.release(texts, **PRICE).answers()) == len(texts)


def test_queries_over_different_columns_are_measured_by_themselves_where_that_is_best():
    """Of two columns of 300 parts each, every kind of row together would be too many."""
    frame = pd.DataFrame({"a": np.arange(900) % 300, "b": np.arange(900) // 3})
    columns = {each: {"range": [0, 299]} for each in "ab"}
    texts = [
        f"SELECT COUNT(*) AS n FROM people WHERE {each} < {cut}" for each in "ab" for cut in range(5, 300, 5)
    ]
    with privsql.connect({"people": frame}, {"tables": {"people": {"columns": columns}}}) as session:
        plan = session.explain_release(texts, **PRICE)
        assert [type(each) for each in plan.parts] == [StrategyPlan, StrategyPlan]
        assert session.release(texts, **PRICE).answers()[7].intervals(0.9999).iloc[0].n_low <= 120


# -- ranges and prefixes -------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [privsql.ranges, privsql.prefixes])
def test_ranges_and_prefixes_of_a_column(session, frame, make):
    release = session.release(make("income", bins=64), "people", **PRICE)
    found = release.query("SELECT COUNT(*) AS n FROM people WHERE income >= 25 AND income < 75").intervals(
        0.9999
    )
    truth = ((frame.income >= 25) & (frame.income < 75)).sum()
    assert found["n_low"][0] <= truth <= found["n_high"][0] < found["n_low"][0] + 400
    table = release.df(["income"])
    assert len(table) == 65 and table["n"].min() >= 0 and abs(table["n"].sum() - len(frame)) < 250


def test_edges_may_be_dates():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=each % 90) for each in range(900)]
    frame = pd.DataFrame({"day": days})
    edges = [dt.date(2024, 1, 1), dt.date(2024, 2, 1), dt.date(2024, 3, 1), dt.date(2024, 4, 1)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT CAST(day AS DATE) AS day FROM frame")
        with privsql.connect(connection) as session:
            release = session.release(privsql.prefixes("day", bins=edges), "people", epsilon=3, delta=1e-6)
            sql = "SELECT COUNT(*) AS n FROM people WHERE day < DATE '2024-02-01'"
            assert release.query(sql).df()["n"][0] == pytest.approx(310, abs=60)
            asked = session.release([sql, sql.replace("<", ">=")], epsilon=3, delta=1e-6)
            assert asked.answers()[0].df()["n"][0] == pytest.approx(310, abs=60)
    assert len(frame) == 900


# -- together ------------------------------------------------------------------------------------------------
def test_workloads_together_are_one_charge_and_answer_better_than_each(frame):
    with connect(frame, budget=BUDGET) as session:
        asked = [WORKLOAD, privsql.prefixes("income", bins=64), *QUERIES]
        plan = session.explain_release(asked, "people", **PRICE)
        assert len(plan.parts) == 3 and session.budget.spent.epsilon == 0
        release = session.release(asked, "people", **PRICE)
        assert session.budget.spent.epsilon == 1 and len(session.history()) == 1
        assert release.columns == ("age", "state", "smoker", "income") and len(release.answers()) == len(
            QUERIES
        )
        sql = "SELECT COUNT(*) AS n FROM people WHERE income >= 50"
        both = release.query(sql).plan.accuracy(0.95)["n"]
        alone = []
        for part in release.parts[:2]:
            one = privsql.QueryRelease(release.plan, (part,), release._reader, release.when)
            alone.append(one.query(sql).plan.accuracy(0.95)["n"])
        assert both == pytest.approx(math.prod(alone) / math.hypot(*alone), rel=0.02)
        assert release.query(sql).df()["n"][0] == pytest.approx((frame.income >= 50).sum(), abs=150)
        assert session.release(asked, "people", **PRICE).stored
        json.dumps(release.receipt)


def test_the_parts_of_a_plan_never_cost_more_than_the_whole(session):
    plan = session.explain_release([WORKLOAD, privsql.ranges("age", bins=10)], "people", **PRICE)
    most = greatest_ratio(Fraction(1), Fraction(1, 10**6)) ** 2
    assert sum(each.measurement.ratio for each in plan.parts) == plan.ratio <= most
    assert plan.ratio > most * Fraction(99, 100) and plan.event.ratio == plan.ratio
    given = {each: getattr(plan, each) for each in JointPlan.__dataclass_fields__}
    with pytest.raises(ValueError, match="does not cover"):
        JointPlan(**{**given, "parts": (*plan.parts, plan.parts[0])})


def test_a_plan_says_what_is_measured_and_why(session):
    text = str(session.explain_release([privsql.ranges("age", bins=32), *QUERIES], "people", **PRICE))
    assert "by a matrix made for the queries" in text and "the error of others: a tree of 2 branches" in text
    assert "5 SQL queries" in text and "of the squared ratio" in text


# -- the statement -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_row_changes_what_is_measured_by_more_than_was_priced(neighbours):
    """The exact SQL on neighbours with NULL, NaN, undeclared and extreme values, in plain DuckDB."""
    frame = people(50)
    with connect(frame, neighbours=neighbours) as session:
        plan = session.explain_release([*QUERIES, privsql.ranges("income", bins=8)], "people", **PRICE)
    without = deviations(plan, frame)
    with_each = [
        deviations(plan, pd.concat([frame, pd.DataFrame([row])], ignore_index=True).astype(frame.dtypes))
        for row in HOSTILE
    ]
    others = [without] if neighbours == "add-remove" else with_each
    changes = [float(((one - other) ** 2).sum()) for one in with_each for other in others]
    assert 0.2 * float(plan.ratio) < max(changes) <= float(plan.ratio) * (1 + 1e-9)


def deviations(plan, frame):
    """All exact numbers of all strategies, in deviations of their noise."""
    found = duckdb.sql(plan.sql.replace('"people"', "frame")).fetchnumpy()
    parts = []
    for part in plan.parts:
        places = np.zeros(len(found["count_0"]), dtype=np.int64)
        for name, size in zip(part.keys, part.sizes, strict=True):
            places = places * size + np.asarray(found[name]).astype(np.int64)
        kinds = np.zeros(part.asked.kinds)
        np.add.at(kinds, part.asked.kind_of[places], np.asarray(found["count_0"]).astype(float))
        parts.append(part.measurement.strategy @ kinds / float(part.measurement.variance) ** 0.5)
    assert len(frame)
    return np.concatenate(parts)


def test_rows_of_users_are_bounded():
    frame = people(600).assign(user_id=np.arange(600) // 3)
    table = {"unit": "user_id", "max_groups": 2, "max_rows": 1}
    with connect(frame, table=table) as session:
        plan = session.explain_release(QUERIES, **PRICE)
        assert {each.measurement.by.rows for each in plan.parts} == {2} and plan.warnings
        assert session.release(QUERIES, **PRICE).answers()[0].warnings


# -- later, elsewhere and refused ----------------------------------------------------------------------------
def test_a_release_of_queries_is_found_again_by_queries_and_later_sessions(tmp_path):
    path, frame = tmp_path / "people.duckdb", people(2_000)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    policy = {"tables": {"people": {"columns": COLUMNS}}, "budget": BUDGET}

    def opened():
        return privsql.connect(path, policy, ledger=tmp_path / "a.ledger", version="monday")

    asked = [WORKLOAD, privsql.ranges("age", bins=BINS["age"]), *QUERIES]
    with opened() as session:
        first = session.release(asked, "people", **PRICE)
        assert session.query(QUERIES[0], epsilon=0.01).stored
    with opened() as later:
        again = later.release(asked, "people", **PRICE)
        assert again.stored and again.df(["age"]).equals(first.df(["age"]))
        for one, other in zip(again.answers(), first.answers(), strict=True):
            assert one.intervals().equals(other.intervals())
        assert later.query(QUERIES[0]).fetchall() == first.answers()[0].fetchall()
        assert not later.explain_release(asked[1:], "people", **PRICE).stored
        assert later.budget.spent.epsilon == 1
    copy = pickle.loads(pickle.dumps(first))
    assert copy.answers()[1].intervals().equals(first.answers()[1].intervals())
    assert len(frame) == 2_000


def test_without_budget_nothing_is_read(frame):
    with connect(frame, budget={"epsilon": 0.5, "delta": 1e-6}) as session:
        assert "is left" in session.explain_release(QUERIES, **PRICE).refusal
        session._pipeline.engine.run = None
        with pytest.raises(privsql.BudgetError):
            session.release(QUERIES, **PRICE)


def code_of(call):
    with pytest.raises(privsql.PrivsqlError) as caught:
        call()
    assert caught.value.suggestion
    return caught.value.code


def test_each_refusal_has_its_code(frame):
    with connect(frame) as session:
        explain = session.explain_release
        count = "SELECT COUNT(*) AS n FROM people WHERE "
        assert code_of(lambda: explain(privsql.ranges("age"), **PRICE)) == "argument-table"
        assert code_of(lambda: explain([], "people", **PRICE)) == "argument-workload"
        assert code_of(lambda: explain([1], "people", **PRICE)) == "argument-workload"
        assert code_of(lambda: explain("state", "people", **PRICE)) == "argument-workload"
        assert code_of(lambda: explain(privsql.ranges("state"), "people", **PRICE)) == "argument-workload"
        assert (
            code_of(lambda: explain(privsql.ranges("income", bins=700), "people", **PRICE))
            == "refused-many-cells"
        )
        assert code_of(lambda: explain("SELECT COUNT(*) FROM people", **PRICE)) == "argument-workload"
        assert code_of(lambda: explain("SELECT AVG(age) FROM people", **PRICE)) == "refused-not-released"
        assert code_of(lambda: explain(count + "income > 3", **PRICE)) == "refused-not-released"
        assert code_of(lambda: explain(count + "state LIKE 'C%'", **PRICE)) == "refused-not-released"
        assert code_of(lambda: explain(QUERIES[0], epsilon=1)) == "argument-delta"
        assert code_of(lambda: explain(QUERIES[0], "other", **PRICE)) == "name-table"
        assert code_of(lambda: privsql.ranges("age", bins="many")) == "argument-bins"
        assert code_of(lambda: privsql.prefixes(3)) == "argument-columns"
        release = session.release(privsql.ranges("age"), "people", **PRICE)
        assert code_of(lambda: release.tables) == "argument-workload"
        assert code_of(lambda: session.release(QUERIES[2], **PRICE).df(["income"])) == "refused-not-released"
