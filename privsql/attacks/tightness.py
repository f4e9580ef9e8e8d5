"""Bits go in; a query function that hides them from all who think them random comes out (note 004, 1.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privsql.attacks.reconstruction import Subset
from privsql.errors import ArgumentError
from privsql.theory.checked import as_written


def half_answers(bits: Any, error: Any = None) -> Callable[[Subset], float]:
    """The mechanism that shows the reconstruction attack to be tight: half of the people asked about, unless
    that is off by `error` or more.

    Against an attacker to whom the bits are random, an error of sqrt(n) log(n)^1.1 reveals next to nothing
    however many queries there are: nearly all answers are |Q|/2. It is not differentially private, and
    useless; the remedy is a budget.

    Arguments:
        bits: everybody's secret bit.
        error: how far answers may be off; by default sqrt(n) ln(n)^1.1.

    Returns:
        A function to attack, from an array of booleans to a count.

    Raises:
        ArgumentError: the bits are not bits, or the error is not a number.

    Example:
        >>> import numpy as np
        >>> from privsql import attacks
        >>> ask = attacks.half_answers([0, 1, 1, 0], error=1)
        >>> ask(np.array([True, True, False, False])), ask(np.array([False, True, True, False]))
        (1.0, 2.0)
    """
    secret = np.asarray(bits)
    if secret.ndim != 1 or not secret.size or not np.isin(secret, (0, 1)).all():
        raise ArgumentError("argument-numbers", "bits must be a list of 0 and 1", "try [0, 1, 1]")
    secret = secret.astype(np.bool_)
    people = secret.size
    reach = (
        math.sqrt(people) * math.log(people) ** 1.1 if error is None else float(as_written(error, "error"))
    )

    def ask(subset: Subset) -> float:
        half, exact_count = subset.sum() / 2.0, float((subset & secret).sum())
        return float(half) if abs(exact_count - half) < reach else exact_count

    return ask
