"""Marginals and counting queries over one table go in, with a price; the plan of their joint release comes
out.

Each part gets a share of the squared ratio of sensitivity to noise, which is proportional to the root of
the mean variance that its queries would have with all of it: then the sum of these means is least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.planning.marginals.joint_plan import JointPlan, ReleasePart
from privsql.planning.marginals.plan_residuals import (
    ResidualTask,
    cells_of_all,
    counted_cells,
    fields_of_counts,
    with_delta,
)
from privsql.planning.marginals.residual_measurement import measure_residuals
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.strategy_measurement import measure_strategy
from privsql.planning.marginals.strategy_plan import CountingQueries, StrategyPlan
from privsql.planning.marginals.workload import Marginals
from privsql.planning.measurements.gaussian_noise import unit_variance
from privsql.privacy.marginals.strategies import best_strategy

Wanted = Marginals | CountingQueries
_FINENESS = 1_000  # shares are multiples of one part in so many


def plan_joint(task: ResidualTask, wanted: Sequence[Wanted]) -> JointPlan:
    """Count every row once, in the cells of all columns of all parts, and measure each part its own way.

    Raises Refused for tables and columns that cannot be released, ArgumentError for what does not fit.
    """
    with_delta(task)
    unit_variance(task.offer.epsilon, task.offer.delta)  # raises ArgumentError where there is none
    cells = [cells_of_all(task, each) if isinstance(each, Marginals) else each.columns for each in wanted]
    counts, by = counted_cells(task, tuple(column for columns in cells for column in columns))
    firsts = [sum(map(len, cells[:place])) for place in range(len(cells))]

    best = [best_strategy(each.queries, by) if isinstance(each, CountingQueries) else None for each in wanted]

    def part(place: int, share: Fraction) -> ReleasePart:
        each, chosen = wanted[place], best[place]
        if isinstance(each, CountingQueries):
            assert chosen is not None
            measured = measure_strategy(chosen[0].matrix, by, task.offer.epsilon, task.offer.delta, share)
            return StrategyPlan(
                asked=each,
                measurement=measured,
                name=chosen[0].name,
                tried=chosen[1],
                first=firsts[place],
                bounding=counts.bounding,
            )
        own = replace(counts, columns=cells[place], first=firsts[place])
        offer = task.offer
        sizes = [column.size for column in cells[place]]
        residuals = measure_residuals(sizes, each.sets(), by, offer.epsilon, offer.delta, share)
        return ResidualPlan(**fields_of_counts(own), workload=each, measurement=residuals)

    whole = [part(place, Fraction(1)) for place in range(len(wanted))]
    shares = _shares([mean_variance(each) for each in whole])
    parts = whole if len(whole) == 1 else [part(place, share) for place, share in enumerate(shares)]
    return JointPlan(
        **fields_of_counts(counts),
        parts=tuple(parts),
        loss=task.offer.epsilon,
        delta_loss=task.offer.delta,
    )


def mean_variance(part: ReleasePart) -> float:
    """The mean variance of the queries of a part: of marginals, the mean over the largest of these."""
    if isinstance(part, StrategyPlan):
        return part.deviation**2
    found = [part.error_of(each).deviation ** 2 for each in part.sets]
    return math.fsum(found) / len(found)


def _shares(variances: Sequence[float]) -> list[Fraction]:
    """Shares of the ratio, each at least one part in a thousand."""
    sizes = [math.sqrt(max(each, 1e-300)) for each in variances]
    parts = [max(1, round(_FINENESS * each / sum(sizes))) for each in sizes]
    return [Fraction(each, sum(parts)) for each in parts]
