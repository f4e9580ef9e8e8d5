"""The plan of a query with several private parts: a plan for each release, and the SQL above them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from privsql.errors import Refused
from privsql.planning.limits.bounding import Bounding
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.plan import Accuracy, Plan, facts_of
from privsql.planning.precision.interval_kinds import IntervalKind, kinds_of
from privsql.sql.boxes.box import Boxed
from privsql.sql.split.influence import Simulated


@dataclass(frozen=True)
class PlannedPart:
    """A part of a query, and the name of its answer in the SQL above.

    `repeated`: it follows from another part, and costs nothing itself.
    """

    name: str
    plan: Plan
    repeated: bool = False


@dataclass(frozen=True)
class ComposedOutput:
    """A column of the answer: its name, its type in the engine, and the measurements of all releases."""

    name: str
    type_name: str
    measurements: tuple[int, ...]
    interval: IntervalKind  # how its interval comes about

    @property
    def formula(self) -> str:
        return f"{self.name}, computed above the releases"

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "measurements": list(self.measurements),
            "formula": self.formula,
            "interval": self.interval.name.lower(),
        }


@dataclass(frozen=True)
class ComposedPlan:
    """Everything that will happen: the releases, each with a plan that can be falsified by itself, and what
    is computed from their answers.
    """

    parts: tuple[PlannedPart, ...]
    above: str  # SQL over the answers of the parts; it reads nothing else
    columns: tuple[tuple[str, str], ...]  # of the answer: names, and types in the engine
    simulated: Simulated | None = field(default=None, compare=False, repr=False)  # how noise reaches them
    again: str = field(default="", compare=False, repr=False)  # SQL with the same rows whatever the noise is
    boxed: Boxed | None = field(default=None, compare=False, repr=False)  # its rules for ends of columns
    ends: str = field(default="", compare=False, repr=False)  # SQL that computes these ends
    remaining: float | None = field(default=None, compare=False)
    stored: bool = field(default=False, compare=False)
    refusal: str = field(default="", compare=False)
    rho: float | None = field(default=None, compare=False)

    @property
    def releases(self) -> tuple[Plan, ...]:
        """The plans of the private parts, each of which can be audited by itself."""
        return tuple(each.plan for each in self.parts if not each.plan.public)

    @property
    def loss(self) -> Fraction:
        """The price: that of all releases together, each of them once."""
        return sum((each.loss for each in self._paid), Fraction(0))

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def delta(self) -> float:
        return float(sum((each.delta_loss for each in self._paid), Fraction(0)))

    @property
    def _paid(self) -> tuple[Plan, ...]:
        return tuple(each.plan for each in self.parts if not each.plan.public and not each.repeated)

    @property
    def neighbours(self) -> str:
        return self.parts[0].plan.neighbours

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The measurements of all releases."""
        return tuple(measurement for each in self.releases for measurement in each.measurements)

    @property
    def outputs(self) -> tuple[ComposedOutput, ...]:
        everything = tuple(range(len(self.measurements)))
        return tuple(
            ComposedOutput(name, type_name, everything, kind)
            for (name, type_name), kind in zip(self.columns, self.interval_kinds, strict=True)
        )

    @cached_property
    def interval_kinds(self) -> tuple[IntervalKind, ...]:
        """How the interval of each column comes about."""
        return kinds_of(self.columns, self.releases, self.simulated, self.boxed)

    @property
    def sql(self) -> str:
        """The exact SQL of the only release. Raises Refused where there are several: each has its own."""
        return self._only.sql

    @property
    def keys(self) -> list[str]:
        """The key columns of the only release."""
        return self._only.keys

    @property
    def _only(self) -> Plan:
        if len(self.releases) != 1:
            raise Refused(
                "refused-several",
                f"The query has {len(self.releases)} releases, each with SQL and keys of its own.",
                "Look at plan.releases[0].sql, plan.releases[1].sql ...",
            )
        return self.releases[0]

    @property
    def public(self) -> bool:
        return False

    @property
    def bounding(self) -> tuple[Bounding, ...]:
        """What the limits on units may drop, in all releases."""
        return tuple(dict.fromkeys(bounding for each in self.releases for bounding in each.bounding))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for each in self.releases for note in each.notes))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be missing from the answer: the warnings of all releases."""
        return tuple(dict.fromkeys(warning for each in self.releases for warning in each.warnings))

    def accuracy(self, level: float = 0.95, rows: int | None = None) -> Accuracy:
        """The accuracy of each released number, before anything is spent.

        What is computed from them depends on their values: its intervals come with the answer.

        Arguments:
            level: the confidence level.
            rows: how many rows a cell has, which the accuracy of an AVG depends on.

        Returns:
            A dict from released numbers, such as "r0.n", to half-widths of their intervals.

        Raises:
            ArgumentError: the level is not between 0 and 1, or rows is not a whole number of at least 1.

        Example:
            >>> sql = "SELECT state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS m FROM visits GROUP BY state"
            >>> session.explain(sql, epsilon=1.0).accuracy(0.95)["r0.n"] > 0
            True
        """
        widths: dict[str, float | None] = {}
        notes: dict[str, str] = {}
        together: dict[str, float | None] = {}
        for part in self.parts:
            if not part.plan.public:
                found = part.plan.accuracy(level, rows)
                for name, width in found.items():
                    widths[f"{part.name}.{name}"] = width
                notes |= {f"{part.name}.{name}": note for name, note in found.notes.items()}
                together |= {f"{part.name}.{name}": width for name, width in found.together.items()}
        return Accuracy(widths, level, notes, together)

    def to_dict(self) -> dict[str, object]:
        return {
            "releases": [{"name": each.name, **each.plan.to_dict()} for each in self.parts],
            "above": self.above,
            **facts_of(self),
        }

    def __str__(self) -> str:
        from privsql.planning.explanation.explain_composed import explain_composed

        return explain_composed(self)

    __repr__ = __str__


AnyPlan = Plan | ComposedPlan
