"""SQL types as privsql sees them: a kind, and for whole numbers the physical bounds that rule out
overflow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of values that have rules. Everything else cannot be used in a query."""

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
    LIST = "LIST"  # of several quantiles: it can be shown, and nothing else


NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP})
RANGED = NUMBERS | MOMENTS  # a range can be declared


@dataclass(frozen=True)
class Type:
    """A kind; `low` and `high` bound every value an INTEGER can hold, `precision` and `scale` are a
    DECIMAL's.
    """

    kind: Kind
    low: int = 0
    high: int = 0
    precision: int = 0
    scale: int = 0
    of: Type | None = None  # what a LIST is of

    @property
    def is_wide(self) -> bool:
        """Whether it is of whole numbers that do not all fit 64 bits."""
        low, high = INTEGER_BOUNDS["BIGINT"]
        return self.kind is Kind.INTEGER and not (low <= self.low and self.high <= high)

    def __str__(self) -> str:
        """As people know it."""
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
    """Whole numbers within bounds; past HUGEINT only DOUBLE cannot overflow."""
    huge_low, huge_high = INTEGER_BOUNDS["HUGEINT"]
    if huge_low <= low and high <= huge_high:
        return Type(Kind.INTEGER, low=low, high=high)
    return DOUBLE


BIGINT = integer(*INTEGER_BOUNDS["BIGINT"])


def may_overflow(type_: Type) -> bool:
    """Whether a billion such numbers may add up to more than 127 bits hold."""
    if type_.kind is Kind.DECIMAL:
        return type_.precision > 28
    return max(abs(type_.low), abs(type_.high)) >= 2**96


def decimal(precision: int, scale: int) -> Type:
    """A DECIMAL, or DOUBLE where DuckDB's 38 digits do not suffice."""
    return Type(Kind.DECIMAL, precision=precision, scale=scale) if precision <= 38 else DOUBLE


def list_of(of: Type) -> Type:
    return Type(Kind.LIST, of=of)


# stands in place of a cast: text compared byte by byte, whatever the column's collation
BINARY = 'COLLATE "binary"'


@dataclass(frozen=True)
class ColumnType:
    """A column's type, and the cast that brings it to one of our kinds where DuckDB's own type is another."""

    type: Type
    cast: str | None = None
    labels: tuple[str, ...] | None = None


def element_type(name: str) -> ColumnType | None:
    """DuckDB's name of a list type (VARCHAR[], INTEGER[3]) -> that of its elements; None for others, and for
    nested ones.
    """
    match = re.fullmatch(r"(.*[^\]])\[\d*\]", name, re.DOTALL)
    return column_type(match[1]) if match else None


def column_type(name: str) -> ColumnType | None:
    """DuckDB's name of a type -> ours; None for types that no rule covers (lists, structs, JSON, blobs
    ...).
    """
    upper = name.upper()
    if upper in INTEGER_BOUNDS:
        return ColumnType(integer(*INTEGER_BOUNDS[upper]))
    if match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", upper):
        return ColumnType(decimal(int(match[1]), int(match[2])))
    if upper.startswith("ENUM(") and upper.endswith(")"):  # not a list of them
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
        "INTERVAL": ColumnType(INTERVAL),
    }
    return simple.get(upper)
