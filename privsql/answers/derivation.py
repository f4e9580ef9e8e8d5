"""A plan and stored answers go in; its noisy cells come out, computed from stored noisy cells alone, without
data.

A stored column is a sum over the rows in each cell of its keys. A wanted column can be computed from it if it
is the same sum over the same rows, or over the rows whose keys meet a condition, and if the stored keys
determine its cells. Several stored answers to the same cell are weighted by inverse variance. This is least
squares, because their noise is independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.algebra.expressions import Call, Column, Expression
from privsql.algebra.relations import Choose
from privsql.analysis.disjoint import both
from privsql.analysis.keys import Evaluate, KeySpace
from privsql.equivalence.over_keys import RowsByKey, rows_of
from privsql.planning.aggregates.compare_errors import are_no_larger, errors
from privsql.planning.aggregates.parts import Adds, Feature
from privsql.planning.grids.grid import Grid
from privsql.planning.identity import places_of, strides
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.plan import Derived, Plan, StoredSource
from privsql.planning.precision.noise_of_rows import noisy_columns
from privsql.privacy.weighted_sums import Fitted, Noise, Summed, variance
from privsql.tables import Integers, NoisyTable
from privsql.types import BOOLEAN

Floats = npt.NDArray[np.float64]

MOST_CELLS = 100_000  # of a stored answer to aggregate
MOST_SOURCES = 8
# at a huge epsilon there is no noise: its inverse, and sums of inverses, must stay finite
_LEAST_VARIANCE = 1e-300

Basis = tuple[Any, ...]  # the summand of a column: 1, or the value of an argument on a grid
Terms = tuple[tuple[str, Fraction], ...]  # stored columns with their weights


@dataclass(frozen=True)
class Measured:
    """A column as a sum over rows: which rows, and which summands in terms of a basis."""

    conditions: tuple[Expression, ...]
    texts: frozenset[str]
    parts: Mapping[Basis, int]


@dataclass(frozen=True, eq=False)
class Additive:
    """A plan whose columns are all sums over the same rows, in cells of declared keys."""

    plan: Plan
    rows: RowsByKey
    columns: Mapping[str, Measured]
    together: Sequence[tuple[Terms, Measured]] = ()  # the totals of several columns over different rows

    @cached_property
    def keys(self) -> dict[str, Column]:
        """The keys by their value texts."""
        assert self.plan.release is not None
        meant = [(key.name, self.rows.meant(key.expression)) for key in self.plan.release.keys]
        return {self.rows.value_text(each): Column(name, each.type) for name, each in meant}


@dataclass(frozen=True, eq=False)
class Known:
    """A stored answer: the plan that was paid for, and its noisy cells as drawn."""

    additive: Additive
    noisy: NoisyTable
    question: str
    when: str

    @property
    def plan(self) -> Plan:
        return self.additive.plan

    def source(self, cells: int) -> StoredSource:
        return StoredSource(self.question, self.plan.epsilon, self.plan.delta, self.when, cells)


def additive(plan: Plan) -> Additive | None:
    """The sums of a plan; None if some column is not a sum, or keys are undeclared."""
    if (
        plan.release is None
        or plan.pricing is None
        or plan.space.open
        or plan.levels is not None
        or plan.consistent
    ):
        return None
    parts = plan.pricing.parts
    if any(len(part.features) != len(part.columns) for part in parts):
        return None
    try:
        rows = rows_of(plan.release)
        if rows is None:
            return None
        columns = {
            name: _measured(rows, each)
            for part in parts
            for name, each in zip(part.columns, part.features, strict=True)
        }
        together = [
            (part.all_rows, _measured(rows, Feature(Adds.ONE, None, each.condition)))
            for part in parts
            for each in part.features
            if each.adds is Adds.ABSENT and len(part.all_rows) > 1
        ]
    except RecursionError:  # nested too deeply
        return None
    return Additive(plan, rows, columns, together)


def _measured(rows: RowsByKey, feature: Feature) -> Measured:
    if feature.adds is Adds.ABSENT:
        assert feature.argument is not None
        missing = both(feature.condition, Call("is_null", (feature.argument,), BOOLEAN))
        return _measured(rows, replace(feature, adds=Adds.ONE, argument=None, condition=missing))
    conditions = rows.conditions(feature.condition, feature.argument)
    texts = rows.condition_texts(conditions)
    one: Basis = ("1",)
    if feature.adds is Adds.ONE:
        return Measured(tuple(conditions), texts, {one: feature.times})
    assert feature.grid is not None and feature.argument is not None
    low, high = feature.grid.low, feature.grid.low + feature.grid.steps
    if low == feature.grid.high:  # a constant is as good as a count; 0 is as good as nothing
        parts = {one: {Adds.VALUE: low, Adds.HEIGHT: 0, Adds.DEPTH: high - low}[feature.adds]}
    else:
        value: Basis = (rows.value_text(rows.meant(feature.argument)), *_ends(feature.grid))
        parts = {
            Adds.VALUE: {value: 1},
            Adds.HEIGHT: {value: 1, one: -low},
            Adds.DEPTH: {value: -1, one: high},
        }[feature.adds]
    return Measured(tuple(conditions), texts, {each: weight for each, weight in parts.items() if weight})


def _ends(grid: Grid) -> tuple[Any, ...]:
    return grid.low, grid.high, grid.step


# -- one stored answer ---------------------------------------------------------------------------------------
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


# -- all of them ---------------------------------------------------------------------------------------------
# stored answers by place, the best first, each with the way to a column
Used = Sequence[tuple[int, Way]]


def derive(
    wanted: Additive, stored: Sequence[Known], evaluate: Evaluate, paid: bool = False
) -> tuple[Derived, dict[str, Integers]] | None:
    """Compute the wanted columns from stored answers; None if some column does not follow from them.

    Only answers that sum over the same keys are combined: others may lack different rows, and an average of
    two different numbers is neither. `paid`: the query's own answer is among them, which sums over no keys.
    """
    found = [ways(wanted, known, evaluate) for known in stored]
    over = [frozenset(_summed_over(wanted, [known])) for known in stored]
    options = [
        {
            name: _best(
                [
                    (place, each[name])
                    for place, each in enumerate(found)
                    if name in each and over[place] == keys
                ]
            )
            for name in wanted.columns
        }
        for keys in dict.fromkeys(over)
        if not (paid and keys)
    ]
    whole = [each for each in options if all(each.values())]
    if not whole:
        return None
    used = min(
        whole, key=lambda each: sum(np.log(max(_worst(ways[0]), _LEAST_VARIANCE)) for ways in each.values())
    )
    shares = {name: _shares([way for _, way in each]) for name, each in used.items()}
    counts = np.array([way.cells for each in used.values() for _, way in each]).T
    _, first, classes = np.unique(counts, axis=0, return_index=True, return_inverse=True)
    kinds = tuple(
        (
            np.flatnonzero(classes.reshape(-1) == number),
            {name: _noise(stored, used[name], shares[name], cell) for name in used},
        )
        for number, cell in enumerate(first.tolist())
    )
    most = {
        place: max(int(w.cells.max()) for each in used.values() for p, w in each if p == place)
        for place in dict.fromkeys(place for each in used.values() for place, _ in each)
    }
    sources = tuple(stored[place].source(cells) for place, cells in most.items())
    columns = {name: _added(stored, used[name], shares[name]) for name in used}
    return Derived(sources, kinds, _summed_over(wanted, [stored[place] for place in most])), columns


def _best(found: Used) -> Used:
    return sorted(found, key=_worst)[:MOST_SOURCES]


def _worst(found: tuple[int, Way]) -> float:
    """The variance of the noisiest cell."""
    return float(found[1].cells.max()) * found[1].variance


def _shares(found: Sequence[Way]) -> list[Floats]:
    """The weight of each source in every cell, by inverse variance."""
    precisions = [1.0 / (way.cells * max(way.variance, _LEAST_VARIANCE)) for way in found]
    return [each / np.sum(precisions, axis=0) for each in precisions]


def _added(stored: Sequence[Known], used: Used, shares: Sequence[Floats]) -> Integers:
    sums = [
        [_sums(stored[place].noisy.noisy_columns[name], way) for name, _ in way.terms] for place, way in used
    ]
    if _is_whole(used):
        whole = [int(weight) * cells for (_, weight), cells in zip(used[0][1].terms, sums[0], strict=True)]
        return np.asarray(np.add.reduce(whole), dtype=np.int64)
    mixed = np.zeros(len(used[0][1].cells))
    for (_, way), columns, share in zip(used, sums, shares, strict=True):
        mixed += share * sum(
            float(weight) * cells for (_, weight), cells in zip(way.terms, columns, strict=True)
        )
    return np.rint(mixed).astype(np.int64)


def _sums(noisy: Integers, way: Way) -> Integers:
    """A stored column, summed in the wanted cells."""
    cells, used = np.zeros(len(way.cells), dtype=np.int64), way.places >= 0
    np.add.at(cells, way.places[used], noisy[used])
    return cells


def _is_whole(used: Used) -> bool:
    return len(used) == 1 and all(weight.denominator == 1 for _, weight in used[0][1].terms)


def _noise(stored: Sequence[Known], used: Used, shares: Sequence[Floats], cell: int) -> Noise:
    parts = []
    for (place, way), share in zip(used, shares, strict=True):
        measured = noisy_columns(stored[place].plan)
        for column, weight in way.terms:
            size = abs(float(weight)) * float(share[cell])
            parts.append(((place, column), Fitted(measured[column].law, ((size, int(way.cells[cell])),))))
    return Summed(tuple(parts), 0.0 if _is_whole(used) else 0.5)


def _summed_over(wanted: Additive, stored: Sequence[Known]) -> tuple[str, ...]:
    """Keys of the stored answers that are not keys of the plan: rows with an undeclared value are missing."""
    names = [
        column.name
        for known in stored
        for text, column in known.additive.keys.items()
        if text not in wanted.keys
    ]
    return tuple(dict.fromkeys(names))


# -- is it good enough ---------------------------------------------------------------------------------------
# the variance that the noise of a score amounts to, in squares of its scale: half that of a difference of two
_CHOICES = {
    Mechanism.CHOICE_FLIP: 1.0,
    Mechanism.CHOICE_LAPLACE: 2.0,
    Mechanism.CHOICE_HISTOGRAM: 2.0,
    Mechanism.CHOICE_GUMBEL: np.pi**2 / 6.0,
    Mechanism.CHOICE_EXPONENTIAL: np.pi**2 / 6.0,
}


def variances(plan: Plan) -> dict[str, float]:
    """The variance of each column of the plan."""
    found: dict[str, float] = {}
    for each in plan.measurements:
        factor = _CHOICES.get(each.mechanism)
        noisy = variance(each.law) if factor is None else factor * float(each.noise_scale) ** 2
        found |= dict.fromkeys(each.columns, noisy)
    return found


def is_as_good(plan: Plan, answered: Plan, derived: Derived) -> bool:
    """Whether no cell is noisier than the plan would make it; for several columns, no number computed from
    them.
    """
    allowed = variances(plan)
    if answered is not plan:
        most = errors(plan.estimates, plan.quotients, allowed)
        found = [{column: variance(each) for column, each in noise.items()} for _, noise in derived.kinds]
        return all(
            are_no_larger(errors(answered.estimates, answered.quotients, noise), most) for noise in found
        )
    return all(
        variance(noise[column]) <= most * (1 + 1e-9)
        for _, noise in derived.kinds
        for column, most in allowed.items()
    )


def chosen(release: Choose, space: KeySpace, picks: int, scores: Integers) -> Integers:
    """The best candidates by noisy score, or the best of each group."""
    signed = scores if release.largest else -scores
    within = {key.name for key in release.keys[: release.within]}
    groups = int(
        np.prod([len(group) for group in space.groups if set(group.names) <= within], dtype=np.int64)
    )
    if release.within:
        best = np.argmax(signed.reshape(groups, -1), axis=1)
        return np.asarray(np.arange(groups) * (len(signed) // groups) + best, dtype=np.int64)
    return np.argsort(-signed, kind="stable")[:picks].astype(np.int64)
