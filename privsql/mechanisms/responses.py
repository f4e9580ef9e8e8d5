"""One bit per person and an epsilon go in; randomised responses come out, and what they say about everybody
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import epsilon_given, level_given
from privsql.noise.plain import flip
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.privacy.flips import share_estimate, share_interval


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
