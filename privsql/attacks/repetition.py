"""A function that answers goes in; what it reveals when asked again, or of one person less, comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsql.attacks.asking import answers_to
from privsql.attacks.reconstruction import Subset
from privsql.errors import ArgumentError
from privsql.theory.checked import whole


@dataclass(frozen=True)
class Average:
    """The mean of many answers to one query.

    Attributes:
        estimate: the mean; None if nothing was answered.
        distinct: how many different answers there were: one, if the answer is stored.
        asked: how many queries were answered.
        refused: whether the budget ended the attack.
    """

    estimate: float | None
    distinct: int
    asked: int
    refused: bool


def averaging(ask: Callable[[], Any], times: int) -> Average:
    """Ask the same query many times and average: note 000, section 3.

    Independent noise of scale 1/epsilon averages out after some 1/epsilon^2 answers
    (`theory.repeats_to_average`).

    Arguments:
        ask: answers the query.
        times: how often to ask.

    Returns:
        An Average. A BudgetError of `ask` ends the questions.

    Raises:
        ArgumentError: times is not a whole number from 1, or an answer is not a number.

    Example:
        >>> from privsql import attacks, mechanisms
        >>> found = attacks.averaging(lambda: mechanisms.laplace(42, epsilon=1.0), times=4000)
        >>> round(found.estimate)
        42
    """
    answers, refused = answers_to(ask, ((),) * whole(times, "times", "argument-queries"))
    mean = float(np.mean(answers)) if answers else None
    return Average(mean, len(set(answers)), len(answers), refused)


@dataclass(frozen=True)
class CountDifference:
    """What two counts say about one person.

    Attributes:
        estimate: the mean difference of the counts with and without the person; None if nothing was answered.
        bit: the guess: whether the difference is more than a half.
        asked: how many queries were answered.
        refused: whether the budget ended the attack.
    """

    estimate: float | None
    bit: bool
    asked: int
    refused: bool


def differencing(ask: Callable[[Subset], Any], people: int, person: int, repeats: int = 1) -> CountDifference:
    """Count everybody, then everybody but one person: the difference is that person's bit.

    Arguments:
        ask: answers one query: from an array of booleans, who is meant, to the number of ones among them.
        people: how many people there are.
        person: whose bit is wanted, counted from 0.
        repeats: how many pairs of counts to ask.

    Returns:
        A CountDifference. A BudgetError of `ask` ends the questions.

    Raises:
        ArgumentError: an argument is out of range, or an answer is not a number.

    Example:
        >>> import numpy as np
        >>> from privsql import attacks
        >>> secret = np.array([True, False, True, False])
        >>> attacks.differencing(lambda subset: (subset & secret).sum(), people=4, person=2).bit
        True
    """
    size = whole(people, "people", "argument-rows")
    if whole(person, "person", "argument-rows", at_least=0) >= size:
        raise ArgumentError("argument-rows", "there is no such person", f"use 0 to {size - 1}")
    others = np.ones(size, dtype=np.bool_)
    others[person] = False
    pairs = ((np.ones(size, dtype=np.bool_),), (others,)) * whole(repeats, "repeats", "argument-queries")
    answers, refused = answers_to(ask, ((subset.copy(),) for (subset,) in pairs))
    differences = [all_of_them - but_one for all_of_them, but_one in zip(answers[::2], answers[1::2])]
    mean = float(np.mean(differences)) if differences else None
    return CountDifference(mean, mean is not None and mean > 0.5, len(answers), refused)
