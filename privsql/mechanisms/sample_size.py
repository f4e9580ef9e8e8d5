"""How many counts, how near, how sure and epsilon go in; how many rows a table needs for that comes out."""

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
    """The rows a table must have, so that `queries` shares of its rows (COUNT(*) FILTER (...) / n) all come
    out within +-`within` of the truth with this confidence, at epsilon for all of them, under replace-one
    neighbours.

    "laplace": counts that may overlap; "partition": counts of which each row is in one at most, as in GROUP
    BY; "randomised-response": everybody turns their answers round themselves, each at epsilon/queries.
    """
    loss, missing = float(epsilon_given(epsilon)), 1.0 - level_given(confidence)
    if isinstance(queries, bool) or not isinstance(queries, (int, np.integer)) or queries < 1:
        raise ArgumentError("argument-queries", "queries must be a whole number from 1", "try queries=10")
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
            "argument-within", "within is a share of the rows: above 0 and below 1", "try within=0.05"
        )
    return share
