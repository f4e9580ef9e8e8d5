"""Quantiles and an epsilon go in; a `Search` comes out: the steps of the exponential mechanism that find
them, level by level, and their rate.

quantile_steps.py has the proofs of what each step costs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.privacy.quantile_steps import Change, Step, log_weight, weights

SHIFT = 26  # the finer grid has 2^26 points to a value
# so that distances times the rate are exact enough in floats; a larger rate improves nothing
LARGEST_RATE = Fraction(2**10)
LARGEST_START = 2**20  # of margin times rate, for the same reason
NEAR = Fraction(1, 10)  # quantiles nearer to an end than this lean away from it
_SURENESS = 5.0
_FEW = 8  # a margin of so few rows is better than leaning
# the weight of "undetermined", in units of the weight of all points: 95% of the cells without rows are
# undetermined
_EMPTY = 19
_MOST_ROWS = 10**9  # of one cell, when the accuracy of a quantile between two others is predicted


Levels = tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Search:
    """Steps, level by level; those of one level are over disjoint rows. Together they cost `loss`."""

    levels: Levels
    change: Change
    rate: Fraction
    points: int  # of the grid
    shift: int = SHIFT

    def __post_init__(self) -> None:
        if not 0 < self.rate <= LARGEST_RATE or self.points < 1 or not 1 <= self.shift <= SHIFT:
            raise ValueError("a search needs a rate and a grid")
        if any(step.margin * self.rate > LARGEST_START for level in self.levels for step in level):
            raise ValueError("too wide a margin")
        known: dict[int, Step] = {}
        for level in self.levels:
            if not level or (len(level) > 1 and not _disjoint(level, known)):
                raise ValueError("the steps of one level must be over disjoint rows")
            if any(
                side is not None and not known[side].parts
                for step in level
                for side in (step.below, step.above)
            ):
                raise ValueError("only a quantile of the finer grid parts the rows")
            known |= {step.place: step for step in level}
        if sorted(known) != list(range(sum(map(len, self.levels)))):
            raise ValueError("every quantile is sought once")

    @property
    def span(self) -> Fraction:
        """The total span over all levels and cells."""
        return _span(self.levels, self.change)

    @property
    def losses(self) -> list[Fraction]:
        """What each level costs. Given the levels before it, all its points are drawn independently, and for
        two neighbours the logarithms of their probability ratios lie in intervals whose lengths sum to this:
        each level is one more release by the exponential mechanism.
        """
        return [self.rate * self.change.span(level) for level in self.levels]

    @property
    def loss(self) -> Fraction:
        return sum(self.losses, Fraction(0))

    @property
    def steps(self) -> list[Step]:
        """All steps, in the order of their quantiles."""
        return sorted((step for level in self.levels for step in level), key=lambda step: step.place)

    def doublings(self, step: Step) -> int:
        """The weight of "undetermined" is 2 to this power, in units of the greatest weight of a point."""
        total, halvings = weights(self.points, step)
        return (_EMPTY * total - 1).bit_length() - halvings + (self.shift if step.parts else 0)

    def rows_needed(self, place: int, level: float) -> int:
        """With this many rows or more, a cell is determined with probability `level`, whatever its values.

        The odds against it are at most C / W exp(-rate (g n - d)), where d = 0 or, with fewer rows than the
        margin, the number that is missing; W is the least weight of a point or, on the finer grid, what it
        is in rank_error.
        """
        step = self._root(place)
        rate, recoil = float(self.rate), float(step.recoil)
        total, _ = weights(self.points, step)
        certain = (_EMPTY * total - 1).bit_length() * math.log(2.0) + math.log(level / (1.0 - level))

        def wanted(rows: int) -> float:
            fine = math.log(2.0 + rate * rows) + rate * rows / 2**self.shift if step.parts else 0.0
            return max(0.0, certain + fine) / rate / recoil

        rows = 0
        while rows < wanted(rows):
            rows = math.ceil(wanted(rows))
        return rows if rows >= step.margin else math.ceil((wanted(rows) + step.margin) / 2)

    def _root(self, place: int) -> Step:
        """The step over all rows on which this one rests: if the root is undetermined, so is the step."""
        step = self.steps[place]
        side = step.above if step.below is None else step.below
        return step if side is None else self._root(side)

    def rank_error(self, place: int, level: float, rows: int = _MOST_ROWS) -> float:
        """How many rows a determined quantile is away from its rank at most, ties aside, at this confidence.

        P(d > least + x) <= points exp(-rate x) / W, with W = 1 on the grid, where some point has d = 0 (or
        the least); where the step leans, "points" is the sum of all weights over the least of them. On the
        finer grid the nearest points are c/S rows apart where c rows are tied, and at least half of them are
        on one side of the target: W >= exp(-rate c / S) / (2 + rate c).
        """
        above = self._above(place)
        share, rate = (1.0 - level) / len(above), float(self.rate)

        def error(one: int | None) -> float:
            if one is None:
                return 0.0
            step = self.steps[one]
            fine = math.log(2.0 + rate * rows) + rate * rows / 2**self.shift if step.parts else 0.0
            own = (log_weight(self.points, step) + fine + math.log(1.0 / share)) / rate
            fraction = float(step.fraction)
            return own + (1.0 - fraction) * error(step.below) + fraction * error(step.above)

        return error(place)

    def rank_text(self, place: int) -> str:
        """What is searched for, in words."""
        step = self.steps[place]
        if step.margin:
            return f"the value that about {step.margin:,} rows {'exceed' if step.fraction else 'stay below'}"
        if step.extreme:
            return "the largest value" if step.fraction else "the smallest value"
        return f"the {float(self.whole(place)):.6g} quantile"

    def whole(self, place: int | None, end: int = 0) -> Fraction:
        """The fraction of all rows that lie below the quantile."""
        if place is None:
            return Fraction(end)
        step = self.steps[place]
        low, high = self.whole(step.below, 0), self.whole(step.above, 1)
        return low + step.fraction * (high - low)

    def _above(self, place: int) -> set[int]:
        """A step and those it depends on."""
        step = self.steps[place]
        return {place}.union(*(self._above(side) for side in (step.below, step.above) if side is not None))


def _span(levels: Levels, change: Change) -> Fraction:
    return sum((change.span(level) for level in levels), Fraction(0))


def _disjoint(level: Sequence[Step], known: Mapping[int, Step]) -> bool:
    """Whether each step is between two adjacent known ones, and no two steps between the same."""
    cuts = [None, *sorted(place for place, step in known.items() if step.parts), None]
    pairs = [(step.below, step.above) for step in level]
    return len(set(pairs)) == len(pairs) and set(pairs) <= set(itertools.pairwise(cuts))


def search(
    fractions: Sequence[Fraction], change: Change, loss: Fraction, points: int, leans: bool = True
) -> Search:
    """Plan the steps that find these quantiles, given in ascending order: each by itself or, where that gives
    a clearly greater rate, by dividing the rows.

    Those near the ends lean away from them, unless not leaning more than doubles the rate.
    """
    kept = _search(fractions, change, loss, points, leans, margins=True)
    if not leans or all(step.margin <= _FEW for step in kept.steps):
        return kept
    return _search(fractions, change, loss, points, leans, margins=False)


def _search(
    fractions: Sequence[Fraction], change: Change, loss: Fraction, points: int, leans: bool, margins: bool
) -> Search:
    """`margins`: give MIN and MAX a margin instead of a lean."""

    def rate(levels: Levels) -> Fraction:
        return min(LARGEST_RATE, loss / _span(levels, change))

    kept_away = [margins and q in (0, 1) for q in fractions]
    steps = [
        Step(place, q, margin=int(away), lean=_lean(q, leans and not away))
        for place, (q, away) in enumerate(zip(fractions, kept_away, strict=True))
    ]
    ends = [each for each in steps if each.fraction in (0, 1)]
    outer = [each for each in steps if each.lean or each in ends]
    inner, between = (
        [each for each in steps if each not in outer],
        [each for each in steps if each not in ends],
    )
    best = _alone(steps)
    for some, apart, times in ((inner, outer, Fraction(5, 4)), (between, ends, Fraction(2))):
        other = (*_parted([replace(each, lean=0) for each in some]), *_alone(apart))
        best = other if rate(other) > times * rate(best) else best
    margin = math.ceil((math.log(points) + _SURENESS) / rate(best))
    kept = tuple(
        tuple(replace(each, margin=margin) if each.margin else each for each in level) for level in best
    )
    return Search(kept, change, rate(best), points)


def _lean(fraction: Fraction, leans: bool) -> int:
    if not leans or NEAR <= fraction <= 1 - NEAR:
        return 0
    return 1 if fraction > NEAR else -1


def _alone(steps: Sequence[Step]) -> Levels:
    return tuple((step,) for step in steps)


def _parted(steps: Sequence[Step]) -> Levels:
    """Levels: the middle step first, then the middle ones on either side of it, and so on."""
    levels: list[list[Step]] = []

    def add(first: int, last: int, depth: int) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        below = steps[first - 1] if first else None
        above = steps[last + 1] if last + 1 < len(steps) else None
        low, high = (below.fraction if below else Fraction(0)), (above.fraction if above else Fraction(1))
        levels.extend([[]] if depth == len(levels) else [])
        levels[depth].append(
            Step(
                steps[middle].place,
                (steps[middle].fraction - low) / (high - low),
                0,
                below.place if below else None,
                above.place if above else None,
                first < last,
            )
        )
        add(first, middle - 1, depth + 1)
        add(middle + 1, last, depth + 1)

    add(0, len(steps) - 1, 0)
    return tuple(map(tuple, levels))


@dataclass(frozen=True)
class Sought:
    """Quantiles of one argument's values, in ascending order, before epsilon is allotted to them."""

    fractions: tuple[Fraction, ...]
    change: Change
    points: int
    leans: bool = True  # numbers, counted from an end of their range; not dates

    def at(self, loss: Fraction) -> Search:
        return search(self.fractions, self.change, loss, self.points, self.leans)
