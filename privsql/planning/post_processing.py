"""What is done with noisy cells: outputs, what stands above the releases, and what was asked to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privsql.algebra.expressions import Call, Expression
from privsql.algebra.relations import Question
from privsql.planning.rewrites.guarded import Guarded


@dataclass(frozen=True)
class Output:
    """What the analyst sees: a name, the measurements it is computed from, and how."""

    name: str
    measurements: tuple[int, ...]
    formula: str
    expression: Expression  # over the keys and aggregates of the release

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "measurements": list(self.measurements), "formula": self.formula}


@dataclass(frozen=True)
class PostProcessing:
    """From the noisy columns to what the analyst sees, at no cost."""

    question: Question
    outputs: tuple[Output, ...]
    above: Guarded | None  # what stands above the releases; None: public tables only
    nonnegative: bool = False  # asked for: no count below 0, totals kept
    consistent: bool = False  # asked for: the relations hold
    show_all: bool = False  # asked for: also numbers that say nothing

    @property
    def guards(self) -> Mapping[str, Call]:
        """Further columns of the noisy table: NULL where what these calls need cannot be told."""
        return {} if self.above is None else self.above.guards
