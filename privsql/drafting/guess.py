"""A schema goes in; the most plausible privacy unit of each table comes out, with the reason. No row is read.

Even a wrong guess should protect more than none, so any plausible person will do: hiding all rows of one
customer is more than hiding one row. The surest word for a person wins; then the nearest one, along
references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privsql.drafting.people import (
    PROXY,
    ends_like_id,
    is_id,
    is_plain_id,
    named_by,
    person_of_column,
    person_of_table,
    singular,
    stem,
    table_words,
)
from privsql.errors import PolicyError, did_you_mean
from privsql.schema import ForeignKey, Schema, SchemaColumn, SchemaTable
from privsql.types import MOMENTS, Kind

_NAMED_ALONE = 10  # a column that references no table is worse than a reference of fewer steps
_NEVER = {Kind.BOOLEAN, Kind.TIME, Kind.INTERVAL, *MOMENTS}
_VERSIONS = frozenset("version revision seq line year month valid_from valid_to".split())


@dataclass(frozen=True)
class Guess:
    """A unit: columns of the table, or (`table`) the unit of the row in another table that they reference."""

    columns: tuple[str, ...]
    why: str
    noun: str
    # how unsure, how far; a reference costs more than its target, so there are no cycles
    cost: tuple[int, int]
    table: str | None = None
    keys: tuple[str, ...] = ()

    @property
    def declaration(self) -> str | list[str]:
        """The guess as a policy file writes it."""
        if self.table is None:
            parts = list(self.columns)
        else:
            parts = [f"{own} -> {self.table}.{key}" for own, key in zip(self.columns, self.keys, strict=True)]
        return parts[0] if len(parts) == 1 else parts

    @property
    def sure(self) -> bool:
        """Whether its noun means a person, not something that a person may have several of."""
        return self.cost[0] < 2 * PROXY


@dataclass(frozen=True)
class Link:
    """Columns that reference another table, `declared` by a FOREIGN KEY or implied by names."""

    key: ForeignKey
    declared: bool


def guess_units(schema: Schema, wanted: str | None = None) -> dict[str, Guess]:
    """The plausible units by table name. `wanted`: the column that the owner named."""
    tables = [table for table in schema.tables if not table.view]
    links = {table.name: list(links_of(table, tables)) for table in tables}
    bases = {table.name: list(_bases(table, links[table.name])) for table in tables}
    for name, guess in _wanted(tables, links, wanted) if wanted is not None else ():
        bases[name].append(guess)
    found: dict[str, Guess] = {}
    while True:  # terminates: costs only fall, and each is a sum of finitely many steps
        best = {
            table.name: _best([*bases[table.name], *_through(links[table.name], found)]) for table in tables
        }
        known = {name: guess for name, guess in best.items() if guess is not None}
        if known == found:
            return found
        found = known


def _best(guesses: list[Guess]) -> Guess | None:
    return min(guesses, key=lambda each: each.cost, default=None)


def _through(links: list[Link], found: Mapping[str, Guess]) -> Iterator[Guess]:
    for link in links:
        target = found.get(link.key.table)
        if target is not None:
            how = "FOREIGN KEY" if link.declared else "judging by the names: there is no FOREIGN KEY"
            own, other = ", ".join(link.key.columns), f"{link.key.table}.{', '.join(link.key.keys)}"
            yield Guess(
                link.key.columns,
                f"{own} references {other} ({how}), and so the {target.noun} of that row",
                target.noun,
                (target.cost[0], target.cost[1] + 1),
                link.key.table,
                link.key.keys,
            )


def _bases(table: SchemaTable, links: list[Link]) -> Iterator[Guess]:
    own = _own(table, links)
    if own is not None:
        yield own
    for column in people_in(table):
        person = person_of_column(column.name)
        assert person is not None
        why = f"{column.name} looks like the identifier of a {person.noun}"
        yield Guess((column.name,), why, person.noun, (2 * person.rank, _NAMED_ALONE))


def others_in(table: SchemaTable, unit: Guess) -> list[str]:
    """Columns that name people other than the unit."""
    found = [
        (each.name, person_of_column(each.name)) for each in people_in(table) if each.name not in unit.columns
    ]
    return [name for name, person in found if person is not None and (person.rank < PROXY or not unit.sure)]


def people_in(table: SchemaTable) -> list[SchemaColumn]:
    """The columns that look like a person's identifier."""
    return [each for each in table.columns if person_of_column(each.name) is not None and _fit(each)]


