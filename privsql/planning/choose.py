"""A Question, the neighbour relation and an epsilon go in; a Plan comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.expressions import SPREAD, Aggregate, Column, Expression, columns_of, substitute
from privsql.algebra.owners import one_row_a_key, owner
from privsql.algebra.relations import (
    Choose,
    Distinct,
    Filter,
    Key,
    Limit,
    Limits,
    Project,
    Question,
    Relation,
    Release,
    Sort,
    walk,
)
from privsql.algebra.reserved import is_ours
from privsql.analysis.derive import Facts, derive, names_in
from privsql.analysis.domain import MAX_KEYS
from privsql.analysis.keys import Evaluate, KeyGroup, KeySpace, key_space, open_space
from privsql.analysis.levels import levelled
from privsql.analysis.look import Look
from privsql.analysis.public_keys import public_groups
from privsql.analysis.stability import Stability, bounded, limits_of, stability
from privsql.analysis.undeclared import Undeclared
from privsql.errors import ArgumentError, Refused, did_you_mean
from privsql.planning import render
from privsql.planning.aggregates import Measured, divisions, release_parts
from privsql.planning.beside import Measuring
from privsql.planning.bounding import Bounding, bounding_by_rank, bounding_of, bounding_within
from privsql.planning.by_key import units_by_key
from privsql.planning.choice import best_mechanism, choice_notes, choice_part, groups_apart
from privsql.planning.estimates import Estimate, Ratio
from privsql.planning.exact_sql import exact_sql
from privsql.planning.guarded import guarded
from privsql.planning.key_tests import is_tested
from privsql.planning.measurement import Measurement, Mechanism
from privsql.planning.order import OrderPart, value_bins, value_sql
from privsql.planning.outliers import are_added_raw
from privsql.planning.parts import Part, Surroundings, key_columns
from privsql.planning.per_unit import settled, with_limits
from privsql.planning.plan import Output, Plan, ValueStatement
from privsql.planning.prepared import AdHoc, Copies, PreparedRows, no_copies, prepared_rows
from privsql.planning.pricing import LEVEL, KeysShown, Offer, Pricing, importances
from privsql.planning.render_rows import rows
from privsql.planning.undeclared_keys import people_for_keys, pricing_of_keys
from privsql.planning.within import relations_of
from privsql.policy import Neighbours
from privsql.privacy.accuracy import Laplace
from privsql.suggestions import Argument, Way

CHOICES = {
    "permute-and-flip": Mechanism.CHOICE_FLIP,
    "exponential": Mechanism.CHOICE_EXPONENTIAL,
    "gumbel": Mechanism.CHOICE_GUMBEL,
    "laplace": Mechanism.CHOICE_LAPLACE,
}
ADDITIVE = frozenset({"count", "sum", "avg"}) | SPREAD  # computed from sums over rows
_SHOWN_BY_DELTA: Way = ("allow keys that many people have to be shown: ", Argument("delta", "1e-6"))
_ALL_OF_SETS = "; over several sets of keys all must be declared"
NUMBERS = {"laplace": Mechanism.LAPLACE, "gaussian": Mechanism.GAUSSIAN}


def plan(
    question: Question,
    neighbours: Neighbours,
    offer: Offer,
    evaluate: Evaluate,
    look: Look,
    copies: Copies = no_copies,
    beside: bool = True,
) -> Plan:
    """Choose the measurements, split epsilon over them, and write the exact SQL.

    `beside`: counts may be measured together with sums of what may be NULL, where that makes nothing noisier.
    """
    if question.release is None:
        return _public_plan(question, neighbours)
    limited = with_limits(question.release.input, offer.limits)
    release = replace(question.release, input=settled(limited, look))
    if any(is_ours(field.name) for each in walk(release.input) for field in each.fields):
        raise AssertionError("a column that could stand for one of ours")  # the binder gives them other names
    read = [key.expression for key in release.keys] + [
        part for each in _aggregates(release) for part in each.reads
    ]
    facts = derive(release.input, names_in(read), look)
    space = _space(release, facts, evaluate, look, offer.delta)
    sets, undeclared = release.sets if isinstance(release, Release) else (), Undeclared(release.input, look)
    rows_of, levels = levelled(space, sets) if sets else (space, None)
    below = stability(release.input, look)
    cells = (MAX_KEYS if space.open else len(space)) if release.keys else None
    bounds, stored = None, None
    within = bounding_within(release)
    bounding: list[Bounding] = [] if within is None else [within]
    if below.rows is None:
        bounds = _limits(release)
        bounding.insert(0, bounding_of(release, bounds, space))
        below = bounded(bounds, cells)
        assert below.rows is not None
        ad_hoc = AdHoc(
            below.rows // bounds.max_rows,
            bounds.max_rows,
            None if sets else cells,
            neighbours.moves,
            lambda: (
                _of_laplace(plan(question, neighbours, offer, evaluate, look)) if offer.delta else Fraction(1)
            ),
            offer.mechanism == "gaussian",
        )
        by_key = None if space.open else units_by_key(release, space, copies)
        release = by_key or release
        stored = None if space.open or by_key else prepared_rows(release, ad_hoc, look, copies)
        if isinstance(stored, PreparedRows):
            bounding[0] = bounding_by_rank(release, stored.scan, bounds)
            release, below, bounds = replace(release, input=stored.relation), stored.stability, None
    around = Surroundings(
        undeclared,
        below,
        neighbours,
        key_columns(release.keys),
        facts,
        evaluate,
        owner(release.input),
        bounds,
        cells,
        tuple(tuple(release.keys[place] for place in kept) for kept in sets),
        bounds is None and are_added_raw(release, facts),
    )
    mechanism = _mechanism(release, offer)
    shown = dict(zip(question.names, _inlined(question.relation), strict=True))
    above = guarded(question.relation, frozenset(name for name, _ in getattr(release, "aggregates", ())))
    estimates: dict[str, Estimate] = {}
    quotients: dict[tuple[str, str], Ratio] = {}
    apart: Plan | None = None

    def priced(parts: Sequence[Part], estimates: Mapping[str, Estimate]) -> Pricing:
        def pricing_of(some: Sequence[Part], keys: KeysShown | None = None) -> Pricing:
            importance, given = importances(_uses(shown, some, estimates), len(some), offer.weights)
            return Pricing(tuple(some), importance, given, offer.delta, mechanism, keys)

        shown_by = (
            pricing_of_keys(parts, around, offer.min_units, offer.epsilon, pricing_of) if space.open else None
        )
        return shown_by or pricing_of(parts)

    if isinstance(release, Choose):
        groups_apart(release, space)
        parts = [choice_part(release, around, look)]
        mechanism = mechanism or best_mechanism(parts[0], len(space))
        pricing = priced(parts, estimates)
    else:
        parts, estimates, quotients = release_parts(release, around, divisions(shown.values()))
        _has_such_noise(parts, offer.mechanism)
        pricing = priced(parts, estimates)
        together = release_parts(release, around, divisions(shown.values()), beside)
        if together[1] != estimates:
            other = priced(*together[:2])
            if _is_surer(other, together, pricing, (parts, estimates, quotients), offer.epsilon):
                (parts, estimates, quotients), pricing = together, other
                apart = plan(question, neighbours, offer, evaluate, look, copies, beside=False)
    parts, measurements = [*pricing.parts], pricing.at(offer.epsilon)
    if isinstance(release, Choose):
        notes = choice_notes(measurements[0], len(space))
    else:
        split = [each for part, each in zip(parts, measurements, strict=True) if not part.public]
        shares = _split_note(split, pricing.given)
        notes = (*_sorted_histogram_note(question), *_public_count_note(release, around, parts), *shares)
    if isinstance(stored, str):
        notes = (*notes, stored)
    counted = [part for part in parts if not isinstance(part, OrderPart)]
    of_values = tuple(
        ValueStatement(
            value_sql(release, part, space, bounds), part.columns, value_bins(release, part, space, bounds)
        )
        for part in parts
        if isinstance(part, OrderPart)
    )
    return Plan(
        sql=exact_sql(release, counted, space, bounds) if counted else of_values[0].sql,
        of_values=of_values,
        measurements=measurements,
        outputs=_outputs(shown, release, measurements, estimates),
        relation_of_neighbours=neighbours,
        loss=sum((each.loss for each in measurements), Fraction(0)),
        question=question,
        release=release,
        space=rows_of,
        stability=below,
        estimates=estimates,
        quotients=quotients,
        finishing=render.finished(above.relation, "noisy", above.guards),
        guards=above.guards,
        pricing=pricing,
        notes=notes,
        steps=stored.steps if isinstance(stored, PreparedRows) else _steps(release.input, look),
        limits=bounds,
        bounding=tuple(each for each in bounding if each),
        levels=levels,
        apart=apart,
        relations=()
        if isinstance(release, Choose)
        else relations_of(release, estimates, parts, facts, bounds is not None),
    )


def _is_surer(one: Pricing, way: Measured, other: Pricing, other_way: Measured, epsilon: Fraction) -> bool:
    """Whether one way to measure makes some number surer than another and none noisier, and needs no more
    people for a key.
    """
    try:
        surer = Measuring(*way[1:], one.at(epsilon)).is_surer_than(
            Measuring(*other_way[1:], other.at(epsilon))
        )
    except ArgumentError:  # noise that does not fit 64 bits, or no keys
        return False
    return surer and people_for_keys(one, epsilon) <= people_for_keys(other, epsilon)


def _of_laplace(ad_hoc: Plan) -> Fraction:
    """What part of Laplace noise the noise of a plan is, at most."""
    widths = (
        (m.half_width(LEVEL), Laplace(float(m.loss) / m.l1).half_width(LEVEL))
        for m in ad_hoc.measurements
        if m.gaussian
    )
    # widths are rounded
    return min((Fraction(ours, theirs + 1) for ours, theirs in widths), default=Fraction(1))


def _limits(release: Release | Choose) -> Limits:
    """What is used of one unit at most: as declared, or less where the keys leave it no more."""
    bounds = limits_of(release.input)
    if names_in([key.expression for key in release.keys]) <= owner(release.input).fixed:
        bounds = replace(bounds, max_groups=1)  # all rows of a unit are in one key
    if one_row_a_key(
        release.input, [k.expression.name for k in release.keys if isinstance(k.expression, Column)]
    ):
        bounds = replace(bounds, max_rows=1)
    return bounds


def _mechanism(release: Release | Choose, offer: Offer) -> Mechanism | None:
    """The mechanism that was asked for; None: whichever is best."""
    wanted, known = offer.mechanism, CHOICES if isinstance(release, Choose) else NUMBERS
    if wanted is None:
        return None
    if not isinstance(wanted, str) or wanted not in known:
        kind = "a label" if isinstance(release, Choose) else "numbers"
        raise ArgumentError(
            "argument-mechanism",
            f"there is no mechanism {wanted!r} for questions that ask for {kind}",
            did_you_mean(str(wanted), known),
        )
    if wanted == "gaussian" and not offer.delta:
        raise ArgumentError(
            "argument-delta", "Gaussian noise needs a delta above 0", [(Argument("delta", "1e-6"),)]
        )
    return known[wanted]


def _has_such_noise(parts: Sequence[Part], mechanism: str | None) -> None:
    if mechanism is not None and all(isinstance(part, OrderPart) for part in parts):
        what = (
            f"quantiles are chosen by the exponential mechanism, not by {mechanism!r}"
            if parts
            else "keys alone have no noise"
        )
        raise ArgumentError("argument-mechanism", what, "leave mechanism out")


def _space(
    release: Release | Choose, facts: Facts, evaluate: Evaluate, look: Look, delta: Fraction
) -> KeySpace:
    """The cells, known beforehand; or with delta, keys that nobody declared."""
    if not release.keys:
        return KeySpace((), ())
    known = public_groups(release.input, release.keys, facts, look)
    if isinstance(release, Release) and release.sets:
        return _space_of_sets(release, facts, evaluate, known, look)
    if isinstance(release, Release) and not release.aggregates:
        if not delta:
            ways: list[Way] = [
                ("add COUNT(*)",),
                ("ask for the most frequent key (ORDER BY COUNT(*) DESC LIMIT 1)",),
            ]
            place = release.keys[0].place
            raise Refused(
                "refused-no-aggregate", "which keys occur is itself private", [*ways, _SHOWN_BY_DELTA], place
            )
        return open_space(release.keys, facts, evaluate)
    try:
        not_null = release.not_null if isinstance(release, Choose) else frozenset()
        return key_space(release.keys, facts, evaluate, not_null, known)
    except Refused as error:
        if error.code not in ("refused-unknown-keys", "refused-many-keys"):
            raise
        if delta and isinstance(release, Release):
            return open_space(release.keys, facts, evaluate)
        if error.code == "refused-unknown-keys":
            error.with_way(_declared_keys(release, facts, evaluate, known, look))
            if isinstance(release, Release) and _can_be_shown(release.keys, facts, evaluate):
                error.with_way(_SHOWN_BY_DELTA)
        raise


def _declared_keys(
    release: Release | Choose, facts: Facts, evaluate: Evaluate, known: Sequence[KeyGroup], look: Look
) -> Way:
    """What to declare of the keys that nobody knows."""
    listed = {name for group in known for name in group.names}
    unknown = [key for key in release.keys if key.name not in listed]
    return Undeclared(release.input, look).keys(unknown, facts, evaluate)


def _can_be_shown(keys: Sequence[Key], facts: Facts, evaluate: Evaluate) -> bool:
    try:
        open_space(keys, facts, evaluate)
    except Refused:
        return False
    return True


def _space_of_sets(
    release: Release, facts: Facts, evaluate: Evaluate, known: Sequence[KeyGroup], look: Look
) -> KeySpace:
    """All keys together, declared beforehand, and nothing that could not be added up from them."""
    place = release.keys[0].place
    if not release.aggregates:
        raise Refused("refused-no-aggregate", "which keys occur is itself private", "add COUNT(*)", place)
    for _, each in release.aggregates:
        if each.function not in ADDITIVE:
            what = (
                f"{each.name} of a total is not made up of those of its parts, so that sets would not agree"
            )
            raise Refused("refused-grouping-sets", what, "ask for each set of keys by itself", each.place)
    try:
        space = key_space(release.keys, facts, evaluate, known=known)
    except Refused as error:
        if error.code == "refused-unknown-keys":
            error.with_way((*_declared_keys(release, facts, evaluate, known, look), _ALL_OF_SETS))
        raise
    if not all(is_tested(group) for group in space.groups):
        raise Refused(
            "refused-many-keys",
            "so many keys are not told from others one by one: others would be in the totals",
            "narrow it with WHERE, or group by something coarser",
            place,
        )
    return space


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
        quotients={},
        finishing="",
        pricing=None,
        notes=("public tables only: the answer is exact, and free",),
    )


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _steps(relation: Relation, look: Look) -> Mapping[Relation, Stability]:
    """How many rows one person can touch at every step, for the derivation."""
    return {each: stability(each, look) for each in walk(relation)}


# -- measurements --------------------------------------------------------------------------------------------
def _uses(
    shown: Mapping[str, Expression], parts: Sequence[Part], estimates: Mapping[str, Estimate]
) -> dict[str, list[int]]:
    """By which parts each output is computed."""
    return {
        name: [i for i, part in enumerate(parts) if set(part.columns) & _columns(expression, estimates)]
        for name, expression in shown.items()
    }


def _columns(expression: Expression, estimates: Mapping[str, Estimate]) -> set[str]:
    """The noisy columns that an output is made of."""
    leaves = {column.name for column in columns_of(expression)} & estimates.keys()
    return {column for leaf in leaves for column in estimates[leaf].columns}


def _sorted_histogram_note(question: Question) -> tuple[str, ...]:
    limited = any(isinstance(each, Limit) for each in walk(question.relation))
    if limited and question.release is not None and question.release.keys:
        return (
            "the numbers are selected too, so all cells get noise and the sort is by noisy numbers: "
            "select only the key with ORDER BY ... LIMIT 1 to release just the label, more surely",
        )
    return ()


def _split_note(measurements: Sequence[Measurement], given: bool) -> tuple[str, ...]:
    """How epsilon is shared out, where there is something to share."""
    if len(measurements) < 2:
        return ()
    total = sum((each.loss for each in measurements), Fraction(0))
    shares = ", ".join(
        f"M{index + 1} {float(each.loss / total):.0%}" for index, each in enumerate(measurements)
    )
    return (
        f"epsilon is split: {shares}, " + ("as weights= says" if given else "for the least relative error"),
    )


def _public_count_note(release: Release, around: Surroundings, parts: Sequence[Part]) -> tuple[str, ...]:
    if any(part.public for part in parts):
        return (
            "under replace-one the number of rows is public: it is let out all but exactly, for a thousandth of epsilon",
        )
    counted = any(
        each.function == "count" and each.argument is None and not each.condition
        for _, each in release.aggregates
    )
    if counted and around.always_counts and around.neighbours is Neighbours.REPLACE_ONE:
        return (
            "under replace-one the number of rows is public, so COUNT(*) of all rows cannot move; it is noised as if it could",
        )
    return ()


# -- outputs -------------------------------------------------------------------------------------------------
def _outputs(
    shown: Mapping[str, Expression],
    release: Release | Choose,
    measurements: Sequence[Measurement],
    estimates: Mapping[str, Estimate],
) -> tuple[Output, ...]:
    outputs = []
    for name, each in shown.items():
        columns = _columns(each, estimates)
        used = [i for i, measurement in enumerate(measurements) if columns & set(measurement.columns)]
        formula = describe(each, {name: how.formula for name, how in estimates.items()})
        if isinstance(release, Choose):
            used, formula = [0], f"{describe(each)} of the winning key"
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
