"""The answer of a query with several private parts: what was computed from the answers of its releases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.precision.half_widths import check_level
from privsql.results.answer import Answer
from privsql.results.result_table import ResultTable


@dataclass(frozen=True, eq=False)
class ComposedAnswer(ResultTable):
    """The result of the SQL above the releases, with the releases' own answers."""

    arrays: tuple[Any, ...]
    plan: ComposedPlan
    parts: tuple[Answer, ...]

    @property
    def columns(self) -> list[str]:
        return [name for name, _ in self.plan.columns]

    @cached_property
    def dates(self) -> tuple[bool, ...]:
        return tuple(type_name == "DATE" for _, type_name in self.plan.columns)

    @property
    def releases(self) -> tuple[Answer, ...]:
        """The answers of the private parts, each with intervals of its own."""
        return tuple(each for each in self.parts if not each.plan.public)

    @property
    def stored(self) -> bool:
        """Whether all releases were stored, so that it cost nothing this time."""
        return all(each.stored for each in self.releases)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be missing from the answer: the warnings of all releases."""
        return tuple(dict.fromkeys(warning for each in self.releases for warning in each.warnings))

    @property
    def searches(self) -> float:
        """Nothing is searched for before a query with several parts."""
        return 0.0

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """The answer as it is: intervals of what is computed above the releases are not known."""
        check_level(level)
        return self.df()

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        receipts = [each.receipt for each in self.releases]
        return {
            "outputs": self.columns,
            "rows": len(self),
            "neighbours": self.plan.neighbours,
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta,
            "stored": self.stored,
            "charged": sum(each["charged"] for each in receipts),
            "above": self.plan.above,
            "warnings": list(self.warnings),
            "releases": receipts,
        }

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0
