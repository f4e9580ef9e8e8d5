"""The plan of MWEM and the exact counts of its cells go in; the marginals that its rounds selected come out,
with noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from privsql.noise.marginals.residual_noise import exact_codes_of, marginal_of_rows
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import discrete_laplace
from privsql.noise.selection import in_fine_steps, select
from privsql.planning.marginals.cell_counts import COUNT
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.privacy.marginals.residual_price import Columns
from privsql.tables import ExactTable, Integers

Measured = tuple[Columns, Integers]  # a marginal, with its noise
# what the marginals of the workload are believed to be, by those measured so far
Estimate = Callable[[Sequence[Measured]], Mapping[Columns, Integers]]


def mwem_rounds(plan: MwemPlan, exact: ExactTable, estimate: Estimate, source: Randomness) -> list[Measured]:
    """In every round the marginal that the estimate is furthest from, by the exponential mechanism, measured.

    `estimate` sees noisy numbers alone, and returns whole numbers.
    """
    exact_codes = exact_codes_of(plan.keys, plan.sizes, exact)
    exact_rows = exact.exact_columns[COUNT]
    exact_marginals = {
        columns: marginal_of_rows(exact_codes, exact_rows, plan.sizes, columns) for columns in plan.sets
    }
    candidates, measured = list(exact_marginals), list[Measured]()
    for _ in range(plan.measurement.rounds):
        believed = estimate(measured)
        exact_scores = np.array(
            [np.abs(exact_marginals[each] - believed[each]).sum() for each in candidates], dtype=np.int64
        )
        fine_scores, rate = in_fine_steps(exact_scores, plan.measurement.selection_rate)
        chosen = candidates[select(fine_scores, rate, "gumbel", source)]
        exact_marginal = exact_marginals[chosen]
        noise = discrete_laplace(plan.measurement.noise_rate, exact_marginal.size, source)
        measured.append((chosen, exact_marginal + noise.reshape(exact_marginal.shape)))
    return measured
