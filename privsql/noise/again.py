"""A plan and its exact tables go in; many noisy releases of the same exact cells come out, for audits and
accuracy measurements.

Numbers, quantiles and keys are drawn in one pass: the plan gets a further key that numbers the releases, its
exact rows are repeated for each release, and add_noise runs once. A selection without groups is drawn once
per release instead, because a further key would turn it into a different selection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose, Key, Release
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.noise.add_noise import Run, add_noise, laid_out
from privsql.noise.add_noise import _chosen as chosen
from privsql.noise.add_noise import _groups as choices_made
from privsql.noise.randomness import Randomness
from privsql.planning.plan import Plan
from privsql.tables import ExactTable, Integers
from privsql.types import BIGINT

RELEASE = "privsql_release"  # the reserved name of the key that numbers releases
MISSING = np.iinfo(np.int64).min  # stands for a cell that a release does not show
# with more cells than this, only those that differ (and a few others) are released many times
_MOST_CELLS = 64
_MORE = 2


@dataclass(frozen=True)
class Outcomes:
    """What the releases showed: one row per release, one named column per visible value."""

    names: tuple[str, ...]
    seen: Integers


def one_by_one(plan: Plan) -> bool:
    """Whether the releases must be drawn one at a time."""
    return plan.selected_by is not None and not plan.selected_by.in_groups


def differing(plan: Plan, exact: Sequence[ExactTable], other: Sequence[ExactTable]) -> tuple[int, ...] | None:
    """The cells where the exact tables of two neighbours differ, and a few more; None stands for all
    cells.
    """
    if plan.space.open or plan.chooses or not plan.counts or len(plan.space) <= _MOST_CELLS:
        return None
    one, two = (laid_out(plan.space, each[0]) for each in (exact, other))
    moved = np.flatnonzero(sum((one[name] != two[name]).astype(np.int64) for name in one))
    if not len(moved) or plan.of_values:
        return None
    more = np.setdiff1d(np.arange(_MORE + len(moved)), moved)[:_MORE]
    return tuple(int(cell) for cell in (*moved[:_MOST_CELLS], *more))


def release_again(
    plan: Plan,
    exact: Sequence[ExactTable],
    times: int,
    source: Randomness,
    run: Run,
    cells: Sequence[int] | None = None,
) -> Outcomes:
    """Draw `times` releases of the same exact tables by add_noise, of all cells or only of `cells`."""
    if one_by_one(plan):
        seen = np.stack(list(_choices(plan, exact[0], times, source)))
        return Outcomes(tuple(f"place {place + 1}" for place in range(seen.shape[1])), seen)
    if cells is not None:
        plan = _changed(plan, _only(plan.space, cells), plan.release)
    size = len(plan.space)
    many = _changed(plan, _numbered(plan.space, times), _with_key(plan.release))
    noisy = add_noise(
        many, [_repeated(each, times) for each in exact], source, lambda sql: _repeated(run(sql), times)
    )
    if plan.chooses:
        groups = len(noisy.cells) // times
        return Outcomes(
            tuple(f"group {group + 1}" for group in range(groups)), noisy.cells.reshape(times, groups) % size
        )
    if plan.space.open:
        return _of_keys(noisy.keys, noisy.noisy_columns, times)
    names: list[str] = []
    numbers: list[Integers] = []
    for name, values in noisy.noisy_columns.items():
        shown = np.full(times * size, MISSING)
        shown[noisy.cells] = values
        names += [f"{name} of cell {cell + 1}" if size > 1 else name for cell in range(size)]
        numbers.append(shown.reshape(times, size))
    return Outcomes(tuple(names), np.concatenate(numbers, axis=1))


def _changed(plan: Plan, space: KeySpace, release: Release | Choose | None) -> Plan:
    """The same plan over other cells."""
    (one,) = plan.releases
    return replace(plan, releases=(replace(one, space=space, release=release),))


def _choices(plan: Plan, exact: ExactTable, times: int, source: Randomness) -> Iterator[Integers]:
    """What add_noise does for a selection, with the scores laid out only once."""
    release, measurement = plan.release, plan.selected_by
    assert isinstance(release, Choose)
    assert measurement is not None
    exact_scores = laid_out(plan.space, exact)[measurement.columns[0]] * (1 if release.largest else -1)
    groups = choices_made(release, plan.space)
    for _ in range(times):
        yield chosen(exact_scores, measurement, groups, source)


def _of_keys(keys: Any, noisy_columns: Any, times: int) -> Outcomes:
    """Outcomes for undeclared keys: each key that was ever shown, with its numbers or just that it was
    shown.
    """
    releases = np.asarray(keys[RELEASE], dtype=np.int64)
    own = [
        np.ma.filled(np.ma.asarray(values).astype(object), None)
        for name, values in keys.items()
        if name != RELEASE
    ]
    rows = list(zip(*own, strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(rows))}
    codes = np.array([places[row] for row in rows], dtype=np.int64)
    columns = {"key is shown": np.ones(len(rows), dtype=np.int64), **noisy_columns}
    names, seen = [], []
    for name, values in columns.items():
        shown = np.full((times, len(places)), MISSING)
        shown[releases, codes] = values
        names += [f"{name}: {', '.join(map(str, key))}" for key in places]
        seen.append(shown)
    return Outcomes(
        tuple(names), np.concatenate(seen, axis=1) if names else np.zeros((times, 0), dtype=np.int64)
    )


def _numbered(space: KeySpace, times: int) -> KeySpace:
    return KeySpace(
        (RELEASE, *space.names), (KeyGroup((RELEASE,), (range(times),)), *space.groups), space.open
    )


def _with_key(release: Release | Choose | None) -> Release | Choose | None:
    key = Key(RELEASE, Column(RELEASE, BIGINT), RELEASE)
    match release:
        case Choose():
            return replace(release, keys=(key, *release.keys), within=release.within + 1)
        case Release():
            return replace(release, keys=(key, *release.keys))
        case None:  # pragma: no cover -- public rows have no noise, so nobody measures it
            return None


def _only(space: KeySpace, cells: Sequence[int]) -> KeySpace:
    """Some cells of a space, as one group of keys."""
    columns: dict[str, list[Any]] = {name: [] for group in space.groups for name in group.names}
    for cell in cells:
        rest = cell
        for group in reversed(space.groups):
            rest, place = divmod(rest, len(group))
            for name, values in zip(group.names, group.columns, strict=True):
                columns[name].append(values[place])
    return KeySpace(space.names, (KeyGroup(tuple(columns), tuple(columns.values())),))


def _repeated(exact: ExactTable, times: int) -> ExactTable:
    rows = len(next(iter(exact.exact_columns.values())))
    places = np.tile(np.arange(rows), times)
    keys: dict[str, Any] = {RELEASE: np.repeat(np.arange(times, dtype=np.int64), rows)}
    keys |= {name: values[places] for name, values in exact.exact_keys.items()}
    return ExactTable(keys, {name: values[places] for name, values in exact.exact_columns.items()})
