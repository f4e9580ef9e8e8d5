"""What is known of a column goes in; the values worth trying come out as SQL, the most telling first.

They are both ends of its range, NULL, the constants of the query and what lies next to them, values outside
the range, undeclared keys and, for numbers, NaN, infinities, zeros of both signs and the ends of the type.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privsql.algebra.declared import Claim
from privsql.algebra.expressions import Literal
from privsql.render.duckdb import text
from privsql.schema import SchemaColumn
from privsql.types import Kind, Type

MOST_VALUES = 14
NULL = "NULL"
_KEYS = 4  # how many keys of a key set are tried
_DAY, _SECOND = dt.timedelta(days=1), dt.timedelta(seconds=1)


def values_of(
    column: SchemaColumn, claim: Claim, literals: Iterable[Literal], others: Sequence[str] = ()
) -> tuple[str, ...]:
    """The values to try. `others`: values of public tables, which the column may be joined with."""
    if column.elements is not None:
        return _lists(column, claim, literals)
    if column.type is None:
        return (NULL,)
    found = [_cast(each, column.type_name) for each in _plain(column.type, claim, list(literals))]
    found[3:3] = [_cast(each, column.type_name) for each in others[:3]]
    if claim.nullable:
        found.insert(3, NULL)
    return tuple(dict.fromkeys(found))[:MOST_VALUES] or (NULL,)


def numbered(column: SchemaColumn, index: str) -> str:
    """The SQL of the index-th distinct value, for columns that tell people or rows apart."""
    if column.labels is not None:
        return f"[{', '.join(map(text, column.labels))}][1 + {index} % {len(column.labels)}]"
    match column.type.kind if column.type is not None else Kind.NULL:
        case Kind.INTEGER | Kind.DOUBLE | Kind.DECIMAL:
            return f"TRY_CAST({index} AS {column.type_name})"
        case Kind.TEXT if column.type_name.upper() == "UUID":
            return f"CAST(printf('%08x-0000-0000-0000-000000000000', {index}) AS UUID)"
        case Kind.TEXT:
            return f"'p' || {index}"
        case Kind.DATE | Kind.TIMESTAMP:
            return f"CAST(DATE '2000-01-01' + CAST({index} AS INTEGER) AS {column.type_name})"
        case Kind.BOOLEAN:
            return f"({index} % 2 = 1)"
        case _:
            return NULL


def _cast(value: str, type_name: str) -> str:
    return f"CAST({text(value)} AS {type_name})"


def _plain(type_: Type, claim: Claim, literals: Sequence[Literal]) -> Iterator[str]:
    """Texts to cast to the type, some repeated; those that DuckDB cannot cast are dropped later."""
    match type_.kind:
        case Kind.BOOLEAN:
            yield from ("true", "false")
        case Kind.INTEGER:
            yield from (str(each) for each in _whole(claim, literals, type_))
        case Kind.DECIMAL | Kind.DOUBLE:
            yield from _numbers(type_, claim, literals)
        case Kind.TEXT:
            yield from _texts(claim, literals)
        case Kind.DATE | Kind.TIMESTAMP:
            yield from _moments(type_, claim, literals)
        case Kind.TIME:
            yield from ("00:00:00", "23:59:59", "12:30:00")
        case _:
            return


def _ends(claim: Claim) -> list[Any]:
    """What was declared: the ends of the range, the high one first, as it moves sums most, or some keys."""
    if claim.values is not None:
        keys = [each for each in claim.values if each is not None]
        return [keys[0], keys[-1], *keys[1:_KEYS]] if keys else []
    return [each for each in (claim.high, claim.low) if each is not None]


def _whole(claim: Claim, literals: Sequence[Literal], type_: Type) -> list[int]:
    ends = [math.floor(each) for each in _ends(claim)]
    written = [math.floor(each) for each in _constants(literals)]
    near = [each + step for each in written for step in (0, 1, -1)]
    beyond = [max(ends) + 1, min(ends) - 1] if ends else []
    inside = [ends[1] + (ends[0] - ends[1]) // 50 + 1] if len(ends) == 2 else []
    listed = [*ends, *inside, *near, *beyond, *([] if ends else [1, 0]), 0, type_.high, type_.low]
    return [each for each in listed if type_.low <= each <= type_.high]


def _numbers(type_: Type, claim: Claim, literals: Sequence[Literal]) -> Iterator[str]:
    ends, written = [Fraction(each) for each in _ends(claim)], _constants(literals)
    near = [each + step for each in written for step in (0, 1, -1)]
    beyond = [max(ends) + 1, min(ends) - 1] if ends else []
    inside = [ends[1] + (ends[0] - ends[1]) / 50] if len(ends) == 2 else []
    exact = [*ends, *inside, *near, *beyond, *([] if ends else [Fraction(1)]), Fraction(0)]
    if type_.kind is Kind.DECIMAL:
        most = Fraction(10**type_.precision - 1, 10**type_.scale)
        fitting = [each for each in (*exact, most, -most) if abs(each) <= most]
        yield from (f"{Decimal(each.numerator) / Decimal(each.denominator):f}" for each in fitting)
        return
    listed = [repr(float(each)) for each in exact]
    yield from (*listed[:3], "nan", "inf", "-inf", *listed[2:], "-0.0", "1e308")


def _constants(literals: Sequence[Literal]) -> list[Fraction]:
    found = []
    for value in (each.value for each in literals):
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and math.isfinite(value):
            found.append(Fraction(value))
    return [each for each in found if abs(each) < 2**127]


def _texts(claim: Claim, literals: Sequence[Literal]) -> Iterator[str]:
    written = [
        str(each.value) for each in literals if not isinstance(each.value, bool)
    ]  # also 7, for text that is cast to a number
    bare = [each.replace("%", "").replace("_", "x") for each in written]  # what LIKE would find
    yield from [*map(str, _ends(claim)), *written, *bare, "another", "", *(f"{each}x" for each in bare)]


def _moments(type_: Type, claim: Claim, literals: Sequence[Literal]) -> Iterator[str]:
    step = _DAY if type_.kind is Kind.DATE else _SECOND
    written = [each.value for each in literals if isinstance(each.value, (dt.date, dt.datetime))]
    ends = _ends(claim)
    near = [_moved(each, by) for each in (*written, *ends) for by in (dt.timedelta(0), step, -step)]
    yield from [
        *map(str, ends),
        *map(str, filter(None, near)),
        "2024-02-29",
        "infinity",
        "-infinity",
        "1969-12-31",
    ]


def _moved(moment: Any, by: dt.timedelta) -> Any:
    try:
        return moment + by
    except (OverflowError, TypeError):
        return None


def _lists(column: SchemaColumn, claim: Claim, literals: Iterable[Literal]) -> tuple[str, ...]:
    """Lists of everything declared, twice; of one value; of nothing; of an undeclared value."""
    held = column.elements
    assert held is not None
    if held.type is None:
        return (NULL,)
    element = held.type_name.rpartition("[")[0]
    texts = [_cast(each, element) for each in dict.fromkeys(_plain(held.type, claim, list(literals)))][:8]
    many = [*texts, *texts, NULL]
    listed = [many, texts[:1], texts[1:2], [], texts[:1] * 5, texts[-1:]]
    if size := column.type_name.rpartition("[")[2].rstrip("]"):  # the length of an array
        listed = [[*each, *([NULL] * int(size))][: int(size)] for each in listed]
    found = [f"CAST([{', '.join(each)}] AS {column.type_name})" for each in listed]
    return tuple(dict.fromkeys([*found[:2], NULL, *found[2:]]))
