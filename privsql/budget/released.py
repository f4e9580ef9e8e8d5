"""Measurements go in; what a ledger writes down of them comes out: what was released, how, and the event that
is priced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

from privsql.budget.amount import ATTO
from privsql.planning.measurements.measurement import Measurement, Mechanism
from privsql.privacy.events import EVENTS, Choice, Event, Gaussian, GaussianKeys, Keys, Laplace, Pure
from privsql.privacy.gaussian import tail_above
from privsql.privacy.key_selection import GaussianThreshold, KeyRelease


@dataclass(frozen=True)
class Released:
    """One event, and in words what it was."""

    mechanism: str
    what: str
    event: Event

    def __str__(self) -> str:
        return f"{self.mechanism} of {self.what}"

    def to_json(self) -> dict[str, Any]:
        numbers = {
            name: str(value) if isinstance(value, Fraction) else value
            for name, value in asdict(self.event).items()
        }
        return {"mechanism": self.mechanism, "what": self.what, "event": type(self.event).__name__, **numbers}

    @staticmethod
    def of_json(raw: Mapping[str, Any]) -> Released:
        return Released(
            raw["mechanism"], raw["what"], _event(raw) if "event" in raw else _event_of_format_1(raw)
        )


def _event(raw: Mapping[str, Any]) -> Event:
    kind = EVENTS[raw["event"]]
    exact: dict[str, Any] = {
        each.name: Fraction(raw[each.name]) if each.type == "Fraction" else raw[each.name]
        for each in fields(kind)
    }
    return kind(**exact)


def _event_of_format_1(raw: Mapping[str, Any]) -> Event:
    """The first format knew an epsilon and a delta, which added up."""
    epsilon, delta = Fraction(raw["epsilon"]), Fraction(raw["delta"])
    return Keys(epsilon, delta, 1) if delta else Pure(epsilon)


def released(measurements: Sequence[Measurement]) -> list[Released]:
    """What is to be charged for these measurements of one question. Gaussian ones are one release
    together.
    """
    alone = [
        Released(each.mechanism.value, each.what, event)
        for each in measurements
        if each.gaussian is None
        for event in events_of(each)
    ]
    joint: dict[tuple[Fraction, Fraction], list[Measurement]] = {}
    for each in measurements:
        if each.gaussian is not None:
            joint.setdefault((each.gaussian.epsilon, each.gaussian.delta), []).append(each)
    together = []
    for (epsilon, delta), some in joint.items():
        parts = (each.sensitivity.l2_squared / each.gaussian.variance for each in some if each.gaussian)
        ratio = sum(parts, Fraction(0))
        what = ", ".join(each.what for each in some)
        together.append(Released(Mechanism.GAUSSIAN.value, what, Gaussian(epsilon, delta, ratio)))
    return alone + together


def events_of(measurement: Measurement) -> list[Event]:
    """Of one measurement by itself, which has no Gaussian noise that it shares with others."""
    epsilon, delta, release = measurement.loss, measurement.delta_loss, measurement.key_release
    match measurement.mechanism:
        # what is done with a noisy histogram is post-processing
        case Mechanism.LAPLACE | Mechanism.CHOICE_HISTOGRAM:
            return [Laplace(epsilon, measurement.l1, measurement.linf, measurement.noise_scale)]
        case Mechanism.CHOICE_GUMBEL | Mechanism.CHOICE_EXPONENTIAL:
            return [Choice(epsilon, measurement.picks)]
        case Mechanism.CHOICE_FLIP | Mechanism.CHOICE_LAPLACE:
            return [Pure(epsilon, measurement.picks)]
        case Mechanism.ORDER if measurement.search is not None:
            return [Choice(each) for each in measurement.search.losses]
        case Mechanism.KEYS_GEOMETRIC | Mechanism.KEYS_CHOSEN if release is not None:
            return [Keys(epsilon, delta, release.contribution.changes)]
        case Mechanism.KEYS_GAUSSIAN if isinstance(release, GaussianThreshold):
            return [GaussianKeys(epsilon, delta, _ratio(release, release.variance), _exclusive(release))]
        case _:
            raise ValueError(f"no event is known for {measurement.mechanism.value}")


def _ratio(release: KeyRelease, variance: Fraction) -> Fraction:
    touched = release.contribution
    return Fraction(touched.changes * touched.rows**2) / variance


def _exclusive(release: GaussianThreshold) -> Fraction:
    """The chance that a key which one of the neighbours alone has is shown, rounded up: at most `groups` such
    keys.
    """
    touched = release.contribution
    tail = tail_above(release.variance, release.limit - touched.rows)
    return min(release.delta, Fraction(math.ceil(touched.groups * tail * ATTO), ATTO))
