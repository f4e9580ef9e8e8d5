"""Published means of many attributes, one person's attributes and other people's go in; whether the person
was in the table comes out (note 002: tracing attacks; Homer et al. 2008, Dwork et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsql.attacks.asking import answers_to
from privsql.errors import ArgumentError

_LEVEL = 0.05


@dataclass(frozen=True)
class Membership:
    """How near the published means are to one person.

    Attributes:
        score: the sum of (target - reference mean) (published - reference mean) over the attributes.
        p_value: the share of people of the reference with a score at least as high: a chance of a false
            alarm.
        member: whether that share is at most 5%.
        asked: how many means were answered.
        refused: whether the budget ended the attack.
    """

    score: float
    p_value: float
    member: bool
    asked: int
    refused: bool


def membership(ask: Callable[[int], Any], target: Any, reference: Any) -> Membership:
    """Test whether somebody is in a table, from the table's means: they lean a little towards each member.

    With exact means of d attributes of n people, members stand out once d is much more than n.

    Arguments:
        ask: answers one query: from the place of an attribute to its (noisy) mean in the table.
        target: the person's attributes, one number each.
        reference: the same for people of the same population who are not in the table; at least 20 for a
            member to be called at 5%.

    Returns:
        A Membership. A BudgetError of `ask` ends the questions, and what was answered until then is used.

    Raises:
        ArgumentError: target and reference do not fit each other, or an answer is not a number.

    Example:
        >>> import numpy as np
        >>> from privsql import attacks
        >>> means = np.array([0.9, 0.1, 0.9, 0.1])
        >>> others = [[0, 1, 0, 1], [1, 1, 0, 0]]
        >>> attacks.membership(lambda place: means[place], [1, 0, 1, 0], others).score > 0
        True
    """
    person, others = _numbers(target, 1), _numbers(reference, 2)
    if person.shape[0] != others.shape[1] or len(others) < 2:
        raise ArgumentError(
            "argument-shape",
            "the reference must have a row for each of at least two people, as long as the target",
            "pass a list of lists",
        )
    answers, refused = answers_to(ask, ((place,) for place in range(person.size)))
    seen, others = np.array(answers), others[:, : len(answers)]
    score = float(_scores(person[None, : len(answers)], others.mean(axis=0), seen)[0])
    # of each of the others against the rest: its own attributes would pull the centre towards it
    without = (others.sum(axis=0) - others) / (len(others) - 1)
    as_high = int((_scores(others, without, seen) >= score).sum())
    p_value = (1 + as_high) / (1 + len(others))
    return Membership(score, p_value, p_value <= _LEVEL, len(answers), refused)


def _scores(
    people: NDArray[np.float64], centre: NDArray[np.float64], answers: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = ((people - centre) * (answers - centre)).sum(axis=1)
    return scores


def _numbers(given: Any, dimensions: int) -> NDArray[np.float64]:
    try:
        read = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        read = np.zeros(0)
    if read.ndim != dimensions or not read.size or not np.isfinite(read).all():
        raise ArgumentError(
            "argument-numbers",
            "target and reference must be finite numbers",
            "pass a list, and a list of lists",
        )
    return read
