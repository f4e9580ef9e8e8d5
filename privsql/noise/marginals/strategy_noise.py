"""The plan of a strategy and the exact counts of its cells go in; its noisy product comes out, and the
number of rows where that is public.

Everything is computed modulo 2^64, as that of residuals is.
"""

from __future__ import annotations

import numpy as np

from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.marginals.residual_noise import NoisyResiduals, exact_codes_of, release_residuals
from privsql.noise.randomness import Randomness
from privsql.planning.marginals.cell_counts import COUNT
from privsql.planning.marginals.joint_plan import ReleasePart
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.privacy.marginals.residual_variances import EXACT
from privsql.tables import ExactTable, Integers


def release_part(part: ReleasePart, exact: ExactTable, source: Randomness) -> NoisyResiduals | Integers:
    """The noisy numbers of a part of a release: residuals, or the product of a strategy."""
    if isinstance(part, StrategyPlan):
        return release_strategy(part, exact, source)
    return release_residuals(part, exact, source)


def release_strategy(plan: StrategyPlan, exact: ExactTable, source: Randomness) -> Integers:
    """Every number of the strategy with its noise; after them the number of rows, where nobody can change
    it.
    """
    exact_codes = exact_codes_of(plan.keys, plan.sizes, exact)
    places = np.zeros(len(exact.exact_columns[COUNT]), dtype=np.int64)
    for each, size in zip(exact_codes, plan.sizes, strict=True):
        places = places * size + each
    exact_kinds = np.zeros(plan.asked.kinds, dtype=np.int64)
    np.add.at(exact_kinds, plan.asked.kind_of[places], exact.exact_columns[COUNT])
    measured = plan.measurement
    exact_product = measured.strategy @ exact_kinds
    noisy = exact_product + rounded_gaussian(measured.variance, len(exact_product), source)
    if not measured.by.total_is_public:
        return noisy
    total = exact_kinds.sum() + rounded_gaussian(EXACT, 1, source)
    return np.concatenate([noisy, total])
