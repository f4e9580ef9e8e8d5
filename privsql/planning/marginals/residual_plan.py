"""The plan of a release of marginals: cells, noise, the exact statement, and the errors to expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

from privsql.planning.marginals.cell_counts import MarginalCounts
from privsql.planning.marginals.residual_measurement import NOISE, ResidualMeasurement
from privsql.planning.precision.half_widths import check_level
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.marginals.residual_variances import deviation_of_cell

_SHOWN = 12  # marginals in a text


@dataclass(frozen=True)
class PredictedError:
    """How far off the cells of one marginal are, by the noise alone and before shrinking improves them."""

    columns: tuple[str, ...]
    cells: int
    deviation: float  # of one cell, in rows

    def half_width(self, level: float = 0.95) -> float:
        """The +- of one cell at this confidence level."""
        return NormalDist().inv_cdf(0.5 + check_level(level) / 2) * self.deviation


@dataclass(frozen=True, kw_only=True)
class ResidualPlan(MarginalCounts):
    """Everything that a release of marginals will do, from the workload, the schema and the policy alone.

    `statement` counts the rows in every combination of cells that occurs, from which all marginals are added
    up; `measurement` is the noise of their residuals, and its price.
    """

    measurement: ResidualMeasurement

    @property
    def residuals(self) -> Mapping[Columns, Fraction]:
        return self.measurement.variances

    @property
    def epsilon(self) -> float:
        return float(self.measurement.epsilon)

    @property
    def delta(self) -> float:
        return float(self.measurement.delta)

    @property
    def what(self) -> str:
        """What the ledger records as released."""
        which = "some" if self.workload.chosen else "all"
        return f"{which} {self.ways}-way marginals of {', '.join(self.names)} of {self.table}"

    @cached_property
    def errors(self) -> tuple[PredictedError, ...]:
        """The predicted error of every marginal, of one column up to all ways."""
        sets = (
            some for size in range(1, self.ways + 1) for some in combinations(range(len(self.columns)), size)
        )
        return tuple(self.error_of(each) for each in sets if self.covers(each))

    def error_of(self, columns: Columns) -> PredictedError:
        """The predicted error of one marginal, given by the places of its columns."""
        measured = self.measurement
        deviation = deviation_of_cell(measured.sizes, measured.variances, columns)
        return PredictedError(tuple(self.names[each] for each in columns), measured.cells(columns), deviation)

    def error_lines(self) -> list[str]:
        """What errors to expect, as text."""
        return ["one cell is within, at 95% and before shrinking:", *_error_lines(self.errors)]

    def to_dict(self) -> dict[str, object]:
        """The plan as JSON."""
        return {
            **self.facts(),
            "columns": {each.column.name: [_text(label) for label in each.labels] for each in self.columns},
            "ways": self.ways,
            "residuals": len(self.residuals),
            "mechanism": NOISE,
            "ratio": float(self.measurement.ratio),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "predicted_errors": [
                {"columns": list(each.columns), "cells": each.cells, "deviation": each.deviation}
                for each in self.errors
            ],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(plan: ResidualPlan) -> list[str]:
    ratio = float(plan.measurement.ratio)
    total = float(plan.residuals[()]) ** 0.5
    public = plan.measurement.by.total_is_public
    counted = "public under replace-one" if public else f"measured, standard deviation {total:,.4g}"
    lines = [
        f"release of {plan.what}",
        f"  neighbours: {plan.neighbours}; {plan.why}",
        f"  {len(plan.residuals):,} residuals with Gaussian noise, as one release: squared l2 / variance at "
        f"most {ratio:.6g}",
        f"  epsilon {plan.epsilon:g}, delta {plan.delta:g}"
        + ("" if plan.rho is None else f", rho {plan.rho:g}"),
        f"  number of rows: {counted}",
        "  columns: " + ", ".join(f"{each.column.name} ({each.size} cells)" for each in plan.columns),
        *(f"  {each}" for each in plan.error_lines()),
        *(f"  {each}" for each in plan.warnings),
    ]
    if plan.stored:
        lines.append("  it was released before: that release is stored, and free")
    if plan.refusal:
        lines.append(f"  refused now: {plan.refusal}")
    return lines


def _error_lines(errors: Sequence[PredictedError]) -> list[str]:
    """The most and the least accurate marginals."""
    ordered = sorted(errors, key=lambda each: each.deviation)
    some = ordered if len(ordered) <= _SHOWN else [*ordered[: _SHOWN // 2], *ordered[-_SHOWN // 2 :]]
    lines = [f"  {', '.join(each.columns)}: +- {each.half_width():,.4g}" for each in some]
    if len(ordered) > _SHOWN:
        lines.insert(_SHOWN // 2, f"  ... {len(ordered) - _SHOWN:,} more in between")
    return lines


def _text(label: object) -> object:
    return label if label is None or isinstance(label, (str, int, float, bool)) else str(label)
