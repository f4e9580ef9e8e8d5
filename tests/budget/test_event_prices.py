"""Events are priced in exact numbers, on the safe side: against divergences of real laws, and from rho to epsilon and back."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privsql
from privsql.budget.accountants import Addition, Zcdp
from privsql.budget.amount import ATTO, Cap, Loss
from privsql.budget.released import Released, released
from privsql.planning.measurements.partition_selection import measure_keys
from privsql.policy.checks import NANO
from privsql.privacy.events import EVENTS, Choice, Gaussian, GaussianKeys, Keys, Laplace, Pure
from privsql.privacy.key_selection import Contribution, gaussian_threshold
from privsql.privacy.sensitivity import Sensitivity
from privsql.privacy.zcdp import least_epsilon, zcdp_of
from tests.conformance.accountants.accountant_suite import (
    DELTA,
    ONE,
    OTHERS,
    PURE,
    converted,
    gaussian,
    laplace,
)
from tests.conftest import POLICY, clinic

ORDERS = (1.0001, 1.5, 2.0, 3.0, 8.0, 32.0, 200.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pure(0.5), lambda: Pure(math.nan), lambda: Pure(True), lambda: Pure(Fraction(0)), lambda: Pure(Fraction(-1)),
        lambda: Pure(None), lambda: Choice(math.inf), lambda: laplace(Fraction(1), 1, 2), lambda: laplace(Fraction(1), 2, 0),
        lambda: Laplace(Fraction(1), 2, 1, Fraction(19, 10)), lambda: Laplace(Fraction(1), 1, 1, Fraction(0)),
        lambda: Gaussian(Fraction(1), Fraction(0), Fraction(1, 100)),
        lambda: Gaussian(Fraction(1), DELTA, Fraction(1, 16)),
        lambda: replace(gaussian(Fraction(1), DELTA), epsilon=Fraction(99, 100)),
        lambda: Keys(Fraction(1), Fraction(0), 1), lambda: Keys(Fraction(1), Fraction(1), 1), lambda: Keys(Fraction(1), DELTA, 0),
        lambda: GaussianKeys(Fraction(1), DELTA, Fraction(0), DELTA),
        lambda: Pure(Fraction(1), 0), lambda: Choice(Fraction(1), 1.5),
        lambda: GaussianKeys(Fraction(1), DELTA, Fraction(1), 2 * DELTA),
    ],
)  # fmt: skip
def test_impossible_events_are_refused(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize("event", [*PURE, *OTHERS], ids=lambda each: type(each).__name__)
def test_events_are_kept_exactly(event):
    record = Released("noise", "COUNT(*)", event)
    assert Released.of_json(json.loads(json.dumps(record.to_json()))) == record
    assert str(record) == "noise of COUNT(*)"
    assert type(event).__name__ in EVENTS


def divergence(first: np.ndarray, second: np.ndarray, order: float) -> float:
    """Of Renyi."""
    logs = order * np.log(first) + (1.0 - order) * np.log(second)
    return float((np.log(np.sum(np.exp(logs - logs.max()))) + logs.max()) / (order - 1.0))


def least_rho(first: np.ndarray, second: np.ndarray) -> float:
    """The least rho for which two laws are rho-zCDP, over some orders."""
    return max(
        divergence(*pair, order) / order for order in ORDERS for pair in ((first, second), (second, first))
    )


def test_the_rho_of_laplace_noise():
    """All ways in which whole numbers can move by l1 together and linf each; the worst comes close to the bound."""
    reach = np.arange(-400, 401)
    for rate in (0.05, 0.3, 1.0):
        moved = {}
        for by in range(5):
            laws = [np.exp(-rate * np.abs(reach - place)) for place in (0, by)]
            moved[by] = [
                divergence(laws[0] / laws[0].sum(), laws[1] / laws[1].sum(), order) / order
                for order in ORDERS
            ]
        for l1, linf in ((1, 1), (2, 1), (4, 1), (4, 2), (4, 4)):
            shares = [each for each in itertools.product(range(linf + 1), repeat=4) if 0 < sum(each) <= l1]
            worst = max(
                sum(moved[by][place] for by in each) for each in shares for place in range(len(ORDERS))
            )
            exact = Fraction(repr(rate))
            rho = float(zcdp_of(Laplace(l1 * exact, l1, linf, 1 / exact))[0])
            assert worst <= rho * (1 + 1e-9)
            assert worst > 0.9 * rho or rate * linf > 0.5


def test_the_rho_of_the_exponential_mechanism():
    """Any scores that move by at most 1: never above epsilon^2/8, and almost that at worst."""
    chance, worst = np.random.default_rng(7), 0.0
    for trial in range(400):
        epsilon = (0.1, 0.5, 1.0, 3.0)[trial % 4]
        scores = chance.integers(-6, 7, size=int(chance.integers(2, 6))).astype(float)
        moved = scores + chance.choice([-1.0, 1.0], size=scores.size)
        laws = [np.exp(epsilon / 2 * each) / np.exp(epsilon / 2 * each).sum() for each in (scores, moved)]
        rho = float(zcdp_of(Choice(Fraction(repr(epsilon))))[0])
        found = least_rho(*laws)
        assert found <= rho * (1 + 1e-9)
        worst = max(worst, found / rho)
    assert worst > 0.95


def test_permute_and_flip_costs_at_most_its_epsilon():
    """Two candidates that tie, and then are 2 apart: four times the rho of the exponential mechanism, which would be wrong."""
    epsilon = 0.1
    tied, apart = np.array([0.5, 0.5]), np.array([1 - math.exp(-epsilon) / 2, math.exp(-epsilon) / 2])
    rho, found = float(zcdp_of(Pure(Fraction(1, 10)))[0]), least_rho(tied, apart)
    assert float(zcdp_of(Choice(Fraction(1, 10)))[0]) * 3 < found <= rho


def test_a_multiple_event_costs_that_many_releases():
    for kind, parts in itertools.product((Pure, Choice), (1, 2, 7)):
        one, many = kind(Fraction(1, 10)), kind(Fraction(parts, 10), parts)
        for count in (Addition(), Zcdp()):
            assert count.price([one] * parts) == count.price([many])


def test_large_losses_cost_no_more_rho_than_epsilon():
    for epsilon in (Fraction(1), Fraction(4), Fraction(20)):
        coin = np.array([1.0, math.exp(float(epsilon))]) / (1 + math.exp(float(epsilon)))
        assert (
            least_rho(coin, coin[::-1])
            <= float(zcdp_of(Pure(epsilon))[0])
            == min(float(epsilon**2 / 2), epsilon)
        )


def test_the_event_of_a_gaussian_threshold():
    touched = Contribution(3, 2, 6)
    made = measure_keys(
        ("n",), Sensitivity(12, 2, "why"), touched, Fraction(1), Fraction(1, 10**6), 1, True, "COUNT(*)"
    )
    keys = gaussian_threshold(Fraction(1), Fraction(1, 10**6), touched)
    (event,) = replace(made, release=keys).events
    assert isinstance(event, GaussianKeys)
    assert event.ratio == 6 * 4 / keys.variance
    shown = 3 * stats.norm.sf((keys.limit - 2 + 0.5) / math.sqrt(keys.variance))
    assert shown <= float(event.exclusive) <= shown * 1.001 + 1e-18
    assert zcdp_of(event) == (event.ratio / 2, event.exclusive)
    assert event.delta == Fraction(1, 10**6)


QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM visits", {}),
    ("SELECT state, COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS c FROM visits GROUP BY state", {}),
    (
        "SELECT state, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY state",
        {"delta": 1e-6, "mechanism": "gaussian"},
    ),
    ("SELECT mode(state) FROM visits", {}),
    ("SELECT mode(state) FROM visits", {"mechanism": "gumbel"}),
    ("SELECT mode(state) FROM visits", {"mechanism": "laplace"}),
    ("SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 2", {"mechanism": "gumbel"}),
    ("SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 2", {}),
    ("SELECT median(age) AS m, COUNT(*) AS n FROM visits", {}),
    ("SELECT quantile_disc(age, [0.1, 0.5, 0.9]) AS q FROM visits", {}),
    ("SELECT change, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY change", {"delta": 1e-6}),
    ("SELECT DISTINCT change FROM visits", {"delta": 1e-6}),
]


@pytest.mark.parametrize(("sql", "options"), QUESTIONS)
def test_plans_and_accountants_name_one_price(sql, options):
    plan = privsql.connect({"visits": clinic(50)}, POLICY).explain(sql, epsilon=0.75, **options)
    records = released(plan.measurements)
    price = Addition().price([each.event for each in records])
    assert price.nano == math.ceil(plan.loss * NANO)
    assert price.atto_delta == math.ceil(plan.delta_loss * ATTO)
    assert Zcdp().price([each.event for each in records]).nano > 0
    for each in plan.measurements:
        assert any(each.what in record.what for record in records)


def test_gaussian_measurements_are_one_event():
    plan = privsql.connect({"visits": clinic(50)}, POLICY).explain(
        QUESTIONS[2][0], epsilon=1, delta=1e-6, mechanism="gaussian"
    )
    (record,) = released(plan.measurements)
    assert len(plan.measurements) > 1
    assert isinstance(record.event, Gaussian)
    assert record.event.ratio == sum(
        each.sensitivity.l2_squared / each.joint.variance for each in plan.measurements
    )
    assert (record.event.epsilon, record.event.delta) == (1, Fraction(1, 10**6))


# -- rho and epsilon -------------------------------------------------------------------------------------------


PROMISES = [
    (epsilon, delta)
    for epsilon in ("0.01", "0.1", "1", "3", "20", "300")
    for delta in ("1e-3", "1e-6", "1e-12", "1e-17")
]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_the_cap_on_rho_is_safe_and_tight(epsilon, delta):
    dataset = Cap(int(Fraction(epsilon) * NANO), int(Fraction(delta) * ATTO))
    limit = Zcdp(Fraction(0)).limit(dataset)
    assert limit.atto_delta == 0
    if limit.nano:
        assert converted(limit.nano / NANO, float(epsilon)) <= float(delta) * (1 + 1e-9)
    assert converted((limit.nano + 2) / NANO * 1.0001, float(epsilon)) > float(delta)


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_rho_converts_back_to_epsilon(epsilon, delta):
    wanted = Fraction(delta)
    for rho in (Fraction(1, 10**6), Fraction(1, 40), Fraction(2), Fraction(500)):
        found = least_epsilon(rho, wanted)
        assert converted(float(rho), float(found)) <= float(delta) * (1 + 1e-7)
        assert found < Fraction(1, 10**9) or converted(float(rho), float(found) * 0.999) > float(delta)
    limit = Zcdp(Fraction(0)).limit(Cap(int(Fraction(epsilon) * NANO), int(wanted * ATTO)))
    if limit.nano > 10**6:
        assert float(least_epsilon(Fraction(limit.nano, NANO), wanted)) == pytest.approx(
            float(epsilon), rel=1e-4
        )


def test_a_part_of_delta_is_set_aside_for_keys():
    whole, half = Zcdp(Fraction(0)).limit(ONE), Zcdp(Fraction(1, 2)).limit(ONE)
    assert half == Cap(Zcdp(Fraction(0)).limit(Cap(NANO, 5 * 10**11)).nano, 5 * 10**11)
    assert half.nano < whole.nano
    assert Zcdp().limit(ONE).atto_delta == 10**11
    assert Zcdp().conversion_delta(ONE) + Fraction(10**11, ATTO) == Fraction(1, 10**6)
    assert Zcdp(Fraction(1, 3)).conversion_delta(Cap(NANO, 10)) == Fraction(
        7, ATTO
    )  # rounded for the conversion's sake


def test_tiny_budgets_have_no_rho():
    assert Zcdp().limit(Cap(1000, 10)).nano == 0
    assert Zcdp().limit(Cap(NANO, 0)) == Cap(0, 0)


def test_spent_rho_is_shown_as_epsilon():
    zcdp = Zcdp()
    assert zcdp.stands_for(Loss(), ONE).epsilon == 0
    spent = zcdp.stands_for(Loss(10**6, 5 * 10**9), ONE)
    assert spent.rho == 0.001
    assert spent.epsilon == pytest.approx(float(least_epsilon(Fraction(1, 1000), Fraction(9, 10**7))))
    assert spent.delta == pytest.approx(9e-7 + 5e-9)
