"""What a dialect must bring, and what it may say otherwise; the writers beside this file say the rest.

A dialect is one file: a subclass of StatementWriter (write_statements.py, which stands on write_relations.py
and write_expressions.py) with the abstract methods of this class, and those of the others that it spells
in another way. Each form of a function is *total* (it has a value, or NULL, for every row) or guarded.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from privsql.algebra.exact import CountDistinctIn, Operation, Over, SomeDistinct
from privsql.algebra.expressions import Aggregate
from privsql.algebra.relations import Unnest, Unpivot
from privsql.errors import SqlError
from privsql.types import Type

# comparisons and arithmetic, both operands in one type
INFIX: Mapping[str, str] = {sign: f"({{0}} {sign} {{1}})" for sign in "= <> < <= > >= + - * / %".split()}

# operations of exact statements that every engine so far writes in the same way
OPERATIONS: Mapping[Operation, str] = {
    **{Operation(sign): f"({{0}} {sign} {{1}})" for sign in "+ - * % << >> = < <= > >=".split()},
    Operation.BETWEEN: "({0} BETWEEN {1} AND {2})",
    Operation.IS_NULL: "({0} IS NULL)",
    Operation.IS_PRESENT: "({0} IS NOT NULL)",
    Operation.NOT: "(NOT {0})",
    **{
        Operation(name): f"{name}({{args}})"
        for name in ("least", "greatest", "coalesce", "nullif", "abs", "round")
    },
    Operation.CEILING: "ceil({0})",
    Operation.DAYS_BETWEEN: "({0} - {1})",
    Operation.GROUPING: "GROUPING({args})",
}


class DialectBase(ABC):
    """How one engine spells what every statement is made of."""

    forms: ClassVar[Mapping[str, str]]  # functions of the algebra: {0} is the first argument, {args} are all
    operations: ClassVar[Mapping[Operation, str]]  # of exact statements, in the same way
    infix: ClassVar[Mapping[str, str]] = INFIX  # further ones: whole division

    # -- names, constants and types --------------------------------------------------------------------------
    @abstractmethod
    def identifier(self, name: str) -> str:
        """A name, quoted."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A constant text, quoted."""

    @abstractmethod
    def type_name(self, type_: Type) -> str:
        """The engine's type that holds every value of this one."""

    @abstractmethod
    def exact_type_name(self, type_: Type) -> str:
        """The engine's type with exactly these bounds, where it has one."""

    @abstractmethod
    def constant(self, value: Any, type_: Type) -> str:
        """A constant with its type written out."""

    def moment(self, value: dt.date | dt.time) -> str:
        """A constant date, time, or both."""
        match value:
            case dt.datetime():
                return f"TIMESTAMP {self.text(value.isoformat(sep=' '))}"
            case dt.date():
                return f"DATE {self.text(value.isoformat())}"
            case dt.time():
                return f"TIME {self.text(value.isoformat())}"

    @abstractmethod
    def try_cast(self, rendered: str, of: Type | None, type_name: str) -> str:
        """A value in the type of this name: NULL where that does not hold it."""

    @abstractmethod
    def as_text(self, rendered: str, type_: Type) -> str:
        """A value as text, NULL where it has none."""

    @abstractmethod
    def guarded(self, rendered: str) -> str:
        """NULL where computing this fails."""

    def explicit_cast(self, rendered: str, of: Type, to: Type) -> str:
        """A cast that the analyst wrote: NULL where the type of that name does not hold the value."""
        return self.try_cast(rendered, of, self.exact_type_name(to))

    # -- values ----------------------------------------------------------------------------------------------
    def same(self, left: str, right: str, negated: bool = False) -> str:
        """Whether two values are equal, NULL being equal to NULL."""
        return f"({left} IS {'' if negated else 'NOT '}DISTINCT FROM {right})"

    def meets(self, left: str, right: str) -> str:
        """The same, where rows are matched by it: some engines are fast for some spellings only."""
        return self.same(left, right)

    @abstractmethod
    def row_of(self, values: Sequence[str]) -> str:
        """Several values as one."""

    @abstractmethod
    def list_of(self, values: Sequence[str]) -> str:
        """Values of one type as a list."""

    @abstractmethod
    def list_cast(self, rendered: str, of: str) -> str:
        """A list whose elements are brought to one of our types."""

    @abstractmethod
    def unnested(self, listed: str, relation: Unnest) -> str:
        """The element of a list, a row for each."""

    @abstractmethod
    def unpivoted(self, relation: Unpivot) -> list[str]:
        """The two columns that make several rows of one: the label, and the value."""

    # -- aggregates and windows ------------------------------------------------------------------------------
    @abstractmethod
    def aggregate(self, node: Aggregate) -> str:
        """An exact aggregate in the type it is believed to have, NULL where that does not hold it."""

    @abstractmethod
    def over(self, window: Over) -> str:
        """A window function."""

    @abstractmethod
    def some_distinct(self, values: SomeDistinct) -> str:
        """A list of the first few different values of a unit."""

    @abstractmethod
    def count_distinct_in(self, count: CountDistinctIn) -> str:
        """How many different values all lists have."""

    # -- statements ------------------------------------------------------------------------------------------
    @abstractmethod
    def materialized(self, stored: bool | None) -> str:
        """What tells the engine to compute a step once, or not to."""

    @abstractmethod
    def fence(self) -> str:
        """What ends a statement into which an optimizer must not move a filter; may be empty."""

    @abstractmethod
    def stored_table(self, database: str, name: str) -> str:
        """A table of a database that is attached beside the source."""

    def table(self, name: str) -> str:
        """A table of the source."""
        return self.identifier(name)

    def named(self, source: str, name: str = "privsql_q") -> str:
        """What stands in FROM where nothing refers to it by a name: some engines insist on one."""
        return source

    @abstractmethod
    def ranked(self, shown: str, rest: str, rank: str, most: int, names: Sequence[str]) -> str:
        """The rows of SELECT `shown` `rest`, up to this rank, which is a window function; `rest` begins with
        FROM, and has no ORDER BY and LIMIT. `names`: what the columns are called; none: all of them, and any
        others beside them.
        """

    @abstractmethod
    def semi_join(self, left: str, right: str, condition: str) -> str:
        """The rows of one source, to stand in FROM, with a match in another one."""

    @abstractmethod
    def with_column_replaced(self, name: str, value: str, others: Sequence[str], source: str) -> str:
        """All rows of a source, one column being another value; `others` are its further columns."""


def plain_letters(value: str) -> str:
    """A text that every engine reads to its end; escapes of some dialects can make others."""
    if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SqlError("sql-syntax", "a text or a name has a character that is no text", "leave it out")
    return value


def plain_decimal(value: Decimal | int) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
