"""The arguments of a release, checked; and as JSON, from which the same release can be planned again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privsql.errors import ArgumentError
from privsql.planning.marginals.range_workload import Ranges, prefixes, ranges
from privsql.planning.marginals.workload import Marginals, marginals
from privsql.planning.pricing import Offer
from privsql.policy.checks import delta_of, epsilon_of, limit_of
from privsql.request import argument

Workload = Marginals | Ranges | str


@dataclass(frozen=True)
class ReleaseRequest:
    """A workload over one table, and what it may cost.

    `Session.release` and `Session.explain_release` take these arguments.
    """

    workload: Workload | Sequence[Workload] = field(
        metadata={
            "help": "what privsql.marginals, ranges or prefixes make, SQL that counts, or a list of these"
        }
    )
    table: str | None = argument(None, "the name of the table; a SQL query names it itself")
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole release")
    delta: float = argument(0.0, "the chance that the promise fails; above 0, as the noise is Gaussian")
    _: KW_ONLY
    max_groups: int | None = argument(None, "combinations of cells that one unit may be in")
    max_rows: int | None = argument(None, "rows that one unit may have in one combination")
    dialect: str = argument("duckdb", "the dialect of SQL queries; any that sqlglot reads")

    def offer(self) -> Offer:
        """The price and the limits, after a check of every argument."""
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in wanted.items()}
        limits = {name: value for name, value in checked.items() if value is not None}
        return Offer(epsilon_of(self.epsilon), delta_of(self.delta), limits=limits)

    @property
    def listed(self) -> tuple[Workload, ...]:
        """All workloads, after a check that they are some."""
        given: Any = self.workload
        several = isinstance(given, Sequence) and not isinstance(given, str)
        found: tuple[Any, ...] = tuple(given) if several else (given,)
        if not found or not all(_is_workload(each) for each in found):
            problem = (
                "a workload is made by privsql.marginals, ranges or prefixes, or is a SQL query, or a list"
            )
            raise ArgumentError("argument-workload", problem, 'privsql.marginals(["age", "state"], ways=2)')
        return tuple(_checked(each) for each in found)

    @property
    def texts(self) -> list[str]:
        """The SQL queries among the workloads."""
        return [each for each in self.listed if isinstance(each, str)]

    def to_json(self) -> dict[str, Any]:
        """All arguments, as JSON. Raises TypeError for edges that JSON cannot hold."""
        return {
            "workloads": [_workload_to_json(each) for each in self.listed],
            "single": isinstance(self.workload, Workload),
            "table": self.table,
            "epsilon": str(epsilon_of(self.epsilon)),
            "delta": self.delta,
            "max_groups": self.max_groups,
            "max_rows": self.max_rows,
            "dialect": self.dialect,
        }

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> ReleaseRequest:
        """The arguments that were written."""
        found = [_workload_of_json(each) for each in raw["workloads"]]
        return ReleaseRequest(
            found[0] if raw["single"] else found,
            raw["table"],
            Fraction(raw["epsilon"]),
            raw["delta"],
            max_groups=raw["max_groups"],
            max_rows=raw["max_rows"],
            dialect=raw["dialect"],
        )


def _is_workload(given: object) -> bool:
    """Whether it may be one: the name of a column is none, and no query is a single word."""
    return len(given.split()) > 1 if isinstance(given, str) else isinstance(given, Marginals | Ranges)


def _checked(workload: Workload) -> Workload:
    """The workload as its function makes it: somebody may have changed its fields since."""
    match workload:
        case Marginals():
            return marginals(workload.columns, workload.ways, workload.bins)
        case Ranges():
            make = prefixes if workload.prefixes else ranges
            return make(workload.column, workload.bins)
        case str():
            return workload


def _workload_to_json(workload: Workload) -> Any:
    match workload:
        case str():
            return {"sql": workload}
        case Marginals():
            every = {name: _bins_to_json(how) for name, how in workload.bins.items()}
            return {"columns": list(workload.columns), "ways": workload.ways, "bins": every}
        case Ranges():
            bins = None if workload.bins is None else _bins_to_json(workload.bins)
            return {"column": workload.column, "bins": bins, "prefixes": workload.prefixes}


def _workload_of_json(raw: Any) -> Workload:
    match raw:
        case {"sql": str(text)}:
            return text
        case {"columns": columns, "ways": ways, "bins": bins}:
            given = {name: _bins_of_json(how) for name, how in bins.items()}
            return Marginals(tuple(columns), ways, given)
        case {"column": column, "bins": bins, "prefixes": prefixes}:
            return Ranges(column, None if bins is None else _bins_of_json(bins), prefixes)
        case _:
            raise ValueError("not a workload")


def _bins_to_json(how: int | tuple[Any, ...]) -> Any:
    return how if isinstance(how, int) else [_to_json(each) for each in how]


def _bins_of_json(how: Any) -> int | tuple[Any, ...]:
    return how if isinstance(how, int) else tuple(_of_json(each) for each in how)


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
