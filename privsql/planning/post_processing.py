"""What happens to noisy cells: the outputs, the query above the releases, and the projections on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privsql.algebra.expressions import Call, Expression
from privsql.algebra.relations import BoundQuery
from privsql.planning.rewrites.guarded import Guarded


@dataclass(frozen=True)
class Output:
    """An output: its name, its formula, and the measurements it uses."""

    name: str
    measurements: tuple[int, ...]
    formula: str
    expression: Expression  # over the keys and aggregates of the release

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "measurements": list(self.measurements), "formula": self.formula}


@dataclass(frozen=True)
class PostProcessing:
    """From the noisy columns to what the analyst sees, at no cost."""

    query: BoundQuery
    outputs: tuple[Output, ...]
    above: Guarded | None  # the query above the releases; None: public tables only
    nonnegative: bool = False  # on request: no count below 0, same totals
    consistent: bool = False  # on request: known relations between counts hold
    show_all: bool = False  # on request: also show undetermined numbers

    @property
    def guards(self) -> Mapping[str, Call]:
        """Further columns of the noisy table: NULL where the inputs of these calls are undetermined."""
        return {} if self.above is None else self.above.guards
