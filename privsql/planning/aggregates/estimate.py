"""How an aggregate is computed from noisy columns, and how far off it may be: what every kind answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.planning.measurements.measurement import Measurement
from privsql.planning.precision.interval_arithmetic import Floats, Interval, Mask
from privsql.privacy.weighted_sums import Noise, half_width

Terms = tuple[tuple[str, Fraction], ...]  # noisy columns with their weights
NoisyColumns = Mapping[str, npt.NDArray[Any]]
Laws = Mapping[str, Noise]  # of the noise of each column
ALL_ROWS = "all_rows"
# The unit of the public number of rows: noise for a change of one such part does not show.
PARTS_OF_A_ROW = 2**24

LEVEL = 0.95  # the probability with which a cell without rows is found undetermined
# at this level the noise exceeds a half-width upwards with probability 1 - LEVEL
ONE_SIDED = 1.0 - 2.0 * (1.0 - LEVEL)
TINY = 1e-9  # the rounding error of float sums


@dataclass(frozen=True)
class RankError:
    """How many rows off a value of `what` rank may be; with fewer than `few` it may be undetermined."""

    what: str
    rows: int
    few: int


class Estimate(ABC):
    """How an aggregate is computed from noisy columns. Every method uses noisy and public numbers alone.

    A kind of aggregate is a class with these methods, beside its measurement; nothing else asks what kind an
    estimate is of.
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The noisy columns that it uses."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """What EXPLAIN says of it, in one line."""

    @abstractmethod
    def value(self, noisy: NoisyColumns) -> npt.NDArray[Any]:
        """The value of the aggregate in every cell."""

    @abstractmethod
    def interval(self, noisy: NoisyColumns, noise: Laws, level: float) -> Interval:
        """An interval that covers the exact aggregate (of the clamped values) with at least this probability,
        cell by cell.
        """

    @abstractmethod
    def undetermined(self, noisy: NoisyColumns, noise: Laws) -> Mask:
        """Where the aggregate is undetermined: the cell may well be empty, or every value is possible.

        The noise is symmetric, so an empty cell is found undetermined with at least probability LEVEL.
        """

    @abstractmethod
    def squared_error(self, variances: Mapping[str, float]) -> float:
        """Its squared error, from the variances of columns, to compare two ways to measure it."""

    def half_width(self, noise: Laws, level: float, rows: int = 0, corners: int = 0) -> float | None:
        """The half-width of its interval before anything is spent; None where it depends on the data.

        `rows`: per cell; 0: not known. `corners`: how many rounded integers a sum over keys consists of.
        """
        return None

    def rank_error(self, measurements: Sequence[Measurement], level: float) -> RankError | None:
        """Its error in rows, if its error in values depends on the data."""
        return None

    @property
    def nonnegative(self) -> bool:
        """Whether the exact number cannot be negative, however noisy it is."""
        return False

    @property
    def always_within_range(self) -> bool:
        """Whether its interval is a declared range, whatever the noise."""
        return False


def weighted(terms: Terms, noisy: NoisyColumns) -> Floats:
    """A weighted sum of columns, as floats."""
    total = np.zeros(len(noisy[terms[0][0]]), dtype=np.float64)
    for column, weight in terms:
        total += noisy[column].astype(np.float64) * float(weight)
    return total


def weighted_half_width(terms: Terms, noise: Laws, level: float) -> float:
    return half_width([(float(weight), noise[column]) for column, weight in terms], level)


def weighted_variance(terms: Terms, variances: Mapping[str, float]) -> float:
    return sum(float(weight) ** 2 * variances[column] for column, weight in terms)
