"""Two ways to measure the same go in; whether one makes some number surer and none less sure comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.planning.aggregates.estimates import Estimate, Linear, QuantilePoint, Ratio, Spread, Terms
from privsql.planning.measurements.measurement import Measurement

Errors = Mapping[str | tuple[str, str], float]

_TOLERANCE = 1e-6  # relatively: sums that are divided are rounded, which is paid for


def errors(
    estimates: Mapping[str, Estimate], quotients: Mapping[tuple[str, str], Ratio], noise: Mapping[str, float]
) -> Errors:
    """How far each aggregate may be off, squared, by the variances of columns: to compare two ways to measure
    the same.
    """

    def off(terms: Terms) -> float:
        return sum(float(weight) ** 2 * noise[column] for column, weight in terms)

    def error(how: Estimate) -> float:
        match how:
            case Linear():
                return off(how.terms)
            case Ratio():
                return max(off(how.above), off(how.below)) / how.one**2
            case Spread():
                return max(noise[column] for column in how.columns) / float(how.one) ** 2
            case QuantilePoint():
                return noise[how.column]

    found: dict[str | tuple[str, str], float] = {name: error(how) for name, how in estimates.items()}
    return found | {names: error(how) for names, how in quotients.items()}


def are_no_larger(some: Errors, others: Errors) -> bool:
    """Whether nothing is farther off by the first than by the second."""
    return all(some[name] <= most * (1 + _TOLERANCE) for name, most in others.items())


@dataclass(frozen=True)
class Measuring:
    """One of several ways to measure the same: how aggregates are computed, and from what."""

    estimates: Mapping[str, Estimate]
    quotients: Mapping[tuple[str, str], Ratio]
    measurements: Sequence[Measurement]

    def is_surer_than(self, other: Measuring) -> bool:
        """Whether some number is surer and none less so, neither in an ordinary cell nor in the total of
        all.
        """
        pairs = [(self._errors(total), other._errors(total)) for total in (False, True)]
        nowhere_worse = all(are_no_larger(some, others) for some, others in pairs)
        return nowhere_worse and not all(are_no_larger(others, some) for some, others in pairs)

    def _errors(self, total: bool) -> Errors:
        """By the scale of the noise alone, as if it were not rounded: which way is surer does not depend on
        epsilon then.
        """
        noise: dict[str, float] = {}
        for each in self.measurements:
            times = each.sensitivity.total_times if total else 1
            noise |= dict.fromkeys(each.columns, each.continuous_variance / times**2)
        return errors(self.estimates, self.quotients, noise)
