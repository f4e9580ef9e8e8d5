"""Error of marginals of three columns at equal epsilon: noise on each of them, a release, and synthetic tables.

    python benchmarks/release [--seeds 5] [--epsilons 0.1,1,3] [--columns 10] [--triples 0] [--only release]

The table is made up (`people_tables.py`): 48,842 rows and, with 10 columns, 1.88 million cells. What is measured is the mean
total variation of 100 marginals of three columns, at delta 1e-6, and the seconds and the greatest memory of a run. Each line
runs in a process of its own, whose memory is its own.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from people_tables import Table, made_up

import privsql
from privsql.privacy.gaussian import greatest_ratio

DELTA = 1e-6
MARGINALS = 100
RELATIONS = ("add-remove", "replace-one")
Floats = npt.NDArray[np.float64]
Columns = tuple[int, ...]
Method = Callable[[Table, str, float, list[Columns]], list[Floats]]


def counted(table: Table, columns: Columns) -> Floats:
    """The exact marginal."""
    shape = [table.sizes[each] for each in columns]
    counts = np.zeros(shape)
    np.add.at(counts, tuple(table.codes[:, each] for each in columns), 1.0)
    return counts


def laplace(table: Table, relation: str, epsilon: float, asked: list[Columns]) -> list[Floats]:
    """Laplace noise on each marginal, for an equal share of epsilon."""
    scale = len(asked) * (2 if relation == "replace-one" else 1) / epsilon
    random = np.random.default_rng()
    return [
        truth + random.laplace(0, scale, truth.shape) for truth in (counted(table, each) for each in asked)
    ]


def gaussian(table: Table, relation: str, epsilon: float, asked: list[Columns]) -> list[Floats]:
    """Gaussian noise on all marginals jointly."""
    ratio = float(greatest_ratio(Fraction(repr(epsilon)), Fraction(repr(DELTA))))
    deviation = math.sqrt(len(asked) * (2 if relation == "replace-one" else 1)) / ratio
    random = np.random.default_rng()
    return [
        truth + random.normal(0, deviation, truth.shape) for truth in (counted(table, each) for each in asked)
    ]


def session_of(table: Table, relation: str) -> privsql.Session:
    """A session over the table, each column with its range declared."""
    frame = pd.DataFrame(table.codes, columns=list(table.names))
    ranges = {name: {"range": [0, size - 1]} for name, size in zip(table.names, table.sizes, strict=True)}
    return privsql.connect(
        {"people": frame}, {"neighbours": relation, "tables": {"people": {"columns": ranges}}}
    )


def release(table: Table, relation: str, epsilon: float, asked: list[Columns]) -> list[Floats]:
    """session.release, of all marginals of three columns."""
    with session_of(table, relation) as session:
        workload = privsql.marginals(table.names, ways=3)
        found = session.release(workload, "people", epsilon=epsilon, delta=DELTA)
        return [found.tables.shown(each) for each in asked]


def maxent(table: Table, relation: str, epsilon: float, asked: list[Columns]) -> list[Floats]:
    """The rows of session.synthesize."""
    with session_of(table, relation) as session:
        made = session.synthesize("people", epsilon=epsilon, delta=DELTA)
    rows = Table(table.names, table.sizes, made.frame[list(table.names)].to_numpy().astype(np.int64))
    return [counted(rows, each) * (len(table.codes) / len(made)) for each in asked]


def mwem(table: Table, relation: str, epsilon: float, asked: list[Columns]) -> list[Floats]:
    """The rows of session.synthesize without a delta, from 30 marginals of two columns."""
    with session_of(table, relation) as session:
        made = session.synthesize("people", epsilon=epsilon, ways=2, rounds=30)
    rows = Table(table.names, table.sizes, made.frame[list(table.names)].to_numpy().astype(np.int64))
    return [counted(rows, each) * (len(table.codes) / len(made)) for each in asked]


METHODS: dict[str, Method] = {
    "Laplace": laplace,
    "Gaussian": gaussian,
    "release": release,
    "maxent": maxent,
    "mwem": mwem,
}


def one(
    method: str, relation: str, epsilon: float, seed: int, columns: int, triples: float
) -> dict[str, float]:
    """A run: its error, its seconds and its memory in MB."""
    table = made_up(seed, columns, triples=triples)
    every = list(combinations(range(len(table.sizes)), 3))
    picks = np.random.default_rng(seed).choice(len(every), MARGINALS, replace=False)
    asked = [every[each] for each in picks]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = METHODS[method](table, relation, epsilon, asked)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    rows = len(table.codes)
    errors = [
        float(np.abs(table_found - counted(table, each)).sum()) / 2 / rows
        for each, table_found in zip(asked, found, strict=True)
    ]
    return {"error": float(np.mean(errors)), "seconds": seconds, "memory": memory / 1024}


def in_process(*arguments: object) -> dict[str, float]:
    """A run in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent), "--one", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", default="0.1,1,3")
    parser.add_argument("--columns", type=int, default=10, choices=[10, 14])
    parser.add_argument("--triples", type=float, default=0.0)
    parser.add_argument("--only", default=",".join(METHODS))
    parser.add_argument("--one", default="")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*json.loads(given.one))))
        return
    size = math.prod(made_up(0, given.columns, 10).sizes)
    print(
        f"{given.columns} columns, {size:,} cells, {given.seeds} seeds: mean total variation of {MARGINALS} marginals"
    )
    print(f"{'method':12} {'relation':12} {'epsilon':>7} {'error':>8} {'+-':>7} {'seconds':>8} {'MB':>6}")
    for epsilon in map(float, given.epsilons.split(",")):
        for method in given.only.split(","):
            for relation in RELATIONS:
                runs = [
                    in_process(method, relation, epsilon, seed, given.columns, given.triples)
                    for seed in range(given.seeds)
                ]
                errors = [each["error"] for each in runs]
                seconds, memory = (
                    float(np.mean([each[name] for each in runs])) for name in ("seconds", "memory")
                )
                spread = float(np.std(errors)) / math.sqrt(max(1, len(errors) - 1))
                print(
                    f"{method:12} {relation:12} {epsilon:7g} {np.mean(errors):8.4f} {spread:7.4f} "
                    f"{seconds:8.2f} {memory:6.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
