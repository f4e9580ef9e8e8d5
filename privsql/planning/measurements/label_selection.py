"""Selection: only the label of the best candidate is released, not its score."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privsql.planning.measurements.laplace_noise import explained_scale, least_rate
from privsql.planning.measurements.noised import Mechanism, Noised
from privsql.privacy.events import Choice, Event, Laplace, Pure
from privsql.privacy.sensitivity import Sensitivity

SELECTIONS = (
    Mechanism.CHOICE_FLIP,
    Mechanism.CHOICE_LAPLACE,
    Mechanism.CHOICE_GUMBEL,
    Mechanism.CHOICE_EXPONENTIAL,
    Mechanism.CHOICE_HISTOGRAM,
)


@dataclass(frozen=True)
class SelectionMeasurement(Noised):
    """The largest of noisy scores. `picks`: how many candidates are selected, one after the other;
    `in_groups`: one in each group of candidates.
    """

    by: Mechanism
    rate: Fraction  # of the noise of a score
    picks: int = 1
    in_groups: bool = False

    def _check(self) -> None:
        if self.by not in SELECTIONS:
            raise ValueError("no selection is made by this mechanism")
        if self.rate <= 0 or self.picks < 1:
            raise ValueError("noise of scale zero cannot be made")
        if self.loss < self.rate * needed(self.by, self.sensitivity, self.picks, self.in_groups):
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that it charges."""
        match self.by:
            case Mechanism.CHOICE_GUMBEL | Mechanism.CHOICE_EXPONENTIAL:
                return (Choice(self.loss, self.picks),)
            case Mechanism.CHOICE_HISTOGRAM:  # the rest is post-processing of a noisy histogram
                return (Laplace(self.loss, self.l1, self.linf, self.noise_scale),)
            case _:
                return (Pure(self.loss, self.picks),)

    @property
    def noise_scale(self) -> Fraction:
        return 1 / self.rate

    @property
    def mechanism(self) -> Mechanism:
        return self.by

    def explanation(self) -> tuple[str, ...]:
        return self.explained_bounds(), explained_scale(self, "linf", self.linf)


def needed(by: Mechanism, sensitivity: Sensitivity, picks: int = 1, in_groups: bool = False) -> int:
    """The sensitivity that epsilon times the scale must reach.

    A candidate's lead over another one moves by at most 2 linf, and by at most l1, which covers both changes;
    by at most linf where all scores move the same way. In groups, the leads in all groups together move by at
    most l1. For a noisy histogram it is l1.
    """
    lead = sensitivity.linf if sensitivity.monotone else min(2 * sensitivity.linf, sensitivity.l1)
    match by:
        case Mechanism.CHOICE_EXPONENTIAL:  # the textbook's bound, which ignores monotone scores
            return 2 * (sensitivity.l1 if in_groups else sensitivity.linf) * picks
        case Mechanism.CHOICE_HISTOGRAM:
            return sensitivity.l1
        case _:
            return (sensitivity.l1 if in_groups else lead) * picks


def measure_selection(
    columns: tuple[str, ...],
    by: Mechanism,
    sensitivity: Sensitivity,
    loss: Fraction,
    what: str,
    picks: int = 1,
    in_groups: bool = False,
) -> SelectionMeasurement:
    """The least noise on scores that covers the sensitivity at this price."""
    rate = least_rate(needed(by, sensitivity, picks, in_groups), loss)
    return SelectionMeasurement(columns, sensitivity, loss, what, by, rate, picks, in_groups)
