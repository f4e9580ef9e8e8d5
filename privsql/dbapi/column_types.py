"""The names of SQL types go in; the type objects and constructors of PEP 249 come out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time

Date, Time, Timestamp, Binary = date, time, datetime, bytes


@dataclass(frozen=True, eq=False)
class ColumnKind:
    """A kind of column: equal to the name of every SQL type that it holds, as it stands in a description."""

    starts: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ColumnKind):
            return self is other
        return isinstance(other, str) and other.startswith(self.starts)

    def __hash__(self) -> int:
        return hash(self.starts)


STRING = ColumnKind(("VARCHAR",))
BINARY = ColumnKind(("BLOB",))
NUMBER = ColumnKind(
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "DECIMAL", "DOUBLE", "FLOAT")
)
DATETIME = ColumnKind(("DATE", "TIME"))
ROWID = ColumnKind(("ROWID",))


def DateFromTicks(ticks: float) -> date:  # noqa: N802 -- PEP 249 wants these names
    """The date of a moment in seconds since 1970."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802
    """The time of day of a moment in seconds since 1970."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    """The date and time of a moment in seconds since 1970."""
    return datetime.fromtimestamp(ticks)
