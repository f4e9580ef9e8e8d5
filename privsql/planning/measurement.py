"""Price and noise in one object: a Measurement cannot be made whose noise does not cover its sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from privsql.errors import ArgumentError
from privsql.privacy.accuracy import Gaussian, Laplace, Law
from privsql.privacy.gaussian import least_variance, rounded_up
from privsql.privacy.key_selection import (
    Contribution,
    GaussianThreshold,
    KeyRelease,
    OptimalSelection,
    best,
    gaussian_threshold,
    optimal_selection,
    truncated_geometric,
)
from privsql.privacy.quantile_search import Search, Sought
from privsql.privacy.sensitivity import Sensitivity
from privsql.suggestions import Argument

LARGEST_SCALE = 2**52  # noise of a larger scale would not fit 64 bits


class Mechanism(StrEnum):
    """How exact becomes noisy."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "Gaussian, rounded"
    CHOICE_FLIP = "report-noisy-max, exponential noise (permute-and-flip)"
    CHOICE_LAPLACE = "report-noisy-max, Laplace noise"
    CHOICE_GUMBEL = "report-noisy-max, Gumbel noise"
    CHOICE_EXPONENTIAL = "exponential mechanism"
    CHOICE_HISTOGRAM = "noisy histogram, Laplace noise, its largest cells"
    KEYS_GEOMETRIC = "truncated geometric noise, shown above a threshold"
    KEYS_GAUSSIAN = "Gaussian noise, rounded, shown above a threshold"
    KEYS_CHOSEN = "keys shown by chance, the likelier the more units they have"
    ORDER = "exponential mechanism over values"

    @property
    def chooses(self) -> bool:
        return self in _CHOICES


_CHOICES = (
    Mechanism.CHOICE_FLIP,
    Mechanism.CHOICE_LAPLACE,
    Mechanism.CHOICE_GUMBEL,
    Mechanism.CHOICE_EXPONENTIAL,
    Mechanism.CHOICE_HISTOGRAM,
)


@dataclass(frozen=True)
class GaussianShare:
    """A part of one Gaussian release: several measurements of squared l2-sensitivities s, with variances v =
    s V / share, V what covers a sensitivity of 1 at (epsilon, delta). Divided by sqrt(v), all their cells
    together move by at most sum of s / v = sum of shares / V <= 1 / V, squared; so it is one release at that
    price (docs/proofs.md).
    """

    epsilon: Fraction
    delta: Fraction
    share: Fraction
    variance: Fraction

    def covers(self, l2_squared: int) -> bool:
        return self.variance * self.share >= l2_squared * least_variance(1, self.epsilon, self.delta)


@dataclass(frozen=True)
class Measurement:
    """Some integer columns of the exact result, the noise they get, and what that costs.

    `loss` is the epsilon of this measurement, exactly; `noise_scale` the scale of its noise, in the columns'
    units.
    """

    columns: tuple[str, ...]
    mechanism: Mechanism
    sensitivity: Sensitivity
    loss: Fraction
    noise_scale: Fraction
    what: str
    key_release: KeyRelease | None = None  # how keys that nobody declared are let out, with this measurement
    gaussian: GaussianShare | None = None
    picks: int = 1  # how many candidates are chosen, one after the other
    in_groups: bool = False  # one in each group of candidates
    other: str = ""  # what else would have done, and how noisy it is
    step: Fraction = Fraction(1)  # what 1 in its columns is, in the units of the values
    # the quantiles that are sought in a histogram of values: columns are grid points then
    search: Search | None = None

    def __post_init__(self) -> None:
        if self.noise_scale <= 0 or self.loss <= 0 or self.sensitivity.l1 <= 0:
            raise ValueError("noise of scale zero cannot be made")
        if self.key_release is not None:
            touched = self.key_release.contribution
            if self.key_release.epsilon > self.loss or touched.rows < self.sensitivity.linf:
                raise ValueError("the release of keys does not cover the sensitivity")
            if touched.changes * touched.rows < self.sensitivity.l1:
                raise ValueError("the release of keys does not cover the sensitivity")
        elif self.gaussian is not None:
            if self.loss < self.gaussian.share * self.gaussian.epsilon or not self.gaussian.covers(
                self.sensitivity.l2_squared
            ):
                raise ValueError("the noise does not cover the sensitivity")
        elif self.search is not None:
            rows = self.search.change.rows * (2 if self.search.change.replaced else 1)
            if (
                self.search.loss > self.loss
                or rows < self.sensitivity.l1
                or len(self.search.steps) != len(self.columns)
            ):
                raise ValueError("the search does not cover the sensitivity")
        elif self.mechanism is Mechanism.ORDER:
            raise ValueError("values are put in order by a search")
        elif self.mechanism is Mechanism.GAUSSIAN:
            raise ValueError("Gaussian noise needs its share of epsilon and delta")
        elif self.noise_scale * self.loss < needed(
            self.mechanism, self.sensitivity, self.picks, self.in_groups
        ):
            raise ValueError("the noise does not cover the sensitivity")

    @property
    def rate(self) -> Fraction:
        """P(noise = x) ~ exp(-rate |x|)."""
        return 1 / self.noise_scale

    @property
    def law(self) -> Law:
        """How the noise of one cell is distributed, for intervals."""
        if self.gaussian is not None:
            return Gaussian(self.gaussian.variance)
        if isinstance(self.key_release, GaussianThreshold):
            return Gaussian(self.key_release.variance)
        return Laplace(float(self.rate))

    def half_width(self, level: float) -> int:
        """The noise of one cell stays within this so surely."""
        return self.law.half_width(level)

    @property
    def delta_loss(self) -> Fraction:
        if self.gaussian is not None:
            return self.gaussian.share * self.gaussian.delta
        return self.key_release.delta if self.key_release is not None else Fraction(0)

    # What people read: plain numbers.
    @property
    def l1(self) -> int:
        return self.sensitivity.l1

    @property
    def linf(self) -> int:
        return self.sensitivity.linf

    @property
    def why(self) -> str:
        return self.sensitivity.why

    @property
    def scale(self) -> float:
        return float(self.noise_scale)

    @property
    def epsilon(self) -> float:
        return float(self.loss)

    @property
    def delta(self) -> float:
        return float(self.delta_loss)

    @property
    def score_sensitivity(self) -> float | None:
        """How far one person can move the scores of two values apart, where one is chosen by its score; of
        all cells together.
        """
        return None if self.search is None else float(self.search.span)

    def to_dict(self) -> dict[str, object]:
        score = {} if self.search is None else {"score_sensitivity": self.score_sensitivity}
        return {
            "columns": list(self.columns),
            "mechanism": self.mechanism.value,
            "l1": self.l1,
            "linf": self.linf,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "why": self.why,
            "what": self.what,
            **score,
        }


