"""A session and columns whose range nobody knows go in; ranges come out, found privately, each at its price.

The search is that of range = "auto": noisy counts in buckets that double, asked like any other query. One
row of a unit in each bucket is enough to see which buckets are in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.errors import EngineError, Refused
from privsql.planning.auto_range import LARGEST, Unknown, range_of
from privsql.session import Session
from privsql.types import Type

_GROUPS = 3  # buckets that one unit may be in


@dataclass(frozen=True)
class Search:
    """What a search has shown. `ends` None: nothing that a range could be drafted from."""

    epsilon: float
    threshold: float  # a bucket with fewer rows cannot be told from noise; 0 where no answer came
    ends: tuple[float, float] | None

    @property
    def reason(self) -> str:
        """What a draft says of it."""
        spent = f"searched with epsilon {self.epsilon:g}"
        if self.threshold == 0:
            return f"{spent}, but the query failed. The epsilon is spent."
        if self.ends is None:
            why = "too few rows for this much noise, only zeros, or numbers beyond 2^60"
            return f"{spent}, and no range came out: {why}."
        return (
            f"{spent}, in buckets that double. A bucket with fewer than about {self.threshold:,.0f} rows "
            "cannot be told from noise: such values, if there are any outside this range, are clamped."
        )


def searchable(session: Session, columns: Sequence[Unknown]) -> list[Unknown]:
    """The columns for which the search is a query that is not refused. Spends nothing."""
    return [each for each in columns if _is_allowed(session, each)]


def _is_allowed(session: Session, column: Unknown) -> bool:
    try:
        session.explain(column.sql, 1.0, max_rows=1, max_groups=_GROUPS)
    except Refused:
        return False
    return True


def find_ranges(session: Session, columns: Sequence[Unknown], epsilon: float) -> Mapping[Unknown, Search]:
    """A range for each of the columns, at epsilon for each: one person may be in all of them."""
    return {each: _search(session, each, epsilon) for each in columns}


def _search(session: Session, column: Unknown, epsilon: float) -> Search:
    try:
        answer = session.query(column.sql, epsilon, max_rows=1, max_groups=_GROUPS)
    except EngineError:
        return Search(epsilon, 0, None)
    threshold = answer.plan.measurements[0].half_width(1 - 1e-3 / answer.plan.cells)
    found = answer.df()
    return Search(
        epsilon, threshold, _ends(found["bucket"].tolist(), found["n"].tolist(), threshold, column.type)
    )


def _ends(
    buckets: Sequence[int], noisy_counts: Sequence[float], threshold: float, type_: Type
) -> tuple[float, float] | None:
    """None where nothing stands out of the noise, or where the values go on beyond the largest bucket."""
    if max(noisy_counts, default=0) <= threshold:
        return None
    low, high = range_of(buckets, noisy_counts, threshold, type_)
    return None if low == high or max(-low, high) >= LARGEST else (low, high)
