"""A plan and the exact cells go in; noisy cells come out. The only place where exact becomes noisy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsql.algebra.relations import Choose
from privsql.algebra.reserved import ROWS_COLUMN, VALUE_COLUMN, WIDTH_COLUMN
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.histograms import Histograms, histograms
from privsql.noise.key_release import release_keys, select_keys
from privsql.noise.quantile_sampler import quantiles
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import discrete_laplace
from privsql.noise.selection import SelectionNoise, in_fine_steps, select, select_each
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.laplace_noise import LaplaceMeasurement
from privsql.planning.measurements.measurement import CellMeasurement
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.plan import Plan
from privsql.planning.release_plan import ValueStatement
from privsql.privacy.key_selection import GaussianThreshold, OptimalSelection, TruncatedGeometric
from privsql.tables import ExactTable, Integers, NoisyTable, NullLast, as_array

Run = Callable[[str], ExactTable]  # a statement of the plan
# the cell of each row, and whether the row has one
Placing = Callable[[ExactTable], tuple[Integers, npt.NDArray[np.bool_]]]

# the selection noise of each mechanism: added to every score before the largest noisy score wins
_SELECTION: dict[Mechanism, SelectionNoise] = {
    Mechanism.CHOICE_FLIP: "exponential",  # every mechanism but permute-and-flip works on fine steps
    Mechanism.CHOICE_LAPLACE: "laplace",
    Mechanism.CHOICE_GUMBEL: "gumbel",
    Mechanism.CHOICE_EXPONENTIAL: "gumbel",  # Gumbel noise is the exponential mechanism
}


def add_noise(
    plan: Plan, exact_tables: Sequence[ExactTable], source: Randomness, run: Run | None = None
) -> NoisyTable:
    """Return every cell of the key space with the noise of its measurement, or the cell that was selected.
    Cells without rows count as 0.

    `exact_tables` are the results of the statements that the plan runs first, in that order. `run` runs a
    further statement if one is needed.
    """
    of_values = exact_tables[len(exact_tables) - len(plan.of_values) :]
    if plan.space.open:
        return _open_keys(plan, exact_tables[0], of_values, source, run)
    exact_columns = laid_out(plan.space, exact_tables[0]) if plan.counts else {}
    size = len(plan.space)
    noisy: dict[str, Integers] = {}
    for measurement in plan.measurements:
        match measurement:
            case SelectionMeasurement():  # a selection is the only measurement of its plan
                return NoisyTable(_winners(plan, exact_columns, measurement, source), {})
            case LaplaceMeasurement() | GaussianMeasurement():
                for column in measurement.columns:
                    noisy[column] = exact_columns[column] + _noise(measurement, size, source)
            case QuantileMeasurement():
                pass  # drawn from the value histograms below
            case KeyMeasurement():
                raise AssertionError("these keys are declared")
            case _:
                assert_never(measurement)
    for statement, exact_values in zip(plan.of_values, of_values, strict=True):
        noisy |= _points(
            plan, statement, exact_values, lambda table: _places(plan.space, table), size, source, run
        )
    return NoisyTable(np.arange(size, dtype=np.int64), noisy)


def _winners(
    plan: Plan,
    exact_columns: Mapping[str, Integers],
    measurement: SelectionMeasurement,
    source: Randomness,
) -> Integers:
    """The cells of the winning labels."""
    release = plan.release
    assert isinstance(release, Choose)
    (column,) = measurement.columns
    exact_scores = exact_columns[column] * (1 if release.largest else -1)
    return _chosen(exact_scores, measurement, _groups(release, plan.space), source)


def _points(
    plan: Plan,
    statement: ValueStatement,
    exact: ExactTable,
    placing: Placing,
    size: int,
    source: Randomness,
    run: Run | None,
) -> dict[str, Integers]:
    """The quantiles of every cell, as points of the grid.

    The histogram may count values in bins. Where the search needs the single values of a bin, `run` reads the
    histogram again, value by value.
    """
    measurement = plan.measured_by(statement)
    search = measurement.search

    def value_by_value() -> Histograms:
        assert run is not None
        return _histograms(run(statement.sql), placing, size, search.points)

    exact_histograms = _histograms(exact, placing, size, search.points, value_by_value)
    return dict(zip(measurement.columns, quantiles(exact_histograms, search, source), strict=True))


def _histograms(
    exact: ExactTable, placing: Placing, size: int, points: int, whole: Callable[[], Histograms] | None = None
) -> Histograms:
    cells, known = placing(exact)
    values, counts = (exact.exact_columns[name][known] for name in (VALUE_COLUMN, ROWS_COLUMN))
    widths = exact.exact_columns.get(WIDTH_COLUMN)
    return histograms(
        size, points, cells[known], values, counts, None if widths is None else widths[known], whole
    )


def _groups(release: Choose, space: KeySpace) -> int:
    """How many selections the plan makes: one, or one for every value of the leading keys."""
    within = {key.name for key in release.keys[: release.within]}
    return math.prod(len(group) for group in space.groups if set(group.names) <= within)


def _chosen(
    exact_scores: Integers, measurement: SelectionMeasurement, groups: int, source: Randomness
) -> Integers:
    """The indices of the winners: the best ones first, or one for every group."""
    exact_scores, rate = in_fine_steps(exact_scores, measurement.rate)
    if measurement.by is Mechanism.CHOICE_HISTOGRAM:
        noisy_scores = exact_scores + discrete_laplace(rate, exact_scores.size, source)
        return np.argsort(-noisy_scores, kind="stable")[: measurement.picks].astype(np.int64)
    noise, candidates = _SELECTION[measurement.by], exact_scores.size // groups
    if groups > 1:
        starts = np.arange(groups, dtype=np.int64) * candidates
        return starts + select_each(exact_scores.reshape(groups, candidates), rate, noise, source)
    left, chosen = np.arange(exact_scores.size, dtype=np.int64), []
    for _ in range(measurement.picks):
        place = select(exact_scores[left], rate, noise, source)
        chosen.append(left[place])
        left = np.delete(left, place)
    return np.array(chosen, dtype=np.int64)


def _noise(measurement: CellMeasurement, size: int, source: Randomness) -> Integers:
    match measurement:
        case LaplaceMeasurement():
            return discrete_laplace(measurement.rate, size, source)
        case GaussianMeasurement():
            return rounded_gaussian(measurement.joint.variance, size, source)
        case _:
            assert_never(measurement)


def _open_keys(
    plan: Plan, exact: ExactTable, of_values: Sequence[ExactTable], source: Randomness, run: Run | None
) -> NoisyTable:
    """The undeclared keys that are released, with the noisy values of their other measurements."""
    by = plan.keys_shown_by
    assert by is not None
    exact_counts = exact.exact_columns[by.columns[0]]
    noisy: dict[str, Integers] = {}
    match by.release:
        case OptimalSelection() as release:
            shown = select_keys(exact_counts, release, source)
        case TruncatedGeometric() | GaussianThreshold() as release:
            shown, noisy_counts = release_keys(exact_counts, release, source)
            noisy[by.columns[0]] = noisy_counts[shown]
        case _:
            raise AssertionError("undeclared keys are released in one of three ways")
    size = int(np.count_nonzero(shown))
    for measurement in plan.measurements:
        if isinstance(measurement, CellMeasurement):
            for column in measurement.columns:
                exact_cells = exact.exact_columns[column][shown]
                noisy[column] = exact_cells + _noise(measurement, size, source)
    assert plan.release is not None
    types = {key.name: key.expression.type for key in plan.release.keys}
    # Build the columns from the released keys alone: the encoding of the engine's column would reveal others.
    keys = {name: as_array(_listed(values[shown]), types[name]) for name, values in exact.exact_keys.items()}
    for statement, exact_values in zip(plan.of_values, of_values, strict=True):
        noisy |= _points(
            plan, statement, exact_values, lambda table: _same_keys(exact, shown, table), size, source, run
        )
    return NoisyTable(np.arange(size, dtype=np.int64), noisy, keys)


def _same_keys(exact: ExactTable, shown: Any, other: ExactTable) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """For each row of another table, the index of its keys among the released ones, and whether it has
    one.
    """
    place = {
        keys: index for index, keys in enumerate(_rows_of({n: v[shown] for n, v in exact.exact_keys.items()}))
    }
    places = np.array([place.get(keys, -1) for keys in _rows_of(other.exact_keys)], dtype=np.int64)
    return places, places >= 0


def _rows_of(exact_keys: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The keys of each row; NaN as a text, because NaN does not equal itself."""
    columns = [
        ["NaN" if value != value else value for value in _listed(column)] for column in exact_keys.values()
    ]
    return zip(*columns, strict=True)


