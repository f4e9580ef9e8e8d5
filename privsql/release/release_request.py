"""The arguments of a release, checked; and as JSON, from which the same release can be planned again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privsql.errors import ArgumentError
from privsql.planning.marginals.workload import Marginals
from privsql.planning.pricing import Offer
from privsql.policy.checks import delta_of, epsilon_of, limit_of
from privsql.request import argument


@dataclass(frozen=True)
class ReleaseRequest:
    """A workload over one table, and what it may cost.

    `Session.release` and `Session.explain_release` take these arguments.
    """

    workload: Marginals = field(metadata={"help": "what privsql.marginals makes"})
    table: str = field(metadata={"help": "the name of the table"})
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole release")
    delta: float = argument(0.0, "the chance that the promise fails; above 0, as the noise is Gaussian")
    _: KW_ONLY
    max_groups: int | None = argument(None, "combinations of cells that one unit may be in")
    max_rows: int | None = argument(None, "rows that one unit may have in one combination")

    def offer(self) -> Offer:
        """The price and the limits, after a check of every argument."""
        if not isinstance(self.workload, Marginals):
            problem = "a workload is made by privsql.marginals"
            raise ArgumentError("argument-workload", problem, 'privsql.marginals(["age", "state"], ways=2)')
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in wanted.items()}
        limits = {name: value for name, value in checked.items() if value is not None}
        return Offer(epsilon_of(self.epsilon), delta_of(self.delta), limits=limits)

    def to_json(self) -> dict[str, Any]:
        """All arguments, as JSON. Raises TypeError for edges that JSON cannot hold."""
        bins = {
            name: how if isinstance(how, int) else [_to_json(each) for each in how]
            for name, how in self.workload.bins.items()
        }
        workload = {"columns": list(self.workload.columns), "ways": self.workload.ways, "bins": bins}
        return {
            "workload": workload,
            "table": self.table,
            "epsilon": str(epsilon_of(self.epsilon)),
            "delta": self.delta,
            "max_groups": self.max_groups,
            "max_rows": self.max_rows,
        }

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> ReleaseRequest:
        """The arguments that were written."""
        workload = raw["workload"]
        bins = {
            name: how if isinstance(how, int) else tuple(_of_json(each) for each in how)
            for name, how in workload["bins"].items()
        }
        asked = Marginals(tuple(workload["columns"]), workload["ways"], bins)
        return ReleaseRequest(
            asked,
            raw["table"],
            Fraction(raw["epsilon"]),
            raw["delta"],
            max_groups=raw["max_groups"],
            max_rows=raw["max_rows"],
        )


def _to_json(value: Any) -> Any:
    match value:
        case np.generic():
            return _to_json(value.item())
        case dt.datetime():
            return {"moment": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
        case _:
            return value


def _of_json(value: Any) -> Any:
    match value:
        case {"moment": text}:
            return dt.datetime.fromisoformat(text)
        case {"date": text}:
            return dt.date.fromisoformat(text)
        case {"decimal": text}:
            return Decimal(text)
        case _:
            return value
