"""Samples of the releases of two neighbouring tables go in; a lower bound on epsilon comes out, by one event
and with a stated confidence.

An event A is chosen on the first part of the releases and judged on the rest, independently. If the release
is (epsilon, delta)-private, P(A) <= exp(epsilon) Q(A) + delta. So with a lower bound on P(A) and an upper
bound on Q(A), each by Clopper and Pearson, epsilon is at least ln((low - delta) / high).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.noise.again import MISSING, Outcomes
from privsql.tables import Integers

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_TRAINING = 50_000
_NOT_SHOWN = -1e300  # stands for a missing value: below every number
_MOST_SEEN = 12  # how many columns of a release are considered
_MOST_THRESHOLDS = 512
_BINS = 24
_PLAINER = 0.02
SURE = 3.3  # standard deviations of chance that the choice of an event allows for


@dataclass(frozen=True)
class Statistic:
    """A number computed from each release: a weighted sum of columns, or the evidence of all columns."""

    what: str
    weights: Floats | None = None
    edges: tuple[Floats, ...] = ()
    scores: tuple[Floats, ...] = ()

    def of(self, seen: Integers) -> Floats:
        total = np.zeros(len(seen))
        if self.weights is not None:
            for column, weight in zip(seen.T, self.weights.tolist(), strict=True):
                if weight:
                    total += np.where(column == MISSING, _NOT_SHOWN, column * weight)
            return total
        for place, (edges, scores) in enumerate(zip(self.edges, self.scores, strict=True)):
            total += scores[np.searchsorted(edges, seen[:, place].astype(np.float64), side="right")]
        return total


@dataclass(frozen=True)
class TellingEvent:
    """A statistic is at most, at least or exactly a value; `turned`: this is likelier on the second table."""

    statistic: Statistic
    test: str
    value: float
    turned: bool

    def happens(self, seen: Integers) -> Bools:
        values = self.statistic.of(seen)
        happened: Bools = values == self.value
        if self.test == "<=":
            happened = values <= self.value
        elif self.test == ">=":
            happened = values >= self.value
        return happened

    def __str__(self) -> str:
        if self.value <= _NOT_SHOWN / 2:
            return f"{self.statistic.what} is not shown"
        return f"{self.statistic.what} {self.test} {self.value:.6g}"


@dataclass(frozen=True)
class EpsilonBound:
    """Epsilon is at least `lower`, with this confidence: an event happened `hits` times on one table and
    `other_hits` times on the other.
    """

    lower: float
    charged: float
    delta: float
    confidence: float
    event: str
    hits: int
    other_hits: int
    releases: int  # of each table, among those that judge the event

    @property
    def passed(self) -> bool:
        return self.lower > self.charged

    def __str__(self) -> str:
        return f"epsilon at least {self.lower:.3g} of {self.charged:g} charged"


def shared(one: Outcomes, other: Outcomes) -> tuple[tuple[str, ...], Integers, Integers]:
    """Both samples with the same columns; values that were not released are missing."""
    names = tuple(dict.fromkeys((*one.names, *other.names)))

    def laid(some: Outcomes) -> Integers:
        seen = np.full((len(some.seen), len(names)), MISSING)
        for place, name in enumerate(some.names):
            seen[:, names.index(name)] = some.seen[:, place]
        return seen

    return names, laid(one), laid(other)


def choose(
    names: tuple[str, ...], one: Integers, other: Integers, delta: float, sure: float = SURE
) -> tuple[float, TellingEvent | None]:
    """The event that tells the two tables apart best, and the bound on epsilon that it promises."""
    kept = _telling(one, other)
    best: tuple[float, TellingEvent | None] = (-math.inf, None)
    for statistic in _statistics([names[each] for each in kept], one[:, kept], other[:, kept]):
        values, others = statistic.of(one[:, kept]), statistic.of(other[:, kept])
        loudness, test, value, turned = _loudest(values, others, delta, sure)
        if loudness > best[0] + (_PLAINER if best[1] is not None else 0.0):  # simpler statistics come first
            best = loudness, TellingEvent(_spread(statistic, kept, len(names)), test, value, turned)
    return best


def _spread(statistic: Statistic, kept: list[int], size: int) -> Statistic:
    """The same statistic, over all columns."""
    if statistic.weights is not None:
        weights = np.zeros(size)
        weights[kept] = statistic.weights
        return Statistic(statistic.what, weights)
    edges, scores = [np.zeros(0)] * size, [np.zeros(1)] * size
    for place, index in enumerate(kept):
        edges[index], scores[index] = statistic.edges[place], statistic.scores[place]
    return Statistic(statistic.what, None, tuple(edges), tuple(scores))


def judge(
    event: TellingEvent, one: Integers, other: Integers, charged: float, delta: float, confidence: float
) -> EpsilonBound:
    """Bound epsilon with releases that did not choose the event."""
    if event.turned:
        one, other = other, one
    hits, other_hits = int(event.happens(one).sum()), int(event.happens(other).sum())
    error = (1 - confidence) / 2  # one for each of the two bounds
    low, high = lower_probability(hits, len(one), error), upper_probability(other_hits, len(other), error)
    lower = math.log((low - delta) / high) if low > delta else 0.0
    return EpsilonBound(max(0.0, lower), charged, delta, confidence, str(event), hits, other_hits, len(one))


def _telling(one: Integers, other: Integers) -> list[int]:
    """The columns whose distributions differ most."""
    differ = []
    for place in range(one.shape[1]):
        pooled = np.unique(np.concatenate([one[:, place], other[:, place]]))
        edges = (
            pooled if len(pooled) <= _BINS else np.quantile(pooled, np.linspace(0, 1, _BINS)).astype(np.int64)
        )
        counts = [
            np.bincount(np.searchsorted(edges, each[:, place]), minlength=len(edges) + 1)
            for each in (one, other)
        ]
        differ.append(float(np.abs(counts[0] - counts[1]).sum()))
    return sorted(int(each) for each in np.argsort(differ)[::-1][:_MOST_SEEN])


def _statistics(names: list[str], one: Integers, other: Integers) -> list[Statistic]:
    """Each column by itself, the evidence of all together, and sums and differences of two."""
    size = len(names)
    found = [Statistic(name, row) for name, row in zip(names, np.eye(size), strict=True)]
    if size:
        found.append(_evidence(one, other))
    for first in range(min(size, 5)):
        for second in range(first + 1, min(size, 5)):
            for sign, word in ((1.0, "+"), (-1.0, "-")):
                weights = np.zeros(size)
                weights[[first, second]] = 1.0, sign
                found.append(Statistic(f"{names[first]} {word} {names[second]}", weights))
    return found


def _evidence(one: Integers, other: Integers) -> Statistic:
    """The sum, over all columns, of the logarithm of how much likelier each value is on the first table."""
    edges, scores = [], []
    for place in range(one.shape[1]):
        pooled = np.concatenate([one[:, place], other[:, place]]).astype(np.float64)
        own = np.unique(pooled)
        if len(own) > _BINS:
            own = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS)))
        counts = [
            np.bincount(
                np.searchsorted(own, each[:, place].astype(np.float64), side="right"), minlength=len(own) + 1
            )
            for each in (one, other)
        ]
        edges.append(own)
        scores.append(np.log(counts[0] + 2.0) - np.log(counts[1] + 2.0))
    return Statistic("the evidence of everything released (log odds)", None, tuple(edges), tuple(scores))


def _loudest(values: Floats, others: Floats, delta: float, sure: float) -> tuple[float, str, float, bool]:
    """The event of one statistic with the greatest bound on epsilon, less what chance may have added."""
    thresholds = np.unique(np.concatenate([values, others]))
    if len(thresholds) > _MOST_THRESHOLDS:
        thresholds = np.unique(
            np.quantile(np.concatenate([values, others]), np.linspace(0, 1, _MOST_THRESHOLDS))
        )
    ordered = np.sort(values), np.sort(others)
    below = [np.searchsorted(each, thresholds, side="right") for each in ordered]
    under = [np.searchsorted(each, thresholds, side="left") for each in ordered]
    sizes = len(values), len(others)
    best = (-math.inf, "<=", 0.0, False)
    for test, counts in (
        ("<=", below),
        (">=", [size - each for size, each in zip(sizes, under, strict=True)]),
        ("=", [most - least for most, least in zip(below, under, strict=True)]),
    ):
        for turned in (False, True):
            first, second = (1, 0) if turned else (0, 1)
            chances = [count / size for count, size in zip(counts, sizes, strict=True)]
            loudness = loudness_of(chances[first], chances[second], sizes[first], sizes[second], delta, sure)
            place = int(np.argmax(loudness))
            if loudness[place] > best[0]:
                best = float(loudness[place]), test, float(thresholds[place]), turned
    return best


def loudness_of(chance: Any, other: Any, size: int, other_size: int, delta: float, sure: float = SURE) -> Any:
    low = chance - sure * np.sqrt(chance * (1 - chance) / size) - 4.0 / size - delta
    high = other + sure * np.sqrt(other * (1 - other) / other_size) + 8.0 / other_size
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


# -- Clopper and Pearson -------------------------------------------------------------------------------------
def lower_probability(hits: int, trials: int, error: float) -> float:
    """The p at which this many hits or more have probability `error`. With at most that probability, the true
    p is below it.
    """
    if hits == 0:
        return 0.0
    return _solve(lambda p: beta_below(p, hits, trials - hits + 1) <= error)


def upper_probability(hits: int, trials: int, error: float) -> float:
    """The p at which this many hits or fewer have probability `error`."""
    if hits == trials:
        return 1.0
    return 1.0 - _solve(lambda p: beta_below(p, trials - hits, hits + 1) <= error)


def _solve(holds: Any) -> float:
    """The greatest p in 0 .. 1 that satisfies a condition true below it and false above, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function: P(X <= x) for X of the beta distribution, which is
    P(hits >= a) for a + b - 1 trials.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of beta_below, evaluated from the front (Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 100_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + term * d
            c = 1.0 + term / c
            d, c = 1.0 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
            total *= d * c
        if abs(d * c - 1.0) < 1e-15:
            return total
    return total
