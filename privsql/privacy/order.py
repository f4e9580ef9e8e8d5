"""Quantiles to be found go in; in which steps the exponential mechanism finds them, and at what rate, comes
out.

A step. Of n values on a grid 0 ... G one point v is drawn with probability ~ exp(-rate d(v)), where d is how
many rows v is away from a target rank T: d(v) = max(0, #{x < v} - T, T - #{x <= v}), so that it is 0 where
values are tied around T. Let neighbours change d(v) by a number that lies in an interval of length w, the
span, whatever v is. Then P(v) changes by a factor within exp(rate w): the change of exp(-rate d(v)) over that
of the sum over all points, which is an average of such.
- T = q n. A row that comes moves #{x < v} - q n and q n - #{x <= v} by 1 - q or -q, so w is 2 max(q, 1 - q).
  One that is replaced by another leaves n, and moves a count by at most 1, so w is 2. d is a maximum of such
  terms, and moves no further.
- MIN and MAX: q is 0 or 1, and d(v) is #{x < v} or #{x > v}. A row that comes, or is replaced, moves it by 1
  for some v and not at all for the others, all the same way: w is 1.
- With a margin: T = max(q n, k) for q < 1/2, min(q n, n - k) for q > 1/2. #{x < v} - k and #{x < v} - n + k
  move by at most 1, either way, so w is 2.

Leaning. Points may have constant weights c(v): P(v) ~ c(v) exp(-rate d(v)) is as private. Near the ends there
are few rows to tell a good point from the empty part of a range that was declared too wide. So there weights
halve from zone to zone towards that end. Zones are counted from the low end, which is 0 as often as not: the
first is a 128th of the range, each other one an eighth of all before it. What is above all rows then weighs
no more than a fraction of what they span, and what is below them no more than a fraction of what lies next to
them. Dates and timestamps are counted from nowhere in particular; they do not lean, and their MIN and MAX
have a margin, so wide that the empty part is chosen with probability exp(-5) at most. So have those of
numbers where that takes a few rows only: what leans stays unsure of the empty part, however large epsilon is.

Too few rows. A step that looks at all rows of a cell, a root, has one candidate more, "undetermined", of
constant weight C at a distance of g n, n the number of the rows. A row that comes moves that by g, and a row
replaced by another by 0. It is no worse than a point whose distance the change of the rows moves within the
same interval:
- T = q n: g = max(q, 1 - q). As a row comes, distances move within [-g, g]; as one goes, too; as one is
  replaced, within [-1, 1].
- MIN and MAX: g = 1. As a row comes, distances move within [0, 1], as one goes within [-1, 0], as one is
  replaced within one of these two.
- With a margin: g = 1. Distances move within [-1, 1]. So the span w, and with it the price, is what it would
  be without. Of several rows both changes and intervals add up, and so they do over cells and levels. C is at
  least 19 times the weight of all points together, so a cell without rows, in which no point is nearer than
  "undetermined", is undetermined with a chance of 95% or more; one of n rows with a chance of at most C / W
  exp(-rate g n), where the points nearest to the target weigh W and are at a distance of 0. Given that a
  point is chosen, it has the law that it has without this candidate: what is said of errors holds for what is
  determined. A step below an undetermined root is undetermined, whatever it gives, and has no such candidate.

Several quantiles. After q at a point v, those below q are sought among the rows below v, and those above
among the rows above, each at the fraction that it has between its neighbours. Rows tied at v would all fall
on one side; so v is a point of a finer grid, S = 2^shift points to a value, on which a row at x has 1/S of
its mass at each of the points of x. Given v, a row is parted: a share m of it is in the one problem, 1 - m in
the other, and the shares over all problems of one level sum to 1. A problem at fraction f then has a span of
at most 2 m max(f, 1 - f) as a row comes. Hence a level costs rate times the greatest 2 max(f, 1 - f) for a
row that comes. For a row replaced by another, with shares m and m', a problem moves by at most the greater of
(1 - f) m' + f m and f m' + (1 - f) m either way; the sum over problems is greatest where both rows are whole
in one problem, a span of 2, or each is whole in one of its own, the sum of two 2 max(f, 1 - f). Levels add
up: each is a release that may depend on those before it. On the last level v need not part any rows, and d is
that of a step, which is 0 around the target.

Many cells, many rows. A row is in one cell, and cells are drawn independently: their spans add up. A person
of R rows has R times the span: rows that are replaced one for one within one cell as above, rows that leave a
cell and enter another twice that of a row that comes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

SHIFT = 26  # the finer grid has 2^26 points to a value
DIGITS = 6  # of a fraction
# so that distances times the rate are exact enough in floats; past it nothing improves
LARGEST_RATE = Fraction(2**10)
LARGEST_START = 2**20  # of margin times rate, for the same reason
NEAR = Fraction(1, 10)  # quantiles nearer to an end than this lean away from it
_FIRST, _GROWTH = 128, 8
"""The first zone is a 128th of the range, the others an eighth of all before them. Of the numbers tried these had the least error
of maxima, over 30 to 10,000 uniform, normal, lognormal and Pareto values in ranges up to a hundred times too wide. With
more zones, a few rows do not outweigh what is far from them."""
_SURENESS = 5.0
_FEW = 8  # rows of a margin that are better than to lean
# times the weight of all points: that of "undetermined", so that 95% of the cells without rows are
_EMPTY = 19
_MOST_ROWS = 10**9  # in one cell, where the accuracy of a quantile between two others is told beforehand


@dataclass(frozen=True)
class Change:
    """What neighbours differ in: `rows` rows that come, or (`replaced`) have others in their place; `keyed`:
    in any cells.
    """

    rows: int
    replaced: bool
    keyed: bool

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError("a person has at least one row")

    def span(self, level: Sequence[Step]) -> Fraction:
        """Of some problems over disjoint rows, all together."""
        spans = sorted(step.span for step in level)
        if not self.replaced:
            return self.rows * spans[-1]
        if self.keyed:
            return 2 * self.rows * spans[-1]
        exchanged = max(step.exchanged for step in level)
        return self.rows * max(exchanged, sum(spans[-2:], Fraction(0)))


@dataclass(frozen=True)
class Step:
    """One quantile, by its place among all; sought between two that are known (None: the end of the grid) at
    a fraction.

    `parts`: others will be sought on either side of it, so it is a point of the finer grid. `lean`: 1 where
    weights fall upwards, -1 where they fall downwards.
    """

    place: int
    fraction: Fraction
    margin: int = 0
    below: int | None = None
    above: int | None = None
    parts: bool = False
    lean: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError("a fraction is between 0 and 1")
        if self.fraction.denominator > 10**DIGITS or self.margin < 0:
            raise ValueError("too fine a fraction, or a negative margin")
        if (self.margin or self.lean) and (self.parts or (self.below, self.above) != (None, None)):
            raise ValueError("only a quantile by itself has a margin, or leans")
        if self.margin and self.fraction not in (0, 1):
            raise ValueError("only MIN and MAX have a margin")

    @property
    def extreme(self) -> bool:
        """MIN or MAX, counted from the very end."""
        return self.fraction in (0, 1) and not self.margin

    @property
    def span(self) -> Fraction:
        """How far the changes of two points' distances differ when a row comes."""
        if self.extreme:
            return Fraction(1)
        return Fraction(2) if self.margin else 2 * max(self.fraction, 1 - self.fraction)

    @property
    def root(self) -> bool:
        """Whether it looks at all rows of a cell: then it can also say that these are too few."""
        return self.below is None and self.above is None

    @property
    def recoil(self) -> Fraction:
        """How much further away "undetermined" is for every row of the cell."""
        return Fraction(1) if self.margin else max(self.fraction, 1 - self.fraction)

    @property
    def exchanged(self) -> Fraction:
        """The same when a row is replaced by another."""
        return Fraction(1 if self.extreme else 2)

    def zones(self, points: int) -> tuple[int, ...]:
        """Where zones begin."""
        return _zones(points) if self.lean else (0,)

    def halvings(self, zone: int, zones: int) -> int:
        """How often the weight of a zone is halved, of so many."""
        return zone if self.lean >= 0 else zones - 1 - zone


