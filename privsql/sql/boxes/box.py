"""SQL above some releases goes in; SQL comes out that gives each column of its result as it is, or as its two
ends, for released numbers between two ends each.

The proof is in docs/proofs.md (5.14): whatever numbers between their ends the cells of the releases have,
each row of the result is one of these rows, and its values are between these ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from privsql.sql.boxes.cells import TRUE, Cell, Endless, Fixed, NoRule, Value, cell_of, parts_of
from privsql.sql.boxes.program import Program, ValueTable, column, names_in, reading
from privsql.sql.boxes.queries import QueryWriter

_MOST_NODES = 30_000


class End(Enum):
    """The columns that stand for one number of a release."""

    LOW = "low"
    HIGH = "high"
    NULL = "null"

    def name_of(self, place: int) -> str:
        """The name of this end of the output at a place."""
        return f"privsql {self.value} {place}"


@dataclass(frozen=True)
class BoxColumn:
    """A column of a release, or of a public table."""

    name: str
    noisy: bool
    number: bool = True  # an interval of it is known; else no rule has ends for it
    whole: bool = False


@dataclass(frozen=True)
class BoxTable:
    """A part of a query. `open`: it may have other rows, which are not in its answer."""

    columns: tuple[BoxColumn, ...]
    open: bool = False


@dataclass(frozen=True)
class Boxed:
    """The SQL, and what its columns are: for each column of the result one that noise does not reach, or two
    ends, or none. Behind them, unless all rows are certain, whether each row is.
    """

    query: exp.Expr
    columns: tuple[int, ...]
    certain: bool  # noise decides of no row whether it is there
    reads: Mapping[str, frozenset[int]]  # the noisy columns that it needs of every table, by their places


def boxed(statement: exp.Expr, parts: Mapping[str, BoxTable]) -> Boxed | None:
    """None where the rows of the result are not known. `parts`: the tables that it reads."""
    program = Program()
    try:
        tables = {name.lower(): _base(program, name, part) for name, part in parts.items()}
        found = QueryWriter(program).query(statement, tables)
        columns = [_shown(value) for _, value in found.columns]
    except (NoRule, RecursionError):
        return None
    certain = found.rows.must == TRUE
    items = [part for value in columns for part in _ends(value)] + ([] if certain else [found.rows.must])
    last = reading(found.rows.name)
    last.set("expressions", [exp.alias_(each.copy(), f"e{n}") for n, each in enumerate(items)] or [TRUE])
    query = program.finished(last)
    if sum(1 for _ in query.walk()) > _MOST_NODES:
        return None
    names = names_in(query)
    reads = {
        name: frozenset(
            place
            for place in range(len(part.columns))
            if any(end.name_of(place) in names for end in (End.LOW, End.HIGH))
        )
        for name, part in parts.items()
    }
    return Boxed(query, tuple(len(_ends(each)) for each in columns), certain, reads)


def _base(program: Program, name: str, part: BoxTable) -> ValueTable:
    """A part as a table of the program."""
    columns = []
    for place, each in enumerate(part.columns):
        value: Value = Fixed(column(each.name))
        if each.noisy:
            low, high, null = (column(end.name_of(place)) for end in End)
            value = Cell(low, high, null, each.whole) if each.number else Endless()
        columns.append((each.name, value))
    return program.project(columns, TRUE, reading(name), part.open)


def _shown(value: Value) -> Value:
    return value if isinstance(value, (Fixed, Endless)) else cell_of(value)


def _ends(value: Value) -> list[exp.Expr]:
    return parts_of(value)[:2]
