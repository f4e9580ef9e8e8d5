"""The figures of the lecture notes (design/privacy.md), asked in SQL."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.noise.add_noise import add_noise
from privsql.noise.selection import winner
from tests.noise.statistics import Buffered

EXACT = 10_000
GRADES = ["A", "B", "C", "D", "F"]


def column(values: list, neighbours: str = "replace-one", **declared) -> privsql.Session:
    return privsql.connect(
        pd.DataFrame({"x": values}),
        {"neighbours": neighbours, "tables": {"df": {"columns": {"x": declared}}}},
    )


def bounds(session: privsql.Session, sql: str) -> list[tuple[int, int]]:
    return [(each.l1, each.linf) for each in session.explain(sql, epsilon=1).measurements]


# -- note 000: histograms --------------------------------------------------------------------------------------
def test_the_price_of_a_histogram_does_not_grow_with_its_keys():
    for count in (5, 50, 500):
        session = column([0, 1], range=[0, count - 1])
        plan = session.explain("SELECT x, COUNT(*) FROM df GROUP BY x", epsilon=1)
        assert plan.cells == count
        assert (plan.measurements[0].l1, plan.measurements[0].linf, plan.measurements[0].scale) == (2, 1, 2.0)
        assert bounds(
            column([0], "add-remove", range=[0, count - 1]), "SELECT x, COUNT(*) FROM df GROUP BY x"
        ) == [(1, 1)]


def test_the_grades_histogram():
    frame = pd.DataFrame({"grade": list("AABBBCF")})
    out = frame.dp.query(
        "SELECT grade, COUNT(*) AS n FROM df GROUP BY grade", epsilon=EXACT, keys={"grade": GRADES}
    )
    assert dict(out.to_numpy()) == {"A": 2, "B": 3, "C": 1, "D": 0, "F": 1}


@pytest.mark.parametrize(
    ("sql", "replace_one", "add_remove"),
    [
        ("SELECT COUNT(*) FROM df", [(1, 1)], [(1, 1)]),
        ("SELECT COUNT(*) FROM df WHERE x > 3", [(1, 1)], [(1, 1)]),
        ("SELECT x, COUNT(*) FROM df GROUP BY x", [(2, 1)], [(1, 1)]),
        ("SELECT COUNT(*) FILTER (WHERE x < 5), COUNT(*) FILTER (WHERE x >= 5) FROM df", [(2, 1)], [(1, 1)]),
        (
            "SELECT COUNT(*) FILTER (WHERE x < 3), COUNT(*) FILTER (WHERE x BETWEEN 3 AND 6), COUNT(*) FILTER (WHERE x > 6) FROM df",  # noqa: E501
            [(2, 1)],
            [(1, 1)],
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE x < 6), COUNT(*) FILTER (WHERE x > 4) FROM df",
            [(1, 1), (1, 1)],
            [(1, 1), (1, 1)],
        ),
        ("SELECT SUM(x) FROM df", [(7, 7)], [(10, 10)]),
        ("SELECT SUM(x) FROM df WHERE x > 5", [(10, 10)], [(10, 10)]),
        ("SELECT x, SUM(x) FROM df GROUP BY x", [(20, 10)], [(10, 10)]),
        (
            "SELECT AVG(x) FROM df",
            [(7, 7), (1, 1)],
            [(7, 7)],
        ),  # under replace-one by the public number of rows, for 1/1024
        ("SELECT AVG(x) FROM df WHERE x > 3", [(12, 6)], [(6, 6)]),
        ("SELECT COUNT(*) FROM (SELECT * FROM df UNION ALL SELECT * FROM df)", [(2, 2)], [(2, 2)]),
    ],
)
def test_the_constants(sql, replace_one, add_remove):
    """Whole numbers from 3 to 10, never NULL: SUM moves by 7 when one is replaced, by 10 when one comes or goes."""
    assert bounds(column([3, 10], range=[3, 10]), sql) == replace_one
    assert bounds(column([3, 10], "add-remove", range=[3, 10]), sql) == add_remove


def test_a_sum_that_may_be_null_moves_from_nothing():
    frame = pd.DataFrame({"x": pd.array([3, None], dtype="Int64")})
    for neighbours in ("replace-one", "add-remove"):
        assert (
            frame.dp.explain("SELECT SUM(x) FROM df", epsilon=1, ranges={"x": (3, 10)}, neighbours=neighbours)
            .measurements[0]
            .l1
            == 10
        )


# -- note 000: noisy max ---------------------------------------------------------------------------------------
LIKES = pd.DataFrame(
    {
        "apple": [True, False, False, False, False],
        "orange": [True, True, True, True, False],
        "banana": [False, True, True, False, True],
    }
)
FRUIT = "FROM (UNPIVOT df ON apple, orange, banana INTO NAME fruit VALUE likes) WHERE likes GROUP BY fruit"


def test_fruit_counts_by_unpivot():
    session = privsql.connect(LIKES)
    answer = session.query(f"SELECT fruit, COUNT(*) AS n {FRUIT}", epsilon=EXACT)
    assert answer.fetchall() == [("apple", 1), ("orange", 4), ("banana", 3)]
    assert bounds(session, f"SELECT fruit, COUNT(*) {FRUIT}") == [
        (3, 1)
    ]  # a fruit is named once, and there are three
    choice = session.explain(f"SELECT fruit {FRUIT} ORDER BY COUNT(*) DESC LIMIT 1", epsilon=1)
    assert choice.measurements[0].linf == 1
    assert choice.measurements[0].scale == 2.0
    assert session.query(f"SELECT fruit {FRUIT} ORDER BY COUNT(*) DESC LIMIT 1", epsilon=1000).fetchall() == [
        ("orange",)
    ]
    assert session.query(f"SELECT fruit {FRUIT} ORDER BY COUNT(*) LIMIT 1", epsilon=1000).fetchall() == [
        ("apple",)
    ]


def test_the_noise_of_the_note():
    counts = np.array([1, 4, 3])
    names = ["apple", "orange", "banana"]
    assert names[winner(counts + np.array([1, -1, -1]))] == "orange"
    assert names[winner(counts + np.array([0, -1, 1]))] == "banana"
    assert names[winner(np.array([3, 3, 3]))] == "apple"  # ties to the first


# -- winners, as often as they should --------------------------------------------------------------------------
def noise_table(kind: str, rate: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """P(N = v) and P(N <= v) on whole numbers from -reach to reach."""
    values = np.arange(-reach, reach + 1)
    weights = (
        np.where(values >= 0, np.exp(-rate * values), 0.0)
        if kind == "permute-and-flip"
        else np.exp(-rate * np.abs(values))
    )
    mass = weights / weights.sum()
    return mass, np.cumsum(mass)


def winning(kind: str, scores: tuple[int, ...], rate: float) -> np.ndarray:
    """P(i wins), with noise in steps so small that ties are rare."""
    steps = 32
    return winning_in_steps(kind, tuple(steps * each for each in scores), rate / steps)


def winning_in_steps(kind: str, scores: tuple[int, ...], rate: float) -> np.ndarray:
    """P(i wins): the noisy greatest, the first of several; summed from the definition."""
    if kind in ("gumbel", "exponential"):
        weights = np.exp(rate * (np.array(scores) - max(scores)))
        return weights / weights.sum()
    mass, cumulative = noise_table(kind, rate, math.ceil(60 / rate))
    chances = []
    for i, own in enumerate(scores):
        total = mass.copy()
        for j, other in enumerate(scores):
            if j != i:  # an earlier one must stay below, a later one may tie
                shift = np.arange(len(mass)) + own - other - (1 if j < i else 0)
                total *= np.where(shift < 0, 0.0, cumulative[np.clip(shift, 0, len(mass) - 1)])
        chances.append(total.sum())
    return np.array(chances)


def contest(scores: tuple[int, ...], neighbours: str = "replace-one") -> privsql.Session:
    """One candidate per score; none may be NULL."""
    return column(
        [each for each, score in enumerate(scores) for _ in range(score)],
        neighbours,
        range=[0, len(scores) - 1],
    )


CHOICE = "SELECT x FROM df GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1"


def test_the_formula_against_all_outcomes():
    scores = (2, 1, 1)
    mass, _ = noise_table("laplace", 1.0, 9)
    brute = np.zeros(3)
    for outcome in itertools.product(range(19), repeat=3):
        noisy = [score + step for score, step in zip(scores, outcome, strict=True)]
        brute[noisy.index(max(noisy))] += np.prod(mass[list(outcome)])
    assert winning_in_steps("laplace", scores, 1.0) == pytest.approx(brute, abs=1e-3)


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "laplace", "gumbel", "exponential"])
@pytest.mark.parametrize(("neighbours", "factor"), [("replace-one", 2), ("add-remove", 1)])
def test_winners_have_their_exact_probabilities(mechanism, neighbours, factor):
    factor = 2 if mechanism == "exponential" else factor  # the textbook's takes no notice of the relation
    scores = (12, 10, 9, 9)
    session = contest(scores, neighbours)
    plan = session.explain(
        CHOICE, epsilon=factor / 2, mechanism=mechanism
    )  # so that both relations have the same noise
    assert plan.measurements[0].scale == 2
    assert plan.cells == 4
    exact = session._pipeline.engine.run(plan.sql, plan.keys)
    source, times = Buffered(), 1200
    wins = (
        np.bincount([int(add_noise(plan, [exact], source).cells[0]) for _ in range(times)], minlength=4)
        / times
    )
    reach = 3.3 / math.sqrt(times)  # Hoeffding: passed once in 1e9
    assert np.abs(wins - winning(mechanism, scores, 1 / 2)).max() < reach
    for wrong in (0.25, 4.0):
        assert np.abs(wins - winning(mechanism, scores, 1 / (2 * wrong))).max() > reach, "no power"


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "laplace"])
def test_equal_candidates_win_equally_often(mechanism):
    """Ties of whole scores go to the first: at this rate it would win 88% (76%) of the time."""
    session = contest((5, 5))
    plan = session.explain(CHOICE, epsilon=4, mechanism=mechanism)
    exact = session._pipeline.engine.run(plan.sql, plan.keys)
    source, times = Buffered(), 1200
    wins = sum(int(add_noise(plan, [exact], source).cells[0]) == 0 for _ in range(times)) / times
    assert abs(wins - 0.5) < 3.3 / math.sqrt(times)  # Hoeffding: passed once in 1e9


@pytest.mark.parametrize(
    ("mechanism", "right"), [("permute-and-flip", 0.85), ("laplace", 0.76), ("exponential", 0.75)]
)
def test_the_winner_is_correct_as_often_as_computed(mechanism, right):
    """privacy.md: five candidates, a gap of 5, epsilon 1. The winner stands in the middle: ties help and hurt it alike."""
    scores = (10, 10, 15, 10, 10)
    assert winning(mechanism, scores, 1 / 2)[2] == pytest.approx(right, abs=0.005)
    plan = contest(scores).explain(CHOICE, epsilon=1, mechanism=mechanism)
    assert plan.measurements[0].scale == 2.0
    assert plan.epsilon == 1.0


# -- note 000: asking again ------------------------------------------------------------------------------------
def test_averaging_gains_nothing_from_stored_answers():
    session = column([1] * 100, range=[0, 1])
    asked = {session.query("SELECT COUNT(*) FROM df", epsilon=0.1).fetchall()[0][0] for _ in range(200)}
    assert len(asked) == 1
    assert session.budget.spent.epsilon == 0.1
    fresh = [
        session.query("SELECT COUNT(*) FROM df", epsilon=0.1, fresh=True).fetchall()[0][0] for _ in range(20)
    ]
    assert len(set(fresh)) > 1
    assert session.budget.spent.epsilon == pytest.approx(2.1)


# -- note 001 --------------------------------------------------------------------------------------------------
def test_a_workload_of_overlapping_counts_costs_k():
    k = 10
    counts = ", ".join(f"COUNT(*) FILTER (WHERE x > {index})" for index in range(k))
    plan = column([1], range=[0, 20]).explain(f"SELECT {counts} FROM df", epsilon=1)
    assert len(plan.measurements) == k
    assert all(each.l1 == 1 and each.epsilon == pytest.approx(1 / k) for each in plan.measurements)
    assert all(each.scale == pytest.approx(k) for each in plan.measurements)


def test_how_many_rows_a_workload_needs():
    """P(max error >= a) <= k exp(-a epsilon n / k): 10 counts within 5% of n, epsilon 1, with 95%: about 1060 rows."""
    k, a, beta = 10, 0.05, 0.05
    counts = ", ".join(f"COUNT(*) FILTER (WHERE x > {index}) AS c{index}" for index in range(k))
    session = column([1], range=[0, 20])
    rows = 1060
    plan = session.explain(f"SELECT {counts} FROM df", within=a * rows, confidence=1 - beta)
    assert plan.epsilon == pytest.approx(1.0, rel=0.02)


def test_a_workload_all_at_once():
    """The same bound from the plan: all ten within a n, with probability 1 - k exp(-a epsilon n / k)."""
    k, beta, epsilon = 10, 0.05, 1.0
    counts = ", ".join(f"COUNT(*) FILTER (WHERE x > {index}) AS c{index}" for index in range(k))
    accuracy = (
        column([1], range=[0, 20]).explain(f"SELECT {counts} FROM df", epsilon=epsilon).accuracy(1 - beta)
    )
    note = k * math.log(k / beta) / epsilon  # a n
    assert all(note - 2 <= width <= note + 1 for width in accuracy.together.values())
    assert all(accuracy[name] < width for name, width in accuracy.together.items())
    assert "all at once" in str(accuracy)


# -- neighbours ------------------------------------------------------------------------------------------------
def test_every_receipt_names_its_relation():
    for neighbours in ("replace-one", "add-remove"):
        session = column([1, 2], neighbours, range=[0, 3])
        assert session.query("SELECT COUNT(*) FROM df", epsilon=1).receipt["neighbours"] == neighbours
        assert neighbours in str(session.explain("SELECT COUNT(*) FROM df", epsilon=1))


def test_explain_compares_a_choice_with_a_histogram():
    plan = contest((3, 2, 1)).explain(CHOICE, epsilon=1)
    assert any("histogram" in note and "times" in note for note in plan.notes)
    assert "label" in str(plan)
    both = contest((3, 2, 1)).explain(
        "SELECT x, COUNT(*) AS n FROM df GROUP BY x ORDER BY n DESC LIMIT 1", epsilon=1
    )
    assert any("noisy" in note for note in both.notes)
    assert both.measurements[0].l1 == 2
