"""Measurements go in; the records of a ledger come out: what was released, how, and the event that
is priced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

from privsql.planning.measurements.gaussian_noise import GaussianMeasurement, gaussian_event
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.noised import Mechanism
from privsql.privacy.events import EVENTS, Event, Keys, Pure, at_most


@dataclass(frozen=True)
class Released:
    """An event, with a text on what was released."""

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
    """An event of format 1, which had only an epsilon and a delta, which added up."""
    epsilon, delta = Fraction(raw["epsilon"]), Fraction(raw["delta"])
    return Keys(epsilon, delta, 1) if delta else Pure(epsilon)


def released(measurements: Sequence[Measurement]) -> list[Released]:
    """What to charge for the measurements of one query. Its Gaussian measurements are one joint release."""
    alone: list[Released] = []
    joint: dict[tuple[Fraction, Fraction], list[GaussianMeasurement]] = {}
    for each in measurements:
        if isinstance(each, GaussianMeasurement):
            joint.setdefault((each.joint.epsilon, each.joint.delta), []).append(each)
        else:
            alone += [Released(each.mechanism.value, each.what, event) for event in each.events]
    together = [
        Released(Mechanism.GAUSSIAN.value, ", ".join(each.what for each in some), gaussian_event(some))
        for some in joint.values()
    ]
    return alone + together


def released_later(measurements: Sequence[Measurement]) -> list[Released]:
    """What to charge before the constants of a release are known, on which its bounds and scales depend."""
    return [
        Released(each.mechanism, "a second stage, whose constants were not known yet", at_most(each.event))
        for each in released(measurements)
    ]
