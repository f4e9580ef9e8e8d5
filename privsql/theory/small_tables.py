"""How many queries, elements and rows there are, and an epsilon, go in; what SmallDB promises comes out
(notes 000 and 003).

There is a small table. Draw m rows of the table x, with replacement. By Hoeffding (Chernoff in the notes) and
the union bound, some answer is off by more than a with probability at most 2 N exp(-2 m a^2), N being the
number of queries that differ on the universe; below 1, some table of m rows is within a. So m = ceil(ln(2 N +
1) / (2 a^2)). The notes' log(N) / a^2 is too few for N <= 2, and need not be whole.

By VC dimension. N <= S(U, d), the number of subsets of the U elements that a class of dimension d can tell
apart, at most C(U, 0) + ... + C(U, d) (Sauer). Without U: put g = f - 1/2. By symmetrisation and Massart's
lemma, with norms of at most sqrt(m)/2, the expectation of the greatest error of a sample is at most
2 (1/m) (sqrt(m)/2) sqrt(2 ln(2 S(m, d))) = sqrt(2 ln(2 S(m, d)) / m), and some sample is no worse than that.
Note 003's theorem 12 (Talagrand) has no logarithm of m there, but leaves its constants open; these are
explicit.

The table is found. The candidates are the C(U + m - 1, m) multisets of m elements. (The notes count U^m
sequences, which are more.) Delta u = 1/n, as replacing one of n rows moves each answer by at most 1/n; note
000 has 2/n. By theorem 6 of note 000 the error is below a + 2 (ln R + ln(1/b)) / (epsilon n) with probability
1 - b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from privsql.errors import ArgumentError
from privsql.theory.checked import epsilon_given, missing_given, share, whole

_STEP = 1.01  # from one number of rows to the next, where the best is looked for
_MOST_ROWS = 10**12
_SLACK = 1e-12  # for rounding errors of floats


def candidate_tables(*, universe: int, rows: int) -> int:
    """How many tables of so many rows there are, in whatever order: C(universe + rows - 1, rows).

    Arguments:
        universe: how many different rows are possible.
        rows: how many rows each table has.

    Returns:
        The number of multisets.

    Raises:
        ArgumentError: an argument is not a whole number from 1.

    Example:
        >>> from privsql import theory
        >>> theory.candidate_tables(universe=8, rows=16)
        245157
    """
    elements, small = _elements(universe), whole(rows, "rows", "argument-rows")
    return math.comb(elements + small - 1, small)


def small_table_rows(
    *, within: Any, queries: int | None = None, dimension: int | None = None, universe: int | None = None
) -> int:
    """How many rows of a table suffice to answer every query of a class as the whole table does.

    Claim 7 of note 000, theorem 5 of note 003; with a VC dimension, the first step of theorem 11.

    Arguments:
        within: the greatest error allowed, as a share of the rows.
        queries: how many queries there are.
        dimension: the VC dimension of the class (counting queries), beside or instead of `queries`.
        universe: how many different rows are possible; makes the bound by dimension smaller where it is
            known.

    Returns:
        m: for every table there is one of m rows that is within this error on all queries.

    Raises:
        ArgumentError: an argument is out of range, or neither queries nor dimension is given.

    Example:
        >>> from privsql import theory
        >>> theory.small_table_rows(within=0.25, queries=16)
        28
    """
    most, limits = float(share(within)), _limits(queries, dimension, universe)
    low, high = 0, 1
    while _least_error(high, limits) > most * (1.0 + _SLACK) and high < _MOST_ROWS:
        low, high = high, 2 * high
    while high - low > 1:  # both bounds fall as rows are added, from some number of rows on
        middle = (low + high) // 2
        low, high = (low, middle) if _least_error(middle, limits) <= most * (1.0 + _SLACK) else (middle, high)
    return high


def small_table_error(
    *, rows: int, queries: int | None = None, dimension: int | None = None, universe: int | None = None
) -> float:
    """How near to every table there is one of so many rows: the converse of `small_table_rows`.

    Arguments:
        rows: how many rows the small table has.
        queries, dimension, universe: as for `small_table_rows`.

    Returns:
        An error, as a share of the rows, within which the best table of so many rows is on all queries.

    Raises:
        ArgumentError: an argument is out of range, or neither queries nor dimension is given.

    Example:
        >>> from privsql import theory
        >>> round(theory.small_table_error(rows=28, queries=16), 3)
        0.25
    """
    return _least_error(whole(rows, "rows", "argument-rows"), _limits(queries, dimension, universe))


def smalldb_error(
    *,
    universe: int,
    rows: int,
    epsilon: Any,
    small_rows: int | None = None,
    queries: int | None = None,
    dimension: int | None = None,
    confidence: float = 0.95,
) -> float:
    """How far SmallDB's answers may be off, all of them at once: proposition 6 of note 003, and theorem 11.

    Arguments:
        universe: how many different rows are possible.
        rows: n, how many rows the table has.
        epsilon: the cost of the small table.
        small_rows: m, how many rows the small table has; by default the number for which the bound is least.
        queries, dimension: of the class, as for `small_table_rows`; with a dimension this is theorem 11, with
            explicit constants.
        confidence: the probability that no answer is off by more.

    Returns:
        The error, as a share of the rows.

    Raises:
        ArgumentError: an argument is out of range, or neither queries nor dimension is given.

    Example:
        >>> from privsql import theory
        >>> bound = theory.smalldb_error(universe=4, rows=2000, small_rows=28, queries=16, epsilon=1.0)
        >>> round(bound, 3)
        0.261
    """
    elements, people = _elements(universe), whole(rows, "rows", "argument-rows")
    limits = _limits(queries, dimension, universe)
    rate = float(epsilon_given(epsilon)) * people / 2.0
    surprise = -math.log(missing_given(confidence))

    def found(small: int) -> float:
        """How much worse than the best small table the chosen one may be."""
        return (log_tables(elements, small) + surprise) / rate

    if small_rows is not None:
        small = whole(small_rows, "small_rows", "argument-rows")
        return _least_error(small, limits) + found(small)
    best = math.inf
    for small in _some_rows():
        if found(small) >= best:  # which more rows only make greater
            break
        best = min(best, _least_error(small, limits) + found(small))
    return best


def smalldb_error_of_theorem_7(
    *, universe: int, queries: int, rows: int, epsilon: Any, confidence: float = 0.95
) -> float:
    """Theorem 7 of note 003, in closed form: ((16 ln U ln Q + 4 ln(1/b)) / (epsilon n))^(1/3).

    It is the promise for the best number of rows, and looser than `smalldb_error`. The proof needs Q >= 4, so
    fewer queries count as four; and says nothing where it is above 1.

    Arguments:
        universe, queries, rows, epsilon, confidence: as for `smalldb_error`.

    Returns:
        The error, as a share of the rows.

    Raises: ArgumentError, as `smalldb_error` does.

    Example:
        >>> from privsql import theory
        >>> round(theory.smalldb_error_of_theorem_7(universe=4, queries=16, rows=2000, epsilon=1.0), 3)
        0.332
    """
    logs = _theorem_7(universe, queries, confidence)
    return math.cbrt(logs / (float(epsilon_given(epsilon)) * whole(rows, "rows", "argument-rows")))


def smalldb_rows_needed(
    *, within: Any, universe: int, queries: int, epsilon: Any, confidence: float = 0.95
) -> int:
    """How many rows a table needs for SmallDB to answer all queries within this error (theorem 7).

    It grows with ln U ln Q / within^3 (note 000 has alpha >= K (ln Q ln U / n)^(1/3)).

    Arguments:
        within: how far every answer may be off, as a share of the rows.
        universe, queries, epsilon, confidence: as for `smalldb_error`.

    Returns:
        How many rows suffice.

    Raises: ArgumentError, as `smalldb_error` does.

    Example:
        >>> from privsql import theory
        >>> theory.smalldb_rows_needed(within=0.1, universe=4, queries=16, epsilon=1.0)
        73481
    """
    logs = _theorem_7(universe, queries, confidence)
    return max(1, math.ceil(logs / (float(epsilon_given(epsilon)) * float(share(within)) ** 3)))


def _theorem_7(universe: Any, queries: Any, confidence: Any) -> float:
    """With a = within, m = ceil(2 ln(2 Q + 1) / a^2) rows are within a/2, and m <= 4 ln(Q) / a^2 as 2 ln(2 Q
    + 1) + a^2 <= 4 ln(Q) for Q >= 4 and a <= 1. So the error is at most a/2 + 2 (4 ln(Q) ln(U) / a^2 +
    ln(1/b)) / (epsilon n), and the second part is at most a/2 if a^3 epsilon n >= 16 ln(Q) ln(U) + 4 ln(1/b).
    """
    asked, missing = whole(queries, "queries", "argument-queries"), missing_given(confidence)
    return 16.0 * math.log(_elements(universe)) * math.log(max(asked, 4)) - 4.0 * math.log(missing)


# -- both bounds on the best small table ---------------------------------------------------------------------

Limit = Callable[[int], float]


def _least_error(small: int, limits: list[Limit]) -> float:
    return min(limit(small) for limit in limits)


def _limits(queries: Any, dimension: Any, universe: Any) -> list[Limit]:
    """All bounds that follow from what is given; the least of them counts."""
    if queries is None and dimension is None:
        raise ArgumentError(
            "argument-queries",
            "the class of queries is missing",
            "pass queries= (how many there are) or dimension= (their VC dimension)",
        )
    limits: list[Limit] = []
    if queries is not None:
        limits.append(_by_union(math.log(whole(queries, "queries", "argument-queries"))))
    if dimension is not None:
        d = whole(dimension, "dimension", "argument-queries", at_least=0)
        limits.append(lambda small: math.sqrt(2.0 * (math.log(2.0) + log_subsets(small, d)) / small))
        if universe is not None:
            limits.append(_by_union(log_subsets(_elements(universe), d)))
    return limits


def _by_union(log_queries: float) -> Limit:
    """The error a with ln(2 N + 1) = 2 m a^2."""
    log_sum = math.log(2.0) + log_queries + math.log1p(math.exp(-log_queries) / 2.0)
    return lambda small: math.sqrt(log_sum / (2.0 * small))


def log_subsets(points: int, dimension: int) -> float:
    """ln S(points, dimension): of how many subsets at most a class of this dimension cuts out of the
    points.
    """
    if dimension >= points:
        return points * math.log(2.0)
    term = total = 1
    for size in range(1, dimension + 1):
        term = term * (points - size + 1) // size
        total += term
    return math.log(total)


def log_tables(universe: int, rows: int) -> float:
    """ln C(universe + rows - 1, rows)."""
    return math.lgamma(universe + rows) - math.lgamma(rows + 1) - math.lgamma(universe)


def _some_rows() -> Iterator[int]:
    """1, 2, 3 ... and from 100 on a hundredth more each time: every number of rows gives a bound that
    holds.
    """
    small = 1
    while small < _MOST_ROWS:
        yield small
        small = max(small + 1, int(small * _STEP))


def _elements(universe: Any) -> int:
    return whole(universe, "universe", "argument-rows")
