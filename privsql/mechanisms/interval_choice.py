"""Scores of the parts of an interval and an epsilon go in; one number of the interval comes out: the
exponential mechanism over a continuum (notes 002 and 004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import as_float, moves, numbers
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.noise.runs import Runs, draw
from privsql.theory.checked import as_written, epsilon_given, exact, positive

_POINTS = 2**50  # evenly spaced, at which the interval is drawn from
_MOST_PARTS = 1_000_000
_FAR = Fraction(10_000)  # exp(-10000) is 0 to a float
_LEAST_SHARE = Fraction(1, 2**30)


@dataclass(frozen=True, eq=False)
class _Parts:
    """An interval, cut into parts of one score each; the edges as multiples of a 2^50th of its length."""

    edges: Sequence[Fraction]
    places: Sequence[int]
    exact_scores: Sequence[Fraction]

    @property
    def widths(self) -> list[int]:
        return [after - before for before, after in pairwise(self.places)]

    def at(self, place: int) -> Fraction:
        return self.edges[0] + (self.edges[-1] - self.edges[0]) * Fraction(2 * place + 1, 2 * _POINTS)


def exponential_interval(
    edges: Any, scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False
) -> float:
    """Choose a number of an interval by the exponential mechanism: density ~ exp(epsilon score / (2
    sensitivity)).

    The score is constant between edges that follow each other. So a wide part with a good score is more
    likely than a narrow one with the same.

    Arguments:
        edges: the ends of the parts, rising: a declared grid that does not depend on the data.
        scores: the score of each part, one fewer than edges; or a function, called with the middle of each
            part.
        epsilon: the choice is epsilon-private.
        sensitivity: the most that one person can change any score.
        monotone: as for `exponential`.

    Returns:
        A number between the first and the last edge, one of 2^50 evenly spaced ones.

    Raises:
        ArgumentError: the edges do not rise, a score is not a finite number, or another argument is out of
            range.

    Example:
        >>> from privsql import mechanisms
        >>> price = mechanisms.exponential_interval([0, 0.5, 1], [900, 20], epsilon=1.0)
        >>> 0 < price < 0.5
        True
    """
    return _choose(edges, scores, epsilon, sensitivity, monotone, SystemRandomness())


def exponential_interval_probabilities(
    edges: Any, scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False
) -> list[float]:
    """The probability with which `exponential_interval` chooses a number of each part. Not private: for
    planning.

    Arguments:
        edges, scores, epsilon, sensitivity, monotone: as for `exponential_interval`.

    Returns:
        One probability for each part: its width times exp(epsilon score / (2 sensitivity)), over their sum.

    Raises:
        ArgumentError: as `exponential_interval` does.

    Example:
        >>> from privsql import mechanisms
        >>> chances = mechanisms.exponential_interval_probabilities([0, 1, 4], [7, 7], epsilon=1.0)
        >>> [round(each, 6) for each in chances]
        [0.25, 0.75]
    """
    parts = _parts(edges, scores)
    rate = epsilon_given(epsilon) / positive(sensitivity) / moves(monotone)
    greatest = max(parts.exact_scores)
    weights = [
        width * math.exp(-float(min(rate * (greatest - score), _FAR)))
        for width, score in zip(parts.widths, parts.exact_scores, strict=True)
    ]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _choose(
    edges: Any, scores: Any, epsilon: Any, sensitivity: Any, monotone: bool, source: Randomness
) -> float:
    """One draw from runs of points, a run for each part: floats only make proposals, what is kept is decided
    by as many digits as it takes (`noise/runs.py`).
    """
    parts = _parts(edges, scores)
    rate = epsilon_given(epsilon) / positive(sensitivity) / moves(monotone)
    greatest = max(parts.exact_scores)
    exponents = [rate * (greatest - score) for score in parts.exact_scores]
    runs = Runs(
        offsets=np.array([0, len(exponents)], dtype=np.int64),
        base=np.array([as_float(each) for each in exponents]),
        slope=np.zeros(len(exponents)),
        lengths=np.array(parts.widths, dtype=np.int64),
        exact=lambda run: (exponents[run], Fraction(0)),
    )
    chosen, position = draw(runs, source)
    return as_float(parts.at(parts.places[int(chosen[0])] + int(position[0])))


def _parts(edges: Any, scores: Any) -> _Parts:
    listed = isinstance(edges, Iterable) and not isinstance(edges, (str, bytes, Mapping, Set))
    ends = [as_written(edge, "edge") for edge in edges] if listed else []
    if len(ends) < 2 or any(after <= before for before, after in pairwise(ends)):
        raise ArgumentError(
            "argument-shape", "edges must be at least two numbers that rise", "try [0, 0.25, 0.5, 0.75, 1]"
        )
    length = ends[-1] - ends[0]
    if len(ends) - 1 > _MOST_PARTS or any(b - a < length * _LEAST_SHARE for a, b in pairwise(ends)):
        raise ArgumentError(
            "argument-shape",
            "there may be at most a million parts, none narrower than a billionth of the interval",
            "declare fewer edges",
        )
    places = [round((end - ends[0]) / length * _POINTS) for end in ends]
    exact_scores = _scores(ends, scores)
    if len(exact_scores) != len(ends) - 1:
        raise ArgumentError(
            "argument-shape",
            f"{len(ends)} edges make {len(ends) - 1} parts, and each needs a score",
            "pass one score fewer than edges",
        )
    return _Parts(ends, places, exact_scores)


def _scores(ends: Sequence[Fraction], scores: Any) -> Sequence[Fraction]:
    if isinstance(scores, Callable):  # type: ignore[arg-type]
        return [exact(scores(as_float((a + b) / 2)), "score") for a, b in pairwise(ends)]
    return numbers(scores, "score").exact_values
