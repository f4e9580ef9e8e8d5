"""Two ways to measure the same aggregates go in; whether the first is better comes out: some number more
accurate, none less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.measurements.measurement import Measurement

Errors = Mapping[str | tuple[str, str], float]

_TOLERANCE = 1e-6  # relative: shares are rounded, and the rounding is paid for


def errors(
    estimates: Mapping[str, Estimate],
    quotients: Mapping[tuple[str, str], Estimate],
    noise: Mapping[str, float],
) -> Errors:
    """The squared error of each aggregate, from the variances of columns, to compare two ways to measure."""
    found: dict[str | tuple[str, str], float] = {
        name: how.squared_error(noise) for name, how in estimates.items()
    }
    return found | {names: how.squared_error(noise) for names, how in quotients.items()}


def are_no_larger(some: Errors, others: Errors) -> bool:
    """Whether no error of the first is larger than that of the second."""
    return all(some[name] <= most * (1 + _TOLERANCE) for name, most in others.items())


@dataclass(frozen=True)
class Measuring:
    """One of several ways to measure the same aggregates: the estimates and the measurements."""

    estimates: Mapping[str, Estimate]
    quotients: Mapping[tuple[str, str], Estimate]
    measurements: Sequence[Measurement]

    def is_surer_than(self, other: Measuring) -> bool:
        """Whether some number is more accurate and none less, both in an ordinary cell and in the grand
        total.
        """
        pairs = [(self._errors(total), other._errors(total)) for total in (False, True)]
        nowhere_worse = all(are_no_larger(some, others) for some, others in pairs)
        return nowhere_worse and not all(are_no_larger(others, some) for some, others in pairs)

    def _errors(self, total: bool) -> Errors:
        """Errors by the scale of the noise alone, as if it were not rounded, so that the comparison does not
        depend on epsilon.
        """
        noise: dict[str, float] = {}
        for each in self.measurements:
            times = each.sensitivity.total_times if total else 1
            noise |= dict.fromkeys(each.columns, each.continuous_variance / times**2)
        return errors(self.estimates, self.quotients, noise)
