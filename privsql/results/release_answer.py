"""An answer from a release: it shows improved counts, and its intervals are those of the unbiased ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from privsql.results.answer import Answer
from privsql.tables import NoisyTable


@dataclass(frozen=True)
class Price:
    """What of the price of a release falls to one of its answers; `rho` where the ledger counts that."""

    epsilon: float
    delta: float
    rho: float | None


@dataclass(frozen=True, eq=False)
class ReleaseAnswer(Answer):
    """An answer from a release: it shows the shrunk counts, and its intervals are of the unbiased ones,
    extended to what is shown. `price`: where the release was made for it; else it is free.
    """

    price: Price | None = None

    @staticmethod
    def of(answer: Answer, unbiased: NoisyTable) -> ReleaseAnswer:
        """The answer as computed from the counts that are shown, with the unbiased ones behind it."""
        given = {each.name: getattr(answer, each.name) for each in fields(Answer)}
        return ReleaseAnswer(**{**given, "noisy": unbiased, "stored": True})

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        found, price = super().receipt, self.price
        return found if price is None else {**found, **asdict(price), "charged": price.epsilon}

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        found = super().intervals(level)
        for name in self.columns:
            low, high = f"{name}_low", f"{name}_high"
            if low in found.columns and high in found.columns:
                found[low] = np.fmin(found[low], found[name].astype(np.float64))
                found[high] = np.fmax(found[high], found[name].astype(np.float64))
        return found
