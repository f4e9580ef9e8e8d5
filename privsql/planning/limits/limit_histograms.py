"""A query without declared limits goes in; histograms of its units come out, and the limits read from them.

A unit adds 1 to one bucket of a histogram, so l1 is 1, or 2 if a unit is replaced. Rows are counted after the
query's own FROM and WHERE. With GROUP BY a unit falls in the bucket of its *largest* key: a unit whose bucket
is within a limit loses nothing, the number of units above a limit can be read off, and the loss is never
underestimated. The rows of all keys of all units would show the loss more closely, but one unit contributes
many of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from privsql.algebra.build import compare, unify
from privsql.algebra.expressions import OF_DIFFERENT, Aggregate, Call, Column, Expression, Literal
from privsql.algebra.relations import (
    BoundQuery,
    Choose,
    Group,
    Key,
    Limits,
    Project,
    Relation,
    Release,
    Scan,
    rebuilt,
)
from privsql.algebra.unit_rows.bounded import is_bounded
from privsql.analysis.derive import names_in
from privsql.planning.limits.bounding import aggregates_of, totals_within
from privsql.planning.plan import Plan
from privsql.types import BIGINT, integer

SHARE = Fraction(1, 5)  # of epsilon, for all histograms of a query together
LARGEST = 2**20  # the key of the last bucket, which is open-ended; limits end below it
EDGES = tuple(sorted(each for power in range(20) for each in (2**power, 3 * 2**power) if each < 10**6))
# Chosen by simulation over units with Poisson, lognormal, geometric and Zipf numbers of rows: a far bucket
# mistaken for an occupied one makes the noise absurd; going a little too far costs less than missing a tail.
_MISTAKEN = 1e-4  # how often an empty bucket may be mistaken for an occupied one, over all buckets
_WINDOWS = (1, 2, 4)  # how many buckets of a tail are considered together
_CLEAR = 1  # how many standard deviations they must stand out
_COUNT = Aggregate("count", None, None, BIGINT)


class Histogram(StrEnum):
    """What units are counted by. The ledger shows these texts."""

    ROWS = "units by rows"
    KEYS = "units by keys"
    WIDEST = "units by keys, of the column in which each has the most"


OF_LIMIT = {"max_rows": Histogram.ROWS, "max_groups": Histogram.KEYS}


# -- asking --------------------------------------------------------------------------------------------------
def histogram_query(query: BoundQuery, kind: Histogram) -> BoundQuery:
    """Count the units of a query by bucket: SELECT bucket, COUNT(*) AS n FROM (one row per unit) GROUP BY
    bucket.
    """
    assert query.release is not None
    counted = Column("n", BIGINT)
    buckets = Project(_one_row_a_unit(query.release, kind), (("bucket", _bucket(counted)),))
    key = Key("bucket", buckets.fields[0].column, "bucket")
    release = Release(buckets, (key,), (("n", _COUNT),))
    return BoundQuery(release, ("bucket", "n"), release)


def _one_row_a_unit(release: Release | Choose, kind: Histogram) -> Relation:
    """A relation with a row for each unit and one column n: the rows of its largest key, or the number of its
    keys.
    """
    relation, keys, count = _counted(release)
    relation = rebuilt(relation, _without_limits)
    if kind is Histogram.WIDEST:
        named = [
            (f"n{place}", Aggregate("count_distinct", key.expression, None, BIGINT))
            for place, key in enumerate(keys)
        ]
        each = Group(relation, (), tuple(named), per_unit=True)
        columns: list[Expression] = [Column(name, BIGINT) for name, _ in named]
        return Project(each, (("n", columns[0] if len(columns) == 1 else unify("greatest", columns)),))
    if not keys:
        return Group(relation, (), (("n", count),), per_unit=True)
    cells = Group(
        relation,
        tuple(replace(key, name=f"k{place}") for place, key in enumerate(keys)),
        (("n", count),),
        True,
    )
    largest = Aggregate("max", Column("n", BIGINT), None, BIGINT)
    return Group(cells, (), (("n", largest if kind is Histogram.ROWS else _COUNT),), per_unit=True)


def _counted(release: Release | Choose) -> tuple[Relation, tuple[Key, ...], Aggregate]:
    """The rows that are bounded, their keys, and how they count; for sums within a unit, the rows
    below them.
    """
    aggregates = aggregates_of(release)
    added = [
        part for each in aggregates if each.function not in ("count", *OF_DIFFERENT) for part in each.reads
    ]
    group = totals_within(release.input, names_in([*added, *(key.expression for key in release.keys)]))
    if group is not None and is_bounded(release.input):
        return group.input, group.keys if isinstance(group, Group) else (), _COUNT
    values = list({each.argument: None for each in aggregates})
    if len(values) == 1 and all(each.function in OF_DIFFERENT for each in aggregates):
        return release.input, release.keys, Aggregate("count_distinct", values[0], None, BIGINT)
    return release.input, release.keys, _COUNT


def _without_limits(relation: Relation) -> Relation:
    """Counts within a unit are taken to be within the limits of its table, which are not known here."""
    return replace(relation, limits=Limits(LARGEST, LARGEST)) if isinstance(relation, Scan) else relation


def _bucket(number: Column) -> Expression:
    """The smallest bucket edge that is at least this number."""
    type_ = integer(EDGES[0], LARGEST)
    parts: list[Expression] = []
    for edge in EDGES:
        parts += [compare("<=", number, _literal(edge)), _literal(edge)]
    return Call("case", (*parts, _literal(LARGEST)), type_)


def _literal(value: int) -> Literal:
    return Literal(value, integer(value, value))


# -- reading it off ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NoisyHistogram:
    """Noisy numbers of units by bucket.

    `half_width`: the noise of empty buckets stays within it, except once in 10,000 histograms. `deviation`:
    the standard deviation of the noise.
    """

    noisy_counts: Mapping[int, float]  # by the largest number of a bucket; LARGEST is the open-ended bucket
    half_width: float
    deviation: float

    @staticmethod
    def of(plan: Plan, buckets: Sequence[int], noisy_counts: Sequence[float]) -> NoisyHistogram:
        (measured,) = plan.measurements
        width = measured.half_width(1 - 2 * _MISTAKEN / plan.cells)
        return NoisyHistogram(
            dict(zip(buckets, noisy_counts, strict=True)), width, math.sqrt(2) * measured.scale
        )

    @cached_property
    def last(self) -> int | None:
        """The last bucket that seems to have units; None if no bucket does, and nothing is known.

        It is the last one that stands out on its own, extended as long as a few further ones stand out
        together: going too far adds a little noise, stopping too early drops all of a thin tail.
        """
        edges = list(self.noisy_counts)
        place = max(
            (each for each, edge in enumerate(edges) if self.noisy_counts[edge] > self.half_width),
            default=None,
        )
        if place is None:
            return None
        while (further := self._further([self.noisy_counts[edge] for edge in edges[place + 1 :]])) > 0:
            place += further
        return edges[place]

    def _further(self, noisy_counts: Sequence[float]) -> int:
        """How many of the following buckets stand out together; the fewest that do."""
        windows = (length for length in _WINDOWS if length <= len(noisy_counts))
        return next((n for n in windows if sum(noisy_counts[:n]) > _CLEAR * self.deviation * math.sqrt(n)), 0)

    @property
    def candidates(self) -> tuple[int, ...]:
        """Limits worth trying: no unit stands out beyond the last one."""
        return () if self.last is None else tuple(edge for edge in EDGES if edge <= self.last)

    @cached_property
    def _units(self) -> dict[float, float]:
        """Units by the middle of their bucket, without the buckets at the end that look like noise.

        Negative counts become 0: a few units fewer in a far bucket would outweigh all the others.
        """
        starts = dict(zip((*EDGES, LARGEST), (1, *(edge + 1 for edge in EDGES)), strict=True))
        kept = [
            (edge, count)
            for edge, count in self.noisy_counts.items()
            if self.last is not None and edge <= self.last
        ]
        return {(starts[edge] + edge) / 2: max(0.0, count) for edge, count in kept}

    @property
    def units(self) -> float:
        return max(1.0, sum(self._units.values()))

    @property
    def total(self) -> float:
        """The rows or keys of all units."""
        return max(1.0, sum(middle * count for middle, count in self._units.items()))

    def lost(self, limit: int) -> float:
        """The rows or keys of all units beyond a limit."""
        return sum((middle - limit) * count for middle, count in self._units.items() if middle > limit)

    def kept(self, limit: int) -> float:
        """The average that a limit keeps of one unit."""
        return max(1.0, sum(min(middle, limit) * count for middle, count in self._units.items()) / self.units)

    def cut(self, limit: int) -> int:
        """About how many units exceed a limit."""
        return max(0, round(sum(count for edge, count in self.noisy_counts.items() if edge > limit)))

    def give_or_take(self, limit: int) -> int:
        """How far `cut` may be off, 19 times in 20."""
        return math.ceil(2 * self.deviation * math.sqrt(sum(edge > limit for edge in self.noisy_counts)))


@dataclass(frozen=True)
class BestLimits:
    """Limits, and the expected error of one cell with them, in rows."""

    limits: Mapping[str, int]
    error: float


Noise = Callable[[int], float]  # keys of a unit -> the noise of a cell per row of the limit


def best_limits(
    spreads: Mapping[str, NoisyHistogram],
    most: Mapping[str, int | None],
    fixed: Mapping[str, int],
    cells: float,
    noise: Noise,
) -> BestLimits:
    """The limits that make bias plus noise least in a cell, from noisy and public numbers alone.

    `most`: what the owner allows. `fixed`: limits that are not looked for; one that does not matter is 1. Of
    a unit's keys those beyond the key limit are lost with all their rows, and of the others the rows beyond
    the row limit, as if all were as large as the largest. What is lost is spread evenly over the cells.
    """
    rows, keys = spreads.get("max_rows"), spreads.get("max_groups")
    tried = {name: _allowed(spread.candidates, most.get(name)) for name, spread in spreads.items()}
    found: BestLimits | None = None
    for groups in tried.get("max_groups", [fixed["max_groups"]]):
        each = noise(groups)
        of_unit = keys.kept(groups) if keys is not None else groups
        for limit in tried.get("max_rows", [fixed["max_rows"]]):
            lost = of_unit * rows.lost(limit) if rows is not None else 0.0
            if keys is not None:
                lost += keys.lost(groups) * (rows.total / rows.units if rows is not None else limit)
            error = lost / cells + each * limit
            if found is None or error < found.error:
                found = BestLimits({"max_groups": groups, "max_rows": limit}, error)
    assert found is not None
    return BestLimits({name: found.limits[name] for name in spreads}, found.error)


def _allowed(candidates: Sequence[int], most: int | None) -> list[int]:
    """Candidates that the owner allows, and the owner's own limit where it is among them."""
    return list(dict.fromkeys(each if most is None else min(each, most) for each in candidates))


def noise_of_a_row(plan: Plan) -> float:
    """The noise of a cell for each row that may be used of a unit in it, on average over what is measured."""
    noisy = [each.scale / each.linf for each in plan.measurements]
    return sum(noisy) / len(noisy)


def limits_wanted(plan: Plan, names: Sequence[str]) -> list[str]:
    """Those of some limits that may drop something."""
    return [name for name in names if any(name in each.binding for each in plan.bounding)]
