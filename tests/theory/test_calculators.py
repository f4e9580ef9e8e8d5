"""privsql.theory: every figure of the notes, the calculators against their converses, and against exact laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privsql
from privsql import mechanisms, theory
from privsql.theory.small_tables import log_subsets


# -- note 000, theorem 6; note 002, theorem 6 --------------------------------------------------------------------
def test_the_regret_of_the_pumpkins():
    """100 bidders, revenue 100 and 20: the price of 2 dollars is 80 worse, and is chosen with 1.8%."""
    scores = {1: 100, 2: 20}
    chance = mechanisms.exponential_probabilities(scores, 0.2, 2)[2]
    bound = theory.selection_failure(candidates=2, regret=80, epsilon=0.2, sensitivity=2)
    assert bound == pytest.approx(2 * math.exp(-4)) and chance < bound


@pytest.mark.parametrize(
    "law", [mechanisms.exponential_probabilities, mechanisms.permute_and_flip_probabilities]
)
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_the_regret_of_adeles_price(law, epsilon):
    """99 prices, 99 customers: theorem 6 of both notes, by the exact law; the note's constant 4 is twice as much."""
    scores = [Fraction(price * sum(x >= price for x in range(1, 100)), 100) for price in range(1, 100)]
    chances, best = law(scores, epsilon), max(scores)
    for t in (0.5, 1, 3, 8):
        regret = theory.selection_regret(candidates=99, epsilon=epsilon, confidence=-math.expm1(-t))
        assert regret == pytest.approx(2 * (math.log(99) + t) / epsilon)
        missed = sum(p for p, score in zip(chances, scores, strict=True) if best - score > regret)
        assert missed <= math.exp(-t)
        assert theory.selection_failure(candidates=99, regret=regret, epsilon=epsilon) == pytest.approx(
            math.exp(-t)
        )
    mean = sum(p * float(best - score) for p, score in zip(chances, scores, strict=True))
    assert mean <= theory.expected_regret(candidates=99, epsilon=epsilon)


def test_the_regret_is_not_idle():
    """One best candidate and many at a distance: the bound is missed at half of it."""
    scores, epsilon = [6, *[0] * 400], 1
    chances = mechanisms.exponential_probabilities(scores, epsilon)
    assert 1 - chances[0] > 0.9
    assert theory.expected_regret(candidates=401, epsilon=epsilon) / 2 < (1 - chances[0]) * 6 + 0.5


def test_rows_to_select():
    rows = theory.rows_to_select(candidates=100, within=0.05, epsilon=1)
    regret = theory.selection_regret(candidates=100, epsilon=1, sensitivity=Fraction(1, rows))
    assert regret <= 0.05 < regret * rows / (rows - 1)


# -- note 001 ----------------------------------------------------------------------------------------------------
def test_rows_of_note_001():
    asked = {"queries": 10, "epsilon": 1}
    assert theory.rows_needed is privsql.rows_needed
    assert theory.rows_needed(within=0.05, **asked) == 1060
    assert theory.rows_needed(within=0.05, **asked, mechanism="randomised-response") == 480_117


@pytest.mark.parametrize("mechanism", ["laplace", "partition", "randomised-response"])
@pytest.mark.parametrize(("queries", "epsilon", "within"), [(10, 1, 0.05), (1, 0.3, 0.02), (3, 2, 0.1)])
def test_rows_error_and_failure_agree(mechanism, queries, epsilon, within):
    sizes = {"queries": queries, "epsilon": epsilon, "mechanism": mechanism}
    rows = theory.rows_needed(within=within, **sizes)
    assert theory.share_error(rows=rows, **sizes) <= within * (1 + 1e-9)
    assert theory.share_error(rows=rows - 1, **sizes) > within * (1 - 1e-9)
    assert theory.share_failure(within=within, rows=rows, **sizes) <= 0.05 * (1 + 1e-9)
    assert theory.share_failure(within=within, rows=rows // 2, **sizes) > 0.05


def test_the_failure_of_note_001():
    """P(max error >= a) <= k exp(-a epsilon n / k), next to it, as the noise is discrete."""
    found = theory.share_failure(within=0.05, rows=1060, epsilon=1, queries=10)
    assert found == pytest.approx(10 * math.exp(-0.05 * 1060 / 10), rel=0.06)


# -- note 000, section 3: averaging ------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_so_many_answers_give_a_count_away(epsilon):
    """O(1/epsilon^2) answers, 16 ln(2/b) of them; far fewer do not."""
    repeats = theory.repeats_to_average(epsilon=epsilon, confidence=0.95)
    assert repeats == pytest.approx(16 * math.log(40) / epsilon**2, rel=0.1)
    q = math.exp(-epsilon)
    sd = math.sqrt(2 * q) / (1 - q)
    assert 2 * stats.norm.sf(0.5 * math.sqrt(repeats) / sd) < 0.05
    assert 2 * stats.norm.sf(0.5 * math.sqrt(repeats / 20) / sd) > 0.3


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 3, 50, 10_000])
def test_answers_to_average_at_every_epsilon(epsilon):
    """Against the exact law of the mean where few answers suffice; and in order elsewhere."""
    repeats = theory.repeats_to_average(epsilon=epsilon)
    assert repeats >= 1 and theory.repeats_to_average(epsilon=epsilon, confidence=0.99) >= repeats
    if epsilon < 1:
        assert repeats * epsilon**2 == pytest.approx(16 * math.log(40), rel=0.1)
    else:
        reach = 60
        one = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
        total = np.ones(1)
        for _ in range(repeats):
            total = np.convolve(total, one / one.sum())
        sums = np.arange(total.size) - total.size // 2
        assert total[np.abs(sums) >= repeats / 2].sum() <= 0.05


