"""Names as they are looked up everywhere: without regard to case, as in SQL, so that of two that differ in it
one is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from privsql.errors import ArgumentError, PolicyError

Value = TypeVar("Value")


def repeated_name(names: Iterable[str]) -> str | None:
    """A name that occurs twice where case does not count, in lower case."""
    counts = Counter(name.lower() for name in names)
    return next((name for name, count in counts.items() if count > 1), None)


def folded(
    names: Mapping[str, Value], where: str, error: type[PolicyError | ArgumentError] = PolicyError
) -> dict[str, Value]:
    """The same by names in lower case; raises an error where two of them are one name."""
    repeated = repeated_name(names)
    if repeated is not None:
        both = " and ".join(name for name in names if name.lower() == repeated)
        raise error(
            "policy-duplicate" if error is PolicyError else "argument-duplicate",
            f"{where} has both {both}, which are one name: case does not count, as in SQL",
            "keep one of them",
        )
    return {name.lower(): value for name, value in names.items()}
