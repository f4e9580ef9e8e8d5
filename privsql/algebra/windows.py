"""Windows over rows of one unit: a function, its partition, its order and its frame.

The rendered SQL adds the unit to the partition. `by` holds what the analyst wrote besides: expressions in
which the rows of one unit may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from privsql.algebra.expressions import Aggregate, Expression
from privsql.types import Type

AGGREGATES = frozenset({"count", "count_distinct", "sum", "avg", "min", "max", "bool_or", "bool_and"})
# they depend on which of two equal rows comes first, so the rows that the order leaves equal are told apart
_PLACES = frozenset({"row_number", "ntile", "lag", "lead"})
VALUES = frozenset({"first_value", "last_value", "nth_value"})  # of the rows of a frame
SHIFTS = frozenset({"lag", "lead"})


@dataclass(frozen=True)
class Order:
    """One ORDER BY term."""

    expression: Expression
    descending: bool
    nulls_first: bool


class FrameKind(StrEnum):
    """What the ends of a frame count."""

    ROWS = "ROWS"
    RANGE = "RANGE"
    GROUPS = "GROUPS"


@dataclass(frozen=True)
class FrameEnd:
    """So many rows, groups, or steps of the order's value `before` or after the current row; None: all."""

    distance: int | None
    before: bool

    @property
    def is_computed(self) -> bool:
        """Whether it is a number away from the current row."""
        return self.distance is not None and self.distance != 0


@dataclass(frozen=True)
class Frame:
    """The rows that a window function sees. In RANGE frames a step is 1, or a microsecond between moments."""

    kind: FrameKind
    start: FrameEnd
    end: FrameEnd

    @property
    def is_computed(self) -> bool:
        return self.start.is_computed or self.end.is_computed


@dataclass(frozen=True)
class Window:
    """A value computed for each row from rows of its unit.

    `number`: of NTILE(n), LAG(x, n) and NTH_VALUE(x, n). `default`: what LAG and LEAD return where there is
    no such row. No frame: with an order, all rows up to the current one and its peers; else all rows.
    """

    function: str
    argument: Expression | None
    type: Type
    by: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None = None
    condition: Expression | None = None
    number: int | None = None
    default: Expression | None = None
    skips_null: bool = False

    @property
    def aggregate(self) -> Aggregate:
        """The same function over all the rows of its frame."""
        assert self.function in AGGREGATES
        return Aggregate(self.function, self.argument, self.condition, self.type)

    @property
    def reads(self) -> tuple[Expression, ...]:
        """Everything it computes row by row."""
        ordered = tuple(each.expression for each in self.order)
        own = tuple(each for each in (self.argument, self.condition) if each is not None)
        return (*own, *self.by, *ordered)

    @property
    def tells_rows_apart(self) -> bool:
        """Whether rows that its order leaves equal must be brought into one order: RANK and RANGE frames
        treat them alike.
        """
        in_rows = self.frame is not None and self.frame.kind is FrameKind.ROWS
        return self.function in _PLACES or (in_rows and self.function in AGGREGATES | VALUES)
