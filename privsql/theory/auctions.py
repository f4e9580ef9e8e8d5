"""An epsilon and the figures of an auction go in; its least revenue, and how little a lie can gain, come out
(note 004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privsql.errors import ArgumentError
from privsql.theory.checked import as_written, epsilon_given, exact


def auction_revenue(*, best: Any, sold: Any, epsilon: Any) -> float:
    """The expected revenue of an auction with unlimited supply, at least: OPT - (6/epsilon) ln(e + epsilon^2
    OPT m / 4).

    Here epsilon is what the auction costs. The note's is half of it, as its mechanism exp(epsilon q) costs
    2 epsilon; in the note's, this is OPT - (3/epsilon) ln(e + epsilon^2 OPT m). The prices are evenly spaced
    in (0, 1], and no bidder spends more than 1 (`mechanisms.auction`).

    Arguments:
        best: OPT, the revenue at the best of the prices.
        sold: m, the units that are sold at that price.
        epsilon: the cost of the auction.

    Returns:
        The bound; it says nothing where it is below 0.

    Raises:
        ArgumentError: an argument is not a finite number, negative, or out of range.

    Example:
        >>> from privsql import theory
        >>> round(theory.auction_revenue(best=200.0, sold=320, epsilon=1.0), 1)
        141.9
    """
    half = float(epsilon_given(epsilon)) / 2.0
    revenue, units = (_not_negative(value, name) for value, name in ((best, "best"), (sold, "sold")))
    return revenue - 3.0 / half * math.log(math.e + half**2 * revenue * units)


def truthfulness(epsilon: Any) -> float:
    """How much anybody can gain by not telling the truth, at most: exp(epsilon) - 1.

    Telling the truth to an epsilon-private mechanism is (exp(epsilon) - 1)-dominant for everybody whose
    utility of the outcomes is between 0 and 1, whatever the others do: E[u] changes by a factor of
    exp(epsilon) at most, and is at most 1.

    Arguments:
        epsilon: the cost of the mechanism.

    Returns:
        The most that a lie can add to an expected utility between 0 and 1.

    Raises:
        ArgumentError: epsilon is out of range.

    Example:
        >>> from privsql import theory
        >>> round(theory.truthfulness(0.1), 3)
        0.105
    """
    return math.expm1(float(epsilon_given(epsilon)))


def epsilon_for_truthfulness(gain: Any) -> float:
    """The greatest epsilon at which no lie gains more than this: ln(1 + gain).

    Arguments:
        gain: the most that a lie may add to an expected utility between 0 and 1.

    Returns:
        An epsilon.

    Raises:
        ArgumentError: the gain is not a positive, finite number.

    Example:
        >>> from privsql import theory
        >>> round(theory.epsilon_for_truthfulness(0.1), 4)
        0.0953
    """
    most = float(as_written(gain, "gain"))
    if most <= 0.0:
        raise ArgumentError("argument-numbers", "the gain must be greater than 0", "try 0.1")
    return math.log1p(most)


def gain_from_lying(truthful: Sequence[Any], lying: Sequence[Any], utilities: Sequence[Any]) -> float:
    """What a lie adds to somebody's expected utility, given the probabilities of the outcomes with and
    without it.

    Arguments:
        truthful: the probability of each outcome if this person tells the truth.
        lying: the same if the person lies.
        utilities: what each outcome is worth to the person.

    Returns:
        The gain, negative where the lie does harm. It is at most `truthfulness(epsilon)` if the mechanism is
        epsilon-private and the utilities are between 0 and 1.

    Raises:
        ArgumentError: the three are not equally long, or a number is not finite.

    Example:
        >>> from privsql import theory
        >>> round(theory.gain_from_lying([0.5, 0.5], [0.4, 0.6], [0, 1]), 3)
        0.1
    """
    before, after, worth = ([exact(each, "number") for each in some] for some in (truthful, lying, utilities))
    if not len(before) == len(after) == len(worth):
        raise ArgumentError(
            "argument-shape",
            "truthful, lying and utilities must have a number for each outcome",
            "pass three lists of the same length",
        )
    return float(sum((b - a) * u for a, b, u in zip(before, after, worth, strict=True)))


def _not_negative(value: Any, name: str) -> float:
    number = float(exact(value, name))
    if number < 0.0:
        raise ArgumentError("argument-numbers", f"{name} must not be negative", f"try {name}=100")
    return number
