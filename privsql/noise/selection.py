"""Exact scores and a rate go in; the index of one candidate comes out, and nothing more.

Privacy. Let neighbours move each score by at most linf. All four mechanisms are epsilon-private with
rate = epsilon/(2 linf), and with rate = epsilon/linf if the scores are monotone, that is if between any two
neighbours no score rises while another falls (counts under add-remove).

- exponential, laplace: the noise N has P(N = k+1) >= exp(-rate) P(N = k) for every integer k, hence
  P(N >= m) <= exp(rate) P(N >= m+1) (*). Fix the noise of all candidates but i. Scores are integers and ties
  go to the first, so i wins iff N_i >= m for the integer m = max(1 + best before i, best after i) - score_i.
  Between neighbours the maximum and score_i move by at most linf each, and in the same direction if monotone;
  so m moves by at most 2 linf, or linf if monotone. Apply (*) that often; average over the others' noise.
- gumbel: P(i) = exp(rate score_i) / sum over j of exp(rate score_j). The numerator and the sum change by
  factors within exp(+-rate linf) each, and in the same direction if monotone.
- permute_and_flip: each candidate passes with probability exp(-rate (greatest - score_i)), and one of those
  that pass is chosen uniformly: the first that passes in a random order. This is report-noisy-max with
  continuous exponential noise N_i: score_i + N_i exceeds the greatest score with that very probability; if it
  does, by an exponential variable again, independently (no memory), so that each of those above is as likely
  to be on top; and one is above for certain. So i wins iff N_i > m for m = max of score_j + N_j over the
  others - score_i; proceed as above with P(N > m) <= exp(rate t) P(N > m + t). There are no ties, and scores
  may be any fractions.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from privsql.noise.digits import exponential_probability
from privsql.noise.randomness import Randomness
from privsql.noise.samplers import bernoulli, discrete_laplace, geometric

SelectionNoise = Literal["exponential", "laplace", "gumbel", "permute_and_flip"]

GREATEST_SCORE = 2**62
"""Scores are clamped to this, so that noise of up to 2^61 fits on top. Clamping moves no two scores apart and
turns no rise into a fall, so the proof above stands; an error here would depend on the data."""

_LEAST_BATCH = 64
_FINEST_RATE = Fraction(1, 2**10)

Distances = NDArray[np.uint64] | NDArray[np.object_]
"""How far each score is below the greatest, in whole steps; Python integers where 64 bits do not suffice."""


def in_fine_steps(exact_scores: NDArray[np.int64], rate: Fraction) -> tuple[NDArray[np.int64], Fraction]:
    """The same scores counted in smaller steps, and the rate per step: at most 2^-10, so that ties are rare.

    Whole scores tie often, and breaking ties in order favours the first candidates: of two with equal scores
    the first would win 73% of the time at rate 1. In small steps "exponential" approaches permute-and-flip,
    its continuous form, whatever the order. Scores times 2^b move 2^b times as far and the rate is 2^b times
    smaller, so the proof above stands; b depends on the rate alone.
    """
    bits = 0
    while rate > _FINEST_RATE:
        bits, rate = bits + 1, rate / 2
    greatest = GREATEST_SCORE >> bits
    return np.clip(exact_scores, -greatest, greatest) << bits, rate


def select(exact_scores: NDArray[np.int64], rate: Fraction, noise: SelectionNoise, source: Randomness) -> int:
    """The index of the winner: the greatest noisy score, the first of several.

    "exponential" adds one-sided geometric noise (report-noisy-max of note 002, on integers), "laplace"
    two-sided noise; "gumbel" is exactly the exponential mechanism, "permute_and_flip" the continuous form
    of the first. The running time of the first two does not depend on the scores. "gumbel" rejects
    proposals, and takes longer when fewer scores are near the greatest.
    """
    if exact_scores.ndim != 1 or exact_scores.size == 0:
        raise ValueError("selection needs a one-dimensional array of at least one score")
    if exact_scores.dtype != np.int64:
        raise TypeError(f"scores are 64-bit integers, not {exact_scores.dtype}")
    if rate <= 0:
        raise ValueError(f"the rate must be positive, not {rate}")
    exact_scores = np.clip(exact_scores, -GREATEST_SCORE, GREATEST_SCORE)
    match noise:
        case "exponential":
            return winner(exact_scores + geometric(rate, exact_scores.size, source))
        case "laplace":
            return winner(exact_scores + discrete_laplace(rate, exact_scores.size, source))
        case "gumbel" | "permute_and_flip":
            # Up to 2^63, which only the unsigned type holds.
            exact_distances = exact_scores.max().astype(np.uint64) - exact_scores.astype(np.uint64)
            return _select_by_distance(exact_distances, rate, noise, source)
        case _ as unknown:
            assert_never(unknown)


def select_fraction(
    exact_scores: Sequence[Fraction],
    rate: Fraction,
    noise: Literal["gumbel", "permute_and_flip"],
    source: Randomness,
) -> int:
    """The same for scores that are arbitrary fractions, without rounding. The step in which they are counted
    depends on the scores, but the distribution of the winner does not depend on the step.
    """
    if not exact_scores or rate <= 0:
        raise ValueError("selection needs at least one score and a positive rate")
    parts = math.lcm(*{score.denominator for score in exact_scores})
    exact_steps = [score.numerator * (parts // score.denominator) for score in exact_scores]
    greatest = max(exact_steps)
    fits = greatest - min(exact_steps) < 2**64
    exact_distances: Any = np.array(
        [greatest - each for each in exact_steps], np.uint64 if fits else np.object_
    )
    return _select_by_distance(exact_distances, rate / parts, noise, source)


def _select_by_distance(
    exact_distances: Distances,
    rate: Fraction,
    noise: Literal["gumbel", "permute_and_flip"],
    source: Randomness,
) -> int:
    if noise == "gumbel":
        return _exponential_mechanism(exact_distances, rate, source)
    passing = _accepted(exact_distances, rate, source)
    return int(passing[_uniform_index(passing.size, source)])


def select_each(
    exact_scores: NDArray[np.int64], rate: Fraction, noise: SelectionNoise, source: Randomness
) -> NDArray[np.int64]:
    """The winner of every row of scores, each drawn with its own noise."""
    if exact_scores.ndim != 2 or exact_scores.size == 0 or rate <= 0:
        raise ValueError("selection needs rows of at least one score and a positive rate")
    if noise in ("gumbel", "permute_and_flip"):
        return np.array([select(row, rate, noise, source) for row in exact_scores], dtype=np.int64)
    exact_scores = np.clip(exact_scores, -GREATEST_SCORE, GREATEST_SCORE)
    draw = geometric if noise == "exponential" else discrete_laplace
    noisy_scores = exact_scores + draw(rate, exact_scores.size, source).reshape(exact_scores.shape)
    # the first of several, as in `winner`
    winners: NDArray[np.int64] = np.argmax(noisy_scores, axis=1).astype(np.int64)
    return winners


def winner(noisy_scores: NDArray[np.int64]) -> int:
    """The index of the greatest score, the first of several."""
    return int(np.argmax(noisy_scores))  # argmax promises the first, and the proof rests on it


def _exponential_mechanism(exact_distances: Distances, rate: Fraction, source: Randomness) -> int:
    """P(i) proportional to exp(rate score_i), by rejection: propose uniformly, accept i with probability
    exp(-rate (greatest - score_i)); the first accepted proposal wins.

    A candidate with the greatest score is always accepted. So a proposal is accepted with probability at
    least 1/candidates, and a batch of about `candidates` proposals contains an accepted one more often than
    not.
    """
    while True:
        proposals = _uniform_indices(
            exact_distances.size, max(2 * exact_distances.size, _LEAST_BATCH), source
        )
        accepted = _accepted(exact_distances[proposals], rate, source)
        if accepted.size:
            return int(proposals[accepted[0]])


def _uniform_index(bound: int, source: Randomness) -> int:
    while True:
        indices = _uniform_indices(bound, _LEAST_BATCH, source)
        if indices.size:
            return int(indices[0])


def _uniform_indices(bound: int, words: int, source: Randomness) -> NDArray[np.uint32]:
    """Independent uniform indices below `bound`, at most `words` of them. Words that are too large are
    discarded, since a remainder would favour some indices.
    """
    mask = (1 << (bound - 1).bit_length()) - 1
    indices = source.integers(words) & np.uint32(mask)
    return indices[indices < bound]


def _accepted(exact_distances: Distances, rate: Fraction, source: Randomness) -> NDArray[np.intp]:
    """The indices, in order, of the distances that pass, each with probability exp(-rate distance).

    exp(-rate distance) is the product of exp(-rate 2^b) over the binary digits b set in the distance, so a
    distance passes if it passes one trial for each. The most significant digits come first: they leave the
    fewest candidates.
    """
    passing = np.arange(exact_distances.size)
    greatest = int(exact_distances.max(initial=0))
    for position in reversed(range(greatest.bit_length())):
        shifted: Any = exact_distances[passing] >> position
        on_trial = (shifted & 1).astype(np.bool_)
        count = int(np.count_nonzero(on_trial))
        if count:
            passed = ~on_trial
            passed[on_trial] = bernoulli(exponential_probability(rate * 2**position), count, source)
            passing = passing[passed]
    return passing
