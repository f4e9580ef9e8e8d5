"""What the tests share: a small clinic, and sources of randomness that tests may inject."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.noise.randomness import SystemRandomness

mpl.use("Agg")

POLICY = {
    "tables": {
        "visits": {
            "columns": {
                "age": {"range": [0, 120]},
                "cost": {"range": [0, 1000]},
                "change": {"range": [-5, 20]},
                "state": {"values": ["CA", "NY", "TX"]},
            }
        }
    }
}


class Buffered:
    """The system's words, fetched many at a time: thousands of small draws are quicker so."""

    def __init__(self) -> None:
        self.words = SystemRandomness().integers(0)

    def integers(self, count: int):
        if count > self.words.size:
            self.words = SystemRandomness().integers(max(count, 1 << 16))
        taken, self.words = self.words[:count], self.words[count:]
        return taken


def clinic(rows: int = 300) -> pd.DataFrame:
    """A table in which everything occurs: NULL, NaN, values outside their declared range and keys nobody declared."""
    index = np.arange(rows)
    age = pd.array((index * 7) % 130, dtype="Int64")
    age[index % 11 == 0] = pd.NA
    return pd.DataFrame(
        {
            "user": index,
            "age": age,
            "cost": np.where(index % 13 == 0, np.nan, (index * 37.5) % 1100),
            "change": (index % 30) - 7,
            "state": np.array(["CA", "NY", "TX", "ZZ"])[index % 4],
            "smoker": index % 3 == 0,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(index % 400, unit="D"),
        }
    )


@pytest.fixture
def visits() -> pd.DataFrame:
    return clinic()


@pytest.fixture
def session(visits) -> privsql.Session:
    return privsql.connect({"visits": visits}, POLICY)
