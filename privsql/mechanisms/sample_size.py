"""The accuracy wanted of some counts and an epsilon go in; the number of rows that this takes comes out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from privsql.errors import ArgumentError, did_you_mean
from privsql.mechanisms.arguments import epsilon_given, exact, level_given
from privsql.privacy.rows import laplace_rows, partition_rows, randomised_response_rows

RowsMechanism = Literal["laplace", "partition", "randomised-response"]

_ROWS = {
    "laplace": laplace_rows,
    "partition": partition_rows,
    "randomised-response": randomised_response_rows,
}


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
