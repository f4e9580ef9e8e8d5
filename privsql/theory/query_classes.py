"""Points go in; which of them a class of queries can cut out of the others comes out, without rounding (note
003).

Three of the classes are closed under intersection: a set of points is cut out if the smallest query that has
all of them has none of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Protocol

from privsql.errors import ArgumentError
from privsql.theory.checked import exact, whole

Point = tuple[Fraction, ...]


class QueryClass(Protocol):
    """A class of counting queries, possibly without end."""

    def points(self, given: Sequence[Any]) -> list[Point]:
        """The points as this class reads them."""

    def cuts_out(self, inside: Sequence[Point], outside: Sequence[Point]) -> bool:
        """Whether some query has exactly the points inside."""

    @property
    def dimension(self) -> int:
        """The VC dimension over all points there are."""


@dataclass(frozen=True)
class Rectangles:
    """All rectangles with sides along the axes, closed, the empty one among them, in so many dimensions.

    Example:
        >>> from privsql import theory
        >>> theory.shatters(theory.Rectangles(2), [(0, 1), (0, -1), (1, 0), (-1, 0)])
        True
    """

    axes: int = 2

    def __post_init__(self) -> None:
        whole(self.axes, "axes", "argument-shape")

    def points(self, given: Sequence[Any]) -> list[Point]:
        return _points(given, self.axes)

    def cuts_out(self, inside: Sequence[Point], outside: Sequence[Point]) -> bool:
        if not inside:
            return True
        low, high = [min(side) for side in zip(*inside)], [max(side) for side in zip(*inside)]
        return not any(all(a <= x <= b for a, x, b in zip(low, point, high)) for point in outside)

    @property
    def dimension(self) -> int:
        return 2 * self.axes


class Intervals(Rectangles):
    """All intervals of the real line, closed, the empty one among them.

    Example:
        >>> from privsql import theory
        >>> theory.shatters(theory.Intervals(), [1, 2]), theory.shatters(theory.Intervals(), [1, 2, 3])
        (True, False)
    """

    def __init__(self) -> None:
        super().__init__(1)


@dataclass(frozen=True)
class Conjunctions:
    """All conjunctions of literals over so many boolean variables, contradictions among them; `monotone`: of
    variables that are not negated.

    Example:
        >>> from privsql import theory
        >>> theory.shatters(theory.Conjunctions(2), [(0, 1), (1, 0)])
        True
    """

    variables: int
    monotone: bool = False

    def __post_init__(self) -> None:
        whole(self.variables, "variables", "argument-shape")

    def points(self, given: Sequence[Any]) -> list[Point]:
        read = _points(given, self.variables)
        if any(value not in (0, 1) for point in read for value in point):
            raise ArgumentError(
                "argument-numbers", "points of conjunctions must be made of 0 and 1", "try [(0, 1), (1, 0)]"
            )
        return read

    def cuts_out(self, inside: Sequence[Point], outside: Sequence[Point]) -> bool:
        if (
            not inside
        ):  # a contradiction has no point; without negations, all variables at once have the fewest
            return not self.monotone or (Fraction(1),) * self.variables not in outside
        fixed = [
            (place, values[0])
            for place, values in enumerate(zip(*inside))
            if len(set(values)) == 1 and (values[0] == 1 or not self.monotone)
        ]
        return not any(all(point[place] == value for place, value in fixed) for point in outside)

    @property
    def dimension(self) -> int:
        """One variable has all four subsets of its two points; of more, no set beyond their number is
        shattered."""
        return 2 if self.variables == 1 and not self.monotone else self.variables


@dataclass(frozen=True)
class HalfPlanes:
    """All half-planes (linear classifiers of points in the plane).

    Some line parts two sets of points if and only if some line parts any four of them (Kirchberger): that is
    what is tried, by the signs of determinants.

    Example:
        >>> from privsql import theory
        >>> theory.shatters(theory.HalfPlanes(), [(0, 0), (1, 0), (0, 1)])
        True
    """

    def points(self, given: Sequence[Any]) -> list[Point]:
        return _points(given, 2)

    def cuts_out(self, inside: Sequence[Point], outside: Sequence[Point]) -> bool:
        few_inside = [some for size in (1, 2, 3) for some in combinations(inside, size)]
        few_outside = [some for size in (1, 2, 3) for some in combinations(outside, size)]
        return not any(
            _hulls_meet(some, others)
            for some in few_inside
            for others in few_outside
            if len(some) + len(others) <= 4
        )

    @property
    def dimension(self) -> int:
        return 3


def _points(given: Sequence[Any], axes: int) -> list[Point]:
    """Points of so many coordinates; on a line, also plain numbers."""
    listed = [each if isinstance(each, Collection) else (each,) for each in given]
    if isinstance(given, str) or any(isinstance(each, str) or len(each) != axes for each in listed):
        raise ArgumentError(
            "argument-numbers",
            f"every point must have {axes} coordinates",
            "try [1, 2]" if axes == 1 else f"try [({', '.join(['0'] * axes)})]",
        )
    return [tuple(exact(value, "coordinate") for value in each) for each in listed]


def _side(a: Point, b: Point, c: Point) -> int:
    """On which side of the line from a to b the point c is; 0 on the line."""
    turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (turn > 0) - (turn < 0)


def _hulls_meet(some: Sequence[Point], others: Sequence[Point]) -> bool:
    """Whether the convex hulls of at most four points in all have a point in common."""
    fewer, more = sorted((some, others), key=len)
    match len(fewer), len(more):
        case 1, 1:
            return fewer[0] == more[0]
        case 1, 2:
            return _on_segment(fewer[0], more)
        case 1, 3:
            sides = {_side(more[i], more[i - 2], fewer[0]) for i in range(3)}
            if not {1, -1} <= sides and _side(*more):
                return True
            return any(_on_segment(fewer[0], pair) for pair in combinations(more, 2))
        case _:
            return _segments_meet(fewer, more)


def _on_segment(point: Point, ends: Sequence[Point]) -> bool:
    a, b = ends
    between = all(min(a[axis], b[axis]) <= point[axis] <= max(a[axis], b[axis]) for axis in (0, 1))
    return between and _side(a, b, point) == 0


def _segments_meet(one: Sequence[Point], other: Sequence[Point]) -> bool:
    (a, b), (c, d) = one, other
    if _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0:
        return True
    return any(_on_segment(end, other) for end in one) or any(_on_segment(end, one) for end in other)
