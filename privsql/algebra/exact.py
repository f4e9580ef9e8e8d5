"""Exact statements as trees: what an engine computes for a release. render/ writes them in its dialect.

Scalars are values of one row or one group; a statement selects them from rows of a relation, from another
statement, or from a stored table. Arithmetic is over whole numbers that fit by construction: planning clamps
what is added up, so that no operation overflows in the wide type that sums have.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Relation
from privsql.types import BIGINT, INTEGER_BOUNDS, Kind, Type, integer

WIDE = integer(*INTEGER_BOUNDS["HUGEINT"])  # whole numbers of 128 bits: what sums are added up in
UNSIGNED = integer(*INTEGER_BOUNDS["UBIGINT"])
PLACES = integer(*INTEGER_BOUNDS["INTEGER"])  # of points of a grid
RANKS = integer(*INTEGER_BOUNDS["USMALLINT"])


class Operation(StrEnum):
    """What a dialect must be able to compute; each has one row in its table of operations."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    FLOOR_DIVIDE = "//"
    DIVIDE = "/"
    MODULO = "%"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    SAME = "is the same as, NULL included"
    BETWEEN = "between"
    IS_NULL = "is NULL"
    IS_PRESENT = "is not NULL"
    AND = "and"
    OR = "or"
    NOT = "not"
    LEAST = "least"
    GREATEST = "greatest"
    COALESCE = "coalesce"
    NULLIF = "nullif"
    ABS = "abs"
    CEILING = "ceiling"
    LOG2 = "log2"
    ROUND = "round"
    DAYS_BETWEEN = "days between dates"  # the first minus the second
    MICROSECONDS = "microseconds since 1970"
    HASH = "fair hash"  # of several values; for each of them as good as independent of the others
    GROUPING = "which keys a total is over"
    ONE_ZERO = "0.0 for -0.0"  # equal numbers with two spellings
    AS_TEXT = "as text"


class Scalar:
    """A value of a row or a group. Python's operators build whole-number arithmetic."""

    def __add__(self, other: Scalar | int) -> Scalar:
        return Op(Operation.ADD, (self, scalar(other)))

    def __sub__(self, other: Scalar | int) -> Scalar:
        return Op(Operation.SUBTRACT, (self, scalar(other)))

    def __rsub__(self, other: int) -> Scalar:
        return Op(Operation.SUBTRACT, (scalar(other), self))

    def __mul__(self, other: Scalar | int) -> Scalar:
        return Op(Operation.MULTIPLY, (self, scalar(other)))

    def __rmul__(self, other: int) -> Scalar:
        return Op(Operation.MULTIPLY, (scalar(other), self))

    def __floordiv__(self, other: Scalar | int) -> Scalar:
        return Op(Operation.FLOOR_DIVIDE, (self, scalar(other)))


@dataclass(frozen=True)
class Value(Scalar):
    """An expression of the algebra over the columns of the rows below."""

    expression: Expression


@dataclass(frozen=True)
class Name(Scalar):
    """A column of the statement below, by its name."""

    name: str


@dataclass(frozen=True)
class Constant(Scalar):
    """A constant of a type; None as type: a whole number as it stands."""

    value: Any
    type: Type | None = None


@dataclass(frozen=True)
class Op(Scalar):
    """An operation on scalars."""

    operation: Operation
    operands: tuple[Scalar, ...]


