"""An argument of a call goes in; an exact number comes out, or an ArgumentError. Nothing is rounded."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from privsql.errors import ArgumentError
from privsql.policy.checks import delta_of, epsilon_of

_MOST_DIGITS = 10_000  # of a Decimal: fractions with many more are slow


def exact(value: object, what: str) -> Fraction:
    """One finite number, exactly: a float is the binary fraction that it stores."""
    match value:
        case bool() | np.bool():
            raise no_numbers(what)
        case int() | np.integer():
            return Fraction(int(value))
        case Fraction():
            return value
        case float() | np.floating() if math.isfinite(value):
            return Fraction(*value.as_integer_ratio())
        case Decimal() if value.is_finite() and (not value or abs(value.adjusted()) <= _MOST_DIGITS):
            return Fraction(value)
    raise no_numbers(what)


def as_written(value: object, what: str) -> Fraction:
    """One finite number; a float counts as it is written: 0.05 means a twentieth."""
    number = exact(value, what)
    return Fraction(repr(float(value))) if isinstance(value, (float, np.floating)) else number


def no_numbers(what: str) -> ArgumentError:
    return ArgumentError(
        "argument-numbers",
        f"every {what} must be a finite number",
        "pass int, float, Fraction or Decimal; remove or replace NaN, None and infinities first",
    )


def positive(value: object) -> Fraction:
    """A sensitivity. A float counts as what is written or what is stored, whichever is more: 0.7 is stored as
    slightly less.
    """
    try:
        number = exact(value, "sensitivity")
    except ArgumentError:
        number = Fraction(0)
    if number <= 0:
        raise ArgumentError(
            "argument-sensitivity",
            "the sensitivity must be a positive, finite number",
            "state how far one person can move a score or the values, such as sensitivity=1",
        )
    return max(number, Fraction(repr(float(value)))) if isinstance(value, float) else number


def share(value: object) -> Fraction:
    """An error as a share of the rows: above 0 and below 1."""
    try:
        number = as_written(value, "share")
    except (ArgumentError, ValueError):
        number = Fraction(0)
    if not 0 < number < 1:
        raise ArgumentError(
            "argument-within", "within must be a share of the rows, above 0 and below 1", "try within=0.05"
        )
    return number


def whole(value: object, name: str, code: str, at_least: int = 1) -> int:
    """A whole number that is not below `at_least`."""
    if (
        isinstance(value, (bool, np.bool))
        or not isinstance(value, (int, np.integer))
        or int(value) < at_least
    ):
        raise ArgumentError(
            code, f"{name} must be a whole number, at least {at_least}", f"try {name}={max(10, at_least)}"
        )
    return int(value)


def epsilon_given(value: object) -> Fraction:
    return epsilon_of(_decimal(value, "argument-epsilon", "epsilon=1.0"))


def delta_given(value: object) -> Fraction:
    delta = delta_of(_decimal(value, "argument-delta", "delta=1e-6"))
    if delta == 0:
        raise ArgumentError(
            "argument-delta", "Gaussian noise needs a delta above 0", "try delta=1e-6, or use laplace"
        )
    return delta


def level_given(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.floating))
        or not 0.0 < float(value) < 1.0
    ):
        raise ArgumentError("argument-level", "a level must be strictly between 0 and 1", "try 0.95")
    return float(value)


def missing_given(confidence: object) -> float:
    """The probability beta with which a promise may fail."""
    return 1.0 - level_given(confidence)


def _decimal(value: object, code: str, example: str) -> object:
    if not isinstance(value, Decimal):
        return value
    if not value.is_finite() or (value and abs(value.adjusted()) > _MOST_DIGITS):
        raise ArgumentError(code, "this must be a finite number", f"try {example}")
    return Fraction(value)
