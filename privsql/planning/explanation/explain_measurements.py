"""The measurements of a plan go in; their part of EXPLAIN comes out: bounds, noise, price and errors."""

from __future__ import annotations

from dataclasses import replace

from privsql.planning.explanation.tree import Branch
from privsql.planning.keys.undeclared_keys import key_release, people_needed
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.plan import Plan
from privsql.planning.precision.noise_of_rows import gains
from privsql.privacy.key_selection import KeyRelease


def explain_measurements(plan: Plan) -> list[Branch]:
    """A branch for each measurement: its bounds, its noise, and how far off its cells may be."""
    return [
        _levelled(_measurement(index + 1, each, plan), plan, each)
        for index, each in enumerate(plan.measurements)
    ]


def _measurement(number: int, measurement: Measurement, plan: Plan) -> Branch:
    title = f"M{number}: {', '.join(measurement.columns)} -- {measurement.what}"
    if isinstance(measurement, KeyMeasurement):
        return Branch(title, measurement.explanation(_instead(measurement.release, plan)))
    return Branch(title, measurement.explanation())


def _instead(release: KeyRelease, plan: Plan) -> list[str]:
    """How keys could have been shown otherwise, and why they are not."""
    assert plan.pricing is not None
    keys = plan.pricing.keys
    if keys is None or keys.other is None:
        return []
    other = key_release(keys.other, plan.loss)
    if other is None:
        return ["counting differently could not show any key at this epsilon"]
    if release.contribution.rows > 1:
        needed = f"{other.shows_at(0.5):,} units, and a share of epsilon"
        return [
            f"a key is shown if it has enough rows, which takes {_people(release)}; "
            f"counting units would take {needed}"
        ]
    return [
        f"a key is shown if it has enough units; counting rows would take {other.shows_at(0.5):,} rows,"
        f" so {_people(other)}"
    ]


def _people(release: KeyRelease) -> str:
    """How many people a key needs to be shown by its rows."""
    rows = release.contribution.rows
    needed = people_needed(release)
    return f"{needed:,} units if each has half of its {rows:,} rows there, more if they have fewer"


def _levelled(branch: Branch, plan: Plan, measurement: Measurement) -> Branch:
    """The branch with what least squares gains at each level, if there are several levels."""
    if plan.levels is None:
        return branch
    found = gains(plan, measurement, 0.95)
    # for very many kinds of rows only an upper bound is computed, which may exceed the true error
    all_better = all(after <= before for _, before, after in found)
    better = " and each more accurate" if all_better else "; the bounds known for the result are wider"
    shown = [f"{kept} ±{after:,.4g} instead of ±{before:,.4g}" for kept, before, after in found]
    text = f"least squares over all sets makes them agree{better}: {', '.join(shown)} at 95%, before rounding"
    return replace(branch, details=(*branch.details, text))
