"""The plan of multiplicative weights with the exponential mechanism (MWEM): rounds, noise and price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privsql.planning.marginals.cell_counts import MarginalCounts
from privsql.planning.measurements.noised import LARGEST_SCALE, Mechanism, too_noisy
from privsql.privacy.events import Choice, Laplace
from privsql.privacy.marginals.residual_price import Neighbouring


@dataclass(frozen=True)
class MwemMeasurement:
    """Rounds, in each of which a marginal is selected by how far it is off, and measured.

    One unit changes the counts of one marginal by at most `moves` in sum, and so the score of every marginal,
    the sum of the distances between its counts and given whole numbers. Each round spends half of its part of
    epsilon on the exponential mechanism, and half on Laplace noise on all cells of the marginal.
    """

    by: Neighbouring
    rounds: int
    epsilon: Fraction
    selection_rate: Fraction  # a marginal is selected with probability ~ exp(rate * score)
    noise_rate: Fraction  # of discrete Laplace noise

    def __post_init__(self) -> None:
        part = self.epsilon / 2 / self.rounds
        if 2 * self.moves * self.selection_rate > part or self.moves * self.noise_rate > part:
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def moves(self) -> int:
        """The most that one unit changes the counts of one marginal, in sum."""
        return self.by.rows * (2 if self.by.replaced else 1)

    @property
    def events(self) -> list[tuple[str, Choice | Laplace]]:
        """What the ledger charges: all selections, and all measurements, with the mechanism of each."""
        half, scale = self.epsilon / 2, 1 / self.noise_rate
        return [
            (Mechanism.CHOICE_EXPONENTIAL.value, Choice(half, self.rounds)),
            (Mechanism.LAPLACE.value, Laplace(half, self.rounds * self.moves, self.by.rows, scale)),
        ]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of a cell, next to it."""
        return float(2**0.5 / self.noise_rate)


def measure_mwem(by: Neighbouring, rounds: int, epsilon: Fraction) -> MwemMeasurement:
    """Split epsilon evenly over the rounds, and over selecting and measuring."""
    part = epsilon / 2 / rounds
    moves = by.rows * (2 if by.replaced else 1)
    if moves / part > LARGEST_SCALE:
        raise too_noisy()
    return MwemMeasurement(by, rounds, epsilon, part / (2 * moves), part / moves)


@dataclass(frozen=True, kw_only=True)
class MwemPlan(MarginalCounts):
    """Everything that MWEM will do, from the workload, the schema and the policy alone."""

    measurement: MwemMeasurement
    sizes: Sequence[int]

    @property
    def what(self) -> str:
        """What the ledger records as released."""
        rounds = self.measurement.rounds
        return f"{rounds} of the {self.ways}-way marginals of {', '.join(self.names)} of {self.table}"

    @property
    def epsilon(self) -> float:
        return float(self.measurement.epsilon)

    def to_dict(self) -> dict[str, object]:
        """The plan as JSON."""
        return {
            **self.facts(),
            "ways": self.ways,
            "rounds": self.measurement.rounds,
            "mechanisms": [name for name, _ in self.measurement.events],
            "epsilon": self.epsilon,
            "delta": 0.0,
        }
