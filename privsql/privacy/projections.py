"""Noisy numbers go in; the nearest ones that could be true come out: nonnegative, or parts no larger than
their whole.

This is post-processing: it uses noisy and public numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privsql.privacy.least_squares import Floats, Integers, Levels

_MOST_STEPS = 200
_MOST_SWEEPS = 2_000
_CLOSE = 1e-9
_NEARLY_NOTHING = 1e-3


# -- not negative --------------------------------------------------------------------------------------------
def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest nonnegative numbers with this sum. Clipping at 0 would raise the sum."""
    if total <= 0.0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    lowered = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > lowered)[-1])
    nearest: Floats = np.maximum(values - lowered[last], 0.0)
    return nearest


def nonnegative_cells(levels: Levels, times: Sequence[int], measured: Floats, cells: Floats) -> Floats:
    """The nonnegative cells whose sums at all levels are nearest to the measurements, with the total of
    `cells`, which are the solution of any sign.

    With y the cells as measured by themselves and w their weight, the solution is x = max(0, y + A' v), where
    A takes the sums at all other levels and v holds their residuals in units of w; for the total, which is
    kept, v is whatever keeps it. That v minimises a convex function, and Newton's method finds it: piece by
    piece, the function is a parabola.
    """
    total = float(cells.sum())
    if total <= 0.0:
        return np.zeros_like(cells)
    problem = _projection(levels, times, measured, cells, total)
    own, size = problem.own, len(problem.goal)
    lifts = np.zeros(size)
    if own.max() <= 0.0:
        lifts[-1] = total - float(own.max())  # at least one cell is free to move
    found = problem.cells(lifts)
    close = _CLOSE * (1.0 + total)
    for _ in range(_MOST_STEPS):
        slope = problem.goal - problem.ease * lifts - problem.sums(found)
        if float(np.abs(slope).max()) <= close:
            break
        free = (own + problem.spread(lifts) > 0.0).astype(np.float64)
        step = _preconditioned(problem.curved(free), problem.ease + problem.sums(free) + _CLOSE, slope)
        before, length = problem.height(lifts, found), 1.0
        while length > 1e-6:
            moved = lifts + length * step
            positive = problem.cells(moved)
            if problem.height(moved, positive) <= before - 1e-4 * length * float(slope @ step):
                break
            length /= 2.0
        lifts, found = moved, positive
    return found * (total / float(found.sum())) if found.any() else onto_simplex(cells, total)


@dataclass(frozen=True)
class _Projection:
    """The convex function of `nonnegative_cells`: A by the place of each cell in each level, and its data."""

    places: Sequence[Integers]
    own: Floats
    goal: Floats
    ease: Floats

    def sums(self, values: Floats) -> Floats:
        """A x."""
        added: Floats = np.sum([np.bincount(place, values, len(self.goal)) for place in self.places], axis=0)
        return added

    def spread(self, values: Floats) -> Floats:
        """A' v."""
        added: Floats = np.sum([values[place] for place in self.places], axis=0)
        return added

    def cells(self, lifts: Floats) -> Floats:
        return np.maximum(self.own + self.spread(lifts), 0.0)

    def curved(self, free: Floats) -> Callable[[Floats], Floats]:
        """The second derivative, where these cells are free."""
        return lambda values: self.ease * values + self.sums(free * self.spread(values))

    def height(self, values: Floats, positive: Floats) -> float:
        """The function itself."""
        return float(0.5 * (self.ease * values) @ values + 0.5 * positive @ positive - values @ self.goal)


def _projection(
    levels: Levels, times: Sequence[int], measured: Floats, cells: Floats, total: float
) -> _Projection:
    finest = next((s for s, size in enumerate(levels.sizes) if size == levels.cells), None)
    # if the cells were not measured, any that fit will do, the smaller the better
    own, weight = cells, _NEARLY_NOTHING
    if finest is not None:
        own = measured[levels.places[finest] + levels.starts[finest]] / times[finest]
        weight = float(times[finest] ** 2)
    others = [s for s, size in enumerate(levels.sizes) if s != finest and size > 1]
    starts = np.cumsum([0, *(levels.sizes[s] for s in others)])
    places = [levels.places[s] + start for s, start in zip(others, starts, strict=False)]
    places.append(np.full(levels.cells, starts[-1]))  # the total
    rows = [measured[levels.starts[s] : levels.starts[s] + levels.sizes[s]] / times[s] for s in others]
    ease = np.concatenate([*(np.full(levels.sizes[s], weight / times[s] ** 2) for s in others), [0.0]])
    return _Projection(places, own, np.concatenate([*rows, [total]]), ease)


