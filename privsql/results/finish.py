"""A plan and its noisy cells go in; the Answer comes out: AVG, HAVING, ORDER BY, LIMIT over noisy numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privsql.analysis.keys import KeySpace
from privsql.planning.plan import Plan
from privsql.planning.render import CELL
from privsql.results.answer import Answer
from privsql.results.consistent import Settled
from privsql.sql.expressions import Column
from privsql.sql.relations import Choose, Project, Relation, Release
from privsql.tables import Integers, NoisyTable, as_array
from privsql.types import BIGINT, Kind, Type


class Finish(Protocol):
    """Runs rendered SQL over the table `noisy`; the columns of the result, the cell's number and place first."""

    def __call__(self, sql: str, columns: Mapping[str, tuple[Any, Type]]) -> list[Any]: ...


def public_answer(plan: Plan, rows: Sequence[tuple[Any, ...]]) -> Answer:
    """The rows of a question about public tables alone, as they are."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(plan.outputs)
    arrays = (as_array(values, output.expression.type) for values, output in zip(columns, plan.outputs, strict=True))
    cells = np.arange(len(rows), dtype=np.int64)
    return Answer(tuple(arrays), plan, NoisyTable(cells, {}), cells)


def finish(plan: Plan, noisy: NoisyTable, run: Finish) -> Answer:
    """The noisy cells through everything that stands above the release."""
    assert plan.release is not None
    columns: dict[str, tuple[Any, Type]] = {CELL: (noisy.cells, BIGINT)}
    types = {field.name: field.type for field in plan.release.fields}
    for name, values in keys_of(plan, noisy).items():
        columns[name] = (values, types[name])
    for name, aggregate in Settled(plan, noisy).values.items():
        columns[name] = (aggregate, types[name])
    selected = _only_selects(plan.question.relation)
    if selected is not None:  # nothing to compute: the columns are there already
        return Answer(tuple(as_array(*columns[name]) for name in selected), plan, noisy, noisy.cells)
    cells, _, *shown = run(plan.finishing, columns)
    shown = [_listed(each) if o.expression.type.kind is Kind.LIST else each for each, o in zip(shown, plan.outputs, strict=True)]
    return Answer(tuple(shown), plan, noisy, np.asarray(cells, dtype=np.int64))


def computed_types(plan: Plan) -> Mapping[str, Type] | None:
    """The columns that `finish` computes over; None where there is nothing to compute."""
    if plan.release is None or _only_selects(plan.question.relation) is not None:
        return None
    return {CELL: BIGINT, **{field.name: field.type for field in plan.release.fields}}


def _listed(arrays: Any) -> Any:
    """Lists as Python has them, one in a cell."""
    listed = np.empty(len(arrays), dtype=object)
    listed[:] = [each if each is None else list(np.asarray(each).tolist()) for each in np.ma.getdata(arrays)]
    return listed


def _only_selects(relation: Relation) -> list[str] | None:
    """The release's columns in the order they are shown, where that is all that stands above it."""
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
