"""What was released, in exact numbers, and nothing of the data: a closed list of events, which accountants
price.

Every event states an epsilon and a delta at which it is private by itself, under the neighbour relation of
its ledger, and what else is known of it. Whoever makes an event has proved that; what cannot be true is
refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from privsql.privacy.gaussian import greatest_ratio

FINEST_CHANCE = 10**18  # chances are rounded up to whole parts of one, so many in 1

# what was proved once stays readable, though a later proof should find a hair less
_DOUBT = Fraction(1025, 1024)


@dataclass(frozen=True)
class _InParts:
    epsilon: Fraction
    parts: int = 1

    def __post_init__(self) -> None:
        _private(self.epsilon, self.delta)
        _counted(self.parts)

    @property
    def delta(self) -> Fraction:
        return Fraction(0)


@dataclass(frozen=True)
class Pure(_InParts):
    """Anything epsilon-private of which no more is known, such as report-noisy-max and permute-and-flip; or
    so many such releases, one after the other, each (epsilon/parts)-private.
    """


@dataclass(frozen=True)
class Choice(_InParts):
    """A choice by the exponential mechanism: for any two neighbours the logarithms of the ratios of the
    chances of all that may be chosen lie in an interval of length epsilon (bounded range); or so many, one
    after the other, of epsilon/parts.
    """


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of this scale on each of some whole numbers: their changes sum to at most l1, none passes
    linf.
    """

    epsilon: Fraction
    l1: int
    linf: int
    scale: Fraction

    def __post_init__(self) -> None:
        _private(self.epsilon, self.delta)
        _exact(self.l1, self.linf, self.scale)
        if not 0 < self.linf <= self.l1 or self.scale <= 0 or self.epsilon * self.scale < self.l1:
            raise ValueError("Laplace noise of this scale is not so private")

    @property
    def delta(self) -> Fraction:
        return Fraction(0)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise on some numbers: squares of changes, each divided by the variance of its noise, sum to
    at most ratio.
    """

    epsilon: Fraction
    delta: Fraction
    ratio: Fraction

    def __post_init__(self) -> None:
        _private(self.epsilon, self.delta)
        _exact(self.ratio)
        if not 0 < self.ratio <= _DOUBT * greatest_ratio(self.epsilon, self.delta) ** 2:
            raise ValueError("Gaussian noise of this variance is not so private")


@dataclass(frozen=True)
class Keys:
    """Keys that nobody declared, each shown or hidden by itself: neighbours differ in at most `changes` of
    them, and each is (epsilon/changes, delta/changes)-private.
    """

    epsilon: Fraction
    delta: Fraction
    changes: int

    def __post_init__(self) -> None:
        _private(self.epsilon, self.delta)
        _counted(self.changes)
        if not self.delta:
            raise ValueError("to show keys takes a delta")


@dataclass(frozen=True)
class GaussianKeys:
    """Keys that nobody declared, each with a count that has Gaussian noise and passes a threshold. `ratio` as
    for Gaussian; `exclusive` bounds the chance that any key is shown which only one of the two neighbours
    has.
    """

    epsilon: Fraction
    delta: Fraction
    ratio: Fraction
    exclusive: Fraction

    def __post_init__(self) -> None:
        _private(self.epsilon, self.delta)
        _exact(self.ratio, self.exclusive)
        if self.ratio <= 0 or not 0 < self.exclusive <= self.delta:
            raise ValueError("a threshold on noisy counts is not so private")


Event = Pure | Choice | Laplace | Gaussian | Keys | GaussianKeys
EVENTS: dict[str, type[Event]] = {each.__name__: each for each in get_args(Event)}


def at_most(event: Event) -> Event:
    """What a release is charged as while its bounds are not known: the worst event of its kind."""
    return Pure(event.epsilon) if isinstance(event, Laplace) else event


def covers(charged: Event, event: Event) -> bool:
    """Whether a charge for one event pays for another, by every accountant."""
    if event.epsilon > charged.epsilon or event.delta > charged.delta:
        return False
    match charged, event:
        case Pure(parts=1), Pure() | Choice() | Laplace():
            return True  # nothing of this epsilon loses more
        case Gaussian(), Gaussian():
            return event.ratio <= charged.ratio
        case GaussianKeys(), GaussianKeys():
            return event.ratio <= charged.ratio and event.exclusive <= charged.exclusive
        case _:
            return event == charged


def _exact(*numbers: object) -> None:
    if any(isinstance(each, bool) or not isinstance(each, (int, Fraction)) for each in numbers):
        raise ValueError("an event is made of whole numbers and fractions")


def _counted(parts: int) -> None:
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise ValueError("an event has a whole number of parts, at least one")


def _private(epsilon: Fraction, delta: Fraction) -> None:
    _exact(epsilon, delta)
    if epsilon <= 0 or not 0 <= delta < 1:
        raise ValueError("an event has an epsilon above 0 and a delta from 0 to below 1")
