"""Values and an epsilon go in; the same values with noise come out, in the form in which they came."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import Numbers, as_float, numbers
from privsql.noise import plain
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.theory.checked import delta_given, epsilon_given, positive


def laplace(values: Any, epsilon: Any, sensitivity: Any = 1) -> Any:
    """Add discrete Laplace noise of scale sensitivity/epsilon to values.

    Arguments:
        values: a number, or a dict, Series, array or list of numbers.
        epsilon: the result is epsilon-private.
        sensitivity: the most that one person can change the values, as the sum of absolute changes (l1).

    Returns:
        Noisy numbers in the same form. Values of integer type (the type counts as public) stay whole; all
        others come back as floats, on a grid about a millionth of the sensitivity wide.

    Raises:
        ArgumentError: a value is not a finite number, or another argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> noisy = mechanisms.laplace({"CA": 120, "NY": 45}, epsilon=1.0, sensitivity=2)
        >>> sorted(noisy)
        ['CA', 'NY']
    """
    return _laplace(values, epsilon, sensitivity, SystemRandomness())


def gaussian(values: Any, epsilon: Any, delta: Any, sensitivity: Any = 1) -> Any:
    """Add Gaussian noise to values, of the least variance that suffices (Balle, Wang 2018).

    Arguments:
        values: a number, or a dict, Series, array or list of numbers.
        epsilon, delta: the result is (epsilon, delta)-private; delta must be above 0.
        sensitivity: the most that one person can change the values, in Euclidean distance (l2).

    Returns:
        Noisy numbers in the same form. Values of integer type stay whole.

    Raises:
        ArgumentError: a value is not a finite number, or another argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> len(mechanisms.gaussian([120, 45], epsilon=1.0, delta=1e-6))
        2
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
            "no Gaussian noise was found for this epsilon and delta",
            "try delta=1e-6, or laplace",
        ) from None
    return _like(given, noisy)


def _like(given: Numbers, noisy: list[Fraction]) -> Any:
    return given.alike([int(each) if given.whole else as_float(each) for each in noisy])
