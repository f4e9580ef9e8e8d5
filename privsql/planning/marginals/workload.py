"""Names of columns go in; a workload of marginals comes out, before anything is known of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from privsql.errors import ArgumentError

MOST_WAYS = 6
MOST_COLUMNS = 64
MOST_MARGINALS = 5_000


@dataclass(frozen=True)
class Marginals:
    """All counts of up to `ways` of these columns together.

    `bins`: for a column of numbers or dates, into how many equal parts its declared range is cut, or the
    edges of the parts. `chosen`: the marginals that are wanted, where these are not all.
    """

    columns: tuple[str, ...]
    ways: int
    bins: Mapping[str, int | tuple[Any, ...]] = field(default_factory=dict)
    chosen: tuple[tuple[int, ...], ...] = ()

    def sets(self) -> list[tuple[int, ...]]:
        """The largest marginals, as the places of their columns; the smaller ones are parts of them."""
        if self.chosen:
            return list(self.chosen)
        return list(combinations(range(len(self.columns)), min(self.ways, len(self.columns))))


def marginals(
    columns: Sequence[str], ways: int = 3, bins: Mapping[str, int | Sequence[Any]] | None = None
) -> Marginals:
    """All counts of up to `ways` of these columns together, as a workload of `session.release`.

    Arguments:
        columns: columns of one table. Each needs declared values, or a declared range.
        ways: how many columns a query of the release may name.
        bins: by column, into how many equal parts its range is cut, or the edges of the parts, increasing;
            what lies beyond the first or last edge counts in the part next to it.

    Raises:
        ArgumentError: no columns, one of them twice, or numbers that make no sense.

    Example:
        >>> import privsql
        >>> privsql.marginals(["age", "state"], ways=2, bins={"age": 12}).columns
        ('age', 'state')
    """
    names = _names(columns)
    if isinstance(ways, bool) or not isinstance(ways, int) or not 1 <= ways <= MOST_WAYS:
        raise ArgumentError("argument-ways", f"ways must be a whole number from 1 to {MOST_WAYS}", "ways=3")
    folded = {name.lower() for name in names}
    given: dict[str, int | tuple[Any, ...]] = {}
    if bins is not None and not isinstance(bins, Mapping):
        raise _bad_bins("bins must map columns to numbers of parts, or to edges")
    for name, how in (bins or {}).items():
        if not isinstance(name, str) or name.lower() not in folded:
            raise _bad_bins(f"bins names {name!r}, which is not among the columns")
        given[name.lower()] = parts_given(name, how)
    workload = Marginals(names, ways, given)
    many = math.comb(len(names), min(ways, len(names)))
    if many > MOST_MARGINALS:
        problem = f"these are {many:,} marginals, and the most is {MOST_MARGINALS:,}"
        raise ArgumentError("argument-marginals", problem, "name fewer columns, or fewer ways")
    return workload


def _names(columns: object) -> tuple[str, ...]:
    listed = tuple(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else ()
    if not listed or not all(isinstance(each, str) for each in listed) or len(listed) > MOST_COLUMNS:
        problem = f"columns must be a list of 1 to {MOST_COLUMNS} names"
        raise ArgumentError("argument-columns", problem, 'columns=["age", "state"]')
    if len({each.lower() for each in listed}) < len(listed):
        raise ArgumentError("argument-columns", "a column is named twice", "name each column once")
    return listed


def parts_given(name: str, how: object) -> int | tuple[Any, ...]:
    """Into how many parts a column is cut, or their edges. Raises ArgumentError for anything else."""
    if isinstance(how, int) and not isinstance(how, bool) and 1 <= how <= 1_000:
        return how
    if isinstance(how, Sequence) and not isinstance(how, str) and 2 <= len(how) <= 1_001:
        return tuple(how)
    raise _bad_bins(f"bins[{name!r}] must be a number from 1 to 1,000, or a list of edges")


def _bad_bins(problem: str) -> ArgumentError:
    return ArgumentError("argument-bins", problem, 'bins={"age": 12} or bins={"age": [0, 18, 65, 120]}')
