"""A plan and pairs of neighbouring tables go in; a lower bound on its epsilon, measured on very many
releases, comes out.

Only the noise is drawn repeatedly, by the real add_noise and the system's randomness. Who else is in the
tables matters little for numbers, but much for choices, quantiles and keys, so several crowds are tried with
a few releases each, and the worst of them with all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsql.algebra.relations import Choose
from privsql.audit.bound import MOST_TRAINING, EpsilonBound, TellingEvent, choose, judge, loudness_of, shared
from privsql.audit.scratch import Crowd, Scratch
from privsql.audit.search import Pair
from privsql.audit.states import crowd_like, fits, ordinary
from privsql.audit.world import State
from privsql.neighbours import Neighbours
from privsql.noise.again import Outcomes, differing, one_by_one, release_again
from privsql.noise.randomness import SystemRandomness
from privsql.planning.plan import Plan
from privsql.tables import Integers

_AT_ONCE = 2_000_000  # cells of one call
_PILOT = 4_000
_PILOT_SURE = 1.5
# a bound that is exceeded must be exceeded twice more, by new releases: then one audit in 10^9 is wrong
_AGAIN = 2
_MOST_CROWD = 200
_AHEAD = (1, 2, 3, 5, 8)  # by how many people a candidate leads
_RANKS = ((1, 2, 1), (3, 0, 0), (0, 0, 3), (0, 2, 2), (2, 2, 0), (0, 0, 0))


class Words:
    """The system's random words, fetched many at a time, which makes thousands of small draws faster."""

    def __init__(self) -> None:
        self._words = SystemRandomness().integers(0)

    def integers(self, count: int) -> Any:
        if count > self._words.size:
            self._words = SystemRandomness().integers(max(count, 1 << 16))
        taken, self._words = self._words[:count], self._words[count:]
        return taken


@dataclass(frozen=True)
class MeasuredEpsilon:
    """A lower bound on epsilon, the pair it was measured on, and histograms of the statistic."""

    bound: EpsilonBound
    pair: Pair
    picture: tuple[tuple[str, int, int], ...]


