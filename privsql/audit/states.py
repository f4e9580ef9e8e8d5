"""A world goes in; people worth trying come out: all of them if there are few, otherwise some to start from
and similar ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from privsql.audit.scratch import Crowd
from privsql.audit.world import Row, State, Table, World
from privsql.neighbours import Neighbours

_STEP = 0.6180339887498949  # the fractional parts of its multiples spread evenly over 0 .. 1
_SAMPLED = 40  # rows to start from besides the extreme ones
_OTHERS = 3
_ALIKE = 6


def all_states(world: World, most: int) -> list[State] | None:
    """Every person that the values tried can form; None if there are more than `most`, or if a person may
    have many rows.
    """
    if not all(table.once for table in world.tables) or not world.tables:
        return None
    sizes = [math.prod(len(column.texts) for column in table.tried) for table in world.tables]
    if math.prod(size + 1 for size in sizes) > most:
        return None
    options: list[list[tuple[Row, ...]]] = [[(row,) for row in _rows(table)] for table in world.tables]
    for table, some in zip(world.tables, options, strict=True):
        if not (table.alone and world.neighbours is Neighbours.REPLACE_ONE):
            some.append(())
    return [tuple(each) for each in itertools.product(*options)]


def _rows(table: Table) -> Iterator[Row]:
    return itertools.product(*(range(len(column.texts)) for column in table.tried))


def starts(world: World) -> list[State]:
    """People to start from: at the ends of everything and in between, with one row, many equal rows, or many
    different ones.
    """
    found: list[State] = [] if _must_be_there(world) else [world.absent]
    templates = [_templates(table) for table in world.tables]
    for number in range(max(len(each) for each in templates)):
        chosen = [each[number % len(each)] for each in templates]
        found.append(tuple((row,) for row in chosen))
        if number < 4 and not all(table.once for table in world.tables):
            found.append(tuple((row,) * table.many for table, row in zip(world.tables, chosen, strict=True)))
    if not all(table.once for table in world.tables):
        for lead in range(2):
            rows = [each[lead % len(each)] for each in templates]
            base: State = tuple((row,) * table.many for table, row in zip(world.tables, rows, strict=True))
            for place, table in enumerate(world.tables):
                for column in range(len(table.tried)):
                    found += [_with(base, place, cycled) for cycled in _cycled(table, base[place], column)]
    return list(dict.fromkeys(found))


def _templates(table: Table) -> list[Row]:
    """Rows to start from: the first values of all columns, the second ..., then others, spread evenly."""
    sizes = [len(column.texts) for column in table.tried]
    found = [tuple(min(number, size - 1) for size in sizes) for number in range(max(sizes, default=1))]
    total = math.prod(sizes)
    for number in range(1, _SAMPLED + 1):
        rest, row = int(number * _STEP % 1 * total), []
        for size in sizes:
            row.append(rest % size)
            rest //= size
        found.append(tuple(row))
    return list(dict.fromkeys(found))


def sampled(world: World, most: int) -> list[State]:
    """Different people with one row in every table, spread evenly over all possible ones."""
    sizes = [len(column.texts) for table in world.tables for column in table.tried]
    total = math.prod(sizes)
    found = []
    for number in range(min(most, total)):
        rest, places = (number if total <= most else int(number * _STEP % 1 * total)), []
        for size in sizes:
            places.append(rest % size)
            rest //= size
        each = iter(places)
        found.append(tuple((tuple(itertools.islice(each, len(table.tried))),) for table in world.tables))
    return list(dict.fromkeys(found))


def like(world: World, state: State) -> Iterator[State]:
    """Everybody who differs from a person in one thing: the values of one column, or the number of rows."""
    for place, (table, rows) in enumerate(zip(world.tables, state, strict=True)):
        for size in _sizes(world, table):
            if size != len(rows):
                made = rows or (tuple(0 for _ in table.tried),)
                yield _with(state, place, tuple(itertools.islice(itertools.cycle(made), size)))
        if not rows:
            continue
        for index, column in enumerate(table.tried):
            for value in range(len(column.texts)):
                yield _with(state, place, tuple((*row[:index], value, *row[index + 1 :]) for row in rows))
            for cycled in _cycled(table, rows, index):
                yield _with(state, place, cycled)


def _sizes(world: World, table: Table) -> list[int]:
    if table.alone and world.neighbours is Neighbours.REPLACE_ONE:
        return [1]
    return [0, 1] if table.once else [0, 1, 2, table.many // 2, table.many]


def _cycled(table: Table, rows: Sequence[Row], index: int) -> Iterator[tuple[Row, ...]]:
    """The rows with the values of a column in turn: all values, the first half, or the second half."""
    size = len(table.tried[index].texts)
    if len(rows) < 2 or size < 2:
        return
    half = (size + 1) // 2
    for first, count in ((0, size), (0, half), (half, size - half)):
        yield tuple(
            (*row[:index], first + place % count, *row[index + 1 :]) for place, row in enumerate(rows)
        )


def _with(state: State, place: int, rows: tuple[Row, ...]) -> State:
    return (*state[:place], rows, *state[place + 1 :])


def _must_be_there(world: World) -> bool:
    """Whether everybody has a row in some table, whoever replaces them."""
    return world.neighbours is Neighbours.REPLACE_ONE and any(table.alone for table in world.tables)


def crowds(world: World) -> list[Crowd]:
    """Choices of the other people: nobody; a few different ones; and, if rows may be joined with those of
    others, some equal ones.
    """
    templates = [_templates(table) for table in world.tables]
    others = []
    for person in range(1, _OTHERS + 1):
        rows = []
        for table, some in zip(world.tables, templates, strict=True):
            many = 1 if table.once else min(table.many, 6)
            rows.append(
                tuple(own(table, some[(person - 1 + place) % len(some)], person) for place in range(many))
            )
        others.append(tuple(rows))
    if not world.apart:
        return [()]
    found: list[Crowd] = [(), tuple(others)]
    if len(world.tables) > 1 or not all(table.once for table in world.tables):
        alike = tuple((some[0],) * table.many for table, some in zip(world.tables, templates, strict=True))
        found.append(
            crowd_like(world, [alike] * (_ALIKE if all(table.once for table in world.tables) else 2))
        )
    return found


def own(table: Table, row: Row, person: int) -> Row:
    """The row as somebody else's: UNIQUE columns get a value of that person's own, one of the first values
    for the first few people.
    """
    return tuple(
        (person if person < 4 else 100 + person) if column.unique else value
        for column, value in zip(table.tried, row, strict=True)
    )


def fits(world: World, crowd: Crowd, state: State) -> bool:
    """Whether UNIQUE columns stay unique: the person has no value there that somebody else has."""
    for place, table in enumerate(world.tables):
        for index, column in enumerate(table.tried):
            if column.unique:
                taken = {row[index] for each in crowd for row in each[place]}
                if any(row[index] in taken and column.texts[row[index]] != "NULL" for row in state[place]):
                    return False
    return True


def crowd_like(world: World, states: Sequence[State]) -> Crowd:
    """Other people with these rows; nobody if people cannot be told apart."""
    found: list[State] = []
    for state in states if world.apart else ():
        person = len(found) + 1
        found.append(
            tuple(
                tuple(own(t, row, person) for row in rows)
                for t, rows in zip(world.tables, state, strict=True)
            )
        )
    return tuple(found)


def crowds_without_one(world: World, people: Sequence[State]) -> list[Crowd]:
    """Crowds of all these people but one: one of those with the most rows, or the first."""
    most = sorted(range(len(people)), key=lambda n: -sum(map(len, people[n])))
    left_out = dict.fromkeys([*most[: _OTHERS - 1], 0]) if people else ()
    return [crowd_like(world, [*people[:n], *people[n + 1 :]]) for n in left_out]


def ordinary(world: World) -> tuple[State, State, State]:
    """Three people with one row each: at the high end of everything, at the low end, a little above that."""

    def at(place: int) -> State:
        return tuple(
            (tuple(min(place, len(column.texts) - 1) for column in table.tried),) for table in world.tables
        )

    return at(0), at(1), at(2)