def _listed(exact_column: Any) -> list[Any]:
    """The values one by one, with NULL as None."""
    data, missing = np.ma.getdata(exact_column), np.ma.getmaskarray(exact_column)
    return [None if gone else value for value, gone in zip(data, missing, strict=True)]


def laid_out(space: KeySpace, exact: ExactTable) -> dict[str, Integers]:
    """The exact rows, each in the cell of its keys; rows with keys outside the space are dropped."""
    size = len(space)
    if not space.groups:  # no GROUP BY: the one row is the one cell
        return {name: values[:1] for name, values in exact.exact_columns.items()}
    places, known = _places(space, exact)
    result: dict[str, Integers] = {}
    for name, values in exact.exact_columns.items():
        cells = np.zeros(size, dtype=np.int64)
        # two rows of one cell (float keys that the engine distinguishes and we do not) add up
        np.add.at(cells, places[known], values[known])
        result[name] = cells
    return result


def _places(space: KeySpace, exact: ExactTable) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The cell of each exact row, and whether the row has one."""
    places = np.zeros(len(next(iter(exact.exact_columns.values()))), dtype=np.int64)
    known = np.ones(len(places), dtype=np.bool_)
    for group in space.groups:
        codes = _codes(group, exact)
        known &= codes >= 0
        places = places * len(group) + codes
    return places, known


def _codes(group: KeyGroup, exact: ExactTable) -> Integers:
    """The index of each exact row within a group of keys, -1 where the group does not contain it."""
    if len(group.names) == 1:
        return _column_codes(group.columns[0], exact.exact_keys[group.names[0]])
    combined = np.zeros(len(exact.exact_keys[group.names[0]]), dtype=np.int64)
    target = np.zeros(len(group), dtype=np.int64)
    known = np.ones(len(combined), dtype=np.bool_)
    for name, values in zip(group.names, group.columns, strict=True):
        different = list(dict.fromkeys(values))
        place = {value: index for index, value in enumerate(different)}
        codes = _column_codes(different, exact.exact_keys[name])
        known &= codes >= 0
        combined = combined * len(different) + np.maximum(codes, 0)
        target = target * len(different) + np.array([place[value] for value in values], dtype=np.int64)
    found = pd.Index(target).get_indexer(pd.Index(combined)).astype(np.int64)
    return np.where(known, found, -1)


def _column_codes(values: Sequence[Any], exact_column: Any) -> Integers:
    """The index of each exact value among the public ones (NULL may be one of them), -1 where it is
    missing.
    """
    data, missing = np.ma.getdata(exact_column), np.ma.getmaskarray(exact_column)
    known, null_place = (values.values, len(values) - 1) if isinstance(values, NullLast) else (values, -1)
    if isinstance(known, range):
        codes = _range_codes(known, data)
    else:
        null_place = next((place for place, value in enumerate(known) if value is None), null_place)
        codes = _object_codes(known, data) if data.dtype == object else _index_codes(known, data)
    return np.where(missing, null_place, codes)


def _object_codes(known: Sequence[Any], data: Any) -> Integers:
    """Of objects, such as texts: pandas takes as long to make an index as to find hundreds of them."""
    place_of = {value: place for place, value in enumerate(known) if value is not None}
    return np.array([place_of.get(value, -1) for value in data.tolist()], dtype=np.int64)


def _index_codes(known: Sequence[Any], data: Any) -> Integers:
    places = np.array([place for place, value in enumerate(known) if value is not None], dtype=np.int64)
    index = pd.Index([_comparable(known[place], data.dtype) for place in places], dtype=_dtype(data))
    found = index.get_indexer(pd.Index(data, dtype=_dtype(data)))
    return np.where(found >= 0, places[found] if len(places) else -1, -1).astype(np.int64)


def _range_codes(values: range, data: Any) -> Integers:
    if data.dtype == object or data.dtype.kind not in "iuf":
        return np.full(len(data), -1, dtype=np.int64)
    inside = (data >= values.start) & (data < values.stop)
    return np.where(inside, np.where(inside, data, values.start).astype(np.int64) - values.start, -1).astype(
        np.int64
    )


def _dtype(data: Any) -> Any:
    # a declared key need not fit the column's type: -1 or 300 in a column of bytes
    if data.dtype.kind in "iu":
        return np.dtype(object) if data.dtype == np.uint64 else np.dtype(np.int64)
    return data.dtype if data.dtype.kind in "fbM" else object


def _comparable(value: Any, dtype: Any) -> Any:
    if dtype.kind == "M":
        return np.datetime64(value)
    if dtype.kind == "f":
        return float(value)
    return value
