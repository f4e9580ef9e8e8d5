"""Queries of a session that follow from a release: answered from it, free, in this session and in later ones."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import sqlite3

import duckdb
import numpy as np
import pytest

import privsql
from tests.release.people import BINS, COLUMNS, WORKLOAD, connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}
SQL = "SELECT state, COUNT(*) AS n FROM people WHERE smoker GROUP BY state ORDER BY state"
BUDGET = {"epsilon": 10.0, "delta": 1e-5}
SHARES = {"analyst": {"epsilon": 9}, "bob the rival": {"epsilon": 1}}


@pytest.fixture
def session():
    with connect(people(4_000), budget=BUDGET) as session:
        yield session


def test_a_query_that_follows_is_answered_from_the_release(session):
    release = session.release(WORKLOAD, "people", **PRICE)
    answer = session.query(SQL, epsilon=0.01)
    assert answer.stored and answer.receipt["charged"] == 0
    assert answer.fetchall() == release.query(SQL).fetchall()
    assert answer.intervals().equals(release.query(SQL).intervals())
    assert session.budget.spent.epsilon == 1 and len(session.history()) == 1


def test_explain_says_that_a_release_answers(session):
    assert "earlier" not in str(session.explain(SQL, epsilon=0.01))
    session.release(WORKLOAD, "people", **PRICE)
    plan = session.explain(SQL, epsilon=0.01)
    assert plan.free and plan.epsilon == 0
    assert "all 2-way marginals of age, state, smoker, income of people" in str(plan)


def test_a_query_that_would_be_more_accurate_is_paid_for_and_explain_shows_both(session):
    session.release(WORKLOAD, "people", **PRICE)
    plan = session.explain(SQL, epsilon=1.0)
    assert plan.epsilon == 1 and "without epsilon= it is answered from what was released before" in str(plan)
    assert not session.query(SQL, epsilon=1.0).stored
    assert session.budget.spent.epsilon == 2


def test_without_epsilon_nothing_is_spent(session):
    with pytest.raises(privsql.ArgumentError, match="give epsilon= or within="):
        session.query(SQL)
    release = session.release(WORKLOAD, "people", **PRICE)
    assert session.explain(SQL).free
    assert session.query(SQL).fetchall() == release.query(SQL).fetchall()
    with pytest.raises(privsql.ArgumentError, match="give epsilon= or within="):
        session.query("SELECT AVG(age) AS a FROM people")
    with pytest.raises(privsql.ArgumentError, match="give epsilon= or within="):
        session.query(SQL, fresh=True)
    assert session.budget.spent.epsilon == 1


def test_without_epsilon_earlier_answers_count_too(session):
    first = session.query("SELECT state, COUNT(*) AS n FROM people GROUP BY state", epsilon=0.5)
    assert (
        session.query("SELECT state, COUNT(*) AS m FROM people GROUP BY state").fetchall() == first.fetchall()
    )
    assert session.budget.spent.epsilon == 0.5


def test_fresh_pays_anew(session):
    session.release(WORKLOAD, "people", **PRICE)
    assert not session.query(SQL, epsilon=0.01, fresh=True).stored
    assert session.budget.spent.epsilon == pytest.approx(1.01)


def test_within_is_answered_from_a_release_that_is_as_accurate(session):
    session.release(WORKLOAD, "people", **PRICE)
    assert session.query(SQL, within=2_000).stored
    assert not session.query(SQL, within=2).stored


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) AS a FROM people",
        "SELECT COUNT(*) AS n FROM people WHERE age > 30",
        "SELECT COUNT(*) AS n FROM people WHERE smoker AND state = 'CA' AND age >= 18",
        "SELECT COUNT(DISTINCT state) AS n FROM people",
    ],
)
def test_what_does_not_follow_is_paid_for(session, sql):
    session.release(WORKLOAD, "people", **PRICE)
    assert not session.query(sql, epsilon=0.01).stored


def test_queries_with_several_counts_follow(session):
    release = session.release(WORKLOAD, "people", **PRICE)
    sql = "SELECT smoker, COUNT(*) AS n, COUNT(state) AS s FROM people GROUP BY smoker ORDER BY smoker"
    answer = session.query(sql, epsilon=0.01)
    assert answer.stored and answer.fetchall() == release.query(sql).fetchall()


def test_a_batch_uses_a_release(session):
    session.release(WORKLOAD, "people", **PRICE)
    other = "SELECT COUNT(*) AS n FROM people WHERE age > 30"
    first, second = session.batch([SQL, other], epsilon=0.02)
    assert first.stored and not second.stored
    assert session.budget.spent.epsilon < 1.02


def test_parts_of_a_composed_query_follow(session):
    session.release(WORKLOAD, "people", **PRICE)
    sql = (
        "SELECT a.n - b.n AS more FROM (SELECT COUNT(*) AS n FROM people WHERE smoker) a, "
        "(SELECT COUNT(*) AS n FROM people WHERE NOT smoker) b"
    )
    session.query(sql, epsilon=0.02)
    assert session.budget.spent.epsilon == 1


def test_rows_of_users_are_bounded_otherwise_in_a_release(session):
    frame = people(4_000).assign(user_id=np.arange(4_000) // 2)
    table = {"unit": "user_id", "max_groups": 2, "max_rows": 1}
    with connect(frame, table=table, budget=BUDGET) as session:
        release = session.release(WORKLOAD, "people", **PRICE)
        assert not session.query(SQL, epsilon=0.001).stored
        assert len(release.query(SQL).fetchall()) == 4


def test_a_release_of_another_state_of_the_data_says_nothing(tmp_path):
    path = tmp_path / "people.duckdb"
    frame = people(1_000)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    policy = {"tables": {"people": {"columns": COLUMNS}}}
    arguments = {"ledger": tmp_path / "a.ledger"}
    with privsql.connect(path, policy, version="monday", **arguments) as session:
        session.release(WORKLOAD, "people", **PRICE)
    with privsql.connect(path, policy, version="tuesday", **arguments) as session:
        assert not session.explain_release(WORKLOAD, "people", **PRICE).stored
        assert not session.query(SQL, epsilon=0.01).stored
    assert len(frame) == 1_000


# -- later sessions ------------------------------------------------------------------------------------------
@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "people.duckdb"
    frame = people(1_000).assign(day=dt.date(2024, 5, 1))
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * REPLACE (CAST(day AS DATE) AS day) FROM frame")
    assert len(frame)

    def make(**policy):
        columns = {**COLUMNS, **policy.pop("columns", {})}
        given = {"tables": {"people": {"columns": columns}}, "budget": BUDGET, **policy}
        return privsql.connect(path, given, ledger=tmp_path / "a.ledger", version="monday")

    return make


DAYS = (dt.date(2024, 1, 1), dt.date(2024, 6, 1), dt.date(2025, 1, 1))
DATED = privsql.marginals(["age", "day"], ways=2, bins={"age": BINS["age"], "day": DAYS})


def test_a_release_survives_its_process(opened):
    with opened() as session:
        first = session.release(WORKLOAD, "people", **PRICE)
        dated = session.release(DATED, "people", **PRICE)
    with opened() as later:
        assert later.explain_release(WORKLOAD, "people", **PRICE).stored
        assert later.query(SQL, epsilon=0.01).fetchall() == first.query(SQL).fetchall()
        again = later.release(WORKLOAD, "people", **PRICE)
        assert again.stored and again.df().equals(first.df()) and again.when == first.when
        assert later.release(DATED, "people", **PRICE).df().equals(dated.df())
        assert later.budget.spent.epsilon == 2


def test_sessions_that_are_open_at_once_share_releases(opened):
    with opened() as one, opened() as other:
        assert not other.explain_release(WORKLOAD, "people", **PRICE).stored
        first = one.release(WORKLOAD, "people", **PRICE)
        assert other.release(WORKLOAD, "people", **PRICE).df().equals(first.df())
        assert other.budget.spent.epsilon == 1


def test_under_another_policy_a_stored_release_is_ignored(opened):
    with opened() as session:
        session.release(WORKLOAD, "people", **PRICE)
    with opened(columns={"state": {"values": ["CA", "NY"]}}) as later:
        assert not later.explain_release(WORKLOAD, "people", **PRICE).stored
    with opened(columns={"state": {"values": ["CA", "NY", "WA"]}}) as later:  # as many cells as before
        washington = "SELECT COUNT(*) AS n FROM people WHERE state = 'WA'"
        assert not later.query(washington, epsilon=0.01).stored
    with opened(columns={"income": {}}) as later:  # now it would be refused
        assert not later.query(SQL, epsilon=0.01).stored


DAMAGES = [
    "UPDATE releases_1 SET noisy = x'00'",
    "UPDATE releases_1 SET asked = '{}'",
    "UPDATE releases_1 SET version = 'tuesday'",
    "DROP TABLE releases_1",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_ignored(opened, tmp_path, damage):
    with opened() as session:
        session.release(WORKLOAD, "people", **PRICE)
    with sqlite3.connect(tmp_path / "a.ledger.answers") as connection:
        connection.execute(damage)
    with opened() as later:
        assert not later.release(WORKLOAD, "people", **PRICE).stored
        assert later.budget.spent.epsilon == 2


def test_an_entry_of_another_ledger_is_ignored(opened, tmp_path):
    from privsql.answers.release_file import _NAMES, digest_of

    with opened() as session:
        session.release(WORKLOAD, "people", **PRICE)
    with sqlite3.connect(tmp_path / "a.ledger.answers") as connection:
        (row,) = connection.execute(f"SELECT {_NAMES} FROM releases_1").fetchall()
        moved = (row[0], "another", *row[2:-1])
        connection.execute("UPDATE releases_1 SET charge = 'another', digest = ?", (digest_of(moved),))
    with opened() as later:
        assert not later.explain_release(WORKLOAD, "people", **PRICE).stored


def test_a_forged_entry_of_other_shape_is_ignored(opened, tmp_path):
    from privsql.answers.release_file import _NAMES, _packed, digest_of

    with opened() as session:
        session.release(WORKLOAD, "people", **PRICE)
    with sqlite3.connect(tmp_path / "a.ledger.answers") as connection:
        (row,) = connection.execute(f"SELECT {_NAMES} FROM releases_1").fetchall()
        for noisy in ({}, {"0": np.zeros(3, dtype=np.int64)}, {"": np.zeros((), dtype=np.float64)}):
            forged = (*row[:-2], _packed(noisy))
            connection.execute("UPDATE releases_1 SET noisy = ?, digest = ?", (forged[-1], digest_of(forged)))
            connection.commit()
            with opened() as later:
                assert not later.explain_release(WORKLOAD, "people", **PRICE).stored


@pytest.mark.parametrize("asked", ['{"epsilon": "1/0"}', '{"workloads": [5]}', "[]", "[" * 9_000])
def test_a_forged_entry_that_cannot_be_planned_is_ignored(opened, tmp_path, asked):
    from privsql.answers.release_file import _NAMES, digest_of

    with opened() as session:
        session.release(WORKLOAD, "people", **PRICE)
    with sqlite3.connect(tmp_path / "a.ledger.answers") as connection:
        (row,) = connection.execute(f"SELECT {_NAMES} FROM releases_1").fetchall()
        given = {**json.loads(row[5]), **json.loads(asked)} if asked.startswith("{") else asked
        text = json.dumps(given) if isinstance(given, dict) else given
        forged = (*row[:5], text, *row[6:-1])
        connection.execute("UPDATE releases_1 SET asked = ?, digest = ?", (text, digest_of(forged)))
    with opened() as later:
        assert not later.explain_release(WORKLOAD, "people", **PRICE).stored


# -- pickles -------------------------------------------------------------------------------------------------
def test_a_release_can_be_pickled_and_needs_no_session(session):
    release = session.release(WORKLOAD, "people", **PRICE)
    expected = release.query(SQL).intervals()
    copy = pickle.loads(pickle.dumps(release))
    session.close()
    assert copy.query(SQL).intervals().equals(expected)
    assert release.query(SQL).intervals().equals(expected)
    assert copy.df(["age", "state"]).equals(release.df(["age", "state"]))
    assert copy.receipt == release.receipt
    with pytest.raises(privsql.Refused, match="does not follow"):
        copy.query("SELECT AVG(age) AS a FROM people")


def test_a_pickled_release_names_no_analyst_and_no_budget():
    budget = {**BUDGET, "dataset": "of the clinic", "analysts": SHARES}
    with connect(people(500), budget=budget, version="winter") as session:
        written = pickle.dumps(session.release(WORKLOAD, "people", **PRICE))
    assert not any(each in written for each in (b"bob the rival", b"of the clinic", b"winter"))
    assert pickle.loads(written).query(SQL).columns == ["state", "n"]


def test_a_synthetic_table_can_be_pickled():
    with connect(people(500), budget=BUDGET) as session:
        made = session.synthesize("people", ["age", "state"], bins={"age": BINS["age"]}, **PRICE)
        learned = session.synthesize("people", ["age", "state"], bins={"age": BINS["age"]}, epsilon=1.0)
    for each in (made, learned):
        copy = pickle.loads(pickle.dumps(each))
        assert copy.df().equals(each.df()) and copy.receipt == each.receipt
        assert copy.report().equals(each.report())
