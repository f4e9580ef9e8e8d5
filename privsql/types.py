"""SQL types as privsql sees them: a kind, and for integers the physical bounds that rule out overflow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of values that have rules. A query cannot use any other."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    TEXT = "VARCHAR"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    NULL = "NULL"
    LIST = "LIST"  # of several quantiles: a query can only output it


NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP})
RANGED = NUMBERS | MOMENTS  # columns of these kinds can have a range


@dataclass(frozen=True)
class Type:
    """A kind. `low` and `high` bound every value that an INTEGER can hold; `precision` and `scale` are a
    DECIMAL's.
    """

    kind: Kind
    low: int = 0
    high: int = 0
    precision: int = 0
    scale: int = 0
    of: Type | None = None  # the elements of a LIST

    @property
    def is_wide(self) -> bool:
        """Whether it is an integer type with values beyond 64 bits."""
        low, high = INTEGER_BOUNDS["BIGINT"]
        return self.kind is Kind.INTEGER and not (low <= self.low and self.high <= high)

    def __str__(self) -> str:
        """The name that people know."""
        match self.kind:
            case Kind.INTEGER:
                for name in ("INTEGER", "BIGINT", "HUGEINT"):
                    low, high = INTEGER_BOUNDS[name]
                    if low <= self.low and self.high <= high:
                        return name
                raise AssertionError("integers past HUGEINT are computed as DOUBLE")
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case Kind.NULL:
                return "VARCHAR"
            case Kind.LIST if self.of is not None:
                return f"{self.of}[]"
            case kind:
                return str(kind.value)


INTEGER_BOUNDS: dict[str, tuple[int, int]] = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
}

BOOLEAN = Type(Kind.BOOLEAN)
DOUBLE = Type(Kind.DOUBLE)
TEXT = Type(Kind.TEXT)
DATE = Type(Kind.DATE)
TIME = Type(Kind.TIME)
TIMESTAMP = Type(Kind.TIMESTAMP)
INTERVAL = Type(Kind.INTERVAL)
NULL = Type(Kind.NULL)


def integer(low: int, high: int) -> Type:
    """An INTEGER within bounds; DOUBLE if the bounds exceed HUGEINT."""
    huge_low, huge_high = INTEGER_BOUNDS["HUGEINT"]
    if huge_low <= low and high <= huge_high:
        return Type(Kind.INTEGER, low=low, high=high)
    return DOUBLE


BIGINT = integer(*INTEGER_BOUNDS["BIGINT"])


def may_overflow(type_: Type) -> bool:
    """Whether a billion such numbers may add up to more than 127 bits."""
    if type_.kind is Kind.DECIMAL:
        return type_.precision > 28
    return max(abs(type_.low), abs(type_.high)) >= 2**96


def decimal(precision: int, scale: int) -> Type:
    """A DECIMAL, or DOUBLE if it needs more than DuckDB's 38 digits."""
    return Type(Kind.DECIMAL, precision=precision, scale=scale) if precision <= 38 else DOUBLE


def list_of(of: Type) -> Type:
    return Type(Kind.LIST, of=of)


# marks a column of instants, which is read as local time; the policy says in which time zone
IN_UTC = "in UTC"
# marks a column to compare byte by byte, whatever its collation
BINARY = 'COLLATE "binary"'


@dataclass(frozen=True)
class ColumnType:
    """A column's type, and the cast to one of our kinds if DuckDB's type is a different one."""

    type: Type
    cast: str | None = None
    labels: tuple[str, ...] | None = None


def element_type(name: str) -> ColumnType | None:
    """The element type of a DuckDB list type (VARCHAR[], INTEGER[3]); None for other types, and for nested
    lists.
    """
    match = re.fullmatch(r"(.*[^\]])\[\d*\]", name, re.DOTALL)
    found = column_type(match[1]) if match else None
    return None if found is not None and found.cast == IN_UTC else found


def in_zone(zone: str) -> str:
    """The mark of a column of instants that is read in this time zone."""
    return f"in {zone}"


def zone_of(cast: str) -> str | None:
    """The time zone that instants are read in, if the mark is one of these."""
    return cast.removeprefix("in ") if cast.startswith("in ") else None


def column_type(name: str) -> ColumnType | None:
    """Our type for DuckDB's name of a type; None for types without rules (lists, structs, JSON,
    blobs ...).
    """
    upper = name.upper()
    if upper in INTEGER_BOUNDS:
        return ColumnType(integer(*INTEGER_BOUNDS[upper]))
    if match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", upper):
        return ColumnType(decimal(int(match[1]), int(match[2])))
    if upper.startswith("ENUM(") and upper.endswith(")"):  # not a list of ENUMs
        labels = tuple(label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", name))
        return ColumnType(TEXT, cast="VARCHAR", labels=labels)
    simple = {
        "BOOLEAN": ColumnType(BOOLEAN),
        "DOUBLE": ColumnType(DOUBLE),
        "FLOAT": ColumnType(DOUBLE, cast="DOUBLE"),
        "VARCHAR": ColumnType(TEXT),
        "UUID": ColumnType(TEXT, cast="VARCHAR"),
        "DATE": ColumnType(DATE),
        "TIME": ColumnType(TIME),
        "TIMESTAMP": ColumnType(TIMESTAMP),
        "TIMESTAMP_S": ColumnType(TIMESTAMP, cast="TIMESTAMP"),
        "TIMESTAMP_MS": ColumnType(TIMESTAMP, cast="TIMESTAMP"),
        "TIMESTAMP_NS": ColumnType(TIMESTAMP, cast="TIMESTAMP"),
        "TIMESTAMP WITH TIME ZONE": ColumnType(TIMESTAMP, cast=IN_UTC),
        "INTERVAL": ColumnType(INTERVAL),
    }
    return simple.get(upper)
