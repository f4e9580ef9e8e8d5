"""What a dialect must define, and what it may override; the writers beside this file do the rest.

A dialect is one file: a subclass of StatementWriter (write_statements.py, built on write_relations.py and
write_expressions.py) with the abstract methods of this class, and overrides where its syntax differs. Each
form of a function is *total* (it has a value, or NULL, for every row) or guarded.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from privsql.algebra.exact import CountDistinctIn, Operation, Over, SomeDistinct, SumDistinctIn
from privsql.algebra.expressions import Aggregate
from privsql.algebra.relations import Unnest, Unpivot
from privsql.errors import SqlError
from privsql.types import Type

# comparisons and arithmetic, with both operands in one type
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
    """How one engine spells the elements of every statement."""

    # functions of the algebra: {0} is the first argument, {args} all of them
    forms: ClassVar[Mapping[str, str]]
    operations: ClassVar[Mapping[Operation, str]]  # of exact statements, with the same placeholders
    infix: ClassVar[Mapping[str, str]] = INFIX  # may be extended: whole division

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
        """A value cast to the named type, NULL where that type cannot hold it."""

    @abstractmethod
    def as_text(self, rendered: str, type_: Type) -> str:
        """A value as text, NULL where it has no text."""

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
        """Several values as one row value."""

    @abstractmethod
    def list_of(self, values: Sequence[str]) -> str:
        """Values of one type as a list."""

    @abstractmethod
    def list_cast(self, rendered: str, of: str) -> str:
        """A list whose elements are cast to one of our types."""

    @abstractmethod
    def unnested(self, listed: str, relation: Unnest) -> str:
        """The elements of a list, one row each."""

    @abstractmethod
    def unpivoted(self, relation: Unpivot) -> list[str]:
        """The two columns that turn one row into several: the label and the value."""

    # -- aggregates and windows ------------------------------------------------------------------------------
    @abstractmethod
    def aggregate(self, node: Aggregate) -> str:
        """An exact aggregate in the type the algebra gives it, NULL where that type cannot hold it."""

    @abstractmethod
    def over(self, window: Over) -> str:
        """A window function."""

    @abstractmethod
    def some_distinct(self, values: SomeDistinct) -> str:
        """A list of the first few different values of a unit."""

    @abstractmethod
    def count_distinct_in(self, count: CountDistinctIn) -> str:
        """How many different values all the lists contain."""

    @abstractmethod
    def sum_distinct_in(self, total: SumDistinctIn) -> str:
        """What the different values of all the lists add up to."""

    # -- statements ------------------------------------------------------------------------------------------
    @abstractmethod
    def materialized(self, stored: bool | None) -> str:
        """The keyword that makes the engine compute a step once, or keeps it from doing so."""

    @abstractmethod
    def fence(self) -> str:
        """A suffix of a statement into which an optimizer must not push a filter; may be empty."""

    @abstractmethod
    def stored_table(self, database: str, name: str) -> str:
        """A table of a database that is attached beside the source."""

    def table(self, name: str, location: Sequence[str] = ()) -> str:
        """A table of the source; `location`: the database, schema and name where it is looked up, if its name
        alone does not mean it.
        """
        return ".".join(self.identifier(each) for each in location or (name,))

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
        """The rows of one source with a match in another, to stand in FROM."""

    @abstractmethod
    def with_column_replaced(self, name: str, value: str, others: Sequence[str], source: str) -> str:
        """All rows of a source with one column's value replaced; `others` are its remaining columns."""


def plain_letters(value: str) -> str:
    """Reject characters that an engine may not read as part of the text: NUL and lone surrogates."""
    if "\x00" in value or (not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise SqlError("sql-syntax", "a text or a name has a NUL character or a lone surrogate", "remove it")
    return value


def plain_decimal(value: Decimal | int) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
