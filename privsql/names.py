"""Names are case-insensitive, as in SQL: they are looked up in lower case, and two that differ only in case
are rejected. A name in several parts, `schema.table`, is one text with a dot between the parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from privsql.errors import ArgumentError, PolicyError

Value = TypeVar("Value")

_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')


def repeated_name(names: Iterable[str]) -> str | None:
    """The first name that occurs twice, ignoring case; in lower case."""
    counts = Counter(name.lower() for name in names)
    return next((name for name, count in counts.items() if count > 1), None)


def folded(
    names: Mapping[str, Value], where: str, error: type[PolicyError | ArgumentError] = PolicyError
) -> dict[str, Value]:
    """The same mapping with names in lower case; raises `error` if two of them are the same name."""
    repeated = repeated_name(names)
    if repeated is not None:
        both = " and ".join(name for name in names if name.lower() == repeated)
        raise error(
            "policy-duplicate" if error is PolicyError else "argument-duplicate",
            f"{where} has both {both}, but names are case-insensitive, as in SQL",
            "keep one of them",
        )
    return {name.lower(): value for name, value in names.items()}


def joined(parts: Iterable[str]) -> str:
    """The parts of a name as one text; a part with a dot or a quote in it is quoted."""
    return ".".join(quoted_part(each) if "." in each or '"' in each else each for each in parts)


def quoted_part(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as people write it: `sales.orders`, or `"odd.schema".orders`. A text that is not
    written so is one part.
    """
    found, place = [], 0
    while (part := _PART.match(name, place)) is not None:
        found.append(part[0][1:-1].replace('""', '"') if part[0].startswith('"') else part[0])
        place = part.end()
        if place == len(name):
            return tuple(found)
        if name[place] != ".":
            break
        place += 1
    return (name,)
