"""Values and a price go in; the values with noise come out, in the form in which they came."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import Numbers, as_float, delta_given, epsilon_given, numbers, positive
from privsql.noise import plain
from privsql.noise.randomness import Randomness, SystemRandomness


def laplace(values: Any, epsilon: Any, sensitivity: Any = 1) -> Any:
    """Values plus discrete Laplace noise of scale sensitivity/epsilon, epsilon-private.

    `sensitivity`: between neighbours the absolute changes of all values sum to at most this (l1). Whole
    numbers (by their type, which counts as public) stay whole; all others come back as floats, from a grid
    about a millionth of the sensitivity wide.
    """
    return _laplace(values, epsilon, sensitivity, SystemRandomness())


def gaussian(values: Any, epsilon: Any, delta: Any, sensitivity: Any = 1) -> Any:
    """Values plus Gaussian noise, (epsilon, delta)-private, with the least variance there is for that (Balle,
    Wang 2018).

    `sensitivity`: between neighbours the values move by at most this in Euclidean distance (l2). Whole
    numbers stay whole.
    """
    return _gaussian(values, epsilon, delta, sensitivity, SystemRandomness())


def _laplace(values: Any, epsilon: Any, sensitivity: Any, source: Randomness) -> Any:
    given = numbers(values, "value")
    loss, l1 = epsilon_given(epsilon), positive(sensitivity)
    return _like(given, plain.laplace(given.exact_values, given.whole, loss, l1, source))


def _gaussian(values: Any, epsilon: Any, delta: Any, sensitivity: Any, source: Randomness) -> Any:
    given = numbers(values, "value")
    loss, chance, l2 = epsilon_given(epsilon), delta_given(delta), positive(sensitivity)
    try:
        noisy = plain.gaussian(given.exact_values, given.whole, loss, chance, l2, source)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "no Gaussian noise is found for this epsilon and delta",
            "try delta=1e-6, or laplace",
        ) from None
    return _like(given, noisy)


def _like(given: Numbers, noisy: list[Fraction]) -> Any:
    return given.alike([int(each) if given.whole else as_float(each) for each in noisy])
