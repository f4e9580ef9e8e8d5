"""`session.online`: free where earlier releases are within the error, else paid for, up to the stream's epsilon."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from tests.release.people import WORKLOAD, connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}
OVER_30 = "SELECT COUNT(*) AS n FROM people WHERE age > 30"
SMOKERS = "SELECT state, COUNT(*) AS n FROM people WHERE smoker GROUP BY state"


@pytest.fixture
def session():
    with connect(people(4_000), budget={"epsilon": 5.0, "delta": 1e-5}) as session:
        yield session


def test_a_query_is_paid_for_once_and_then_free_within_its_error(session):
    online = session.online("people", epsilon=1.0, within=50)
    first = online.query(OVER_30)
    assert not first.stored and 0 < online.spent == session.budget.spent.epsilon
    assert first.plan.accuracy(0.95)["n"] <= 50
    for within in (50, 60, 500):
        assert online.query(OVER_30, within=within).fetchall() == first.fetchall()
    spent = online.spent
    better = online.query(OVER_30, within=10)
    assert not better.stored and better.plan.measurements[0].half_width(0.95) <= 10 and online.spent > spent
    assert session.budget.spent.epsilon == pytest.approx(online.spent)
    assert [each["stored"] for each in online.history] == [False, True, True, True, False]


def test_a_release_answers_where_its_predicted_error_is_small_enough(session):
    release = session.release(WORKLOAD, "people", **PRICE)
    online = session.online("people", epsilon=1.0)
    assert online.query(SMOKERS, within=1_000).fetchall() == release.query(SMOKERS).fetchall()
    assert online.spent == 0 and online.remaining == 1
    assert not online.query(SMOKERS, within=15).stored and online.spent > 0


def test_explain_says_what_it_would_cost_and_spends_nothing(session):
    online = session.online("people", epsilon=1.0, within=50)
    plan = online.explain(OVER_30)
    assert plan.epsilon > 0 and online.spent == 0
    assert online.query(OVER_30).plan.epsilon == plan.epsilon
    assert online.explain(OVER_30).stored


def test_a_stream_stops_before_it_costs_more_than_its_epsilon(session):
    online = session.online("people", epsilon=0.1, within=50)
    online.query(OVER_30)
    spent = session.budget.spent.epsilon
    with pytest.raises(privsql.BudgetError, match="of this stream is left"):
        online.query("SELECT COUNT(*) AS n FROM people WHERE age > 31")
    assert session.budget.spent.epsilon == spent == online.spent <= 0.1
    assert online.query(OVER_30).stored


def test_the_budget_of_the_session_holds_too():
    with connect(people(100), budget={"epsilon": 0.01}) as session:
        online = session.online("people", epsilon=5.0, within=5)
        with pytest.raises(privsql.BudgetError):
            online.query(OVER_30)
        assert session.budget.spent.epsilon == 0


def test_a_query_that_fails_counts_as_spent(session, monkeypatch):
    online = session.online("people", epsilon=1.0, within=50)
    price = online.explain(OVER_30).epsilon
    monkeypatch.setattr("privsql.requests.pipeline.add_noise", lambda *_: [][4_000])
    with pytest.raises(privsql.EngineError):
        online.query(OVER_30)
    assert online.spent == price == session.budget.spent.epsilon


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT AVG(age) AS a FROM people", "refused-not-released"),
        ("SELECT COUNT(*) AS n FROM people p, people q WHERE p.age = q.age", "refused"),
        ("SELECT COUNT(*) AS n FROM nobody", "name-table"),
        ("SELECT", "sql"),
    ],
)
def test_what_does_not_count_rows_of_the_table_is_refused(session, sql, code):
    online = session.online("people", epsilon=1.0, within=50)
    with pytest.raises(privsql.PrivsqlError) as caught:
        online.query(sql)
    assert caught.value.code.startswith(code) and online.spent == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"epsilon": 0}, "argument-epsilon"),
        ({"table": "nobody"}, "name-table"),
        ({"within": -1}, "argument-within"),
        ({"within": None}, "argument-within"),
        ({"confidence": 2}, "argument-level"),
        ({"method": "pmw"}, "argument"),
    ],
)
def test_arguments_are_checked(session, arguments, code):
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.online(**{"table": "people", "epsilon": 1.0, "within": 50, **arguments}).query(OVER_30)
    assert caught.value.code.startswith(code) and caught.value.suggestion


def test_a_query_that_the_budget_does_not_allow_costs_the_stream_nothing():
    with connect(people(4_000), budget={"epsilon": 0.1}) as session:
        online = session.online("people", epsilon=1.0)
        with pytest.raises(privsql.BudgetError, match="only 0"):
            online.query(OVER_30, within=8)
        assert online.spent == 0 == session.budget.spent.epsilon
        assert not online.query(OVER_30, within=500).stored


def test_a_free_answer_stays_free_when_somebody_writes_between_looking_and_asking(tmp_path):
    """Otherwise the stream pays for what it has counted as free, and costs more than it may."""
    file = str(tmp_path / "people.duckdb")
    with duckdb.connect(file) as opened:
        opened.execute("CREATE TABLE people AS SELECT i % 90 AS age FROM range(1000) r(i)")
    with privsql.connect(file, policy={"budget": {"epsilon": 5.0}}) as session:
        online = session.online("people", epsilon=1.0, within=50)
        online.query(OVER_30)
        paid, inside = online._plan, []

        def plan(request):
            inside.append(session._pipeline.engine._source._depth)
            return paid(request)

        online._plan = plan
        assert online.query(OVER_30).stored
        assert inside == [1]  # the plan and the answer see one state
