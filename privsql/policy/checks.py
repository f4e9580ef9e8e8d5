"""One declared value goes in: an epsilon, a limit, a name, a range, a key set. It comes out checked, in our
types.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo

from privsql.errors import ArgumentError, PolicyError
from privsql.neighbours import Neighbours
from privsql.suggestions import Argument, Way

DEFAULT_GROUPS = 3
DEFAULT_ROWS = 10
NANO = 10**9
AUTO = "auto"
EVERYONE = "*"  # among analysts: all who are not listed by name
PART_FOR_KEYS = Fraction(1, 10)  # of delta, under zCDP
SMALLEST_EPSILON = Fraction(1, 10**6)
LARGEST_EPSILON = Fraction(10**4)
UTC = "UTC"
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
MAX_FAILURES = 3  # of one analyst, unless the policy says otherwise


def epsilon_of(value: object, name: str = "epsilon") -> Fraction:
    """An epsilon, rounded down to whole nano-epsilons. Raises ArgumentError for anything else."""
    number = _number(value, name)
    if number <= 0:
        raise ArgumentError("argument-epsilon", f"{name} must be greater than 0", _try(name, "1.0"))
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        problem = f"{name} must be between 0.000001 and 10000"
        raise ArgumentError("argument-epsilon", problem, _try(name, "1.0"))
    return Fraction(math.floor(number * NANO), NANO)


def delta_of(value: object, name: str = "delta") -> Fraction:
    """A delta in [0, 1) as an exact fraction."""
    number = _number(value, name)
    if not 0 <= number < 1:
        raise ArgumentError("argument-delta", f"{name} must be at least 0 and below 1", _try(name, "1e-6"))
    return number


def _number(value: object, name: str) -> Fraction:
    code, example = ("argument-delta", "1e-6") if "delta" in name else ("argument-epsilon", "1.0")
    if not isinstance(value, (int, float, Fraction)) and isinstance(value, Real):  # numpy's numbers
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise ArgumentError(code, f"{name} must be a number, not {type(value).__name__}", _try(name, example))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentError(code, f"{name} must be a finite number", _try(name, example))
        return _as_written(float(value))
    return value if type(value) is Fraction else Fraction(value)


@lru_cache(maxsize=256)  # of a number alone, which takes as long to read as a small query takes to plan
def _as_written(value: float) -> Fraction:
    """0.1 means one tenth, not the nearest binary fraction."""
    return Fraction(repr(value))


def _try(name: str, example: str) -> list[Way]:
    """Suggest an argument of a call, or a setting of [budget]."""
    setting = name.removeprefix("budget.")
    return [("try ", Argument(name, example) if setting == name else f"{setting} = {example}")]


def neighbours_of(value: object) -> Neighbours:
    """The neighbour relation of this name."""
    if isinstance(value, Neighbours):
        return value
    try:
        return Neighbours(value)
    except ValueError:
        problem = "neighbours must be 'replace-one' or 'add-remove'"
        raise ArgumentError("argument-neighbours", problem, "leave it out for 'replace-one'") from None


def limit_of(value: Any, where: str, code: str = "policy-shape") -> int | None:
    """A limit on what one unit contributes: a whole number from 1 to a million, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**6:
        in_policy = code == "policy-shape"
        name = where.rpartition(".")[2]
        error = PolicyError if in_policy else ArgumentError
        problem = f"{where} must be a whole number from 1 to 1,000,000"
        problem += "" if in_policy else ' or "auto"'
        raise error(code, problem, f"{name} = 3" if in_policy else [(Argument(name, "3"),)])
    return value


def is_name(value: object) -> bool:
    """Whether a ledger can record this as a name: printable text of 1 to 200 characters, not "*"."""
    if not isinstance(value, str) or value == EVERYONE:
        return False
    return value.isprintable() and value == value.strip() and 0 < len(value) <= 200


def analyst_of(value: object) -> str:
    """The name of an analyst."""
    if not is_name(value):
        problem = "analyst must be a name: plain text of up to 200 characters"
        raise ArgumentError("argument-analyst", problem, 'analyst="ana"')
    return str(value)


def version_of(value: object) -> str | None:
    """The owner's name for the current state of the data."""
    if value is not None and not is_name(value):
        problem = "version must name the state of the data: plain text of up to 200 characters"
        raise ArgumentError("argument-version", problem, 'version="2026-11"')
    return None if value is None else str(value)


def range_of(bounds: Any, where: str, example: str = "range = [LOWEST, HIGHEST]") -> dict[str, Any]:
    """The settings of a ColumnPolicy that declare a range: its ends, or "auto"."""
    if isinstance(bounds, str) and bounds == AUTO:
        return {"auto": True}
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise PolicyError(
            "policy-range", f"{where} must be a pair: the lowest and the highest value", example
        )
    low, high = bounds
    for bound in (low, high):
        if isinstance(bound, (float, Decimal)) and not math.isfinite(bound):
            raise PolicyError("policy-range", f"{where} must be finite", example)
    try:
        ordered = bool(low <= high)
    except TypeError:
        problem = f"the two ends of {where} have different types"
        raise PolicyError("policy-range", problem, example) from None
    if not ordered:
        raise PolicyError("policy-range", f"the lowest value of {where} is above the highest", example)
    return {"low": low, "high": high}


def key_set_of(values: Any, where: str, example: str = "values = [VALUES]") -> tuple[Any, ...]:
    """A key set without NULL and without repetitions, in the order given."""
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise PolicyError("policy-values", f"{where} must be a list of values", example)
    try:
        listed = tuple(dict.fromkeys(value for value in values if not _is_null(value)))
    except TypeError:  # a list or dict among them
        raise PolicyError("policy-values", f"{where} must be a list of plain values", example) from None
    if not listed:
        raise PolicyError("policy-values", f"{where} is empty", example)
    return listed


def has_null(values: Any) -> bool:
    """Whether None or NaN is among the values."""
    return any(_is_null(value) for value in values)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def items(mapping: Mapping[str, Any] | None, name: str) -> list[tuple[str, Any]]:
    """The items of a keyword that maps column names; none if it was left out."""
    if mapping is None:
        return []
    if not isinstance(mapping, Mapping) or not all(isinstance(key, str) for key in mapping):
        problem = f"{name} must be a dict whose keys are column names"
        raise ArgumentError("argument-shape", problem, f'{name}={{"age": ...}}')
    return list(mapping.items())


def zone_of(value: object) -> str:
    """The name of a time zone that Python knows, in its own spelling. Raises PolicyError for any other."""
    if value == UTC:  # known even where the system has no list of time zones
        return UTC
    if isinstance(value, str) and _ZONE.fullmatch(value):
        with contextlib.suppress(OSError, ValueError, KeyError):
            return ZoneInfo(value).key
    raise PolicyError(
        "policy-zone",
        "time_zone must be the name of a time zone, and this one is not known here",
        'time_zone = "UTC", or time_zone = "Europe/Berlin"',
    )
