"""A query for labels goes in; the scores to measure come out, with the most accurate mechanism and a note on
the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from privsql.algebra.relations import Choose
from privsql.analysis.chains import moves_one_way
from privsql.analysis.keys import KeySpace
from privsql.analysis.public_rows import Look
from privsql.errors import Refused
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import normal
from privsql.planning.aggregates.counts import counts_part
from privsql.planning.aggregates.parts import Part, grid_for
from privsql.planning.aggregates.sums import one_sided
from privsql.planning.measurements.label_selection import SelectionMeasurement, needed
from privsql.planning.measurements.noised import Mechanism
from privsql.privacy.accuracy import selection_epsilon_of_histogram


@dataclass(frozen=True)
class ScorePart(Part):
    """Scores of candidates. `picks`: how many candidates are selected; `in_groups`: one in each group."""

    picks: int = 1
    in_groups: bool = False


def choice_part(release: Choose, context: AggregationContext, look: Look) -> ScorePart:
    """The part that scores every candidate."""
    score, one_way = normal(release.score, context.facts), True
    if score.function == "count":
        part = counts_part(1, [score], context)
    else:
        assert score.argument is not None
        grid, what = grid_for(score.argument, score.condition, context, score.place)
        part = one_sided("score_1", score.argument, score.condition, grid, context, what)
        one_way = grid.low >= 0 or grid.high <= 0
    if one_way and not release.within and moves_one_way(release, look):
        one_counts = "; of any two rows, one counts wherever the other does"
        why = f"{one_counts}, so one person moves all scores the same way"
        part = replace(
            part, sensitivity=replace(part.sensitivity, monotone=True, why=part.sensitivity.why + why)
        )
    which = "largest" if release.largest else "smallest"
    many = "the key" if release.most == 1 else f"the {release.most} keys"
    of_each = (
        f", for each {', '.join(key.name for key in release.keys[: release.within])}"
        if release.within
        else ""
    )
    picks = min(release.most, context.cells or 1)
    same = {each.name: getattr(part, each.name) for each in fields(Part)}
    same["what"] = f"{many} with the {which} {part.what}{of_each}"
    return ScorePart(**same, picks=picks, in_groups=release.within > 0)


def groups_apart(release: Choose, space: KeySpace) -> None:
    """Raise Refused unless all groups have the same candidates, side by side."""
    within = {key.name for key in release.keys[: release.within]}
    inside = [set(group.names) <= within for group in space.groups]
    mixed = any(set(group.names) & within and not set(group.names) <= within for group in space.groups)
    if mixed or inside != sorted(inside, reverse=True):
        raise Refused(
            "refused-choice",
            "each group must have the same candidates, but here they depend on the group",
            "partition by a different column than the ones that the candidates come from",
            release.keys[0].place,
        )


def best_mechanism(part: ScorePart, candidates: int) -> Mechanism:
    """Permute-and-flip, once per place; for several places one noisy histogram, if that is more accurate."""
    if part.picks == 1:
        return Mechanism.CHOICE_FLIP
    one_by_one = needed(Mechanism.CHOICE_FLIP, part.sensitivity, part.picks)
    at_once = needed(Mechanism.CHOICE_HISTOGRAM, part.sensitivity, part.picks)
    times = selection_epsilon_of_histogram(candidates, at_once, one_by_one)
    return Mechanism.CHOICE_HISTOGRAM if times < 1 else Mechanism.CHOICE_FLIP


def choice_notes(choice: SelectionMeasurement, candidates: int) -> tuple[str, ...]:
    """What is released, and how much more epsilon other mechanisms would need for the same accuracy."""
    notes = ["only the label is released, not the score"]
    if choice.mechanism is not Mechanism.CHOICE_FLIP or candidates < 2:
        return tuple(notes)
    of = f"of {candidates:,} cells"
    times = selection_epsilon_of_histogram(candidates, choice.l1, round(choice.noise_scale * choice.loss))
    notes.append(
        f"a noisy histogram {of} and a sort would need about {times:.1f} times this epsilon"
        " to be as sure of the winner"
    )
    textbook = needed(Mechanism.CHOICE_EXPONENTIAL, choice.sensitivity, choice.picks) / (
        choice.noise_scale * choice.loss
    )
    # probability of a wrong winner: exp(-g/b) for each other candidate, half of that with exponential noise
    times = float(textbook) * math.log((candidates - 1) / 0.05) / max(math.log((candidates - 1) / 0.1), 1e-9)
    notes.append(f"the exponential mechanism about {times:.1f} times")
    return tuple(notes)