# -- notes 000 and 003: small tables -----------------------------------------------------------------------------
@pytest.mark.parametrize("queries", [1, 2, 16, 10**6])
@pytest.mark.parametrize("within", [0.5, 0.25, 0.03])
def test_rows_of_claim_7(queries, within):
    rows = theory.small_table_rows(within=within, queries=queries)
    assert rows == math.ceil(math.log(2 * queries + 1) / (2 * within**2))
    assert 2 * queries * math.exp(-2 * rows * within**2) < 1  # claim 7
    assert theory.small_table_error(rows=rows, queries=queries) <= within * (1 + 1e-9)
    if rows > 1:
        assert theory.small_table_error(rows=rows - 1, queries=queries) > within


def test_the_notes_number_of_rows_is_too_small_for_two_queries():
    """log|Q| / a^2 is no row at all for one query, and leaves claim 7 open for two."""
    for queries in (1, 2):
        noted = math.log(queries) / 0.1**2
        assert 2 * queries * math.exp(-2 * noted * 0.1**2) >= 1
    assert 2 * 3 * math.exp(-2 * math.log(3) / 0.1**2 * 0.1**2) < 1


def test_proposition_6_and_theorem_7():
    sizes = {"universe": 4, "rows": 2000, "epsilon": 1}
    logs = math.log(math.comb(4 + 28 - 1, 28)) + math.log(20)
    assert theory.smalldb_error(**sizes, small_rows=28, queries=16) == pytest.approx(
        math.sqrt(math.log(33) / 56) + 2 * logs / 2000
    )
    closed = theory.smalldb_error_of_theorem_7(**sizes, queries=16)
    assert closed == pytest.approx(((16 * math.log(4) * math.log(16) + 4 * math.log(20)) / 2000) ** (1 / 3))
    assert theory.smalldb_error(**sizes, queries=16) < closed
    rows = theory.smalldb_rows_needed(within=closed, universe=4, queries=16, epsilon=1)
    assert rows in (2000, 2001)


@pytest.mark.parametrize("queries", [4, 5, 100])
@pytest.mark.parametrize("rows", [500, 10**4, 10**7])
def test_theorem_7_is_proposition_6_at_its_rows(queries, rows):
    """With a = its error and m for a/2, proposition 6 promises a or better, even for sequences."""
    within = theory.smalldb_error_of_theorem_7(universe=9, queries=queries, rows=rows, epsilon=1)
    assert within < 1
    small = theory.small_table_rows(within=within / 2, queries=queries)
    found = 2 * (small * math.log(9) + math.log(20)) / rows
    assert within / 2 + found <= within
    assert theory.smalldb_error(universe=9, rows=rows, epsilon=1, queries=queries) <= within


def test_theorem_11_beats_theorem_7_where_the_dimension_is_small():
    """Intervals among 10^4 values: dimension 2, some 5 * 10^7 queries."""
    sizes = {"universe": 10_000, "rows": 10**7, "epsilon": 1}
    queries = 10_000 * 10_001 // 2 + 1
    assert (
        theory.smalldb_error(**sizes, dimension=2) <= theory.smalldb_error(**sizes, queries=queries) * 1.001
    )
    assert theory.smalldb_error(**sizes, dimension=2) < theory.smalldb_error_of_theorem_7(
        **sizes, queries=queries
    )