@lru_cache(maxsize=256)
def _zones(points: int) -> tuple[int, ...]:
    starts, start = [0], max(1, points // _FIRST)
    while start < points:
        starts.append(start)
        start += max(1, start // _GROWTH)
    return tuple(starts)


Levels = tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Search:
    """Steps, level by level: those of one level are over disjoint rows. The whole costs `loss`."""

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
        """Of all levels and cells together."""
        return _span(self.levels, self.change)

    @property
    def losses(self) -> list[Fraction]:
        """What each level costs. Given those before it, all its points are drawn independently, and for two
        neighbours the logarithms of the ratios of their chances lie in intervals whose lengths sum to this:
        each is one choice more.
        """
        return [self.rate * self.change.span(level) for level in self.levels]

    @property
    def loss(self) -> Fraction:
        return sum(self.losses, Fraction(0))

    @property
    def steps(self) -> list[Step]:
        """All steps, by place."""
        return sorted((step for level in self.levels for step in level), key=lambda step: step.place)

    def doublings(self, step: Step) -> int:
        """The weight of "undetermined" is 2 to this power, the greatest of a point being 1."""
        total, halvings = _weights(self.points, step)
        return (_EMPTY * total - 1).bit_length() - halvings + (self.shift if step.parts else 0)

    def rows_needed(self, place: int, level: float) -> int:
        """A cell of so many rows or more is not undetermined, so surely, whatever its values.

        The odds of it are at most C / W exp(-rate (g n - d)): d = 0 or, of fewer rows than a margin, as many
        as are missing; W is the least weight of a point or, on the finer grid, what it is in rank_error.
        """
        step = self._root(place)
        rate, recoil = float(self.rate), float(step.recoil)
        total, _ = _weights(self.points, step)
        certain = (_EMPTY * total - 1).bit_length() * math.log(2.0) + math.log(level / (1.0 - level))

        def wanted(rows: int) -> float:
            fine = math.log(2.0 + rate * rows) + rate * rows / 2**self.shift if step.parts else 0.0
            return max(0.0, certain + fine) / rate / recoil

        rows = 0
        while rows < wanted(rows):
            rows = math.ceil(wanted(rows))
        return rows if rows >= step.margin else math.ceil((wanted(rows) + step.margin) / 2)

    def _root(self, place: int) -> Step:
        """The step over all rows by which another one is undetermined: itself, or where its part of the rows
        is from.
        """
        step = self.steps[place]
        side = step.above if step.below is None else step.below
        return step if side is None else self._root(side)

    def rank_error(self, place: int, level: float, rows: int = _MOST_ROWS) -> float:
        """Where it is determined, the quantile is within so many rows of its rank, ties aside, so surely.

        P(d > least + x) <= points exp(-rate x) / W, W = 1 on the grid: some point has d = 0 (or the least);
        where it leans, points stands for the sum of all weights over the least of them. On the finer grid the
        least are c/S rows apart where c rows are tied, and at least half of their points are on one side of
        the target: W >= exp(-rate c / S) / (2 + rate c).
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
        """In words what is sought."""
        step = self.steps[place]
        if step.margin:
            return f"the value that about {step.margin:,} rows {'exceed' if step.fraction else 'stay below'}"
        if step.extreme:
            return "the largest value" if step.fraction else "the smallest value"
        return f"the {float(self.whole(place)):.6g} quantile"

    def whole(self, place: int | None, end: int = 0) -> Fraction:
        """The fraction of a quantile among all rows."""
        if place is None:
            return Fraction(end)
        step = self.steps[place]
        low, high = self.whole(step.below, 0), self.whole(step.above, 1)
        return low + step.fraction * (high - low)

    def _above(self, place: int) -> set[int]:
        """A step and those that it rests on."""
        step = self.steps[place]
        return {place}.union(*(self._above(side) for side in (step.below, step.above) if side is not None))


def _span(levels: Levels, change: Change) -> Fraction:
    return sum((change.span(level) for level in levels), Fraction(0))


def _disjoint(level: Sequence[Step], known: Mapping[int, Step]) -> bool:
    """Whether each step is between two neighbours among the known ones, no two steps between the same."""
    cuts = [None, *sorted(place for place, step in known.items() if step.parts), None]
    pairs = [(step.below, step.above) for step in level]
    return len(set(pairs)) == len(pairs) and set(pairs) <= set(itertools.pairwise(cuts))


def search(
    fractions: Sequence[Fraction], change: Change, loss: Fraction, points: int, leans: bool = True
) -> Search:
    """The steps that find these quantiles, which rise: each by itself, or by parting the rows where the rate
    is clearly greater.

    Those near the ends lean away from them, unless without that all could be had at more than twice the rate.
    """
    kept = _search(fractions, change, loss, points, leans, margins=True)
    if not leans or all(step.margin <= _FEW for step in kept.steps):
        return kept
    return _search(fractions, change, loss, points, leans, margins=False)


def _search(
    fractions: Sequence[Fraction], change: Change, loss: Fraction, points: int, leans: bool, margins: bool
) -> Search:
    """`margins`: MIN and MAX have one, and do not lean."""

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


def log_weight(points: int, step: Step) -> float:
    """The logarithm of the sum of all weights, of which the least is 1."""
    return math.log(_weights(points, step)[0])


def _weights(points: int, step: Step) -> tuple[int, int]:
    """The sum of all weights, of which the least is 1, and how often the greatest is halved until it is
    that.
    """
    starts = step.zones(points)
    most, sizes = len(starts) - 1, (stop - start for start, stop in itertools.pairwise((*starts, points)))
    return sum(size << most - step.halvings(zone, most + 1) for zone, size in enumerate(sizes)), most


def _alone(steps: Sequence[Step]) -> Levels:
    return tuple((step,) for step in steps)


def _parted(steps: Sequence[Step]) -> Levels:
    """The middle one first, then the middle ones on either side of it, and so on."""
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


def fraction_of(value: Fraction) -> Fraction:
    """A fraction to as many digits as are used."""
    return Fraction(round(value * 10**DIGITS), 10**DIGITS)


@dataclass(frozen=True)
class Sought:
    """Quantiles of the values of one argument, before they have a price; their fractions rise."""

    fractions: tuple[Fraction, ...]
    change: Change
    points: int
    leans: bool = True  # numbers, counted from an end of their range; not dates

    def at(self, loss: Fraction) -> Search:
        return search(self.fractions, self.change, loss, self.points, self.leans)
