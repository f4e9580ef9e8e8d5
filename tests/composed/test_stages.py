"""Second stages: what is charged before their constants are known, which parts are one, and every kind of constant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.privacy.events import Choice, Gaussian, Keys, Laplace, Pure, at_most, covers
from privsql.requests import composing
from privsql.requests.stage import Stage

POLICY = {
    "neighbours": "add-remove",
    "tables": {
        "people": {
            "unit": "id",
            "unique": ["id"],
            "columns": {
                "age": {"range": [0, 100]},
                "height": {"range": [0.0, 3.0]},
                "state": {"values": ["CA", "NY", "TX"]},
                "born": {"range": ["1920-01-01", "2020-12-31"]},
            },
        },
        "visits": {
            "unit": "id",
            "max_rows": 50,
            "max_groups": 50,
            "columns": {"cost": {"range": [0, 50]}},
        },
    },
}


@pytest.fixture(scope="module")
def frames() -> dict[str, pd.DataFrame]:
    random = np.random.default_rng(5)
    people = pd.DataFrame(
        {
            "id": np.arange(3000),
            "age": random.integers(0, 100, 3000),
            "height": random.random(3000) * 2,
            "state": random.choice(["CA", "NY", "TX"], 3000),
            "smoker": random.random(3000) < 0.3,
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 9000, 3000), unit="D"),
        }
    )
    visits = pd.DataFrame({"id": random.integers(0, 3000, 9000), "cost": random.integers(0, 50, 9000)})
    return {"people": people, "visits": visits}


@pytest.fixture
def session(frames: dict[str, pd.DataFrame]) -> privsql.Session:
    return privsql.connect(frames, policy=POLICY)


# -- the charge ----------------------------------------------------------------------------------------------
CLIPPED = (
    "SELECT least(cost, CAST((SELECT AVG(cost) * 0 + 45 FROM visits) AS INTEGER)) AS k, COUNT(*) AS n "
    "FROM visits GROUP BY k"
)


def test_the_record_of_a_second_stage_shows_no_scale_of_the_example(session):
    session.query("SELECT SUM(least(age, (SELECT AVG(age) FROM people))) AS s FROM people", epsilon=1.0)
    last = session._pipeline.ledger.entries()[-1].released
    assert [type(each.event) for each in last] == [Pure]
    assert "1.0" not in str(last[0])


def test_the_second_stage_keeps_the_mechanism_that_was_charged(session):
    plan = session.explain(CLIPPED, epsilon=1.0, delta=1e-6)
    answer = session.query(CLIPPED, epsilon=1.0, delta=1e-6)
    assert plan.releases[1].measurements[0].l1 < answer.plan.releases[1].measurements[0].l1
    assert {each.mechanism.value for each in answer.plan.releases[1].measurements} == {"discrete Laplace"}
    alone = session.explain(
        CLIPPED.replace("(SELECT AVG(cost) * 0 + 45 FROM visits)", "45"), epsilon=0.6, delta=5e-7
    )
    assert alone.measurements[0].mechanism.value != "discrete Laplace", "alone another one is chosen"


def test_the_price_in_rho_covers_every_value(frames):
    policy = {**POLICY, "budget": {"epsilon": 5.0, "delta": 1e-6, "accountant": "zcdp"}}
    session = privsql.connect(frames, policy=policy)
    plan = session.explain(CLIPPED, epsilon=1.0)
    answer = session.query(CLIPPED, epsilon=1.0)
    assert session.budget.spent.rho == pytest.approx(plan.rho, rel=1e-6)
    assert answer.receipt["rho"] == plan.rho


E, HALF = Fraction(1), Fraction(1, 2)


@pytest.mark.parametrize(
    ("charged", "event", "pays"),
    [
        (Pure(E), Laplace(E, 3, 1, Fraction(3)), True),
        (Pure(E), Choice(E), True),
        (Pure(HALF), Laplace(E, 3, 1, Fraction(3)), False),
        (Pure(E, 2), Laplace(E, 1, 1, Fraction(1)), False),
        (Laplace(E, 3, 1, Fraction(3)), Laplace(E, 1, 1, Fraction(1)), False),
        (Pure(E), Gaussian(E, Fraction(1, 10**6), Fraction(1, 100)), False),
        (
            Gaussian(E, Fraction(1, 10**6), Fraction(1, 50)),
            Gaussian(E, Fraction(1, 10**6), Fraction(1, 100)),
            True,
        ),
        (
            Gaussian(E, Fraction(1, 10**6), Fraction(1, 100)),
            Gaussian(E, Fraction(1, 10**6), Fraction(1, 50)),
            False,
        ),
        (Keys(E, Fraction(1, 10**6), 3), Keys(E, Fraction(1, 10**6), 1), False),
    ],
)
def test_a_charge_covers_what_loses_no_more(charged, event, pays):
    assert covers(charged, event) is pays


def test_what_is_charged_for_unknown_bounds_depends_on_epsilon_alone():
    assert at_most(Laplace(E, 3, 1, Fraction(3))) == at_most(Laplace(E, 1, 1, Fraction(1))) == Pure(E)


def test_unknown_ranges_are_refused_before_anything_is_charged(frames):
    people = frames["people"].copy()
    people.dp.protect(unit="id", ranges="auto", budget=3.0)
    with pytest.raises(privsql.ArgumentError, match="several parts"):
        people.dp.query("SELECT SUM(age) AS s, (SELECT COUNT(*) FROM df) AS n FROM df", epsilon=1.0)
    assert people.dp.budget.spent.epsilon == 0


def test_the_record_of_a_query_shows_its_parameters(session):
    session.query(
        "SELECT COUNT(*) AS n FROM people WHERE age > ? AND state = ?", epsilon=0.1, params=[30, "CA"]
    )
    assert session.history()["question"].iloc[-1].endswith(" with 1 = 30, 2 = 'CA'")


# -- which parts are one -------------------------------------------------------------------------------------
MEAN = "(SELECT AVG(age) FROM people)"


def parts_of(session: privsql.Session, *conditions: str) -> int:
    counted = [
        f"(SELECT COUNT(*) FROM people AS t{i} WHERE t{i}.{each}) AS n{i}"
        for i, each in enumerate(conditions)
    ]
    return len(session.explain(f"SELECT {', '.join(counted)}", epsilon=1.0).releases)


def test_parts_of_one_meaning_are_paid_once_whatever_their_tables_are_called(session):
    assert parts_of(session, f"age > {MEAN}", f"age > {MEAN}") == 2
    session.query(
        f"SELECT (SELECT COUNT(*) FROM people p WHERE p.age > {MEAN}) AS a, "
        f"(SELECT COUNT(*) FROM people q WHERE q.age > {MEAN}) AS b",
        epsilon=1.0,
    )
    assert len(session.history()) == 2


def test_parts_with_another_constant_where_the_noisy_value_stands_are_two(session):
    """The example of a noisy number is 1."""
    assert parts_of(session, f"age > {MEAN}", "age > 1") == 3
    assert parts_of(session, f"age > {MEAN} AND t0.height < 1", f"height < {MEAN} AND t1.age > 1") == 3


def test_parts_with_their_noisy_values_exchanged_are_two(session):
    other = "(SELECT AVG(height) FROM people)"
    assert (
        parts_of(session, f"age > {MEAN} AND t0.height > {other}", f"age > {other} AND t1.height > {MEAN}")
        == 4
    )


def test_parts_with_two_noisy_conditions_are_told_apart(session):
    """Both are booleans, which look alike."""
    many, few = "(SELECT COUNT(*) > 9 FROM people)", "(SELECT COUNT(*) < 9 FROM people)"
    assert parts_of(session, f"smoker = {many}", f"smoker = {few}") > 2


def test_a_stored_answer_is_that_of_its_own_constants(session):
    sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {MEAN}"
    first = session.query(sql, epsilon=1.0)
    assert session.query(sql, epsilon=1.0).stored
    again = session.query(sql, epsilon=1.0, fresh=True)
    assert first.plan.releases[1].sql != again.plan.releases[1].sql
    assert not again.stored


# -- constants of every kind ---------------------------------------------------------------------------------
def planned(session: privsql.Session, sql: str, rows: tuple[tuple[str | None, ...], ...]) -> Any:
    composition = session._pipeline.composition(Stage(sql, 1.0))
    assert composition is not None
    place, part = next((place, part) for place, part in enumerate(composition.parts) if part.needs)
    (given,) = part.needs
    assert rows == () or len(rows[0]) == len(given.columns)
    plan = session._pipeline.plan(Stage(sql, 1.0, part=place, given=((given.name, rows),))).plan
    session._pipeline.check(plan)
    return plan


@pytest.mark.parametrize("value", ["38.7", "-0.0", "nan", "inf", "-inf", "1e300", "5e-324", None])
@pytest.mark.parametrize(
    "condition",
    [
        "age > {}",
        "age <> {}",
        "height = {}",
        "abs(height - {}) < 1",
        "CASE WHEN age > {} THEN smoker ELSE TRUE END",
    ],
)
def test_the_second_stage_is_planned_for_every_number(session, condition, value):
    sql = f"SELECT COUNT(*) AS n FROM people WHERE {condition.format('(SELECT AVG(height) FROM people)')}"
    assert planned(session, sql, ((value,),)).measurements[0].l1 <= 1


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e300", None])
@pytest.mark.parametrize("aggregate", ["SUM(least(age, {}))", "AVG(greatest(height, {}))", "SUM(age * {})"])
def test_sums_with_a_noisy_number_are_bounded_or_refused(session, aggregate, value):
    sql = f"SELECT {aggregate.format('(SELECT AVG(height) FROM people)')} AS s FROM people"
    try:
        plan = planned(session, sql, ((value,),))
    except privsql.Refused:
        return  # nothing more is released
    assert all(math.isfinite(each.l1) for each in plan.measurements)


@pytest.mark.parametrize(
    "rows", [(), (("CA",),), (("CA",), (None,)), (("CA",), ("CA",)), (("é'\";--",),), ((None,),)]
)
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_the_second_stage_is_planned_for_every_list_of_keys(session, word, rows):
    top = "(SELECT state FROM people GROUP BY state ORDER BY COUNT(*) DESC LIMIT 2)"
    plan = planned(session, f"SELECT COUNT(*) AS n FROM people WHERE state {word} {top}", rows)
    assert plan.measurements[0].l1 == 1


@pytest.mark.parametrize(
    "rows", [(), (("CA", "38.5"),), (("CA", None), (None, "nan")), (("CA", "1"), ("CA", "inf"))]
)
def test_the_second_stage_is_planned_for_every_table(session, rows):
    sql = (
        "SELECT COUNT(*) AS n FROM people JOIN (SELECT state, AVG(height) AS m FROM people GROUP BY state) a "
        "USING (state) WHERE height > a.m"
    )
    shared = max((sum(row[0] == other[0] for other in rows if row[0]) for row in rows), default=0)
    plan = planned(session, sql, rows)
    assert all(each.l1 == max(1, shared) for each in plan.measurements) or not rows


@pytest.mark.parametrize("value", ["2000-01-01", "0001-01-01", "9999-12-31", None])
def test_the_second_stage_is_planned_for_every_date(session, value):
    sql = "SELECT COUNT(*) AS n FROM people WHERE born > (SELECT MEDIAN(born)::DATE FROM people)"
    assert planned(session, sql, ((value,),)).measurements[0].l1 == 1


def test_a_noisy_value_may_stand_in_a_key(session):
    answer = session.query(CLIPPED, epsilon=1.0)
    assert answer.df()["k"].max() == 45


def test_an_empty_first_stage_is_a_second_stage_without_rows(session):
    sql = (
        "SELECT COUNT(*) AS n FROM people WHERE state IN "
        "(SELECT state FROM people GROUP BY state HAVING COUNT(*) > 1000000)"
    )
    assert abs(session.query(sql, epsilon=100.0).fetchall()[0][0]) < 5


# -- the whole price -----------------------------------------------------------------------------------------
def test_a_plan_at_a_higher_price_is_not_covered(session):
    cheap, dear = (session.explain("SELECT COUNT(*) AS n FROM people", epsilon=each) for each in (0.5, 1.0))
    assert composing._is_covered(cheap, dear)
    assert not composing._is_covered(dear, cheap)


def test_delta_is_shared_by_all_releases(frames):
    session = privsql.connect(frames, policy={"tables": {"people": {"unit": "id", "unique": ["id"]}}})
    counted = "(SELECT {0}, COUNT(*) AS n FROM people WHERE id {1} 1000 GROUP BY {0})"
    sql = (
        f"SELECT * FROM {counted.format('state', '>')} a JOIN {counted.format('state', '<')} b USING (state)"
    )
    session.query(sql, epsilon=1.0, delta=1e-6)
    assert len(session.history()) == 2
    assert session.budget.spent.delta == pytest.approx(1e-6, rel=1e-3)


def test_an_answer_stored_for_the_example_is_not_that_of_the_second_stage(session):
    """The example of a number is 1."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
    session.query(sql.format("CAST(1 AS DOUBLE)"), epsilon=0.5)
    before = session.budget.spent.epsilon
    answer = session.query(sql.format(MEAN), epsilon=1.0)
    assert answer.fetchall()[0][0] < 2000
    assert session.budget.spent.epsilon - before == pytest.approx(1.0)
