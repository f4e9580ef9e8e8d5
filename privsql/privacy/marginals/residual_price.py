"""Sizes of columns and variances of residuals go in; what measuring them costs one unit comes out.

Columns are numbered, and column i has n_i cells. M_A counts the rows in every combination of the cells of the
columns A; its residual is R_A = (tensor over A of (I - J/n_i)) M_A, what the margins of M_A do not say. Each
residual has Gaussian noise of variance v_A in every direction that it can take. With f(A) = product over A of
(1 - 1/n_i), the sum over A of the squared change of R_A divided by v_A is

    one row comes or goes:                         sum of f(A) / v_A                                       (1)
    a row is replaced by one that differs
    from it exactly in the columns P:              sum of (2 / v_A) (f(A) - g(A, P))                       (2)

where g(A, P) is the product over A - P of (1 - 1/n_i) times the product over A and P of -1/n_i. The proof is
in docs/proofs.md. For a unit of at most R rows it is at most R^2 times that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from privsql.privacy.gaussian import rounded_up

MOST_PATTERNS = 16  # columns up to which all sets of columns in which two rows differ are tried

_BITS = 64  # to which a price is rounded up

# (2) is added up in floats, from terms of at most 2 f(A) / v_A, each off by less than 2^-45 of that. The
# average of (2) over all pairs of rows is the sum of 2 f(A) / v_A, so the greatest is off by less than this
_ABOVE = 1 + Fraction(1, 2**40)

Columns = tuple[int, ...]  # numbers of columns, increasing
Variances = Mapping[Columns, Fraction]


@dataclass(frozen=True)
class Neighbouring:
    """What one unit can do to the rows that are counted.

    Arguments:
        rows: one unit has at most so many of them.
        replaced: neighbours replace a unit's rows; otherwise they come or go.
        always: a unit has exactly one row, which is counted whatever it holds.
    """

    rows: int
    replaced: bool
    always: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or (self.always and self.rows > 1):
            raise ValueError("a unit has at least one row, and exactly one where it is always counted")

    @property
    def total_is_public(self) -> bool:
        """Whether nobody can change how many rows are counted."""
        return self.replaced and self.always


def closure(workload: Sequence[Columns]) -> list[Columns]:
    """All sets of columns that are part of one of these, the small ones first."""
    parts = {part for each in workload for size in range(len(each) + 1) for part in combinations(each, size)}
    return sorted(parts, key=lambda part: (len(part), part))


def share_of_row(sizes: Sequence[int], columns: Columns) -> Fraction:
    """f(A): the squared length of the residual of a single row."""
    return math.prod((1 - Fraction(1, sizes[each]) for each in columns), start=Fraction(1))


def squared_change(sizes: Sequence[int], variances: Variances, by: Neighbouring) -> Fraction:
    """An upper bound on the sum over A of the squared change of R_A / v_A that one unit can make.

    Noise of these variances is then Gaussian noise with this squared ratio of sensitivity to deviation.
    """
    for columns, variance in variances.items():
        if variance <= 0 or any(not 0 <= each < len(sizes) for each in columns):
            raise ValueError("a residual has columns of the table, and noise")
    # a column of one cell, in which no two rows differ, makes a residual 0
    variances = {each: of for each, of in variances.items() if share_of_row(sizes, each)}
    if not by.replaced:
        found = by.rows**2 * _of_one_row(sizes, variances)
    elif by.always:
        found = _of_two_rows(sizes, variances)
    else:
        found = by.rows**2 * max(_of_one_row(sizes, variances), _of_two_rows(sizes, variances))
    return rounded_up(found, _BITS) if found else found  # the exact sum has thousands of digits


def _of_one_row(sizes: Sequence[int], variances: Variances) -> Fraction:
    return sum((share_of_row(sizes, each) / of for each, of in variances.items()), Fraction(0))


def _of_two_rows(sizes: Sequence[int], variances: Variances) -> Fraction:
    """The maximum of (2) over P; of many columns, the sum of the maxima of its terms."""
    if len(sizes) > MOST_PATTERNS:
        greatest = sum(float(_terms(sizes, each).max() / of) for each, of in variances.items())
        return Fraction(greatest) * _ABOVE
    patterns = np.arange(2 ** len(sizes))
    sums = np.zeros(len(patterns))
    for columns, variance in variances.items():
        within = np.zeros(len(patterns), dtype=np.int64)
        for place, column in enumerate(columns):
            within |= (patterns >> column & 1) << place
        sums += (_terms(sizes, columns) / float(variance))[within]
    return Fraction(float(sums.max())) * _ABOVE


def _terms(sizes: Sequence[int], columns: Columns) -> npt.NDArray[np.float64]:
    """2 (f(A) - g(A, P)) for every P within A, numbered by the bits of its places."""
    same = np.ones(1)
    for column in columns:
        part = 1 / sizes[column]
        same = np.concatenate([same * (1 - part), same * -part])
    return 2 * (float(share_of_row(sizes, columns)) - same)
