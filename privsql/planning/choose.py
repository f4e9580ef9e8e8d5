"""A Question, the neighbour relation and an epsilon go in; a Plan comes out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from privsql.analysis.derive import derive
from privsql.analysis.keys import Evaluate, KeySpace, key_space
from privsql.analysis.stability import Stability, stability
from privsql.errors import ArgumentError, did_you_mean
from privsql.planning import render
from privsql.planning.estimates import Estimate
from privsql.planning.exact_sql import exact_sql
from privsql.planning.measurement import Measurement, Mechanism, choice_factor, measure
from privsql.planning.parts import Part, Surroundings, choice_parts, release_parts
from privsql.planning.plan import Output, Plan
from privsql.policy import Neighbours
from privsql.privacy.accuracy import selection_epsilon_of_histogram
from privsql.privacy.sensitivity import Sensitivity
from privsql.sql.describe import describe
from privsql.sql.expressions import Column, Expression, columns_of, substitute
from privsql.sql.relations import (
    Choose,
    Limit,
    Project,
    Question,
    Relation,
    Release,
    Scan,
    UnionAll,
    Values,
    walk,
)

CHOICES = {
    "exponential": Mechanism.CHOICE_EXPONENTIAL,
    "laplace": Mechanism.CHOICE_LAPLACE,
    "gumbel": Mechanism.CHOICE_GUMBEL,
}


def plan(
    question: Question, neighbours: Neighbours, epsilon: Fraction, evaluate: Evaluate, mechanism: str | None = None
) -> Plan:
    """Choose the measurements, split epsilon over them, and write the exact SQL."""
    release = question.release
    facts = derive(release.input)
    below = stability(release.input)
    names = [key.expression.name for key in release.keys if isinstance(key.expression, Column)]
    taken = frozenset(field.name.lower() for field in release.input.fields)
    around = Surroundings(below, neighbours, names if release.keys else None, facts, evaluate, taken)
    not_null = release.not_null if isinstance(release, Choose) else frozenset[str]()
    space = key_space(release.keys, facts, evaluate, not_null) if release.keys else KeySpace((), ())
    notes: tuple[str, ...] = ()
    if isinstance(release, Choose):
        parts, estimates, notes = choice_parts(release, around)
    else:
        if mechanism not in (None, "laplace"):
            raise ArgumentError("argument-mechanism", f"mechanism={mechanism!r} is for questions that ask for a label",
                                "leave mechanism out")  # fmt: skip
        parts, estimates = release_parts(release, around)
    measurements = _priced(parts, release, below, epsilon, mechanism)
    if isinstance(release, Choose):
        notes = (*notes, _beside_a_histogram(measurements[0], len(space)))
    else:
        notes = (*_sorted_histogram_note(question), *_public_count_note(release, around))
    loss = sum((each.loss for each in measurements), Fraction(0))
    return Plan(
        sql=exact_sql(release, parts, space),
        measurements=measurements,
        outputs=_outputs(question, measurements, estimates),
        relation_of_neighbours=neighbours,
        loss=loss,
        question=question,
        space=space,
        stability=below,
        estimates=estimates,
        finishing=render.finished(question.relation, "noisy"),
        notes=notes,
    )


# -- measurements --------------------------------------------------------------------------------------------
def _priced(
    parts: Sequence[Part], release: Release | Choose, below: Stability, epsilon: Fraction, mechanism: str | None
) -> tuple[Measurement, ...]:
    if below.rows == 0:
        nothing = Sensitivity(0, 0, "public data only: no person is in it")
        return tuple(
            Measurement(part.columns, Mechanism.PUBLIC, nothing, Fraction(0), Fraction(0), part.what) for part in parts
        )
    chosen = Mechanism.LAPLACE
    if isinstance(release, Choose):
        if mechanism is not None and (not isinstance(mechanism, str) or mechanism not in CHOICES):
            raise ArgumentError(
                "argument-mechanism", f"there is no mechanism {mechanism!r}", did_you_mean(str(mechanism), CHOICES)
            )
        chosen = CHOICES[mechanism or "exponential"]
    share = epsilon / len(parts)
    return tuple(measure(part.columns, chosen, part.sensitivity, share, part.what) for part in parts)


def _beside_a_histogram(choice: Measurement, candidates: int) -> str:
    if choice.mechanism is Mechanism.PUBLIC:
        return "public data only: the label is exact"
    factor = choice_factor(choice.mechanism, choice.sensitivity)
    times = selection_epsilon_of_histogram(candidates, choice.l1, choice.linf, factor)
    return (
        f"a noisy histogram of {candidates:,} cells and a sort would need about {times:.1f} times this epsilon "
        "to be as sure of the winner"
    )


def _sorted_histogram_note(question: Question) -> tuple[str, ...]:
    limited = any(isinstance(each, Limit) for each in walk(question.relation))
    if limited and question.release.keys:
        return ("the numbers are selected too, so all cells get noise and the sort is by noisy numbers: "
                "select only the key with ORDER BY ... LIMIT 1 to release just the label, more surely",)  # fmt: skip
    return ()


def _public_count_note(release: Release, around: Surroundings) -> tuple[str, ...]:
    counted = any(
        each.function == "count" and each.argument is None and not each.condition for _, each in release.aggregates
    )
    if counted and around.always_counts and around.stability.rows and around.neighbours is Neighbours.REPLACE_ONE:
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
        case Scan() | Values() | UnionAll():
            raise AssertionError("not above a release")
        case _:
            return _inlined(relation.input)
