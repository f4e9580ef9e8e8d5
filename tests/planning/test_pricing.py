"""How epsilon is split over the outputs, and which noise is smaller: the parts never cost more than the whole."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.planning.measurements.gaussian_noise import GaussianMeasurement, GaussianShare
from privsql.planning.measurements.noised import Mechanism
from privsql.privacy.gaussian import analytic_delta

POLICY = {
    "tables": {"df": {"columns": {"x": {"range": [0, 9]}, "y": {"range": [-5, 5]}, "k": {"range": [0, 3]}}}}
}
ROWS = pd.DataFrame({"x": [1, 2, 3], "y": [0.0, None, -1.0], "k": [0, 1, 2]})


@pytest.fixture(params=["replace-one", "add-remove"], scope="module")
def session(request) -> privsql.Session:
    return privsql.connect(ROWS, {"neighbours": request.param, **POLICY})


QUESTIONS = [
    "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(y) AS a FROM df",
    "SELECT k, COUNT(*) AS n, SUM(x) AS s, STDDEV(y) AS d FROM df GROUP BY k",
    "SELECT COUNT(*) AS n, MEDIAN(x) AS m FROM df",
    "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE x > {i}) AS n{i}" for i in range(9)) + " FROM df",
]


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_shares_sum_to_epsilon(session, sql, delta, epsilon):
    plan = session.explain(sql, epsilon=epsilon, delta=delta)
    assert sum(each.loss for each in plan.measurements) <= Fraction(str(epsilon))
    assert sum(each.loss for each in plan.measurements) >= Fraction(str(epsilon)) * Fraction(99, 100)
    assert plan.delta in (0.0, pytest.approx(delta))
    again = plan.repriced(Fraction(str(epsilon)))
    assert again.measurements == plan.measurements


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_a_gaussian_release_is_private_as_a_whole(session, delta):
    """All cells together, divided by their deviations: one mechanism, whose delta is computed anew."""
    plan = session.explain(QUESTIONS[3], epsilon=1, delta=delta, mechanism="gaussian")
    ratio = sum(each.sensitivity.l2_squared / each.joint.variance for each in plan.measurements)
    assert analytic_delta(ratio, Fraction(1), Fraction(1)) <= Fraction(delta)
    assert plan.epsilon == 1
    assert plan.delta == pytest.approx(delta)


def test_a_share_cannot_pay_for_more_than_itself(session):
    plan = session.explain(QUESTIONS[3], epsilon=1, delta=1e-6, mechanism="gaussian")
    one = plan.measurements[0]
    assert isinstance(one, GaussianMeasurement)
    assert one.l2 == pytest.approx(one.sensitivity.l2_squared**0.5)
    with pytest.raises(ValueError, match="cover"):
        replace(one, joint=replace(one.joint, variance=one.joint.variance * one.joint.share))
    with pytest.raises(ValueError, match="whole"):
        replace(plan.releases[0], measurements=plan.measurements[:-1])
    assert not GaussianShare(Fraction(1), Fraction(1, 10**6), Fraction(1, 2), Fraction(20)).covers(1)


def test_the_smaller_noise_is_chosen(session):
    few = session.explain("SELECT COUNT(*) FROM df", epsilon=1, delta=1e-6)
    assert few.measurements[0].mechanism is Mechanism.LAPLACE
    assert few.delta == 0
    many = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE x + y > {i})" for i in range(14)) + " FROM df"
    plan = session.explain(many, epsilon=1, delta=1e-6)
    assert {each.mechanism for each in plan.measurements} == {Mechanism.GAUSSIAN}
    laplace = session.explain(many, epsilon=1, delta=1e-6, mechanism="laplace")
    assert plan.measurements[0].half_width(0.95) < laplace.measurements[0].half_width(0.95)
    assert f"±{laplace.measurements[0].half_width(0.95):,}" in str(plan)


@pytest.mark.slow
def test_100_counts_of_the_design():
    """(1, 1e-6): standard deviation 141 with Laplace; about 42 with one Gaussian release (zCDP composition gives 45)."""
    session = privsql.connect(ROWS, POLICY)
    sql = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE x * 20 + y > {i})" for i in range(100)) + " FROM df"
    gaussian = session.explain(sql, epsilon=1, delta=1e-6).measurements[0]
    laplace = session.explain(sql, epsilon=1).measurements[0]
    assert laplace.scale * 2**0.5 == pytest.approx(141, abs=1)
    assert gaussian.scale == pytest.approx(42.2, abs=0.5)


def test_weights():
    session = privsql.connect(ROWS, POLICY)
    sql = "SELECT COUNT(*) AS n, SUM(y) AS s FROM df WHERE k > 0"
    plan = session.explain(sql, epsilon=1, weights={"n": 3, "s": 1})
    losses = {each.what: each.epsilon for each in plan.measurements}
    assert losses == {"SUM(y)": 0.25, "COUNT(*)": 0.75}
    assert session.explain(sql, epsilon=1, weights={"n": 3}).measurements == plan.measurements
    for wrong in ({"m": 1}, {"n": 0}, {"n": float("nan")}, {"n": True}, {"n": "2"}):
        with pytest.raises(privsql.ArgumentError) as caught:
            session.explain(sql, epsilon=1, weights=wrong)
        assert caught.value.code == "argument-weights"


def test_more_noise_gets_more_of_epsilon():
    """AVG needs two columns that one person moves, a count one: relative to one person's part, twice the noise."""
    session = privsql.connect(ROWS, POLICY)
    plan = session.explain(
        "SELECT COUNT(*) FILTER (WHERE k > 1) AS n, AVG(y) AS a FROM df WHERE k > 0", epsilon=1
    )
    by = {each.what: each.epsilon for each in plan.measurements}
    assert by["AVG, SUM and COUNT(y)"] > 1.3 * by["COUNT(*) where k > 1"]
    assert sum(by.values()) == pytest.approx(1)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_given_shares_and_the_rest_sum_to_epsilon(neighbours):
    """Two shares of a whole, and what is in neither: counts that exclude each other, NULL in the rest."""
    session = privsql.connect(ROWS, {"neighbours": neighbours, **POLICY})
    shares = ", ".join(
        f"COUNT(*) FILTER (WHERE y {test}) / COUNT(*) AS {name}"
        for name, test in (("a", "< -0.5"), ("b", "> 3"))
    )
    plan = session.explain(f"SELECT {shares} FROM df", epsilon=1)
    (measurement,) = plan.measurements
    assert len(measurement.columns) == 3
    with duckdb.connect() as connection:
        connection.register("df", ROWS)
        assert connection.execute(plan.sql).fetchall() == [(1, 0, 2)]


def test_a_pricing_that_was_asked_before_answers_for_the_epsilon_that_it_is_asked_for(session):
    pricing = session.explain(QUESTIONS[0], epsilon=1).pricing
    for epsilon in (Fraction(1), Fraction(2), Fraction(2), Fraction(1)):
        priced = pricing.at(epsilon)
        assert sum(each.loss for each in priced) == epsilon
        assert priced == replace(pricing).at(epsilon), "of a copy that was never asked"
        assert [replace(each).events for each in priced] == [each.events for each in priced]
        assert [replace(each).law for each in priced] == [each.law for each in priced]
