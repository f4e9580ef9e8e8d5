"""The queries of a workload over a few kinds of rows go in; what to measure instead of them comes out: the
strategy with the least predicted error of several, from which all of them follow.

A strategy is a matrix. Its product with the counts of the kinds gets Gaussian noise, and the queries are
estimated by least squares. All that decides between strategies is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privsql.privacy.marginals.residual_price import Neighbouring
from privsql.privacy.marginals.strategy_price import (
    GREATEST_ENTRY,
    MOST_ROWS,
    Floats,
    Integers,
    strategy_change,
)

MOST_KINDS = 600  # of rows, that the queries tell apart
_BRANCHES = (2, 4, 8, 16)
_ROUNDS = 12
_TOTAL = 1e4  # how much better than all else a public number of rows is known: as good as exactly
_RANK = 1e-12  # eigenvalues below this part of the greatest are none
_FOLLOWS = 1e-6


@dataclass(frozen=True, eq=False)
class KindQueries:
    """Queries over kinds of rows: their Gram matrix (of each two kinds, how many queries count both, as
    their weights have it), how many there are, and the queries themselves, where they are few.
    """

    gram: Floats
    many: int
    listed: Floats | None = None
    ordered: bool = False  # the kinds have an order, and runs of them belong together


@dataclass(frozen=True, eq=False)
class Fit:
    """The least squares estimate from a noisy strategy: what is known of each combination of kinds.

    `covariance`: of the estimated counts; `known`: the projection onto what was measured at all.
    """

    covariance: Floats
    precision: Floats
    known: Floats
    total_weight: float

    def variance(self, wanted: Floats) -> float:
        """Of the estimate of a weighted sum of counts; infinite where that does not follow."""
        lost = wanted - self.known @ wanted
        if float(np.abs(lost).max(initial=0.0)) > _FOLLOWS * max(1.0, float(np.abs(wanted).max(initial=0.0))):
            return math.inf
        return max(0.0, float(wanted @ self.covariance @ wanted))


@dataclass(frozen=True, eq=False)
class Strategy:
    """Whole numbers, and how it is called."""

    name: str
    matrix: Integers


def fit_of(matrix: Integers, variance: float, total_is_public: bool) -> Fit:
    """The least squares estimate where every number of the product has noise of this variance."""
    exact = matrix.astype(np.float64)
    precision = exact.T @ exact / variance
    kinds = precision.shape[0]
    greatest = max(float(np.abs(precision).sum(axis=0).max()), 1e-300)  # at least its greatest eigenvalue
    weight = _TOTAL * greatest if total_is_public else 0.0
    values, vectors = np.linalg.eigh(precision + weight * np.ones((kinds, kinds)) / kinds)
    kept = values > _RANK * values[-1]
    vectors, values = vectors[:, kept], values[kept]
    return Fit((vectors / values) @ vectors.T, precision, vectors @ vectors.T, weight / kinds)


def best_strategy(queries: KindQueries, by: Neighbouring) -> tuple[Strategy, list[tuple[str, float]]]:
    """The strategy with the least mean squared error, and the predicted error of all that were tried: the
    mean variance of a query where the squared change is 1.
    """
    found = [
        (Strategy(name, whole), predicted_variance(queries, whole, by))
        for name, matrix in _candidates(queries, by.total_is_public)
        if (whole := _whole_numbers(matrix)).any()
    ]
    best, _ = min(found, key=lambda each: each[1])
    return best, sorted(((each.name, error) for each, error in found), key=lambda each: each[1])


def predicted_variance(queries: KindQueries, matrix: Integers, by: Neighbouring) -> float:
    """The mean variance of a query, at a squared change of 1; infinite where some query does not follow."""
    fit = fit_of(matrix, float(strategy_change(matrix, Fraction(1), by)), by.total_is_public)
    whole = float(np.trace(queries.gram))
    if float(np.trace(queries.gram - fit.known @ queries.gram)) > _FOLLOWS * max(1.0, whole):
        return math.inf
    return float(np.sum(queries.gram * fit.covariance)) / queries.many


def _whole_numbers(matrix: Floats) -> Integers:
    largest = float(np.abs(matrix).max(initial=0.0)) or 1.0
    return np.rint(matrix * (GREATEST_ENTRY / largest)).astype(np.int64)


def _candidates(queries: KindQueries, total_is_public: bool) -> Iterator[tuple[str, Floats]]:
    kinds = len(queries.gram)
    yield "every kind of row by itself", np.eye(kinds)
    if queries.listed is not None and len(queries.listed) <= MOST_ROWS:
        yield "the queries themselves", queries.listed
    if queries.ordered:
        for branch in _BRANCHES:
            if branch < kinds:
                yield f"a tree of {branch} branches", _tree(kinds, branch, with_root=not total_is_public)
    yield "a matrix made for the queries", _optimised(queries.gram, total_is_public)


def _tree(kinds: int, branch: int, with_root: bool) -> Floats:
    """The counts of all nodes of a tree over the kinds in their order."""
    rows, width = [np.eye(kinds)], branch
    while width < kinds * branch:
        if width >= kinds and not with_root:
            break
        nodes = np.zeros((-(-kinds // width), kinds))
        nodes[np.arange(kinds) // width, np.arange(kinds)] = 1.0
        rows.append(nodes)
        width *= branch
    return np.concatenate(rows)


def _optimised(gram: Floats, total_is_public: bool) -> Floats:
    """The strategy of least squared error among all whose columns are equally long.

    With G the Gram matrix of the queries, V diagonal and X = V^-1/2 (V^1/2 G V^1/2)^1/2 V^-1/2, the strategy
    X^1/2 has the least error for its column lengths; V is a fixed point of V = diag((V^1/2 G V^1/2)^1/2),
    where all of these are 1 (Denisov, McMahan, Rush, Smith and Thakurta, 2022). Where the number of rows is
    public, the queries are those of what is left of it.
    """
    kinds = len(gram)
    if total_is_public:
        centre = np.eye(kinds) - 1.0 / kinds
        gram = centre @ gram @ centre
    scale = np.maximum(np.sqrt(np.maximum(np.diagonal(gram), 0.0)), 1e-9)
    for _ in range(_ROUNDS):
        half = np.sqrt(scale)
        after = np.maximum(np.diagonal(_root(half[:, None] * gram * half[None, :])), 1e-9 * scale.max())
        settled = float(np.abs(after - scale).max()) <= 1e-3 * float(scale.max())
        scale = after
        if settled:
            break
    half = np.sqrt(scale)
    found = _root(half[:, None] * gram * half[None, :]) / np.outer(half, half)
    return _root(found)


def _root(matrix: Floats) -> Floats:
    """The symmetric square root of a matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return found
