"""Names are case-insensitive, as in SQL: they are looked up in lower case, and two that differ only in case
are rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from privsql.errors import ArgumentError, PolicyError

Value = TypeVar("Value")


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
