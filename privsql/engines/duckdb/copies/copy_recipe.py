"""A table with many rows per unit goes in; the statements that make its copy come out. A copy holds a rank
for each row; further tables hold totals and counts.

The rank numbers the rows of one unit in the order of a hash of unit and content, then of the content itself.
It depends on that unit's rows alone, never on where a row is stored or on other units. Rows that agree in all
columns are interchangeable; each has a number that is hashed with it, so that any row is as likely to come
first as any other. The copy is named after its recipe, the statement that made it: a copy made for another
unit, other columns, another table of the same name or by another hash is never mistaken for it. A file of
copies is replaced as a whole. In memory, a copy for another policy must not replace one that is being read,
so there the name covers the stored values, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from privsql.algebra.choices import UNIT, FairChoice
from privsql.algebra.exact import (
    RANKS,
    Cases,
    Cast,
    Constant,
    Name,
    Operation,
    Ordered,
    Over,
    Rows,
    Scalar,
    Select,
    Statement,
    StoredTable,
    fair_hash,
    least,
    names,
    op,
)
from privsql.algebra.relations import Field, Scan
from privsql.algebra.reserved import ROW_NUMBER
from privsql.algebra.units import Unit
from privsql.equivalence.written import short_digest
from privsql.planning.rewrites.prepared import LARGEST_RANK, RANK, StoredKey, StoredValue
from privsql.planning.rewrites.stored_totals import totals_statement, totals_table
from privsql.planning.rewrites.stored_unit_counts import counts_statement, counts_table
from privsql.render.duckdb import DUCKDB
from privsql.types import Kind


@dataclass(frozen=True)
class TableLocation:
    """Where a table is stored: its database, the database's file if it has one, and its schema; a view is not
    `stored`.
    """

    database: str
    path: str | None
    schema: str
    stored: bool


@dataclass(frozen=True)
class Recipe:
    """How a copy is made: from these rows and columns of a table at this location."""

    table: str
    source: Select
    names: tuple[str, ...]
    order: tuple[Scalar, ...]  # further terms, where equal values can look different
    unit: bool  # it has a column for the unit of each row, where its other columns do not determine it
    values: tuple[StoredValue, ...]
    keys: tuple[StoredKey, ...]
    places: Sequence[TableLocation]
    where: str
    apart: bool  # sessions with other policies store their copies beside it

    @property
    def ranked(self) -> Select:
        """The columns of every copy that fits this table; stored values may be missing."""
        content = (*map(Name, self.names), *self.order)
        place = fair_hash(FairChoice.ROWS, UNIT, *content, Name(ROW_NUMBER))
        rank = Over("row_number", by=(UNIT,), order=(place, *content))
        unit = ((UNIT.name, UNIT),) if self.unit else ()
        columns = (*names(self.names), *unit, (RANK, Cast(least(rank, LARGEST_RANK), RANKS, total=False)))
        alike = (ROW_NUMBER, Over("row_number", by=(UNIT, *content)))
        return Select(columns, Select((alike,), self.source, everything=True), order=(Ordered(Name(RANK)),))

    @property
    def statement(self) -> Select:
        values = tuple((each.name, each.value) for each in self.values)
        return replace(self.ranked, columns=(*self.ranked.columns, *values))

    @cached_property
    def name(self) -> str:
        beside = (self.values, self.keys) if self.apart else ()
        return f"{self.table}_{short_digest((self.where, DUCKDB.statement(self.ranked), beside))}"

    @property
    def totals(self) -> str:
        """The name of the table of totals by rank."""
        return totals_table(self.name)

    def counts(self, key: StoredKey) -> str:
        """The name of the table of units by key."""
        return counts_table(self.name, key)

    def tables(self, database: str) -> dict[str, str]:
        """The tables of a copy, the copy itself first: name and SQL of each; `database`: where they are
        made.
        """
        totals = totals_statement(StoredTable(self.name, database), self.names, self.values)
        made: dict[str, Statement] = {self.name: self.statement, self.totals: totals}
        made |= {self.counts(key): counts_statement(key, self.source) for key in self.keys}
        return {name: DUCKDB.statement(each) for name, each in made.items()}


def recipe_of(
    scan: Scan,
    places: Sequence[TableLocation],
    beside: Path | None,
    apart: bool,
    values: tuple[StoredValue, ...],
    keys: tuple[StoredKey, ...],
) -> Recipe:
    """`beside`: the file next to which the copy is stored, wherever that file is attached."""
    where = [
        ("" if beside is not None and same_file(each.path, beside) else each.database, each.schema)
        for each in places
    ]
    columns = tuple((each.name, _one_zero(each)) for each in scan.fields)
    return Recipe(
        scan.table,
        Select((*columns, (UNIT.name, UNIT)), Rows(scan, unit=True)),
        tuple(each.name for each in scan.fields),
        # 30 days and one month are equal, but look different
        tuple(op(Operation.AS_TEXT, Name(e.name)) for e in scan.fields if e.type.kind is Kind.INTERVAL),
        DUCKDB.unit_of_copy(scan) is None,
        values,
        keys,
        places,
        str(where),
        apart,
    )


def _one_zero(field: Field) -> Scalar:
    """0.0 and -0.0 are equal, but look different: which of them came first must not show."""
    value = Name(field.name)
    if field.type.kind is not Kind.DOUBLE:
        return value
    return Cases(((op(Operation.EQUAL, value, 0), Constant(0)),), value)


def referred(unit: Unit) -> list[tuple[str, tuple[str, ...]]]:
    """The tables that the unit refers through: their names and locations."""
    target = unit.refers_to
    return [] if target is None else [(target.table, target.location), *referred(target.unit)]


def same_file(path: str | None, other: Path) -> bool:
    return bool(path) and os.path.realpath(str(path)) == os.path.realpath(other)
