"""Shattering and VC dimension: note 003's figures, brute force over many queries, the dimensions that are known."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import privsql
from privsql import theory

CLASSES = [
    (theory.Intervals(), 2),
    (theory.HalfPlanes(), 3),
    (theory.Rectangles(1), 2),
    (theory.Rectangles(2), 4),
    (theory.Rectangles(3), 6),
    (theory.Conjunctions(1), 2),
    (theory.Conjunctions(2), 2),
    (theory.Conjunctions(3), 3),
    (theory.Conjunctions(4), 4),
    (theory.Conjunctions(3, monotone=True), 3),
    (theory.Conjunctions(1, monotone=True), 1),
]


def test_the_four_sets_of_note_003():
    """Figures 1 to 4: two points, three points, three on a line, a quadrilateral."""
    planes = theory.HalfPlanes()
    assert theory.shatters(planes, [(0, 0), (1, 2)])
    assert theory.shatters(planes, [(0, 0), (1, 0), (0, 1)])
    assert not theory.shatters(planes, [(0, 0), (1, 1), (2, 2)])
    assert not theory.shatters(planes, [(0, 0), (1, 0), (1, 1), (0, 1)])
    assert not theory.shatters(planes, [(0, 0), (4, 0), (0, 4), (1, 1)])  # one in the hull of the others
    assert not theory.shatters(planes, [(0, 0), (0, 0)])
    assert theory.vc_dimension(planes) == 3


@pytest.mark.parametrize(("queries", "dimension"), CLASSES, ids=str)
def test_dimensions_that_are_known(queries, dimension):
    assert theory.vc_dimension(queries) == dimension


@pytest.mark.parametrize(
    ("queries", "universe"),
    [
        (theory.Intervals(), range(7)),
        (theory.HalfPlanes(), [(x, y) for x in range(3) for y in range(3)]),
        (theory.Rectangles(2), [(x, y) for x in range(3) for y in range(3)]),
        *((theory.Conjunctions(d), list(itertools.product((0, 1), repeat=d))) for d in (1, 2, 3, 4)),
        *((theory.Conjunctions(d, True), list(itertools.product((0, 1), repeat=d))) for d in (1, 2, 3, 4)),
    ],
    ids=str,
)
def test_the_dimension_is_met_on_a_universe(queries, universe):
    assert theory.vc_dimension(queries, universe=list(universe)) == queries.dimension


# -- against queries written out ---------------------------------------------------------------------------------


def half_planes(points) -> set[tuple[bool, ...]]:
    """What half-planes cut out, by many directions: for few points on a small grid these are all."""
    found = set()
    for x, y in itertools.product(range(-9, 10), repeat=2):
        values = [x * a + y * b for a, b in points]
        for bar in {*values, *(Fraction(2 * value + 1, 2) for value in values), -1000, 1000}:
            found.add(tuple(value >= bar for value in values))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_half_planes_against_many_directions(size):
    grid, planes = list(itertools.product(range(3), repeat=2)), theory.HalfPlanes()
    for points in itertools.combinations(grid, size):
        cut = half_planes(points)
        read = planes.points(points)
        for labels in itertools.product((False, True), repeat=size):
            inside = [point for point, label in zip(read, labels, strict=True) if label]
            outside = [point for point, label in zip(read, labels, strict=True) if not label]
            assert planes.cuts_out(inside, outside) == (labels in cut), (points, labels)
        assert theory.shatters(planes, points) == (len(cut) == 2**size)


def literals(variables: int, monotone: bool) -> list[list[tuple[int, int]]]:
    each = [(place, value) for place in range(variables) for value in ((1,) if monotone else (0, 1))]
    return [list(some) for size in range(len(each) + 1) for some in itertools.combinations(each, size)]


@pytest.mark.parametrize("monotone", [False, True])
def test_conjunctions_written_out(monotone):
    cube = list(itertools.product((0, 1), repeat=3))
    answers = [
        [all(point[place] == value for place, value in query) for point in cube]
        for query in literals(3, monotone)
    ]
    for size in (1, 2, 3):
        for places in itertools.combinations(range(8), size):
            points = [cube[place] for place in places]
            assert theory.shatters(theory.Conjunctions(3, monotone), points) == theory.shatters(
                answers, places
            )
    assert theory.vc_dimension(answers) == 3


def test_rectangles_written_out():
    grid = list(itertools.product(range(3), repeat=2))
    sides = [(a, b) for a in range(4) for b in range(-1, 3)]
    answers = [
        [low <= x <= high and down <= y <= up for x, y in grid]
        for (low, high), (down, up) in itertools.product(sides, repeat=2)
    ]
    assert theory.vc_dimension(answers) == theory.vc_dimension(theory.Rectangles(2), universe=grid) == 4
    for places in itertools.combinations(range(9), 3):
        points = [grid[place] for place in places]
        assert theory.shatters(theory.Rectangles(2), points) == theory.shatters(answers, places)


# -- finite classes ----------------------------------------------------------------------------------------------
def by_definition(answers: np.ndarray) -> int:
    return max(
        size
        for size in range(answers.shape[1] + 1)
        for points in itertools.combinations(range(answers.shape[1]), size)
        if len({tuple(row) for row in answers[:, list(points)].tolist()}) == 2**size
    )


@pytest.mark.parametrize("seed", range(12))
def test_finite_classes_by_the_definition_and_lemma_10(seed):
    generator = np.random.default_rng(seed)
    answers = generator.integers(0, 2, (int(generator.integers(1, 40)), int(generator.integers(1, 8))))
    dimension = theory.vc_dimension(answers)
    assert dimension == by_definition(answers)
    assert dimension <= math.log2(len(np.unique(answers, axis=0)))


def test_all_sets_of_four_elements():
    queries = list(itertools.product((0, 1), repeat=4))
    assert theory.vc_dimension(queries) == 4 == math.log2(len(queries))
    assert theory.vc_dimension(list(itertools.product((0, 1), repeat=13))) == 13
    assert theory.vc_dimension([queries[3]] * 50) == 0  # the same query over and over
    assert not theory.shatters(queries, [0, 0])


def test_refused():
    for queries in ([], [[0, 2]], [[0, 1], [1]], "ab", None, [0, 1]):
        with pytest.raises(privsql.ArgumentError) as refused:
            theory.vc_dimension(queries)
        assert refused.value.code == "argument-queries"
    for points in ([2], [-1], ["a"], [0.5], [True]):
        with pytest.raises(privsql.ArgumentError) as refused:
            theory.shatters([[0, 1]], points)
        assert refused.value.code == "argument-numbers"
    for queries, points in (
        (theory.HalfPlanes(), [(1, 2, 3)]),
        (theory.HalfPlanes(), [1]),
        (theory.HalfPlanes(), [(1, math.nan)]),
        (theory.Conjunctions(2), [(0, 2)]),
        (theory.Rectangles(2), ["ab"]),
    ):
        with pytest.raises(privsql.ArgumentError) as refused:
            theory.shatters(queries, points)
        assert refused.value.code == "argument-numbers"
    for queries, universe in (
        (np.random.default_rng(1).integers(0, 2, (5000, 400)), None),
        (theory.HalfPlanes(), [(x, 0) for x in range(2000)]),
    ):
        with pytest.raises(privsql.ArgumentError) as refused:
            theory.vc_dimension(queries, universe)
        assert refused.value.code == "argument-candidates"
    for call in (theory.Rectangles, theory.Conjunctions):
        for size in (0, 1.5, True):
            with pytest.raises(privsql.ArgumentError) as refused:
                call(size)
            assert refused.value.code == "argument-shape"
