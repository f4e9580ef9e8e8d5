"""The tables -> for each line the mechanism that a textbook teaches first: equal parts of epsilon, Laplace noise on each.

Neighbours are add-remove. Noise in floats is not safe to release; here it only has to have the right size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from lines import (
    AMOUNT,
    CANDIDATES,
    FLAGS,
    HIGH,
    KEYS,
    LINES,
    QUANTILES,
    REGIONS,
    ROWS_A_USER,
    SPENT,
    YEARS,
    bounded,
)

chance = np.random.default_rng()
GRID = np.linspace(0, HIGH, 201)


def noisy(exact: Any, sensitivity: float, epsilon: float) -> Any:
    return exact + chance.laplace(0, sensitivity / epsilon, np.shape(exact))


def moments(x: Any, y: Any, epsilon: float) -> dict[str, float]:
    """E[x], E[y], E[xx], E[xy], E[yy] from six noisy totals."""
    part = epsilon / 6
    count = noisy(len(x), 1, part)
    totals = {
        "x": (x, HIGH),
        "y": (y, SPENT),
        "xx": (x * x, HIGH**2),
        "xy": (x * y, HIGH * SPENT),
        "yy": (y * y, SPENT**2),
    }
    return {name: noisy(values.sum(), high, part) / count for name, (values, high) in totals.items()}


def correlation(x: Any, y: Any, epsilon: float) -> float:
    m = moments(x, y, epsilon)
    spread = max(m["xx"] - m["x"] ** 2, 1e-9) * max(m["yy"] - m["y"] ** 2, 1e-9)
    return float(np.clip((m["xy"] - m["x"] * m["y"]) / spread**0.5, -1, 1))


def covariance(x: Any, y: Any, epsilon: float) -> float:
    part = epsilon / 4
    count = noisy(len(x), 1, part)
    return float(
        noisy((x * y).sum(), HIGH * SPENT, part) / count
        - noisy(x.sum(), HIGH, part) * noisy(y.sum(), SPENT, part) / count**2
    )


def slope(x: Any, y: Any, epsilon: float) -> float:
    part = epsilon / 5
    count = noisy(len(x), 1, part)
    mean_x, mean_y = noisy(x.sum(), HIGH, part) / count, noisy(y.sum(), SPENT, part) / count
    crossed, squared = (
        noisy((x * y).sum(), HIGH * SPENT, part) / count,
        noisy((x * x).sum(), HIGH**2, part) / count,
    )
    return float((crossed - mean_x * mean_y) / (squared - mean_x**2))


def mean(values: Any, high: float, epsilon: float) -> float:
    return float(noisy(values.sum(), high, epsilon / 2) / noisy(len(values), 1, epsilon / 2))


def variance(values: Any, epsilon: float) -> float:
    count = noisy(len(values), 1, epsilon / 3)
    squares = noisy((values**2).sum(), HIGH**2, epsilon / 3) / count
    return float(squares - (noisy(values.sum(), HIGH, epsilon / 3) / count) ** 2)


def quantile(ordered: Any, share: float, epsilon: float) -> float:
    """The exponential mechanism over a grid: minus the rows off, of sensitivity 1."""
    score = -np.abs(np.searchsorted(ordered, GRID) - share * len(ordered))
    return float(GRID[np.argmax(score * epsilon / 2 + chance.gumbel(size=len(GRID)))])


def levels(people: pd.DataFrame, sets: list[list[str]], epsilon: float) -> list[float]:
    """Every grouping set by itself, cells in the order of the lines."""
    cells: dict[tuple[str, ...], float] = {}
    for columns in sets:
        choices = [[str(each) for each in known] if name in columns else ["None"] for name, known in AXES]
        sizes = people.groupby(columns).size() if columns else None
        for cell in itertools.product(*choices):
            key = tuple(int(each) if each.isdigit() else each for each in cell if each != "None")
            exact = len(people) if sizes is None else sizes.get(key if len(key) > 1 else key[0], 0)
            cells[cell] = noisy(exact, 1, epsilon / len(sets))
    return [cells[cell] for cell in sorted(cells)]


AXES: list[tuple[str, list[Any]]] = [("region", REGIONS), ("year", YEARS)]
ROLLUP = [["region", "year"], ["region"], []]


def answers(tables: dict[str, pd.DataFrame]) -> dict[str, Callable[[], list[Any]]]:
    people, visits = tables["people"], bounded(tables["visits"])
    e = {line.name: line.epsilon for line in LINES}
    x, y, rows = people["income"].to_numpy(), people["spent"].to_numpy(), len(people)
    ordered, smoker = np.sort(x), people["smoker"].to_numpy()
    by_key = [x[people["key"].to_numpy() == key] for key in KEYS]
    sizes = np.array([len(each) for each in by_key])
    first, third = ([(people[name] == each).sum() for each in CANDIDATES] for name in ("first", "third"))
    words = people["word"].value_counts()

    def largest(counts: Any, k: int, epsilon: float) -> list[Any]:
        return [CANDIDATES[index] for index in np.argsort(-noisy(np.array(counts), 1, epsilon))[:k]]

    def three() -> list[float]:
        count, total = noisy(rows, 1, 1 / 3), noisy(x.sum(), HIGH, 1 / 3)
        return [count, total, noisy(x.sum(), HIGH, 1 / 6) / noisy(rows, 1, 1 / 6)]

    def unknown() -> list[Any]:
        threshold = 1 + np.log(1 / (2 * 1e-6))
        return list(words.index[noisy(words.to_numpy(), 1, 1) >= threshold])

    return {
        "COUNT": lambda: [noisy(rows, 1, 1)],
        "COUNT, filtered": lambda: [noisy((people["age"] > 40).sum(), 1, 1)],
        "COUNT by 50 keys": lambda: list(noisy(sizes, 1, 1)),
        "SUM": lambda: [noisy(x.sum(), HIGH, 1)],
        "AVG": lambda: [mean(x, HIGH, 1)],
        "AVG by 50 keys": lambda: [mean(each, HIGH, 1) for each in by_key],
        "COUNT, SUM, AVG": three,
        "proportion": lambda: [mean(smoker, 1, 1)],
        "VAR_POP": lambda: [variance(x, 1)],
        "STDDEV_POP": lambda: [max(variance(x, 1), 0) ** 0.5],
        "COVAR_POP": lambda: [covariance(x, y, 1)],
        "CORR": lambda: [correlation(x, y, 1)],
        "REGR_SLOPE": lambda: [slope(x, y, 1)],
        "MEDIAN": lambda: [quantile(ordered, 0.5, 1)],
        "quantiles .1 .5 .9": lambda: [quantile(ordered, share, 1 / 3) for share in QUANTILES],
        "quantile .999": lambda: [quantile(ordered, 0.999, 1)],
        "MIN": lambda: [float(np.clip(noisy(x.min(), HIGH, 1), 0, HIGH))],
        "MAX": lambda: [float(np.clip(noisy(x.max(), HIGH, 1), 0, HIGH))],
        "argmax of 5, gap 5": lambda: largest(first, 1, e["argmax of 5, gap 5"]),
        "MODE": lambda: largest(first, 1, e["MODE"]),
        "top 3 of 5, gaps 5": lambda: largest(third, 3, e["top 3 of 5, gaps 5"]),
        "20 overlapping counts": lambda: [noisy(people[flag].sum(), 1, 1 / len(FLAGS)) for flag in FLAGS],
        "unknown keys": unknown,
        "ROLLUP, 17 cells": lambda: levels(people, ROLLUP, 1),
        "CUBE, 20 cells": lambda: levels(people, [*ROLLUP, ["year"]], 1),
        "users": lambda: [noisy(visits["user_id"].nunique(), 1, 1)],
        "SUM, 10 rows a user": lambda: [noisy(visits["amount"].sum(), AMOUNT * ROWS_A_USER, 1)],
    }
