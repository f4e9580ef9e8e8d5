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

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from privsql.algebra.relations import Scan, Unit
from privsql.planning.by_key import counts_sql, counts_table
from privsql.planning.by_rank import totals_sql, totals_table
from privsql.planning.prepared import LARGEST_RANK, RANK, StoredKey, StoredValue
from privsql.planning.render import UNIT, identifier
from privsql.planning.render_choice import ROW_NUMBER, Choice, ascending, choice_hash, numbered
from privsql.planning.render_rows import rows, unit_of_copy
from privsql.types import Kind


@dataclass(frozen=True)
class Place:
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
    source: str
    names: tuple[str, ...]
    order: tuple[str, ...]
    unit: bool  # it has a column that says whose each row is, where its other columns do not tell
    values: tuple[StoredValue, ...]
    keys: tuple[StoredKey, ...]
    places: Sequence[Place]
    where: str
    apart: bool  # sessions under other policies store theirs beside it

    @property
    def key(self) -> str:
        """What every copy has that can be used for this table; values beyond it may be missing."""
        columns = [identifier(each) for each in self.names]
        names, content = ", ".join(columns), [*columns, *self.order]
        order = ascending([choice_hash(Choice.ROWS, UNIT, *content, ROW_NUMBER), *content])
        rank = f"least(row_number() OVER (PARTITION BY {UNIT} ORDER BY {order}), {LARGEST_RANK})"
        return f"{names}, {f'{UNIT}, ' if self.unit else ''}CAST({rank} AS USMALLINT) AS {RANK}"

    @property
    def text(self) -> str:
        values = "".join(f", {each.sql} AS {each.name}" for each in self.values)
        columns = [UNIT, *(identifier(each) for each in self.names), *self.order]
        return (
            f"SELECT {self.key}{values} FROM {numbered(self.source, columns)} ORDER BY {RANK} ASC NULLS LAST"
        )

    @cached_property
    def name(self) -> str:
        text = f"{self.where} {self.key} {self.source}{f' {self.values} {self.keys}' if self.apart else ''}"
        return f"{self.table}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def totals(self) -> str:
        """The name of the table of totals by rank."""
        return totals_table(self.name)

    def counts(self, key: StoredKey) -> str:
        """The name of the table of units by key."""
        return counts_table(self.name, key)

    def tables(self, copy: str) -> dict[str, str]:
        """The name of each table that belongs to a copy, itself first, and the text that makes it; `copy`:
        how it is read.
        """
        counts = {self.counts(key): counts_sql(key, self.source) for key in self.keys}
        return {self.name: self.text, self.totals: totals_sql(copy, self.names, self.values), **counts}


def recipe_of(
    scan: Scan,
    places: Sequence[Place],
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
    columns = [
        # 0.0 and -0.0 are equal, and yet not the same: which of them came first must not show
        f"CASE WHEN {name} = 0 THEN 0 ELSE {name} END AS {name}" if each.type.kind is Kind.DOUBLE else name
        for each in scan.fields
        for name in [identifier(each.name)]
    ]
    return Recipe(
        scan.table,
        f"(SELECT {', '.join([*columns, UNIT])} FROM {rows(scan, unit=True)})",
        tuple(each.name for each in scan.fields),
        # nor 30 days and one month
        tuple(f"CAST({identifier(e.name)} AS VARCHAR)" for e in scan.fields if e.type.kind is Kind.INTERVAL),
        unit_of_copy(scan) is None,
        values,
        keys,
        places,
        str(where),
        apart,
    )


def referred(unit: Unit) -> list[str]:
    """The tables on the way to the unit."""
    target = unit.refers_to
    return [] if target is None else [target.table, *referred(target.unit)]


def same_file(path: str | None, other: Path) -> bool:
    return bool(path) and os.path.realpath(str(path)) == os.path.realpath(other)
