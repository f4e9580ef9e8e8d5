"""A plan and its noisy cells go in; the Answer comes out: AVG, HAVING, ORDER BY, LIMIT over noisy numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from privsql.analysis.keys import KeySpace
from privsql.planning.plan import Plan
from privsql.planning.render import CELL
from privsql.results.answer import Answer
from privsql.results.estimate import estimate
from privsql.tables import Integers, NoisyTable
from privsql.types import BIGINT, Type


class Finish(Protocol):
    """Runs rendered SQL over the table `noisy`."""

    def __call__(self, sql: str, columns: Mapping[str, tuple[Any, Type]]) -> tuple[pd.DataFrame, list[str]]: ...


def finish(plan: Plan, noisy: NoisyTable, run: Finish) -> Answer:
    """The noisy cells through everything that stands above the release."""
    columns: dict[str, tuple[Any, Type]] = {CELL: (noisy.cells, BIGINT)}
    release = plan.question.release
    types = {field.name: field.type for field in release.fields}
    for name, values in key_values(plan.space, noisy.cells).items():
        columns[name] = (values, types[name])
    for name, how in plan.estimates.items():
        columns[name] = (estimate(how, noisy.noisy_columns), types[name])
    frame, duckdb_types = run(plan.finishing, columns)
    cells = frame[CELL].to_numpy(dtype=np.int64)
    shown = frame.drop(columns=[CELL, "privsql_place"])
    shown.columns = pd.Index(list(plan.question.names))
    return Answer(shown.reset_index(drop=True), plan, noisy, cells, tuple(duckdb_types[2:]))


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
