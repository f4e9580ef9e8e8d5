"""smalldb: its exact law over all neighbours, the sampler against the law, the notes' bounds, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql import mechanisms, theory
from privsql.mechanisms.smalldb import MOST_CANDIDATES, _task
from privsql.noise import candidate_tables
from privsql.noise.candidate_tables import Candidates
from tests.noise.statistics import FALSE_ALARM, Buffered, p_value, without_rare

ALL_SETS = [list(each) for each in itertools.product((0, 1), repeat=3)]
LINEAR = [[0, 0.25, 1], [Fraction(1, 3), 1, 0], [1, 0, 0]]


def histograms(elements: int, rows: int) -> list[tuple[int, ...]]:
    return [each for each in itertools.product(range(rows + 1), repeat=elements) if sum(each) == rows]


def neighbours(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """One row replaced by another."""
    moved = []
    for gone, come in itertools.permutations(range(len(counts)), 2):
        if counts[gone]:
            moved.append(tuple(c - (i == gone) + (i == come) for i, c in enumerate(counts)))
    return moved


def worst_error(one, other, queries) -> Fraction:
    def answer(table, query):
        exact = [Fraction(str(value)) if isinstance(value, float) else Fraction(value) for value in query]
        return sum(c * v for c, v in zip(table, exact, strict=True)) / sum(table)

    return max(abs(answer(one, query) - answer(other, query)) for query in queries)


def law(counts, queries, epsilon, rows) -> dict[tuple[int, ...], float]:
    """From the definition: P(y) ~ exp(epsilon u / (2 Delta u)), u = -max error, Delta u = 1/n."""
    errors = {table: worst_error(counts, table, queries) for table in histograms(len(counts), rows)}
    weights = {table: math.exp(-epsilon * sum(counts) * error / 2) for table, error in errors.items()}
    return {table: weight / sum(weights.values()) for table, weight in weights.items()}


# -- privacy -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("queries", [ALL_SETS, LINEAR], ids=["sets", "linear"])
@pytest.mark.parametrize(("people", "rows", "epsilon"), [(4, 3, 1), (5, 2, 0.3), (6, 3, 2)])
def test_every_candidate_over_all_neighbours(queries, people, rows, epsilon):
    """Every table of so many people, every neighbour of it, every candidate; and at twice the rate it fails."""
    tables = histograms(3, people)
    chances = {
        each: mechanisms.smalldb_probabilities(list(each), queries, epsilon, rows=rows) for each in tables
    }
    wrong = {
        each: mechanisms.smalldb_probabilities(list(each), queries, 2 * epsilon, rows=rows) for each in tables
    }

    def worst(laws) -> float:
        return max(
            abs(math.log(laws[one][table] / laws[other][table]))
            for one in tables
            for other in neighbours(one)
            for table in laws[one]
        )

    assert 0.6 * epsilon < worst(chances) <= epsilon * (1 + 1e-12)
    assert worst(wrong) > epsilon
    for counts in tables:
        assert set(chances[counts]) == set(histograms(3, rows))
        assert chances[counts] == pytest.approx(law(counts, queries, epsilon, rows), rel=1e-9)


@pytest.mark.parametrize("queries", [ALL_SETS, LINEAR], ids=["sets", "linear"])
def test_frequencies_are_the_law(queries):
    task, source = _task([5, 2, 3], queries, 2, None, 2, "replace-one"), Buffered()
    chances = list(law((5, 2, 3), queries, 2, 2).values())
    tables = [tuple(each.tolist()) for each in task.candidates.all_counts()]
    order = [tables.index(table) for table in histograms(3, 2)]
    cells = without_rare(chances, 6000)
    counts = cells @ np.bincount([task.draw(source) for _ in range(6000)], minlength=len(tables))[order]
    assert p_value(counts, cells @ chances) > FALSE_ALARM
    for wrong in (1.2, 3.2):
        assert p_value(counts, cells @ list(law((5, 2, 3), queries, wrong, 2).values())) < FALSE_ALARM


def test_the_choice_is_what_was_drawn():
    """Near certainty: the table of the right shares."""
    small = mechanisms.smalldb({"a": 3000, "b": 6000, "c": 0}, ALL_SETS, 100, rows=3)
    assert small.table == {"a": 1, "b": 2, "c": 0}
    assert small.answers == tuple(query[0] / 3 + query[1] * 2 / 3 for query in ALL_SETS)
    assert small.error([3000, 6000, 0]) == 0.0
    assert small.error([6000, 3000, 0]) == pytest.approx(1 / 3)
    assert (small.rows, small.candidates) == (3, 10)
    series = pd.Series([0, 2000], index=["x", "y"])
    small = mechanisms.smalldb(series, [lambda label: label == "y"], 100, rows=5)
    assert small.table.to_dict() == {"x": 0, "y": 5} and small.answers == (1.0,)


# -- all tables, all errors --------------------------------------------------------------------------------------
@pytest.mark.parametrize(("universe", "rows"), [(1, 1), (1, 9), (2, 5), (5, 2), (4, 4), (6, 1), (3, 7)])
def test_every_table_is_a_candidate_once(universe, rows):
    candidates = Candidates(universe, rows)
    tables = [tuple(each.tolist()) for each in candidates.all_counts()]
    assert sorted(tables) == sorted(histograms(universe, rows))
    assert len(tables) == theory.candidate_tables(universe=universe, rows=rows)
    assert [tuple(candidates.nth(index).tolist()) for index in range(len(tables))] == tables


@pytest.mark.parametrize("scale", [1, 10**9])
@pytest.mark.parametrize(("universe", "rows"), [(5, 2), (3, 6)])
def test_errors_are_exact(universe, rows, scale):
    """In floats that hold whole numbers, and in integers where these would not."""
    generator = np.random.default_rng(universe)
    queries = generator.integers(0, 3, (7, universe)) * scale + generator.integers(0, 2, (7, universe))
    counts = generator.integers(0, 10**6, universe)
    people = int(counts.sum())
    candidates = Candidates(universe, rows)
    found = candidates.greatest_errors(queries, queries @ counts, people).tolist()
    for table, error in zip(candidates.all_counts(), found, strict=True):
        assert error == max(
            abs(sum(int(q) * (rows * int(c) - people * int(y)) for q, c, y in zip(query, counts, table)))
            for query in queries
        )


def test_candidates_in_several_batches(monkeypatch):
    queries = np.array(ALL_SETS, dtype=np.int64)
    whole = Candidates(3, 8).greatest_errors(queries, queries @ np.array([5, 6, 7]), 18)
    monkeypatch.setattr(candidate_tables, "_CELLS", 16)
    assert (
        Candidates(3, 8).greatest_errors(queries, queries @ np.array([5, 6, 7]), 18).tolist()
        == whole.tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize(("universe", "rows", "candidates"), [(8, 16, 245_157), (64, 4, 766_480)])
def test_hundreds_of_thousands_of_candidates(universe, rows, candidates):
    counts = [10_000 * (place % 3 == 0) + place for place in range(universe)]
    generator = np.random.default_rng(4)
    queries = generator.integers(0, 2, (64, universe))
    small = mechanisms.smalldb(counts, queries, 1, rows=rows)
    assert small.candidates == candidates
    assert small.error(counts) <= small.bounds.proposition_6


# -- the notes' bounds -------------------------------------------------------------------------------------------
def test_rows_follow_from_the_accuracy_wanted():
    """m = ceil(ln(2 |Q| + 1) / (2 a^2)); a query asked twice counts once."""
    queries = [[0, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]]  # five differ
    small = mechanisms.smalldb([50, 30, 20], queries, 1, within=0.3)
    assert small.rows == math.ceil(math.log(11) / (2 * 0.3**2)) == 14
    assert small.bounds.claim_7 <= 0.3


def test_claim_7_for_every_table():
    """For every table of up to 6 rows some small table is as near as claimed."""
    for rows in (2, 4, 7):
        claimed = theory.small_table_error(rows=rows, queries=4)  # 8 sets, of which half are complements
        for people in range(1, 7):
            for counts in histograms(3, people):
                best = min(worst_error(counts, table, ALL_SETS) for table in histograms(3, rows))
                assert best <= claimed


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("people", [20, 300])
def test_bounds_hold_by_the_law(people, confidence):
    counts = [people // 2, people // 3, people - people // 2 - people // 3]
    chances = mechanisms.smalldb_probabilities(counts, ALL_SETS, 1, rows=6)
    bounds = mechanisms.smalldb(counts, ALL_SETS, 1, rows=6, confidence=confidence).bounds
    missed = sum(
        chance
        for table, chance in chances.items()
        if worst_error(counts, table, ALL_SETS) > bounds.proposition_6
    )
    assert missed <= 1 - confidence
    assert bounds.dimension == 3 and bounds.confidence == confidence
    assert bounds.claim_7 < bounds.proposition_6


def test_theorem_11_by_the_law():
    """The promise for the best number of rows, which the three queries' VC dimension and the universe give."""
    counts, sizes = [12, 8, 10], {"universe": 3, "rows": 30, "epsilon": 2, "dimension": 3}
    bound = mechanisms.smalldb(counts, ALL_SETS, 2, rows=4).bounds.theorem_11
    assert bound == theory.smalldb_error(**sizes)
    bounds = {rows: theory.smalldb_error(**sizes, small_rows=rows) for rows in range(1, 500)}
    best = min(bounds, key=bounds.__getitem__)
    assert bounds[best] <= bound <= bounds[best] * 1.001  # it looks in steps of a hundredth
    chances = mechanisms.smalldb_probabilities(counts, ALL_SETS, 2, rows=best)
    missed = sum(chance for table, chance in chances.items() if worst_error(counts, table, ALL_SETS) > bound)
    assert missed <= 0.05


