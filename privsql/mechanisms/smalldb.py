"""A table as counts, linear queries and an epsilon go in; a small table that answers them all comes out
(notes 000 and 003).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import Numbers, numbers
from privsql.mechanisms.linear_queries import (
    LARGEST,
    LinearQueries,
    counts_of,
    histogram,
    labels_of,
    linear_queries,
)
from privsql.neighbours import Neighbours
from privsql.noise.candidate_tables import Candidates, choose_table, table_rate
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.policy.checks import neighbours_of
from privsql.tables import Integers
from privsql.theory.checked import epsilon_given, level_given, whole
from privsql.theory.shattering import dimension_of
from privsql.theory.small_tables import (
    candidate_tables,
    log_tables,
    small_table_error,
    small_table_rows,
    smalldb_error,
    smalldb_error_of_theorem_7,
)

MOST_CANDIDATES = 1_000_000
_MOST_LISTED = 10_000_000  # counts, in all tables that are listed
_MOST_STEPS = 5_000_000  # to find a VC dimension: half a second


@dataclass(frozen=True)
class SmallBounds:
    """What the notes promise, as shares of the rows. Everything here is public: it depends on sizes alone.

    Attributes:
        claim_7: some table of so many rows is within this of any table (note 000; note 003, theorem 5).
        proposition_6: the chosen one is within this, with the stated confidence.
        theorem_7: the note's closed form, for the best number of rows; says nothing above 1.
        theorem_11: the same by VC dimension, with explicit constants; None unless all queries are 0 and 1.
        dimension: the VC dimension of the queries, or None; if it takes long to find, log2 of their number,
            which it does not exceed (lemma 10).
        confidence: of all but claim 7.
    """

    claim_7: float
    proposition_6: float
    theorem_7: float
    theorem_11: float | None
    dimension: int | None
    confidence: float


@dataclass(frozen=True, eq=False)
class SmallTable:
    """A private table of a few rows. Whatever is computed from it costs nothing.

    Attributes:
        table: how often each element occurs, in the form in which the counts were given.
        answers: its answer to each query, as shares of its rows.
        rows: how many rows it has.
        candidates: among how many tables it was chosen.
        bounds: how far its answers may be off.
    """

    table: Any
    answers: tuple[float, ...]
    rows: int
    candidates: int
    bounds: SmallBounds
    epsilon: float
    _chosen: Integers
    _queries: LinearQueries

    def error(self, counts: Any) -> float:
        """The greatest error against a table that you have. Not private if that is the real one.

        Arguments:
            counts: as for `smalldb`.

        Returns:
            The largest difference of answers, as a share of the rows.

        Raises:
            ArgumentError: the counts do not fit the queries.

        Example:
            >>> from privsql import mechanisms
            >>> small = mechanisms.smalldb([5000, 5000], [[0, 1]], epsilon=10.0, rows=4)
            >>> small.error([5000, 5000])
            0.0
        """
        exact_counts = counts_of(numbers(counts, "count"), self._queries)
        people, scale = int(exact_counts.sum()), self._queries.scale
        differences = self.rows * (self._queries.values @ exact_counts) - people * (
            self._queries.values @ self._chosen
        )
        return float(Fraction(int(np.abs(differences).max()), people * self.rows * scale))


def smalldb(
    counts: Any,
    queries: Any,
    epsilon: Any,
    *,
    within: Any = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    confidence: float = 0.95,
) -> SmallTable:
    """Choose a table of a few rows that answers all the queries nearly as the real table does: SmallDB.

    The exponential mechanism over all tables of `rows` rows (multisets, all of one weight), with utility
    -max |q(x) - q(y)| over the queries, and Delta u = 1/n. It is sampled exactly; a million tables at most.

    Arguments:
        counts: how many rows of the real table are each element of the universe: a dict, a Series or a list.
            The number of rows is public, since neighbours are replace-one; so is the universe.
        queries: linear queries with values from 0 to 1: for each a list with its value of every element, or a
            function of an element's label. Floats count as they are written.
        epsilon: the cost of the small table, for all that is ever computed from it.
        within: the accuracy wanted of the best small table, from which its number of rows follows (claim 7).
        rows: the number of rows of the small table itself, instead of `within`.
        neighbours: "replace-one"; anything else is refused.
        confidence: of the bounds that are reported.

    Returns:
        A SmallTable: the table, its answers, and the bounds of the notes.

    Raises:
        ArgumentError: too many candidate tables, queries outside [0, 1], add-remove neighbours, or another
            argument that is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> counts = {"young": 7000, "old": 3000}
        >>> small = mechanisms.smalldb(counts, [lambda who: who == "old"], epsilon=5.0, rows=10)
        >>> small.table, small.answers
        ({'young': 7, 'old': 3}, (0.3,))
    """
    level_given(confidence)
    task = _task(counts, queries, epsilon, within, rows, neighbours)
    return _small_table(task, task.draw(SystemRandomness()), confidence)


def smalldb_probabilities(
    counts: Any, queries: Any, epsilon: Any, *, within: Any = None, rows: int | None = None
) -> dict[tuple[int, ...], float]:
    """The probability with which `smalldb` chooses each table. Not private: for planning and tests.

    Arguments:
        counts, queries, epsilon, within, rows: as for `smalldb`.

    Returns:
        A dict: from the counts of each candidate, in the order of the universe, to its probability.

    Raises:
        ArgumentError: as `smalldb` does.

    Example:
        >>> from privsql import mechanisms
        >>> chances = mechanisms.smalldb_probabilities([8, 0], [[0, 1]], epsilon=1.0, rows=1)
        >>> {table: round(chance, 3) for table, chance in chances.items()}
        {(1, 0): 0.982, (0, 1): 0.018}
    """
    task = _task(counts, queries, epsilon, within, rows, Neighbours.REPLACE_ONE)
    worse = task.exact_errors - task.exact_errors.min()
    if len(task.exact_errors) * task.candidates.universe > _MOST_LISTED:
        raise ArgumentError(
            "argument-candidates",
            "there are too many candidate tables to list them with their probabilities",
            "choose fewer rows; smalldb itself takes up to a million tables",
        )
    rate = table_rate(task.candidates, task.queries.scale, task.loss)
    weights = np.exp(-float(rate) * worse.astype(np.float64))
    tables = (tuple(int(each) for each in table) for table in task.candidates.all_counts())
    return dict(zip(tables, (weights / weights.sum()).tolist(), strict=True))


# -- the choice ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Choice:
    """What the exponential mechanism is to choose from: u = -exact_errors / (people rows scale)."""

    given: Numbers
    queries: LinearQueries
    candidates: Candidates
    people: int
    exact_errors: Integers
    loss: Fraction

    def draw(self, source: Randomness) -> int:
        return choose_table(self.candidates, self.exact_errors, self.queries.scale, self.loss, source)


def _task(counts: Any, queries: Any, epsilon: Any, within: Any, rows: Any, neighbours: Any) -> _Choice:
    loss = epsilon_given(epsilon)
    if neighbours_of(neighbours) is not Neighbours.REPLACE_ONE:
        raise ArgumentError(
            "argument-neighbours",
            "SmallDB is for replace-one neighbours: a row moves its scores by 1/n, and under add-remove the "
            "number of rows n is itself private",
            "leave neighbours out",
        )
    given = histogram(counts)
    read = linear_queries(queries, labels_of(counts, given))
    exact_counts = counts_of(given, read)
    people, small = int(exact_counts.sum()), _rows(within, rows, read.number)
    universe = len(exact_counts)
    _check_size(universe, small)
    if people * small * read.scale >= LARGEST:
        raise ArgumentError(
            "argument-queries",
            "the queries' values have too many digits for exact arithmetic",
            "round them to six decimals, or use 0 and 1",
        )
    candidates = Candidates(universe, small)
    errors = candidates.greatest_errors(read.values, read.values @ exact_counts, people)
    return _Choice(given, read, candidates, people, errors, loss)


def _small_table(task: _Choice, index: int, confidence: float) -> SmallTable:
    chosen = task.candidates.nth(index)
    small, universe = task.candidates.rows, task.candidates.universe
    answers = tuple(
        float(
            sum((int(count) * value for count, value in zip(chosen, query, strict=True)), Fraction(0)) / small
        )
        for query in task.queries.asked
    )
    return SmallTable(
        table=task.given.alike([int(each) for each in chosen]),
        answers=answers,
        rows=small,
        candidates=candidate_tables(universe=universe, rows=small),
        bounds=_bounds(task, confidence),
        epsilon=float(task.loss),
        _chosen=chosen,
        _queries=task.queries,
    )


def _bounds(task: _Choice, confidence: float) -> SmallBounds:
    different, small = task.queries.number, task.candidates.rows
    sizes: dict[str, Any] = {"universe": task.candidates.universe, "rows": task.people}
    sizes |= {"epsilon": task.loss, "confidence": confidence}
    dimension = _dimension(task.queries)
    return SmallBounds(
        claim_7=small_table_error(rows=small, queries=different),
        proposition_6=smalldb_error(**sizes, small_rows=small, queries=different),
        theorem_7=smalldb_error_of_theorem_7(**sizes, queries=different),
        theorem_11=None if dimension is None else smalldb_error(**sizes, dimension=dimension),
        dimension=dimension,
        confidence=confidence,
    )


def _dimension(queries: LinearQueries) -> int | None:
    if queries.scale != 1:
        return None
    answers = np.array(queries.asked, dtype=np.bool_)
    try:
        return dimension_of(answers, _MOST_STEPS)
    except ArgumentError:
        return int(math.log2(len(np.unique(answers, axis=0))))


# -- its size -----------------------------------------------------------------------------------------------


def _rows(within: Any, rows: Any, queries: int) -> int:
    if (within is None) == (rows is None):
        raise ArgumentError(
            "argument-rows",
            "pass either within (the accuracy wanted) or rows (of the small table)",
            "try within=0.25",
        )
    if rows is not None:
        return whole(rows, "rows", "argument-rows")
    return small_table_rows(within=within, queries=queries)


def _check_size(universe: int, rows: int) -> None:
    """Refuse more than a million candidates, with the numbers; Markov chains over more are not private."""
    if log_tables(universe, rows) < math.log(10**15):  # others take long to work out
        number = candidate_tables(universe=universe, rows=rows)
        if number <= MOST_CANDIDATES:
            return
        shown = f"{number:,}"
    else:
        shown = f"some 10^{round(log_tables(universe, rows) / math.log(10))}"
    possible = 0
    while candidate_tables(universe=universe, rows=possible + 1) <= MOST_CANDIDATES:
        possible += 1
    way = f"choose at most {possible:,} rows" if possible else f"choose at most {MOST_CANDIDATES:,} elements"
    raise ArgumentError(
        "argument-candidates",
        f"tables of {rows:,} rows over {universe:,} elements are {shown} candidates; SmallDB goes through "
        f"each of them, and {MOST_CANDIDATES:,} is the limit",
        f"{way} (a larger within needs fewer), or a smaller universe",
    )
