"""A plan and its noisy cells go in; masks of undetermined outputs come out.

A share of a whole is undetermined like an AVG, any other quotient where its divisor may be 0, a list of
quantiles where one of them is, and an output where one of its inputs is. All of this uses noisy and public
numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privsql.algebra.expressions import Call, calls_of
from privsql.planning.aggregates.estimate import LEVEL
from privsql.planning.aggregates.measure_aggregates import scaled_column
from privsql.planning.plan import Plan
from privsql.planning.precision.interval_arithmetic import Interval, Mask
from privsql.planning.rewrites.guarded import QUOTIENTS, guarded_part
from privsql.results.consistent import Settled
from privsql.results.intervals import interval
from privsql.tables import Integers


def undetermined_guards(
    settled: Settled, aggregates: Mapping[str, Mask], keys: Mapping[str, Any]
) -> dict[str, Mask]:
    """For each guard of a plan, by name: where its quotient or list is undetermined."""
    plan = settled.plan
    shares = settled.undetermined(plan.quotients)
    found = {}
    for name, call in plan.guards.items():
        pair = _pair(call)
        if pair in shares:
            found[name] = shares[pair]
        elif call.function in QUOTIENTS:
            found[name] = _may_be_zero(call, settled, keys)
        else:
            found[name] = _any_of([aggregates[each] for each in plan.leaves(call)], len(settled.noisy.cells))
    return found


def undetermined_outputs(
    plan: Plan, aggregates: Mapping[str, Mask], guards: Mapping[str, Mask], cells: Integers
) -> list[Mask]:
    """For each output: the rows in which one of its inputs is undetermined."""
    of_call = {call: guards[name] for name, call in plan.guards.items()}
    found = []
    for output in plan.outputs:
        masks = [aggregates[each] for each in plan.leaves(output.expression)]
        masks += [of_call[each] for each in dict.fromkeys(calls_of(output.expression)) if each in of_call]
        found.append(_any_of([mask[cells] for mask in masks], len(cells)))
    return found


def _may_be_zero(call: Call, settled: Settled, keys: Mapping[str, Any]) -> Mask:
    """Where the interval of a divisor contains 0, or is all negative although a count cannot be."""
    (divisor,), plan, size = guarded_part(call), settled.plan, len(settled.noisy.cells)
    leaves = plan.leaves(divisor)
    if any(plan.estimates[each].always_within_range for each in leaves):
        return np.zeros(size, dtype=np.bool_)
    known = settled.intervals(
        {each: plan.estimates[each] for each in leaves}, 1.0 - (1.0 - LEVEL) / len(leaves)
    )
    for name, each in known.items():
        if plan.estimates[name].nonnegative:
            known[name] = Interval(np.maximum(each.low, 0.0), np.maximum(each.high, 0.0))
    found = interval(divisor, known, keys, size)
    if found is None:  # a function without a rule, such as a test by the analyst
        return np.zeros(size, dtype=np.bool_)
    return np.asarray((found.low <= 0.0) & (found.high >= 0.0))


def _pair(call: Call) -> tuple[str | None, str | None] | None:
    """The two counts of a share of a whole."""
    if call.function != "/":
        return None
    (part, _), (whole, factor) = (scaled_column(each) for each in call.args)
    return (part, whole) if factor == 1 else None


def _any_of(masks: Sequence[Mask], size: int) -> Mask:
    return np.logical_or.reduce(masks) if masks else np.zeros(size, dtype=np.bool_)
