"""What a caller passes goes in; exact fractions come out, or an ArgumentError. Nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privsql.errors import ArgumentError
from privsql.theory.checked import exact, no_numbers

_INT64 = np.iinfo(np.int64)
_GREATEST_FLOAT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Numbers:
    """Numbers as fractions, and the object they came in."""

    exact_values: Sequence[Fraction]
    # whether all are of integer type. This decides the grid of the noise, so types count as public, as in SQL
    whole: bool
    given: object

    def label(self, index: int) -> Any:
        """The label of the number at this place in a mapping or a Series; otherwise its place."""
        match self.given:
            case Mapping():
                return list(self.given)[index]
            case pd.Series():
                return self.given.index[index]
            case _:
                return index

    def alike(self, made: list[Any]) -> Any:
        """Other numbers in the form of those given."""
        match self.given:
            case Mapping():
                return dict(zip(self.given, made, strict=True))
            case pd.Series():
                return pd.Series(_array(made), index=self.given.index, name=self.given.name)
            case np.ndarray() if self.given.ndim:
                return _array(made).reshape(self.given.shape)
            case _ if is_one(self.given):
                return made[0]
            case _:
                return made


def is_one(given: object) -> bool:
    """Whether this is a single number, or meant as one."""
    scalar = isinstance(given, (int, float, Fraction, Decimal, np.number))
    return scalar or (isinstance(given, np.ndarray) and not given.ndim)


def numbers(given: object, what: str) -> Numbers:
    """Read a mapping, Series, array or other ordered iterable of at least one number."""
    match given:
        case Mapping():
            listed = list(given.values())
        case pd.Series():
            listed = given.tolist()
        case np.ndarray():
            listed = given.ravel().tolist()
        case Iterable() if not isinstance(given, (str, bytes, Set)):
            listed = list(given)
        case _ if is_one(given):
            listed = [given]
        case _:
            raise no_numbers(what)
    if not listed:
        raise ArgumentError("argument-numbers", f"there are no {what}s", f"pass at least one {what}")
    whole = all(isinstance(each, (int, np.integer)) for each in listed)
    return Numbers([exact(each, what) for each in listed], whole, given)


def moves(monotone: object) -> int:
    """How many sensitivities one person can move the winner's lead over another candidate by."""
    if not isinstance(monotone, (bool, np.bool)):
        raise ArgumentError(
            "argument-shape",
            "monotone must be True or False",
            "leave it out if scores may both rise and fall",
        )
    return 1 if monotone else 2


def as_float(number: Fraction) -> float:
    """The nearest float, or the greatest one for what is beyond it."""
    try:
        return float(number)
    except OverflowError:
        return _GREATEST_FLOAT if number > 0 else -_GREATEST_FLOAT


def _array(made: list[Any]) -> Any:
    if isinstance(made[0], int):
        return np.array([min(max(each, _INT64.min), _INT64.max) for each in made], dtype=np.int64)
    return np.array(made, dtype=np.float64)
