"""The parts of a release with undeclared keys go in; they come out with the count that decides which keys are
shown.

COUNT(*) can decide this on its own. But where one unit may add many rows to it, a key must have more rows
than one unit could have, plus the noise, which grows with that limit: many people with few rows each stay
hidden at any epsilon. The number of units of a key needs fewer people, for a share of epsilon. We take
whichever count needs fewer people; the query, the policy, epsilon and delta decide, never the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.errors import ArgumentError
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.counts import units_part
from privsql.planning.aggregates.parts import Part
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.pricing import KeysShown, Pricing
from privsql.privacy.key_selection import Contribution, KeyRelease

PricingOf = Callable[[Sequence[Part], KeysShown], Pricing]


def pricing_of_keys(
    parts: Sequence[Part],
    context: AggregationContext,
    min_units: int,
    epsilon: Fraction,
    pricing_of: PricingOf,
) -> Pricing:
    """Price the parts with the count that shows a key from the fewest people; in a tie, the count of units,
    which holds however few rows they have.
    """

    def shown_by(part: Part, of: Sequence[Part]) -> Pricing:
        return pricing_of(of, KeysShown(part.columns, _contribution(part, context), min_units))

    counts = [part for part in parts if part.counts_all]
    ways = [shown_by(part, parts) for part in counts]
    if not counts or _may_count_units(counts, context, ways[0]):
        units = units_part(sum(len(part.columns) for part in parts) + 1, context)
        ways.append(shown_by(units, [*parts, units]))
    if len(ways) == 1:
        return ways[0]
    best, other, *_ = sorted(ways, key=lambda way: _people_and_rows(way, epsilon))
    assert best.keys is not None
    return replace(best, keys=replace(best.keys, other=other))


def people_needed(release: KeyRelease) -> int:
    """How many people a key needs to be shown with probability 1/2, if each has (1 + max_rows) / 2 rows
    there.

    The number of rows per person in a key is unknown except that it is between 1 and max_rows, so this takes
    the mean.
    """
    return -(-2 * release.shows_at(0.5) // (1 + release.contribution.rows))


def key_release(pricing: Pricing, epsilon: Fraction) -> KeyRelease | None:
    """How keys are shown at this epsilon; None if it is too small."""
    try:
        return next(each.release for each in pricing.at(epsilon) if isinstance(each, KeyMeasurement))
    except ArgumentError:
        return None


def people_for_keys(pricing: Pricing, epsilon: Fraction) -> float:
    """How many people a key needs to be shown; 0 if all keys are declared."""
    if pricing.keys is None:
        return 0
    release = key_release(pricing, epsilon)
    return math.inf if release is None else people_needed(release)


def _people_and_rows(way: Pricing, epsilon: Fraction) -> tuple[float, int]:
    """How many people a key needs, and how many rows each may add to the deciding count."""
    release = key_release(way, epsilon)
    return (math.inf, 0) if release is None else (people_needed(release), release.contribution.rows)


def _may_count_units(counts: Sequence[Part], context: AggregationContext, way: Pricing) -> bool:
    """Whether counting units may need fewer people. Counts beside it get Laplace noise, whatever mechanism
    the call names.
    """
    several = context.limits is not None and all(part.sensitivity.linf > 1 for part in counts)
    return several and way.mechanism is not Mechanism.GAUSSIAN


def _contribution(part: Part, context: AggregationContext) -> Contribution:
    assert context.stability.rows is not None
    groups = (
        context.stability.rows // context.limits.max_rows
        if context.limits is not None
        else context.stability.rows
    )
    return Contribution(groups, part.sensitivity.linf, groups * context.neighbours.moves)
