"""Noisy tables of counts go in; better ones come out: made nonnegative, and shrunk towards what smaller
marginals say. All of this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_POWER = 1.5
_STEPS = (0.0, *(10.0 ** (each / 4) for each in range(-16, 9)))  # variances that are tried, of the average
_FEWEST = 1.0
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


def shrunk(guess: Floats, residual: Floats, variance: float) -> Floats:
    """A table whose residual is between that of a guess and a noisy one, cell by cell as either is sure.

    The true residual is taken to differ from that of the guess by normal amounts of variance s guess^1.5 in
    each cell, so that what is rare differs by little; s is the one that makes the noisy residual likeliest
    (empirical Bayes), and the mean of the truth given the noise is returned. Measured, errors of tables of
    three columns are a tenth less than with one factor for all cells (James and Stein). `variance`: of the
    noise, in each direction that the residual can take. The margins of the guess are kept.
    """
    difference = residual - centred(guess)
    noise = variance * math.prod(1 - 1 / size for size in residual.shape)
    if noise <= 0.0 or not difference.any():
        return guess + difference
    floor = max(float(guess.sum()), _FEWEST) / guess.size / 1_000
    shape = np.maximum(guess, floor) ** _POWER
    scale = float((difference**2).mean() / shape.mean())
    kept = max(
        (_kept(shape * step * scale, noise) for step in _STEPS),
        key=lambda each: _likelihood(each, difference, noise),
    )
    return guess + centred(kept * difference)


def _kept(prior: Floats, noise: float) -> Floats:
    """Which part of the difference is not noise, cell by cell."""
    found: Floats = prior / (prior + noise)
    return found


def _likelihood(kept: Floats, difference: Floats, noise: float) -> float:
    """The logarithm, but for a constant: of variance noise / (1 - kept) in each cell."""
    precision = (1.0 - kept) / noise
    return float((np.log(precision) - precision * difference**2).sum())


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
