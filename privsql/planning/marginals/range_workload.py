"""The name of an ordered column goes in; all ranges, or all prefixes, of its parts come out as a workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privsql.errors import ArgumentError
from privsql.planning.marginals.workload import parts_given


@dataclass(frozen=True)
class Ranges:
    """All runs of neighbouring parts of a column, or only those from its first part on (`prefixes`)."""

    column: str
    bins: int | tuple[Any, ...] | None = None
    prefixes: bool = False


def ranges(column: str, bins: int | Sequence[Any] | None = None) -> Ranges:
    """All counts of rows between two edges of a column, as a workload of `session.release`.

    Arguments:
        column: a column of numbers, dates or timestamps with a declared range.
        bins: into how many equal parts its range is cut, or the edges of the parts; without it whole numbers
            with up to 100 values are counted one by one, others in 16 parts.

    Raises:
        ArgumentError: no column, or bins that make no sense.

    Example:
        >>> import privsql
        >>> privsql.ranges("age", bins=[0, 18, 65, 100]).column
        'age'
    """
    return _made(column, bins, prefixes=False)


def prefixes(column: str, bins: int | Sequence[Any] | None = None) -> Ranges:
    """All counts of rows below an edge of a column (a cumulative distribution), as a workload.

    Arguments:
        column: a column of numbers, dates or timestamps with a declared range.
        bins: as those of `ranges`.

    Raises:
        ArgumentError: no column, or bins that make no sense.

    Example:
        >>> import privsql
        >>> privsql.prefixes("income", bins=64).prefixes
        True
    """
    return _made(column, bins, prefixes=True)


def _made(column: str, bins: int | Sequence[Any] | None, prefixes: bool) -> Ranges:
    if not isinstance(column, str) or not column:
        raise ArgumentError("argument-columns", "column must be the name of one column", 'column="age"')
    return Ranges(column, None if bins is None else parts_given(column, bins), prefixes)
