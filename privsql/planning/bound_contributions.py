"""A draft goes in; it comes out with a bound on one person's rows: known from the tables, enforced by limits,
or kept by a stored copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privsql.algebra.expressions import Column
from privsql.algebra.numbering import most_numbered
from privsql.algebra.owners import one_row_a_key, owner
from privsql.algebra.relations import Choose, Limits, Relation, Release, walk
from privsql.analysis.derive import names_in
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import Stability, bounded, limits_of, stability
from privsql.planning.draft import Draft
from privsql.planning.limits.bounding import Bounding, bounding_by_rank, bounding_of, bounding_within
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from privsql.planning.plan import Plan
from privsql.planning.pricing import LEVEL
from privsql.planning.rewrites.prepared import AdHoc, PreparedRows, no_copies, prepared_rows
from privsql.planning.rewrites.stored_unit_counts import units_by_key
from privsql.privacy.accuracy import LaplaceLaw


def bound_contributions(draft: Draft) -> Draft:
    """Bound the rows of one unit, and note what that drops of units with more."""
    release, look = draft.release, draft.task.look
    within = bounding_within(release)
    dropped = () if within is None else (within,)
    known = stability(release.input, look)
    if known.rows is not None:
        return _with(draft, stability=known, bounding=dropped, steps=_steps(release.input, look))
    limits = _limits(release)
    units = bounded(limits, draft.cells)
    sentences = (bounding_of(release, limits, draft.space), *dropped)
    by_key = None if draft.space.open else units_by_key(release, draft.space, draft.task.copies)
    if by_key is not None:
        steps = _steps(by_key.input, look)
        return _with(draft, release=by_key, stability=units, limits=limits, bounding=sentences, steps=steps)
    stored = None
    if not draft.space.open:
        stored = prepared_rows(release, _ad_hoc(draft, limits, units), look, draft.task.copies)
    if isinstance(stored, PreparedRows):
        of_copy = bounding_by_rank(release, stored.scan, limits)
        copied = replace(release, input=stored.relation)
        return _with(
            draft,
            release=copied,
            stability=stored.stability,
            bounding=(of_copy, *dropped),
            steps=stored.steps,
        )
    why_not = () if stored is None else (stored,)
    return _with(
        draft,
        stability=units,
        limits=limits,
        bounding=sentences,
        steps=_steps(release.input, look),
        notes=why_not,
    )


def _with(
    draft: Draft,
    *,
    stability: Stability,
    bounding: tuple[Bounding, ...],
    steps: Mapping[Relation, Stability],
    release: Release | Choose | None = None,
    limits: Limits | None = None,
    notes: tuple[str, ...] = (),
) -> Draft:
    """The draft with this stability and limits. Only a `bounding` that may drop something is reported."""
    return replace(
        draft,
        release=release or draft.release,
        stability=stability,
        limits=limits,
        bounding=tuple(each for each in bounding if each),
        steps=steps,
        notes=notes,
    )


def _ad_hoc(draft: Draft, limits: Limits, units: Stability) -> AdHoc:
    """The limits on one unit without a copy."""
    task = draft.task
    sets = isinstance(draft.release, Release) and draft.release.sets
    assert units.rows is not None

    def less() -> Fraction:
        return _of_laplace(draft.replan(replace(task, copies=no_copies))) if task.offer.delta else Fraction(1)

    return AdHoc(
        units.rows // limits.max_rows,
        limits.max_rows,
        None if sets else draft.cells,
        task.neighbours.moves,
        less,
        task.offer.mechanism == "gaussian",
    )


def _of_laplace(ad_hoc: Plan) -> Fraction:
    """An upper bound on the noise of a plan as a fraction of Laplace noise."""
    widths = (
        (m.half_width(LEVEL), LaplaceLaw(float(m.loss) / m.l1).half_width(LEVEL))
        for m in ad_hoc.measurements
        if isinstance(m, GaussianMeasurement)
    )
    # widths are rounded
    return min((Fraction(ours, theirs + 1) for ours, theirs in widths), default=Fraction(1))


def _limits(release: Release | Choose) -> Limits:
    """The limits on one unit: as declared, or lower if the keys allow it."""
    bounds = limits_of(release.input)
    if names_in([key.expression for key in release.keys]) <= owner(release.input).fixed:
        bounds = replace(bounds, max_groups=1)  # all rows of a unit are in one key
    columns = [key.expression.name for key in release.keys if isinstance(key.expression, Column)]
    if one_row_a_key(release.input, columns):
        return replace(bounds, max_rows=1)
    numbered = most_numbered(release.input, columns)
    return bounds if numbered is None else replace(bounds, max_rows=min(bounds.max_rows, numbered))


def _steps(relation: Relation, look: Look) -> Mapping[Relation, Stability]:
    """How many rows one person can touch at every step, for EXPLAIN."""
    return {each: stability(each, look) for each in walk(relation)}
