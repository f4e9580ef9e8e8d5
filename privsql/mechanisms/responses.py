"""One bit per person and an epsilon go in; randomised responses come out, and what they say about everybody
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privsql.errors import ArgumentError
from privsql.noise.plain import flip
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.privacy.flips import share_estimate, share_interval
from privsql.theory.checked import epsilon_given, level_given


@dataclass(frozen=True, eq=False)
class RandomisedResponse:
    """What everybody answered. Each answer is epsilon-private by itself; computing from them costs nothing.

    Example:
        >>> from privsql import mechanisms
        >>> responses = mechanisms.randomised_response([True] * 900 + [False] * 100, epsilon=3.0)
        >>> low, high = responses.interval(0.95)
        >>> low <= responses.estimate <= high
        True
    """

    answers: NDArray[np.bool_]
    loss: Fraction

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def estimate(self) -> float:
        """The estimated share of people whose bit is 1. It is unbiased, so it may fall outside [0, 1]."""
        return share_estimate(int(self.answers.sum()), self.answers.size, self.epsilon)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that contains the true share with at least this probability.

        It covers the noise, not how the people were sampled. Raises ArgumentError unless 0 < level < 1.
        """
        return share_interval(int(self.answers.sum()), self.answers.size, self.epsilon, level_given(level))


def randomised_response(bits: Any, epsilon: Any) -> RandomisedResponse:
    """Keep each bit with probability exp(epsilon)/(1 + exp(epsilon)), and flip it otherwise.

    Arguments:
        bits: a list, array or Series of 0, 1, True or False, one per person.
        epsilon: each answer is epsilon-private. People may flip their own bits, and then trust nobody.

    Returns:
        A RandomisedResponse: the answers, an estimate of the share of ones, and intervals for it.

    Raises:
        ArgumentError: the bits are not bits, or epsilon is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.randomised_response([0, 1, 1], epsilon=1.0).answers.size
        3
    """
    return _respond(bits, epsilon, SystemRandomness())


@dataclass(frozen=True, eq=False)
class RandomisedColumns:
    """What everybody answered to several questions. All answers of one person together are epsilon-private.

    Example:
        >>> from privsql import mechanisms
        >>> likes = {"apple": [1, 0, 0] * 3000, "orange": [1, 1, 0] * 3000}
        >>> responses = mechanisms.randomised_columns(likes, epsilon=4.0)
        >>> sorted(responses.estimates), responses["apple"].epsilon
        (['apple', 'orange'], 2.0)
    """

    columns: Mapping[Any, RandomisedResponse]
    loss: Fraction

    def __getitem__(self, column: Any) -> RandomisedResponse:
        return self.columns[column]

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def estimates(self) -> dict[Any, float]:
        """The estimated share of ones in each column."""
        return {name: each.estimate for name, each in self.columns.items()}

    def intervals(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """Intervals that contain all true shares at once with at least this probability (union bound).

        Raises ArgumentError unless 0 < level < 1.
        """
        each_level = 1.0 - (1.0 - level_given(level)) / len(self.columns)
        return {name: each.interval(each_level) for name, each in self.columns.items()}


def randomised_columns(table: Any, epsilon: Any) -> RandomisedColumns:
    """Randomised response to k questions at once: each of a person's k bits at epsilon/k (note 001).

    Arguments:
        table: a DataFrame, a dict of lists, or a two-dimensional array or list, with a row for each person
            and a column of 0 and 1 for each question.
        epsilon: all of a person's answers together are epsilon-private.

    Returns:
        A RandomisedColumns: a RandomisedResponse for each column, and intervals for all of them at once.

    Raises:
        ArgumentError: the columns are not bits, not equally long, or epsilon is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> responses = mechanisms.randomised_columns([[0, 1], [1, 1], [0, 0]], epsilon=1.0)
        >>> responses[0].answers.size, responses[1].epsilon
        (3, 0.5)
    """
    return _respond_columns(table, epsilon, SystemRandomness())


def _respond_columns(table: Any, epsilon: Any, source: Randomness) -> RandomisedColumns:
    loss, bits = epsilon_given(epsilon), {name: _bits(column) for name, column in _columns(table).items()}
    if not bits or len({column.size for column in bits.values()}) > 1:
        raise ArgumentError(
            "argument-numbers",
            "the table must have a column of bits for each question, all equally long",
            'try {"apple": [0, 1], "orange": [1, 1]}',
        )
    each_loss = loss / len(bits)
    answers = {name: flip(column, each_loss, source) for name, column in bits.items()}
    for column in answers.values():
        column.setflags(write=False)
    responses = {name: RandomisedResponse(column, each_loss) for name, column in answers.items()}
    return RandomisedColumns(MappingProxyType(responses), loss)


def _columns(table: Any) -> dict[Any, Any]:
    match table:
        case pd.DataFrame():
            return {name: table.iloc[:, place] for place, name in enumerate(table.columns)}
        case Mapping():
            return dict(table)
        case np.ndarray() if table.ndim == 2:
            return dict(enumerate(table.T))
        case list() | tuple() if table and all(isinstance(row, (list, tuple)) for row in table):
            widths = {len(row) for row in table}
            return dict(enumerate(zip(*table))) if len(widths) == 1 else {}
        case _:
            return {}


def _respond(bits: Any, epsilon: Any, source: Randomness) -> RandomisedResponse:
    loss = epsilon_given(epsilon)
    answers = flip(_bits(bits), loss, source)
    answers.setflags(write=False)
    return RandomisedResponse(answers, loss)


def _bits(given: Any) -> NDArray[np.bool_]:
    if isinstance(given, np.ndarray) and given.dtype == np.bool_ and given.ndim == 1 and given.size:
        return given
    listed: list[Any] = []
    if isinstance(given, (np.ndarray, pd.Series)) and given.ndim:
        listed = given.tolist()
    elif isinstance(given, Iterable) and not isinstance(given, (np.ndarray, str, bytes, Mapping, Set)):
        listed = list(given)
    if not listed or not all(
        isinstance(each, (int, np.integer, np.bool)) and each in (0, 1) for each in listed
    ):
        raise ArgumentError(
            "argument-numbers", "bits must be a list of 0 and 1, or of True and False", "try [0, 1, 1]"
        )
    return np.array(listed, dtype=np.bool_)
