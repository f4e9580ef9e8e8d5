"""Names that privsql gives to columns of its own, and names for keys and outputs that cannot be taken for
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

OURS = "privsql_"  # columns that planning adds beside the analyst's own begin so, and no others
DATABASE = "privsql_prepared"  # the attached database that holds the prepared copies
UNIT_COLUMN = "privsql_unit"
ROW_NUMBER = "privsql_number"  # tells equal rows apart
NOISY = "noisy"  # the table of noisy cells, below what stands above a release
CELL = "privsql_cell"  # carries the number of a cell through post-processing
PLACE = "privsql_place"  # and the place of a row
# grid point, points, rows
VALUE_COLUMN, WIDTH_COLUMN, ROWS_COLUMN = "privsql_value", "privsql_width", "privsql_rows"
_MEASURED = re.compile(r"(count|sum|above|below|score|order|moment)_\d+", re.IGNORECASE)


def is_ours(name: str) -> bool:
    """Whether a column of this name could stand for one of ours."""
    return name.lower().startswith(OURS)


def key_names(wanted: list[str]) -> list[str]:
    """Names for keys: different from each other and from every measured column beside them."""
    names = unique_names(wanted)
    while any(_MEASURED.fullmatch(name) for name in names):
        names = unique_names([f"{name}_key" if _MEASURED.fullmatch(name) else name for name in names])
    return names


def output_names(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """What the analyst sees: names as written, a number behind the second of a kind, so that frames can hold
    them.
    """
    taken: set[str] = set(wanted)
    result: list[str] = []
    for name in wanted:
        candidate, number = name, 1
        while candidate in result or (candidate != name and candidate in taken):
            number += 1
            candidate = f"{name}_{number}"
        result.append(candidate)
    return tuple(result)


def unique_names(wanted: list[str]) -> list[str]:
    """Names made different from each other (case-insensitively) by a number behind, and from our own by a
    word before.
    """
    taken: set[str] = set()
    result = []
    for name in (f"as_{each}" if is_ours(each) else each for each in wanted):
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


def set_number(kept: Sequence[int], keys: int) -> int:
    """What the column that tells grouping sets apart holds: a bit for each key, set in totals over it."""
    return sum(2 ** (keys - 1 - place) for place in range(keys) if place not in kept)


def quoted(name: str) -> str:
    """A name as it is written in a query."""
    return '"' + name.replace('"', '""') + '"'
