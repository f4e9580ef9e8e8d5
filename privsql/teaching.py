"""Scores and the noise that somebody wrote down go in; the winner comes out: worked examples, step by step.

Nothing here is private. The noise is whatever the caller gives, so that an example of a lecture can be
followed on paper. No session, door or mechanism can reach this module; `privsql.mechanisms.noisy_max` draws
its noise itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from privsql.errors import ArgumentError
from privsql.theory.checked import exact


def noisy_max(scores: Any, noise: Any) -> Any:
    """The candidate with the greatest score plus given noise, the first of several. Not private.

    Arguments:
        scores: one number for each candidate: a dict, a Series or a list.
        noise: one number for each candidate, in the same order; or a dict with the labels of the scores.

    Returns:
        The label of the winner in a dict or Series, its index in a list.

    Raises:
        ArgumentError: there is not one noise for each score, or a number is not finite.

    Example:
        >>> from privsql import teaching
        >>> fruit = {"apple": 1, "orange": 4, "banana": 3}
        >>> teaching.noisy_max(fruit, (1, -1, -1)), teaching.noisy_max(fruit, (0, -1, 1))
        ('orange', 'banana')
    """
    labels = list(scores) if isinstance(scores, Mapping) else None
    labels = scores.index.tolist() if isinstance(scores, pd.Series) else labels
    values = [exact(each, "score") for each in (scores.values() if isinstance(scores, Mapping) else scores)]
    if isinstance(noise, Mapping):
        noise = [noise[label] for label in labels or range(len(values)) if label in noise]
    added = [exact(each, "noise") for each in noise]
    if not values or len(added) != len(values):
        raise ArgumentError(
            "argument-shape",
            "there must be one noise for each score",
            "try noisy_max([1, 4, 3], (1, -1, -1))",
        )
    noisy = [value + each for value, each in zip(values, added, strict=True)]
    index = noisy.index(max(noisy))
    return index if labels is None else labels[index]
