"""A synthetic table: rows like those of the real one, from noisy and public numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsql.engines.duckdb.table_of_rows import table_of_rows
from privsql.release.query_release import QueryRelease
from privsql.results.extras import arrow_table


@dataclass(frozen=True, eq=False)
class Synthetic:
    """An ordinary table with the real one's columns and types, to be used without any further cost.

    Arguments:
        frame: the rows.
        release: the marginals from which they were made, with their intervals and receipt.
        differences: by columns, how far the rows are from what the release shows, as total variation.
        types: DuckDB's types of the real columns.
    """

    frame: pd.DataFrame = field(repr=False)
    release: QueryRelease
    method: str
    differences: Mapping[tuple[str, ...], float] = field(repr=False)
    types: Mapping[str, str] = field(repr=False)

    def df(self) -> pd.DataFrame:
        """The rows as a pandas frame; the caller owns it."""
        return self.frame.copy()

    def arrow(self) -> Any:
        """The rows as a pyarrow Table (extra: privsql[arrow])."""
        return arrow_table(self.frame)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows to a Parquet file."""
        self.connect().table(self.release.plan.table).write_parquet(str(path))

    def connect(self) -> Any:
        """A DuckDB connection to a database in memory with the table, under its name and with its types."""
        return table_of_rows(self.release.plan.table, self.frame, self.types)

    def report(self) -> pd.DataFrame:
        """For every marginal its cells, its predicted error, and how far the rows are from the release.

        `deviation`: of one cell, by the noise alone, in rows. `predicted`: the mean total variation that
        noise of this size makes without shrinking. `rows_off`: the total variation between the rows and what
        the release shows. All are public or noisy numbers: nothing is read, nothing spent.
        """
        total = self.release.tables.total
        listed = [
            {
                "columns": ", ".join(each.columns),
                "ways": len(each.columns),
                "cells": each.cells,
                "deviation": each.deviation,
                "predicted": min(1.0, each.cells * each.deviation * (2 / np.pi) ** 0.5 / 2 / total),
                "rows_off": self.differences[each.columns],
            }
            for each in self.release.plan.errors
        ]
        return pd.DataFrame(listed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What contribution bounding may have dropped."""
        return self.release.warnings

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        return {**self.release.receipt, "method": self.method, "rows": len(self)}

    def __len__(self) -> int:
        return len(self.frame)

    def __str__(self) -> str:
        off = float(np.mean(list(self.differences.values())))
        made = f"{len(self):,} synthetic rows by {self.method}, {off:.4f} of total variation from the release"
        return f"{made}\n{self.release}"

    __repr__ = __str__
