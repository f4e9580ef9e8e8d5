"""The algebra of queries. Below a Release every row is some person's; above it everything is noisy already.

Scan, Values            where rows come from
Filter, Project         row by row, on both sides of a release
UnionAll, Unpivot, Unnest   one row may become several
Join, Semi              rows beside rows: of public tables, or of the same unit
AtMost                  so many rows a value, so that a join with other people's rows has a bound
WindowsWithinUnit       each row with values computed from the rows of its unit
Group                   exact aggregates: of public rows, or of one unit's own rows
Release                 keys and aggregates: the one place where many people's rows become a number
Choose                  instead of a Release: only the winning key is let out
Sort, Limit, Distinct   of a noisy answer, or of public rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from privsql.algebra.declared import Claim, ListColumn
from privsql.algebra.expressions import Aggregate, Column, Expression
from privsql.algebra.units import Unit
from privsql.algebra.windows import Order, Window
from privsql.errors import Place
from privsql.types import TEXT, Type, integer

SET_COLUMN = "privsql_set"  # the reserved column that says which set of keys a row of an answer is of

Sets = tuple[tuple[int, ...], ...]  # places of keys; none: the one set of all keys


@dataclass(frozen=True)
class Field:
    """An output column of a relation."""

    name: str
    type: Type

    @property
    def column(self) -> Column:
        return Column(self.name, self.type)


@dataclass(frozen=True)
class Limits:
    """Contribution bounding: the keys one unit may touch, and the rows it may have in one key.

    `assumed`: those of the two that nobody declared, which are defaults.
    """

    max_groups: int
    max_rows: int
    assumed: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class Scan:
    """All rows of a table; `casts` bring foreign types to ours, `private` says whether rows are people's.
    `keys`: sets of columns that no two rows agree in. `location`: where it is looked up, if not by name.
    """

    table: str
    fields: tuple[Field, ...]
    private: bool
    claims: dict[str, Claim] = field(hash=False)
    checks: tuple[Expression, ...] = ()
    casts: dict[str, str] = field(default_factory=dict, hash=False)
    unit: Unit | None = None  # None: each row is one person's
    limits: Limits | None = None
    keys: tuple[frozenset[str], ...] = ()
    matches: tuple[tuple[str, int], ...] = ()  # columns, and how many rows may share a value in a join
    whole: bool = True  # the table has no other columns, of types without rules
    lists: tuple[ListColumn, ...] = ()
    view: bool = False  # its own query may leave a person's row out
    stored: bool = False  # DuckDB has its rows, in pieces whose ends it knows
    location: tuple[str, ...] = ()


class _SameFields:
    """A relation with the columns of its input."""

    input: Relation

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True)
class Values:
    """Rows of constants: public."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Filter(_SameFields):
    """The rows where the predicate is true."""

    input: Relation
    predicate: Expression


@dataclass(frozen=True)
class Project:
    """Each row made into another one."""

    input: Relation
    columns: tuple[tuple[str, Expression], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(name, expression.type) for name, expression in self.columns)


