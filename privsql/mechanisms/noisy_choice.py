"""Scores of candidates and a price go in; the label of one candidate comes out, and nothing more."""

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
from privsql.mechanisms.arguments import Numbers, epsilon_given, exact, is_one, moves, numbers, positive
from privsql.noise.plain import first_above, laplace_max
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.noise.selection import select_fraction

Noise = Literal["exponential", "laplace", "gumbel"]

_NOISES = ("exponential", "laplace", "gumbel")
_FAR = Fraction(10_000)  # exp(-10000) is 0 to a float
_NODES = 100  # of each panel: polynomials up to degree 199 are integrated exactly
_MOST_AT_ONCE = 10**6


def exponential(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """The exponential mechanism: P(label) proportional to exp(epsilon score / (2 sensitivity)),
    epsilon-private.

    `scores`: numbers, one for each candidate; a dict or Series gives back the label, anything else the index.
    `sensitivity`: no score moves by more between neighbours. `monotone`: between neighbours no score rises
    while another falls (counts under add-remove); then the factor 2 is not needed.
    """
    return _choose(scores, epsilon, sensitivity, monotone, "gumbel", SystemRandomness())


def permute_and_flip(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """In a random order, the first that passes with probability exp(-epsilon (greatest - score) / (2
    sensitivity)).

    epsilon-private, and never worse than the exponential mechanism: at any gap the expected score is as great
    or greater.
    """
    return _choose(scores, epsilon, sensitivity, monotone, "exponential", SystemRandomness())


def noisy_max(
    scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False, noise: Noise = "exponential"
) -> Any:
    """Report-noisy-max: the label of the greatest noisy score, epsilon-private.

    "exponential" noise, of scale 2 sensitivity/epsilon, has exactly the law of `permute_and_flip`, "gumbel"
    noise that of `exponential`; "laplace" is the textbook's, and worse.
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
            "argument-numbers", "scores must be a list, one for each candidate", "try [3, 5, 2]"
        )
    return given


def above_threshold(
    values: Iterable[Any], threshold: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False
) -> Any:
    """The sparse vector technique: the index (of a dict or Series: the label) of the first value that is,
    noisily, at least the threshold; None if none is. epsilon-private for any number of values, each of which
    moves by at most `sensitivity`.

    Values are taken one at a time and none after the first above, so an iterator may compute them as they are
    needed.
    """
    return _first(values, threshold, epsilon, sensitivity, monotone, SystemRandomness())


def _first(
    values: Iterable[Any], threshold: Any, epsilon: Any, sensitivity: Any, monotone: bool, source: Randomness
) -> Any:
    loss, linf, bar = epsilon_given(epsilon), positive(sensitivity), exact(threshold, "threshold")
    factor = moves(monotone)
    if is_one(values) or isinstance(values, (str, bytes, Set)) or not isinstance(values, Iterable):
        raise ArgumentError("argument-numbers", "values must be a list or another iterable", "try [3, 5, 2]")
    labels: Any = None
    match values:
        case Mapping():
            labels, values = list(values), values.values()
        case pd.Series():
            labels, values = values.index, values.tolist()
    index = first_above((exact(value, "value") for value in values), bar, loss, linf, factor == 1, source)
    return index if index is None or labels is None else labels[index]


def exponential_probabilities(scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False) -> Any:
    """With which probability `exponential` chooses each candidate, in the form of the scores. Not private:
    for planning.
    """
    given = _scores(scores)
    weights = _weights(given, epsilon, sensitivity, monotone)
    total = math.fsum(weights)
    return given.alike([weight / total for weight in weights])


def permute_and_flip_probabilities(
    scores: Any, epsilon: Any, sensitivity: Any = 1, monotone: bool = False
) -> Any:
    """With which probability `permute_and_flip` chooses each candidate, in the form of the scores. Not
    private: for planning.

    Candidate i passes with p_i, and is chosen with p_i E[1/(1 + S)], S the others that pass. Since 1/(1 + s)
    is the integral of t^s over [0, 1], that is p_i times the integral of the product over j != i of (1 - p_j
    u), u = 1 - t. Panels halve towards u = 0, where the product falls the faster the more candidates are near
    the top.
    """
    given = _scores(scores)
    weights = np.array(_weights(given, epsilon, sensitivity, monotone))
    chances = np.zeros(weights.size)
    for points, widths in _panels(weights.size):
        passed_over = 1.0 - np.outer(points, weights)
        products = np.exp(np.sum(np.log(passed_over), axis=1))
        chances += (widths * products) @ (1.0 / passed_over)
    return given.alike((chances * weights).tolist())


def _weights(given: Numbers, epsilon: Any, sensitivity: Any, monotone: bool) -> list[float]:
    """exp(-rate (greatest - score)) for each."""
    rate = epsilon_given(epsilon) / positive(sensitivity) / moves(monotone)
    greatest = max(given.exact_values)
    return [math.exp(-float(min(rate * (greatest - value), _FAR))) for value in given.exact_values]


def _panels(candidates: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Some points and their weights at a time, by Gauss and Legendre: in [0, 1] where that is exact, else in
    [1/2, 1], [1/4, 1/2], ..., [0, 2^-j], 2^j >= candidates.
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
