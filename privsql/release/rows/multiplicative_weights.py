"""Noisy marginals go in; a distribution over all columns comes out, by multiplicative weights.

As in Hardt, Ligett and McSherry (2012): every weight is multiplied by exp((measured - believed) / 2), in
shares of the whole, for each cell of each marginal measured so far, several times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privsql.noise.marginals.mwem_rounds import Measured
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.rows.dense_fit import Dense, Groups, left_out_of, marginal_of, multiply_without
from privsql.release.shrinkage import Floats, onto_total
from privsql.tables import Integers

_PASSES = 20
_MOST_ROWS = 2.0**53  # believed counts and the scores made of them are 64-bit integers


@dataclass(frozen=True)
class Weights:
    """The distribution after some rounds, and the number of rows as measured."""

    groups: Groups
    table: Dense
    rows: float

    def believed(self, sets: Sequence[Columns]) -> dict[Columns, Integers]:
        """Every marginal, in whole rows."""
        return {
            each: np.rint(self.rows * marginal_of(self.groups, self.table, each)).astype(np.int64)
            for each in sets
        }


def learned(groups: Groups, measured: Sequence[Measured]) -> Weights:
    """The distribution that the marginals measured so far lead to; even, before the first."""
    cells = float(np.prod(groups.shape, dtype=np.float64))
    table = np.full(groups.shape, 1.0 / cells, dtype=np.float32)
    if not measured:
        return Weights(groups, table, 0.0)
    # of floats: a sum of noisy counts may pass 64 bits
    mean = float(np.mean([noisy.sum(dtype=np.float64) for _, noisy in measured]))
    rows = min(max(1.0, mean), _MOST_ROWS)
    goals = [(columns, onto_total(noisy / rows, 1.0)) for columns, noisy in measured]
    for _ in range(_PASSES):
        for columns, goal in goals:
            _update(groups, table, columns, goal)
        table /= np.float32(table.sum(dtype=np.float64))
    return Weights(groups, table, rows)


def _update(groups: Groups, table: Dense, columns: Columns, goal: Floats) -> None:
    factor = np.exp((goal - marginal_of(groups, table, columns)) / 2)
    multiply_without(groups, table, left_out_of(groups, columns), columns, factor)
