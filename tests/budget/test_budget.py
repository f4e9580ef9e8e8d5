"""The budget: charged before data is read, never given back, never overspent; what was answered is answered again for free."""

from __future__ import annotations

import threading
from fractions import Fraction

import pandas as pd
import pytest

import privsql
from privsql import BudgetError, EngineError
from privsql.budget.ledger import MemoryLedger
from privsql.neighbours import Neighbours
from privsql.policy.checks import NANO
from privsql.session import Session
from tests.budget.ledgers import charge
from tests.conftest import POLICY, clinic
from tests.support.databases import database

COUNT = "SELECT COUNT(*) AS n FROM visits"
GROUPED = "SELECT state, COUNT(*) AS n FROM visits GROUP BY state"


def limited(limit: float, rows: int = 50) -> Session:
    return privsql.connect({"visits": clinic(rows)}, {**POLICY, "budget": {"epsilon": limit}})


def spent(session: Session) -> float:
    return session.budget.spent.epsilon


def test_a_budget_can_be_spent_exactly():
    session = limited(1.0)
    for index in range(10):  # 0.1 is no binary fraction: floats would end at 0.9999999999999999
        session.query(COUNT, epsilon=0.1, fresh=True)
        assert spent(session) == pytest.approx((index + 1) / 10)
    assert session.budget.remaining.epsilon == 0.0
    with pytest.raises(BudgetError) as caught:
        session.query(COUNT, epsilon=1e-6, fresh=True)
    assert caught.value.code == "budget-exhausted"
    assert spent(session) == 1.0
    assert len(session.history()) == 10


def test_limit_spent_and_remaining():
    session = limited(3.0)
    session.query(GROUPED, epsilon=0.75)
    budget = session.budget
    assert (budget.limit.epsilon, budget.spent.epsilon, budget.remaining.epsilon) == (3.0, 0.75, 2.25)
    assert (budget.limit.delta, budget.spent.delta, budget.remaining.delta) == (0.0, 0.0, 0.0)
    assert "remaining: epsilon 2.25" in str(budget)


def test_a_refused_query_costs_nothing():
    session = limited(1.0)
    session.query(COUNT, epsilon=0.6)
    with pytest.raises(BudgetError, match=r"0\.4 of 1 is left") as caught:
        session.query(GROUPED, epsilon=0.5)
    assert "epsilon=0.4" in caught.value.suggestion
    assert spent(session) == 0.6
    session.query(GROUPED, epsilon=0.4)
    assert spent(session) == 1.0


def test_explain_is_free_and_shows_the_remaining_budget():
    session = limited(1.0)
    plan = session.explain(COUNT, epsilon=0.3)
    assert spent(session) == 0
    assert plan.remaining == 1.0
    assert session.history().empty


class Reading:
    """An engine that records requests for data, and may fail on them."""

    def __init__(self, inner, fail: Exception | None = None) -> None:
        self.inner, self.fail, self.spent_when_read = inner, fail, []
        self.session: Session | None = None

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def run(self, sql, keys):
        assert self.session is not None
        self.spent_when_read.append(spent(self.session))
        if self.fail:
            raise self.fail
        return self.inner.run(sql, keys)


def watched(fail: Exception | None = None) -> tuple[Session, Reading]:
    session = limited(5.0)
    engine = Reading(session._pipeline.engine, fail)
    engine.session = session
    session._pipeline.engine = engine
    return session, engine


def test_charged_before_data_is_read():
    session, engine = watched()
    session.query(COUNT, epsilon=0.5)
    session.query(GROUPED, epsilon=1.5)
    assert engine.spent_when_read == [0.5, 2.0]
    with pytest.raises(BudgetError):
        session.query(COUNT, epsilon=4)
    assert len(engine.spent_when_read) == 2  # without leave to run nothing is read


def test_a_failed_engine_is_charged_and_raises_the_fixed_error():
    session, _ = watched(EngineError())
    with pytest.raises(EngineError):
        session.query(COUNT, epsilon=0.5)
    assert spent(session) == 0.5
    assert len(session.history()) == 1


