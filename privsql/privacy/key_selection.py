"""Epsilon, delta and a unit's contribution go in; a mechanism that releases undeclared keys comes out.

Which keys occur is itself private, so a key is shown only if a noisy count exceeds a threshold, or with a
probability that grows with its count; a key of count 0 is absent and never shown. There are three mechanisms,
each a type that checks its parameters and a function that chooses the best ones.

Composition, used throughout. Keys are treated independently; write P_i and Q_i for the laws of the output at
key i for two neighbouring tables. If P_i min exp(e_i) Q_i (the lesser, outcome by outcome) has mass at least
1 - d_i, then the product of these lesser measures has mass at least the product of the 1 - d_i, which is at
least 1 - sum d_i, and it is at most exp(sum e_i) Q. So P(A) <= exp(sum e_i) Q(A) + sum d_i for every set A of
outcomes. Keys that do not change add nothing.

Floor. Fewer than min_units units have a count of at most shift = rows (min_units - 1). The count n is
replaced by max(0, n - shift), and shift is added back to what is published. max(0, n - shift) changes by no
more than n does; a key in one table only has fallen to 0, so it is a key of the unit that left. So all proofs
hold, and a key of fewer units counts as absent: it is certain never to be shown, however unbounded the noise
of others.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.privacy.bounds import GREATEST_EXPONENT, exponential_bounds, logarithm_bounds
from privsql.privacy.gaussian import analytic_delta, least_variance, tail_above

GREATEST_THRESHOLD = 2**50
"""Greater thresholds are refused: no count reaches them. So rates are above ln 2/2^50. Variances beyond its
square are refused, too; samplers accept every variance that is accepted here.
"""

GREATEST_TABLE = 2**17
"""Larger selection tables are refused: with so small an epsilon, a key needs that many units."""

COIN = 2**32
"""The resolution of a coin: the number of values of one random word."""

_SHARES = [Fraction(share, 100) for share in (100, 95, 85, 65, 40, 20)]  # all but always the first is best
_EACH_NUMBER = 32  # of keys in one table only; beyond it, in steps of an eighth


@dataclass(frozen=True)
class Contribution:
    """A unit has at most `groups` keys and adds at most `rows` to the count of each.

    Between neighbours at most `changes` keys differ, by at most `rows` each: groups under add-remove, 2
    groups under replace-one. At most `groups` keys are only in one table, and at most `groups` only in the
    other.
    """

    groups: int
    rows: int
    changes: int

    def __post_init__(self) -> None:
        if self.groups < 1 or self.rows < 1 or self.changes not in (self.groups, 2 * self.groups):
            raise ValueError("a contribution needs groups >= 1, rows >= 1 and changes of groups or 2 groups")


@dataclass(frozen=True)
class KeyRelease(ABC):
    """An (epsilon, delta)-private release of keys, each of which has at least min_units units."""

    epsilon: Fraction
    delta: Fraction
    contribution: Contribution
    min_units: int

    def __post_init__(self) -> None:
        _check_loss(self.epsilon, self.delta)
        if self.min_units < 1:
            raise ValueError(f"min_units must be at least 1, not {self.min_units}")
        self._check()

    @property
    def shift(self) -> int:
        """The greatest count that fewer than min_units units can have."""
        return self.contribution.rows * (self.min_units - 1)

    def chance(self, count: int) -> float:
        """The probability that a key with this count is shown, which never decreases with the count. This
        only informs; nothing depends on it.
        """
        return self._chance(count - self.shift) if count > self.shift else 0.0

    def shows_at(self, probability: float) -> int:
        """The least count at which a key is shown with at least this probability."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"the probability is between 0 and 1, not {probability}")
        high = self.shift + 1
        while self.chance(high) < probability:
            high *= 2
        return bisect_left(range(high), True, key=lambda count: self.chance(count) >= probability)

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError if the parameters do not guarantee epsilon and delta."""

    @abstractmethod
    def _chance(self, above: int) -> float:
        """The probability that a key with count shift + above is shown, for above >= 1."""


# --- (a) truncated geometric noise: counts and keys from one release ---


@dataclass(frozen=True)
class TruncatedGeometric(KeyRelease):
    """Publish n + X if it exceeds k; X in -k..k, P(X = x) ~ exp(-rate |x|), rate = epsilon/(changes rows).

    Let epsilon' = epsilon/changes and delta' = delta/changes, and let a key's count be n in one table and n'
    in the other, |n - n'| <= rows. A number that n + X and n' + X both reach has chances within exp(rate
    rows) = exp(epsilon') of each other. What n + X reaches and n' + X does not are the last |n - n'| values
    of X before k, or before -k, of chance at most d(k) = P(X > k - rows). If that is at most delta' then e_i
    = epsilon', d_i = delta' in the composition. To hide what is not above k is a function of n + X and costs
    nothing; n = 0 is always hidden, as if it had no noise. Nor would less do: with n = 0 and n' = rows every
    number shown is new, of chance d(k).

    Coin. The least k leaves a part of delta' over, since it is a whole number. So k is drawn for each key,
    not looking at its count: k - 1 with chance w, else k. Of the pair (coin, what is published) the lesser
    measure has the mass w (1 - d(k - 1)) + (1 - w)(1 - d(k)), so that w d(k - 1) + (1 - w) d(k) <= delta' is
    enough; the coin is then kept secret, which costs nothing. For rows = 1 and the greatest w no other way
    shows a key with more: p(n), the chance to be shown, has p(n + 1) = exp(epsilon') p(n) + p(1) below n = k,
    and 1 - p(n) = exp(-epsilon') (1 - p(n - 1) - p(1)) above, for k - 1 and k and so for both together, with
    p(1) = delta': OptimalSelection, but for the very last n.
    """

    bound: int  # k
    lesser: int = 0  # w, in parts of 2^32

    @property
    def rate(self) -> Fraction:
        return self.epsilon / (self.contribution.changes * self.contribution.rows)

    @property
    def threshold(self) -> int:
        """Published counts exceed this or, depending on the coin, this less 1."""
        return self.bound + self.shift

    @property
    def share(self) -> Fraction:
        """w, the probability of k - 1."""
        return Fraction(self.lesser, COIN)

    def _check(self) -> None:
        if self.bound < _least_bound(self.epsilon, self.delta, self.contribution):
            raise ValueError(f"noise truncated at {self.bound} does not cover epsilon and delta")
        if not 0 <= self.lesser < COIN or (self.lesser and self.lesser > _lesser(self)):
            raise ValueError(f"noise truncated at {self.bound - 1} so often does not cover epsilon and delta")
        _check_threshold(self.threshold)

    def _chance(self, above: int) -> float:
        share = float(self.share)
        return (1.0 - share) * self._shown(above, self.bound) + (
            share and share * self._shown(above, self.bound - 1)
        )

    def _shown(self, above: int, bound: int) -> float:
        least = bound + 1 - above  # the least X that shows the key
        return self._at_least(least, bound) if least > 0 else 1.0 - self._at_least(1 - least, bound)

    def _at_least(self, value: int, bound: int) -> float:
        """P(X >= value) for value >= 1."""
        if value > bound:
            return 0.0
        rate = float(self.rate)
        reached = math.exp(-rate * value) * -math.expm1(-rate * (bound + 1 - value))
        return reached / -(math.expm1(-rate * (bound + 1)) + math.exp(-rate) * math.expm1(-rate * bound))


def truncated_geometric(
    epsilon: Fraction, delta: Fraction, contribution: Contribution, min_units: int = 1
) -> TruncatedGeometric:
    """Truncated geometric noise with the least bound, and the next smaller one as often as delta allows."""
    bound = _least_bound(epsilon, delta, contribution)
    plain = TruncatedGeometric(epsilon, delta, contribution, min_units, bound)
    return replace(plain, lesser=_lesser(plain))


def _least_bound(epsilon: Fraction, delta: Fraction, contribution: Contribution) -> int:
    """The least k with d(k) <= delta', rounded to the safe side.

    With q = exp(-rate) and k >= rows - 1 d(k) is (q^(k-rows+1) - q^(k+1)) / (1 + q - 2 q^(k+1)), at most
    delta' iff exp(rate k) >= (exp(epsilon') - 1 + 2 delta') / (delta' (exp(rate) + 1)). At k = rows - 1 it is
    P(X >= 0) > 1/2 > delta', so that no lesser k will do.
    """
    _check_loss(epsilon, delta)
    epsilon, delta = epsilon / contribution.changes, delta / contribution.changes
    rate = epsilon / contribution.rows
    _, growth = exponential_bounds(epsilon)
    step, _ = exponential_bounds(rate)
    _, logarithm = logarithm_bounds((growth - 1 + 2 * delta) / (delta * (step + 1)))
    return max(contribution.rows, math.ceil(logarithm / rate))


def _lesser(release: TruncatedGeometric) -> int:
    """The greatest w with w d(k - 1) + (1 - w) d(k) <= delta', rounded down to parts of 2^32."""
    epsilon, delta = (each / release.contribution.changes for each in (release.epsilon, release.delta))
    if release.rate * release.bound > GREATEST_EXPONENT:
        return 0  # there is hardly any noise
    (_, growth), (step, _) = exponential_bounds(epsilon), exponential_bounds(release.rate)
    reached = (exponential_bounds(release.rate * k)[0] for k in (release.bound - 1, release.bound))
    # at least d(k - 1) and d(k)
    narrow, wide = ((growth - 1) / (reach * (step + 1) - 2) for reach in reached)
    return max(0, min(COIN - 1, math.floor((delta - wide) / (narrow - wide) * COIN)))


# --- (b) rounded Gaussian noise and a threshold ---


@dataclass(frozen=True)
class GaussianThreshold(KeyRelease):
    """Publish n + X if it exceeds t, for n >= 1 and X rounded Gaussian.

    Let e keys be in P's table only, and let tail = P(X > t - rows) be at least the chance that one of them is
    shown: their count is at most rows. Q hides it, so e_i = 0, d_i = tail. A key in Q's table only is hidden
    by P, and by Q with chance at least 1 - tail, so d_i = 0, e_i = -ln(1 - tail) <= tail/(1 - tail). The
    other keys, at most changes - e, together are a vector of squared l2-sensitivity (changes - e) rows^2,
    private at (epsilon_g, delta_g(e)): the lesser measure of all of them at once, with exp(epsilon_g), has
    mass at least 1 - delta_g(e). So epsilon_g = epsilon - groups tail/(1 - tail) and delta_g(e) + e tail <=
    delta for every e from 0 to groups suffice: a unit that has keys for itself has fewer among others, and
    delta need not be split for the two.
    """

    variance: Fraction
    limit: int  # t

    @property
    def threshold(self) -> int:
        """Published counts exceed this."""
        return self.limit + self.shift

    def _check(self) -> None:
        tail = tail_above(self.variance, self.limit - self.contribution.rows)
        loss = self.epsilon - self.contribution.groups * tail / (1 - tail) if tail < 1 else Fraction(0)
        if loss <= 0 or any(
            lost + last * tail > self.delta
            for last, lost in _exclusive(self.contribution, self.variance, loss)
        ):
            raise ValueError(
                f"variance {self.variance} and limit {self.limit} do not cover epsilon and delta"
            )
        _check_threshold(max(self.threshold, math.isqrt(math.ceil(self.variance))))

    def _chance(self, above: int) -> float:
        return math.erfc((self.limit - above + 0.5) / math.sqrt(2 * self.variance)) / 2.0


def gaussian_threshold(
    epsilon: Fraction, delta: Fraction, contribution: Contribution, min_units: int = 1
) -> GaussianThreshold:
    """The best of several variances, by the threshold: those that would use 20% to 100% of delta for the
    noise if no key were in one table only.
    """
    _check_loss(epsilon, delta)
    # groups tail <= delta, so that groups tail/(1 - tail) <= delta/(1 - delta)
    loss = epsilon - delta / (1 - delta)
    choices = []
    for share in _SHARES:
        variance = least_variance(contribution.changes * contribution.rows**2, loss, share * delta)
        spare = min((delta - lost) / last for last, lost in _exclusive(contribution, variance, loss) if last)
        if spare > 0:
            choices.append((contribution.rows + _least_above(variance, spare), variance))
    limit, variance = min(choices)
    return GaussianThreshold(epsilon, delta, contribution, min_units, variance, limit)


def _exclusive(
    contribution: Contribution, variance: Fraction, loss: Fraction
) -> Iterator[tuple[int, Fraction]]:
    """(last, delta_g(first)) for ranges first..last of numbers of keys in one table only, which cover
    0..groups.
    """
    first = 0
    while first <= contribution.groups:
        last = min(contribution.groups, first if first < _EACH_NUMBER else first + first // 8)
        yield last, analytic_delta((contribution.changes - first) * contribution.rows**2, variance, loss)
        first = last + 1


def _least_above(variance: Fraction, tail: Fraction) -> int:
    """The least whole number that X provably exceeds with at most this probability."""
    high = 1
    while tail_above(variance, high) > tail:
        high *= 2
    return bisect_left(range(high), True, key=lambda bound: tail_above(variance, bound) <= tail)


# --- (c) keys alone, without their counts ---


@dataclass(frozen=True)
class OptimalSelection(KeyRelease):
    """Show a key of n units with probability p(n); no other way shows it with more (Desfontaines et al.
    2020).

    `scaled` holds p(0), p(1), ..., 1 as multiples of 2^-bits. With epsilon' = epsilon/changes, delta' =
    delta/changes, E <= exp(epsilon'), and n, n + 1 units: p(n+1) <= E p(n) + delta' bounds "shown", and 1 -
    p(n) <= E (1 - p(n+1)) + delta' "hidden"; the other way round both hold since p never falls. So e_i =
    epsilon', d_i = delta' in the composition. p is the greatest that satisfies this, rounded down at each
    step; rounding keeps it growing, by delta' - 2^-bits or more.
    """

    bits: int
    scaled: tuple[int, ...]

    def _check(self) -> None:
        if self.contribution.rows != 1:
            raise ValueError("optimal selection is for counts of units: rows must be 1")
        one = 1 << self.bits
        growth, _ = exponential_bounds(self.epsilon / self.contribution.changes)
        delta = self.delta / self.contribution.changes * one
        if len(self.scaled) < 2 or self.scaled[0] != 0 or self.scaled[-1] != one:
            raise ValueError("the probabilities must begin with 0 and end with 1")
        # all times the denominators: whole numbers are compared ten times as fast as fractions, and there may
        # be 10^5 of them
        scale, rise = growth.denominator * delta.denominator, growth.numerator * delta.denominator
        rest = delta.numerator * growth.denominator
        for less, more in itertools.pairwise(self.scaled):
            shown, hidden = (
                more * scale <= rise * less + rest,
                (one - less) * scale <= rise * (one - more) + rest,
            )
            if not (less <= more and shown and hidden):
                raise ValueError("the probabilities do not cover epsilon and delta")

    def _chance(self, above: int) -> float:
        return self.scaled[min(above, len(self.scaled) - 1)] / (1 << self.bits)


def optimal_selection(
    epsilon: Fraction, delta: Fraction, contribution: Contribution, min_units: int = 1
) -> OptimalSelection:
    """The greatest probabilities, rounded down to multiples of a power of two."""
    _check_loss(epsilon, delta)
    each = delta / contribution.changes
    bits = 64 + (each.denominator // each.numerator).bit_length()
    bits += -bits % 32  # whole words of randomness
    one = 1 << bits
    growth = math.floor(exponential_bounds(epsilon / contribution.changes)[0] * one)
    step = math.floor(each * one)
    scaled = [0]
    while scaled[-1] < one:
        if len(scaled) >= GREATEST_TABLE:
            raise ValueError(
                f"epsilon or delta is too small: a key would need {GREATEST_TABLE} units to be shown"
            )
        hidden = max(0, one - scaled[-1] - step)
        scaled.append(min((growth * scaled[-1] >> bits) + step, one - -(-(hidden << bits) // growth)))
    return OptimalSelection(epsilon, delta, contribution, min_units, bits, tuple(scaled))


# --- which ---


def best(
    epsilon: Fraction, delta: Fraction, contribution: Contribution, min_units: int = 1
) -> TruncatedGeometric | GaussianThreshold:
    """The better of the two that publish counts: it shows a key with probability 1/2 at a lower count."""
    truncated = truncated_geometric(epsilon, delta, contribution, min_units)
    gaussian = gaussian_threshold(epsilon, delta, contribution, min_units)
    return gaussian if gaussian.shows_at(0.5) < truncated.shows_at(0.5) else truncated


def _check_loss(epsilon: Fraction, delta: Fraction) -> None:
    # with a delta as large as epsilon, truncated noise would be almost uniform
    if not 0 < 2 * delta < min(Fraction(1), epsilon):
        raise ValueError(
            f"keys need delta > 0 below 1/2 and below epsilon/2, not {delta} at epsilon {epsilon}"
        )


def _check_threshold(threshold: int) -> None:
    if threshold > GREATEST_THRESHOLD:
        raise ValueError("epsilon or delta is too small: no count would exceed the threshold")
