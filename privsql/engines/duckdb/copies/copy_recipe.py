"""A table of many rows a unit goes in; the texts that make its copy come out, with a rank for each row, and
what belongs to it.

The rank counts the rows of one unit in the order of a hash of unit and content, then of the content itself:
it depends on that unit's rows alone, never on where a row lies or on who else is there. Rows that agree in
all columns are interchangeable; each has a number that is hashed with it, so that any row is as likely to
come first as any other. The copy is named after its recipe, the text that made it, so that a copy made for
another unit, other columns, another table of the same name or by another hash is never taken for it. A file
is exchanged whole; in memory a copy for another policy must not take the place of one that is being read, so
that there the values stored are in its name, too.
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
    """Where a table lies: its database, the database's file if it has one, its schema; a view is `stored`
    nowhere.
    """

    database: str
    path: str | None
    schema: str
    stored: bool


@dataclass(frozen=True)
class Recipe:
    """How a copy is made: from these rows, these columns, of a table that lies there."""

    table: str
    source: Select
    names: tuple[str, ...]
    order: tuple[Scalar, ...]  # further terms, where equal values can look different
    unit: bool  # it has a column that says whose each row is, where its other columns do not tell
    values: tuple[StoredValue, ...]
    keys: tuple[StoredKey, ...]
    places: Sequence[TableLocation]
    where: str
    apart: bool  # sessions under other policies store theirs beside it

    @property
    def ranked(self) -> Select:
        """What every copy has that can be used for this table; values beyond it may be missing."""
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
        """The name of each table that belongs to a copy, itself first, and the SQL that makes it; `database`:
        where they are made.
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
    """`beside`: the file that the copy lies beside, wherever it is attached."""
    where = [
        ("" if beside is not None and same_file(each.path, beside) else each.database, each.schema)
        for each in places
    ]
    columns = tuple((each.name, _one_zero(each)) for each in scan.fields)
    return Recipe(
        scan.table,
        Select((*columns, (UNIT.name, UNIT)), Rows(scan, unit=True)),
        tuple(each.name for each in scan.fields),
        # 30 days and one month are equal, and look different
        tuple(op(Operation.AS_TEXT, Name(e.name)) for e in scan.fields if e.type.kind is Kind.INTERVAL),
        DUCKDB.unit_of_copy(scan) is None,
        values,
        keys,
        places,
        str(where),
        apart,
    )


def _one_zero(field: Field) -> Scalar:
    """0.0 and -0.0 are equal, and look different: which of them came first must not show."""
    value = Name(field.name)
    if field.type.kind is not Kind.DOUBLE:
        return value
    return Cases(((op(Operation.EQUAL, value, 0), Constant(0)),), value)


def referred(unit: Unit) -> list[str]:
    """The tables on the way to the unit."""
    target = unit.refers_to
    return [] if target is None else [target.table, *referred(target.unit)]


def same_file(path: str | None, other: Path) -> bool:
    return bool(path) and os.path.realpath(str(path)) == os.path.realpath(other)
