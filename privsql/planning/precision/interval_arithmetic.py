"""Intervals of numbers, cell by cell, go in; those of their products and quotients come out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Interval:
    """Lower and upper ends, cell by cell; infinite where nothing is known."""

    low: Floats
    high: Floats


def product(a: Interval, b: Interval) -> Interval:
    """The extremes of a product are at corners; 0 times anything is 0."""
    with np.errstate(all="ignore"):
        corners = [
            np.nan_to_num(x * y, nan=0.0, posinf=np.inf, neginf=-np.inf)
            for x in (a.low, a.high)
            for y in (b.low, b.high)
        ]
    return Interval(np.minimum.reduce(corners), np.maximum.reduce(corners))


def quotient(a: Interval, b: Interval) -> Interval:
    """The whole line where the divisor may be 0."""
    with np.errstate(all="ignore"):
        crossing = (b.low <= 0) & (b.high >= 0)
        inverse = Interval(np.where(crossing, -np.inf, 1 / b.high), np.where(crossing, np.inf, 1 / b.low))
        found = product(a, inverse)
    return Interval(np.where(crossing, -np.inf, found.low), np.where(crossing, np.inf, found.high))
