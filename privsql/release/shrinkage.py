"""Noisy tables of counts go in; better ones come out: made nonnegative, and shrunk towards what smaller
marginals say. All of this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_MOST_ROUNDS = 50
_CLOSE = 1e-6  # of the total: proportional fitting ends where no margin is further off


def centred(table: Floats) -> Floats:
    """The residual of a table: what its margins do not say."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def onto_total(table: Floats, total: float) -> Floats:
    """The nearest table of counts of at least 0 with this total."""
    ordered = np.sort(table, axis=None)[::-1]
    above = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = np.flatnonzero(ordered > above)
    if not kept.size:
        return np.full_like(table, max(total, 0.0) / table.size)
    nearest: Floats = np.maximum(table - above[kept[-1]], 0.0)
    return nearest


def shrunk(residual: Floats, towards: Floats, variance: float) -> Floats:
    """The residual, moved towards a guess as far as its noise alone would explain the difference.

    James and Stein: in d dimensions, with noise of this variance in each, the part max(0, 1 - (d-2) variance
    / distance^2) of the difference is kept; for d > 2 that is nearer to the truth in expectation than the
    residual itself, whatever the guess.
    """
    dimensions = math.prod(size - 1 for size in residual.shape)
    distance = float(((residual - towards) ** 2).sum())
    if distance <= 0.0:
        return towards
    kept = max(0.0, 1.0 - max(0, dimensions - 2) * variance / distance)
    found: Floats = towards + kept * (residual - towards)
    return found


def independent(margins: Sequence[Floats], total: float) -> Floats:
    """The table of columns that tell nothing of each other."""
    table = np.full((), total)
    for margin in margins:
        table = np.multiply.outer(table, margin / total)
    return table


def fitted_to_margins(margins: Sequence[Floats]) -> Floats:
    """The table of greatest entropy with these margins, by iterative proportional fitting; margin i lacks
    column i.
    """
    shape = (*margins[-1].shape, margins[0].shape[-1])
    total = max(float(margins[0].sum()), 1e-9)
    table = np.full(shape, total / math.prod(shape))
    for _ in range(_MOST_ROUNDS):
        worst = 0.0
        for axis, margin in enumerate(margins):
            sums = table.sum(axis=axis)
            worst = max(worst, float(np.abs(sums - margin).max()))
            factor = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            table = table * np.expand_dims(factor, axis)
        if worst <= _CLOSE * total:
            break
    return table
