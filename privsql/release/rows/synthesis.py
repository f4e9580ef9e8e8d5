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
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.workload import MOST_COLUMNS, marginals
from privsql.policy.checks import delta_of
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.query_release import QueryRelease
from privsql.release.release_request import ReleaseRequest
from privsql.release.releases import StoredReleases
from privsql.release.rows.dense_fit import MOST_DENSE, Dense, Groups, fitted_table, grouped
from privsql.release.rows.multiplicative_weights import learned
from privsql.release.rows.row_edits import corrected
from privsql.release.rows.synthetic import Line, Synthetic
from privsql.release.rows.synthetic_rows import (
    can_be_drawn,
    column_values,
    rows_of,
    systematic_counts,
    uniform,
)
from privsql.release.shrinkage import Floats, onto_total
from privsql.request import argument
from privsql.requests.pipeline import Pipeline
from privsql.tables import Integers

_METHODS = ("auto", "maxent", "mwem")
_MOST_ROWS = 10**8
_MOST_COUNTED = 10**7  # without rows=: a noisy count has no bound


@dataclass(frozen=True)
class SynthesisRequest:
    """A table, and how a synthetic one is to be made of it.

    `Session.synthesize` takes these arguments.
    """

    table: str = field(metadata={"help": "the name of the table"})
    columns: Sequence[str] | None = argument(None, "the columns; by default all but those of the unit")
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole table")
    delta: float = argument(0.0, "the chance that the promise fails; 0 for 'mwem'")
    _: KW_ONLY
    rows: int | None = argument(
        None, "how many rows to make; by default as many as were counted, up to 10 million"
    )
    method: str = argument(
        "auto", "'maxent', which needs a delta, or 'mwem'; by default the former with a delta"
    )
    rounds: int = argument(10, "how many marginals 'mwem' measures")
    ways: int = argument(3, "how many columns the rows are fitted to at once")
    bins: Mapping[str, Any] | None = argument(None, "parts of ranges, as privsql.marginals takes them")
    max_groups: int | None = argument(None, "combinations of cells that one unit may be in")
    max_rows: int | None = argument(None, "rows that one unit may have in one combination")

    def checked(self) -> None:
        """Raise ArgumentError for arguments that make no sense."""
        delta_of(self.delta)
        if not isinstance(self.method, str) or self.method not in _METHODS:
            problem = f"there is no method {self.method!r} for synthetic tables"
            raise ArgumentError("argument-method", problem, did_you_mean(str(self.method), _METHODS))
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or not 1 <= self.rounds <= 1_000:
            problem = "rounds must be a whole number from 1 to 1,000"
            raise ArgumentError("argument-rounds", problem, "rounds=10")
        many = self.rows
        if many is not None and (
            isinstance(many, bool) or not isinstance(many, int) or not 0 < many <= _MOST_ROWS
        ):
            problem = f"rows must be a whole number from 1 to {_MOST_ROWS:,}"
            raise ArgumentError("argument-rows", problem, "rows=1000")


@dataclass(frozen=True)
class Model:
    """A distribution over all columns, and the marginals that it was made from."""

    plan: ResidualPlan | MwemPlan
    groups: Groups
    table: Dense
    rows: int
    sources: Sequence[tuple[Columns, Floats, float]]  # columns, counts, and the deviation of a cell
    release: QueryRelease | None = None


def synthesize(request: SynthesisRequest, releases: StoredReleases, pipeline: Pipeline) -> Synthetic:
    """Measure marginals of a table, and make rows that have them.

    The rows are post-processing. By maximum entropy, an interruption after the charge loses nothing, since
    the same call finds the release stored.
    """
    request.checked()
    with pipeline.snapshot():
        scan = pipeline.scan(request.table)
    workload = marginals(_columns(request, scan), request.ways, request.bins)
    wanted = ReleaseRequest(
        workload,
        request.table,
        request.epsilon,
        request.delta,
        max_groups=request.max_groups,
        max_rows=request.max_rows,
    )
    method = request.method if request.method != "auto" else "maxent" if request.delta else "mwem"
    model = _maxent(wanted, releases) if method == "maxent" else _mwem(wanted, request.rounds, releases)
    return _synthetic(model, method, _rows(model) if request.rows is None else request.rows, pipeline)


def _rows(model: Model) -> int:
    return max(1, min(model.rows, _MOST_COUNTED))


def _maxent(wanted: ReleaseRequest, releases: StoredReleases) -> Model:
    """The distribution of greatest entropy with the marginals of a release."""
    before = releases.explain(wanted)
    _refuse_large(before.columns)
    release = releases.release(wanted)
    plan = release.plan
    assert isinstance(plan, ResidualPlan), "marginals alone were asked for"
    groups = grouped(plan.measurement.sizes, release.ways + 1)
    shown = {each: release.tables.shown(each) for each in plan.sets}
    margins = [release.tables.shown((each,)) for each in range(len(release.columns))]
    sources = [
        (columns, release.tables.shown(columns), plan.error_of(columns).deviation)
        for size in range(1, release.ways + 1)
        for columns in combinations(range(len(release.columns)), size)
    ]
    table = fitted_table(groups, shown, margins)
    return Model(plan, groups, table, release.rows, sources, release)


