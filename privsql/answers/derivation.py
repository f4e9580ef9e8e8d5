"""A plan and stored answers go in; its noisy cells come out, computed from stored noisy cells alone, without
data.

Several stored answers to the same cell are weighted by inverse variance. This is least squares, because their
noise is independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privsql.algebra.relations import Choose
from privsql.analysis.keys import Evaluate, KeySpace
from privsql.answers.additive import Additive, Known
from privsql.answers.ways import Way, ways
from privsql.planning.aggregates.compare_errors import are_no_larger, errors
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.plan import Derived, Plan
from privsql.planning.precision.noise_of_rows import noisy_columns
from privsql.privacy.weighted_sums import Fitted, Noise, Summed, variance
from privsql.tables import Integers

Floats = npt.NDArray[np.float64]

MOST_SOURCES = 8
# at a huge epsilon there is no noise: its inverse, and sums of inverses, must stay finite
_LEAST_VARIANCE = 1e-300

# stored answers by place, the best first, each with the way to a column
Used = Sequence[tuple[int, Way]]


def derive(
    wanted: Additive, stored: Sequence[Known], evaluate: Evaluate, paid: bool = False
) -> tuple[Derived, dict[str, Integers]] | None:
    """Compute the wanted columns from stored answers; None if some column does not follow from them.

    Only answers that sum over the same keys are combined: others may lack different rows, and an average of
    two different numbers is neither. `paid`: the query's own answer is among them, which sums over no keys.
    """
    found = [ways(wanted, known, evaluate) for known in stored]
    over = [frozenset(_summed_over(wanted, [known])) for known in stored]
    options = [
        {
            name: _best(
                [
                    (place, each[name])
                    for place, each in enumerate(found)
                    if name in each and over[place] == keys
                ]
            )
            for name in wanted.columns
        }
        for keys in dict.fromkeys(over)
        if not (paid and keys)
    ]
    whole = [each for each in options if all(each.values())]
    if not whole:
        return None
    used = min(
        whole, key=lambda each: sum(np.log(max(_worst(ways[0]), _LEAST_VARIANCE)) for ways in each.values())
    )
    shares = {name: _shares([way for _, way in each]) for name, each in used.items()}
    counts = np.array([way.cells for each in used.values() for _, way in each]).T
    _, first, classes = np.unique(counts, axis=0, return_index=True, return_inverse=True)
    kinds = tuple(
        (
            np.flatnonzero(classes.reshape(-1) == number),
            {name: _noise(stored, used[name], shares[name], cell) for name in used},
        )
        for number, cell in enumerate(first.tolist())
    )
    most = {
        place: max(int(w.cells.max()) for each in used.values() for p, w in each if p == place)
        for place in dict.fromkeys(place for each in used.values() for place, _ in each)
    }
    sources = tuple(stored[place].source(cells) for place, cells in most.items())
    columns = {name: _added(stored, used[name], shares[name]) for name in used}
    return Derived(sources, kinds, _summed_over(wanted, [stored[place] for place in most])), columns


def _best(found: Used) -> Used:
    return sorted(found, key=_worst)[:MOST_SOURCES]


def _worst(found: tuple[int, Way]) -> float:
    """The variance of the noisiest cell."""
    return float(found[1].cells.max()) * found[1].variance


def _shares(found: Sequence[Way]) -> list[Floats]:
    """The weight of each source in every cell, by inverse variance."""
    precisions = [1.0 / (way.cells * max(way.variance, _LEAST_VARIANCE)) for way in found]
    return [each / np.sum(precisions, axis=0) for each in precisions]


def _added(stored: Sequence[Known], used: Used, shares: Sequence[Floats]) -> Integers:
    sums = [
        [_sums(stored[place].noisy.noisy_columns[name], way) for name, _ in way.terms] for place, way in used
    ]
    if _is_whole(used):
        whole = [int(weight) * cells for (_, weight), cells in zip(used[0][1].terms, sums[0], strict=True)]
        return np.asarray(np.add.reduce(whole), dtype=np.int64)
    mixed = np.zeros(len(used[0][1].cells))
    for (_, way), columns, share in zip(used, sums, shares, strict=True):
        mixed += share * sum(
            float(weight) * cells for (_, weight), cells in zip(way.terms, columns, strict=True)
        )
    return np.rint(mixed).astype(np.int64)


def _sums(noisy: Integers, way: Way) -> Integers:
    """A stored column, summed in the wanted cells."""
    cells, used = np.zeros(len(way.cells), dtype=np.int64), way.places >= 0
    np.add.at(cells, way.places[used], noisy[used])
    return cells


def _is_whole(used: Used) -> bool:
    return len(used) == 1 and all(weight.denominator == 1 for _, weight in used[0][1].terms)


def _noise(stored: Sequence[Known], used: Used, shares: Sequence[Floats], cell: int) -> Noise:
    parts = []
    for (place, way), share in zip(used, shares, strict=True):
        measured = noisy_columns(stored[place].plan)
        for column, weight in way.terms:
            size = abs(float(weight)) * float(share[cell])
            parts.append(((place, column), Fitted(measured[column].law, ((size, int(way.cells[cell])),))))
    return Summed(tuple(parts), 0.0 if _is_whole(used) else 0.5)


def _summed_over(wanted: Additive, stored: Sequence[Known]) -> tuple[str, ...]:
    """Keys of the stored answers that are not keys of the plan: rows with an undeclared value are missing."""
    names = [
        column.name
        for known in stored
        for text, column in known.additive.keys.items()
        if text not in wanted.keys
    ]
    return tuple(dict.fromkeys(names))


# -- is it good enough ---------------------------------------------------------------------------------------
# the variance that the noise of a score amounts to, in squares of its scale: half that of a difference of two
_CHOICES = {
    Mechanism.CHOICE_FLIP: 1.0,
    Mechanism.CHOICE_LAPLACE: 2.0,
    Mechanism.CHOICE_HISTOGRAM: 2.0,
    Mechanism.CHOICE_GUMBEL: np.pi**2 / 6.0,
    Mechanism.CHOICE_EXPONENTIAL: np.pi**2 / 6.0,
}


def variances(plan: Plan) -> dict[str, float]:
    """The variance of each column of the plan."""
    found: dict[str, float] = {}
    for each in plan.measurements:
        factor = _CHOICES.get(each.mechanism)
        noisy = variance(each.law) if factor is None else factor * float(each.noise_scale) ** 2
        found |= dict.fromkeys(each.columns, noisy)
    return found


def is_as_good(plan: Plan, answered: Plan, derived: Derived) -> bool:
    """Whether no cell is noisier than the plan would make it; for several columns, no number computed from
    them.
    """
    allowed = variances(plan)
    if answered is not plan:
        most = errors(plan.estimates, plan.quotients, allowed)
        found = [{column: variance(each) for column, each in noise.items()} for _, noise in derived.kinds]
        return all(
            are_no_larger(errors(answered.estimates, answered.quotients, noise), most) for noise in found
        )
    return all(
        variance(noise[column]) <= most * (1 + 1e-9)
        for _, noise in derived.kinds
        for column, most in allowed.items()
    )


def chosen(release: Choose, space: KeySpace, picks: int, scores: Integers) -> Integers:
    """The best candidates by noisy score, or the best of each group."""
    signed = scores if release.largest else -scores
    within = {key.name for key in release.keys[: release.within]}
    groups = int(
        np.prod([len(group) for group in space.groups if set(group.names) <= within], dtype=np.int64)
    )
    if release.within:
        best = np.argmax(signed.reshape(groups, -1), axis=1)
        return np.asarray(np.arange(groups) * (len(signed) // groups) + best, dtype=np.int64)
    return np.argsort(-signed, kind="stable")[:picks].astype(np.int64)
