"""A draft goes in; the same comes out with its measurements: what is noised, by which mechanism, for which
share of epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.owners import owner
from privsql.algebra.relations import Choose, Limit, Question, Release, walk
from privsql.analysis.undeclared import Undeclared
from privsql.errors import ArgumentError, did_you_mean
from privsql.neighbours import Neighbours
from privsql.planning.aggregates.compare_errors import Measuring
from privsql.planning.aggregates.context import AggregationContext, key_columns
from privsql.planning.aggregates.label_scores import best_mechanism, choice_notes, choice_part, groups_apart
from privsql.planning.aggregates.measure_aggregates import divisions, measure_aggregates
from privsql.planning.aggregates.parts import Part
from privsql.planning.aggregates.quantile_parts import OrderPart
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
    """The winner of a choice, or every aggregate; counts together with sums where that makes some number
    surer and none noisier.
    """
    context = _context(draft)
    if isinstance(draft.release, Choose):
        return _winner(draft, draft.release, context)
    release, offer = draft.release, draft.task.offer
    mechanism = _mechanism(release, offer)
    divided = divisions(draft.shown.values())
    best = _priced(draft, context, mechanism, measure_aggregates(release, context, divided))
    _check_noise(best.measured.parts, offer.mechanism)
    apart = None
    if draft.task.beside:
        together = measure_aggregates(release, context, divided, beside=True)
        if together.estimates != best.measured.estimates:
            other = _priced(draft, context, mechanism, together)
            if _is_surer(other, best, offer.epsilon):
                best, apart = other, draft.replan(replace(draft.task, beside=False))
    notes = _notes(draft.task.question, release, context, best.pricing, offer.epsilon)
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
    """One of several ways to measure the same."""

    measured: MeasuredAggregates
    pricing: Pricing

    def measuring(self, epsilon: Fraction) -> Measuring:
        return Measuring(self.measured.estimates, self.measured.quotients, self.pricing.at(epsilon))


def _winner(draft: Draft, release: Choose, context: AggregationContext) -> Draft:
    """Only the label of the best candidate is released."""
    groups_apart(release, draft.space)
    part = choice_part(release, context, draft.task.look)
    mechanism = _mechanism(release, draft.task.offer) or best_mechanism(part, len(draft.space))
    pricing = _priced(draft, context, mechanism, MeasuredAggregates([part], {}, {})).pricing
    (measurement,) = pricing.at(draft.task.offer.epsilon)
    assert isinstance(measurement, SelectionMeasurement)
    notes = choice_notes(measurement, len(draft.space))
    return replace(draft, pricing=pricing, notes=(*notes, *draft.notes))


def _context(draft: Draft) -> AggregationContext:
    """What every aggregate of a release shares."""
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
    """The parts with their shares of epsilon; where nobody declared the keys, with the count that shows
    them.
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
    """Whether one way to measure makes some number surer than another and none noisier, and needs no more
    people for a key.
    """
    try:
        surer = one.measuring(epsilon).is_surer_than(other.measuring(epsilon))
    except ArgumentError:  # noise that does not fit 64 bits, or no keys
        return False
    return surer and people_for_keys(one.pricing, epsilon) <= people_for_keys(other.pricing, epsilon)


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


def _check_noise(parts: Sequence[Part], mechanism: str | None) -> None:
    if mechanism is not None and all(isinstance(part, OrderPart) for part in parts):
        what = (
            f"quantiles are chosen by the exponential mechanism, not by {mechanism!r}"
            if parts
            else "keys alone have no noise"
        )
        raise ArgumentError("argument-mechanism", what, "leave mechanism out")


# -- notes ---------------------------------------------------------------------------------------------------
def _notes(
    question: Question, release: Release, context: AggregationContext, pricing: Pricing, epsilon: Fraction
) -> tuple[str, ...]:
    priced = zip(pricing.parts, pricing.at(epsilon), strict=True)
    split = [measurement for part, measurement in priced if not part.public]
    shares = _split_note(split, pricing.given)
    return (*_sorted_histogram_note(question), *_public_count_note(release, context, pricing.parts), *shares)


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


def _public_count_note(
    release: Release, context: AggregationContext, parts: Sequence[Part]
) -> tuple[str, ...]:
    if any(part.public for part in parts):
        return (
            "under replace-one the number of rows is public: it is let out all but exactly, "
            "for a thousandth of epsilon",
        )
    counted = any(
        each.function == "count" and each.argument is None and not each.condition
        for _, each in release.aggregates
    )
    if counted and context.always_counts and context.neighbours is Neighbours.REPLACE_ONE:
        return (
            "under replace-one the number of rows is public, so COUNT(*) of all rows cannot move; "
            "it is noised as if it could",
        )
    return ()