def _own(table: SchemaTable, links: list[Link]) -> Guess | None:
    """The unit of a table like customers: each row is a customer, named by customer_id or by the key."""
    person = person_of_table(table.name)
    if person is None:
        return None
    fit = [column for column in table.columns if _fit(column)]
    called = [
        each.name for each in fit if (p := person_of_column(each.name)) is not None and p.noun == person.noun
    ]
    columns = tuple(called[:1]) or _key(table, fit)
    if not columns:
        return None
    elsewhere = [
        p for link in links if link.declared and (p := person_of_column(link.key.columns[0])) is not None
    ]
    # students.person_id: one person may be several students
    shared = any(each.rank <= person.rank for each in elsewhere)
    why = f"each row of {table.name} seems to be one {person.noun}, identified by {', '.join(columns)}"
    return Guess(columns, why, person.noun, (2 * person.rank + shared, 0))


def _key(table: SchemaTable, fit: list[SchemaColumn]) -> tuple[str, ...]:
    """The key of a table without dates and version numbers, so that all versions of a person are one unit."""
    for key in sorted(table.keys, key=len):
        columns = [each for each in table.columns if each.name.lower() in key]
        kept = tuple(each.name for each in columns if each in fit and each.name.lower() not in _VERSIONS)
        if kept:
            return kept
    return tuple(each.name for each in fit if is_plain_id(each.name))[:1]


def _fit(column: SchemaColumn) -> bool:
    """Whether a column can be a unit, and a policy can name it."""
    usable = column.type is not None and column.type.kind not in _NEVER
    return usable and _sayable(column.name) and (column.labels is None or is_id(column.name))


def _sayable(name: str) -> bool:
    return bool(name) and name == name.strip() and "->" not in name


def links_of(table: SchemaTable, tables: list[SchemaTable]) -> Iterator[Link]:
    """References to other tables: FOREIGN KEYs, then columns named like another table's key."""
    by_name = {each.name.lower(): each for each in tables}
    linked: set[str] = set()
    for key in table.foreign_keys:
        other = by_name.get(key.table.lower())
        if other is None or other is table:
            continue
        own, named = _columns(table, key.columns), _columns(other, key.keys)
        if (
            len(own) == len(named) == len(key.columns)
            and all(_fit(each) for each in own)
            and _can_refer(other.name, named)
        ):
            linked.update(each.name for each in own)
            yield Link(
                ForeignKey(tuple(each.name for each in own), other.name, tuple(each.name for each in named)),
                True,
            )
    for column in table.columns:
        if column.name in linked or not _fit(column):
            continue
        for other in tables:
            for single in _columns(
                other, [name for unique in other.keys if len(unique) == 1 for name in unique]
            ):
                if other is not table and _alike(column, other, single) and _can_refer(other.name, [single]):
                    yield Link(ForeignKey((column.name,), other.name, (single.name,)), False)


def _alike(column: SchemaColumn, other: SchemaTable, named: SchemaColumn) -> bool:
    """orders.customer_id and customers.id, or l_orderkey and o_orderkey, or oid and oid."""
    if column.type is None or named.type is None or column.type.kind is not named.type.kind:
        return False
    if ends_like_id(column.name) and column.name.lower() == named.name.lower():
        return True
    if not is_id(column.name) or not is_id(named.name):
        return False
    if is_plain_id(named.name):
        called = table_words(other.name)
        return bool(called) and named_by(column.name) == singular(called[-1])
    return stem(column.name) == stem(named.name)


def _columns(table: SchemaTable, names: tuple[str, ...] | list[str]) -> list[SchemaColumn]:
    return [column for name in names if (column := table.column(name)) is not None]


def _can_refer(table: str, columns: list[SchemaColumn]) -> bool:
    """Whether the unit of a policy can write table.column."""
    return all(_sayable(name) for name in (table, *(each.name for each in columns))) and not any(
        "." in each.name for each in columns
    )


def _wanted(
    tables: list[SchemaTable], links: Mapping[str, list[Link]], wanted: str
) -> Iterator[tuple[str, Guess]]:
    """The unit that the owner named, as column or table.column, and the keys that it references."""
    where, _, name = wanted.rpartition(".")
    named = [each for each in tables if each.name.lower() == where.lower()] if where else tables
    holders = [(table, column) for table in named if (column := table.column(name)) is not None]
    if not holders:
        known = list(dict.fromkeys(column.name for table in tables for column in table.columns))
        raise PolicyError(
            "policy-unit", f"the unit {wanted} is not a column of any table", did_you_mean(name, known)
        )
    for table, column in holders:
        if column.type is None or not _sayable(column.name):
            raise PolicyError(
                "policy-unit",
                f"the unit {wanted} has type {column.type_name} in {table.name}, which is not supported",
                "choose a column of type INTEGER or VARCHAR",
            )
        noun = named_by(column.name) or "unit"
        targets = [each.key for each in links[table.name] if each.key.columns == (column.name,) and not where]
        for key in targets:
            why = f"{table.name}.{column.name}, which you named as the unit, references it"
            yield key.table, Guess(key.keys, why, noun, (-1, 0))
        if not targets:
            yield (
                table.name,
                Guess((column.name,), f"you named {column.name} as the unit", noun, (-1, 0 if where else 1)),
            )
