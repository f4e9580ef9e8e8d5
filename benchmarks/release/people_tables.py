"""A seed goes in; a made-up table with the shape of a census extract comes out: every column a small number of
codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ROWS = 48_842
SIZES = {
    "age": 8,
    "work": 5,
    "education": 7,
    "marital": 4,
    "job": 7,
    "family": 5,
    "race": 4,
    "sex": 2,
    "hours": 3,
    "income": 2,
}
# which columns each column depends on, and how strongly
DEPENDS = {
    "education": {"age": 0.6},
    "marital": {"age": 1.2},
    "family": {"marital": 1.5, "sex": 0.8},
    "work": {"education": 0.4, "age": 0.3},
    "job": {"education": 0.9, "work": 0.5, "sex": 0.6},
    "hours": {"work": 0.5, "job": 0.4, "sex": 0.5},
    "income": {"education": 0.9, "age": 0.7, "marital": 0.9, "hours": 0.5},
}
ORDER = ["race", "sex", "age", "education", "marital", "family", "work", "job", "hours", "income"]
MORE = {"region": 6, "children": 4, "home": 3, "insured": 2}  # further columns, for a table of 14
MORE_DEPENDS = {
    "region": {"race": 0.7},
    "children": {"marital": 0.9, "age": 0.8},
    "home": {"income": 0.8, "age": 0.6},
    "insured": {"work": 0.7, "income": 0.6},
}

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Codes of every row, and how many there are of each column."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Codes  # a row a person


def made_up(seed: int, columns: int = 10, rows: int = ROWS, triples: float = 0.0) -> Table:
    """A table whose columns depend on each other two by two; `triples`: and on two others jointly, so strongly."""
    random = np.random.default_rng(seed)
    sizes = SIZES if columns == 10 else {**SIZES, **MORE}
    depends = DEPENDS if columns == 10 else {**DEPENDS, **MORE_DEPENDS}
    order = ORDER if columns == 10 else [*ORDER, *MORE]
    found: dict[str, Codes] = {}
    for name in order:
        size = sizes[name]
        base = np.log(random.dirichlet(np.full(size, 2.0)))
        weights = np.tile(base, (rows, 1))
        parents = list(depends.get(name, {}))
        for other in parents:
            weights += depends[name][other] * random.normal(0, 1, (sizes[other], size))[found[other]]
        if triples and len(parents) > 1:
            first, second = parents[:2]
            jointly = random.normal(0, triples, (sizes[first], sizes[second], size))
            weights += jointly[found[first], found[second]]
        found[name] = (weights + random.gumbel(size=weights.shape)).argmax(axis=1)
    names = tuple(sizes)
    return Table(names, tuple(sizes.values()), np.stack([found[each] for each in names], axis=1))
