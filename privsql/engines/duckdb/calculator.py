"""Public or already noisy columns and expressions over them go in; values come out. DuckDB computes them
without private data.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from privsql.algebra.expressions import Column, Expression
from privsql.engines.duckdb.dataframes import column_of, list_of
from privsql.engines.duckdb.opening import FAILURES
from privsql.engines.duckdb.twin import not_accepted, without_data
from privsql.errors import EngineError
from privsql.render.duckdb import DUCKDB
from privsql.types import Type

# how many accepted texts are remembered; they are not private, and no value of a column is kept
_MOST_ACCEPTED = 500


class DuckDBCalculator:
    """Computes over public or already noisy values in a database that holds no private data."""

    def __init__(self) -> None:
        self._connection = without_data().cursor()
        self._lock = threading.Lock()
        self._accepted: set[tuple[str, str]] = set()

    def evaluate(
        self, expressions: Sequence[Expression], columns: Mapping[Column, Sequence[Any]]
    ) -> list[list[Any]]:
        """Expressions over every row of some public columns."""
        count = len(next(iter(columns.values()))) if columns else 1
        listed = [
            np.arange(count).tolist(),
            *(list_of(values, column.type) for column, values in columns.items()),
        ]
        place = DUCKDB.identifier(_unlike("place", [column.name for column in columns]))
        named = [
            (place, "BIGINT"),
            *((DUCKDB.identifier(column.name), DUCKDB.type_name(column.type)) for column in columns),
        ]
        # lists as parameters: handing over a data frame takes four times as long
        rows = ", ".join(f"CAST(unnest(${n}) AS {sql}) AS {name}" for n, (name, sql) in enumerate(named, 1))
        outputs = ", ".join(DUCKDB.expression(each) for each in expressions)
        try:
            with self._lock:
                found = self._connection.execute(
                    f"SELECT {outputs} FROM (SELECT {rows}) ORDER BY {place}", listed
                ).fetchall()
        except FAILURES:
            raise not_accepted() from None
        return [list(column) for column in zip(*found, strict=True)] if found else [[] for _ in expressions]

    def check(self, sql: str, types: Mapping[str, Type]) -> None:
        """Refuse what `finish` could not compute over columns of these types."""
        columns = ", ".join(
            f"CAST(NULL AS {DUCKDB.type_name(type_)}) AS {DUCKDB.identifier(name)}"
            for name, type_ in types.items()
        )
        if (sql, columns) in self._accepted:
            return
        try:
            with self._lock:
                self._connection.execute(
                    f"PREPARE question AS WITH noisy AS (SELECT {columns}) SELECT * FROM ({sql})"
                )
        except FAILURES:
            raise not_accepted() from None
        if len(self._accepted) >= _MOST_ACCEPTED:
            self._accepted.clear()
        self._accepted.add((sql, columns))

    def finish(self, sql: str, columns: Mapping[str, tuple[Any, Type]]) -> list[Any]:
        """Run SQL over the table `noisy`; return the columns of its result, masked where NULL."""
        named = {
            f"c{index}": column_of(values, type_) for index, (values, type_) in enumerate(columns.values())
        }
        plain = all(isinstance(each, np.ndarray) for each in named.values())
        casts = ", ".join(
            f"CAST(c{index} AS {DUCKDB.type_name(type_)}) AS {DUCKDB.identifier(name)}"
            for index, (name, (_, type_)) in enumerate(columns.items())
        )
        text = (
            f"WITH noisy AS (SELECT {casts} FROM noisy_values) SELECT * FROM ({sql}) ORDER BY privsql_place"
        )
        with self._lock:
            self._connection.register("noisy_values", named if plain else pd.DataFrame(named))
            try:
                return list(self._connection.execute(text).fetchnumpy().values())
            except FAILURES:
                raise EngineError from None
            finally:
                self._connection.unregister("noisy_values")


@lru_cache(maxsize=1)
def calculator() -> DuckDBCalculator:
    """One database for public and noisy values, shared by all sessions."""
    return DuckDBCalculator()


atexit.register(calculator.cache_clear)  # closes it before the interpreter exits


def _unlike(name: str, taken: Sequence[str]) -> str:
    """A name that differs from all the others."""
    while name.lower() in {each.lower() for each in taken}:
        name += "_"
    return name
