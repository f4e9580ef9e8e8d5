"""A table and a price go in; its marginals are released, a distribution is fitted to them, and a Synthetic
comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from privsql.algebra.relations import Scan
from privsql.errors import ArgumentError, Refused, did_you_mean
from privsql.noise.randomness import Randomness
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.workload import MOST_COLUMNS, marginals
from privsql.release.dense_fit import MOST_DENSE, fitted_table, grouped
from privsql.release.query_release import QueryRelease
from privsql.release.releases import ReleaseRequest, StoredReleases
from privsql.release.shrinkage import Floats
from privsql.release.synthetic import Synthetic
from privsql.release.synthetic_rows import column_values, rows_of, systematic_counts, uniform
from privsql.request import argument
from privsql.requests.stages import Stages
from privsql.tables import Integers

_METHODS = ("auto", "maxent")
_MOST_ROWS = 10**8


@dataclass(frozen=True)
class SynthesisRequest:
    """A table, and how a synthetic one is to be made of it.

    `Session.synthesize` takes these arguments.
    """

    table: str = field(metadata={"help": "the name of the table"})
    columns: Sequence[str] | None = argument(None, "the columns; by default all but those of the unit")
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole table")
    delta: float = argument(0.0, "the chance that the promise fails; above 0, as the noise is Gaussian")
    _: KW_ONLY
    rows: int | None = argument(None, "how many rows to make; by default as many as were counted")
    method: str = argument("auto", "how rows are made: 'maxent', which 'auto' takes")
    ways: int = argument(3, "how many columns the rows are fitted to at once")
    bins: Mapping[str, Any] | None = argument(None, "parts of ranges, as privsql.marginals takes them")
    max_groups: int | None = argument(None, "combinations of cells that one unit may be in")
    max_rows: int | None = argument(None, "rows that one unit may have in one combination")

    def checked(self) -> None:
        """Raise ArgumentError for arguments that make no sense."""
        if self.method not in _METHODS:
            problem = f"there is no method {self.method!r} for synthetic tables"
            raise ArgumentError("argument-method", problem, did_you_mean(str(self.method), _METHODS))
        many = self.rows
        if many is not None and (
            isinstance(many, bool) or not isinstance(many, int) or not 0 < many <= _MOST_ROWS
        ):
            problem = f"rows must be a whole number from 1 to {_MOST_ROWS:,}"
            raise ArgumentError("argument-rows", problem, "rows=1000")


def synthesize(request: SynthesisRequest, releases: StoredReleases, stages: Stages) -> Synthetic:
    """Release the marginals of a table, and make rows that have them.

    The rows are post-processing: an interruption after the charge loses nothing, since the same call finds
    the release stored.
    """
    request.checked()
    with stages.snapshot():
        scan = stages.scan(request.table)
    workload = marginals(_columns(request, scan), request.ways, request.bins)
    wanted = ReleaseRequest(
        workload,
        request.table,
        request.epsilon,
        request.delta,
        max_groups=request.max_groups,
        max_rows=request.max_rows,
    )
    _refuse_large(releases.explain(wanted))
    release = releases.release(wanted)
    rows = release.rows if request.rows is None else request.rows
    return _synthetic(release, rows, stages)


def _columns(request: SynthesisRequest, scan: Scan) -> Sequence[str]:
    if request.columns is not None:
        return request.columns
    own = {name.lower() for name in scan.unit.columns} if scan.unit is not None else set()
    names = [each.name for each in scan.fields if each.name.lower() not in own]
    if not names or len(names) > MOST_COLUMNS:
        problem = f"{scan.table} has {len(names)} columns, and a synthetic table at most {MOST_COLUMNS}"
        raise ArgumentError("argument-columns", problem, "name some: columns=[...]")
    return names


def _refuse_large(plan: ResidualPlan) -> None:
    """Refuse a domain that does not fit into memory, before anything is charged."""
    cells = math.prod(plan.measurement.sizes)
    if cells > MOST_DENSE:
        largest = sorted(plan.columns, key=lambda each: -each.size)[:3]
        shown = ", ".join(f"{each.column.name} ({each.size})" for each in largest)
        problem = f"the columns have {cells:,} combinations of cells, and the most is {MOST_DENSE:,}"
        ways = f"fewer columns, or fewer bins of those with most cells: {shown}; a release has no such bound"
        raise Refused("refused-large-domain", problem, ways)


def _synthetic(release: QueryRelease, rows: int, stages: Stages) -> Synthetic:
    plan, source = release.plan, stages.randomness
    codes = _codes(release, rows, source)
    frame = pd.DataFrame(
        {
            each.column.name: column_values(each, codes[place], source)
            for place, each in enumerate(plan.columns)
        }
    )
    table = stages.schema.table(plan.table)
    types = {} if table is None else {each.name: each.type_name for each in table.columns}
    return Synthetic(frame, release, "maxent", _differences(release, codes, rows), types)


def _codes(release: QueryRelease, rows: int, source: Randomness) -> list[Integers]:
    """The cells of the rows, column by column."""
    sizes, every = release.plan.measurement.sizes, range(len(release.columns))
    start = float(uniform(1, source)[0])
    if release.ways == len(release.columns):  # the release has the whole table
        shown = release.tables.shown(tuple(every)).astype(np.float32)
        return rows_of(systematic_counts(shown, rows, start), sizes, source)
    groups = grouped(sizes, release.ways + 1)
    wanted = {columns: release.tables.shown(columns) for columns in release.plan.sets}
    fitted = fitted_table(groups, wanted, [release.tables.shown((each,)) for each in every])
    counts = systematic_counts(fitted, rows, start)
    in_order = rows_of(counts, [sizes[each] for each in groups.order], source)
    found = dict(zip(groups.order, in_order, strict=True))
    return [found[each] for each in every]


def _differences(release: QueryRelease, codes: Sequence[Integers], rows: int) -> dict[tuple[str, ...], float]:
    """The total variation between the rows and each marginal that the release shows."""
    found = {}
    for size in range(1, release.ways + 1):
        for columns in combinations(range(len(codes)), size):
            shown = release.tables.shown(columns)
            made = _counted(codes, columns, shown)
            off = np.abs(made / rows - shown / max(float(shown.sum()), 1e-300)).sum() / 2
            found[tuple(release.columns[each] for each in columns)] = float(off)
    return found


def _counted(codes: Sequence[Integers], columns: Sequence[int], like: Floats) -> Floats:
    places = np.ravel_multi_index([codes[each] for each in columns], like.shape)
    return np.bincount(places, minlength=like.size).reshape(like.shape).astype(np.float64)
