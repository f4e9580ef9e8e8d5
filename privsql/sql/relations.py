"""The algebra of questions. Below a Release every row is some person's; above it everything is noisy already.

Scan, Values            where rows come from
Filter, Project         row by row, on both sides of a release
UnionAll, Unpivot       one row may become several
Release                 keys and aggregates: the one place where many rows become a number
Choose                  instead of a Release: only the winning key is let out
Sort, Limit, Distinct   of a noisy answer only
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from privsql.errors import Place
from privsql.sql.expressions import Aggregate, Column, Expression
from privsql.types import TEXT, Type


@dataclass(frozen=True)
class Claim:
    """What policy and schema say of a column. Claims choose clamps and keys; the rendered SQL enforces them."""

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None
    nullable: bool = True
    null_is_key: bool = True


@dataclass(frozen=True)
class Field:
    """An output column of a relation."""

    name: str
    type: Type

    @property
    def column(self) -> Column:
        return Column(self.name, self.type)


@dataclass(frozen=True)
class Scan:
    """All rows of a table; `casts` bring foreign types to ours, `private` says whether rows are people's."""

    table: str
    fields: tuple[Field, ...]
    private: bool
    claims: dict[str, Claim] = field(hash=False)
    checks: tuple[Expression, ...] = ()
    casts: dict[str, str] = field(default_factory=dict, hash=False)
    unit: str | None = None


@dataclass(frozen=True)
class Values:
    """Rows of constants: public."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Filter:
    """The rows where the predicate is true."""

    input: Relation
    predicate: Expression

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


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
class Key:
    """One GROUP BY key."""

    name: str
    expression: Expression
    text: str
    place: Place | None = None


@dataclass(frozen=True)
class Release:
    """Keys and aggregates over rows: what the noise goes on."""

    input: Relation
    keys: tuple[Key, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (
            *(Field(key.name, key.expression.type) for key in self.keys),
            *(Field(name, aggregate.type) for name, aggregate in self.aggregates),
        )


@dataclass(frozen=True)
class Choose:
    """The key with the largest (or smallest) score, and nothing else of the score."""

    input: Relation
    keys: tuple[Key, ...]
    score: Aggregate
    largest: bool
    not_null: frozenset[str] = frozenset()  # keys that are never NULL in the answer: mode and arg_max skip NULL

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(key.name, key.expression.type) for key in self.keys)


@dataclass(frozen=True)
class Order:
    """One ORDER BY term."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Sort:
    """A noisy answer in an order."""

    input: Relation
    by: tuple[Order, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True)
class Limit:
    """The first rows of a noisy answer."""

    input: Relation
    count: int | None
    offset: int

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True)
class Distinct:
    """The different rows of a noisy answer."""

    input: Relation

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


Relation = Scan | Values | Filter | Project | UnionAll | Unpivot | Release | Choose | Sort | Limit | Distinct


@dataclass(frozen=True)
class Question:
    """What was read: the whole relation, the names its columns go out under, and the release inside it."""

    relation: Relation
    names: tuple[str, ...]
    release: Release | Choose


def walk(relation: Relation) -> Iterator[Relation]:
    """A relation and everything below it."""
    yield relation
    match relation:
        case UnionAll(inputs=inputs):
            for each in inputs:
                yield from walk(each)
        case Scan() | Values():
            return
        case _:
            yield from walk(relation.input)


def is_released(relation: Relation) -> bool:
    """Whether the rows of this relation are noisy already (a release lies below)."""
    return release_of(relation) is not None


def release_of(relation: Relation) -> Release | Choose | None:
    """The release below, if there is one."""
    return next((each for each in walk(relation) if isinstance(each, (Release, Choose))), None)