@pytest.mark.parametrize("column", ["secret-0042", "99"])
def test_the_engines_message_is_hidden(tmp_path, column):
    """A file that breaks between the query and the answer: DuckDB's own message would quote a value."""
    path = tmp_path / "visits.csv"
    path.write_text("x\n1\n2\n3\n")
    session = privsql.connect(path)
    path.write_text(f"x\n1\n{column},oops,'\n\x00\n")
    try:
        session.query("SELECT COUNT(x) FROM visits", epsilon=1)
    except privsql.PrivsqlError as error:
        text = (
            str(error)
            + repr(error.__cause__)
            + repr(error.__context__ if not error.__suppress_context__ else "")
        )
        assert "secret" not in text
        assert "99" not in text
    sentences = {str(EngineError()) for _ in range(3)}
    assert len(sentences) == 1


def test_a_table_dropped_after_the_charge_raises_the_fixed_error(tmp_path):
    path = tmp_path / "visits.parquet"
    clinic(20).to_parquet(path)
    session = privsql.connect(path)
    check = session._pipeline.engine.check

    def and_then_remove(sql, schema):
        check(sql, schema)
        path.unlink(missing_ok=True)

    session._pipeline.engine.check = and_then_remove
    try:
        session.query("SELECT COUNT(*) FROM visits WHERE smoker", epsilon=0.5)
    except EngineError as error:
        assert str(error) == str(EngineError())  # noqa: PT017
        assert error.__suppress_context__  # noqa: PT017
    assert spent(session) == 0.5


# -- stored answers --------------------------------------------------------------------------------------------
def test_a_repeated_query_returns_the_same_answer_for_free():
    session = limited(1.0)
    first = session.query(GROUPED, epsilon=1.0)
    for sql in (
        GROUPED,
        "select STATE, count(*) as n\nfrom Visits -- the same\ngroup by 1;".replace("STATE", "state"),
    ):
        again = session.query(sql, epsilon=1.0)
        assert again.fetchall() == first.fetchall()
        assert again.receipt["stored"]
        assert again.receipt["charged"] == 0.0
        pd.testing.assert_frame_equal(again.intervals(), first.intervals())
    assert not first.receipt["stored"]
    assert spent(session) == 1.0
    assert "repeated query" in str(again)


def test_fresh_spends_again():
    session = limited(2.0)
    first = session.query(GROUPED, epsilon=0.01)
    second = session.query(GROUPED, epsilon=0.01, fresh=True)
    assert spent(session) == 0.02
    assert first.fetchall() != second.fetchall()  # at this scale equal with probability below 1e-9
    assert session.query(GROUPED, epsilon=0.01).fetchall() == second.fetchall()


def test_different_queries_are_not_confused():
    session = privsql.connect({"visits": clinic(40)}, POLICY)
    pairs = [
        (
            "SELECT AVG(cost) AS a, COUNT(*) AS b, COUNT(cost) AS c FROM visits",
            "SELECT AVG(cost) AS a, COUNT(cost) AS b, COUNT(*) AS c FROM visits",
        ),
        (
            "SELECT COUNT(*) AS a FROM visits WHERE smoker",
            "SELECT COUNT(*) AS a FROM visits WHERE NOT smoker",
        ),
        ("SELECT SUM(age) AS a FROM visits", "SELECT SUM(age) AS b FROM visits"),
        (
            "SELECT state, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n",
            "SELECT state, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC",
        ),
        (
            "SELECT state FROM visits GROUP BY 1 ORDER BY COUNT(*) LIMIT 1",
            "SELECT state FROM visits GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1",
        ),
        (
            "SELECT COUNT(*) AS a, SUM(change) AS b FROM visits",
            "SELECT SUM(change) AS a, COUNT(*) AS b FROM visits",
        ),
    ]
    same = (
        True,
        False,
        True,
        True,
        True,
        True,
    )  # names and order are no part of what is measured; labels follow from counts
    for (one, two), measured_already in zip(pairs, same, strict=True):
        session.query(one, epsilon=10_000)
        assert session.query(two, epsilon=10_000).stored is measured_already, two
    first, second = (session.query(sql, epsilon=10_000).fetchall()[0] for sql in pairs[0])
    assert first[1:] == (40, 36)
    assert second[1:] == (36, 40)


def test_another_epsilon_is_another_query():
    session = limited(2.0)
    session.query(COUNT, epsilon=0.25)
    assert not session.query(COUNT, epsilon=0.5).stored
    assert spent(session) == 0.75
    assert session.query(COUNT, epsilon=0.125).stored  # a better answer is there already


