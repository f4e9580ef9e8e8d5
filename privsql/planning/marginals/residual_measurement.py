"""Residuals of marginals with Gaussian noise: variances and their joint price in one object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsql.errors import ArgumentError
from privsql.planning.measurements.gaussian_noise import unit_variance
from privsql.planning.measurements.noised import LARGEST_SCALE, too_noisy
from privsql.privacy.events import Gaussian
from privsql.privacy.gaussian import greatest_ratio
from privsql.privacy.marginals.residual_price import Columns, Neighbouring, squared_change
from privsql.privacy.marginals.residual_variances import planned_variances

MOST_CELLS = 2**24  # of one marginal: whole residuals are counts times the number of its cells
NOISE = "Gaussian, rounded"
_LEAST = Fraction(1, 2**64)


@dataclass(frozen=True)
class ResidualMeasurement:
    """One Gaussian release of residuals: each with noise of its variance in every direction it can take.

    A residual times the number of its cells is made of whole numbers. These get rounded Gaussian noise of as
    many times the deviation, which costs the same, rounding being post-processing (docs/proofs.md).

    Raises ValueError on construction if the variances do not cover what one unit can change at this epsilon
    and delta.
    """

    sizes: tuple[int, ...]
    variances: Mapping[Columns, Fraction]
    by: Neighbouring
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.ratio > greatest_ratio(self.epsilon, self.delta) ** 2:
            raise ValueError("the noise does not cover the sensitivity")

    @cached_property
    def ratio(self) -> Fraction:
        """The squared change that one unit can make, in deviations of the noise."""
        return squared_change(self.sizes, self.variances, self.by)

    @property
    def event(self) -> Gaussian:
        """What the ledger charges; hardly anything under zCDP, where columns of one cell tell nothing."""
        return Gaussian(self.epsilon, self.delta, max(self.ratio, _LEAST))

    def cells(self, columns: Columns) -> int:
        return math.prod(self.sizes[each] for each in columns)

    def noise_variance(self, columns: Columns) -> Fraction:
        """The variance of the noise on the whole numbers of a residual."""
        return self.variances[columns] * self.cells(columns) ** 2


def measure_residuals(
    sizes: Sequence[int],
    workload: Sequence[Columns],
    by: Neighbouring,
    epsilon: Fraction,
    delta: Fraction,
    share: Fraction = Fraction(1),
) -> ResidualMeasurement:
    """Measure the residuals of a workload with the least error at (epsilon, delta), or a share of its
    ratio.
    """
    unit_variance(epsilon, delta)  # raises ArgumentError where there is none
    most = greatest_ratio(epsilon, delta) ** 2 * share
    variances = planned_variances(sizes, workload, most, by)
    found = ResidualMeasurement(tuple(sizes), variances, by, epsilon, delta)
    for columns in variances:
        cells = found.cells(columns)
        if cells > MOST_CELLS:
            problem = f"a marginal has {cells:,} cells, and the most is {MOST_CELLS:,}"
            raise ArgumentError("argument-marginals", problem, "use fewer ways, or coarser columns")
        if found.noise_variance(columns) > LARGEST_SCALE**2:
            raise too_noisy()
    return found