def test_a_small_table_for_a_class_without_end():
    """Intervals of the line, however many values: sqrt(2 ln(2 S(m, 2)) / m), tried on samples of a million rows."""
    rows = theory.small_table_rows(within=0.25, dimension=2)
    assert theory.small_table_error(rows=rows, dimension=2) <= 0.25 * (1 + 1e-9)
    assert theory.small_table_rows(within=0.25, dimension=2, universe=50) < rows
    generator = np.random.default_rng(8)
    worst = []
    for _ in range(200):
        ranks = np.sort(generator.integers(0, 10**6, rows)) / 10**6
        above = np.arange(1, rows + 1) / rows - ranks
        worst.append(
            max(above.max(), 0) - min((above - 1 / rows).min(), 0)
        )  # of intervals: Kuiper's distance
    assert np.mean(worst) <= 0.25  # the bound is on the mean


def test_subsets_of_sauers_lemma():
    for points, dimension in itertools.product((1, 2, 5, 30), (0, 1, 2, 5, 40)):
        exact = sum(math.comb(points, size) for size in range(dimension + 1))
        assert log_subsets(points, dimension) == pytest.approx(math.log(exact))


# -- note 004: the auction, and telling the truth ----------------------------------------------------------------
def test_the_revenue_of_the_note():
    """OPT - (3/epsilon) ln(e + epsilon^2 OPT m) at 2 epsilon."""
    for epsilon in (0.1, 0.5, 2):
        bound = 240 - 3 / epsilon * math.log(math.e + epsilon**2 * 240 * 320)
        assert theory.auction_revenue(best=240, sold=320, epsilon=2 * epsilon) == pytest.approx(bound)


def test_truthfulness():
    assert theory.truthfulness(0.5) == pytest.approx(math.exp(0.5) - 1)
    assert theory.epsilon_for_truthfulness(theory.truthfulness(0.5)) == pytest.approx(0.5)
    for truthful, lying in itertools.product(itertools.product((0.0, 3.0, 6.0), repeat=3), repeat=2):
        if all(abs(a - b) <= 3 for a, b in zip(truthful, lying, strict=True)):
            before = mechanisms.exponential_probabilities(list(truthful), 0.5, 3)
            after = mechanisms.exponential_probabilities(list(lying), 0.5, 3)
            for utilities in itertools.product((0, 1), repeat=3):
                assert theory.gain_from_lying(before, after, utilities) <= theory.truthfulness(0.5)


# -- what is refused ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        (theory.selection_regret, {"candidates": 0, "epsilon": 1}, "argument-candidates"),
        (theory.selection_regret, {"candidates": 2, "epsilon": 0}, "argument-epsilon"),
        (theory.selection_regret, {"candidates": 2, "epsilon": 1, "sensitivity": 0}, "argument-sensitivity"),
        (theory.selection_regret, {"candidates": 2, "epsilon": 1, "confidence": 1}, "argument-level"),
        (theory.selection_failure, {"candidates": 2, "epsilon": 1, "regret": "x"}, "argument-numbers"),
        (theory.rows_to_select, {"candidates": 2, "epsilon": 1, "within": 1}, "argument-within"),
        (theory.share_error, {"rows": 0, "epsilon": 1}, "argument-rows"),
        (theory.share_error, {"rows": 9, "epsilon": 1, "queries": 0}, "argument-queries"),
        (theory.share_error, {"rows": 9, "epsilon": 1, "mechanism": "laplac"}, "argument-mechanism"),
        (theory.share_failure, {"rows": 9, "epsilon": 1, "within": 0}, "argument-within"),
        (theory.small_table_rows, {"within": 0.1}, "argument-queries"),
        (theory.small_table_rows, {"within": 0.1, "dimension": -1}, "argument-queries"),
        (theory.small_table_error, {"rows": 0, "queries": 3}, "argument-rows"),
        (theory.candidate_tables, {"universe": 0, "rows": 1}, "argument-rows"),
        (theory.auction_revenue, {"best": -1, "sold": 1, "epsilon": 1}, "argument-numbers"),
        (theory.epsilon_for_truthfulness, {"gain": 0}, "argument-numbers"),
        (
            theory.gain_from_lying,
            {"truthful": [1], "lying": [1, 0], "utilities": [1, 2]},
            "argument-shape",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refused(call, arguments, code):
    with pytest.raises(privsql.ArgumentError) as refused:
        call(**arguments)
    assert refused.value.code == code and refused.value.suggestion
