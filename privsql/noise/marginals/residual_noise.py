"""The plan of a release of marginals and the exact counts of its cells go in; noisy residuals come out.

Everything is computed modulo 2^64, as int64 does: what 64 bits keep of an exact number plus noise is a
function of that sum, so it is as private even where a number is too great for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.randomness import Randomness
from privsql.planning.marginals.cell_counts import COUNT
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.privacy.marginals.residual_price import Columns
from privsql.tables import ExactTable, Integers

NoisyResiduals = dict[Columns, Integers]  # by columns: the whole residual, which is times its number of cells


def release_residuals(plan: ResidualPlan, exact: ExactTable, source: Randomness) -> NoisyResiduals:
    """Every residual of the plan, made of whole numbers, with the noise of its variance in each of them."""
    sizes = plan.measurement.sizes
    exact_codes = exact_codes_of(plan.keys, sizes, exact)
    exact_rows = exact.exact_columns[COUNT]
    noisy: NoisyResiduals = {}
    for columns in plan.residuals:
        exact_marginal = marginal_of_rows(exact_codes, exact_rows, sizes, columns)
        exact_residual = whole_residual(exact_marginal)
        noise = rounded_gaussian(
            Fraction(plan.measurement.noise_variance(columns)), exact_residual.size, source
        )
        noisy[columns] = exact_residual + noise.reshape(exact_residual.shape)
    return noisy


def exact_codes_of(keys: Sequence[str], sizes: Sequence[int], exact: ExactTable) -> list[Integers]:
    """The cell of each row of the statement, column by column. It numbers them from 0 to size - 1, whatever a
    row holds.
    """
    return [_codes(exact, name, size) for name, size in zip(keys, sizes, strict=True)]


def _codes(exact: ExactTable, name: str, size: int) -> Integers:
    values = np.ma.filled(exact.exact_keys[name], size - 1)
    return np.clip(np.asarray(values).astype(np.int64), 0, size - 1)


def marginal_of_rows(
    exact_codes: Sequence[Integers], exact_rows: Integers, sizes: Sequence[int], columns: Columns
) -> Integers:
    """The exact counts of a marginal."""
    places = np.zeros(len(exact_rows), dtype=np.int64)
    for each in columns:
        places = places * sizes[each] + exact_codes[each]
    shape = tuple(sizes[each] for each in columns)
    exact_marginal = np.zeros(math.prod(shape), dtype=np.int64)
    np.add.at(exact_marginal, places, exact_rows)
    return exact_marginal.reshape(shape)


def whole_residual(exact_marginal: Integers) -> Integers:
    """(tensor of (n I - J)) M: n_i times each cell less the sum along axis i, for every axis."""
    exact = exact_marginal
    for axis, size in enumerate(exact_marginal.shape):
        exact = exact * size - exact.sum(axis=axis, keepdims=True)
    return exact
