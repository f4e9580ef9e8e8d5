"""Measurements without a price and an epsilon go in; priced ones come out: the split of epsilon, and the
noise of each.

An output's error matters relative to its size. One person contributes at most linf to it, so noise of scale
l1 / epsilon is as large as (l1 / linf) / epsilon people, which does not depend on the unit of the values. The
sum of the squares of that, each weighted by the outputs it serves, is least for shares of epsilon
proportional to the cube roots of weight (l1 / linf)^2. For the shares of a Gaussian release, with variances
l2^2 V / share, it is least for the square roots of weight l2^2 / linf^2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privsql.errors import ArgumentError, did_you_mean
from privsql.planning.aggregates.counts import UNCOUNTED
from privsql.planning.aggregates.label_scores import ScorePart
from privsql.planning.aggregates.parts import Part
from privsql.planning.aggregates.quantile_points import OrderPart
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement, measure_gaussian
from privsql.planning.measurements.label_selection import SELECTIONS, measure_selection
from privsql.planning.measurements.laplace_noise import measure_laplace
from privsql.planning.measurements.measurement import CellMeasurement, Measurement
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.partition_selection import measure_keys
from privsql.planning.measurements.quantile_selection import measure_quantiles
from privsql.privacy.key_selection import Contribution

FINENESS = 12  # shares are rounded to a twelfth of an equal share
SLIVER = Fraction(1, 1024)  # of epsilon, for public numbers
LEVEL = 0.95


@dataclass(frozen=True)
class Offer:
    """What the caller pays for a query, and how to use it."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    mechanism: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)  # of outputs; empty: chosen by relative error
    limits: Mapping[str, int] = field(default_factory=dict)
    min_units: int = 1


@dataclass(frozen=True)
class KeysShown:
    """How undeclared keys are shown: by the one part, with these columns, that counts the rows or units of a
    key.
    """

    columns: tuple[str, ...]
    touched: Contribution
    min_units: int
    other: Pricing | None = None  # the other count that could have shown the keys