# -- threads ---------------------------------------------------------------------------------------------------
def together(count: int, work) -> list:
    results, gate = [], threading.Barrier(count)

    def run(index):
        gate.wait()
        try:
            results.append(work(index))
        except BudgetError as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def test_threads_never_overspend():
    session = limited(1.0)
    results = together(24, lambda index: session.query(f"{COUNT} WHERE age > {index}", epsilon=0.1))
    paid = [each for each in results if not isinstance(each, BudgetError)]
    assert len(results) == 24
    assert len(paid) == 10
    assert spent(session) == 1.0
    assert len(session.history()) == 10


def test_threads_on_the_ledger_itself():
    ledger = MemoryLedger(Fraction(1), Neighbours.REPLACE_ONE)

    def spend(index):
        done = 0
        for _ in range(200):
            try:
                charge(ledger, Fraction(1, 1000), analyst="a", neighbours=Neighbours.REPLACE_ONE)
                done += 1
            except BudgetError:
                pass
        return done

    assert sum(together(8, spend)) == 1000
    assert ledger.budget.remaining.epsilon == 0


def test_threads_on_a_protected_frame_share_one_ledger():
    frame = clinic(20)
    frame.dp.protect(budget=1.0)
    copies = [frame.copy() for _ in range(8)]
    results = together(
        8,
        lambda index: copies[index].dp.query(f"SELECT COUNT(*) FROM df WHERE change > {index}", epsilon=0.25),
    )
    assert sum(not isinstance(each, BudgetError) for each in results) == 4
    assert frame.dp.budget.spent.epsilon == 1.0


# -- the ledger ------------------------------------------------------------------------------------------------
def test_prices_are_rounded_up_and_limits_down():
    ledger = MemoryLedger(Fraction(1, 3), Neighbours.ADD_REMOVE)
    charge(ledger, Fraction(1, 3 * NANO), analyst="a", neighbours=Neighbours.ADD_REMOVE)
    assert ledger.budget.spent.epsilon == 1 / NANO
    with pytest.raises(BudgetError):
        charge(ledger, Fraction(1, 3) - Fraction(1, 3 * NANO), analyst="a", neighbours=Neighbours.ADD_REMOVE)


def test_losses_under_different_neighbour_relations_are_not_added():
    ledger = MemoryLedger(Fraction(1), Neighbours.ADD_REMOVE)
    with pytest.raises(BudgetError) as caught:
        charge(ledger, Fraction(1, 2), analyst="a", neighbours=Neighbours.REPLACE_ONE)
    assert caught.value.code == "budget-neighbours"
    assert ledger.budget.spent.epsilon == 0


def test_history_names_what_was_released():
    session = privsql.connect({"visits": clinic(20)}, POLICY, analyst="ana")
    session.query(COUNT, epsilon=0.5)
    session.query("SELECT mode(state) FROM visits", epsilon=0.25)
    history = session.history()
    assert history["analyst"].tolist() == ["ana", "ana"]
    assert history["epsilon"].tolist() == [0.5, 0.25]
    assert history["question"].tolist()[0] == COUNT
    assert "Laplace" in history["released"].iloc[0]
    assert "noisy-max" in history["released"].iloc[1]
    assert history["when"].is_monotonic_increasing


def test_an_error_while_noise_is_added_is_one_fixed_sentence(two_rows, monkeypatch):
    import privsql.requests.pipeline

    monkeypatch.setattr(privsql.requests.pipeline, "add_noise", lambda *_: 1 // 0)
    with pytest.raises(privsql.EngineError) as caught:
        two_rows.query("SELECT COUNT(*) FROM t", epsilon=1)
    assert str(caught.value) == str(privsql.EngineError())
    assert two_rows.budget.spent.epsilon == 1


def test_public_tables_accept_within_and_a_delta_cap_holds_without_an_epsilon_cap():
    connection = database(
        "CREATE TABLE pub AS SELECT 1 AS x", "CREATE TABLE t AS SELECT 'a' AS k FROM range(100)"
    )
    session = privsql.connect(connection, {"budget": {"delta": 1e-6}, "tables": {"pub": {"public": True}}})
    assert session.query("SELECT COUNT(*) AS n FROM pub", within=3).fetchall() == [(1,)]
    with pytest.raises(privsql.BudgetError):
        session.query("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-3)
