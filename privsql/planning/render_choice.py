"""What a unit has beyond its limits goes in; the DuckDB text that chooses what is kept comes out, by that
unit's own rows alone.

Everything chosen is chosen by `choice_hash`, so that which key, row or value is dropped does not depend on
what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from privsql.planning.render import UNIT, text

MOST_IN_64_BITS = 2**14  # times 2^48 rows, more than any table has; 128 bits take DuckDB four times as long
ROW_NUMBER = "privsql_number"  # the reserved name of the column that tells equal rows apart


class Choice(StrEnum):
    """What is chosen. Each kind of choice is independent of all others."""

    KEYS = "keys of a unit"
    ROWS = "rows of a unit"
    FIRST_ROW = "first row of a unit in a key"
    DISTINCT = "distinct values of a unit"
    MATCHES = "rows that share a value"


def choice_hash(choice: Choice, *values: str) -> str:
    """A number by which one of several things is chosen, as by a fair die that always falls the same way.

    hash(a, b) alone is not fair: DuckDB combines the hashes of its arguments by XOR, so that of two keys the
    same one comes first for most units. Hashing the result again mixes it. The kind of choice stands first,
    where all that follows is mixed with it: by the same numbers, a second choice among what a first one kept
    would not be fair.
    """
    hashed = ", ".join([text(choice), *values])
    return f"hash(hash({hashed}))"


def ascending(terms: Sequence[str]) -> str:
    """The order of these terms, whatever the owner has set default_order and default_null_order to."""
    return ", ".join(f"{each} ASC NULLS LAST" for each in terms)


def key_rank(names: Sequence[str], ranking: str = "row_number") -> str:
    """The place of a key among those of its unit; `ranking`: dense_rank where a key has several rows.

    Ordered by two terms, since DuckDB makes a slower arg_min of one.
    """
    order = ascending([choice_hash(Choice.KEYS, UNIT, *names), *names])
    return f"{ranking}() OVER (PARTITION BY {UNIT} ORDER BY {order})"


def numbered(source: str, columns: Sequence[str]) -> str:
    """Rows with a number for each among those that agree in these columns, so that each of them is chosen by
    itself.

    Such rows are interchangeable: which of them has which number shows nowhere.
    """
    return f"(SELECT *, row_number() OVER (PARTITION BY {', '.join(columns)}) AS {ROW_NUMBER} FROM {source})"


def kept_up_to(place: str, rows: str, most: int, of: Sequence[str]) -> str:
    """How many of the first `place` rows are kept where `most` of `rows` are: evenly spaced, from a first row
    that is chosen.

    Every row is kept with the same chance, most / rows; `of`: the unit and the key whose rows they are.
    """
    type_ = "BIGINT" if most <= MOST_IN_64_BITS else "HUGEINT"
    first = (
        f"TRY_CAST({choice_hash(Choice.FIRST_ROW, *of)} % nullif(TRY_CAST({rows} AS UBIGINT), 0) AS BIGINT)"
    )
    spaced = f"(TRY_CAST({place} AS {type_}) * {most} + {first}) // nullif(TRY_CAST({rows} AS {type_}), 0)"
    return f"(CASE WHEN {rows} <= {most} THEN {place} ELSE {spaced} END)"
