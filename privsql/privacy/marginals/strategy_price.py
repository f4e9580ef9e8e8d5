"""A matrix of whole numbers goes in; how far one unit can move its product with the counts comes out,
exactly.

Every row of the table is of one kind, and the columns of the matrix are the kinds. One row that comes or goes
moves the product by a column, and one that is replaced by the difference of two columns. For a unit of at
most R rows both are at most R times as long: what it adds is a point of R conv{0, column}, and a convex
function of two such points is greatest at vertices (docs/proofs.md, 4.9c).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privsql.privacy.gaussian import rounded_up
from privsql.privacy.marginals.residual_price import Neighbouring

GREATEST_ENTRY = 2**20
MOST_ROWS = 2**12  # so that every sum of squares is below 2^52, and floats hold it exactly
_BITS = 64

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def squared_lengths(strategy: Integers) -> tuple[int, int]:
    """The greatest squared length of a column, and of the difference of two columns."""
    rows, kinds = strategy.shape
    if rows > MOST_ROWS or not kinds or np.abs(strategy).max(initial=0) > GREATEST_ENTRY:
        raise ValueError("a strategy has few rows, and small whole numbers")
    exact = strategy.astype(np.float64)
    gram = (exact.T @ exact).astype(np.int64)  # from here in integers: four of these may pass 2^53
    own = np.diagonal(gram)
    apart = own[:, None] + own[None, :] - 2 * gram
    return int(own.max()), int(apart.max())


def strategy_change(strategy: Integers, variance: Fraction, by: Neighbouring) -> Fraction:
    """The squared change that one unit can make, in deviations of noise of this variance on every number.

    Where nobody can change the number of rows, it is public, and is not in here.
    """
    if variance <= 0:
        raise ValueError("a strategy has noise")
    one, two = squared_lengths(strategy)
    if not by.replaced:
        longest = one
    elif by.always:
        longest = two
    else:
        longest = max(one, two)
    found = by.rows**2 * longest / variance
    return rounded_up(found, _BITS) if found else found
