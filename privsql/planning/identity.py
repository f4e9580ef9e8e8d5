"""A plan goes in; its identity comes out: what it measures and how, without names or a price.

Two plans with the same identity run SQL that gives the same exact cells on every database, up to the names
and the order of columns and keys, and their noise covers the same sensitivities. So the noisy cells of one
can be read as those of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsql.analysis.domain import DayRange
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.equivalence.release_form import Meaning, meaning
from privsql.equivalence.written import digest, structure
from privsql.planning.plan import Plan
from privsql.tables import Integers, NullLast

_LARGE = 10_000  # with more combinations of keys, two lists count as the same only in the same order


@dataclass(frozen=True)
class Identity:
    """`keys` and `columns` are this plan's own names, in the order shared by all plans of one identity."""

    digest: str
    meaning: Meaning
    keys: tuple[str, ...]
    columns: tuple[str, ...]


def identity(plan: Plan) -> Identity:
    """The identity of a plan. A plan over public tables only measures nothing."""
    assert plan.release is not None, "a query about public tables"
    what = meaning(plan.release, plan.space.open)
    ordered = sorted(zip(what.key_places, [key.name for key in plan.release.keys], strict=True))
    keys = [name for _, name in ordered]
    keys += [name for name in plan.space.names if name not in keys]  # which grouping set a row belongs to
    place = {name: index for index, name in enumerate(keys)}
    names = [name for name, _ in getattr(plan.release, "aggregates", ())]
    aggregates = dict(zip(names, what.aggregate_places, strict=False))
    measured = sorted(_measured(plan, index, aggregates) for index in range(len(plan.measurements)))
    text = repr(
        (
            what.digest,
            plan.relation_of_neighbours.value,
            structure(plan.limits),
            plan.space.open,
            sorted(_values(group, place) for group in plan.space.groups),
            [each for each, _ in measured],
        )
    )
    return Identity(
        digest(text), what, tuple(keys), tuple(name for _, columns in measured for name in columns)
    )


def cells_of(stored: Plan, wanted: Plan) -> Integers:
    """For each cell of one plan, the number of the same cell in another plan of the same identity."""
    names = dict(zip(identity(wanted).keys, identity(stored).keys, strict=True))
    steps = strides(stored.space)
    cells = np.arange(len(wanted.space), dtype=np.int64)
    found = np.zeros(len(wanted.space), dtype=np.int64)
    for group, stride in strides(wanted.space):
        own = [names[name] for name in group.names]
        other, step = next(each for each in steps if own[0] in each[0].names)
        columns = tuple(other.columns[other.names.index(name)] for name in own)
        found += places_of(columns, group.columns)[cells // stride % len(group)] * step
    return found


def strides(space: KeySpace) -> list[tuple[KeyGroup, int]]:
    """For each group, how far apart two cells are that differ by one place in it: the last group varies
    fastest.
    """
    listed, stride = [], len(space)
    for group in space.groups:
        stride //= len(group)
        listed.append((group, stride))
    return listed


def places_of(listed: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> Integers:
    """The place of each combination of values in a list, or -1."""
    place = {row: index for index, row in enumerate(zip(*listed, strict=True))}
    return np.array([place.get(row, -1) for row in zip(*wanted, strict=True)], dtype=np.int64)


def _measured(plan: Plan, index: int, aggregates: Mapping[str, int]) -> tuple[str, list[str]]:
    """The identity of one measurement: its sensitivity, and how aggregates are computed from its columns."""
    measurement = plan.measurements[index]
    columns = [(_uses(plan, column, aggregates), column) for column in measurement.columns]
    if plan.limits is None:
        columns.sort()  # where units are bounded, each of several counts takes what the earlier ones leave
    text = structure((measurement.mechanism, measurement.sensitivity, [uses for uses, _ in columns]))
    return text, [column for _, column in columns]


def _uses(plan: Plan, column: str, aggregates: Mapping[str, int]) -> str:
    """How aggregates, by their places, are computed from this column and others."""
    found = []
    for name, estimate in plan.estimates.items():
        if column in estimate.columns:
            known = {each: f"#{number}" for number, each in enumerate(estimate.columns)}
            found.append(f"{aggregates[name]} by {known[column]} of {_renamed(structure(estimate), known)}")
    return str(sorted(found))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(repr(old), repr(new))
    return text


def _values(group: KeyGroup, place: Mapping[str, int]) -> str:
    """The keys of a group, by their places, and the combinations of values that they can have."""
    order = sorted(range(len(group.names)), key=lambda index: place[group.names[index]])
    columns = [group.columns[index] for index in order]
    if len(columns) == 1:
        return f"{[place[name] for name in group.names]}: {_listed(columns[0])}"
    rows = [repr(row) for row in zip(*columns, strict=True)]
    listed = rows if len(rows) > _LARGE else sorted(rows)
    return f"{sorted(place[name] for name in group.names)}: {digest(str(listed))}"


def _listed(values: Sequence[Any]) -> str:
    match values:
        case NullLast():
            return f"{_listed(values.values)} or NULL"
        case range():
            return repr(values)
        case DayRange():
            return f"{values.low} and {values.days} days"
        case _:
            return digest(str(sorted(map(repr, values))))
