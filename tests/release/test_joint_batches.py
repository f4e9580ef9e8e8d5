"""Batches of counts with a delta: released jointly where that is more accurate, as before where it is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import privsql
from tests.release.people import connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}
BUDGET = {"epsilon": 5.0, "delta": 1e-5}
THRESHOLDS = [f"SELECT COUNT(*) AS n FROM people WHERE age >= {low}" for low in range(10, 90, 2)]


@pytest.fixture
def session():
    with connect(people(5_000), budget=BUDGET) as session:
        yield session


def widths(answers):
    tables = [each.intervals() for each in answers]
    return [float((each["n_high"] - each["n_low"]).mean()) for each in tables]


def test_overlapping_counts_are_released_jointly(session):
    alone = session.explain(THRESHOLDS[0], epsilon=1 / len(THRESHOLDS)).accuracy(0.95)["n"]
    answers = session.batch(THRESHOLDS, **PRICE)
    assert np.mean(widths(answers)) / 2 < alone / 3
    assert session.budget.spent.epsilon == 1 and len(session.history()) == 1
    assert not any(each.stored for each in answers)
    truth = [(people(5_000).age >= low).sum() for low in range(10, 90, 2)]
    assert [each.df()["n"][0] for each in answers] == pytest.approx(truth, abs=120)


def test_a_repeated_batch_is_free(session):
    first = session.batch(THRESHOLDS, **PRICE)
    again = session.batch(THRESHOLDS, **PRICE)
    assert all(each.stored for each in again) and session.budget.spent.epsilon == 1
    assert [each.fetchall() for each in again] == [each.fetchall() for each in first]


def test_many_marginals_have_a_fraction_of_the_error():
    random = np.random.default_rng(1)
    frame = people(3_000)[["smoker"]].assign(
        **{f"c{place}": random.integers(0, 5, 3_000) for place in range(9)}
    )
    columns = {f"c{place}": {"range": [0, 4]} for place in range(9)}
    texts = [
        f"SELECT {', '.join(some)}, COUNT(*) AS n FROM people GROUP BY {', '.join(some)}"
        for some in itertools.combinations(columns, 2)
    ]
    with connect(frame, table={"columns": columns}) as session:
        each = session.explain(texts[0], epsilon=1 / len(texts)).accuracy(0.95)["n"]
        answers = session.batch(texts, **PRICE)
        assert len(answers) == len(texts) and len(session.history()) == 1
        assert np.mean(widths(answers)) / 2 < each / 2


@pytest.mark.parametrize(
    "texts",
    [
        ["SELECT AVG(age) AS a FROM people", "SELECT COUNT(*) AS n FROM people"],
        ["SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE age >= 30"],
        [THRESHOLDS[0]],
    ],
)
def test_other_batches_are_answered_as_before(session, texts):
    answers = session.batch(texts, **PRICE)
    assert len(session.history()) >= 1 and len(answers) == len(texts)
    assert not any("SQL quer" in each for each in session.history()["question"])


def test_a_batch_without_budget_is_refused_before_anything_is_read():
    with connect(people(100), budget={"epsilon": 0.5, "delta": 1e-5}) as session:
        session._pipeline.engine.run = None
        with pytest.raises(privsql.BudgetError):
            session.batch(THRESHOLDS, **PRICE)
        assert session.budget.spent.epsilon == 0


def test_a_batch_that_is_refused_says_why(session):
    with pytest.raises(privsql.Refused, match="row"):
        session.batch([*THRESHOLDS, "SELECT age FROM people"], **PRICE)
    with pytest.raises(privsql.ArgumentError):
        session.batch(THRESHOLDS, epsilon=1.0, delta=2.0)


@pytest.mark.parametrize("accountant", ["approximate", "zcdp"])
def test_the_receipts_of_a_joint_batch_add_up_to_what_the_ledger_charged(accountant):
    with connect(people(1_000), budget={**BUDGET, "delta": 1e-3, "accountant": accountant}) as session:
        answers = session.batch(THRESHOLDS, **PRICE)
        (charge,) = session.history().to_dict("records")
        whole = {**charge, **PRICE}  # zCDP has one delta for all that it counts in rho
        for name in {"epsilon", "delta", "rho"} & whole.keys():
            assert sum(each.receipt[name] for each in answers) == pytest.approx(whole[name])
        assert (answers[0].receipt["rho"] is None) == (accountant == "approximate")
        assert sum(each.receipt["charged"] for each in answers) == pytest.approx(1.0)
        assert "cost epsilon 0.025" in str(answers[0])
        assert [each.receipt["charged"] for each in session.batch(THRESHOLDS, **PRICE)] == [0.0] * 40


def test_a_batch_whose_release_costs_more_than_one_query_may_is_answered_query_by_query():
    with connect(people(1_000), budget={**BUDGET, "per_query": 0.5}) as session:
        assert len(session.batch(THRESHOLDS[:10], **PRICE)) == 10
        assert len(session.history()) == 10 and session.budget.spent.epsilon == pytest.approx(1.0)
