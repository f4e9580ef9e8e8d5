"""Partition selection: undeclared keys are shown only if enough people have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privsql.errors import ArgumentError
from privsql.planning.measurements.noised import Mechanism, Noised
from privsql.privacy.accuracy import GaussianLaw, Law
from privsql.privacy.events import FINEST_CHANCE, Event, GaussianKeys, Keys
from privsql.privacy.gaussian import tail_above
from privsql.privacy.key_selection import (
    Contribution,
    GaussianThreshold,
    KeyRelease,
    OptimalSelection,
    TruncatedGeometric,
    best,
    gaussian_threshold,
    optimal_selection,
    truncated_geometric,
)
from privsql.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class KeyMeasurement(Noised):
    """Keys that pass a threshold, with their noisy counts or alone."""

    release: KeyRelease

    def _check(self) -> None:
        touched = self.release.contribution
        if self.release.epsilon > self.loss or touched.rows < self.sensitivity.linf:
            raise ValueError("the release of keys does not cover the sensitivity")
        if touched.changes * touched.rows < self.sensitivity.l1:
            raise ValueError("the release of keys does not cover the sensitivity")

    @property
    def mechanism(self) -> Mechanism:
        match self.release:
            case GaussianThreshold():
                return Mechanism.KEYS_GAUSSIAN
            case OptimalSelection():
                return Mechanism.KEYS_CHOSEN
            case _:
                return Mechanism.KEYS_GEOMETRIC

    @property
    def noise_scale(self) -> Fraction:
        if isinstance(self.release, GaussianThreshold):
            return Fraction(math.isqrt(math.ceil(self.release.variance)) + 1)
        return Fraction(self.release.contribution.changes * self.release.contribution.rows) / self.loss

    @property
    def law(self) -> Law:
        if isinstance(self.release, GaussianThreshold):
            return GaussianLaw(self.release.variance)
        return super().law

    @property
    def delta_loss(self) -> Fraction:
        return self.release.delta

    @property
    def shows_counts(self) -> bool:
        return not isinstance(self.release, OptimalSelection)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that it charges."""
        touched = self.release.contribution
        if not isinstance(self.release, GaussianThreshold):
            return (Keys(self.loss, self.delta_loss, touched.changes),)
        ratio = Fraction(touched.changes * touched.rows**2) / self.release.variance
        return (GaussianKeys(self.loss, self.delta_loss, ratio, _exclusive(self.release)),)

    def explanation(self, instead: Sequence[str] = ()) -> tuple[str, ...]:
        """The lines of EXPLAIN. `instead`: how keys could have been shown otherwise."""
        return (*self._keys_explained(), *instead, *self._counts_explained())

    def _keys_explained(self) -> list[str]:
        """How large a key must be to be shown."""
        release = self.release
        what = "units" if release.contribution.rows == 1 else "rows"
        half, sure = release.shows_at(0.5), release.shows_at(0.95)
        return [
            f"l1 = {self.l1:,}, linf = {self.linf:,}: {self.why}",
            f"{self.mechanism.value}: {self._noise()}",
            f"a key is shown with probability 50% from {half:,} {what} on, with 95% from {sure:,}; "
            "the answer does not say which keys are missing",
        ]

    def _counts_explained(self) -> list[str]:
        lines = []
        if self.release.min_units > 1:
            lines.append(
                f"no key with fewer than {self.release.min_units:,} units is ever shown (policy: min_units)"
            )
        if self.shows_counts:
            lines.append(f"each count is within ±{self.half_width(0.95):,} at 95%")
        return lines

    def _noise(self) -> str:
        match self.release:
            case TruncatedGeometric() as release:
                how = (
                    f"scale = l1 / epsilon = {self.scale:,.6g}, cut at ±{release.bound:,}; "
                    f"shown above {release.threshold:,}"
                )
                coin = f"; a coin for each key lowers both by 1 with probability {float(release.share):.2%}"
                return how + (coin if release.lesser else "")
            case GaussianThreshold() as release:
                deviation = float(release.variance) ** 0.5
                return f"standard deviation {deviation:,.4g}; shown above {release.threshold:,}"
            case _:
                return "no count is released"


def _exclusive(release: GaussianThreshold) -> Fraction:
    """The probability that a key which only one of the neighbours has is shown, rounded up, over at most
    `groups` of these keys.
    """
    touched = release.contribution
    tail = tail_above(release.variance, release.limit - touched.rows)
    exclusive = Fraction(math.ceil(touched.groups * tail * FINEST_CHANCE), FINEST_CHANCE)
    return min(release.delta, exclusive)


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
) -> KeyMeasurement:
    """A release of undeclared keys: with their counts and this mechanism, or without counts (`counted`
    false).
    """
    make = _KEYS.get(wanted, _best) if counted else optimal_selection
    try:
        release: KeyRelease = make(loss, delta, touched, min_units)
    except ValueError:
        raise ArgumentError(
            "argument-delta",
            "at this epsilon and delta no undeclared key could be shown",
            "use a larger epsilon, and a delta below half of epsilon",
        ) from None
    return KeyMeasurement(columns, sensitivity, loss, what, release)


_best = lru_cache(maxsize=64)(best)  # the search takes some milliseconds
_KEYS: dict[Mechanism | None, Callable[..., KeyRelease]] = {
    Mechanism.GAUSSIAN: lru_cache(maxsize=64)(gaussian_threshold),
    Mechanism.LAPLACE: truncated_geometric,
}
