"""Privacy units: the columns that identify the person each row belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from privsql.types import Kind

# Of one column. DECIMALs of different scales are different kinds: what they have in common may have too few
# digits for either, so that in a UNION two people became one, and comparing them may fail on a long number.
UnitKind = tuple[Kind, int]


@dataclass(frozen=True)
class Unit:
    """Whose row it is: the value of some columns, or the unit of the row that they refer to in another
    table.
    """

    columns: tuple[str, ...]
    unique: bool  # a unit has at most one row in this table
    kinds: tuple[UnitKind, ...]  # of the unit itself: units of different kinds are different people
    refers_to: Reference | None = None

    @property
    def text(self) -> str:
        return ", ".join(self.columns) + (f" -> {self.refers_to.text}" if self.refers_to else "")


@dataclass(frozen=True)
class Reference:
    """Columns that name one row of another table, and whose row that is."""

    table: str
    columns: tuple[str, ...]
    unit: Unit
    casts: tuple[tuple[str, str], ...] = ()
    location: tuple[str, ...] = ()  # where statements look the table up, if not by its name alone

    @property
    def text(self) -> str:
        return f"{self.table}.{', '.join(self.columns)}"
