"""A synthetic table: rows like those of the real one, from noisy and public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from privsql.engines.duckdb.table_of_rows import parquet_of_rows, table_of_rows
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.release.query_release import QueryRelease
from privsql.results.extras import arrow_table
from privsql.results.report_plot import plot_report


@dataclass(frozen=True)
class Line:
    """A marginal that rows were made from, and how far they are from it, as total variation."""

    columns: tuple[str, ...]
    cells: int
    deviation: float  # of one cell, by the noise alone, in rows
    rows: float
    off: float

    @property
    def predicted(self) -> float:
        """The mean total variation that noise of this size makes without shrinking."""
        return min(1.0, self.cells * self.deviation * math.sqrt(2 / math.pi) / 2 / self.rows)


@dataclass(frozen=True, eq=False)
class Synthetic:
    """An ordinary table with the real one's columns and types, to be used without any further cost.

    Arguments:
        frame: the rows.
        plan: what was measured, how noisy and at what price.
        lines: the marginals that the rows were made from, and how far they are from these.
        types: DuckDB's types of the real columns.
        release: of maximum entropy, the release of these marginals, which answers counts with intervals.
    """

    frame: pd.DataFrame = field(repr=False)
    plan: ResidualPlan | MwemPlan
    method: str
    lines: Sequence[Line] = field(repr=False)
    types: Mapping[str, str] = field(repr=False)
    release: QueryRelease | None = None

    def df(self) -> pd.DataFrame:
        """The rows as a pandas frame; the caller owns it."""
        return self.frame.copy()

    def arrow(self) -> Any:
        """The rows as a pyarrow Table (extra: privsql[arrow])."""
        return arrow_table(self.frame)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows to a Parquet file, with the types of `connect`.

        Raises:
            SourceError: the file cannot be written.
        """
        parquet_of_rows(self.plan.table, self.frame, self.types, str(path))

    def connect(self) -> Any:
        """A DuckDB connection to a database in memory with the table, under its name and with its types.

        Undeclared values are NULL where the type has no value "(other)": it is a text.
        """
        return table_of_rows(self.plan.table, self.frame, self.types)

    def report(self) -> pd.DataFrame:
        """For every marginal its cells, its predicted error, and how far the rows are from it.

        `deviation`: of one cell, by the noise alone, in rows. `predicted`: the mean total variation that
        noise of this size makes without shrinking. `rows_off`: the total variation between the rows and what
        was released. All are public or noisy numbers: nothing is read, nothing spent.
        """
        listed = [
            {
                "columns": ", ".join(each.columns),
                "ways": len(each.columns),
                "cells": each.cells,
                "deviation": each.deviation,
                "predicted": each.predicted,
                "rows_off": each.off,
            }
            for each in self.lines
        ]
        return pd.DataFrame(listed)

    def plot(self, ax: Any = None) -> Any:
        """The report as a picture: bars for every marginal, or for the worst of many (extra: privsql[plot]).

        Arguments:
            ax: the matplotlib axes to draw on; by default, of a new figure.

        Raises:
            ArgumentError: matplotlib is not installed.
        """
        rows = f"{len(self):,} rows like those of {self.plan.table}"
        title = f"{rows}, by {self.method}, epsilon {self.plan.epsilon:g}"
        return plot_report(self.report(), title, ax)

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        free = self.release is not None and self.release.stored
        charged = 0.0 if free else self.plan.epsilon
        return {**self.plan.to_dict(), "charged": charged, "method": self.method, "rows": len(self)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What contribution bounding may have dropped."""
        return self.plan.warnings

    def __len__(self) -> int:
        return len(self.frame)

    def __str__(self) -> str:
        off = sum(each.off for each in self.lines) / len(self.lines)
        made = f"{len(self):,} synthetic rows by {self.method}, {off:.4f} of total variation from"
        return f"{made} {self.plan.what}, at epsilon {self.plan.epsilon:g}"

    __repr__ = __str__
