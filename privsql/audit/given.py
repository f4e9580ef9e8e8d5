"""A world and tables that the caller agrees to show go in; the people in these tables come out, as states of
that world.

Their values are added to those that are tried. Columns that name a person or a row are filled in as
everywhere in this room, so people get other names than in the tables; which rows belong to one person stays
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from privsql.algebra.unit_rows.units import Unit
from privsql.audit.values import NULL
from privsql.audit.world import PEOPLE, Role, Row, State, Table, World
from privsql.engines.duckdb.open_source import open_engine
from privsql.errors import ArgumentError
from privsql.neighbours import Neighbours
from privsql.render.duckdb import identifier, text
from privsql.schema import Schema

MOST_PEOPLE = PEOPLE - 12  # the rest are the others
_MOST_ROWS = 50_000
_MOST_VALUES = 2_000  # of a column

Texts = list[dict[str, str | None]]  # rows of a table: each value as DuckDB writes it


@dataclass(frozen=True)
class Given:
    """The rows of each table, in the order of the world's tables."""

    rows: tuple[Texts, ...]
    whole: bool  # whether no row was left out


def read_given(world: World, data: Any) -> Given:
    """Read the rows of a data source that has the tables of the world."""
    engine = open_engine(data)
    try:
        schema = engine.schema()
        rows = [
            _rows(table, _named(table, world, schema), schema, engine.read_public) for table in world.tables
        ]
    finally:
        engine.close()
    return Given(tuple(each[:_MOST_ROWS] for each in rows), all(len(each) <= _MOST_ROWS for each in rows))


def _named(table: Table, world: World, schema: Schema) -> str:
    """The name of a table in the data. If there is only one, its name need not match."""
    if schema.table(table.name) is None and len(world.tables) == len(schema.tables) == 1:
        return schema.tables[0].name
    return table.name


def _rows(table: Table, name: str, schema: Schema, read: Callable[[str], list[tuple[Any, ...]]]) -> Texts:
    found = schema.table(name)
    missing = [each.name for each in table.columns if found is None or found.column(each.name) is None]
    if missing:
        what = f"table {table.name}" if found is None else f"column {missing[0]} in {name}"
        raise ArgumentError(
            "argument-shape", f"the data of the audit has no {what}", "pass tables with the source's columns"
        )
    columns = ", ".join(
        f"CAST(TRY_CAST({identifier(c.name)} AS {c.type_name}) AS VARCHAR)" for c in table.columns
    )
    listed = read(f"SELECT {columns} FROM {identifier(name)} LIMIT {_MOST_ROWS + 1}")
    return [dict(zip((each.name for each in table.columns), row, strict=True)) for row in listed]


def with_values(world: World, given: Given) -> World:
    """The world with the values of the data added, after the others, which are the extremes."""
    tables = []
    for table, rows in zip(world.tables, given.rows, strict=True):
        columns = []
        for column in table.columns:
            # a column with a single value decides nothing
            if column.role is Role.VALUE and not column.unique and len(column.texts) > 1:
                seen = dict.fromkeys(_literal(row[column.name], column.type_name) for row in rows)
                new = [each for each in seen if each not in column.texts][:_MOST_VALUES]
                column = replace(column, texts=(*column.texts, *new))
            columns.append(column)
        tables.append(replace(table, columns=tuple(columns)))
    return replace(world, tables=tuple(tables))


def people_of(world: World, given: Given) -> list[State]:
    """The rows of each person, without rows that have no owner."""
    found: dict[Any, list[list[Row]]] = {}
    owner = _Owners(world, given).of
    places = [_places(table) for table in world.tables]
    for index, (table, rows) in enumerate(zip(world.tables, given.rows, strict=True)):
        for number, row in enumerate(rows):
            person = number if table.unit is None else owner(table.unit, row)
            if person is not None:
                found.setdefault(person, [[] for _ in world.tables])[index].append(
                    _row(table, places[index], row)
                )
    states = [tuple(map(tuple, each)) for each in found.values()]
    if world.neighbours is Neighbours.REPLACE_ONE:  # a person always has a row in every such table
        alone = [index for index, table in enumerate(world.tables) if table.alone]
        states = [each for each in states if all(each[index] for index in alone)]
    return states[:MOST_PEOPLE]


class _Owners:
    """Finds the owner of a row, by its unit or by the row it references."""

    def __init__(self, world: World, given: Given) -> None:
        self.world, self.given = world, given
        self._known: dict[
            tuple[str, tuple[str, ...]], dict[tuple[str | None, ...], dict[str, str | None]]
        ] = {}

    def of(self, unit: Unit, row: dict[str, str | None]) -> tuple[str | None, ...] | None:
        own = tuple(row[name] for name in unit.columns)
        if None in own:
            return None
        if unit.refers_to is None:
            return own
        target = unit.refers_to
        other = self._rows_by(target.table, target.columns).get(own)
        return None if other is None else self.of(target.unit, other)

    def _rows_by(
        self, table: str, columns: tuple[str, ...]
    ) -> dict[tuple[str | None, ...], dict[str, str | None]]:
        if (table, columns) not in self._known:
            rows = self.given.rows[self.world.table(table)]
            self._known[table, columns] = {tuple(row[name] for name in columns): row for row in rows}
        return self._known[table, columns]


def _places(table: Table) -> dict[str, dict[str, int]]:
    return {column.name: {each: place for place, each in enumerate(column.texts)} for column in table.tried}


def _row(table: Table, places: dict[str, dict[str, int]], row: dict[str, str | None]) -> Row:
    """The places of a row's values among those tried; the first one for any other value."""
    return tuple(places[each.name].get(_literal(row[each.name], each.type_name), 0) for each in table.tried)


def _literal(value: str | None, type_name: str) -> str:
    return NULL if value is None else f"CAST({text(value)} AS {type_name})"
