"""Queries with several private parts: what they cost, what is stored, what a second stage reads, and failures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlglot

import privsql
from privsql.engines.duckdb.sandbox import sandbox
from privsql.requests import composing
from privsql.sql.parse.above import permit_above

SHARES = (
    "SELECT state, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY state"
)
TWO = "SELECT (SELECT COUNT(*) FROM people WHERE age > 64) AS old, (SELECT COUNT(*) FROM people WHERE age < 18) AS young"
OLDER = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"
POLICY = {
    "budget": {"epsilon": 10.0},
    "tables": {"people": {"columns": {"age": {"range": [0, 100]}, "state": {"values": ["CA", "NY", "TX"]}}}},
}


@pytest.fixture
def people() -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {"state": random.choice(["CA", "NY", "TX"], 5000), "age": random.integers(0, 100, 5000)}
    )


@pytest.fixture
def session(people: pd.DataFrame) -> privsql.Session:
    return privsql.connect({"people": people}, policy=POLICY)


# -- price ---------------------------------------------------------------------------------------------------
def test_epsilon_is_the_whole_price_of_all_parts(session):
    answer = session.query(TWO, epsilon=1.0)
    assert session.budget.spent.epsilon == pytest.approx(1.0)
    assert answer.receipt["charged"] == pytest.approx(1.0)
    assert sum(each["epsilon"] for each in answer.receipt["releases"]) == pytest.approx(1.0)


def test_one_release_costs_what_it_costs_alone(session):
    session.query(SHARES, epsilon=1.0)
    alone = session.query("SELECT state, COUNT(*) AS n FROM people GROUP BY state", epsilon=1.0)
    assert alone.stored
    assert session.budget.spent.epsilon == pytest.approx(1.0)


def test_a_plan_reads_no_data_and_spends_nothing(session):
    plan = session.explain(TWO, epsilon=1.0)
    assert plan.epsilon == pytest.approx(1.0)
    assert len(plan.releases) == 2
    assert session.budget.spent.epsilon == 0
    assert "r0, a release" in str(plan)
    json.dumps(plan.to_dict())


def test_of_one_release_the_plan_has_its_sql_keys_and_measurements(session):
    plan = session.explain(SHARES, epsilon=1.0)
    assert plan.keys == ["state"]
    assert plan.measurements[0].l1 == 2
    assert "count(*)" in plan.sql.lower()


def test_without_budget_nothing_is_charged(session):
    with pytest.raises(privsql.BudgetError):
        session.query(TWO, epsilon=11.0)
    assert session.budget.spent.epsilon == 0
    assert "refused" in str(session.explain(TWO, epsilon=11.0))


def test_a_refusal_speaks_of_the_whole_price(session):
    session.query("SELECT COUNT(*) FROM people", epsilon=8.0)
    with pytest.raises(
        privsql.BudgetError, match="this costs epsilon 3, but only 2 of 10 is left"
    ) as refused:
        session.query(TWO, epsilon=3.0)
    assert "epsilon=2 or less" in str(refused.value)
    session.query(TWO, epsilon=2.0)


def test_what_the_engine_does_not_accept_above_is_not_charged(session):
    with pytest.raises(privsql.SqlError) as refused:
        session.query(
            "SELECT list_sum(n), SUM(n) OVER () FROM (SELECT COUNT(*) AS n FROM people)", epsilon=1.0
        )
    assert refused.value.code == "sql-engine"
    assert session.budget.spent.epsilon == 0


# -- stored answers ------------------------------------------------------------------------------------------
def test_the_same_query_again_is_free_and_the_same(session):
    first, again = session.query(TWO, epsilon=1.0), session.query(TWO, epsilon=1.0)
    assert again.stored
    assert again.receipt["charged"] == 0
    assert again.fetchall() == first.fetchall()
    assert session.explain(TWO, epsilon=1.0).stored


def test_other_sql_above_the_same_releases_is_free(session):
    session.query(SHARES, epsilon=1.0)
    answer = session.query(SHARES.replace("100.0 *", "1.0 *"), epsilon=1.0)
    assert answer.stored
    assert session.budget.spent.epsilon == pytest.approx(1.0)


def test_both_stages_are_free_when_asked_again(session):
    first, again = session.query(OLDER, epsilon=1.0), session.query(OLDER, epsilon=1.0)
    assert again.stored
    assert again.fetchall() == first.fetchall()
    assert session.budget.spent.epsilon == pytest.approx(1.0)


def test_stages_are_stored_in_a_ledger_with_the_values_they_read(people, tmp_path: Path):
    ledger = tmp_path / "people.ledger"
    with privsql.connect({"people": people}, policy=POLICY, ledger=ledger, version="1") as session:
        first = session.query(OLDER, epsilon=1.0)
    with privsql.connect({"people": people}, policy=POLICY, ledger=ledger, version="1") as session:
        again = session.query(OLDER, epsilon=1.0)
        assert again.stored
        assert again.fetchall() == first.fetchall()
        assert session.budget.spent.epsilon == pytest.approx(1.0)


# -- stages --------------------------------------------------------------------------------------------------
def test_the_second_stage_reads_the_released_value(session):
    answer = session.query(OLDER, epsilon=1.0)
    mean = answer.releases[0].fetchall()[0][0]
    assert repr(mean) in answer.releases[1].plan.sql


def test_both_stages_are_charged_before_the_first_runs(session, monkeypatch):
    monkeypatch.setattr(composing, "_with_values", lambda *_: (_ for _ in ()).throw(ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        session.query(OLDER, epsilon=1.0)
    assert session.budget.spent.epsilon == pytest.approx(1.0)
    assert len(session.history()) == 2


@pytest.mark.parametrize("value", [None, "nan", "inf", "-inf", "-1e300", "0.1"])
def test_a_second_stage_is_planned_for_every_value(session, value):
    pipeline = session._pipeline
    stage = composing.Stage(OLDER, 1.0, part=1, given=(("v0", ((value,),)),))
    plan, other = pipeline.plan(stage).plan, session.explain(OLDER, epsilon=2.0).releases[1]
    assert plan.measurements[0].l1 == other.measurements[0].l1 == 1


@pytest.mark.parametrize("rows", [(), ((None, None),), (("CA", "1"), ("CA", "2")), (("XX", "3"),)])
def test_a_table_of_constants_may_have_any_rows(session, rows):
    sql = (
        "SELECT COUNT(*) AS n FROM people JOIN (SELECT state, AVG(age) AS m FROM people GROUP BY state) a "
        "USING (state) WHERE age > a.m"
    )
    stage = composing.Stage(sql, 1.0, part=1, given=(("v0", rows),))
    plan = session._pipeline.plan(stage).plan
    assert plan.measurements[0].l1 == (2 if len(rows) == 2 else 1)


# -- failures above ------------------------------------------------------------------------------------------
def test_what_fails_above_is_paid_for_and_stored(session, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise privsql.PrivsqlError("engine-post-processing", "it took too long", "change it")

    with monkeypatch.context() as patched:
        patched.setattr(type(sandbox()), "run", fail)
        with pytest.raises(privsql.PrivsqlError) as failed:
            session.query(SHARES, epsilon=1.0)
    assert failed.value.code == "engine-post-processing"
    assert session.budget.spent.epsilon == pytest.approx(1.0)
    assert session.budget.failures.failed == 0  # nothing that depends on private data has failed
    assert session.query(SHARES, epsilon=1.0).stored


@pytest.mark.parametrize("sql", [TWO, OLDER])
def test_fresh_spends_again_on_every_part(session, sql):
    first = session.query(sql, epsilon=1.0)
    again = session.query(sql, epsilon=1.0, fresh=True)
    assert not again.stored
    assert again.receipt["charged"] == pytest.approx(1.0)
    assert session.budget.spent.epsilon == pytest.approx(2.0)
    assert all(one.noisy is not two.noisy for one, two in zip(first.releases, again.releases, strict=True))


def test_bounds_of_the_second_stage_may_depend_on_the_value(session):
    answer = session.query(
        "SELECT AVG(age) AS a FROM people WHERE age > (SELECT AVG(age) FROM people)", epsilon=2.0
    )
    assert 50 < answer.fetchall()[0][0] <= 100
    assert session.budget.spent.epsilon == pytest.approx(2.0)


def test_what_the_first_stage_makes_impossible_is_no_failure_of_the_engine(session):
    sql = "SELECT COUNT(*) AS n FROM people WHERE state < (SELECT chr(0) || COUNT(*) FROM people)"
    with pytest.raises(privsql.PrivsqlError):
        session.query(sql, epsilon=1.0)
    assert session.budget.failures.failed == 0
    assert session.budget.spent.epsilon in (0.0, pytest.approx(1.0))


def test_a_release_of_another_price_does_not_run_in_the_second_stage(session, monkeypatch):
    monkeypatch.setattr(composing, "_is_covered", lambda *_: False)
    with pytest.raises(privsql.Refused) as refused:
        session.query(OLDER, epsilon=1.0)
    assert refused.value.code == "refused-stages"


@pytest.mark.parametrize(
    "arguments",
    [{"within": 5}, {"epsilon": 1.0, "max_rows": "auto"}, {"epsilon": 1.0, "weights": {"old": 2.0}}],
)
def test_searches_and_weights_are_for_one_release(session, arguments):
    with pytest.raises(privsql.ArgumentError):
        session.query(TWO, **arguments)


def test_a_frame_is_asked_the_same_way(people):
    out = people.dp.query(SHARES.replace("people", "df"), epsilon=1.0, keys={"state": ["CA", "NY", "TX"]})
    assert list(out.columns) == ["state", "n", "pct"]
    assert {"n_low", "pct_high"} <= set(out.dp.intervals().columns)
    assert out.dp.receipt["epsilon"] == pytest.approx(1.0)


# -- labels --------------------------------------------------------------------------------------------------
LABELS = "SELECT state FROM people GROUP BY state ORDER BY COUNT(*) DESC LIMIT 2"


def test_labels_among_undeclared_keys_are_found_by_their_counts(people):
    people.loc[:2000, "state"] = "CA"
    session = privsql.connect({"people": people})
    answer = session.query(LABELS, epsilon=1.0, delta=1e-6)
    assert answer.fetchall()[0] == ("CA",)
    assert len(answer) == 2
    assert answer.receipt["delta"] > 0
    again = session.query(LABELS, epsilon=1.0, delta=1e-6)
    assert again.stored
    with pytest.raises(privsql.Refused) as refused:
        session.query(LABELS, epsilon=1.0, fresh=True)
    assert code_of(refused) == "refused-unknown-keys"


def test_labels_among_declared_keys_release_no_counts(session):
    plan = session.explain(LABELS, epsilon=1.0, delta=1e-6)
    assert plan.chooses


# -- refusals ------------------------------------------------------------------------------------------------
def code_of(refused: pytest.ExceptionInfo[privsql.PrivsqlError]) -> str:
    return refused.value.code


def test_too_many_parts_are_refused(session):
    parts = " UNION ALL ".join(f"SELECT COUNT(*) AS n FROM people WHERE age > {age}" for age in range(40))
    with pytest.raises(privsql.Refused) as refused:
        session.explain(parts, epsilon=1.0)
    assert code_of(refused) == "refused-parts"


def test_of_several_releases_each_has_its_own_sql_and_is_audited_alone(session):
    with pytest.raises(privsql.Refused) as refused:
        _ = session.explain(TWO, epsilon=1.0).sql
    assert code_of(refused) == "refused-several"
    with pytest.raises(privsql.Refused) as refused:
        session.audit(TWO, epsilon=1.0)
    assert code_of(refused) == "refused-several"


def test_the_sql_above_names_only_tables_of_the_query():
    with pytest.raises(privsql.Refused) as refused:
        permit_above(sqlglot.parse_one("SELECT n FROM r0, secrets"), {"r0"})
    assert code_of(refused) == "refused-table"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n, m FROM (SELECT COUNT(*) AS n FROM people), (SELECT COUNT(*) AS m FROM people)",
        "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM people) AS m FROM people WHERE age > 30",
    ],
)
def test_explain_counts_what_is_charged_and_a_release_that_stands_twice_once(session, sql):
    assert session.explain(sql, epsilon=1.0).epsilon == pytest.approx(1.0)
    answer = session.query(sql, epsilon=1.0)
    assert session.budget.spent.epsilon == pytest.approx(1.0) == pytest.approx(answer.receipt["epsilon"])
    assert answer.receipt["charged"] == pytest.approx(1.0)
