"""What passes between engine, noise and results: exact cells, which only noise may open, and noisy ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExactTable:
    """Rows as the engine returned them: key columns (masked where NULL) and integer columns. Never leaves noise/."""

    exact_keys: Mapping[str, Any]
    exact_columns: Mapping[str, Integers]

    def __repr__(self) -> str:
        return "ExactTable(not shown)"


@dataclass(frozen=True)
class NoisyTable:
    """One number per cell and measured column, in the order of the public key space; `cells` are their numbers there."""

    cells: Integers
    noisy_columns: Mapping[str, Integers]
