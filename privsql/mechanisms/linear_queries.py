"""Counts of elements and linear queries go in; both come out in whole numbers, or an ArgumentError."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import Numbers, is_one, numbers
from privsql.tables import Integers
from privsql.theory.checked import as_written

LARGEST = 2**62  # of whole numbers


@dataclass(frozen=True, eq=False)
class LinearQueries:
    """Different queries, as whole numbers of 1/scale; every query asked is one of them, or its complement."""

    values: Integers  # a row for each that differs, a column for each element
    scale: int
    asked: tuple[tuple[Fraction, ...], ...]

    @property
    def number(self) -> int:
        """How many different queries were asked; in the bounds of the notes a complement counts too."""
        return len(set(self.asked))


def histogram(counts: Any) -> Numbers:
    given = numbers(counts, "count")
    if is_one(counts) or (isinstance(counts, np.ndarray) and counts.ndim > 1):
        raise ArgumentError(
            "argument-numbers", "counts must be a list of whole numbers, one for each element", "try [30, 70]"
        )
    return given


def labels_of(counts: Any, given: Numbers) -> list[Any]:
    """What the elements are called: functions are asked about these."""
    match counts:
        case Mapping():
            return list(counts)
        case pd.Series():
            return counts.index.tolist()
        case _:
            return list(range(len(given.exact_values)))


def counts_of(given: Numbers, queries: LinearQueries) -> Integers:
    """The counts as integers. Errors here depend on the data, as all errors of this room do."""
    values = given.exact_values
    if any(value.denominator != 1 or not 0 <= value < LARGEST for value in values) or not any(values):
        raise ArgumentError(
            "argument-numbers",
            "counts must be whole numbers, not negative and not all 0",
            "count the rows of each element: Series.value_counts().reindex(universe, fill_value=0)",
        )
    if len(values) != queries.values.shape[1] or sum(values) >= LARGEST:
        raise ArgumentError(
            "argument-shape",
            f"every query needs a value for each of the {len(values)} elements",
            "pass lists as long as the counts, or functions of an element",
        )
    return np.array([int(value) for value in values], dtype=np.int64)


def linear_queries(queries: Any, labels: Sequence[Any]) -> LinearQueries:
    """The queries, without those that repeat another or its complement 1 - q: these have the same errors."""
    if isinstance(queries, pd.DataFrame):
        queries = queries.to_numpy()
    if isinstance(queries, (str, bytes)) or not isinstance(queries, Iterable):
        raise _no_queries()
    asked = tuple(_values(query, labels) for query in queries)
    if not asked or len({len(query) for query in asked}) > 1:
        raise _no_queries()
    scale = math.lcm(*{value.denominator for query in asked for value in query})
    if scale >= LARGEST:
        raise ArgumentError(
            "argument-queries",
            "the queries' values have too many digits for exact arithmetic",
            "round them to six decimals, or use 0 and 1",
        )
    different = {
        min(whole_values, tuple(scale - value for value in whole_values))
        for query in asked
        for whole_values in [tuple(int(value * scale) for value in query)]
    }
    return LinearQueries(np.array(sorted(different), dtype=np.int64), scale, asked)


def _values(query: Any, labels: Sequence[Any]) -> tuple[Fraction, ...]:
    given: Iterable[Any]
    if isinstance(query, Callable):  # type: ignore[arg-type]
        given = [query(label) for label in labels]
    elif isinstance(query, Iterable) and not isinstance(query, (str, bytes, Mapping)):
        given = list(query)
    else:
        raise _no_queries()
    values = tuple(
        Fraction(int(value)) if isinstance(value, (bool, np.bool)) else as_written(value, "query value")
        for value in given
    )
    if any(not 0 <= value <= 1 for value in values):
        raise ArgumentError(
            "argument-queries",
            "the values of a linear query must be from 0 to 1",
            "divide them by the largest value that is possible",
        )
    return values


def _no_queries() -> ArgumentError:
    return ArgumentError(
        "argument-queries",
        "queries must be a list of linear queries: lists of numbers, or functions of an element",
        "try [[0, 1, 1], [1, 0, 0]]",
    )