def test_linear_queries_have_no_vc_dimension():
    bounds = mechanisms.smalldb([3, 4, 5], LINEAR, 1, rows=2).bounds
    assert bounds.dimension is None and bounds.theorem_11 is None


# -- what is refused ---------------------------------------------------------------------------------------------
def refusal(*arguments, **keywords) -> privsql.ArgumentError:
    with pytest.raises(privsql.ArgumentError) as refused:
        mechanisms.smalldb(*arguments, **keywords)
    assert refused.value.suggestion
    return refused.value


def test_refused_beyond_a_million_with_the_numbers():
    ask = [[1, 0, 0, 0, 0, 0, 0, 0]]
    error = refusal([1] * 8, ask, 1, rows=30)
    assert error.code == "argument-candidates"
    for number in ("8", "30", "10,295,472", f"{MOST_CANDIDATES:,}", "20 rows"):
        assert number in error.message + error.suggestion
    assert theory.candidate_tables(universe=8, rows=20) <= MOST_CANDIDATES
    assert theory.candidate_tables(universe=8, rows=21) > MOST_CANDIDATES
    assert "10^" in refusal([1] * 8, ask, 1, rows=10**9).message
    assert refusal([1] * 8, ask, 1, within=0.001).code == "argument-candidates"


def test_probabilities_are_for_few_tables():
    with pytest.raises(privsql.ArgumentError) as refused:
        mechanisms.smalldb_probabilities([1] * 200, [[1] * 200], 1, rows=3)
    assert refused.value.code == "argument-candidates"