def needed(mechanism: Mechanism, sensitivity: Sensitivity, picks: int = 1, in_groups: bool = False) -> int:
    """What epsilon times the scale must reach.

    Laplace: l1. A choice: a candidate's lead over another one moves by at most 2 linf, and by l1, which holds
    both changes; by linf where all scores move the same way. In groups, the leads in all groups together move
    by at most l1.
    """
    lead = sensitivity.linf if sensitivity.monotone else min(2 * sensitivity.linf, sensitivity.l1)
    match mechanism:
        case Mechanism.CHOICE_EXPONENTIAL:  # the textbook's, which takes no notice of that
            return 2 * (sensitivity.l1 if in_groups else sensitivity.linf) * picks
        case Mechanism.CHOICE_FLIP | Mechanism.CHOICE_LAPLACE | Mechanism.CHOICE_GUMBEL:
            return (sensitivity.l1 if in_groups else lead) * picks
        case _:
            return sensitivity.l1


def measure(
    columns: tuple[str, ...],
    mechanism: Mechanism,
    sensitivity: Sensitivity,
    loss: Fraction,
    what: str,
    picks: int = 1,
    in_groups: bool = False,
) -> Measurement:
    """The least noise that covers the sensitivity at this price."""
    scale = Fraction(needed(mechanism, sensitivity, picks, in_groups)) / loss
    if scale > LARGEST_SCALE:
        raise _too_noisy()
    return Measurement(columns, mechanism, sensitivity, loss, scale, what, picks=picks, in_groups=in_groups)


def measure_gaussian(
    columns: tuple[str, ...],
    sensitivity: Sensitivity,
    epsilon: Fraction,
    delta: Fraction,
    share: Fraction,
    what: str,
) -> Measurement:
    """A share of one Gaussian release at (epsilon, delta)."""
    variance = rounded_up(sensitivity.l2_squared * unit_variance(epsilon, delta) / share)
    if variance > LARGEST_SCALE**2:
        raise _too_noisy()
    joint = GaussianShare(epsilon, delta, share, variance)
    scale = Fraction(math.isqrt(math.ceil(variance * 2**40)) + 1, 2**20)
    return Measurement(columns, Mechanism.GAUSSIAN, sensitivity, share * epsilon, scale, what, gaussian=joint)


def measure_order(
    columns: tuple[str, ...], sensitivity: Sensitivity, sought: Sought, loss: Fraction, what: str
) -> Measurement:
    """Quantiles by the exponential mechanism: P(v) ~ exp(-rows off / scale)."""
    found = sought.at(loss)
    return Measurement(columns, Mechanism.ORDER, sensitivity, found.loss, 1 / found.rate, what, search=found)


def unit_variance(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The variance that covers an l2-sensitivity of 1."""
    try:
        return least_variance(1, epsilon, delta)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "no Gaussian noise is known for this epsilon and delta",
            [("use a larger epsilon or delta",), (Argument("mechanism", '"laplace"'),)],
        ) from None


def _too_noisy() -> ArgumentError:
    return ArgumentError(
        "argument-epsilon",
        "at this epsilon the noise would be larger than 64-bit numbers can hold",
        "use a larger epsilon, fewer outputs, or declare a narrower range",
    )


def measure_keys(
    columns: tuple[str, ...],
    sensitivity: Sensitivity,
    touched: Contribution,
    loss: Fraction,
    delta: Fraction,
    min_units: int,
    counted: bool,
    what: str,
    wanted: Mechanism | None = None,
) -> Measurement:
    """A release of keys that nobody declared: with their counts, by the noise wanted, or (`counted` false) by
    themselves.
    """
    make = _KEYS.get(wanted, _best) if counted else optimal_selection
    try:
        release: KeyRelease = make(loss, delta, touched, min_units)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "at this epsilon and delta keys that nobody declared cannot be shown",
            "use a larger epsilon, and a delta below half of it",
        ) from None
    scale = Fraction(touched.changes * touched.rows) / loss
    match release:
        case GaussianThreshold():
            mechanism, scale = Mechanism.KEYS_GAUSSIAN, Fraction(math.isqrt(math.ceil(release.variance)) + 1)
        case OptimalSelection():
            mechanism = Mechanism.KEYS_CHOSEN
        case _:
            mechanism = Mechanism.KEYS_GEOMETRIC
    return Measurement(columns, mechanism, sensitivity, loss, scale, what, release)


_best = lru_cache(maxsize=64)(best)  # a search that takes some milliseconds
_KEYS: dict[Mechanism | None, Callable[..., KeyRelease]] = {
    Mechanism.GAUSSIAN: lru_cache(maxsize=64)(gaussian_threshold),
    Mechanism.LAPLACE: truncated_geometric,
}
