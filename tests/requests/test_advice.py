"""session.advise: the error that explain predicts at each epsilon, what an attacker learns, and nothing spent."""

from __future__ import annotations

import math
from typing import Any

import pytest

import privsql
from privsql import ArgumentError, Refused
from tests.conftest import clinic

POLICY = {
    "budget": {"epsilon": 3.0},
    "tables": {"visits": {"columns": {"age": {"range": [0, 100]}}}},
}
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def session() -> Any:
    with privsql.connect({"visits": clinic(50)}, POLICY) as opened:
        yield opened


def test_errors_are_those_that_explain_predicts(session: privsql.Session) -> None:
    sql = "SELECT COUNT(*) AS n, AVG(age) AS a FROM visits"
    found = session.advise(sql, epsilons=[0.1, 1], rows=50, confidence=0.9).df()
    for _, row in found.iterrows():
        expected = session.explain(sql, epsilon=row["epsilon"]).accuracy(0.9, 50)
        assert (row["n"], row["a"]) == (expected["n"], expected["a"])


def test_an_attacker_with_even_odds_multiplies_them_by_at_most_exp_epsilon(session: privsql.Session) -> None:
    found = session.advise(COUNT, epsilons=[0.5]).df().iloc[0]["attacker_at_most"]
    assert math.isclose(found / (1 - found), math.exp(0.5))


def test_nothing_is_spent_and_the_rest_of_the_budget_is_counted(session: privsql.Session) -> None:
    session.query(COUNT, epsilon=1.0)
    found = session.advise(COUNT, epsilons=[0.1, 0.3, 3])
    assert found.df()["queries_left"].tolist() == [20, 6, 0]
    assert session.budget.spent.epsilon == 1.0


def test_an_average_depends_on_rows_and_says_so(session: privsql.Session) -> None:
    shown = str(session.advise("SELECT AVG(age) AS a FROM visits", epsilons=[1]))
    assert "rows averaged" in shown
    assert "rows averaged" not in str(
        session.advise("SELECT AVG(age) AS a FROM visits", epsilons=[1], rows=50)
    )


def test_the_picture_has_a_line_for_each_number(session: privsql.Session) -> None:
    axes = session.advise("SELECT COUNT(*) AS n, AVG(age) AS a FROM visits", rows=50).plot()
    assert [each.get_label() for each in axes.get_lines()] == ["n", "a"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"epsilon": 1.0}, "argument-epsilon"),
        ({"within": 5.0}, "argument-epsilon"),
        ({"epsilons": []}, "argument-shape"),
        ({"epsilons": "1"}, "argument-shape"),
        ({"epsilons": [0.1, -1]}, "argument-epsilon"),
        ({"confidence": 2.0}, "argument-level"),
        ({"rows": 0}, "argument-rows"),
    ],
)
def test_wrong_arguments_are_errors(session: privsql.Session, given: dict[str, Any], code: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        session.advise(COUNT, **given)
    assert caught.value.code == code


def test_a_query_without_a_private_answer_is_refused(session: privsql.Session) -> None:
    with pytest.raises(Refused):
        session.advise("SELECT * FROM visits")