def test_refused_under_add_remove():
    error = refusal([5, 5], [[0, 1]], 1, rows=2, neighbours="add-remove")
    assert error.code == "argument-neighbours" and "add-remove" in error.message
    assert refusal([5, 5], [[0, 1]], 1, rows=2, neighbours="none").code == "argument-neighbours"


def test_refused_elsewhere():
    for counts in ([], [0, 0], [-1, 2], [1.5, 1], ["a", 1], 5, np.zeros((2, 2)), None):
        assert refusal(counts, [[0, 1]], 1, rows=2).code == "argument-numbers"
    for queries in (None, "ab", [], [5], [[0, 2]], [[-0.1, 1]], [[0, 1], [1]], ["01"]):
        assert refusal([5, 5], queries, 1, rows=2).code == "argument-queries"
    assert refusal([500, 500], [[0.123456789012345678, 1e-16]], 1, rows=2).code == "argument-queries"
    assert refusal([5, 5], [[0.5, 1e-300]], 1, rows=2).code == "argument-queries"
    assert refusal([5, 5], [[0, 1, 1]], 1, rows=2).code == "argument-shape"
    assert refusal([5, 5], [["a", 1]], 1, rows=2).code == "argument-numbers"
    for keywords in ({}, {"rows": 2, "within": 0.5}, {"rows": 0}, {"rows": 1.5}):
        assert refusal([5, 5], [[0, 1]], 1, **keywords).code == "argument-rows"
    assert refusal([5, 5], [[0, 1]], 1, within=2).code == "argument-within"
    assert refusal([5, 5], [[0, 1]], 0, rows=2).code == "argument-epsilon"
    assert refusal([5, 5], [[0, 1]], 1, rows=2, confidence=1).code == "argument-level"
    small = mechanisms.smalldb([5, 5], [[0, 1]], 1, rows=2)
    with pytest.raises(privsql.ArgumentError):
        small.error([1, 2, 3])
