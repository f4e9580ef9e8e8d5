"""What tests of noise share: sources to inject, chi-square over cells and the chance of a false alarm, exact laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from privsql.noise.randomness import SystemRandomness

FALSE_ALARM = 1e-9  # right noise fails a test with about this chance; wrong noise must fall below it
SOURCE = SystemRandomness()
LAST_WORD = 2**32 - 1


class Buffered:
    """The system's words, fetched many at a time: thousands of small draws are quicker so."""

    def __init__(self) -> None:
        self.words = SOURCE.integers(0)

    def integers(self, count: int) -> Any:
        if count > self.words.size:
            self.words = SOURCE.integers(max(count, 1 << 16))
        taken, self.words = self.words[:count], self.words[count:]
        return taken


class Script:
    """Returns the next list of words on each call, and insists that exactly that many were requested."""

    def __init__(self, *answers: Sequence[int]) -> None:
        self.answers = list(answers)

    def integers(self, count: int) -> Any:
        words = self.answers.pop(0)
        assert len(words) == count
        return np.array(words, dtype=np.uint32)


def p_value(counts: Any, chances: Any) -> float:
    """Of a chi-square test: how often each cell was met, and the chance of each."""
    counts, chances = np.asarray(counts), np.asarray(chances)
    return float(stats.chisquare(counts, chances * counts.sum()).pvalue)


def without_rare(chances: Any, draws: int, expected: int = 50) -> Any:
    """A matrix that adds up all cells met less often than expected, as chi-square does not hold for them: to be multiplied
    with counts and chances."""
    chances = np.asarray(chances)
    rare = chances * draws < expected
    kept = np.eye(len(chances))[~rare]
    return np.vstack([kept, rare]) if rare.any() else kept


def p_value_between(
    sample: Any, edges: Sequence[int], at_least: Sequence[float], expected: int = 50
) -> float:
    """Of a sample of whole numbers in the cells that the edges part, where at_least is P(X >= edge) for each of them."""
    chances = -np.diff([1.0, *at_least, 0.0])
    assert (
        len(chances) >= 2 and chances.min() * sample.size >= expected
    )  # with fewer, chi-square does not hold
    return p_value(np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(chances)), chances)


def gaussian_weights(variance: Fraction | float, deviations: int = 40) -> tuple[Any, int]:
    """P(X = x) of the rounded Gaussian for x = -reach..reach, which is so many standard deviations, and reach."""
    reach = math.ceil(deviations * math.sqrt(variance)) + 5
    tails = stats.norm.sf((np.arange(reach + 2) - 0.5) / math.sqrt(variance))  # P(X >= x)
    half = tails[:-1] - tails[1:]
    return np.concatenate([half[:0:-1], half]), reach


def gaussian_excess(variances: Sequence[Fraction], moves: Sequence[int], epsilon: float) -> float:
    """sup over A of P(A) - exp(epsilon) Q(A) for one or two cells with rounded Gaussian noise, moved by so much between P
    and Q: summed over all outcomes."""
    one, other = np.ones(1), np.ones(1)
    for variance, move in zip(variances, moves, strict=True):
        chances, _ = gaussian_weights(variance, deviations=14)
        one = np.multiply.outer(one, np.concatenate([np.zeros(move), chances]))
        other = np.multiply.outer(other, np.concatenate([chances, np.zeros(move)]))
    return float(np.maximum(0.0, one - math.exp(epsilon) * other).sum())


@cache
def gauss_legendre() -> tuple[Any, Any]:
    """Points and weights that integrate over [-1, 1]; finding them takes longer than using them."""
    return np.polynomial.legendre.leggauss(200)


def normal_excess(ratio: float, epsilon: float) -> float:
    """The same for continuous noise on any number of cells, ratio = l2/sigma: the integral of the normal density at
    m/2 - epsilon/m over m from 0 to ratio, which is the formula of Balle and Wang without its cancellations."""

    def log_weight(u: float) -> float:  # u = ln m
        return u - (math.exp(u) / 2 - epsilon * math.exp(-u)) ** 2 / 2 - math.log(2 * math.pi) / 2

    end = math.log(ratio)
    # concave in u; its derivative is 0 where m^2 is 2 + 2 sqrt(1 + epsilon^2)
    peak = min(end, math.log(2 + 2 * math.sqrt(1 + epsilon**2)) / 2)
    top = log_weight(peak)

    def narrow(side: float) -> float:
        """How far from the peak the weight has fallen to exp(-50)."""
        width = 1e-9
        while log_weight(peak + side * width) > top - 50:
            width *= 1.5
        return width

    start = peak - narrow(-1.0)
    end = min(end, peak + narrow(1.0))
    nodes, weights = gauss_legendre()
    total = 0.0
    for low, high in ((start, peak), (peak, end)):
        points = (low + high) / 2 + (high - low) / 2 * nodes
        total += (
            (high - low) / 2 * float(np.sum(weights * np.exp([log_weight(each) - top for each in points])))
        )
    return total * math.exp(top)


def scaled_exponential(exponent: Fraction, bits: int) -> int:
    """exp(exponent) 2^bits, give or take a few: halved argument, series, squarings, all in integers."""
    halvings = 4 + math.ceil(abs(exponent)).bit_length()
    work = (
        bits + 2 * halvings + 64 + max(0, 3 * math.ceil(exponent))
    )  # the squarings of what is above 1 lose more
    argument = (abs(exponent).numerator << work) // (exponent.denominator << halvings)
    term = total = 1 << work
    index = 0
    while term:
        index += 1
        term = (term * argument >> work) // index
        total += term if exponent > 0 or index % 2 == 0 else -term
    for _ in range(halvings):
        total = total * total >> work
    return total >> work - bits
