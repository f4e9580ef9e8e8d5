"""How many elements and rows there are goes in; all tables of so many rows, and a private choice of one of
them, come out (SmallDB, notes 000 and 003).

A table is a multiset of elements. There are C(U + m - 1, m) of them, one for each choice of m elements of U
in order with repetitions, and one for each way to put U - 1 bars among m rows. The shorter description is
used: of a million tables it has at most eleven numbers each, since C(22, 11) < 10^6 < C(24, 12).

Privacy. Under replace-one neighbours the n rows of the real table x are public in number, and replacing one
moves the answer q(x) of a query with values in [0, 1] by at most 1/n. So the score -max |q(x) - q(y)| of a
candidate y moves by at most 1/n, and the exponential mechanism with exp(epsilon score / (2/n)) is
epsilon-private; all candidates weigh the same, whatever the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsql.noise.randomness import Randomness
from privsql.noise.selection import select
from privsql.tables import Integers

_CELLS = 1 << 19  # answers worked out at once: a few megabytes stay in the processor's cache
_EXACT_IN_FLOATS = 2**52


@dataclass(frozen=True)
class Candidates:
    """All tables of so many rows over so many elements, in a fixed order."""

    universe: int
    rows: int

    @property
    def in_rows(self) -> bool:
        """Whether a table is described by its rows, rather than by its counts."""
        return self.rows < self.universe

    def batches(self, size: int) -> Iterator[Integers]:
        """Descriptions, some at a time: a line for each table, of its rows or of its counts but the last."""
        if self.in_rows:
            described: Iterator[tuple[int, ...]] = combinations_with_replacement(
                range(self.universe), self.rows
            )
            width = self.rows
        else:
            described = combinations(range(self.rows + self.universe - 1), self.universe - 1)
            width = self.universe - 1
        while True:
            some = np.fromiter(chain.from_iterable(islice(described, size)), dtype=np.int64)
            if not width:  # one element: one table
                yield np.zeros((1, 0), dtype=np.int64)
                return
            if not some.size:
                return
            lines = some.reshape(-1, width)
            yield lines if self.in_rows else np.diff(lines, axis=1, prepend=-1) - 1

    def counts(self, line: Integers) -> Integers:
        """How often a table has each element, from its description."""
        if self.in_rows:
            return np.bincount(line, minlength=self.universe).astype(np.int64)
        return np.append(line, self.rows - line.sum())

    def all_counts(self) -> Iterator[Integers]:
        """The counts of one table after the other."""
        return (self.counts(line) for lines in self.batches(1 << 12) for line in lines)

    def nth(self, index: int) -> Integers:
        """The counts of one of the tables."""
        size = 1 << 12
        (lines,) = islice(self.batches(size), index // size, index // size + 1)
        return self.counts(lines[index % size])

    def greatest_errors(self, queries: Integers, exact_answers: Integers, people: int) -> Integers:
        """For each table y the greatest |rows q(x) - people q(y)| over the queries; people q(x) is given.

        All numbers are whole. Where they are below 2^53, floats hold them and their sums exactly, in whatever
        order they are added up, and multiply matrices faster.
        """
        greatest = self.rows * people * max(1, int(queries.max()))
        kind = np.float64 if greatest < _EXACT_IN_FLOATS else np.int64
        by_element, target = queries.T.astype(kind), (self.rows * exact_answers).astype(kind)
        size = max(1, _CELLS // len(queries))
        found = [
            np.abs(people * self._answers(lines, by_element) - target).max(axis=1)
            for lines in self.batches(size)
        ]
        return np.concatenate(found).astype(np.int64)

    def _answers(self, lines: Integers, by_element: NDArray[Any]) -> NDArray[Any]:
        """The sum of each query's values over the rows of each table."""
        if self.in_rows:
            answers = by_element[lines[:, 0]]
            for place in range(1, lines.shape[1]):
                answers += by_element[lines[:, place]]
            return answers
        last = by_element[-1]  # every row counts as the last element, and differs from it where it is another
        found: NDArray[Any] = lines.astype(by_element.dtype) @ (by_element[:-1] - last) + self.rows * last
        return found


def table_rate(candidates: Candidates, scale: int, epsilon: Fraction) -> Fraction:
    """Of the exponential mechanism, for errors in units of 1/(people rows scale): the people cancel."""
    return epsilon / (2 * candidates.rows * scale)


def choose_table(
    candidates: Candidates, exact_errors: Integers, scale: int, epsilon: Fraction, source: Randomness
) -> int:
    """The place of the chosen table, given `greatest_errors` for queries in units of 1/scale: P(y) is
    proportional to exp(-table_rate error), exactly.
    """
    return select(-exact_errors, table_rate(candidates, scale, epsilon), "gumbel", source)
