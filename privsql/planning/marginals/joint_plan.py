"""The plan of a release of several workloads: their parts share one statement, one charge and one price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsql.planning.marginals.cell_counts import CellCounts
from privsql.planning.marginals.residual_measurement import NOISE
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.strategy_plan import StrategyPlan
from privsql.privacy.events import Gaussian
from privsql.privacy.gaussian import greatest_ratio

ReleasePart = ResidualPlan | StrategyPlan
_LEAST = Fraction(1, 2**64)


@dataclass(frozen=True, kw_only=True)
class JointPlan(CellCounts):
    """Everything that a release of several workloads will do, from these, the schema and the policy alone.

    Raises ValueError on construction if the parts together change by more than (epsilon, delta) allows: their
    squared changes add up at most.
    """

    parts: tuple[ReleasePart, ...]
    loss: Fraction
    delta_loss: Fraction

    def __post_init__(self) -> None:
        if self.ratio > greatest_ratio(self.loss, self.delta_loss) ** 2:
            raise ValueError("the noise does not cover the sensitivity")

    @cached_property
    def ratio(self) -> Fraction:
        """The squared change that one unit can make, in deviations of the noise."""
        return sum((each.measurement.ratio for each in self.parts), Fraction(0))

    @property
    def event(self) -> Gaussian:
        """What the ledger charges."""
        return Gaussian(self.loss, self.delta_loss, max(self.ratio, _LEAST))

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def delta(self) -> float:
        return float(self.delta_loss)

    @property
    def what(self) -> str:
        """What the ledger records as released."""
        return f"{'; '.join(_called(each) for each in self.parts)} of {self.table}"

    def to_dict(self) -> dict[str, object]:
        """The plan as JSON."""
        return {
            **self.facts(),
            "parts": [each.to_dict() for each in self.parts],
            "mechanism": NOISE,
            "ratio": float(self.ratio),
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _called(part: ReleasePart) -> str:
    if isinstance(part, StrategyPlan):
        return part.asked.what
    return f"{part.ways}-way marginals of {', '.join(part.names)}"


def _of_marginals(part: ResidualPlan) -> list[str]:
    return [_called(part), *(f"  {each}" for each in part.error_lines())]


def _lines(plan: JointPlan) -> Iterable[str]:
    yield f"release of {plan.what}"
    yield f"  neighbours: {plan.neighbours}; {plan.why}"
    yield f"  as one release with Gaussian noise: squared l2 / variance at most {float(plan.ratio):.6g}"
    yield f"  epsilon {plan.epsilon:g}, delta {plan.delta:g}" + (
        "" if plan.rho is None else f", rho {plan.rho:g}"
    )
    for part in plan.parts:
        own = part.lines() if isinstance(part, StrategyPlan) else _of_marginals(part)
        share = float(part.measurement.ratio / plan.ratio) if plan.ratio else 1.0
        yield f"  {own[0]} ({share:.0%} of the squared ratio)"
        yield from (f"  {each}" for each in own[1:])
    yield from (f"  {each}" for each in plan.warnings)
    if plan.stored:
        yield "  it was released before: that release is stored, and free"
    if plan.refusal:
        yield f"  refused now: {plan.refusal}"
