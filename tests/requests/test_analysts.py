"""Several analysts, and several threads, share one session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import privsql
from tests.conftest import POLICY, clinic

COUNT = "SELECT COUNT(*) AS n FROM visits"
CAPPED = {**POLICY, "budget": {"epsilon": 10.0, "analysts": {"ana": 1.0, "bob": 2.0}}}


@pytest.fixture
def shared(tmp_path):
    with privsql.connect(
        {"visits": clinic()}, CAPPED, ledger=tmp_path / "l.ledger", analyst="ana"
    ) as session:
        yield session


def test_each_request_is_charged_to_the_analyst_it_names(shared):
    shared.query(COUNT, 0.5)
    shared.query(f"{COUNT} WHERE smoker", 0.25, analyst="bob")
    history = shared.history()
    assert history[["analyst", "epsilon"]].values.tolist() == [["ana", 0.5], ["bob", 0.25]]
    assert shared.budget.share.spent.epsilon == 0.5
    assert shared.budget_of("bob").share.remaining.epsilon == 1.75


def test_an_analyst_cannot_spend_more_than_their_own_share(shared):
    with pytest.raises(privsql.BudgetError):
        shared.query(COUNT, 1.5)
    assert shared.query(COUNT, 1.5, analyst="bob").plan.epsilon == 1.5
    with pytest.raises(privsql.BudgetError):
        shared.query(f"{COUNT} WHERE smoker", 0.1, analyst="carla")  # nobody gave her a share


def test_explain_says_what_is_left_for_the_analyst_it_names(shared):
    shared.query(COUNT, 0.75)
    own, other = shared.explain(COUNT, 0.5, fresh=True), shared.explain(COUNT, 0.5, fresh=True, analyst="bob")
    assert (own.remaining, other.remaining) == (0.25, 2.0)
    assert "remains" in own.refusal or "left" in own.refusal
    assert not other.refusal


def test_a_batch_is_charged_to_the_analyst_it_names(shared):
    shared.batch([COUNT, f"{COUNT} WHERE smoker"], epsilon=1.5, analyst="bob")
    assert set(shared.history()["analyst"]) == {"bob"}


def test_a_stored_answer_is_free_for_every_analyst(shared):
    first = shared.query(COUNT, 0.5)
    again = shared.query(COUNT, 0.5, analyst="bob")
    assert again.stored and again.df().equals(first.df())
    assert len(shared.history()) == 1


@pytest.mark.parametrize("name", ["", " ", 3, "a\nb", "x" * 300])
def test_an_analyst_needs_a_name(shared, name):
    with pytest.raises(privsql.ArgumentError):
        shared.query(COUNT, 0.1, analyst=name)
    assert shared.history().empty


@pytest.mark.parametrize("options", [{}, {"deadline": 60.0}, {"time_quantum": 0.01}])
def test_threads_share_a_session(options):
    """Every text is charged once, whoever comes first, and all see the same answer to it."""
    texts = [f"{COUNT} WHERE age > {age}" for age in range(0, 60, 10)]
    with privsql.connect({"visits": clinic()}, POLICY, **options) as session:

        def ask(number: int) -> tuple[str, int]:
            sql = texts[number % len(texts)]
            session.explain(sql, 0.01)
            answer = session.query(sql, 0.01, analyst=f"analyst {number % 3}")
            return sql, int(answer.fetchall()[0][0])

        with ThreadPoolExecutor(8) as pool:
            seen = set(pool.map(ask, range(60)))
        history = session.history()
    assert len(seen) == len(texts)  # one value of each text
    assert sorted(history["question"]) == sorted(texts)
    assert session.budget.spent.epsilon == pytest.approx(0.01 * len(texts))
