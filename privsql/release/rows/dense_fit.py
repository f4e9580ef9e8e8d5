"""Marginals of a few columns go in; a distribution over all columns comes out that has these marginals, as
nearly as they agree with each other, and no further structure: by iterative proportional fitting.

Started at independent columns, fitting multiplies by functions of the columns of one marginal at a time, so
that the result has the greatest entropy among all distributions with the fitted marginals. The columns are
put into groups, one more than a marginal has columns: every marginal then leaves some group out, and is
fitted in the table without that group, which is small. So a sweep over all marginals takes only a few passes
over the whole table, however many marginals there are. Noisy marginals do not quite agree: from the fourth
sweep on, steps get shorter, so that their disagreement is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privsql.privacy.marginals.residual_price import Columns
from privsql.release.shrinkage import Floats

Dense = npt.NDArray[np.float32]

MOST_DENSE = 2**23  # cells
_WHOLE_STEPS = 3
_SWEEPS = 8
_LEAST = 1e-9  # a marginal's cell, in parts of the whole: marginals that disagree must not rule out all cells


@dataclass(frozen=True)
class Groups:
    """Columns in groups of about equally many cells, and the table over all of them, an axis a group."""

    sizes: tuple[int, ...]
    groups: tuple[Columns, ...]

    @property
    def shape(self) -> list[int]:
        return [math.prod(self.sizes[each] for each in group) for group in self.groups]

    @property
    def order(self) -> list[int]:
        """The columns in the order of the flat table."""
        return [each for group in self.groups for each in group]

    def without(self, left_out: int) -> list[int]:
        """The columns of all groups but one, in order."""
        return [each for place, group in enumerate(self.groups) if place != left_out for each in group]


def grouped(sizes: Sequence[int], count: int) -> Groups:
    """The columns in so many groups, the large ones first."""
    groups: list[list[int]] = [[] for _ in range(count)]
    cells = [1] * count
    for column in sorted(range(len(sizes)), key=lambda each: -sizes[each]):
        smallest = min(range(count), key=lambda each: cells[each])
        groups[smallest].append(column)
        cells[smallest] *= sizes[column]
    return Groups(tuple(sizes), tuple(tuple(sorted(each)) for each in groups))


def fitted_table(groups: Groups, marginals: Mapping[Columns, Floats], margins: Sequence[Floats]) -> Dense:
    """The fitted distribution, an axis a group; it sums to 1.

    `marginals`: of sets of fewer columns than there are groups. `margins`: of each single column.
    """
    wanted = {columns: _distribution(table) for columns, table in marginals.items()}
    table = _independent(groups, [_distribution(each) for each in margins])
    home = {columns: left_out_of(groups, columns) for columns in wanted}
    for sweep in range(_SWEEPS):
        step = min(1.0, 1.0 / (sweep + 2 - _WHOLE_STEPS)) if sweep >= _WHOLE_STEPS else 1.0
        for place in range(len(groups.groups)):
            own = {columns: each for columns, each in wanted.items() if home[columns] == place}
            if own:
                _fit_group(groups, table, place, own, step)
        table /= np.float32(table.sum(dtype=np.float64))
    return table


def _distribution(table: Floats) -> Floats:
    found: Floats = np.maximum(table / max(float(table.sum()), 1e-300), _LEAST)
    return found / float(found.sum())


def _independent(groups: Groups, margins: Sequence[Floats]) -> Dense:
    table = np.ones(groups.shape, dtype=np.float32)
    for axis, group in enumerate(groups.groups):
        along = np.ones(())
        for each in group:
            along = np.multiply.outer(along, margins[each])
        shape = [1] * len(groups.groups)
        shape[axis] = along.size
        table *= along.reshape(shape).astype(np.float32)
    return table


def left_out_of(groups: Groups, columns: Columns) -> int:
    """A group that has none of these columns."""
    return next(place for place, group in enumerate(groups.groups) if not set(group) & set(columns))


def _fit_group(
    groups: Groups, table: Dense, left_out: int, wanted: Mapping[Columns, Floats], step: float
) -> None:
    """Fit the marginals that do not contain the columns of one group, in the table without it."""
    columns = groups.without(left_out)
    before: Floats = table.sum(axis=left_out, dtype=np.float64).reshape(
        [groups.sizes[each] for each in columns]
    )
    after = before
    for marginal, goal in wanted.items():
        places = [columns.index(each) for each in marginal]
        others = tuple(axis for axis in range(len(columns)) if axis not in places)
        now = after.sum(axis=others, keepdims=True)
        aligned = goal.transpose(np.argsort(places)).reshape(now.shape)
        after = after * np.divide(aligned, now, out=np.ones_like(now), where=now > 0) ** step
    factor = np.divide(after, before, out=np.zeros_like(before), where=before > 0)
    shape = groups.shape
    shape[left_out] = 1
    table *= factor.reshape(shape).astype(np.float32)


def marginal_of(groups: Groups, table: Dense, columns: Columns) -> Floats:
    """A marginal of the fitted distribution."""
    left_out = left_out_of(groups, columns)
    kept = groups.without(left_out)
    part = table.sum(axis=left_out, dtype=np.float64).reshape([groups.sizes[each] for each in kept])
    places = [kept.index(each) for each in columns]
    found: Floats = part.sum(axis=tuple(axis for axis in range(len(kept)) if axis not in places))
    return found.transpose(np.argsort(np.argsort(places)))


def multiply_without(groups: Groups, table: Dense, left_out: int, columns: Columns, factor: Floats) -> None:
    """Multiply the table by a function of some columns, none of them in the group that is left out."""
    kept = groups.without(left_out)
    places = [kept.index(each) for each in columns]
    shape = [groups.sizes[each] if each in columns else 1 for each in kept]
    aligned = factor.transpose(np.argsort(places)).reshape(shape)
    whole = np.broadcast_to(aligned, [groups.sizes[each] for each in kept])
    spread = groups.shape
    spread[left_out] = 1
    table *= whole.reshape(spread).astype(np.float32)
