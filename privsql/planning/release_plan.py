"""One release of a plan: its exact statements, what they measure, how noisy, and at what price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from privsql.algebra.exact import Dialect, Statement
from privsql.algebra.relations import Choose, Limits, Relation, Release
from privsql.analysis.keys import KeySpace
from privsql.analysis.stability import Stability
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.known_relations import CountRelation
from privsql.planning.limits.bounding import Bounding, dropped_matches
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.measurements.quantile_selection import QuantileMeasurement
from privsql.planning.pricing import Pricing
from privsql.planning.rewrites.value_bins import Bins
from privsql.privacy.least_squares import Levels
from privsql.privacy.quantile_search import Search


@dataclass(frozen=True)
class ValueStatement:
    """A histogram of values: keys, grid points and row counts, and the noisy columns selected from it.

    `bins`: for a shorter histogram, which is read first.
    """

    statement: Statement
    columns: tuple[str, ...]
    dialect: Dialect = field(compare=False, repr=False)
    bins: Bins | None = None

    @cached_property
    def sql(self) -> str:
        return self.dialect.statement(self.statement)

    def shorter(self, search: Search) -> str:
        """The statement that is read first: binned, if that is shorter."""
        if self.bins is None:
            return self.sql
        return self.dialect.statement(self.bins.statement(search))


@dataclass(frozen=True)
class ReleasePlan:
    """What the engine computes, and which of it gets noise. An auditor can test it on its own: run
    `statements` on two neighbouring databases.
    """

    counted: Statement | None  # selects the integer columns; None: all is selected from histograms of values
    measurements: tuple[Measurement, ...]
    release: Release | Choose | None  # what is measured; None: public tables only
    space: KeySpace
    stability: Stability
    estimates: Mapping[str, Estimate]  # by the name of an aggregate in the release
    # quotients of counts whose share is known more accurately than either count
    quotients: Mapping[tuple[str, str], Estimate]
    dialect: Dialect = field(compare=False, repr=False)
    pricing: Pricing | None  # how epsilon is split; None: public tables only
    steps: Mapping[Relation, Stability] = field(default_factory=dict, compare=False, repr=False)
    limits: Limits | None = None  # the limits on one unit, where units are bounded
    bounding: tuple[Bounding, ...] = field(default=(), compare=False)  # what limits may drop
    # how cells add up over grouping sets
    levels: Levels | None = field(default=None, compare=False, repr=False)
    relations: tuple[CountRelation, ...] = ()  # what must hold between counts
    of_values: tuple[ValueStatement, ...] = ()  # the histograms from which quantiles are selected
    # noisy values of earlier stages that the statements read, by name; every plan has one stage so far
    parameters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError unless the parts of a Gaussian release are all here: they have only a
        joint price.
        """
        joint = [each.joint for each in self.measurements if isinstance(each, GaussianMeasurement)]
        if joint and (
            len({(each.epsilon, each.delta) for each in joint}) > 1 or sum(each.share for each in joint) != 1
        ):
            raise ValueError("a Gaussian release is priced whole")
        if sum(isinstance(each, KeyMeasurement) for each in self.measurements) > 1:
            raise ValueError("a plan releases keys only once")

    @property
    def loss(self) -> Fraction:
        """The price of the release: its measurements together."""
        return sum((each.loss for each in self.measurements), Fraction(0))

    @property
    def delta_loss(self) -> Fraction:
        return sum((each.delta_loss for each in self.measurements), Fraction(0))

    @property
    def keys(self) -> list[str]:
        return list(self.space.names)

    @property
    def counts(self) -> bool:
        """Whether `sql` has integer columns; otherwise it is the first histogram of values."""
        return self.counted is not None

    @cached_property
    def sql(self) -> str:
        """The exact SQL, runnable by hand; with histograms of values and no counts, the first histogram."""
        return self.of_values[0].sql if self.counted is None else self.dialect.statement(self.counted)

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """What the engine runs first: counts and sums, then each histogram of values, in its shorter form if
        it has one.
        """
        found = [self.sql] if self.counts else []
        for each in self.of_values:
            found.append(each.shorter(self.measured_by(each).search))
        return tuple(found)

    def measured_by(self, statement: ValueStatement) -> QuantileMeasurement:
        """The measurement that selects grid points in a histogram of values."""
        return next(
            each
            for each in self.measurements
            if isinstance(each, QuantileMeasurement) and each.columns == statement.columns
        )

    @property
    def selected_by(self) -> SelectionMeasurement | None:
        """The measurement that selects the best label; None if numbers are released."""
        return next((each for each in self.measurements if isinstance(each, SelectionMeasurement)), None)

    @property
    def keys_shown_by(self) -> KeyMeasurement | None:
        """The measurement that decides which undeclared keys are shown; None if all keys are declared."""
        return next((each for each in self.measurements if isinstance(each, KeyMeasurement)), None)

    @property
    def statements(self) -> tuple[str, ...]:
        """Everything the engine may run, first what is measured."""
        return tuple(dict.fromkeys([self.sql, *(each.sql for each in self.of_values), *self.runs]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be missing from an answer, and why: derived from the query, the schema and the policy
        alone.
        """
        if self.release is None:
            return ()
        dropped = [sentence for each in self.bounding for sentence in each.sentences]
        missing = ["Keys that few units have are not shown."] if self.space.open else []
        return (*dropped, *dropped_matches(self.release.input), *missing)

    def repriced(self, epsilon: Fraction) -> ReleasePlan:
        """The same release at another price: the same SQL with other noise."""
        return self if self.pricing is None else replace(self, measurements=self.pricing.at(epsilon))
