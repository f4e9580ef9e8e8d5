"""The accuracy wanted of some counts and an epsilon go in; the number of rows that this takes comes out (note
001).

The k counts are normalised: shares of n rows, under replace-one neighbours. With probability 1 - `missing`
all of them are at once within `within` of the truth; each may fail with probability missing/k (union bound).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from privsql.errors import ArgumentError, did_you_mean
from privsql.mechanisms.arguments import epsilon_given, exact, level_given
from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.flips import contrast

RowsMechanism = Literal["laplace", "partition", "randomised-response"]


def rows_needed(
    *,
    within: Any,
    epsilon: Any,
    queries: int = 1,
    confidence: float = 0.95,
    mechanism: RowsMechanism = "laplace",
) -> int:
    """How many rows a table needs for shares of its rows, COUNT(*) FILTER (...) / n, to be this accurate.

    Neighbours are replace-one.

    Arguments:
        within: how far every share may be off, such as 0.05.
        epsilon: the cost of all queries together.
        queries: how many shares are released.
        confidence: the probability that all of them are that close.
        mechanism: "laplace" for counts that may overlap; "partition" if each row is in at most one of them,
            as with GROUP BY; "randomised-response" if people flip their own answers, each at epsilon/queries.

    Returns:
        The least number of rows.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.rows_needed(within=0.05, epsilon=1.0)
        60
    """
    loss, missing = float(epsilon_given(epsilon)), 1.0 - level_given(confidence)
    if isinstance(queries, bool) or not isinstance(queries, (int, np.integer)) or queries < 1:
        raise ArgumentError(
            "argument-queries", "queries must be a whole number, at least 1", "try queries=10"
        )
    share = _share(within)
    if mechanism not in _ROWS:
        raise ArgumentError(
            "argument-mechanism",
            f"mechanism must be one of {', '.join(_ROWS)}",
            did_you_mean(str(mechanism), _ROWS),
        )
    return _ROWS[mechanism](int(queries), share, missing, loss)


def _share(within: Any) -> Fraction:
    try:
        # 0.05 means a twentieth
        share = Fraction(repr(within)) if type(within) is float else exact(within, "share")
    except (ArgumentError, ValueError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise ArgumentError(
            "argument-within", "within must be a share of the rows, above 0 and below 1", "try within=0.05"
        )
    return share


def _laplace_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts that may overlap: k/n is their l1, so the noise has scale k/(n epsilon).

    The note's n >= k ln(k/missing) / (within epsilon) is this with continuous noise; here it is the tail of
    the discrete noise that counts get.
    """
    return _rows(laplace_half_width(epsilon / queries, 1.0 - missing / queries), within)


def _partition_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts of which each row is in at most one: their l1 is 2/n, however many there are."""
    return _rows(laplace_half_width(epsilon / 2.0, 1.0 - missing / queries), within)


def _randomised_response_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For answers that people flip themselves, each at epsilon/k.

    By Hoeffding's inequality an average of n independent bits is off by u or more with probability at most
    2 exp(-2 n u^2), and an estimate is off by u/(1 - 2q). So n >= ln(2k/missing) / (2 within^2
    tanh(epsilon/2k)^2), about 2 k^2 ln(2k/missing) / (within epsilon)^2. The note's k^2 ln(k/missing) /
    (within epsilon)^2 has the right order, but leaves out the constant: that many are too few.
    """
    bits = 2.0 * (float(within) * contrast(epsilon / queries)) ** 2
    return max(1, math.ceil(math.log(2.0 * queries / missing) / bits))


def _rows(half_width: int, within: Fraction) -> int:
    """The least n with half_width <= within n."""
    return max(1, math.ceil(half_width / within))


_ROWS = {
    "laplace": _laplace_rows,
    "partition": _partition_rows,
    "randomised-response": _randomised_response_rows,
}
