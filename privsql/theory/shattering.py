"""A class of queries and points go in; whether it shatters them, and its VC dimension, come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsql.errors import ArgumentError
from privsql.theory.query_classes import QueryClass

Answers = NDArray[np.bool_]  # a row for each query, a column for each point
Shattered = Callable[[tuple[int, ...]], bool]

_MOST_STEPS = 50_000_000  # some seconds, as are these:
_MOST_LABELLINGS = 1_000_000


def shatters(queries: Any, points: Sequence[Any]) -> bool:
    """Whether a class of counting queries shatters the points: every subset of them is cut out by some query
    (definition 8 of note 003).

    Arguments:
        queries: `theory.HalfPlanes()`, `Intervals()`, `Rectangles(axes)` or `Conjunctions(variables)`; or the
            answers of finitely many queries, one list of 0 and 1 for each, with a place for each element.
        points: the points themselves; for finitely many queries, the places of the elements.

    Returns:
        True or False.

    Raises:
        ArgumentError: the answers are not 0 and 1, or a point is not one of the class.

    Example:
        >>> from privsql import theory
        >>> theory.shatters([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1])
        True
    """
    if _is_class(queries):
        read = queries.points(points)
        return len(set(read)) == len(read) and _of_class(queries, read)(tuple(range(len(read))))
    answers = _answers(queries)
    places = [
        place for place in points if isinstance(place, (int, np.integer)) and not isinstance(place, bool)
    ]
    if len(places) != len(points) or not all(0 <= place < answers.shape[1] for place in places):
        raise ArgumentError(
            "argument-numbers",
            "points of finitely many queries are the places of elements",
            f"use whole numbers from 0 to {answers.shape[1] - 1}",
        )
    return len(set(places)) == len(places) and _of_answers(answers)(tuple(map(int, places)))


def vc_dimension(queries: Any, universe: Sequence[Any] | None = None) -> int:
    """The VC dimension: the size of the largest set of elements that the class shatters (definition 9).

    A set can only be shattered if all its subsets are, so sets are grown one element at a time, while there
    are not too many. The dimension is at most log2 of the number of queries (lemma 10).

    Arguments:
        queries: a class, or the answers of finitely many queries, as for `shatters`.
        universe: for a class, the points to which it is confined; by default all there are.

    Returns:
        The dimension. A class that shatters not even one point has dimension 0.

    Raises:
        ArgumentError: the answers are not 0 and 1, a point is not one of the class, or there are too many
            sets.

    Example:
        >>> from privsql import theory
        >>> theory.vc_dimension(theory.HalfPlanes())
        3
        >>> theory.vc_dimension(theory.HalfPlanes(), universe=[(0, 0), (1, 1), (2, 2)])
        2
    """
    if not _is_class(queries):
        return dimension_of(_answers(queries), _MOST_STEPS)
    if universe is None:
        return int(queries.dimension)
    points = sorted(set(queries.points(universe)))
    return _largest(len(points), queries.dimension, _of_class(queries, points))


def _is_class(queries: Any) -> bool:
    return hasattr(queries, "cuts_out")


def _of_class(queries: QueryClass, points: Sequence[Any]) -> Shattered:
    def shattered(places: tuple[int, ...]) -> bool:
        return all(
            queries.cuts_out(
                [points[place] for place in inside],
                [points[place] for place in places if place not in inside],
            )
            for size in range(len(places) + 1)
            for inside in combinations(places, size)
        )

    return shattered


def _of_answers(answers: Answers) -> Shattered:
    different = np.unique(answers, axis=0)

    def shattered(places: tuple[int, ...]) -> bool:
        if len(places) > 62 or len(different) < 1 << len(places):
            return False
        codes = different[:, list(places)] @ (1 << np.arange(len(places), dtype=np.int64))
        return len(np.unique(codes)) == 1 << len(places)

    return shattered


def _largest(points: int, most: int, shattered: Shattered) -> int:
    """The size of the largest set of points that is shattered, grown from smaller ones; `most`: no larger one
    is, whatever the points, so that one of this size will do.
    """
    sets: list[tuple[int, ...]] = [()]
    for size in range(1, most + 1):
        _check_effort(len(sets) * points * 2**size, _MOST_LABELLINGS)
        known = set(sets)
        larger = (
            (*some, place)
            for some in sets
            for place in range(some[-1] + 1 if some else 0, points)
            if (*some[1:], place) in known or size == 1
        )
        found = filter(shattered, larger)
        sets = list(islice(found, 1)) if size == most else list(found)
        if not sets:
            return size - 1
    return most


def dimension_of(answers: Answers, effort: int) -> int:
    """The VC dimension of finitely many queries, all sets of one size at a time. Raises ArgumentError where
    that takes more steps than this.
    """
    different = np.unique(np.unique(answers, axis=1), axis=0)
    queries, points = different.shape
    last = np.full(1, -1)  # the last element of each set
    patterns = np.zeros((queries, 1), dtype=np.int64)  # which of its elements a query has, as binary digits
    if points < queries.bit_length() and queries == 1 << points:  # all subsets of all elements
        return int(points)
    size = 0
    while 1 << size + 1 <= queries:
        parent = np.repeat(np.arange(last.size), points - 1 - last)
        _check_effort(parent.size * queries, effort)
        added = np.concatenate([np.arange(place + 1, points) for place in last])
        longer = 2 * patterns[:, parent] + different[:, added]
        kinds = (np.diff(np.sort(longer, axis=0), axis=0) != 0).sum(axis=0) + 1
        shattered = kinds == 1 << size + 1
        if not shattered.any():
            break
        size, last, patterns = size + 1, added[shattered], longer[:, shattered]
    return size


def _check_effort(steps: int, most: int) -> None:
    if steps > most:
        raise ArgumentError(
            "argument-candidates",
            "too many sets of elements would have to be tried to find this VC dimension",
            "pass fewer queries or elements; it is at most log2 of the number of queries",
        )


def _answers(queries: Any) -> Answers:
    try:
        given = np.asarray(queries)
    except ValueError:  # lists that are not equally long
        given = np.zeros(0)
    if given.ndim != 2 or not given.size or not np.isin(given, (0, 1)).all():
        raise ArgumentError(
            "argument-queries",
            "queries must be a class, or lists of 0 and 1 with a place for each element",
            "try theory.HalfPlanes(), or [[0, 1], [1, 1]]",
        )
    return given.astype(np.bool_)
