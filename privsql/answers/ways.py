"""A plan and one stored answer go in; the best way from its columns to each column of the plan comes out.

A wanted column can be computed from a stored one if it is the same sum over the same rows, or over the rows
whose keys meet a condition, and if the stored keys determine its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from privsql.algebra.expressions import Call, Expression
from privsql.analysis.keys import Evaluate, KeySpace
from privsql.answers.additive import Additive, Basis, Known, Measured, Terms
from privsql.planning.identity import places_of, strides
from privsql.planning.precision.noise_of_rows import noisy_columns
from privsql.privacy.weighted_sums import variance
from privsql.tables import Integers
from privsql.types import BOOLEAN

MOST_CELLS = 100_000  # of a stored answer to aggregate


@dataclass(frozen=True, eq=False)
class Way:
    """How a wanted column is computed from a stored answer: a weighted sum of columns, in which each cell
    goes to one wanted cell.
    """

    terms: Terms
    places: Integers  # the wanted cell of each stored cell, or -1
    cells: Integers  # the number of stored cells in each wanted cell
    variance: float  # of one stored cell


def ways(wanted: Additive, known: Known, evaluate: Evaluate) -> dict[str, Way]:
    """The best way for every column that has one."""
    stored = known.additive
    if stored.rows.text != wanted.rows.text or len(stored.plan.space) > MOST_CELLS:
        return {}
    assert wanted.plan.release is not None
    keys = [
        wanted.rows.over_keys(wanted.rows.meant(key.expression), stored.keys)
        for key in wanted.plan.release.keys
    ]
    if any(each is None for each in keys):
        return {}
    laws = {name: variance(each.law) for name, each in noisy_columns(stored.plan).items()}
    reader = _Reader(stored, [each for each in keys if each is not None], wanted, evaluate)
    found: dict[str, Way] = {}
    for name, column in wanted.columns.items():
        options = [
            Way(terms, *placed, sum(float(weight) ** 2 * laws[each] for each, weight in terms))
            for terms, base in (
                *_solutions(column, stored.columns, laws),
                *_added_together(column, stored.together),
            )
            if (placed := reader.places(column, base)) is not None
        ]
        if options:
            found[name] = min(options, key=lambda way: way.variance)
    return found


def _solutions(
    wanted: Measured, stored: Mapping[str, Measured], laws: Mapping[str, float]
) -> Iterator[tuple[Terms, Measured]]:
    """Weighted sums of one or two stored columns over the same rows that equal the wanted sum."""
    usable = [name for name, each in stored.items() if name in laws and each.texts <= wanted.texts]
    for name in usable:
        weight = _ratio(wanted.parts, stored[name].parts)
        if weight is not None:
            yield ((name, weight),), stored[name]
    for one, other in combinations(usable, 2):
        if stored[one].texts == stored[other].texts:
            weights = _solved(wanted.parts, stored[one].parts, stored[other].parts)
            if weights is not None:
                yield ((one, weights[0]), (other, weights[1])), stored[one]


def _added_together(
    wanted: Measured, stored: Sequence[tuple[Terms, Measured]]
) -> Iterator[tuple[Terms, Measured]]:
    """Sums of columns that add up to a count of all rows, NULLs included."""
    for terms, base in stored:
        weight = _ratio(wanted.parts, base.parts)
        if base.texts <= wanted.texts and weight is not None:
            yield tuple((name, weight * each) for name, each in terms), base


def _ratio(wanted: Mapping[Basis, int], stored: Mapping[Basis, int]) -> Fraction | None:
    if wanted.keys() != stored.keys():
        return None
    ratios = {Fraction(wanted[each], stored[each]) for each in wanted}
    return ratios.pop() if len(ratios) == 1 else None


def _solved(
    wanted: Mapping[Basis, int], one: Mapping[Basis, int], other: Mapping[Basis, int]
) -> tuple[Fraction, Fraction] | None:
    """Solve by Cramer's rule, if there are two unknowns and exactly two summands."""
    basis = sorted({*one, *other}, key=repr)
    if len(basis) != 2 or not wanted.keys() <= set(basis):
        return None
    (a, b), (c, d), (x, y) = ([each.get(part, 0) for part in basis] for each in (one, other, wanted))
    whole = a * d - b * c
    if whole == 0:
        return None
    first, second = Fraction(x * d - y * c, whole), Fraction(a * y - b * x, whole)
    return (first, second) if first and second else None


@dataclass(frozen=True, eq=False)
class _Reader:
    """Maps stored cells to wanted cells."""

    stored: Additive
    keys: Sequence[Expression]  # of the wanted cells, over the stored keys
    wanted: Additive
    evaluate: Evaluate

    def places(self, column: Measured, base: Measured) -> tuple[Integers, Integers] | None:
        """The map; None if a condition needs more than the keys, or a wanted cell has no stored one."""
        rows = self.wanted.rows
        rest = [each for each in column.conditions if not rows.condition_texts([each]) <= base.texts]
        known = [rows.over_keys(each, self.stored.keys) for each in rest]
        if any(each is None for each in known):
            return None
        met = self._met([each for each in known if each is not None])
        places = np.where(met, self._cells, -1)
        cells = np.bincount(places[places >= 0], minlength=len(self.wanted.plan.space))
        return (places, cells.astype(np.int64)) if cells.all() else None

    def _met(self, conditions: Sequence[Expression]) -> Any:
        if not conditions:
            return np.ones(len(self.stored.plan.space), dtype=bool)
        every = [Call("is_true", (each,), BOOLEAN) for each in conditions]
        return np.all([[value is True for value in column] for column in self._evaluated(every)], axis=0)

    @cached_property
    def _cells(self) -> Integers:
        """The wanted cell of each stored cell by its keys, or -1."""
        assert self.wanted.plan.release is not None
        names = [key.name for key in self.wanted.plan.release.keys]
        values = dict(zip(names, self._evaluated(self.keys), strict=True))
        found = np.zeros(len(self.stored.plan.space), dtype=np.int64)
        for group, stride in strides(self.wanted.plan.space):
            places = places_of(group.columns, [values[name] for name in group.names])
            found = np.where((found < 0) | (places < 0), -1, found + places * stride)
        return found

    def _evaluated(self, expressions: Sequence[Expression]) -> list[list[Any]]:
        if not expressions:
            return []
        space = self.stored.plan.space
        columns = {column: _values(space, column.name) for column in self.stored.keys.values()}
        return self.evaluate(expressions, columns)


def _values(space: KeySpace, name: str) -> list[Any]:
    """The value of a key in every cell."""
    cells = np.arange(len(space))
    group, stride = next(each for each in strides(space) if name in each[0].names)
    column = group.columns[group.names.index(name)]
    return [column[place] for place in ((cells // stride) % len(group)).tolist()]
