"""Rows and the counts that their marginals should have go in; rows that have them more nearly come out.

Rows drawn from a distribution have its marginals only up to the chance of the draw, which with many columns
is as large as the noise of a release. So rows from cells that have too many are exchanged for candidates from
cells that have too few, some at a time, as long as the squared differences of all marginals shrink, each
divided by the root of the count that the cell should have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsql.privacy.marginals.residual_price import Columns
from privsql.release.shrinkage import Floats
from privsql.tables import Integers

MOST_PLACES = 3 * 10**7  # rows and candidates, times marginals; of more rows the draw is near enough
_ROUNDS = 120
_FIRST, _LEAST = 0.05, 1e-4  # parts of the rows that are exchanged at once


def corrected(
    rows: Sequence[Integers], candidates: Sequence[Integers], goals: Sequence[tuple[Columns, Floats]]
) -> list[Integers]:
    """The rows, column by column, with some exchanged for candidates."""
    many = len(rows[0])
    if (many + len(candidates[0])) * len(goals) > MOST_PLACES:
        return list(rows)
    pool = [np.concatenate(each) for each in zip(rows, candidates, strict=True)]
    shares = [table.reshape(-1) / max(float(table.sum()), 1e-300) for _, table in goals]
    places = _places(pool, goals)
    chosen = _exchanged(places, np.concatenate(shares) * many, many)
    return [each[chosen] for each in pool]


def _places(pool: Sequence[Integers], goals: Sequence[tuple[Columns, Floats]]) -> Integers:
    """The cell of every row in every marginal, the marginals being numbered through."""
    found = np.empty((len(goals), len(pool[0])), dtype=np.int64)
    start = 0
    for number, (columns, table) in enumerate(goals):
        found[number] = start + np.ravel_multi_index([pool[each] for each in columns], table.shape)
        start += table.size
    return found


def _exchanged(places: Integers, wanted: Floats, many: int) -> Integers:
    """Which of the pool are the rows; at first, the first ones are."""
    inside, outside = np.arange(many), np.arange(many, places.shape[1])
    excess = _counted(places[:, inside], wanted.size) - wanted
    weights, part = 1.0 / np.sqrt(wanted + 1.0), _FIRST
    for _ in range(_ROUNDS):
        pressure = excess * weights
        leaving = np.zeros(len(inside))
        coming = np.zeros(len(outside))
        for each in places:
            leaving += pressure[each[inside]]
            coming += pressure[each[outside]]
        count = max(1, min(int(part * many), len(outside)))
        out = np.argpartition(-leaving, count - 1)[:count]
        into = np.argpartition(coming, count - 1)[:count]
        gone, come = inside[out], outside[into]
        moved = _counted(places[:, come], wanted.size) - _counted(places[:, gone], wanted.size)
        if (weights * (excess + moved) ** 2).sum() < (weights * excess**2).sum():
            excess = excess + moved
            inside[out], outside[into] = come, gone
        elif part > _LEAST:
            part /= 2
        else:
            break
    return inside


def _counted(places: Integers, size: int) -> Floats:
    return np.bincount(places.reshape(-1), minlength=size).astype(np.float64)
