"""Several queries for one epsilon: priced together, equal ones measured once, all charged or none."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql

N = 6_000
PLACES = np.arange(N)
ROWS = pd.DataFrame(
    {
        "age": PLACES * 7919 % 100,
        "state": np.array(["CA", "NY", "CA", "TX", "CA"])[PLACES % 5],
        "n": PLACES % 7,
    }
)
COLUMNS = {"age": {"range": [0, 99]}, "state": {"values": ["CA", "NY", "TX"]}, "n": {"range": [0, 6]}}
POLICY = {"tables": {"df": {"columns": COLUMNS}}, "budget": {"epsilon": 10}}
THREE = [
    "SELECT state, COUNT(*) AS n FROM df GROUP BY state",
    "SELECT COUNT(*) AS people, state AS s FROM df GROUP BY s ORDER BY people DESC",
    "SELECT COUNT(*) FROM df WHERE state = 'CA'",
]
MANY = [
    *THREE, "SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY decade", "SELECT SUM(n) FROM df", "SELECT MEDIAN(age) FROM df",
    "SELECT state FROM df GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", "SELECT state, AVG(n) FROM df GROUP BY state",
]  # fmt: skip


@pytest.fixture
def session() -> privsql.Session:
    return privsql.connect(ROWS, POLICY)


def test_three_queries_over_one_histogram_are_charged_once(session):
    counts, sorted_counts, one = session.batch(THREE, epsilon=1)
    assert session.budget.spent.epsilon == pytest.approx(1, abs=1e-8)
    assert [answer.receipt["charged"] for answer in (counts, sorted_counts, one)] == [
        pytest.approx(1, abs=1e-8),
        0,
        0,
    ]
    known = dict(counts.fetchall())
    assert {state: n for n, state in sorted_counts.fetchall()} == known
    assert one.fetchall() == [(known["CA"],)]
    assert counts.plan.measurements[0].scale == pytest.approx(2, abs=1e-6)  # as if it had been asked alone


def test_a_query_is_derived_if_its_worst_cell_stays_accurate():
    """Ages 0 to 11: five ages cost less added up than measured again; ten are too many, although the other bin has two."""
    for width, paid in ((5, [True, False]), (10, [True, True])):
        session = privsql.connect(
            ROWS[ROWS.age < 12], {"tables": {"df": {"columns": {"age": {"range": [0, 11]}}}}}
        )
        fine, coarse = (
            "SELECT age, COUNT(*) FROM df GROUP BY age",
            f"SELECT age // {width} AS bin, COUNT(*) FROM df GROUP BY bin",
        )
        assert [answer.receipt["charged"] > 0 for answer in session.batch([fine, coarse], epsilon=1)] == paid


def test_a_batch_beats_an_equal_split_of_epsilon(session):
    together = session.batch(MANY, epsilon=1)
    assert session.budget.spent.epsilon <= 1
    assert session.budget.spent.epsilon == pytest.approx(1, abs=1e-6)
    apart, ratios = privsql.connect(ROWS, POLICY), []
    for sql, answer in zip(MANY, together, strict=True):
        alone = apart.query(sql, epsilon=1 / len(MANY), fresh=True)
        ends = [each.intervals() for each in (answer, alone)]
        for name in alone.columns:
            if f"{name}_low" in ends[0].columns and "MEDIAN" not in sql:
                with_it, by_itself = ((each[f"{name}_high"] - each[f"{name}_low"]).max() for each in ends)
                ratios.append(with_it / by_itself)
    assert max(ratios) < 1.2
    assert np.mean(np.square(ratios)) < 0.6


def test_batch_answers_are_correct():
    session = privsql.connect(ROWS, {**POLICY, "budget": {"epsilon": 9_000}})
    for sql, answer in zip(MANY, session.batch(MANY, epsilon=8_000), strict=True):
        exact = duckdb.connect().execute(sql.replace("FROM df", "FROM ROWS")).fetchall()
        found = [row for row in answer.fetchall() if None not in row]
        assert (
            sorted(map(str, found)) == sorted(str(tuple(row)) for row in exact)
            or "AVG" in sql
            or "MEDIAN" in sql
        ), sql


def test_a_batch_is_charged_as_a_whole_or_not_at_all(session):
    with pytest.raises(privsql.BudgetError):
        session.batch(MANY, epsilon=11)
    with pytest.raises(privsql.PrivsqlError) as refused:
        session.batch([*MANY, "SELECT age FROM df"], epsilon=1)
    assert refused.value.code.startswith("refused")
    assert session.budget.spent.epsilon == 0
    assert len(session.history()) == 0


def test_each_charged_query_has_a_ledger_entry(session, tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE df AS SELECT * FROM ROWS")
    with privsql.connect(tmp_path / "d.duckdb", POLICY, ledger=tmp_path / "l", version="2026-11") as filed:
        filed.batch(MANY, epsilon=1)
        history = filed.history()
        assert 3 <= len(history) < len(MANY)
        assert history["epsilon"].sum() == pytest.approx(1, abs=1e-6)
    with privsql.connect(tmp_path / "d.duckdb", POLICY, ledger=tmp_path / "l", version="2026-11") as later:
        assert later.query("SELECT COUNT(*) FROM df WHERE state = 'CA'", epsilon=0.01).stored


def test_stored_answers_are_not_charged_again(session):
    session.query(THREE[0], epsilon=2)
    answers = session.batch(THREE, epsilon=1)
    assert session.budget.spent.epsilon == 2
    assert all(answer.stored for answer in answers)


def test_public_tables_are_free(session):
    two = privsql.connect(
        {"df": ROWS, "p": pd.DataFrame({"x": [1, 2]})},
        {"tables": {**POLICY["tables"], "p": {"public": True}}},
    )
    answers = two.batch(["SELECT SUM(x) FROM p", "SELECT COUNT(*) FROM df"], epsilon=1)
    assert answers[0].fetchall() == [(3,)]
    assert two.budget.spent.epsilon == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("questions", ["SELECT COUNT(*) FROM df", [], None, 3])
def test_a_batch_needs_a_list_of_queries(session, questions):
    with pytest.raises(privsql.PrivsqlError) as refused:
        session.batch(questions, epsilon=1)
    assert refused.value.code == "argument-batch"


def test_a_batch_does_not_search_for_ranges():
    session = privsql.connect(ROWS, {"tables": {"df": {"columns": {"n": {"range": "auto"}}}}})
    with pytest.raises(privsql.PrivsqlError) as refused:
        session.batch(["SELECT SUM(n) FROM df"], epsilon=1)
    assert refused.value.code == "argument-batch"


def test_a_query_that_needs_a_single_answer_is_charged_if_there_are_several():
    """AVG needs COUNT and SUM of one answer: where the batch's own is known from two others, it is paid for after all."""
    session = privsql.connect(ROWS, POLICY)
    for sql in ("SELECT COUNT(n) FROM df WHERE age < 50", "SELECT SUM(n) FROM df WHERE age < 50"):
        session.query(sql, epsilon=3)
    both = "SELECT COUNT(*) FILTER (WHERE n IS NOT NULL) AS c, SUM(n) AS s FROM df WHERE age < 50"
    questions = [
        both,
        *(both.replace(" AS s", f" AS s{place}") for place in range(9)),
        "SELECT AVG(n) FROM df WHERE age < 50",
    ]
    assert len(session.batch(questions, epsilon=0.1)) == len(questions)
    assert session.budget.spent.epsilon <= 6.1


@pytest.mark.parametrize("epsilon", [9e-6, 1e-5, 1e-3, 1.0])
def test_shares_never_exceed_the_total_even_at_the_least_epsilon(session, epsilon):
    """Sums of a wide range hang much more on their share than counts do."""
    counts = [f"SELECT COUNT(*) FROM df WHERE age = {n}" for n in range(7)]
    questions = [*counts, "SELECT SUM(n) FROM df", "SELECT MEDIAN(age) FROM df"]
    session.batch(questions, epsilon=epsilon)
    assert session.budget.spent.epsilon <= epsilon
    assert session.budget.spent.epsilon == pytest.approx(epsilon, rel=1e-3)


def test_a_batch_without_epsilon_is_refused(session):
    with pytest.raises(privsql.PrivsqlError, match="epsilon must be a number"):
        session.batch(THREE)