class Releases:
    """Draws releases of one pair of tables."""

    def __init__(self, plan: Plan, scratch: Scratch, pair: Pair) -> None:
        self.plan, self.scratch, self.pair = plan, scratch, pair
        self._exact = [self._run_all(state) for state in (pair.one, pair.other)]
        self._cells = differing(plan, *self._exact)

    def _run_all(self, state: State) -> Any:
        self.scratch.show(self.pair.crowd, state)
        return [self._run(sql) for sql in self.plan.runs]

    def _run(self, sql: str) -> Any:
        return self.scratch.engine.run(sql, self.plan.keys)

    def draw(self, times: int) -> tuple[tuple[str, ...], Integers, Integers]:
        sides = []
        for state, exact in zip((self.pair.one, self.pair.other), self._exact, strict=True):
            self.scratch.show(self.pair.crowd, state)
            parts = [
                release_again(self.plan, exact, some, Words(), self._run, self._cells)
                for some in self._batches(times)
            ]
            sides.append(_joined(parts))
        return shared(*sides)

    def _batches(self, times: int) -> list[int]:
        cells = len(self._cells) if self._cells is not None else max(1, len(self.plan.space))
        most = max(1, _AT_ONCE // cells)
        return [most] * (times // most) + ([times % most] if times % most else [])


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Join batches. Where keys are undeclared, each batch may have shown different ones."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    laid = [shared(part, Outcomes(names, np.zeros((0, len(names)), dtype=np.int64))) for part in parts]
    orders = [[own.index(name) for name in names] for own, _, _ in laid]
    return Outcomes(
        names, np.concatenate([seen[:, order] for (_, seen, _), order in zip(laid, orders, strict=True)])
    )


def usual_releases(plan: Plan) -> int:
    """As many releases as a few seconds allow."""
    if one_by_one(plan):
        return 12_000
    if plan.of_values:
        searches = [plan.measured_by(each).search for each in plan.of_values]
        leaning = any(step.lean for search in searches for step in search.steps)
        return 30_000 if leaning else 100_000
    return max(20_000, min(200_000, 1_500_000 // max(1, len(plan.space))))


def measure(
    plan: Plan,
    scratch: Scratch,
    pairs: Sequence[Pair],
    releases: int | None,
    confidence: float,
    charged: tuple[float, float],
    progress: Callable[[str], None],
) -> MeasuredEpsilon | None:
    """The worst pair and its bound on epsilon; None if one person moves nothing."""
    releases = usual_releases(plan) if releases is None else releases
    tried = list(dict.fromkeys(_candidates(plan, scratch, pairs)))
    if not tried:
        return None
    epsilon, delta = charged
    pilot = _PILOT
    if one_by_one(plan) and len(tried) > 2:
        foreseen = sorted(tried[1:], key=lambda pair: -_foreseen(plan, scratch, pair, releases // 2))
        tried, pilot = [tried[0], *foreseen[:2]], _PILOT // 4
    best: tuple[float, Pair] = (-1e300, tried[0])
    for number, pair in enumerate(tried if len(tried) > 1 else ()):
        progress(f"choosing a pair for releases, {number + 1} of {len(tried)}")
        loudness, _ = choose(*Releases(plan, scratch, pair).draw(min(pilot, releases)), delta, _PILOT_SURE)
        best = max(best, (loudness, pair), key=lambda each: each[0])
    drawn = Releases(plan, scratch, best[1])
    progress(f"{releases:,} releases of each table")
    names, one, other = drawn.draw(releases)
    first = min(releases // 3, MOST_TRAINING)
    _, event = choose(names, one[:first], other[:first], delta)
    if event is None:
        return None
    bound = judge(event, one[first:], other[first:], epsilon, delta, confidence)
    for _ in range(_AGAIN):
        if not bound.passed:
            break
        progress("confirming with new releases")
        again = judge(event, *_columns(names, drawn.draw(releases - first)), epsilon, delta, confidence)
        bound = min(bound, again, key=lambda each: each.lower)
    return MeasuredEpsilon(bound, best[1], _picture(event, one[first:], other[first:]))


def _foreseen(plan: Plan, scratch: Scratch, pair: Pair, releases: int) -> float:
    """Roughly the bound that the most telling event of a choice will give: candidates win with probability
    ~ exp(rate score).
    """
    measurement, release = plan.selected_by, plan.release
    assert isinstance(release, Choose)
    assert measurement is not None
    column, rate = measurement.columns[0], float(measurement.rate) * (1 if release.largest else -1)
    sides = [scratch.cells(plan, pair.crowd, state)[1] for state in (pair.one, pair.other)]
    keys = list(dict.fromkeys(key for cells in sides for key in cells))
    chances = []
    for cells in sides:
        absent = [0] if len(keys) < len(plan.space) else []
        scores = rate * np.array([*(cells.get(key, {}).get(column, 0) for key in keys), *absent])
        weights = np.exp(scores - scores.max(initial=0))
        chances.append(weights / weights.sum())
    loud = [loudness_of(a, b, releases, releases, 0.0) for a, b in (chances, chances[::-1])]
    return float(max(each.max() for each in loud))


def _columns(
    names: tuple[str, ...], drawn: tuple[tuple[str, ...], Integers, Integers]
) -> tuple[Integers, Integers]:
    """New releases in the columns of the first: keys not shown before are left out."""
    own, one, other = drawn
    empty = Outcomes(names, np.zeros((0, len(names)), dtype=np.int64))
    sides = [_joined([empty, Outcomes(own, each)]) for each in (one, other)]
    first, second = (each.seen[:, : len(names)] for each in sides)
    return first, second


def _picture(
    event: TellingEvent, one: Integers, other: Integers, bars: int = 12
) -> tuple[tuple[str, int, int], ...]:
    """Values of the statistic in a few intervals of about as many releases, and how many of each table are in
    each.
    """
    values, others = event.statistic.of(one), event.statistic.of(other)
    pooled = np.concatenate([values, others])
    different = np.unique(pooled)
    edges = (
        different
        if len(different) <= bars
        else np.unique(np.quantile(pooled, np.linspace(0, 1, bars + 1))[:-1])
    )
    places = [
        np.bincount(np.searchsorted(edges, each, side="right") - 1, minlength=len(edges))
        for each in (values, others)
    ]
    exact = len(edges) == len(different)
    labels = [
        ("not shown" if edge < -1e299 else f"{edge:.6g}") if exact else f"from {edge:.6g}" for edge in edges
    ]
    return tuple((label, int(a), int(b)) for label, a, b in zip(labels, *places, strict=True))


# -- pairs with other crowds ---------------------------------------------------------------------------------
def _candidates(plan: Plan, scratch: Scratch, pairs: Sequence[Pair]) -> Iterator[Pair]:
    world = scratch.world
    pairs = list(pairs[:4])
    states = dict.fromkeys(state for pair in pairs for state in (pair.one, pair.other))
    people = [each for each in states if each != world.absent][:4]
    yield from pairs[:1]
    crowds: list[Crowd] = []
    if plan.chooses:
        crowds = [crowd_like(world, [each] * many) for each in people for many in _AHEAD]
    elif plan.space.open:
        counts = dict.fromkeys(
            number for near in _near(plan) for number in (near, near - 1) if 0 < number <= _MOST_CROWD
        )
        crowds = [
            crowd_like(world, [a] * n + [b] * n) for n in counts for a, b in itertools.combinations(people, 2)
        ]
        crowds += [crowd_like(world, [a] * n) for n in counts for a in people]
    if plan.of_values:
        high, low, near = ordinary(world)
        people = [high, low, near]
        crowds += [crowd_like(world, [low] * i + [near] * j + [high] * k) for i, j, k in _RANKS]
        if world.neighbours is Neighbours.ADD_REMOVE:
            pairs = [Pair((), world.absent, each) for each in people]
        else:
            pairs = [Pair((), a, b) for a, b in ((high, low), (low, near), (near, high))]
    for crowd in dict.fromkeys(crowds):
        for pair in pairs if plan.of_values else pairs[:2]:
            if all(fits(world, crowd, state) for state in (pair.one, pair.other)):
                yield Pair(crowd, pair.one, pair.other)


def _near(plan: Plan) -> Iterator[int]:
    """How many people have a key that is shown or not by chance."""
    if plan.keys_shown_by is None:
        return
    release = plan.keys_shown_by.release
    for chance in (0.5, 0.1, 0.9):
        counts = range(1, _MOST_CROWD * release.contribution.rows)
        found = next((count for count in counts if release.chance(count) >= chance), 0)
        yield -(-found // release.contribution.rows)
