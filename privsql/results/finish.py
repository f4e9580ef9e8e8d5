"""A plan and its noisy cells go in; the Answer comes out, after AVG, HAVING, ORDER BY and LIMIT over noisy
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose, Project, Relation, Release
from privsql.algebra.reserved import CELL
from privsql.analysis.keys import KeySpace
from privsql.planning.plan import Plan
from privsql.results.answer import Answer, listed
from privsql.results.consistent import Settled
from privsql.results.undetermined import undetermined_guards, undetermined_outputs
from privsql.tables import Integers, NoisyTable, as_array
from privsql.types import BIGINT, BOOLEAN, Kind, Type


class Finish(Protocol):
    """Runs rendered SQL over the table `noisy`, and returns columns: the cell's number and place first."""

    def __call__(self, sql: str, columns: Mapping[str, tuple[Any, Type]]) -> list[Any]: ...


def public_answer(plan: Plan, rows: Sequence[tuple[Any, ...]]) -> Answer:
    """The rows of a query over public tables, unchanged."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(plan.outputs)
    arrays = (
        as_array(values, output.expression.type) for values, output in zip(columns, plan.outputs, strict=True)
    )
    cells = np.arange(len(rows), dtype=np.int64)
    return Answer(tuple(arrays), plan, NoisyTable(cells, {}), cells)


def finish(plan: Plan, noisy: NoisyTable, run: Finish) -> Answer:
    """Run everything above the release over the noisy cells."""
    assert plan.release is not None
    columns: dict[str, tuple[Any, Type]] = {CELL: (noisy.cells, BIGINT)}
    types, keys, settled = computed_fields(plan), keys_of(plan, noisy), Settled(plan, noisy)
    for name, values in keys.items():
        columns[name] = (values, types[name])
    unknown = settled.undetermined(plan.estimates)
    guards = undetermined_guards(settled, unknown, {name: listed(values) for name, values in keys.items()})
    for name, aggregate in settled.values.items():
        hidden = unknown[name].any() and not plan.show_all
        columns[name] = (np.ma.array(aggregate, mask=unknown[name]) if hidden else aggregate, types[name])
    for name, guard in guards.items():
        columns[name] = (np.zeros_like(guard) if plan.show_all else guard, BOOLEAN)
    selected = _only_selects(plan.query.relation)
    if selected is not None:  # nothing to compute: the columns are there already
        cells, shown = noisy.cells, [as_array(*columns[name]) for name in selected]
    else:
        found, _, *shown = run(plan.finishing, columns)
        cells = np.asarray(found, dtype=np.int64)
    shown = [
        _lists(each) if o.expression.type.kind is Kind.LIST else each
        for each, o in zip(shown, plan.outputs, strict=True)
    ]
    masks = undetermined_outputs(plan, unknown, guards, cells)
    if not plan.show_all:  # the analyst decides what COALESCE or CASE puts in place of NULL
        masks = [mask & np.ma.getmaskarray(each) for mask, each in zip(masks, shown, strict=True)]
    return Answer(tuple(shown), plan, noisy, cells, undetermined=tuple(masks))


def computed_types(plan: Plan) -> Mapping[str, Type] | None:
    """The columns that `finish` computes over; None if there is nothing to compute."""
    if plan.release is None or _only_selects(plan.query.relation) is not None:
        return None
    return {CELL: BIGINT, **computed_fields(plan), **dict.fromkeys(plan.guards, BOOLEAN)}


def computed_fields(plan: Plan) -> dict[str, Type]:
    """The columns of the release."""
    assert plan.release is not None
    return {field.name: field.type for field in plan.release.fields}


def _lists(arrays: Any) -> Any:
    """Python lists, one per cell; masked where the list itself is NULL."""
    found, missing = np.empty(len(arrays), dtype=object), np.ma.getmaskarray(arrays)
    lists = zip(np.ma.getdata(arrays), missing, strict=True)
    found[:] = [[] if gone else list(np.ma.asarray(each).tolist()) for each, gone in lists]
    return np.ma.array(found, mask=missing) if missing.any() else found


def _only_selects(relation: Relation) -> list[str] | None:
    """The columns of the release in output order, if nothing else stands above it."""
    if not isinstance(relation, Project) or not isinstance(relation.input, (Release, Choose)):
        return None
    names = [each.name for _, each in relation.columns if isinstance(each, Column)]
    return names if len(names) == len(relation.columns) else None


def keys_of(plan: Plan, noisy: NoisyTable) -> Mapping[str, Any]:
    """The keys of the noisy cells, column by column."""
    return noisy.keys if plan.space.open else key_values(plan.space, noisy.cells)


def key_values(space: KeySpace, cells: Integers) -> dict[str, Sequence[Any]]:
    """The keys of some cells of the space, column by column."""
    values: dict[str, Sequence[Any]] = {}
    whole = len(cells) == len(space)
    stride = len(space)
    for group in space.groups:
        stride //= len(group)
        for name, column in zip(group.names, group.columns, strict=True):
            if whole and len(space.groups) == 1:
                values[name] = column
            else:
                places = ((cells // stride) % len(group)).tolist()
                values[name] = [column[place] for place in places]
    return values
