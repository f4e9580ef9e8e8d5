"""Noisy sums of the same cells at several levels go in; cells come out whose sums are the best estimates of
all of them.

Every level sums the same cells. The measurement of level s is times_s A_s x + noise, where x are the unknown
cells and A_s sums them; all noise is identically distributed. The least-squares solution is the best linear
unbiased estimate (Gauss, Markov), so at no level is it worse than the measured sum itself. Its sums agree by
construction: they are sums of the same cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privsql.privacy.weighted_sums import Weights, counted

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CLOSE = 1e-13
_MOST_STEPS = 500
_MOST_CLASSES = 128  # of rows whose noise differs: each takes time to compute


@dataclass(frozen=True, eq=False)
class Levels:
    """Cell c belongs to row `places[s][c]` of level s; rows are numbered level after level.

    `shape`: the cells as a product of axes. `order`: an order of the cells in which the sums over the first
    keys are contiguous. `axes`: the axes that each level keeps, if all levels sum along whole axes; then all
    rows of a level are alike. `corners`: the most running sums along all axes that a row of each level
    consists of.
    """

    places: tuple[Integers, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    order: Integers | None = None
    axes: tuple[tuple[int, ...], ...] | None = None
    corners: tuple[int, ...] = ()

    @cached_property
    def starts(self) -> list[int]:
        return [sum(self.sizes[:index]) for index in range(len(self.sizes))]

    @property
    def cells(self) -> int:
        return len(self.places[0])

    @property
    def rows(self) -> int:
        return sum(self.sizes)

    def sums(self, cells: Floats) -> Floats:
        """The sums of the cells, at every level."""
        return np.concatenate(
            [np.bincount(place, cells, size) for place, size in zip(self.places, self.sizes, strict=True)]
        )

    def whole_sums(self, cells: Integers) -> Integers:
        rows = np.zeros(self.rows, dtype=np.int64)
        for place, start in zip(self.places, self.starts, strict=True):
            np.add.at(rows, place + start, cells)
        return rows

    def spread(self, rows: Floats) -> Floats:
        """For each cell the sum of the rows that it belongs to: the transpose of `sums`."""
        total = np.zeros(self.cells)
        for place, start in zip(self.places, self.starts, strict=True):
            total += rows[place + start]
        return total

    def scale(self, times: Sequence[int]) -> Floats:
        """The factor of each row."""
        return np.repeat(np.array(times, dtype=np.float64), self.sizes)


def fitted(levels: Levels, times: Sequence[int], measured: Floats) -> Floats:
    """The cells whose sums, scaled by `times`, are nearest to the measurements; the smallest such cells."""
    scale = levels.scale(times)
    finest = next((s for s, size in enumerate(levels.sizes) if size == levels.cells), None)
    start = np.zeros(levels.cells)
    if finest is not None:  # then only the difference, which is noise, goes through floating point
        start = measured[levels.places[finest] + levels.starts[finest]] / times[finest]
    rest = measured - scale * levels.sums(start)
    return start + solved(levels, scale, levels.spread(scale * rest))


def solved(levels: Levels, scale: Floats, goal: Floats) -> Floats:
    """Solve A' S^2 A x = goal by conjugate gradients: as many steps as the matrix has distinct eigenvalues,
    which are few.
    """
    found, rest, direction = np.zeros(levels.cells), goal, goal
    size = first = float(rest @ rest)
    for _ in range(_MOST_STEPS):
        if size <= _CLOSE**2 * first:
            break
        image = levels.spread(scale**2 * levels.sums(direction))
        step = size / float(direction @ image)
        found += step * direction
        rest = rest - step * image
        before, size = size, float(rest @ rest)
        direction = rest + (size / before) * direction
    return found


# -- what becomes of the noise -------------------------------------------------------------------------------
def classes(levels: Levels) -> Integers | None:
    """The class of each row: rows of one class have equal noise. None if the classes are not known."""
    if levels.axes is not None:
        return np.repeat(np.arange(len(levels.sizes)), levels.sizes)
    found = _tree_classes(levels)
    if found is None and levels.rows <= _MOST_CLASSES:
        return np.arange(levels.rows)
    return found if found is not None and found.max() < _MOST_CLASSES else None


def weights(levels: Levels, times: Sequence[int], row: int) -> Weights:
    """The weights of the noise of all measured rows in the estimate of one row."""
    if levels.axes is not None:
        return _product_weights(
            levels, times, max(s for s, start in enumerate(levels.starts) if start <= row)
        )
    scale = levels.scale(times)
    one = np.zeros(levels.rows)
    one[row] = 1.0
    projected = scale * levels.sums(solved(levels, scale, levels.spread(scale * one)))
    return counted(projected / scale[row])


def _product_weights(levels: Levels, times: Sequence[int], level: int) -> Weights:
    """The weights for any row of a level, if the cells are a product of axes.

    Cells that agree with the row's first cell in the same axes have the same weight, so there are 2^axes
    different weights.
    """
    assert levels.axes is not None
    shape = levels.shape
    cells = list(itertools.product((True, False), repeat=len(shape)))  # in which axes a cell agrees
    counts = [
        math.prod(1 if same else size - 1 for same, size in zip(cell, shape, strict=True)) for cell in cells
    ]
    rows: list[tuple[int, Floats]] = []  # how many are alike; what each cell adds to them
    goal = 0
    for number, (kept, scale) in enumerate(zip(levels.axes, times, strict=True)):
        for row in itertools.product((True, False), repeat=len(kept)):
            many = math.prod(1 if same else shape[axis] - 1 for same, axis in zip(row, kept, strict=True))
            if not many:
                continue
            if number == level and all(row):
                goal = len(rows)
            within = [all(cell[axis] is same for same, axis in zip(row, kept, strict=True)) for cell in cells]
            rows.append((many, np.where(within, np.array(counts) * (scale / many), 0.0)))
    matrix = np.array([math.sqrt(many) * sums for many, sums in rows])
    one = np.zeros(len(rows))
    one[goal] = 1.0  # the row itself is the only one of its class
    found = matrix @ np.linalg.lstsq(matrix, one, rcond=None)[0] / times[level]
    return counted(
        [value / math.sqrt(many) for value, (many, _) in zip(found, rows, strict=True)],
        [many for many, _ in rows],
    )


def _tree_classes(levels: Levels) -> Integers | None:
    """The classes if the levels are nested: rows are alike if their parents are and the trees below them are
    equal.
    """
    order = sorted(range(len(levels.sizes)), key=lambda level: -levels.sizes[level])
    if levels.sizes[order[0]] != levels.cells:
        return None
    parents: dict[int, Integers] = {}
    for fine, coarse in itertools.pairwise(order):
        pairs = np.unique(np.stack([levels.places[fine], levels.places[coarse]]), axis=1)
        if pairs.shape[1] > levels.sizes[fine]:
            return None  # a row of the finer level is in several of the coarser one
        parents[fine] = pairs[1]
    below = np.zeros(levels.cells, dtype=np.int64)
    trees = {order[0]: below}
    for fine, coarse in itertools.pairwise(order):
        children: list[list[int]] = [[] for _ in range(levels.sizes[coarse])]
        for parent, tree in zip(parents[fine].tolist(), trees[fine].tolist(), strict=True):
            children[parent].append(tree)
        trees[coarse] = _numbered([tuple(sorted(each)) for each in children])
    found = np.zeros(levels.rows, dtype=np.int64)
    above: Integers | None = None
    for level in reversed(order):
        up = np.zeros(levels.sizes[level], dtype=np.int64) if above is None else above[parents[level]]
        above = _numbered(list(zip(up.tolist(), trees[level].tolist(), strict=True)))
        found[levels.starts[level] : levels.starts[level] + levels.sizes[level]] = above + found.max() + 1
    return _numbered(found.tolist())


def _numbered(things: Sequence[object]) -> Integers:
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(each, len(seen)) for each in things], dtype=np.int64)


# -- whole numbers -------------------------------------------------------------------------------------------
def rounded(levels: Levels, cells: Floats) -> Integers:
    """Whole numbers near the cells, whose sums over whole axes are near those of the cells.

    The running sums along all axes are rounded, and their differences taken. A row that keeps k axes consists
    of 2^k rounded numbers (`corners`), so it is off by at most 2^(k-1), however many cells it has.
    """
    table = (cells if levels.order is None else cells[levels.order]).reshape(levels.shape)
    base = np.rint(table)  # only the rest is added up, so that large numbers lose no digits
    rest = table - base
    for axis in range(rest.ndim):
        rest = np.cumsum(rest, axis=axis)
    rest = np.rint(rest)
    for axis in range(rest.ndim):
        rest = np.diff(rest, axis=axis, prepend=0.0)
    whole = (base + rest).astype(np.int64).reshape(-1)
    if levels.order is None:
        return whole
    result = np.empty_like(whole)
    result[levels.order] = whole
    return result
