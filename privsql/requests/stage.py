"""A request goes in; its stages come out: each checked, as a plan needs it, and as JSON for the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.planning.limits.limit_histograms import Histogram
from privsql.planning.precision.half_widths import check_level
from privsql.policy import Policy
from privsql.policy.checks import AUTO, delta_of, epsilon_of, limit_of
from privsql.request import Request
from privsql.requests.text_options import options_of
from privsql.sql.parse.constants import (
    NOTHING,
    Constants,
    asks_for_time,
    described,
    parameters_of,
)
from privsql.sql.parse.tokens import options_in
from privsql.sql.split.stage_values import Rows
from privsql.suggestions import Argument

_PROBE = Fraction(1)  # the price at which a plan is made before within= finds the right one
_FLAGS = ("prepared", "nonnegative", "consistent", "show_all", "fresh")
_NOT_STORED = ("show_all", "fresh", "analyst")  # no part of what an answer is


@dataclass(frozen=True)
class Stage(Request):
    """One query of a request, with what earlier ones found: what is planned, charged and run at once."""

    _: KW_ONLY
    ranges: tuple[tuple[str, str, float, float], ...] = ()  # found: table, column and the ends
    histogram: Histogram | None = None  # of the units of this query, instead of its answer
    sizes_of: tuple[str, str] | None = None  # a table and a column whose values are counted; then `sql` is ""
    constants: Constants = NOTHING  # the parameters of the call, and when it was asked
    by_counts: bool = False  # labels are found by releasing their scores, as their keys are not declared
    part: int | None = None  # one part of a query that is composed of several
    given: tuple[tuple[str, Rows], ...] = ()  # noisy values of earlier parts that this one reads

    @staticmethod
    def of(request: Request) -> Stage:
        """The first stage, as the request says it."""
        if isinstance(request, Stage):
            return request
        given = {each.name: getattr(request, each.name) for each in fields(Request)}
        timed = isinstance(request.sql, str) and asks_for_time(request.sql)
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ") if timed else ""
        constants = Constants(parameters_of(request.params), now)
        given |= options_of(request, options_in(request.sql, request.dialect))
        return Stage(**{**given, "params": None}, constants=constants)

    def to_json(self) -> dict[str, Any]:
        """All that differs from the defaults, from which the same stage can be planned again.

        `epsilon` is exact, and known by then.
        """
        given = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in _NOT_STORED and getattr(self, each.name) != each.default
        }
        assert self.epsilon is not None
        if self.weights:
            given["weights"] = dict(self.weights)
        if self.constants != NOTHING:
            given["constants"] = [self.constants.parameters, self.constants.now]
        return {**given, "epsilon": str(self.price())}

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Stage:
        ranges = tuple(
            (str(table), str(column), low, high) for table, column, low, high in raw.get("ranges", ())
        )
        kind = None if raw.get("histogram") is None else Histogram(raw["histogram"])
        sizes_of = None if raw.get("sizes_of") is None else tuple(raw["sizes_of"])
        given = tuple((str(name), tuple(map(tuple, rows))) for name, rows in raw.get("given", ()))
        parameters, now = raw.get("constants", ((), ""))
        constants = Constants(tuple(map(tuple, parameters)), now)
        found = {
            "epsilon": Fraction(raw["epsilon"]),
            "ranges": ranges,
            "histogram": kind,
            "sizes_of": sizes_of,
            "constants": constants,
            "given": given,
        }
        return Stage(**{**raw, **found})

    def of_anyone(self) -> Stage:
        """The stage without what no plan depends on: who asks, and whether a stored answer will do."""
        if self.analyst is None and self.fresh is False:
            return self
        return replace(self, fresh=False, analyst=None)

    @property
    def text(self) -> str:
        """What the ledger records as the query."""
        if self.sizes_of is not None:
            return f"values by size, of {'.'.join(self.sizes_of)}"
        sql = self.sql + described(self.constants)
        if self.part is not None:
            return f"part {self.part + 1} of {sql}"
        return sql if self.histogram is None else f"{self.histogram}, of {sql}"

    def under(self, policy: Policy) -> Policy:
        """The policy, with the ranges that earlier stages found."""
        for table, column, low, high in self.ranges:
            policy = policy.with_columns(table, {column: (low, high)}, None)
        return policy

    def price(self) -> Fraction:
        """Epsilon, after a check of every argument; a fixed one where `within` is given instead."""
        if (self.epsilon is None) == (self.within is None):
            raise ArgumentError(
                "argument-epsilon", "give epsilon= or within=, one of them", [(Argument("epsilon", "1.0"),)]
            )
        delta_of(self.delta)
        check_level(self.confidence)
        self.limits()
        for name in _FLAGS:
            check_flag(name, getattr(self, name))
        return _PROBE if self.epsilon is None else epsilon_of(self.epsilon)

    def limits(self) -> dict[str, int]:
        """The limits on one unit's contribution that the call gives as numbers."""
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        given = {name: value for name, value in wanted.items() if value != AUTO}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in given.items()}
        return {name: value for name, value in checked.items() if value is not None}

    def with_limits(self, **found: int) -> Stage:
        """The same stage with limits that were found; those not found are as the policy has them."""
        return replace(
            self,
            max_rows=found.get("max_rows") if self.max_rows == AUTO else self.max_rows,
            max_groups=found.get("max_groups") if self.max_groups == AUTO else self.max_groups,
        )

    @property
    def automatic(self) -> tuple[str, ...]:
        """The limits that are to be found."""
        return tuple(name for name in ("max_rows", "max_groups") if getattr(self, name) == AUTO)


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True and False: 1, "yes" and numpy's booleans are usually mistakes."""
    if not isinstance(value, bool):
        raise ArgumentError("argument-projection", f"{name} is True or False", [(Argument(name, "True"),)])
