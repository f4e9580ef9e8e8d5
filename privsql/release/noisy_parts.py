"""The plan of a release and its noisy numbers go in; its parts come out; and as arrays, to be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from privsql.answers.release_file import NoisyArrays
from privsql.equivalence.written import digest
from privsql.noise.marginals.residual_noise import NoisyResiduals
from privsql.planning.marginals.joint_plan import JointPlan, ReleasePart
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.privacy.events import Gaussian
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.query_release import NoisyPart, ReleasedPlan
from privsql.release.residual_tables import ResidualTables
from privsql.release.strategy_tables import StrategyTables
from privsql.tables import Integers


def parts_of_plan(plan: ReleasedPlan) -> Sequence[ReleasePart]:
    """The parts of a release; marginals alone are one."""
    return plan.parts if isinstance(plan, JointPlan) else (plan,)


def event_of(plan: ReleasedPlan) -> Gaussian:
    """What the ledger charges for all parts."""
    return plan.event if isinstance(plan, JointPlan) else plan.measurement.event


def part_with(part: ReleasePart, noisy: NoisyResiduals | Integers) -> NoisyPart:
    """A part with its noisy numbers."""
    if isinstance(part, StrategyPlan):
        assert isinstance(noisy, np.ndarray)
        return part, StrategyTables(part, noisy)
    assert isinstance(noisy, dict)
    return part, ResidualTables(part.measurement, noisy)


def signature_of(plan: ReleasedPlan) -> str:
    """What tells a release from others, whatever the state of the data."""
    parts = [_meaning(each) for each in parts_of_plan(plan)]
    by = plan.relation_of_neighbours, [each.measurement.by for each in parts_of_plan(plan)]
    return digest(repr((plan.sql, plan.columns, plan.epsilon, plan.delta, by, parts)))


def _meaning(part: ReleasePart) -> object:
    if isinstance(part, ResidualPlan):
        return part.first, part.sets
    queries = part.asked.queries
    arrays = digest(part.asked.kind_of.tobytes().hex()), digest(queries.gram.tobytes().hex())
    return part.first, part.asked.what, queries.many, arrays


def arrays_of(parts: Sequence[NoisyPart]) -> NoisyArrays:
    """All noisy numbers, by part; and the strategies, which another machine might round otherwise."""
    found: dict[str, Integers] = {}
    for place, (part, tables) in enumerate(parts):
        if isinstance(tables, ResidualTables):
            found |= {f"{place}/{_name(each)}": array for each, array in tables.noisy.items()}
        else:
            assert isinstance(part, StrategyPlan)
            found |= {f"{place}/noisy": tables.noisy, f"{place}/strategy": part.measurement.strategy}
    return found


def parts_of_arrays(parts: Sequence[ReleasePart], arrays: NoisyArrays) -> tuple[NoisyPart, ...] | None:
    """The parts of a plan with stored noisy numbers; None where these are not what it measures."""
    found = [_read(part, _own(arrays, place)) for place, part in enumerate(parts)]
    known = [each for each in found if each is not None]
    return tuple(known) if len(known) == len(parts) else None


def _own(arrays: NoisyArrays, place: int) -> NoisyArrays:
    start = f"{place}/"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _read(part: ReleasePart, arrays: NoisyArrays) -> NoisyPart | None:
    if any(array.dtype != np.int64 for array in arrays.values()):
        return None
    if isinstance(part, StrategyPlan):
        return _read_strategy(part, arrays)
    noisy = {each: arrays[_name(each)] for each in part.residuals if _name(each) in arrays}
    return (part, ResidualTables(part.measurement, noisy)) if _fits(part, noisy, arrays) else None


def _fits(part: ResidualPlan, noisy: Mapping[Columns, Integers], arrays: NoisyArrays) -> bool:
    sizes = part.measurement.sizes
    shapes = (array.shape == tuple(sizes[each] for each in columns) for columns, array in noisy.items())
    return len(noisy) == len(arrays) == len(part.residuals) and all(shapes)


def _read_strategy(part: StrategyPlan, arrays: NoisyArrays) -> NoisyPart | None:
    """The part with the strategy that was measured. Raises ValueError if its noise did not cover it."""
    noisy, strategy = arrays["noisy"], arrays["strategy"]
    rows = len(strategy) + part.measurement.by.total_is_public
    if strategy.ndim != 2 or strategy.shape[1] != part.asked.kinds or noisy.shape != (rows,):
        return None
    measured = replace(part, measurement=replace(part.measurement, strategy=strategy))
    return measured, StrategyTables(measured, noisy)


def _name(columns: Columns) -> str:
    return ",".join(map(str, columns))