@dataclass(frozen=True)
class UnionAll:
    """The rows of all inputs, which have the same fields."""

    inputs: tuple[Relation, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.inputs[0].fields


@dataclass(frozen=True)
class Unpivot:
    """Each row becomes one row per column of `on`: its label in `name`, its value in `value`."""

    input: Relation
    on: tuple[tuple[str, str], ...]  # (column, label)
    name: str
    value: Field

    @property
    def fields(self) -> tuple[Field, ...]:
        taken = {column for column, _ in self.on}
        kept = tuple(each for each in self.input.fields if each.name not in taken)
        return (*kept, Field(self.name, TEXT), self.value)


@dataclass(frozen=True)
class Unnest:
    """Each row becomes one row per `element` of a list of its table.

    Of people's rows: per different element, of those that were declared; NULL is none of them.
    """

    input: Relation  # the table itself, or another list of it opened
    of: ListColumn
    element: Field
    distinct: bool = True

    def __post_init__(self) -> None:
        assert isinstance(self.input, (Scan, Unnest)), "a list is opened at its table"
        assert is_public(self.input) or (self.distinct and self.of.most is not None), (
            "one person's rows have a bound"
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.element)

    @property
    def most(self) -> int:
        """Of people's rows: how many rows one of them can become."""
        assert self.of.most is not None
        return max(1, self.of.most)

    @property
    def kept(self) -> Expression | None:
        """The condition on elements that are kept; None: all of them, of public rows."""
        return None if is_public(self.input) else self.of.declared(self.element.column)


@dataclass(frozen=True)
class Join:
    """Pairs of rows that meet a condition; `kind` left pads rows of the left that meet none with NULL;
    `full`, of public rows on the left and private ones on the right, those of both.

    The sides have different names. `same_unit`: both are people's, and only rows of the same unit are paired.
    """

    left: Relation
    right: Relation
    kind: str  # inner, left, full
    on: Expression
    same_unit: bool = False
    place: Place | None = field(default=None, compare=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.left.fields, *self.right.fields)


@dataclass(frozen=True)
class Semi(_SameFields):
    """The rows of `input` for which some row of `other` meets the condition, or none does (`anti`)."""

    input: Relation
    other: Relation
    on: Expression  # over the columns of both, which have different names
    anti: bool
    same_unit: bool = False
    null_aware: bool = False  # x NOT IN (...): a NULL among the others leaves no row


@dataclass(frozen=True)
class AtMost(_SameFields):
    """At most `most` rows for each value of a column, chosen by a hash of the rows; none where it is NULL."""

    input: Relation
    column: str
    most: int


@dataclass(frozen=True)
class WindowsWithinUnit:
    """Each row, with columns that are computed from all rows of its unit."""

    input: Relation
    windows: tuple[tuple[str, Window], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(Field(name, window.type) for name, window in self.windows))


@dataclass(frozen=True)
class Group:
    """Exact aggregates: of public rows, or (`per_unit`) of rows that all belong to one unit.

    `per_unit` without keys: one row for each unit, whichever columns hold it.
    """

    input: Relation
    keys: tuple[Key, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    per_unit: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return (
            *(Field(key.name, key.expression.type) for key in self.keys),
            *(Field(name, aggregate.type) for name, aggregate in self.aggregates),
        )


@dataclass(frozen=True)
class Key:
    """One GROUP BY key."""

    name: str
    expression: Expression
    text: str
    place: Place | None = None


@dataclass(frozen=True)
class Release:
    """Keys and aggregates over rows: what the noise goes on.

    `sets`: grouped by each of these sets of keys, by their places; a further field says which a row is of.
    """

    input: Relation
    keys: tuple[Key, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    sets: tuple[tuple[int, ...], ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (
            *(Field(key.name, key.expression.type) for key in self.keys),
            *([Field(SET_COLUMN, integer(0, 2 ** len(self.keys) - 1))] if self.sets else []),
            *(Field(name, aggregate.type) for name, aggregate in self.aggregates),
        )


@dataclass(frozen=True)
class Choose:
    """The keys with the largest (or smallest) scores, and nothing else of the scores."""

    input: Relation
    keys: tuple[Key, ...]
    score: Aggregate
    largest: bool
    not_null: frozenset[str] = frozenset()  # keys that are never NULL: mode and arg_max skip NULL
    most: int = 1  # so many keys, the best first
    within: int = 0  # so many keys come first, and for each value of them the best of the others is chosen

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(key.name, key.expression.type) for key in self.keys)


@dataclass(frozen=True)
class Sort(_SameFields):
    """A noisy answer, or public rows, in an order."""

    input: Relation
    by: tuple[Order, ...]


@dataclass(frozen=True)
class Limit(_SameFields):
    """The first rows of a noisy answer, or of public rows."""

    input: Relation
    count: int | None
    offset: int


@dataclass(frozen=True)
class Distinct(_SameFields):
    """The different rows of a noisy answer, or of public rows."""

    input: Relation


Relation = (
    Scan
    | Values
    | Filter
    | Project
    | UnionAll
    | Unpivot
    | Unnest
    | Join
    | Semi
    | AtMost
    | WindowsWithinUnit
    | Group
    | Release
    | Choose
    | Sort
    | Limit
    | Distinct
)


@dataclass(frozen=True)
class BoundQuery:
    """The whole relation, the names its columns go out under, and the release inside it.

    No release: the query is about public tables alone.
    """

    relation: Relation
    names: tuple[str, ...]
    release: Release | Choose | None


def _inputs(relation: Relation) -> tuple[str, ...]:
    """The fields that hold the relations below, where each holds one."""
    match relation:
        case Scan() | Values() | UnionAll():
            return ()
        case Join():
            return ("left", "right")
    return ("input", "other") if isinstance(relation, Semi) else ("input",)


def below(relation: Relation) -> tuple[Relation, ...]:
    """What a relation is made of."""
    if isinstance(relation, UnionAll):
        return relation.inputs
    return tuple(getattr(relation, each) for each in _inputs(relation))


def rebuilt(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The relation with every part of it changed, from below."""
    if isinstance(relation, UnionAll):
        return change(UnionAll(tuple(rebuilt(each, change) for each in relation.inputs)))
    parts: dict[str, Any] = {each: rebuilt(getattr(relation, each), change) for each in _inputs(relation)}
    return change(replace(relation, **parts))


def walk(relation: Relation) -> Iterator[Relation]:
    """A relation and everything below it."""
    yield relation
    for each in below(relation):
        yield from walk(each)


def is_public(relation: Relation) -> bool:
    """Whether no person's row lies below."""
    return not any(isinstance(each, Scan) and each.private for each in walk(relation))


def is_released(relation: Relation) -> bool:
    """Whether the rows of this relation are noisy already (a release lies below)."""
    return release_of(relation) is not None


def release_of(relation: Relation) -> Release | Choose | None:
    """The release below, if there is one."""
    return next((each for each in walk(relation) if isinstance(each, (Release, Choose))), None)
