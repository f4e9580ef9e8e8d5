"""A plan goes in; its rows come out grouped by their final noise, after least squares where there are several
levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privsql.algebra.relations import Release
from privsql.planning.measurements.measurement import CellMeasurement, Measurement
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.plan import Plan
from privsql.privacy.least_squares import Levels, classes, weights
from privsql.privacy.weighted_sums import Fitted, Noise, Weights, half_width
from privsql.tables import Integers


@dataclass(frozen=True, eq=False)
class Alike:
    """Rows with equal noise, and that noise by the name of the noisy column."""

    rows: Integers | None  # None: all of them
    noise: Mapping[str, Noise]
    level: int | None = None


def noisy_columns(plan: Plan) -> dict[str, Measurement]:
    """The measurement of every noisy column."""
    return {
        column: each
        for each in plan.measurements
        if isinstance(each, CellMeasurement) or (isinstance(each, KeyMeasurement) and each.shows_counts)
        for column in each.columns
    }


def alike_rows(plan: Plan) -> list[Alike]:
    """All rows together, or with several levels, groups of rows with equal noise after least squares."""
    columns = noisy_columns(plan)
    if plan.derived is not None:
        return [Alike(rows, noise) for rows, noise in plan.derived.kinds]
    if plan.levels is None:
        return [Alike(None, {column: each.law for column, each in columns.items()})]
    found = _classes(plan.levels)
    if found is None:  # too many different groups: use a bound that holds for all of them
        return [_unknown(plan, columns, level) for level in range(len(plan.levels.sizes))]
    result = []
    for number in range(int(found.max()) + 1):
        rows = np.flatnonzero(found == number)
        level = max(s for s, start in enumerate(plan.levels.starts) if start <= rows[0])
        noise = {
            column: Fitted(each.law, _weights(plan.levels, times_of(plan, each), int(rows[0])))
            for column, each in columns.items()
        }
        result.append(Alike(rows, noise, level))
    return result


def _unknown(plan: Plan, columns: Mapping[str, Measurement], level: int) -> Alike:
    assert plan.levels is not None
    rows = np.arange(plan.levels.sizes[level]) + plan.levels.starts[level]
    alone = {name: 1.0 / times_of(plan, each)[level] for name, each in columns.items()}
    return Alike(
        rows,
        {name: Fitted(columns[name].law, ((size, 1),), known=False) for name, size in alone.items()},
        level,
    )


def times_of(plan: Plan, measurement: Measurement) -> tuple[int, ...]:
    """How many times the sums of each level were measured."""
    assert isinstance(plan.release, Release)
    sets = plan.release.sets
    return tuple(1 if kept else measurement.sensitivity.total_times for kept in sets)


def set_texts(plan: Plan) -> list[str]:
    """The sets of keys, for people."""
    sets = plan.release.sets if isinstance(plan.release, Release) else ()
    return [
        f"({', '.join(plan.release.keys[place].name for place in kept)})"
        for kept in sets
        if plan.release is not None
    ]


def gains(plan: Plan, measurement: Measurement, level: float) -> list[tuple[str, float, float]]:
    """For each set of keys, the error of a column as measured and after least squares, in its worst row."""
    texts, times, column = set_texts(plan), times_of(plan, measurement), measurement.columns[0]
    after = [0.0] * len(texts)
    for kind in alike_rows(plan):
        if (
            kind.level is not None and column in kind.noise
        ):  # pragma: no branch -- of several levels each kind has its own
            after[kind.level] = max(after[kind.level], half_width([(1.0, kind.noise[column])], level))
    before = [measurement.half_width(level) / many for many in times]
    return list(zip(texts, before, after, strict=True))


_classes = lru_cache(maxsize=64)(classes)


@lru_cache(maxsize=4096)
def _weights(levels: Levels, times: tuple[int, ...], row: int) -> Weights:
    return weights(levels, times, row)
