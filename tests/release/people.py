"""Small tables of people that the tests of releases share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import privsql

COLUMNS = {
    "age": {"range": [0, 99]},
    "state": {"values": ["CA", "NY", "TX"]},
    "smoker": {},
    "income": {"range": [0.0, 100.0]},
}
BINS = {"age": [0, 18, 40, 65, 100], "income": 4}
WORKLOAD = privsql.marginals(["age", "state", "smoker", "income"], ways=2, bins=BINS)


def people(rows: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """People whose columns depend on each other; some values are NULL, undeclared or out of range."""
    random = np.random.default_rng(seed)
    age = random.integers(-3, 105, rows)
    state = np.where(random.random(rows) < age / 110, "NY", "CA").astype(object)
    state[random.random(rows) < 0.1] = "TX"
    state[random.random(rows) < 0.05] = "Guam"
    state[random.random(rows) < 0.05] = None
    income = np.where(random.random(rows) < 0.05, np.nan, random.normal(age, 20))
    return pd.DataFrame({"age": age, "state": state, "smoker": random.random(rows) < 0.3, "income": income})


def connect(frame: pd.DataFrame, **policy: Any) -> privsql.Session:
    """A session over one table `people`, whose columns are declared as above."""
    table = {"columns": {name: how for name, how in COLUMNS.items() if name in frame.columns}}
    table |= policy.pop("table", {})
    quantum = policy.pop("time_quantum", None)
    policy = {"tables": {"people": table}, **policy}
    return privsql.connect({"people": frame}, policy=policy, time_quantum=quantum)
