"""Price and noise are one object: no measurement of any kind can have less noise than its price requires."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

import privsql
from privsql.planning.measurements.label_selection import SELECTIONS
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.measurements.noised import Mechanism

COLUMNS = {"state": {"values": ["CA", "NY"]}, "age": {"range": [0, 120]}}
ASKED = {
    Mechanism.LAPLACE: ("SELECT SUM(age) FROM t", {}),
    Mechanism.GAUSSIAN: ("SELECT COUNT(*) FROM t WHERE age > 3", {"delta": 1e-6, "mechanism": "gaussian"}),
    Mechanism.CHOICE_FLIP: ("SELECT mode(state) FROM t", {}),
    Mechanism.CHOICE_LAPLACE: ("SELECT mode(state) FROM t", {"mechanism": "laplace"}),
    Mechanism.CHOICE_GUMBEL: ("SELECT mode(state) FROM t", {"mechanism": "gumbel"}),
    Mechanism.CHOICE_EXPONENTIAL: ("SELECT mode(state) FROM t", {"mechanism": "exponential"}),
    Mechanism.ORDER: ("SELECT MEDIAN(age) FROM t", {}),
    Mechanism.CHOICE_HISTOGRAM: ("SELECT age FROM t GROUP BY age ORDER BY COUNT(*) DESC LIMIT 60", {}),
    Mechanism.KEYS_CHOSEN: ("SELECT DISTINCT city FROM t GROUP BY city", {"delta": 1e-6}),
    Mechanism.KEYS_GEOMETRIC: ("SELECT city, COUNT(*) FROM t GROUP BY city", {"delta": 1e-6}),
}


def measured(mechanism: Mechanism) -> Measurement:
    frame = pd.DataFrame({"state": ["CA"], "age": [1], "city": ["x"]})
    sql, options = ASKED[mechanism]
    found = privsql.connect({"t": frame}, {"tables": {"t": {"columns": COLUMNS}}}).explain(
        sql, epsilon=1, **options
    )
    assert found.measurements[0].mechanism is mechanism
    return found.measurements[0]


@pytest.mark.parametrize("mechanism", ASKED, ids=lambda each: each.name)
def test_a_measurement_that_does_not_cover_its_sensitivity_cannot_be_made(mechanism):
    one = measured(mechanism)
    replace(one)  # as it is, it can
    for wrong in (
        {"loss": Fraction(0)},
        {"loss": one.loss * Fraction(999, 1000)},
        *({"rate": rate} for rate in (Fraction(0), Fraction(-1)) if hasattr(one, "rate")),
    ):
        with pytest.raises(ValueError, match=r"noise|cover"):
            replace(one, **wrong)
    further = replace(one.sensitivity, l1=one.sensitivity.l1 * 1000, linf=one.sensitivity.linf * 1000)
    with pytest.raises(ValueError, match="cover"):
        replace(one, sensitivity=further)


@pytest.mark.parametrize("mechanism", [Mechanism.LAPLACE, *SELECTIONS], ids=lambda each: each.name)
def test_a_scale_slightly_too_small_is_refused(mechanism):
    one = measured(mechanism)
    with pytest.raises(ValueError, match="cover"):
        replace(one, rate=one.rate * (1 + Fraction(1, 10**12)))


def test_a_constant_measurement_still_has_noise():
    """An unfiltered COUNT(*) under replace-one: 0 would do."""
    plan = privsql.connect(pd.DataFrame({"x": [1]})).explain("SELECT COUNT(*) FROM df", epsilon=1)
    assert plan.measurements[0].l1 == 1 and plan.measurements[0].scale == 1


@pytest.mark.parametrize("mechanism", [Mechanism.LAPLACE, Mechanism.GAUSSIAN, Mechanism.ORDER])
def test_a_label_is_selected_by_a_mechanism_that_selects(mechanism):
    with pytest.raises(ValueError, match="no selection"):
        replace(measured(Mechanism.CHOICE_FLIP), by=mechanism)


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=lambda each: each.name)
def test_a_selection_of_no_candidates_needs_no_noise_and_is_refused(mechanism):
    one = measured(mechanism)
    for picks in (0, -1):
        with pytest.raises(ValueError, match=r"noise|cover"):
            replace(one, picks=picks, rate=one.rate * 1000)


def test_invalid_shares_of_a_gaussian_release_are_refused():
    """With both negative, variance * share is what it should be, though the noise is not."""
    one = measured(Mechanism.GAUSSIAN)
    share, variance = one.joint.share, one.joint.variance
    for wrong in ((-share, -variance), (share * 0, variance), (share * 2, variance / 2)):
        with pytest.raises(ValueError, match="share"):
            replace(one, joint=replace(one.joint, share=wrong[0], variance=wrong[1]))
