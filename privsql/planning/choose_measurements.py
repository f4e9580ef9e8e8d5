"""A draft goes in; it comes out with its measurements: what gets noise, by which mechanism, for which share
of epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.owners import owner
from privsql.algebra.relations import BoundQuery, Choose, Limit, Release, walk
from privsql.analysis.undeclared import Undeclared
from privsql.errors import ArgumentError, did_you_mean
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.compare_errors import Measuring
from privsql.planning.aggregates.context import AggregationContext, key_columns
from privsql.planning.aggregates.label_scores import best_mechanism, choice_notes, choice_part, groups_apart
from privsql.planning.aggregates.measure_aggregates import divisions, measure_aggregates
from privsql.planning.aggregates.parts import Part
from privsql.planning.aggregates.quantile_points import OrderPart
from privsql.planning.aggregates.release_parts import MeasuredAggregates
from privsql.planning.describe_outputs import parts_of_outputs
from privsql.planning.draft import Draft
from privsql.planning.keys.undeclared_keys import people_for_keys, pricing_of_keys
from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.pricing import KeysShown, Offer, Pricing, importances
from privsql.planning.rewrites.outliers import are_added_raw
from privsql.suggestions import Argument

CHOICES = {
    "permute-and-flip": Mechanism.CHOICE_FLIP,
    "exponential": Mechanism.CHOICE_EXPONENTIAL,
    "gumbel": Mechanism.CHOICE_GUMBEL,
    "laplace": Mechanism.CHOICE_LAPLACE,
}
NUMBERS = {"laplace": Mechanism.LAPLACE, "gaussian": Mechanism.GAUSSIAN}


def choose_measurements(draft: Draft) -> Draft:
    """Measure the winner of a selection, or every aggregate. Counts are measured jointly with sums if that
    makes some number more accurate and none less.
    """
    context = context_of(draft)
    if isinstance(draft.release, Choose):
        return _winner(draft, draft.release, context)
    release, offer = draft.release, draft.task.offer
    mechanism = _mechanism(release, offer)
    divided = divisions(draft.shown.values())
    best = _priced(draft, context, mechanism, measure_aggregates(release, context, divided))
    _check_noise(best.measured.parts, offer.mechanism)
    apart = None
    if draft.task.beside and len(release.aggregates) > 1:  # a count, and a sum that carries it
        together = measure_aggregates(release, context, divided, beside=True)
        if together.estimates != best.measured.estimates:
            other = _priced(draft, context, mechanism, together)
            if _is_surer(other, best, offer.epsilon):
                best, apart = other, draft.replan(replace(draft.task, beside=False))
    notes = _notes(draft.task.query, release, context, best.pricing, offer.epsilon)
    return replace(
        draft,
        estimates=best.measured.estimates,
        quotients=best.measured.quotients,
        pricing=best.pricing,
        apart=apart,
        notes=(*notes, *draft.notes),
    )


@dataclass(frozen=True)
class _Way:
    """One of several ways to measure the same aggregates."""

    measured: MeasuredAggregates
    pricing: Pricing

    def measuring(self, epsilon: Fraction) -> Measuring:
        return Measuring(self.measured.estimates, self.measured.quotients, self.pricing.at(epsilon))


def _winner(draft: Draft, release: Choose, context: AggregationContext) -> Draft:
    """Measure a selection: only the label of the best candidate is released."""
    groups_apart(release, draft.space)
    part = choice_part(release, context, draft.task.look)
    mechanism = _mechanism(release, draft.task.offer) or best_mechanism(part, len(draft.space))
    pricing = _priced(draft, context, mechanism, MeasuredAggregates([part], {}, {})).pricing
    (measurement,) = pricing.at(draft.task.offer.epsilon)
    assert isinstance(measurement, SelectionMeasurement)
    notes = choice_notes(measurement, len(draft.space))
    return replace(draft, pricing=pricing, notes=(*notes, *draft.notes))


def context_of(draft: Draft) -> AggregationContext:
    """What all aggregates of a release share."""
    release = draft.release
    assert draft.stability is not None
    sets = release.sets if isinstance(release, Release) else ()
    return AggregationContext(
        Undeclared(draft.release.input, draft.task.look),
        draft.stability,
        draft.task.neighbours,
        key_columns(release.keys),
        draft.facts,
        draft.task.evaluate,
        owner(release.input),
        draft.limits,
        draft.cells,
        tuple(tuple(release.keys[place] for place in kept) for kept in sets),
        draft.limits is None and are_added_raw(release, draft.facts),
    )


def _priced(
    draft: Draft, context: AggregationContext, mechanism: Mechanism | None, measured: MeasuredAggregates
) -> _Way:
    """Split epsilon over the parts. With undeclared keys, one part is the count that decides which keys are
    shown.
    """
    offer = draft.task.offer

    def pricing_of(some: Sequence[Part], keys: KeysShown | None = None) -> Pricing:
        uses = parts_of_outputs(draft.shown, some, measured.estimates)
        importance, given = importances(uses, len(some), offer.weights)
        return Pricing(tuple(some), importance, given, offer.delta, mechanism, keys)

    if draft.space.open:
        return _Way(
            measured, pricing_of_keys(measured.parts, context, offer.min_units, offer.epsilon, pricing_of)
        )
    return _Way(measured, pricing_of(measured.parts))


def _is_surer(one: _Way, other: _Way, epsilon: Fraction) -> bool:
    """Whether one way makes some number more accurate than another way and none less, and needs no more
    people for a key to be shown.
    """
    try:
        surer = one.measuring(epsilon).is_surer_than(other.measuring(epsilon))
    except ArgumentError:  # noise that does not fit 64 bits, or no keys
        return False
    return surer and people_for_keys(one.pricing, epsilon) <= people_for_keys(other.pricing, epsilon)


def _mechanism(release: Release | Choose, offer: Offer) -> Mechanism | None:
    """The mechanism that the call names; None: whichever is best."""
    wanted, known = offer.mechanism, CHOICES if isinstance(release, Choose) else NUMBERS
    if wanted is None:
        return None
    if not isinstance(wanted, str) or wanted not in known:
        kind = "a label" if isinstance(release, Choose) else "numbers"
        raise ArgumentError(
            "argument-mechanism",
            f"there is no mechanism {wanted!r} for a query that releases {kind}",
            did_you_mean(str(wanted), known),
        )
    if wanted == "gaussian" and not offer.delta:
        raise ArgumentError(
            "argument-delta", "Gaussian noise needs a delta above 0", [(Argument("delta", "1e-6"),)]
        )
    return known[wanted]


def _check_noise(parts: Sequence[Part], mechanism: str | None) -> None:
    if mechanism is not None and all(isinstance(part, OrderPart) for part in parts):
        what = (
            f"quantiles always use the exponential mechanism, not {mechanism!r}"
            if parts
            else "this query releases only keys, which get no noise"
        )
        raise ArgumentError("argument-mechanism", what, "leave mechanism out")


# -- notes ---------------------------------------------------------------------------------------------------
def _notes(
    query: BoundQuery, release: Release, context: AggregationContext, pricing: Pricing, epsilon: Fraction
) -> tuple[str, ...]:
    priced = zip(pricing.parts, pricing.at(epsilon), strict=True)
    split = [measurement for part, measurement in priced if not part.public]
    shares = _split_note(split, pricing.given)
    return (*_sorted_histogram_note(query), *_public_count_note(release, context, pricing.parts), *shares)


def _sorted_histogram_note(query: BoundQuery) -> tuple[str, ...]:
    limited = any(isinstance(each, Limit) for each in walk(query.relation))
    if limited and query.release is not None and query.release.keys:
        return (
            "the query also selects numbers, so every cell gets noise and the sort uses the noisy numbers: "
            "to find the top key more reliably, select only the key with ORDER BY ... LIMIT 1",
        )
    return ()


def _split_note(measurements: Sequence[Measurement], given: bool) -> tuple[str, ...]:
    """How epsilon is split, if there are several measurements."""
    if len(measurements) < 2:
        return ()
    total = sum((each.loss for each in measurements), Fraction(0))
    shares = ", ".join(
        f"M{index + 1} {float(each.loss / total):.0%}" for index, each in enumerate(measurements)
    )
    return (
        f"epsilon is split: {shares}, "
        + ("according to weights=" if given else "for the least relative error"),
    )


def _public_count_note(
    release: Release, context: AggregationContext, parts: Sequence[Part]
) -> tuple[str, ...]:
    if any(part.public for part in parts):
        return (
            "under replace-one the number of rows is public, so it is released almost exactly, "
            "for a thousandth of epsilon",
        )
    counted = any(
        each.function == "count" and each.argument is None and not each.condition
        for _, each in release.aggregates
    )
    if counted and context.always_counts and context.neighbours is Neighbours.REPLACE_ONE:
        return (
            "under replace-one the number of rows is public, and nobody can change COUNT(*) of all rows; "
            "it gets noise all the same",
        )
    return ()