def _mwem(wanted: ReleaseRequest, rounds: int, releases: StoredReleases) -> Model:
    """The distribution that multiplicative weights learn in some rounds."""
    if wanted.delta:
        problem = "MWEM is private without a delta, and would waste it"
        raise ArgumentError("argument-delta", problem, "leave delta out")
    plan = releases.plan_mwem(wanted, rounds)
    _refuse_large(plan.columns)
    groups = grouped(plan.sizes, plan.ways + 1)
    plan, measured = releases.mwem(wanted, rounds, lambda so_far: learned(groups, so_far).believed(plan.sets))
    weights = learned(groups, measured)
    deviation = plan.measurement.deviation
    sources = [
        (columns, onto_total(noisy.astype(np.float64), weights.rows), deviation)
        for columns, noisy in measured
    ]
    return Model(plan, groups, weights.table, round(weights.rows), sources)


def _columns(request: SynthesisRequest, scan: Scan) -> Sequence[str]:
    if request.columns is not None:
        return request.columns
    own = {name.lower() for name in scan.unit.columns} if scan.unit is not None else set()
    names = [each.name for each in scan.fields if each.name.lower() not in own]
    if not names or len(names) > MOST_COLUMNS:
        problem = f"{scan.table} has {len(names)} columns, and a synthetic table at most {MOST_COLUMNS}"
        raise ArgumentError("argument-columns", problem, "name some: columns=[...]")
    return names


def _refuse_large(columns: Sequence[ColumnCells]) -> None:
    """Refuse a domain that does not fit into memory, or has values that cannot be drawn, before anything is
    charged.
    """
    for each in columns:
        if not can_be_drawn(each):
            name = each.column.name
            problem = f"values of {name} cannot be drawn: they, or its parts, are too large for 64 bits"
            rest = [one.column.name for one in columns if one.column.name != name]
            alone = f"narrower parts of {name}, in bins=" if each.edges else "session.release, for its counts"
            ways = f"leave {name} out: columns={rest}" if rest else alone
            raise Refused("refused-large-domain", problem, ways)
    cells = math.prod(each.size for each in columns)
    if cells > MOST_DENSE:
        largest = sorted(columns, key=lambda each: -each.size)[:3]
        shown = ", ".join(f"{each.column.name} ({each.size})" for each in largest)
        problem = f"the columns have {cells:,} combinations of cells, and the most is {MOST_DENSE:,}"
        ways = f"fewer columns, or fewer bins of those with most cells: {shown}; a release has no such bound"
        raise Refused("refused-large-domain", problem, ways)


def _synthetic(model: Model, method: str, rows: int, pipeline: Pipeline) -> Synthetic:
    plan, source = model.plan, pipeline.randomness
    codes = _codes(model, rows, source)
    frame = pd.DataFrame(
        {
            each.column.name: column_values(each, codes[place], source)
            for place, each in enumerate(plan.columns)
        }
    )
    table = pipeline.schema.table(plan.table)
    types = {} if table is None else {each.name: each.type_name for each in table.columns}
    return Synthetic(frame, plan, method, _lines(model, codes, rows), types, model.release)


def _codes(model: Model, rows: int, source: Randomness) -> list[Integers]:
    """The cells of the rows, column by column."""
    drawn, candidates = (_drawn(model, many, source) for many in (rows, rows))
    ways = max(len(columns) for columns, _, _ in model.sources)
    goals = [(columns, counts) for columns, counts, _ in model.sources if len(columns) == ways]
    return corrected(drawn, candidates, goals)


def _drawn(model: Model, rows: int, source: Randomness) -> list[Integers]:
    counts = systematic_counts(model.table, rows, float(uniform(1, source)[0]))
    order = model.groups.order
    listed = rows_of(counts, [model.groups.sizes[each] for each in order], source)
    found = dict(zip(order, listed, strict=True))
    return [found[each] for each in range(len(order))]


def _lines(model: Model, codes: Sequence[Integers], rows: int) -> list[Line]:
    """How far the rows are from each marginal that they were made from."""
    found = []
    for columns, counts, deviation in model.sources:
        total = max(float(counts.sum()), 1e-300)
        off = np.abs(_counted(codes, columns, counts) / rows - counts / total).sum() / 2
        names = tuple(model.plan.names[each] for each in columns)
        found.append(Line(names, counts.size, deviation, total, float(off)))
    return found


def _counted(codes: Sequence[Integers], columns: Sequence[int], like: Floats) -> Floats:
    places = np.ravel_multi_index([codes[each] for each in columns], like.shape)
    return np.bincount(places, minlength=like.size).reshape(like.shape).astype(np.float64)
