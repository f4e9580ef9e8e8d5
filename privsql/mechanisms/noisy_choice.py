"""Scores of candidates and an epsilon go in; the label of one candidate comes out, and nothing more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privsql.errors import ArgumentError, did_you_mean
from privsql.mechanisms.arguments import Numbers, is_one, moves, numbers
from privsql.noise.plain import laplace_max, those_above, threshold_rates
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.noise.samplers import LEAST_RATE
from privsql.noise.selection import select_fraction
from privsql.theory.checked import epsilon_given, exact, positive, whole

Noise = Literal["exponential", "laplace", "gumbel"]

_NOISES = ("exponential", "laplace", "gumbel")
_FAR = Fraction(10_000)  # exp(-10000) is 0 to a float
_NODES = 100  # per panel: integrates polynomials of degree up to 199 exactly
_MOST_AT_ONCE = 10**6


def exponential(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """Choose a candidate by the exponential mechanism: P(label) ~ exp(epsilon score / (2 sensitivity)).

    Arguments:
        scores: one number for each candidate: a dict, a Series or a list.
        epsilon: the choice is epsilon-private.
        sensitivity: the most that one person can change any score.
        monotone: whether one person always changes all scores in the same direction, as with counts under
            add-remove neighbours; then the factor 2 is not needed.

    Returns:
        The label of the chosen candidate in a dict or Series, its index in anything else.

    Raises:
        ArgumentError: a score is not a finite number, or another argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.exponential({"apple": 3, "banana": 900}, epsilon=1.0)
        'banana'
    """
    return _choose(scores, epsilon, sensitivity, monotone, "gumbel", SystemRandomness())


def permute_and_flip(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """Choose a candidate by permute-and-flip: go through the candidates in random order, and take the first
    whose coin comes up heads, with probability exp(-epsilon (greatest - score) / (2 sensitivity)).

    The expected score is never below that of the exponential mechanism.

    Arguments:
        scores, epsilon, sensitivity, monotone: as for `exponential`.

    Returns: as `exponential` does, the label or the index of the chosen candidate.

    Raises: ArgumentError, as `exponential` does.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.permute_and_flip([3, 900, 12], epsilon=1.0)
        1
    """
    return _choose(scores, epsilon, sensitivity, monotone, "exponential", SystemRandomness())


def noisy_max(
    scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False, noise: Noise = "exponential"
) -> Any:
    """Choose a candidate by report-noisy-max: the one with the greatest noisy score.

    Arguments:
        scores, epsilon, sensitivity, monotone: as for `exponential`.
        noise: "exponential" noise (of scale 2 sensitivity/epsilon) makes exactly the choice of
            `permute_and_flip`, "gumbel" that of `exponential`. "laplace" is the textbook version, and is
            less accurate.

    Returns: as `exponential` does, the label or the index of the chosen candidate.

    Raises: ArgumentError, as `exponential` does.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.noisy_max({"apple": 3, "banana": 900}, epsilon=1.0, noise="laplace")
        'banana'
    """
    return _choose(scores, epsilon, sensitivity, monotone, noise, SystemRandomness())


def _choose(
    scores: Any, epsilon: Any, sensitivity: Any, monotone: bool, noise: Noise, source: Randomness
) -> Any:
    given = _scores(scores)
    loss, linf = epsilon_given(epsilon), positive(sensitivity)
    rate = loss / linf / moves(monotone)
    match noise:
        case "exponential":
            index = select_fraction(given.exact_values, rate, "permute_and_flip", source)
        case "gumbel":
            index = select_fraction(given.exact_values, rate, "gumbel", source)
        case "laplace":
            index = laplace_max(given.exact_values, loss, linf, monotone, source)
        case _:
            raise ArgumentError(
                "argument-mechanism",
                f"noise must be one of {', '.join(_NOISES)}",
                did_you_mean(str(noise), _NOISES),
            )
    return given.label(index)


def _scores(scores: Any) -> Numbers:
    given = numbers(scores, "score")
    if is_one(scores) or (isinstance(scores, np.ndarray) and scores.ndim > 1):
        raise ArgumentError(
            "argument-numbers", "scores must be a list of numbers, one for each candidate", "try [3, 5, 2]"
        )
    return given


def above_threshold(
    values: Iterable[Any],
    threshold: Any,
    epsilon: Any,
    sensitivity: Any = 1,
    monotone: bool = False,
    count: int | None = None,
) -> Any:
    """Find the first value that is, with noise, at least the threshold, or the first `count`: the sparse
    vector technique.

    Values are taken one at a time, and none after the last one found, so an iterator may compute them lazily.

    Arguments:
        values: any number of values, in order: a dict, a Series or any iterable.
        threshold: the number to compare with.
        epsilon: the result is epsilon-private, however many values there are.
        sensitivity: the most that one person can change any value.
        monotone: whether one person always changes all values in the same direction.
        count: how many values to find at most. All of them are paid for at once, by epsilon: the noise on the
            threshold has scale sensitivity/e1, that on a value 2 count sensitivity/e2, e1 + e2 = epsilon.

    Returns:
        The label of that value in a dict or Series, its index in anything else; None if no value is above.
        With `count`, a list of labels or indices, in order.

    Raises:
        ArgumentError: a value is not a finite number, or another argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.above_threshold([4, 9, 2000, 3], threshold=1000, epsilon=1.0)
        2
        >>> mechanisms.above_threshold([4, 9000, 7, 8000, 9000], threshold=1000, epsilon=1.0, count=2)
        [1, 3]
    """
    wanted = 1 if count is None else whole(count, "count", "argument-count")
    found = _above(values, threshold, epsilon, sensitivity, monotone, wanted, SystemRandomness())
    return found if count is not None else next(iter(found), None)


def _above(
    values: Iterable[Any],
    threshold: Any,
    epsilon: Any,
    sensitivity: Any,
    monotone: bool,
    count: int,
    source: Randomness,
) -> list[Any]:
    loss, linf, bar = epsilon_given(epsilon), positive(sensitivity), exact(threshold, "threshold")
    by_one = moves(monotone) == 1
    if is_one(values) or isinstance(values, (str, bytes, Set)) or not isinstance(values, Iterable):
        raise ArgumentError("argument-numbers", "values must be a list or another iterable", "try [3, 5, 2]")
    if threshold_rates(loss, by_one, count)[1] < LEAST_RATE:
        raise ArgumentError(
            "argument-count",
            "the noise for so small an epsilon and so many values to find does not fit into 64 bits",
            "find fewer, or choose a larger epsilon",
        )
    labels: Any = None
    match values:
        case Mapping():
            labels, values = list(values), values.values()
        case pd.Series():
            labels, values = values.index, values.tolist()
    exact_values = (exact(value, "value") for value in values)
    found = those_above(exact_values, bar, loss, linf, by_one, count, source)
    return [index if labels is None else labels[index] for index in found]


def exponential_probabilities(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """The probability with which `exponential` chooses each candidate. Not private: for planning.

    Arguments:
        scores, epsilon, sensitivity, monotone: as for `exponential`.

    Returns:
        Probabilities in the form of the scores: a dict for a dict, a Series for a Series, otherwise a list.

    Raises:
        ArgumentError: a score is not a finite number, or another argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.exponential_probabilities([5, 5], epsilon=1.0)
        [0.5, 0.5]
    """
    given = _scores(scores)
    weights = _weights(given, epsilon, sensitivity, monotone)
    total = math.fsum(weights)
    return given.alike([weight / total for weight in weights])


def permute_and_flip_probabilities(
    scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False
) -> Any:
    """The probability with which `permute_and_flip` chooses each candidate. Not private: for planning.

    Arguments:
        scores, epsilon, sensitivity, monotone: as for `exponential`.

    Returns: probabilities in the form of the scores, as `exponential_probabilities` does.

    Raises: ArgumentError, as `exponential` does.

    Example:
        >>> from privsql import mechanisms
        >>> [round(each, 3) for each in mechanisms.permute_and_flip_probabilities([5, 5], epsilon=1.0)]
        [0.5, 0.5]
    """
    # The coin of candidate i comes up heads with probability p_i, and i is chosen with p_i E[1/(1 + S)], S
    # being the number of other heads. 1/(1 + s) is the integral of t^s over [0, 1], so this is p_i times the
    # integral over u = 1 - t of the product, over j != i, of (1 - p_j u). Panels halve towards u = 0, where
    # the product falls the faster the more candidates are near the top.
    given = _scores(scores)
    weights = np.array(_weights(given, epsilon, sensitivity, monotone))
    chances = np.zeros(weights.size)
    for points, widths in _panels(weights.size):
        passed_over = 1.0 - np.outer(points, weights)
        products = np.exp(np.sum(np.log(passed_over), axis=1))
        chances += (widths * products) @ (1.0 / passed_over)
    return given.alike((chances * weights).tolist())


def _weights(given: Numbers, epsilon: Any, sensitivity: Any, monotone: bool) -> list[float]:
    """exp(-rate (greatest - score)) for each score."""
    rate = epsilon_given(epsilon) / positive(sensitivity) / moves(monotone)
    greatest = max(given.exact_values)
    return [math.exp(-float(min(rate * (greatest - value), _FAR))) for value in given.exact_values]


def _panels(candidates: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Points and weights of Gauss-Legendre quadrature, some at a time: over [0, 1] where that is exact, else
    over [1/2, 1], [1/4, 1/2], ..., [0, 2^-j], 2^j >= candidates.
    """
    nodes, weights = _gauss()
    at_once = max(1, _MOST_AT_ONCE // candidates)
    low, high = (0.0 if candidates < 2 * _NODES else 0.5), 1.0
    while high:
        for start in range(0, _NODES, at_once):
            part = slice(start, start + at_once)
            yield (low + high) / 2.0 + (high - low) / 2.0 * nodes[part], (high - low) / 2.0 * weights[part]
        low, high = (low / 2.0 if low * candidates > 1.0 else 0.0), low


@cache
def _gauss() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