@dataclass(frozen=True)
class Pricing:
    """Parts, how much each matters, and the noise allowed: enough to price them at any epsilon."""

    parts: tuple[Part, ...]
    importance: tuple[Fraction, ...]
    given: bool  # the importances are the caller's shares of epsilon, whatever the noise
    delta: Fraction
    mechanism: Mechanism | None  # None: the less noisy of Laplace and Gaussian
    keys: KeysShown | None = None
    # the latest result of `at`, which several passes ask for: nothing that it depends on can change
    _latest: dict[Fraction, tuple[Measurement, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def at(self, epsilon: Fraction) -> tuple[Measurement, ...]:
        found = self._latest.get(epsilon)
        if found is None:
            priced = zip(self._at(epsilon), self.parts, strict=True)
            found = tuple(each if part.step == 1 else replace(each, step=part.step) for each, part in priced)
            self._latest.clear()
            self._latest[epsilon] = found
        return found

    def _at(self, epsilon: Fraction) -> tuple[Measurement, ...]:
        public = [part for part in self.parts if part.public]
        if public:
            some = self._some([index for index, part in enumerate(self.parts) if not part.public])
            known = [
                measure_laplace(each.columns, each.sensitivity, SLIVER * epsilon, each.what)
                for each in public
            ]
            priced = {
                each.columns: each for each in (*some._at(epsilon * (1 - len(public) * SLIVER)), *known)
            }
            return tuple(priced[part.columns] for part in self.parts)
        shares = self._shares([each.noise for each in self.parts])
        losses = [share * epsilon for share in shares]
        ordered = {
            index: measure_quantiles(part.columns, part.sensitivity, part.sought, losses[index], part.what)
            for index, part in enumerate(self.parts)
            if isinstance(part, OrderPart)
        }
        rest = [index for index in range(len(self.parts)) if index not in ordered]
        others = (
            dict(zip(rest, self._some(rest)._priced([losses[index] for index in rest]), strict=True))
            if rest
            else {}
        )
        return tuple((ordered | others)[index] for index in range(len(self.parts)))

    def _some(self, chosen: Sequence[int]) -> Pricing:
        return replace(
            self,
            parts=tuple(self.parts[i] for i in chosen),
            importance=tuple(self.importance[i] for i in chosen),
        )

    def _priced(self, losses: Sequence[Fraction]) -> tuple[Measurement, ...]:
        """Price the counts and sums."""
        if self.keys is not None:
            return self._shown(losses, self.keys)
        if self.mechanism in SELECTIONS:
            (part,), (loss,) = self.parts, losses
            assert isinstance(part, ScorePart), "a label is selected by scores"
            bounds = part.sensitivity
            return (
                measure_selection(
                    part.columns, self.mechanism, bounds, loss, part.what, part.picks, part.in_groups
                ),
            )
        if not self.delta or self.mechanism is Mechanism.LAPLACE:
            return self._laplace(losses)
        return self._less_noisy(losses)

    def _laplace(self, losses: Sequence[Fraction]) -> tuple[CellMeasurement, ...]:
        return tuple(
            measure_laplace(part.columns, part.sensitivity, loss, part.what)
            for part, loss in zip(self.parts, losses, strict=True)
        )

    def _shares(self, noise: Sequence[float], joint: bool = False) -> list[Fraction]:
        """Shares of a whole: as the caller gave them, or with the least weighted sum of (noise / share)^2; of
        noise^2 / share if `joint`.
        """
        power = 1 / 2 if joint else 1 / 3
        if self.given:
            sizes = [float(each) for each in self.importance]
        else:
            sizes = [
                (each * loud**2) ** power
                for each, loud in zip(map(float, self.importance), noise, strict=True)
            ]
        whole = [max(1, round(FINENESS * len(sizes) * size / sum(sizes))) for size in sizes]
        return [Fraction(each, sum(whole)) for each in whole]

    def _shown(self, losses: Sequence[Fraction], keys: KeysShown) -> tuple[Measurement, ...]:
        """Price one count that shows keys, with the whole delta; price the other parts as usual, for the
        shown keys.
        """
        shows = next(part for part in self.parts if part.columns == keys.columns)
        counted = not (shows.sensitivity.linf == 1 and shows.what == UNCOUNTED)
        return tuple(
            measure_keys(
                part.columns,
                part.sensitivity,
                keys.touched,
                loss,
                self.delta,
                keys.min_units,
                counted,
                part.what,
                self.mechanism,
            )
            if part is shows
            else measure_laplace(part.columns, part.sensitivity, loss, part.what)
            for part, loss in zip(self.parts, losses, strict=True)
        )

    def _less_noisy(self, losses: Sequence[Fraction]) -> tuple[Measurement, ...]:
        """Use Gaussian noise for the measurements that gain most: those in which one person touches the most
        cells.
        """
        laplace = self._laplace(losses)
        order = sorted(
            range(len(self.parts)),
            key=lambda i: -self.parts[i].sensitivity.l1 / self.parts[i].sensitivity.usual,
        )
        everyone = self._gaussian(order, losses)
        if self.mechanism is Mechanism.GAUSSIAN:
            return tuple(_beside(everyone[i], laplace[i]) for i in range(len(laplace)))
        best: Sequence[CellMeasurement] = laplace
        for many in range(1, len(order) + 1):
            some = self._gaussian(order[:many], losses)
            mixed = [some.get(index, each) for index, each in enumerate(laplace)]
            if self._noise(mixed) < self._noise(best):
                best = mixed
        return tuple(
            _beside(each, laplace[i] if isinstance(each, GaussianMeasurement) else everyone[i])
            for i, each in enumerate(best)
        )

    def _gaussian(self, chosen: Sequence[int], losses: Sequence[Fraction]) -> dict[int, GaussianMeasurement]:
        """Some measurements as one Gaussian release, for the epsilon that they would cost separately."""
        some = self._some(chosen)
        epsilon = sum((losses[i] for i in chosen), Fraction(0))
        noise = [math.sqrt(each.sensitivity.l2_squared) / each.sensitivity.usual for each in some.parts]
        return {
            index: measure_gaussian(part.columns, part.sensitivity, epsilon, self.delta, share, part.what)
            for index, part, share in zip(chosen, some.parts, some._shares(noise, joint=True), strict=True)
        }

    def _noise(self, measurements: Sequence[CellMeasurement]) -> float:
        return sum(
            float(weight) * (each.half_width(LEVEL) / each.sensitivity.usual) ** 2
            for weight, each in zip(self.importance, measurements, strict=True)
        )


def _beside(chosen: CellMeasurement, other: CellMeasurement) -> CellMeasurement:
    return replace(
        chosen, other=f"{other.mechanism.value} noise would be within ±{other.half_width(LEVEL):,} at 95%"
    )


def importances(
    uses: Mapping[str, Sequence[int]], parts: int, weights: Mapping[str, float]
) -> tuple[tuple[Fraction, ...], bool]:
    """How much each part matters: the number of outputs it serves, or the largest of their given weights."""
    if isinstance(weights, Mapping) and not weights:
        return tuple(
            Fraction(max(1, sum(part in used for used in uses.values()))) for part in range(parts)
        ), False
    if not isinstance(weights, Mapping):
        raise ArgumentError(
            "argument-weights",
            "weights must map names of outputs to numbers",
            f"weights={{{next(iter(uses))!r}: 2}}",
        )
    for name, weight in weights.items():
        if name not in uses:
            raise ArgumentError(
                "argument-weights",
                f"the query has no output {name!r} to weight",
                did_you_mean(str(name), list(uses)),
            )
        if (
            isinstance(weight, bool)
            or not isinstance(weight, (int, float, Fraction))
            or not 0 < weight < 1e100
        ):
            raise ArgumentError(
                "argument-weights", "a weight must be a positive number", f"weights={{{name!r}: 2}}"
            )
    served = [
        [Fraction(weights.get(name, 1)) for name, used in uses.items() if part in used]
        for part in range(parts)
    ]
    return tuple(max(each, default=Fraction(1)) for each in served), True
