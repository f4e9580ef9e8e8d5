"""Noisy residuals go in; tables of every marginal come out: the unbiased estimate, and what is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from privsql.planning.marginals.residual_measurement import ResidualMeasurement
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.marginals.residual_variances import parts_of
from privsql.release.answer_query import Estimates, KeyCells
from privsql.release.cell_conditions import Mask
from privsql.release.shrinkage import (
    Floats,
    centred,
    fitted_to_margins,
    independent,
    onto_total,
    shrunk,
)
from privsql.tables import Integers

_FEWEST = 1.0  # rows that a table is taken to have at least


@dataclass(eq=False)
class ResidualTables:
    """Every marginal of a workload, from its noisy residuals and public numbers alone."""

    measurement: ResidualMeasurement
    noisy: Mapping[Columns, Integers]
    _shown: dict[Columns, Floats] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The number of rows, as measured or public."""
        return max(_FEWEST, float(self.noisy[()]))

    def residual(self, columns: Columns) -> Floats:
        """The residual with its noise, in rows; 0 where a column has only one cell."""
        if columns not in self.noisy:
            return np.zeros([self.measurement.sizes[each] for each in columns])
        return centred(self.noisy[columns].astype(np.float64) / self.measurement.cells(columns))

    def unbiased(self, columns: Columns) -> Floats:
        """The marginal by its residuals alone: unbiased, with the predicted error, and possibly below 0."""
        return sum(
            (self._spread(part, columns) for part in parts_of(columns)), np.zeros(self._shape(columns))
        )

    def _spread(self, part: Columns, columns: Columns) -> Floats:
        """The residual of some columns, spread evenly over the cells of the others."""
        sizes = self.measurement.sizes
        shape = [sizes[each] if each in part else 1 for each in columns]
        others = math.prod(sizes[each] for each in columns if each not in part)
        found: Floats = self.residual(part).reshape(shape) / others
        return found

    def _shape(self, columns: Columns) -> list[int]:
        return [self.measurement.sizes[each] for each in columns]

    def shown(self, columns: Columns) -> Floats:
        """The marginal as it is shown: at least 0, and shrunk towards what smaller marginals say."""
        if columns not in self._shown:
            self._shown[columns] = onto_total(self._guess(columns), self.total)
        return self._shown[columns]

    def _guess(self, columns: Columns) -> Floats:
        if len(columns) < 2:
            return self.unbiased(columns)
        if len(columns) == 2:
            margins = [self.shown((each,)) for each in columns]
            start = independent(margins, self.total)
        else:
            smaller = [tuple(e for e in columns if e != each) for each in columns]
            start = fitted_to_margins([self.shown(each) for each in smaller])
        if columns not in self.noisy:
            return start
        return shrunk(start, self.residual(columns), float(self.measurement.variances[columns]))

    def whole(self, columns: Columns) -> Estimates:
        """Every combination of cells of some columns, flat; all have equal noise."""
        shown, unbiased = self.shown(columns).reshape(-1), self.unbiased(columns).reshape(-1)
        one = np.zeros(self._shape(columns))
        one[(0,) * one.ndim] = 1.0
        return Estimates(shown, unbiased, np.full(shown.size, self.variance_of(columns, one)))

    def estimates(self, columns: Columns, mask: Mask, cells: Sequence[KeyCells]) -> Estimates:
        """The rows in some cells of the keys that meet the mask; equally many cells have equal noise."""
        found = np.zeros((3, len(cells)))
        tables, known = (self.shown(columns), self.unbiased(columns)), dict[bytes, float]()
        for row, chosen in enumerate(cells):
            index = tuple(
                slice(chosen[axis], chosen[axis] + 1) if axis in chosen else slice(None)
                for axis in range(mask.ndim)
            )
            part = mask[index]
            found[:2, row] = [float(table[index][part].sum()) for table in tables]
            sign = part.tobytes()
            if sign not in known:
                wanted = np.zeros(mask.shape)
                wanted[index] = part
                known[sign] = self.variance_of(columns, wanted)
            found[2, row] = known[sign]
        return Estimates(*found)

    def variance_of(self, columns: Columns, wanted: Floats) -> float:
        """The variance of the sum of `wanted` times the cells of the unbiased marginal."""
        return variance_of_sum(self.measurement, columns, wanted)


def variance_of_sum(measurement: ResidualMeasurement, columns: Columns, wanted: Floats) -> float:
    """The variance of the sum of `wanted` times the cells of the unbiased marginal."""
    variance = 0.0
    for part in parts_of(columns):
        if part in measurement.variances:
            axes = tuple(place for place, each in enumerate(columns) if each not in part)
            others = math.prod(measurement.sizes[each] for each in columns if each not in part)
            along = centred(wanted.sum(axis=axes) / others)
            # rounding adds at most 1/12 to the variance of the whole residual
            rounding = 1 / 12 / measurement.cells(part) ** 2
            variance += (float(measurement.variances[part]) + rounding) * float((along**2).sum())
    return variance
