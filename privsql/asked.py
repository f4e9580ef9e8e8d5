"""The arguments of a call go in; they come out checked, as plans need them, and as text for the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.planning.accuracy import check_level
from privsql.planning.auto_limits import Histogram
from privsql.policy import Policy
from privsql.policy.checks import AUTO, delta_of, epsilon_of, limit_of
from privsql.suggestions import Argument

_PROBE = Fraction(1)  # the price at which a plan is made before within= finds the right one


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ArgumentError("argument-projection", f"{name} is True or False", [(Argument(name, "True"),)])


@dataclass(frozen=True)
class Asked:
    """A question with the arguments of its call, as they were given."""

    sql: str
    epsilon: float | Fraction | None = None
    delta: float = 0.0
    within: float | None = None
    confidence: float = 0.95
    dialect: str = "duckdb"
    mechanism: str | None = None
    max_groups: int | str | None = None  # "auto": to be found
    max_rows: int | str | None = None
    prepared: bool = True
    weights: Mapping[str, float] | None = None
    nonnegative: bool = False
    consistent: bool = False
    show_all: bool = False  # only how the answer is shown: no part of what is stored
    ranges: tuple[
        tuple[str, str, float, float], ...
    ] = ()  # found before, for a share of epsilon: table, column and the ends
    histogram: Histogram | None = None  # not the answer is wanted, but what limits are chosen from

    def to_json(self) -> dict[str, Any]:
        """All that is not as usual; by it the same call can be planned anew. epsilon= is known by then, and
        exact.
        """
        given = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }
        given.pop("show_all", None)
        assert self.epsilon is not None
        listed = {"weights": dict(self.weights)} if self.weights else {}
        return {**given, **listed, "epsilon": str(self.price())}

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Asked:
        ranges = tuple(
            (str(table), str(column), low, high) for table, column, low, high in raw.get("ranges", ())
        )
        kind = None if raw.get("histogram") is None else Histogram(raw["histogram"])
        return Asked(**{**raw, "epsilon": Fraction(raw["epsilon"]), "ranges": ranges, "histogram": kind})

    @property
    def text(self) -> str:
        """What the record says was asked."""
        return self.sql if self.histogram is None else f"{self.histogram}, of {self.sql}"

    def under(self, policy: Policy) -> Policy:
        """The policy with the ranges that were found."""
        for table, column, low, high in self.ranges:
            policy = policy.with_columns(table, {column: (low, high)}, None)
        return policy

    def price(self) -> Fraction:
        if (self.epsilon is None) == (self.within is None):
            raise ArgumentError(
                "argument-epsilon", "give epsilon= or within=, one of them", [(Argument("epsilon", "1.0"),)]
            )
        delta_of(self.delta)
        check_level(self.confidence)
        self.limits()
        for name in ("nonnegative", "consistent", "show_all", "prepared"):
            check_flag(name, getattr(self, name))
        return _PROBE if self.epsilon is None else epsilon_of(self.epsilon)

    def limits(self) -> dict[str, int]:
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        given = {name: value for name, value in wanted.items() if value != AUTO}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in given.items()}
        return {name: value for name, value in checked.items() if value is not None}

    def with_limits(self, **limits: int) -> Asked:
        """The same call with limits that were found; what was not found is as the policy has it."""
        rows, groups = (self._limit(name, limits) for name in ("max_rows", "max_groups"))
        return replace(self, max_rows=rows, max_groups=groups)

    def _limit(self, name: str, found: Mapping[str, int]) -> int | str | None:
        given = getattr(self, name)
        return found.get(name) if given == AUTO else given

    @property
    def automatic(self) -> tuple[str, ...]:
        """The limits that are to be found."""
        return tuple(name for name in ("max_rows", "max_groups") if getattr(self, name) == AUTO)
