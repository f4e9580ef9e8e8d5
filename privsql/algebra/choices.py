"""What a unit has beyond its limits goes in; the ranks come out by which some of it is kept, by that unit's
own rows alone.

Everything chosen is chosen by a fair hash, so that which key, row or value is dropped does not depend on what
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from privsql.algebra.exact import (
    UNSIGNED,
    WIDE,
    Cases,
    Cast,
    Name,
    Operation,
    Over,
    Scalar,
    fair_hash,
    nonzero,
    op,
    whole,
)
from privsql.algebra.reserved import UNIT_COLUMN
from privsql.types import BIGINT

MOST_IN_64_BITS = 2**14  # times 2^48 rows, more than any table has; 128 bits take DuckDB four times as long
UNIT = Name(UNIT_COLUMN)


class FairChoice(StrEnum):
    """What is chosen. Each kind of choice is independent of all others."""

    KEYS = "keys of a unit"
    ROWS = "rows of a unit"
    FIRST_ROW = "first row of a unit in a key"
    DISTINCT = "distinct values of a unit"
    MATCHES = "rows that share a value"


def key_rank(names: Sequence[str], ranking: str = "row_number") -> Over:
    """The place of a key among those of its unit; `ranking`: dense_rank where a key has several rows.

    Ordered by two terms, since DuckDB makes a slower arg_min of one.
    """
    keys = tuple(Name(each) for each in names)
    return Over(ranking, by=(UNIT,), order=(fair_hash(FairChoice.KEYS, UNIT, *keys), *keys))


def kept_up_to(place: Scalar, rows: Scalar, most: int, of: Sequence[Scalar]) -> Scalar:
    """How many of the first `place` rows are kept where `most` of `rows` are: evenly spaced, from a first row
    that is chosen.

    Every row is kept with the same chance, most / rows; `of`: the unit and the key whose rows they are.
    """
    wide = BIGINT if most <= MOST_IN_64_BITS else WIDE
    chosen = op(Operation.MODULO, fair_hash(FairChoice.FIRST_ROW, *of), nonzero(Cast(rows, UNSIGNED)))
    first = whole(chosen)
    spaced = (Cast(place, wide) * most + first) // nonzero(Cast(rows, wide))
    return Cases(((op(Operation.AT_MOST, rows, most), place),), spaced)
