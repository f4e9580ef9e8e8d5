"""A Question, the neighbour relation and an epsilon go in; a Plan comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.analysis.derive import Facts, derive, names_in
from privsql.analysis.domain import MAX_KEYS
from privsql.analysis.keys import Evaluate, KeySpace, key_space, open_space
from privsql.analysis.look import Look
from privsql.analysis.public_keys import public_groups
from privsql.analysis.stability import Stability, bounded, limits_of, stability
from privsql.errors import ArgumentError, Refused, did_you_mean
from privsql.planning import render
from privsql.planning.estimates import Estimate
from privsql.planning.exact_sql import exact_sql
from privsql.planning.measurement import Measurement, Mechanism, choice_factor, measure, measure_keys
from privsql.planning.parts import UNCOUNTED, Part, Surroundings, choice_parts, release_parts, units_part
from privsql.planning.per_unit import lowered, settled
from privsql.planning.plan import Output, Plan
from privsql.planning.prepared import Copies, PreparedRows, no_copies, prepared_rows
from privsql.planning.render_rows import rows
from privsql.policy import Neighbours
from privsql.privacy.accuracy import selection_epsilon_of_histogram
from privsql.privacy.key_selection import Contribution
from privsql.sql.describe import describe
from privsql.sql.expressions import Aggregate, Column, Expression, columns_of, substitute
from privsql.sql.owners import one_row_a_key, owner
from privsql.sql.relations import (
    Choose,
    Distinct,
    Filter,
    Limit,
    Project,
    Question,
    Relation,
    Release,
    Sort,
    walk,
)

CHOICES = {
    "exponential": Mechanism.CHOICE_EXPONENTIAL,
    "laplace": Mechanism.CHOICE_LAPLACE,
    "gumbel": Mechanism.CHOICE_GUMBEL,
}


def plan(
    question: Question, neighbours: Neighbours, epsilon: Fraction, evaluate: Evaluate, look: Look,
    mechanism: str | None = None, limits: Mapping[str, int] | None = None, delta: Fraction = Fraction(0),
    min_units: int = 1, copies: Copies = no_copies,
) -> Plan:  # fmt: skip
    """Choose the measurements, split epsilon over them, and write the exact SQL."""
    if question.release is None:
        return _public_plan(question, neighbours)
    release = replace(question.release, input=settled(lowered(question.release.input, limits or {}), look))
    read = [key.expression for key in release.keys] + [part for each in _aggregates(release) for part in _parts(each)]
    facts = derive(release.input, names_in(read), look)
    space = _space(release, facts, evaluate, look, delta)
    below = stability(release.input, look)
    cells = (MAX_KEYS if space.open else len(space)) if release.keys else None
    bounds, stored = None, None
    if below.rows is None:
        bounds = limits_of(release.input)
        if names_in([key.expression for key in release.keys]) <= owner(release.input).fixed:
            bounds = replace(bounds, max_groups=1)  # all rows of a unit are in one key
        if one_row_a_key(release.input, [k.expression.name for k in release.keys if isinstance(k.expression, Column)]):
            bounds = replace(bounds, max_rows=1)
        below = bounded(bounds, cells)
        assert below.rows is not None
        stored = None if space.open else prepared_rows(release, bounds, below.rows, look, copies)
        if isinstance(stored, PreparedRows):
            release, below, bounds = replace(release, input=stored.relation), stored.stability, None
    names = [key.expression.name for key in release.keys if isinstance(key.expression, Column)]
    taken = frozenset(field.name.lower() for field in release.input.fields)
    around = Surroundings(
        below, neighbours, names if release.keys else None, facts, evaluate, taken, owner(release.input), bounds, cells
    )
    notes: tuple[str, ...] = ()
    if isinstance(release, Choose):
        parts, estimates, notes = choice_parts(release, around)
    else:
        if mechanism not in (None, "laplace"):
            raise ArgumentError("argument-mechanism", f"mechanism={mechanism!r} is for questions that ask for a label",
                                "leave mechanism out")  # fmt: skip
        parts, estimates = release_parts(release, around)
    if space.open:
        if not any(part.counts_all for part in parts):
            parts.append(units_part(sum(len(part.columns) for part in parts) + 1, around))
        measurements = _priced_open(parts, around, epsilon, delta, min_units)
    else:
        measurements = _priced(parts, release, epsilon, mechanism)
    if isinstance(release, Choose):
        notes = (*notes, _beside_a_histogram(measurements[0], len(space)))
    else:
        notes = (*_sorted_histogram_note(question), *_public_count_note(release, around))
    if isinstance(stored, str):
        notes = (*notes, stored)
    loss = sum((each.loss for each in measurements), Fraction(0))
    return Plan(
        sql=exact_sql(release, parts, space, bounds),
        measurements=measurements,
        outputs=_outputs(question, measurements, estimates),
        relation_of_neighbours=neighbours,
        loss=loss,
        question=question,
        release=release,
        space=space,
        stability=below,
        estimates=estimates,
        finishing=render.finished(question.relation, "noisy"),
        notes=notes,
        steps=stored.steps if isinstance(stored, PreparedRows) else _steps(release.input, look),
        limits=bounds,
    )


def _space(release: Release | Choose, facts: Facts, evaluate: Evaluate, look: Look, delta: Fraction) -> KeySpace:
    """The cells, known beforehand; or with delta, keys that nobody declared."""
    if not release.keys:
        return KeySpace((), ())
    known = public_groups(release.input, release.keys, facts, look)
    if isinstance(release, Choose):
        return key_space(release.keys, facts, evaluate, release.not_null, known)
    if not release.aggregates:
        if not delta:
            raise Refused(
                "refused-no-aggregate",
                "which keys occur is itself private",
                "add COUNT(*), ask for the most frequent key (ORDER BY COUNT(*) DESC LIMIT 1), or allow keys that "
                "many people have to be shown: delta=1e-6",
                release.keys[0].place,
            )
        return open_space(release.keys, facts, evaluate)
    try:
        return key_space(release.keys, facts, evaluate, known=known)
    except Refused as error:
        if not delta or error.code not in ("refused-unknown-keys", "refused-many-keys"):
            raise
        return open_space(release.keys, facts, evaluate)


def _public_plan(question: Question, neighbours: Neighbours) -> Plan:
    """Public tables alone: the question as it stands, exact and free."""
    outputs = tuple(
        Output(name, (), each.name, each.column)
        for name, each in zip(question.names, question.relation.fields, strict=True)
    )
    return Plan(
        sql=f"SELECT * FROM {rows(question.relation)}",
        measurements=(),
        outputs=outputs,
        relation_of_neighbours=neighbours,
        loss=Fraction(0),
        question=question,
        release=None,
        space=KeySpace((), ()),
        stability=Stability(0, True, "public", lambda columns: 0),
        estimates={},
        finishing="",
        notes=("public tables only: the answer is exact, and free",),
    )


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _parts(aggregate: Aggregate) -> list[Expression]:
    return [part for part in (aggregate.argument, aggregate.condition) if part is not None]


def _steps(relation: Relation, look: Look) -> Mapping[Relation, Stability]:
    """How many rows one person can touch at every step, for the derivation."""
    return {each: stability(each, look) for each in walk(relation)}


# -- measurements --------------------------------------------------------------------------------------------
def _priced(
    parts: Sequence[Part], release: Release | Choose, epsilon: Fraction, mechanism: str | None
) -> tuple[Measurement, ...]:
    chosen = Mechanism.LAPLACE
    if isinstance(release, Choose):
        if mechanism is not None and (not isinstance(mechanism, str) or mechanism not in CHOICES):
            raise ArgumentError(
                "argument-mechanism", f"there is no mechanism {mechanism!r}", did_you_mean(str(mechanism), CHOICES)
            )
        chosen = CHOICES[mechanism or "exponential"]
    share = epsilon / len(parts)
    return tuple(measure(part.columns, chosen, part.sensitivity, share, part.what) for part in parts)


def _priced_open(
    parts: Sequence[Part], around: Surroundings, epsilon: Fraction, delta: Fraction, min_units: int
) -> tuple[Measurement, ...]:
    """The count by which keys are shown, with the whole of delta; the others as ever, for the keys that are shown."""
    shows = next(part for part in parts if part.counts_all)
    share, moves = epsilon / len(parts), around.neighbours.moves
    rows = shows.sensitivity.linf
    assert around.stability.rows is not None
    groups = around.stability.rows // around.limits.max_rows if around.limits is not None else around.stability.rows
    touched = Contribution(groups, rows, groups * moves)
    by_chance = rows == 1 and shows.what == UNCOUNTED
    return tuple(
        measure_keys(part.columns, part.sensitivity, touched, share, delta, min_units, not by_chance, part.what)
        if part is shows
        else measure(part.columns, Mechanism.LAPLACE, part.sensitivity, share, part.what)
        for part in parts
    )


def _beside_a_histogram(choice: Measurement, candidates: int) -> str:
    factor = choice_factor(choice.mechanism, choice.sensitivity)
    times = selection_epsilon_of_histogram(candidates, choice.l1, choice.linf, factor)
    return (
        f"a noisy histogram of {candidates:,} cells and a sort would need about {times:.1f} times this epsilon "
        "to be as sure of the winner"
    )


def _sorted_histogram_note(question: Question) -> tuple[str, ...]:
    limited = any(isinstance(each, Limit) for each in walk(question.relation))
    if limited and question.release is not None and question.release.keys:
        return ("the numbers are selected too, so all cells get noise and the sort is by noisy numbers: "
                "select only the key with ORDER BY ... LIMIT 1 to release just the label, more surely",)  # fmt: skip
    return ()


def _public_count_note(release: Release, around: Surroundings) -> tuple[str, ...]:
    counted = any(
        each.function == "count" and each.argument is None and not each.condition for _, each in release.aggregates
    )
    if counted and around.always_counts and around.neighbours is Neighbours.REPLACE_ONE:
        return (
            "under replace-one the number of rows is public, so COUNT(*) of all rows cannot move; it is noised as if it could",
        )
    return ()


# -- outputs -------------------------------------------------------------------------------------------------
def _outputs(
    question: Question, measurements: Sequence[Measurement], estimates: dict[str, Estimate]
) -> tuple[Output, ...]:
    expressions = _inlined(question.relation)
    outputs = []
    for name, each in zip(question.names, expressions, strict=True):
        leaves = list(dict.fromkeys(column.name for column in columns_of(each) if column.name in estimates))
        used = sorted(
            {i for leaf in leaves for i, m in enumerate(measurements) if set(estimates[leaf].columns) & set(m.columns)}
        )
        if isinstance(question.release, Choose):
            used, formula = [0], f"{describe(each)} of the winning key"
        else:
            formula = describe(each, {leaf: estimates[leaf].formula for leaf in leaves})
        outputs.append(Output(name, tuple(used), formula, each))
    return tuple(outputs)


def _inlined(relation: Relation) -> list[Expression]:
    """The columns of a relation above a release, as expressions over the release's own columns."""
    match relation:
        case Release() | Choose():
            return [each.column for each in relation.fields]
        case Project():
            inner: dict[str, Expression] = dict(
                zip((f.name for f in relation.input.fields), _inlined(relation.input), strict=True)
            )
            return [substitute(each, inner) for _, each in relation.columns]
        case Filter() | Sort() | Limit() | Distinct():
            return _inlined(relation.input)
        case _:
            raise AssertionError("not above a release")
