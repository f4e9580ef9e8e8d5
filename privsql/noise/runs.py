"""Cells of runs of positions with weights exp(-x) go in; one position of each cell comes out, drawn with
exactly the probability that its weight gives it.

Floats only make proposals. A run is proposed with an integer weight that is certainly not below its true one,
and then accepted with probability true / proposed, which is decided by as many digits as it takes. So the
result has the true distribution whatever the floats were, as long as their relative error is below 2^-21.
numpy's exp and expm1 are within about 2^-50, and the exponents given here within 2^-24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privsql.noise.digits import exponential_interval
from privsql.noise.randomness import Randomness
from privsql.tables import Integers

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Exact = Callable[[int], tuple[Fraction, Fraction]]
At = Callable[[int, int], tuple[int, Fraction]]

_ABOVE = 1.0 + 2.0**-20  # a float times this is above the true value
_SURE = 2**32 - 2**13  # a word below this is below any probability of 1 - 2^-19
_LARGE = 2**30  # proposed weights of at least this are within 2^-19 of the true ones
_BITS = 60  # proposed weights of a cell add up to less than 2^62


@dataclass(frozen=True)
class Runs:
    """Run i has positions j = 0 ... lengths[i] - 1, of weight 2^-halvings[i] exp(-(base[i] + slope[i] j)),
    slope >= 0.

    The runs of cell k are offsets[k] ... offsets[k + 1] - 1, one of them not empty. `exact(i)` returns base
    and slope as exact fractions. The weights of a `rough` run are only known to be at most these; `at(i, j)`
    returns the halvings and exponent of one position.
    """

    offsets: Integers
    base: Floats
    slope: Floats
    lengths: Integers
    exact: Exact
    # empty: no run is rough
    rough: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    at: At = lambda run, position: (0, Fraction(0))
    # empty: no halvings; some may be negative
    halvings: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def draw(runs: Runs, source: Randomness) -> tuple[Integers, Integers]:
    """Draw a run and a position in it for every cell."""
    starts, stops = runs.offsets[:-1], runs.offsets[1:]
    rough = runs.rough if runs.rough.size else np.zeros(len(runs.base), dtype=np.bool_)
    known = np.where(runs.lengths > 0, runs.base, np.inf)
    floor = np.floor(np.minimum.reduceat(known, starts)) - 1.0  # an integer below every exponent of its cell
    sizes = stops - starts
    halvings = runs.halvings if runs.halvings.size else np.zeros(len(runs.base), dtype=np.int64)
    totals = np.ldexp(
        np.exp(np.repeat(floor, sizes) - known) * _added_up(runs.slope, runs.lengths), -halvings
    )
    power = _BITS - np.ceil(np.log2(np.add.reduceat(totals, starts))).astype(np.int64)
    proposed = _whole(totals, np.repeat(power, sizes), runs.lengths > 0)
    ends = np.cumsum(proposed)  # modulo 2^64, and so are the differences; the sum of one cell is below 2^62
    before = ends - proposed
    chosen, pending = np.zeros(len(starts), dtype=np.int64), np.arange(len(starts))
    positions = np.full(len(starts), -1, dtype=np.int64)  # set for rough runs here, for the others below
    while pending.size:
        first, last = starts[pending], stops[pending] - 1
        wanted = uniform_below(ends[last] - before[first], source)
        found = _reached(ends, before[first], first, last, wanted)
        words = source.integers(len(pending))
        kept = (words < _SURE) & (proposed[found] >= _LARGE) & ~rough[found]
        for place in np.flatnonzero(~kept):
            run, cell = int(found[place]), int(pending[place])
            length, factor = int(runs.lengths[run]), Fraction(2) ** int(power[cell]) / int(proposed[run])
            if rough[run]:  # any position, accepted with the ratio of its weight to the proposed one
                positions[cell] = uniform_below(np.array([length], dtype=np.uint64), source)[0]
                halved, exponent = runs.at(run, int(positions[cell]))
                true, factor = _Sum(exponent - int(floor[cell]), Fraction(0), 1), factor * length
            else:
                halved, (base, slope) = int(halvings[run]), runs.exact(run)
                true = _Sum(base - int(floor[cell]), slope, length)
            factor /= Fraction(2) ** halved
            kept[place] = _happens(int(words[place]), true, factor, source)
        chosen[pending[kept]] = found[kept]
        pending = pending[~kept]
    return chosen, np.where(rough[chosen], positions, _positions(runs, chosen, source))


def uniform_below(bounds: Words, source: Randomness) -> Words:
    """A uniform integer from 0 to each bound - 1: masked words, redrawn where they are too large."""
    masks = bounds - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    result, pending = np.zeros(len(bounds), dtype=np.uint64), np.arange(len(bounds))
    while pending.size:
        words = source.integers(2 * pending.size).astype(np.uint64)
        result[pending] = (words[::2] << np.uint64(32) | words[1::2]) & masks[pending]
        pending = pending[result[pending] >= bounds[pending]]
    return result


def _reached(ends: Words, before: Words, first: Integers, last: Integers, wanted: Words) -> Integers:
    """For each cell, the run that contains the wanted number: the first whose cumulative sum exceeds it.
    Binary search, for all cells at once.
    """
    low, high = first.copy(), last.copy()
    while (low < high).any():
        middle = (low + high) >> 1
        above = ends[middle] - before > wanted
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low


def _whole(totals: Floats, power: Integers, present: npt.NDArray[np.bool_]) -> Words:
    """Weights times 2^power, rounded up by more than any error of the floats."""
    return np.where(present, np.floor(np.ldexp(totals * _ABOVE, power)) + 1.0, 0.0).astype(np.uint64)


def _added_up(slope: Floats, lengths: Integers) -> Floats:
    """The sum of exp(-slope j) over j < length."""
    steep = slope > 0
    fall = np.where(steep, slope, 1.0)
    return np.where(steep, np.expm1(-fall * lengths) / np.expm1(-fall), lengths.astype(np.float64))


def _positions(runs: Runs, chosen: Integers, source: Randomness) -> Integers:
    lengths, slope = runs.lengths[chosen], runs.slope[chosen]
    positions = np.zeros(len(chosen), dtype=np.int64)
    level = np.flatnonzero(slope == 0)
    positions[level] = uniform_below(lengths[level].astype(np.uint64), source).astype(np.int64)
    steep = np.flatnonzero(slope > 0)
    if steep.size:
        positions[steep] = _falling(
            slope[steep], lengths[steep], lambda i: runs.exact(int(chosen[steep[i]]))[1], source
        )
    return positions


def _falling(
    slope: Floats, lengths: Integers, exact: Callable[[int], Fraction], source: Randomness
) -> Integers:
    """j < length with P(j) ~ exp(-slope j): propose a stretch 0, 1, 2-3, 4-7 ... by the weight of its first
    j, then any j of the stretch, accepted with the ratio of its weight to that first one.
    """
    pieces = int(lengths.max()).bit_length() + 1
    left = np.concatenate([[0], 1 << np.arange(pieces - 1)])
    right = np.concatenate([[1], 2 << np.arange(pieces - 1)])
    sizes = np.clip(np.minimum(right, lengths[:, None]) - left, 0, None)
    heights = np.exp(-slope[:, None] * left)
    weights = _whole(sizes * heights, np.full(sizes.shape, 20), sizes > 0)  # sizes are below 2^30
    ends = np.cumsum(weights, axis=1)
    result, pending = np.zeros(len(slope), dtype=np.int64), np.arange(len(slope))
    while pending.size:
        wanted = uniform_below(ends[pending, -1], source)
        piece = (ends[pending] <= wanted[:, None]).sum(axis=1)
        offset = uniform_below(sizes[pending, piece].astype(np.uint64), source).astype(np.int64)
        j = left[piece] + offset
        # P(j) is then weight / size * kept, which is exp(-slope j) 2^20
        factor = np.ldexp(sizes[pending, piece].astype(np.float64), 20) / weights[pending, piece]
        chance = factor * np.exp(-slope[pending] * j) * 2.0**32
        words = source.integers(len(pending))
        kept = words < chance
        for place in np.flatnonzero(np.abs(words - chance) <= chance * 2.0**-19 + 2.0):
            row = int(pending[place])
            scale = Fraction(int(sizes[row, piece[place]]) << 20, int(weights[row, piece[place]]))
            kept[place] = _happens(
                int(words[place]), _Sum(exact(row) * int(j[place]), Fraction(0), 1), scale, source
            )
        result[pending[kept]] = j[kept]
        pending = pending[~kept]
    return result


@dataclass(frozen=True)
class _Sum:
    """The sum of exp(-(base + slope j)) over j < length, for base, slope >= 0."""

    base: Fraction
    slope: Fraction
    length: int

    def interval(self, bits: int) -> tuple[Fraction, Fraction]:
        low, high = _exponential(self.base, bits)
        if not self.slope:
            return low * self.length, high * self.length
        least, most = _exponential(self.slope, bits)
        end_least, end_most = _exponential(self.slope * self.length, bits)
        if most == 1:
            return Fraction(0), high * self.length  # more bits will decide
        return low * (1 - end_most) / (1 - least), min(
            high * (1 - end_least) / (1 - most), high * self.length
        )


def _exponential(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """low <= exp(-exponent) <= high, some 2^-bits apart."""
    if not exponent:
        return Fraction(1), Fraction(1)
    if exponent > bits:  # exp(-bits) < 2^-bits
        return Fraction(0), Fraction(1, 1 << bits)
    low, high = exponential_interval(exponent, bits)
    return Fraction(low, 1 << bits), min(Fraction(high, 1 << bits), Fraction(1))


def _happens(word: int, true: _Sum, factor: Fraction, source: Randomness) -> bool:
    """Whether U < factor * true for a uniform U whose first 32 binary digits are given."""
    digits, drawn = word, 32
    while True:
        low, high = true.interval(drawn + 64)
        if Fraction(digits + 1, 1 << drawn) <= factor * low:
            return True
        if Fraction(digits, 1 << drawn) >= factor * high:
            return False
        digits, drawn = digits << 32 | int(source.integers(1)[0]), drawn + 32
