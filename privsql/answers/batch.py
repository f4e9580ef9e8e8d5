"""The plans of several queries go in; the ones to pay for come out, each with its share of epsilon.

A query that follows from another one need not be paid for: its cells are sums of the other's cells, with more
noise. Let C be the sum of squared errors at epsilon 1 of all queries answered from one paid plan. The error
of the whole batch is the sum of C / epsilon^2 over the paid plans. For a fixed total of epsilon it is least
if each share is proportional to C^(1/3), and then it is the cube of the sum of C^(1/3), divided by the square
of the total. The paid plans are chosen to make this small.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from privsql.analysis.keys import Evaluate
from privsql.answers.additive import Additive, Known, additive
from privsql.answers.derivation import variances
from privsql.answers.ways import ways
from privsql.planning.identity import identity
from privsql.planning.plan import Plan
from privsql.policy.checks import NANO, SMALLEST_EPSILON
from privsql.tables import NoisyTable

_NOTHING = NoisyTable(np.zeros(0, dtype=np.int64), {})


@dataclass(frozen=True)
class Shares:
    """`paid`: the places of the queries that are paid for, with their shares of epsilon; `follows`: from
    which of them each other query is answered.
    """

    paid: Mapping[int, Fraction]
    follows: Mapping[int, int]


def shared(
    plans: Sequence[Plan], epsilon: Fraction, evaluate: Evaluate, alone: Collection[int] = ()
) -> Shares:
    """Share epsilon among plans. All have the same price, so that their errors can be compared.

    `alone`: the places of those that are paid for by themselves, as their text is not known yet.
    """
    first: dict[str, int] = {}
    follows: dict[int, int] = {}
    for place, plan in enumerate(plans):  # a repeated query is planned once
        digest = identity(plan).digest
        found = first.setdefault(f"{digest}, {place}" if place in alone else digest, place)
        if found != place:
            follows[place] = found
    errors = {
        place: _error(plans[place]) * (1 + list(follows.values()).count(place)) for place in first.values()
    }
    together = {place: plans[place] for place in first.values() if place not in alone}
    worse = _times_worse(together, evaluate)
    rides = _cheapest(errors, worse)
    follows = {place: rides.get(found, found) for place, found in follows.items()} | rides
    costs = _costs(errors, worse, rides)
    total = _size(costs)
    # each gets the minimum, and a share of the rest
    rest = int((epsilon - len(costs) * SMALLEST_EPSILON) * NANO)
    paid = {
        place: SMALLEST_EPSILON + Fraction(int(rest * math.cbrt(cost) / total), NANO)
        for place, cost in costs.items()
    }
    return Shares(paid, follows)


def _error(plan: Plan) -> float:
    """The largest squared error of one cell, in people."""
    return max(float(each.noise_scale) / each.sensitivity.usual for each in plan.measurements) ** 2


def _times_worse(plans: Mapping[int, Plan], evaluate: Evaluate) -> dict[tuple[int, int], float]:
    """The factor on the squared error of a query if it is answered from another one of the same price."""
    sums: dict[int, Additive] = {
        place: meant for place, plan in plans.items() if (meant := additive(plan)) is not None
    }
    worse: dict[tuple[int, int], float] = {}
    for (place, wanted), (other, stored) in permutations(sums.items(), 2):
        if not stored.plan.chooses:
            own, found = variances(wanted.plan), ways(wanted, Known(stored, _NOTHING, "", ""), evaluate)
            if found.keys() == own.keys():
                worse[place, other] = max(
                    float(way.cells.max()) * way.variance / own[name] for name, way in found.items()
                )
    return worse


def _cheapest(errors: Mapping[int, float], worse: Mapping[tuple[int, int], float]) -> dict[int, int]:
    """Which queries are answered from which others. Greedy: each step takes the largest gain."""
    rides: dict[int, int] = {}
    while True:
        now = _size(_costs(errors, worse, rides))
        steps = [
            (_size(_costs(errors, worse, {**rides, place: other})), place, other)
            for place, other in worse
            if place not in rides and other not in rides and place not in rides.values()
        ]
        if not steps or min(steps)[0] >= now:
            return rides
        _, place, other = min(steps)
        rides[place] = other


def _costs(
    errors: Mapping[int, float], worse: Mapping[tuple[int, int], float], rides: Mapping[int, int]
) -> dict[int, float]:
    """The squared errors, at epsilon 1, of all queries answered from each paid plan."""
    costs = {place: error for place, error in errors.items() if place not in rides}
    for place, other in rides.items():
        costs[other] += errors[place] * worse[place, other]
    return costs


def _size(costs: Mapping[int, float]) -> float:
    return sum(math.cbrt(cost) for cost in costs.values())
