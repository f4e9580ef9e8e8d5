"""privsql.attacks: what accurate answers give away, and that a session with a budget gives away next to nothing."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql import attacks, mechanisms, theory

PEOPLE = 100
GENERATOR = np.random.default_rng()  # anew each time: the claims hold for every table
SECRET = GENERATOR.integers(0, 2, PEOPLE) == 1
METHODS = pytest.mark.parametrize("method", ["linear", "least-squares"])
CHANCE = (
    stats.binom(PEOPLE, 0.5).ppf(1 - 1e-9) / PEOPLE
)  # a coin guesses more than this once in a billion tables


def session(epsilon: float) -> privsql.Session:
    table = pd.DataFrame({"id": np.arange(PEOPLE), "secret": SECRET})
    return privsql.connect({"people": table}, {"budget": {"epsilon": epsilon}})


def counting(of: privsql.Session, epsilon: float):
    """Counts over subsets, as an analyst of this session would ask for them."""

    def ask(subset: np.ndarray) -> int:
        ids = ", ".join(map(str, np.flatnonzero(subset)))
        sql = f"SELECT COUNT(*) AS n FROM people WHERE secret AND id IN ({ids})"
        return of.query(sql, epsilon=epsilon).fetchall()[0][0]

    return ask


# -- reconstruction ----------------------------------------------------------------------------------------------
@METHODS
def test_everybody_is_rebuilt_from_answers_with_a_small_error(method):
    """Note 004: n ln(n)^2 answers with error 0.05 sqrt(n) at n = 100 give all bits away."""
    reach = 0.05 * math.sqrt(PEOPLE)
    found = attacks.reconstruct(
        lambda subset: (subset & SECRET).sum() + GENERATOR.uniform(-reach, reach),
        PEOPLE,
        error=reach,
        method=method,
    )
    assert found.share_of(SECRET) == 1.0
    assert found.asked == round(PEOPLE * math.log(PEOPLE) ** 2) == 2121
    assert not found.refused


@METHODS
@pytest.mark.parametrize("epsilon", [1, 10])
def test_chance_where_epsilon_is_split_over_the_answers(method, epsilon):
    found = attacks.reconstruct(
        lambda subset: mechanisms.laplace(int((subset & SECRET).sum()), epsilon, sensitivity=2121),
        PEOPLE,
        method=method,
    )
    assert found.asked == 2121
    assert found.share_of(SECRET) <= CHANCE


def test_chance_against_a_session_with_a_budget():
    found = attacks.reconstruct(counting(session(1.0), 0.1), PEOPLE)
    assert found.asked == 10 and found.refused
    assert found.share_of(SECRET) <= CHANCE


@METHODS
def test_the_mechanism_of_the_tightness_section(method):
    """Most answers are |Q|/2: the same for all tables, and nothing to rebuild; with no error all is."""
    found = attacks.reconstruct(attacks.half_answers(SECRET), PEOPLE, method=method)
    assert found.share_of(SECRET) <= CHANCE
    assert (
        attacks.reconstruct(attacks.half_answers(SECRET, error=0.1), PEOPLE, method=method).share_of(SECRET)
        == 1
    )
    assert attacks.half_answers([1] * PEOPLE, error=2)(np.ones(PEOPLE, dtype=bool)) == PEOPLE


def test_answers_that_fit_no_table():
    """The error is raised as little as possible."""
    found = attacks.reconstruct(lambda subset: 10_000, 20, queries=30)
    assert found.bits.all() and found.asked == 30


def test_nothing_is_answered():
    def ask(subset):
        raise privsql.BudgetError("budget-spent", "nothing is left")

    found = attacks.reconstruct(ask, 10)
    assert found.asked == 0 and found.refused and not found.bits.any()


def test_other_errors_are_the_callers():
    def ask(subset):
        raise ValueError("my own mistake")

    with pytest.raises(ValueError, match="my own"):
        attacks.reconstruct(ask, 10)


def test_without_scipy(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(privsql.ArgumentError) as refused:
        attacks.reconstruct(lambda subset: subset.sum(), 10)
    assert refused.value.code == "argument-extra" and "privsql[attacks]" in refused.value.suggestion
    found = attacks.reconstruct(lambda subset: subset.sum(), 10, queries=60, method="least-squares")
    assert found.bits.all()


# -- averaging and differencing ----------------------------------------------------------------------------------
def test_averaging_needs_as_many_answers_as_the_theory_says():
    repeats = theory.repeats_to_average(epsilon=1, confidence=1 - 1e-9)
    found = attacks.averaging(lambda: mechanisms.laplace(1234, 1), repeats)
    assert round(found.estimate) == 1234 and found.asked == repeats and found.distinct > 5


def test_averaging_a_session_gains_nothing():
    """The same query has the same answer, at no cost; asked afresh it is paid for until the budget ends."""
    owned = session(1.0)
    sql = "SELECT COUNT(*) AS n FROM people WHERE secret"
    found = attacks.averaging(lambda: owned.query(sql, epsilon=0.1).fetchall()[0][0], 50)
    assert (found.distinct, found.asked, found.refused) == (1, 50, False)
    assert owned.budget.spent.epsilon == 0.1
    found = attacks.averaging(lambda: owned.query(sql, epsilon=0.1, fresh=True).fetchall()[0][0], 50)
    assert found.asked == 9 and found.refused


def test_differencing_reads_a_person_off_exact_counts():
    for person in range(0, PEOPLE, 7):
        found = attacks.differencing(lambda subset: (subset & SECRET).sum(), PEOPLE, person)
        assert found.bit == SECRET[person] and found.asked == 2


def test_differencing_guesses_no_better_than_epsilon_allows():
    """Two counts at epsilon/2 each: right with probability e^epsilon / (1 + e^epsilon) at most."""
    epsilon, right = 0.5, 0
    for turn in range(2000):
        person = turn % PEOPLE
        found = attacks.differencing(
            lambda subset: mechanisms.laplace(int((subset & SECRET).sum()), epsilon / 2), PEOPLE, person
        )
        right += found.bit == SECRET[person]
    most = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert stats.binomtest(right, 2000, most, alternative="greater").pvalue > 1e-9


def test_differencing_a_session_ends_with_its_budget():
    owned = session(0.5)
    found = attacks.differencing(counting(owned, 0.1), PEOPLE, person=3, repeats=20)
    assert found.asked == 40 and not found.refused
    assert owned.budget.spent.epsilon == 0.2  # all but the first two are stored answers
    assert attacks.differencing(counting(session(0.1), 0.1), PEOPLE, person=3).refused


# -- membership --------------------------------------------------------------------------------------------------
def population(rows: int, chances: np.ndarray) -> np.ndarray:
    return (GENERATOR.random((rows, chances.size)) < chances).astype(int)


def test_members_stand_out_of_exact_means_and_not_of_private_ones():
    """50 people, 2,000 attributes: exact means give members away, noise for epsilon 1 over all of them does not."""
    chances = GENERATOR.uniform(0.2, 0.8, 2000)
    table, reference, others = (population(rows, chances) for rows in (50, 100, 50))
    means = table.mean(axis=0)
    noisy = mechanisms.laplace(table.sum(axis=0), epsilon=1, sensitivity=2000) / 50

    def called(answers: np.ndarray, who: np.ndarray) -> int:
        return sum(attacks.membership(lambda place: answers[place], row, reference).member for row in who)

    assert called(means, table) >= 45
    by_chance = stats.binom(50, 0.12).ppf(1 - 1e-9)  # 5%, and what a reference of 100 may be off
    assert called(means, others) <= by_chance
    assert called(noisy, table) <= by_chance


def test_a_budget_ends_the_tracing():
    left = iter([0.5] * 7)

    def ask(place: int) -> float:
        for mean in left:
            return mean
        raise privsql.BudgetError("budget-spent", "nothing is left")

    found = attacks.membership(ask, [1] * 20, [[0, 1] * 10] * 30)
    assert found.asked == 7 and found.refused and 0 < found.p_value <= 1


# -- what is refused ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: attacks.reconstruct(lambda s: 1, 0), "argument-rows"),
        (lambda: attacks.reconstruct(lambda s: 1, 5, queries=0), "argument-queries"),
        (lambda: attacks.reconstruct(lambda s: 1, 5, method="linea"), "argument-mechanism"),
        (lambda: attacks.reconstruct(lambda s: 1, 5, error="x"), "argument-numbers"),
        (lambda: attacks.reconstruct(lambda s: "x", 5), "argument-numbers"),
        (lambda: attacks.reconstruct(5, 5), "argument-shape"),
        (lambda: attacks.averaging(lambda: 1, 0), "argument-queries"),
        (lambda: attacks.differencing(lambda s: 1, 5, 5), "argument-rows"),
        (lambda: attacks.differencing(lambda s: 1, 5, -1), "argument-rows"),
        (lambda: attacks.membership(lambda p: 1, [1], [[1, 0]]), "argument-shape"),
        (lambda: attacks.membership(lambda p: 1, ["x"], [[1]]), "argument-numbers"),
        (lambda: attacks.membership(lambda p: 1, [1], []), "argument-numbers"),
        (lambda: attacks.half_answers([]), "argument-numbers"),
        (lambda: attacks.half_answers([2]), "argument-numbers"),
    ],
)
def test_refused(call, code):
    with pytest.raises(privsql.ArgumentError) as refused:
        call()
    assert refused.value.code == code
