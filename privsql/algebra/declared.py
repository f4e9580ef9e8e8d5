"""What policy and schema say of a column: claims, and of a list how many different values it can give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.types import BOOLEAN, Kind, Type


@dataclass(frozen=True)
class Claim:
    """What policy and schema say of a column. Claims choose clamps and keys; the rendered SQL enforces
    them.
    """

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None
    nullable: bool = True  # by the schema alone, which the engine enforces: bounds rest on it
    null_is_key: bool = True  # whether NULL is shown among the keys; no bound rests on it
    auto: bool = False  # its range may be found privately, at a price


@dataclass(frozen=True)
class ListColumn:
    """A column of lists. It is no field, since nothing computes with a list: only UNNEST names it."""

    name: str
    type: Type  # of its elements
    cast: str | None
    claim: Claim  # what was declared of its elements

    @property
    def most(self) -> int | None:
        """How many different values that were declared one list can hold; None: they are not known."""
        claim = self.claim
        if claim.values is not None:
            return len(claim.values)
        if claim.low is None or claim.high is None:
            return None
        match self.type.kind:
            case Kind.INTEGER:
                return int(max(0, math.floor(claim.high) - math.ceil(claim.low) + 1))
            case Kind.DATE:
                return int((claim.high - claim.low).days) + 1
            case _:
                return None

    def declared(self, element: Column) -> Expression:
        """Whether an element is one of the values that were declared."""
        claim, tests = self.claim, []
        if claim.values is not None:
            tests.append(Call("in", (element, *(Literal(each, self.type) for each in claim.values)), BOOLEAN))
        for operator, end in ((">=", claim.low), ("<=", claim.high)):
            if end is not None:
                whole = (
                    end
                    if self.type.kind is not Kind.INTEGER
                    else math.ceil(end)
                    if operator == ">="
                    else math.floor(end)
                )
                tests.append(Call(operator, (element, Literal(whole, self.type)), BOOLEAN))
        return tests[0] if len(tests) == 1 else Call("and", tuple(tests), BOOLEAN)
