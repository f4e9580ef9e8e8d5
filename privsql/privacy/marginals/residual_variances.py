"""A workload of marginals and a price go in; the variance of each residual comes out, and the errors that
follow.

The estimate of M_A adds up the residuals of all B within A, each spread evenly over the other columns, so
its variance over all cells is the sum of v_B e(A, B), with e(A, B) = product over B of (n_i - 1) times the
product over A - B of 1/n_i. To make the sum over the workload of weight_A times that least at a given sum of
f(B)/v_B is to take v_B proportional to sqrt(f(B) / sum over A of weight_A e(A, B)). Where rows are replaced,
that form stands for the maximum over patterns, which is twice it to within a few percent; the result is then
scaled so that the true maximum is paid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from privsql.privacy.gaussian import rounded_up
from privsql.privacy.marginals.residual_price import (
    Columns,
    Neighbouring,
    Variances,
    closure,
    share_of_row,
    squared_change,
)

# Marginals of three and more columns are shown shrunk towards what those of two say: it pays to know these
# better. Measured on made-up tables, any weight from 0.05 to 0.2 is within a few percent of the best.
FINEST_WEIGHT = 0.1
PART_FOR_TOTAL = Fraction(1, 50)
_LESS = 1 - Fraction(1, 2**32)  # as the price is rounded up
EXACT = Fraction(1, 1024)  # the variance of a total that nobody can change: its noise rounds to 0


def planned_variances(
    sizes: Sequence[int], workload: Sequence[Columns], ratio: Fraction, by: Neighbouring
) -> dict[Columns, Fraction]:
    """Variances of least weighted error, whose squared change (`squared_change`) is at most `ratio`."""
    residuals = closure(workload)
    wanted = dict.fromkeys(residuals, 0.0)
    for marginal in residuals:
        weight = weight_of(sizes, marginal)
        for part in parts_of(marginal):
            wanted[part] += weight * spread(sizes, marginal, part)
    shapes = {
        each: Fraction(math.sqrt(share_of_row(sizes, each) / Fraction(wanted[each])))
        for each in residuals
        if each and share_of_row(sizes, each)
    }
    paid = _part_for_total(by)
    total = rounded_up(by.rows**2 / (ratio * paid)) if paid else EXACT
    if not shapes:  # every column has a single cell
        return {(): total}
    rest = (ratio if by.replaced else ratio * (1 - paid)) * _LESS
    most = squared_change(sizes, shapes, by)
    return {(): total, **{each: rounded_up(shape * most / rest) for each, shape in shapes.items()}}


def _part_for_total(by: Neighbouring) -> Fraction:
    """What of the ratio pays for the total. Where rows are replaced, it is only in (1), which is otherwise at
    most half of (2).
    """
    if by.total_is_public:
        return Fraction(0)
    return Fraction(1, 4) if by.replaced else PART_FOR_TOTAL


def weight_of(sizes: Sequence[int], marginal: Columns) -> float:
    """How much the squared errors of a marginal matter. Divided by the root of its number of cells, they let
    small marginals have a small error, too, at hardly any cost to large ones.
    """
    finest = FINEST_WEIGHT if len(marginal) > 2 else 1.0
    return finest / math.sqrt(math.prod(sizes[each] for each in marginal))


def parts_of(columns: Columns) -> Iterable[Columns]:
    """All sets of columns within these, none and all of them included."""
    return (part for size in range(len(columns) + 1) for part in combinations(columns, size))


def spread(sizes: Sequence[int], marginal: Columns, part: Columns) -> float:
    """e(A, B): what noise of variance 1 in the residual of B adds to the variance of all cells of M_A."""
    return math.prod(sizes[each] - 1 for each in part) / math.prod(
        sizes[each] for each in marginal if each not in part
    )


def deviation_of_cell(sizes: Sequence[int], variances: Variances, marginal: Columns) -> float:
    """The standard deviation of one cell of a marginal, as it is estimated without shrinking."""
    whole = sum(
        float(variances[part]) * spread(sizes, marginal, part)
        for part in parts_of(marginal)
        if part in variances
    )
    return math.sqrt(whole / math.prod(sizes[each] for each in marginal))
