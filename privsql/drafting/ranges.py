"""A session and columns of unknown range go in; ranges come out, found privately at an epsilon each.

The search is that of range = "auto": noisy counts in buckets of doubling width, a query like any other. One
row per unit in each bucket is enough to see which buckets are in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.errors import EngineError, Refused
from privsql.planning.limits.range_histograms import LARGEST, Unknown, range_of
from privsql.requests.stage import Stage
from privsql.results.answer import Answer
from privsql.session import Session
from privsql.types import Type

_GROUPS = 3  # how many buckets one unit may be in


@dataclass(frozen=True)
class RangeSearch:
    """What a search found; `ends` is None if no range can be drafted from it."""

    epsilon: float
    threshold: float  # a bucket with fewer rows cannot be told from noise; 0 if the query failed
    ends: tuple[float, float] | None

    @property
    def reason(self) -> str:
        """The sentence of a draft about it."""
        spent = f"searched with epsilon {self.epsilon:g}"
        if self.threshold == 0:
            return f"{spent}, but the query failed. The epsilon is spent."
        if self.ends is None:
            why = "too few rows for this much noise, only zeros, or numbers beyond 2^60"
            return f"{spent}, and no range was found: {why}."
        return (
            f"{spent}, in buckets of doubling width. A bucket with fewer than about "
            f"{self.threshold:,.0f} rows cannot be told from noise; any such values outside this range "
            "are clamped."
        )


def searchable(session: Session, columns: Sequence[Unknown]) -> list[Unknown]:
    """The columns for which the search is not refused. Spends nothing."""
    return [each for each in columns if _is_allowed(session, each)]


def _is_allowed(session: Session, column: Unknown) -> bool:
    try:
        session.plan(_stage(column, 1.0))
    except Refused:
        return False
    return True


def _stage(column: Unknown, epsilon: float) -> Stage:
    return Stage("", epsilon, max_rows=1, max_groups=_GROUPS, sizes_of=(column.table, column.column))


def find_ranges(
    session: Session, columns: Sequence[Unknown], epsilon: float
) -> Mapping[Unknown, RangeSearch]:
    """Find a range for each column, at epsilon each, since one person may be in all of them."""
    return {each: _search(session, each, epsilon) for each in columns}


def _search(session: Session, column: Unknown, epsilon: float) -> RangeSearch:
    try:
        answer = session.ask(_stage(column, epsilon))
    except EngineError:
        return RangeSearch(epsilon, 0, None)
    assert isinstance(answer, Answer), "a histogram is one release"
    threshold = answer.plan.measurements[0].half_width(1 - 1e-3 / answer.plan.cells)
    found = answer.df()
    ends = _ends(found["bucket"].tolist(), found["n"].tolist(), threshold, column.type)
    return RangeSearch(epsilon, threshold, ends)


def _ends(
    buckets: Sequence[int], noisy_counts: Sequence[float], threshold: float, type_: Type
) -> tuple[float, float] | None:
    """None if nothing stands out of the noise, or if values go on beyond the largest bucket."""
    if max(noisy_counts, default=0) <= threshold:
        return None
    low, high = range_of(buckets, noisy_counts, threshold, type_)
    return None if low == high or max(-low, high) >= LARGEST else (low, high)