def _preconditioned(matrix: Callable[[Floats], Floats], diagonal: Floats, goal: Floats) -> Floats:
    """Solve a linear system with a mostly diagonal matrix, by conjugate gradients."""
    found, rest = np.zeros_like(goal), goal.copy()
    direction = rest / diagonal
    size = first = float(rest @ direction)
    for _ in range(_MOST_STEPS):
        if size <= 1e-14 * first or size <= 0.0:
            break
        image = matrix(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0:  # flat in this direction: what was found is as good
            break
        step = size / curvature
        found += step * direction
        rest -= step * image
        before, size = size, float(rest @ (rest / diagonal))
        direction = rest / diagonal + (size / before) * direction
    return found


def whole_nonnegative(values: Floats, order: Integers | None = None) -> Integers:
    """Nonnegative whole numbers such that the sum of every contiguous run is within 1 of what it was: rounded
    running sums.
    """
    table = values if order is None else values[order]
    base = np.floor(table)
    rest = np.diff(np.rint(np.cumsum(table - base)), prepend=0.0)
    whole = (base + rest).astype(np.int64)
    if order is None:
        return whole
    result = np.empty_like(whole)
    result[order] = whole
    return result


# -- parts and wholes ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PartsOfWhole:
    """Some numbers, by their places, sum to at most another one, or (`exactly`) to it."""

    parts: tuple[int, ...]
    whole: int
    exactly: bool = False


def onto_relations(
    values: Floats, variances: Sequence[float], relations: Sequence[PartsOfWhole], nonnegative: bool
) -> Floats:
    """The nearest numbers, in units of their noise, that satisfy the relations; `values` has a row for each
    number.

    Dykstra's algorithm, on all cells at once. The truth satisfies the relations, so the result is never
    further from it than `values` were.
    """
    normals: list[tuple[Floats, bool]] = []
    for each in relations:
        normal = np.zeros(len(values))
        normal[list(each.parts)], normal[each.whole] = 1.0, -1.0
        normals.append((normal, each.exactly))
    if nonnegative:
        normals += [(-np.eye(len(values))[place], False) for place in range(len(values))]
    moves = [
        np.asarray(variances) * normal / float(normal @ (np.asarray(variances) * normal))
        for normal, _ in normals
    ]
    found, owed = values.astype(np.float64).copy(), [np.zeros(values.shape[1]) for _ in normals]
    close = _CLOSE * (1.0 + float(np.abs(values).max(initial=0.0)))
    for _ in range(_MOST_SWEEPS):
        most = 0.0
        for number, ((normal, exactly), move) in enumerate(zip(normals, moves, strict=True)):
            above = normal @ found + owed[number]
            step = above if exactly else np.maximum(above, 0.0)
            change = step - owed[number]
            found -= move[:, None] * change
            owed[number] = step if not exactly else np.zeros_like(step)
            most = max(most, float(np.abs(change).max(initial=0.0)))
        if most <= close:
            break
    return found


def whole_within(values: Floats, relations: Sequence[PartsOfWhole]) -> Integers:
    """Whole numbers near `values` that satisfy the same relations.

    Each number is a segment of a line, its parts side by side within it; the ends of all segments are
    rounded. A part of two wholes has a line of its own, and is at most each of them.
    """
    starts, ends = np.zeros_like(values), values.copy()
    waiting, listed = list(relations), [part for each in relations for part in each.parts]
    shared = {part for part in listed if listed.count(part) > 1}
    while waiting:
        # wholes before their parts
        each = next(one for one in waiting if not any(one.whole in other.parts for other in waiting))
        waiting.remove(each)
        start = starts[each.whole]
        for part in each.parts:
            if part in shared:
                ends[part] = np.minimum(
                    ends[part], np.rint(ends[each.whole]) - np.rint(starts[each.whole]) + 0.25
                )
            else:
                starts[part], ends[part] = start, start + values[part]
                start = ends[part]
        last = each.parts[-1]
        if each.exactly:
            ends[last] = ends[each.whole]
        elif last not in shared:
            ends[last] = np.minimum(ends[last], ends[each.whole])
    return (np.rint(ends) - np.rint(starts)).astype(np.int64)