@dataclass(frozen=True)
class Cases(Scalar):
    """The value of the first condition that holds, or else `otherwise`; None: NULL."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar | None = None


@dataclass(frozen=True)
class Cast(Scalar):
    """A value in another type. `total`: NULL where that type does not hold it; else it holds every value."""

    value: Scalar
    type: Type
    total: bool = True


@dataclass(frozen=True)
class Fold(Scalar):
    """An aggregate over the rows where the condition holds: count (None: of rows), sum, min, max."""

    function: str
    value: Scalar | None = None
    condition: Scalar | None = None
    distinct: bool = False


@dataclass(frozen=True)
class SomeDistinct(Scalar):
    """Of one unit, the first `most` of its different values in the order of `place`: kept as a list."""

    value: Scalar
    place: Scalar
    most: int
    condition: Scalar | None = None


@dataclass(frozen=True)
class CountDistinctIn(Scalar):
    """How many different values the lists of all units have together."""

    lists: Scalar


@dataclass(frozen=True)
class SumDistinctIn(Scalar):
    """What the different values of the lists of all units add up to; NULL where there are none."""

    lists: Scalar


@dataclass(frozen=True)
class Over(Scalar):
    """A window function: row_number, dense_rank, sum, lead. `running`: up to the row itself, in that
    order.
    """

    function: str
    value: Scalar | None = None
    by: tuple[Scalar, ...] = ()
    order: tuple[Scalar, ...] = ()
    running: bool = False


@dataclass(frozen=True)
class OneOf(Scalar):
    """Whether a value is one of these constants."""

    value: Scalar
    options: tuple[Constant, ...]


@dataclass(frozen=True)
class AmongRows(Scalar):
    """Whether values are together a row of constants, NULL being the same as NULL."""

    values: tuple[Scalar, ...]
    rows: tuple[tuple[Constant, ...], ...]


@dataclass(frozen=True)
class Single(Scalar):
    """The one value of a statement that has one row."""

    statement: Select


NOTHING = Constant(None)


# -- statements ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rows:
    """The rows of a relation; `unit`: with a further column that says whose each row is."""

    relation: Relation
    unit: bool = False


@dataclass(frozen=True)
class Earlier:
    """An earlier step of the same statement."""

    name: str


@dataclass(frozen=True)
class StoredTable:
    """A table of prepared copies; `database`: another than the one they lie in."""

    name: str
    database: str | None = None


@dataclass(frozen=True)
class Matching:
    """The rows of the left for which the right has a row that agrees in these columns, NULL being the
    same.
    """

    left: Source
    right: Source
    same: tuple[str, ...]


@dataclass(frozen=True)
class Pairs:
    """Every row of the left beside every row of the right; their columns have different names."""

    left: Source
    right: Source


@dataclass(frozen=True)
class Ordered:
    """A term of an order; NULLs come last."""

    value: Scalar
    descending: bool = False


@dataclass(frozen=True)
class Select:
    """Columns by name from a source. `keys`: so many of the first columns are what the rows are grouped by.

    `everything`: all columns of the source come first. `sets`: grouped by several sets of the keys. `ranked`:
    a rank and the most that it may be. `fenced`: what stands outside is not moved into it by an optimizer.
    """

    columns: tuple[tuple[str, Scalar], ...]
    source: Source | None
    where: tuple[Scalar, ...] = ()
    keys: int = 0
    sets: tuple[tuple[str, ...], ...] = ()
    ranked: tuple[Scalar, int] | None = None
    order: tuple[Ordered, ...] = ()
    limit: int | None = None
    everything: bool = False
    fenced: bool = False
    different: bool = False


@dataclass(frozen=True)
class Stacked:
    """The rows of several statements with the same columns."""

    parts: tuple[Select, ...]


@dataclass(frozen=True)
class WithSteps:
    """A statement over named steps. `stored`: whether a step is computed once; None: as the engine likes."""

    steps: tuple[tuple[str, Select, bool | None], ...]
    last: Select | Stacked


Source = Rows | Earlier | StoredTable | Matching | Pairs | Select | Stacked | WithSteps
Statement = Select | Stacked | WithSteps


class Dialect(Protocol):
    """Writes statements as SQL of one engine, and what stands above a release as SQL over its noisy table."""

    def statement(self, statement: Statement) -> str: ...

    def finishing(self, relation: Relation, guards: Collection[str]) -> str: ...


# -- short ways to say it ------------------------------------------------------------------------------------
def scalar(value: Scalar | int) -> Scalar:
    return Constant(value) if isinstance(value, int) else value


def op(operation: Operation, *operands: Scalar | int) -> Scalar:
    return Op(operation, tuple(scalar(each) for each in operands))


def least(*operands: Scalar | int) -> Scalar:
    return op(Operation.LEAST, *operands)


def clamped(value: Scalar, low: Scalar | int, high: Scalar | int) -> Scalar:
    """A value brought into a range; NULL counts as an end, so none may come in."""
    return least(op(Operation.GREATEST, value, low), high)


def coalesced(value: Scalar, default: Scalar | int = 0) -> Scalar:
    return op(Operation.COALESCE, value, default)


def nonzero(value: Scalar) -> Scalar:
    """To divide by: NULL where it is 0."""
    return op(Operation.NULLIF, value, 0)


def total(value: Scalar, condition: Scalar | None = None) -> Scalar:
    """The sum over all rows, 0 where there are none."""
    return coalesced(Fold("sum", value, condition))


def added(values: Sequence[Scalar]) -> Scalar:
    """All of them added up."""
    found, *rest = values
    for each in rest:
        found = found + each
    return found


def one_zero(expression: Expression) -> Scalar:
    """An expression in which 0.0 stands for -0.0 too: they are equal, and which one is seen first is nobody's
    business.
    """
    value = Value(expression)
    return op(Operation.ONE_ZERO, value) if expression.type.kind is Kind.DOUBLE else value


def fair_hash(choice: str, *values: Scalar | int) -> Scalar:
    """A number by which one of several things is chosen, as by a fair die that always falls the same way.

    The kind of choice is hashed too: by the same numbers, a second choice among what a first one kept would
    not be fair.
    """
    return op(Operation.HASH, Constant(choice, Type(Kind.TEXT)), *values)


def whole(value: Scalar) -> Scalar:
    """In 64 bits, or NULL."""
    return Cast(value, BIGINT)


def names(listed: Sequence[str]) -> tuple[tuple[str, Scalar], ...]:
    """Columns that keep their names."""
    return tuple((each, Name(each)) for each in listed)
