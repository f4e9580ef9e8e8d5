"""Quantiles go in as steps; out comes how far one person moves each step's scores, which is what it costs.

A step. Of n values on a grid 0 ... G one point v is drawn with probability ~ exp(-rate d(v)), where d is how
many rows v is away from a target rank T: d(v) = max(0, #{x < v} - T, T - #{x <= v}), so that it is 0 where
values are tied around T. Suppose that between neighbours d(v) changes by a number that lies in an interval of
length w, the span, whatever v is. Then P(v) changes by a factor within exp(rate w): the change of
exp(-rate d(v)), divided by the change of the sum over all points, which is an average of such changes.
- T = q n. Adding a row moves #{x < v} - q n and q n - #{x <= v} by 1 - q or -q, so w is 2 max(q, 1 - q).
  Replacing a row keeps n and moves a count by at most 1, so w is 2. d is a maximum of such terms, and moves
  no further.
- MIN and MAX: q is 0 or 1, and d(v) is #{x < v} or #{x > v}. Adding or replacing a row moves it by 1 for some
  v and not at all for the others, always the same way: w is 1.
- With a margin: T = max(q n, k) for q < 1/2, min(q n, n - k) for q > 1/2. #{x < v} - k and #{x < v} - n + k
  move by at most 1, either way, so w is 2.

Leaning. Points may have constant weights c(v): P(v) ~ c(v) exp(-rate d(v)) is just as private. Near the ends
there are few rows to tell a good point from the empty part of a range that was declared too wide, so there
weights halve from zone to zone towards that end. Zones are counted from the low end, which is 0 as often as
not: the first is a 128th of the range, each later one an eighth of all before it. What lies above all rows
then weighs no more than a fraction of what they span, and what lies below them no more than a fraction of
what is next to them. Dates and timestamps have no natural origin; they do not lean, and their MIN and MAX
have a margin, so wide that the empty part is chosen with probability exp(-5) at most. So do those of numbers
where a margin of a few rows is enough: a step that leans stays unsure of the empty part, however large
epsilon is.

Too few rows. A step over all rows of a cell, a root, has one more candidate, "undetermined", of constant
weight C at a distance of g n, where n is the number of rows. Adding a row moves that distance by g; replacing
one does not move it. It is no worse than a point whose distance changes within the same interval:
- T = q n: g = max(q, 1 - q). Adding a row changes distances within [-g, g], and so does removing one;
  replacing a row changes them within [-1, 1].
- MIN and MAX: g = 1. Adding a row changes distances within [0, 1], removing one within [-1, 0], replacing one
  within one of these two.
- With a margin: g = 1. Distances change within [-1, 1]. So the span w, and with it the epsilon, is what it
  would be without this candidate. With several rows both changes and intervals add up, and likewise over
  cells and levels. C is at least 19 times the weight of all points together, so a cell without rows, in which
  no point is nearer than "undetermined", is undetermined with probability at least 95%; a cell of n rows,
  with probability at most C / W exp(-rate g n), where the points nearest to the target weigh W and are at
  distance 0. Given that a point is chosen, its law is the one without this candidate, so what is said of
  errors holds for determined cells. A step below an undetermined root is undetermined whatever it draws, and
  has no such candidate of its own.

Several quantiles. After q at a point v, the quantiles below q are searched among the rows below v, those
above among the rows above, each at its fraction between its two neighbours. Rows tied at v would all fall on
one side, so v is a point of a finer grid, S = 2^shift points to a value, on which a row at x has 1/S of its
mass at each of the points of x. Given v, a row is divided: a share m of it goes to one problem, 1 - m to the
other, and its shares over all problems of one level sum to 1. A problem at fraction f then has a span of at
most 2 m max(f, 1 - f) when a row is added. Hence a level costs the rate times the greatest 2 max(f, 1 - f)
for an added row. For a replaced row, with shares m and m', a problem moves by at most the greater of (1 - f)
m' + f m and f m' + (1 - f) m either way; the sum over problems is greatest where both rows are whole in one
problem, a span of 2, or each is whole in one of its own, the sum of two 2 max(f, 1 - f). Levels add up: each
is a release that may depend on those before it. On the last level v need not divide any rows, and d is that
of a single step, which is 0 around the target.

Many cells, many rows. A row is in one cell, and cells are drawn independently: their spans add up. A person
with R rows has R times the span: for rows replaced one for one within one cell as above, for rows that leave
a cell and enter another twice that of an added row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

DIGITS = 6  # decimal digits of a fraction
_FIRST, _GROWTH = 128, 8
"""The first zone is a 128th of the range, each later one an eighth of all before it. Of the numbers tried
these gave the least error of maxima, over 30 to 10,000 uniform, normal, lognormal and Pareto values in ranges
up to a hundred times too wide. With more zones, a few rows do not outweigh what is far from them.
"""


@dataclass(frozen=True)
class Change:
    """How neighbours differ: by `rows` added rows, or (`replaced`) by as many replaced ones, which (`keyed`)
    may be in different cells.
    """

    rows: int
    replaced: bool
    keyed: bool

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError("a person has at least one row")

    def span(self, level: Sequence[Step]) -> Fraction:
        """The total span of the steps of one level, which are over disjoint rows."""
        spans = sorted(step.span for step in level)
        if not self.replaced:
            return self.rows * spans[-1]
        if self.keyed:
            return 2 * self.rows * spans[-1]
        exchanged = max(step.exchanged for step in level)
        return self.rows * max(exchanged, sum(spans[-2:], Fraction(0)))


@dataclass(frozen=True)
class Step:
    """One quantile, numbered by its place among all: at `fraction` between two that are known (None: the end
    of the grid).

    `parts`: others will be searched on either side of it, so it is a point of the finer grid. `lean`: 1 if
    weights fall upwards, -1 if they fall downwards.
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
        """How far apart the changes of two points' distances are when a row is added."""
        if self.extreme:
            return Fraction(1)
        return Fraction(2) if self.margin else 2 * max(self.fraction, 1 - self.fraction)

    @property
    def root(self) -> bool:
        """Whether it is over all rows of a cell, and so can also find that these are too few."""
        return self.below is None and self.above is None

    @property
    def recoil(self) -> Fraction:
        """How far each row of the cell moves "undetermined" away."""
        return Fraction(1) if self.margin else max(self.fraction, 1 - self.fraction)

    @property
    def exchanged(self) -> Fraction:
        """The span when a row is replaced by another."""
        return Fraction(1 if self.extreme else 2)

    def zones(self, points: int) -> tuple[int, ...]:
        """The first point of each zone."""
        return _zones(points) if self.lean else (0,)

    def halvings(self, zone: int, zones: int) -> int:
        """How often the weight of this zone is halved."""
        return zone if self.lean >= 0 else zones - 1 - zone


@lru_cache(maxsize=256)
def _zones(points: int) -> tuple[int, ...]:
    starts, start = [0], max(1, points // _FIRST)
    while start < points:
        starts.append(start)
        start += max(1, start // _GROWTH)
    return tuple(starts)


def log_weight(points: int, step: Step) -> float:
    """The logarithm of the sum of all weights, in units of the least."""
    return math.log(weights(points, step)[0])


def weights(points: int, step: Step) -> tuple[int, int]:
    """The sum of all weights, in units of the least, and how many halvings the greatest is above it."""
    starts = step.zones(points)
    most, sizes = len(starts) - 1, (stop - start for start, stop in itertools.pairwise((*starts, points)))
    return sum(size << most - step.halvings(zone, most + 1) for zone, size in enumerate(sizes)), most


def fraction_of(value: Fraction) -> Fraction:
    """A fraction rounded to the digits that steps keep."""
    return Fraction(round(value * 10**DIGITS), 10**DIGITS)
