"""Cells and grouping sets go in; the rows of an answer with a level for each set come out, and how cells add
up to them.

A row of a level is a total over the keys that its set leaves out; these are NULL there. The number of the set
is a further key, which separates totals from keys that are NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsql.algebra.relations import SET_COLUMN, Sets
from privsql.algebra.reserved import set_number
from privsql.analysis.domain import MAX_KEYS
from privsql.analysis.keys import KeyGroup, KeySpace, too_many_keys
from privsql.privacy.least_squares import Integers, Levels


def levelled(space: KeySpace, sets: Sets) -> tuple[KeySpace, Levels]:
    """All rows, level by level, and the row of each cell."""
    views = [
        [_View(group, [space.names[place] for place in kept]) for group in space.groups] for kept in sets
    ]
    sizes = tuple(math.prod(view.size for view in listed) for listed in views)
    if sum(sizes) > MAX_KEYS:
        raise too_many_keys(": all sets together", "leave sets out")
    columns: dict[str, list[Any]] = {name: [] for name in (*space.names, SET_COLUMN)}
    for kept, listed, size in zip(sets, views, sizes, strict=True):
        repeat = size
        for view in listed:
            repeat //= view.size
            for name, values in zip(view.group.names, view.columns(), strict=True):
                once = [value for value in values for _ in range(repeat)]
                columns[name] += once * (size // max(1, len(once)))
        columns[SET_COLUMN] += [set_number(kept, len(space.names))] * size
    rows = KeyGroup(tuple(columns), tuple(columns.values()))
    whole = all(view.whole for listed in views for view in listed)
    levels = Levels(
        tuple(_places(listed) for listed in views),
        sizes,
        tuple(len(group) for group in space.groups),
        None if whole else _order(space),
        tuple(tuple(axis for axis, view in enumerate(listed) if view.kept) for listed in views)
        if whole
        else None,
        tuple(math.prod(view.corners() for view in listed) for listed in views),
    )
    return KeySpace(rows.names, (rows,)), levels


class _View:
    """A group of keys of which a set keeps some; determines which combinations share a row."""

    def __init__(self, group: KeyGroup, names: Sequence[str]) -> None:
        self.group = group
        self.kept = [place for place, name in enumerate(group.names) if name in names]
        self.whole = len(self.kept) in (0, len(group.names))
        if self.whole:
            self.size = len(group) if self.kept else 1
            self.codes: Integers = (
                np.arange(len(group), dtype=np.int64) if self.kept else np.zeros(len(group), dtype=np.int64)
            )
            self.first = list(range(self.size))
        else:
            seen: dict[tuple[Any, ...], int] = {}
            rows = zip(*(group.columns[place] for place in self.kept), strict=True)
            self.codes = np.array([seen.setdefault(row, len(seen)) for row in rows], dtype=np.int64)
            self.size = len(seen)
            self.first = np.unique(self.codes, return_index=True)[1].tolist()

    def corners(self) -> int:
        """How many ends the ranges of a row have in the order of `_order`; a whole axis has one."""
        if self.whole:
            return 2 if self.kept else 1
        ordered = self.codes[_sorted(self.group)]
        begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        return 2 * int(np.bincount(ordered[begins]).max())

    def columns(self) -> list[list[Any]]:
        """The keys of its rows; those left out are NULL."""
        return [
            [column[row] for row in self.first] if place in self.kept else [None] * self.size
            for place, column in enumerate(self.group.columns)
        ]


def _places(views: Sequence[_View]) -> Integers:
    """The row of each cell; cells are numbered group by group."""
    places = np.zeros(1, dtype=np.int64)
    for view in views:
        places = (places[:, None] * view.size + view.codes[None, :]).reshape(-1)
    return places


def _order(space: KeySpace) -> Integers:
    """An order of the cells in which, within each group, cells that agree in their first keys are
    adjacent.
    """
    order = np.zeros(1, dtype=np.int64)
    for group in space.groups:
        order = (order[:, None] * len(group) + _sorted(group)[None, :]).reshape(-1)
    return order


def _sorted(group: KeyGroup) -> Integers:
    codes = []
    for column in group.columns:
        seen: dict[Any, int] = {}
        codes.append(np.array([seen.setdefault(value, len(seen)) for value in column], dtype=np.int64))
    return np.lexsort(codes[::-1]).astype(np.int64)
