"""A world goes in; databases of made-up tables come out: one in which a person can be swapped in no time, and
plain ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd

from privsql.audit.falsify import Cells, NotAsPromised, run_exactly
from privsql.audit.world import Role, State, Table, Tried, World
from privsql.engines.duckdb.engine import DuckDBEngine
from privsql.engines.duckdb.open_source import open_engine
from privsql.engines.duckdb.opening import CLOSED
from privsql.planning.plan import Plan
from privsql.render.duckdb import identifier

Crowd = tuple[State, ...]  # the other people
_ME = 0  # the number of the person who changes; others are numbered from 1
_CHOSEN = "privsql_chosen"  # which people are visible
_PLAIN = "privsql_plain"  # a database with the tables of one side of a pair and nothing else


class Scratch:
    """A database that stores every state tried; views show one crowd and one person."""

    def __init__(self, world: World) -> None:
        self.connection = duckdb.connect(":memory:", config={**CLOSED, "threads": "1"})
        self.world = _valid(world, self.connection)
        self._known: dict[tuple[bool, Crowd | State], int] = {}
        self._lawful: dict[tuple[int, tuple[int, ...]], bool] = {}
        load_public(self.connection, self.world)
        for place, table in enumerate(self.world.tables):
            columns = [f"{identifier(each.name)} {each.type_name}" for each in table.columns]
            self.connection.execute(
                f"CREATE TABLE privsql_store_{place} ({_CHOSEN} BIGINT, {', '.join(columns)})"
            )
            self.connection.execute(
                f"CREATE TABLE privsql_checked_{place} ({', '.join([*columns, *table.checks])})"
            )
            self.connection.execute(
                f"CREATE TEMP VIEW {identifier(table.name)} AS "
                f"SELECT * EXCLUDE ({_CHOSEN}) FROM privsql_store_{place} "
                f"WHERE {_CHOSEN} = getvariable('privsql_crowd') OR {_CHOSEN} = getvariable('privsql_person')"
            )
        self._engine = open_engine(self.connection)

    @property
    def engine(self) -> DuckDBEngine:
        return self._engine

    def close(self) -> None:
        self._engine.close()
        self.connection.close()

    def lawful(self, state: State) -> bool:
        """Whether each row by itself satisfies the CHECK constraints of its table."""
        return all(
            self._let_in(place, row)
            for place, rows in self.world.filled(state, _ME)
            if self.world.tables[place].checks
            for row in dict.fromkeys(rows)
        )

    def _let_in(self, place: int, row: tuple[int, ...]) -> bool:
        if (place, row) not in self._lawful:
            try:
                insert(self.connection, f"privsql_checked_{place}", self.world.tables[place], [row])
                self._lawful[place, row] = True
            except duckdb.ConstraintException:
                self._lawful[place, row] = False
        return self._lawful[place, row]

    def store(self, crowds: Iterable[Crowd] = (), states: Iterable[State] = ()) -> None:
        """Store the new ones, all at once."""
        rows: list[list[tuple[int, ...]]] = [[] for _ in self.world.tables]
        for crowd in crowds:
            self._put(
                rows, (True, crowd), [(state, person) for person, state in enumerate(crowd, start=_ME + 1)]
            )
        for state in states:
            self._put(rows, (False, state), [(state, _ME)])
        for place, (table, some) in enumerate(zip(self.world.tables, rows, strict=True)):
            insert(self.connection, f"privsql_store_{place}", table, some, chosen=True)

    def _put(
        self,
        rows: list[list[tuple[int, ...]]],
        what: tuple[bool, Crowd | State],
        people: Sequence[tuple[State, int]],
    ) -> None:
        if what in self._known:
            return
        self._known[what] = number = len(self._known)
        for state, person in people:
            for place, filled in self.world.filled(state, person):
                rows[place] += [(number, *row) for row in filled]

    def show(self, crowd: Crowd, state: State) -> None:
        """Make the tables hold these people from now on."""
        self.store([crowd], [state])
        self.connection.execute(f"SET VARIABLE privsql_crowd = {self._known[True, crowd]}")
        self.connection.execute(f"SET VARIABLE privsql_person = {self._known[False, state]}")

    def cells(self, plan: Plan, crowd: Crowd, state: State) -> tuple[list[tuple[str, str]], Cells]:
        self.show(crowd, state)
        return run_exactly(plan, self.connection)

    def plain_cells(self, plan: Plan, crowd: Crowd, state: State, turned: bool = False) -> Cells | None:
        """The cells in a database with these tables only, constraints enforced; None if a constraint is
        violated or the plan fails there. `turned`: the same rows in reverse order.
        """
        with self.connection.cursor() as connection:
            # opening a database of its own would take 25 ms
            connection.execute(f"ATTACH ':memory:' AS {_PLAIN}; USE {_PLAIN}")
            try:
                if self._filled(connection, crowd, state, turned):
                    with contextlib.suppress(duckdb.Error, NotAsPromised):
                        return run_exactly(plan, connection)[1]
                return None
            finally:
                connection.execute(f"USE memory; DETACH {_PLAIN}")

    def _filled(
        self, connection: duckdb.DuckDBPyConnection, crowd: Crowd, state: State, turned: bool
    ) -> bool:
        """Create the tables; returns whether every row satisfies their constraints."""
        load_public(connection, self.world)
        rows: list[list[tuple[int, ...]]] = [[] for _ in self.world.tables]
        for person, each in enumerate((state, *crowd), start=_ME):
            for place, filled in self.world.filled(each, person):
                rows[place] += filled
        try:
            for table, some in zip(self.world.tables, rows, strict=True):
                connection.execute(table.ddl)
                insert(connection, identifier(table.name), table, some[::-1] if turned else some)
        except duckdb.ConstraintException:
            return False
        return True

    def texts(self, crowd: Crowd, state: State) -> dict[str, tuple[tuple[str | None, ...], ...]]:
        """The contents of the tables, every value as DuckDB writes it."""
        self.show(crowd, state)
        found = {}
        for table in self.world.tables:
            columns = ", ".join(f"CAST({identifier(each.name)} AS VARCHAR)" for each in table.columns)
            rows = self.connection.execute(f"SELECT {columns} FROM {identifier(table.name)}").fetchall()
            found[table.name] = tuple(tuple(row) for row in rows)
        return found


def insert(
    connection: duckdb.DuckDBPyConnection,
    into: str,
    table: Table,
    rows: Sequence[tuple[int, ...]],
    chosen: bool = False,
) -> None:
    """Insert rows, given as the places of their values."""
    if not rows:
        return
    places = np.array(rows, dtype=np.int64)
    names = [f"c{index}" for index in range(places.shape[1])]
    values = [names[0]] if chosen else []
    values += [_value(column, name) for column, name in zip(table.columns, names[len(values) :], strict=True)]
    order = np.arange(len(places))
    connection.register(
        "privsql_rows", {**dict(zip(names, places.T.copy(), strict=True)), "privsql_order": order}
    )
    try:
        connection.execute(
            f"INSERT INTO {into} SELECT {', '.join(values)} FROM privsql_rows ORDER BY privsql_order"
        )
    finally:
        connection.unregister("privsql_rows")


def _value(column: Tried, place: str) -> str:
    numbered = column.numbered.replace("{}", place)
    if column.role is not Role.VALUE:
        return numbered
    listed = f"(CAST([{', '.join(column.texts)}] AS {column.type_name}[]))[{place} + 1]"
    return (
        f"CASE WHEN {place} < {len(column.texts)} THEN {listed} ELSE {numbered} END"
        if column.unique
        else listed
    )


def load_public(connection: duckdb.DuckDBPyConnection, world: World) -> None:
    for table in world.public:
        connection.execute(table.ddl)
        if not table.rows:
            continue
        frame = pd.DataFrame(
            list(table.rows), columns=[f"c{place}" for place in range(len(table.columns))], dtype=object
        )
        casts = ", ".join(
            f"CAST(c{place} AS {type_name})" for place, (_, type_name) in enumerate(table.columns)
        )
        connection.register("privsql_rows", frame)
        connection.execute(f"INSERT INTO {identifier(table.name)} SELECT {casts} FROM privsql_rows")
        connection.unregister("privsql_rows")


def _valid(world: World, connection: duckdb.DuckDBPyConnection) -> World:
    """The world without values that DuckDB cannot cast to their types."""

    def can_be(value: str) -> bool:
        try:
            connection.execute(f"SELECT {value}").fetchall()
        except duckdb.Error:
            return False
        return True

    tables = []
    for table in world.tables:
        columns = []
        for column in table.columns:
            texts = tuple(each for each in column.texts if can_be(each))
            columns.append(
                replace(column, texts=texts or (() if column.role is not Role.VALUE else ("NULL",)))
            )
        tables.append(replace(table, columns=tuple(columns)))
    return replace(world, tables=tuple(tables))
