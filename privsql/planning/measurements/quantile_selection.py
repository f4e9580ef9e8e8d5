"""Quantiles by the exponential mechanism over the values of a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privsql.planning.measurements.noised import Mechanism, Noised
from privsql.privacy.events import Choice, Event
from privsql.privacy.quantile_search import Search, Sought
from privsql.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class QuantileMeasurement(Noised):
    """Selects grid points in a histogram of values, one per column: P(v) ~ exp(-rows off / scale)."""

    search: Search

    def _check(self) -> None:
        rows = self.search.change.rows * (2 if self.search.change.replaced else 1)
        if (
            self.search.loss > self.loss
            or rows < self.sensitivity.l1
            or len(self.search.steps) != len(self.columns)
        ):
            raise ValueError("the search does not cover the sensitivity")

    @property
    def mechanism(self) -> Mechanism:
        return Mechanism.ORDER

    @property
    def noise_scale(self) -> Fraction:
        return 1 / self.search.rate

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that it charges."""
        return tuple(Choice(each) for each in self.search.losses)

    @property
    def score_sensitivity(self) -> float:
        """How far one person can change the difference of two values' scores, over all cells."""
        return float(self.search.span)

    def explanation(self) -> tuple[str, ...]:
        """How quantiles are selected, and how many rows off they may be."""
        search, span = self.search, self.score_sensitivity
        lines = [
            f"l1 = {self.l1:,}, linf = {self.linf:,} of the histogram of values: {self.why}",
            f"{self.mechanism.value}: selects one of {search.points:,} points, each with probability "
            "~ exp(-rows off / s), "
            f"s = {span:g} / epsilon = {span:g} / {self.epsilon:g} = {self.scale:,.6g}; "
            f"one person changes the difference of two points' rows off by at most {span:g}, "
            "over all cells and quantiles",
        ]
        if any(step.lean for step in search.steps):
            lines.append("points near an end of the range get less weight, in case the range is too wide")
        if any(step.parts for step in search.steps):
            lines.append(
                "the middle quantile comes first, then the others among the rows on either side of it"
            )
        for place, column in enumerate(self.columns):
            rows = math.ceil(search.rank_error(place, 0.95))
            lines.append(f"{column}: within ±{rows:,} rows of {search.rank_text(place)} at 95%, ties aside")
        few = max(search.rows_needed(place, 0.95) for place in range(len(self.columns)))
        lines.append(
            "undetermined where there are too few rows: with probability at least 95% if there are none, "
            f"at most 5% from {few:,} rows on"
        )
        return tuple(lines)


def measure_quantiles(
    columns: tuple[str, ...], sensitivity: Sensitivity, sought: Sought, loss: Fraction, what: str
) -> QuantileMeasurement:
    """Measure these quantiles at this price."""
    search = sought.at(loss)
    return QuantileMeasurement(columns, sensitivity, search.loss, what, search)
