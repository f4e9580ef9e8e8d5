"""An equivalent query gets the same answer at no cost: the meaning counts, not the text."""

# ruff: noqa: E501 -- pairs of texts read better in one line each
from __future__ import annotations

import pandas as pd
import pytest

import privsql

ROWS = pd.DataFrame(
    {
        "age": [i % 100 for i in range(500)],
        "state": ["CA", "NY", "TX"] * 166 + ["CA", "NY"],
        "n": [i % 7 for i in range(500)],
    }
)
POLICY = {
    "tables": {
        "df": {
            "columns": {
                "age": {"range": [0, 99]},
                "state": {"values": ["CA", "NY", "TX"]},
                "n": {"range": [0, 6]},
            }
        }
    }
}


@pytest.fixture
def session() -> privsql.Session:
    return privsql.connect(ROWS, POLICY)


SAME = [
    ("SELECT COUNT(*) FROM df", "select count(*)  as people from df t -- all"),
    ("SELECT COUNT(*) FROM df WHERE age > 10 AND n = 3", "SELECT COUNT(1) FROM df WHERE 3 = n AND 10 < age"),
    ("SELECT COUNT(*) FROM df WHERE age > 10 + 5", "WITH c AS (SELECT age AS years FROM df) SELECT COUNT(*) FROM c WHERE years > 15"),
    ("SELECT state, COUNT(*) AS n FROM df GROUP BY state", "SELECT COUNT(*) AS people, state FROM df GROUP BY 2 ORDER BY people DESC"),
    ("SELECT state, SUM(age) FROM df GROUP BY state", "SELECT state, SUM(age) / 2 AS half FROM df GROUP BY state HAVING SUM(age) > 0"),
    ("SELECT state, n, COUNT(*) FROM df GROUP BY state, n", "SELECT n, state, COUNT(*) FROM df GROUP BY n, state"),
    ("SELECT state FROM df GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", "SELECT s FROM (SELECT state AS s FROM df) GROUP BY s ORDER BY COUNT(*) DESC LIMIT 1"),
    ("SELECT COUNT(*) FROM df WHERE n IN (1, 2)", "SELECT COUNT(*) FROM df WHERE n = 2 OR n = 1"),
    ("SELECT COUNT(*) FILTER (WHERE n = 1) FROM df", "SELECT SUM(CASE WHEN n = 1 THEN 1 ELSE 0 END) FROM df"),
    ("SELECT MEDIAN(age) FROM df", "SELECT median(df.age) AS middle FROM df"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SAME)
def test_an_equivalent_query_is_free(session, first, second):
    one = session.query(first, epsilon=1)
    two = session.query(second, epsilon=1)
    assert session.budget.spent.epsilon == 1
    assert two.stored
    assert two.receipt["charged"] == 0
    numbers = [sorted(str(value) for row in each.fetchall() for value in row) for each in (one, two)]
    if "half" not in second:
        assert numbers[0] == numbers[1]


def test_cells_are_matched_in_another_key_order(session):
    one = {(state, n): count for state, n, count in session.query(SAME[5][0], epsilon=1).fetchall()}
    two = {(state, n): count for n, state, count in session.query(SAME[5][1], epsilon=1).fetchall()}
    assert one == two


@pytest.mark.parametrize(
    "second",
    ["SELECT COUNT(*) FROM df WHERE age > 11", "SELECT COUNT(*) FROM df WHERE age >= 10", "SELECT COUNT(*) FROM df WHERE NOT age > 10",
     "SELECT COUNT(*) FROM df WHERE age > 10 OR n = 1", "SELECT COUNT(DISTINCT age) FROM df WHERE age > 10", "SELECT SUM(age) FROM df WHERE age > 10",
     "SELECT COUNT(*) FROM (SELECT * FROM df UNION ALL SELECT * FROM df) WHERE age > 10"],
)  # fmt: skip
def test_a_different_query_is_charged(session, second):
    session.query("SELECT COUNT(*) FROM df WHERE age > 10", epsilon=1)
    assert not session.query(second, epsilon=1).stored
    assert session.budget.spent.epsilon == 2


def test_another_epsilon_gives_another_answer(session):
    session.query("SELECT COUNT(*) FROM df", epsilon=1)
    assert not session.query("SELECT COUNT(*) AS n FROM df", epsilon=2).stored
    assert not session.query("SELECT COUNT(*) FROM df", epsilon=1, fresh=True).stored
    assert session.budget.spent.epsilon == 4


def test_rewording_a_query_gives_the_same_noise(session):
    texts = [
        f"SELECT COUNT(*) AS n{i} FROM df WHERE age > {i} + {10 - i} AND n < {20 - i} - {10 - i}"
        for i in range(10)
    ]
    answers = {session.query(text, epsilon=0.5).fetchall()[0] for text in texts}
    assert len(answers) == 1
    assert session.budget.spent.epsilon == 0.5


def test_post_processing_of_a_stored_answer_is_free(session):
    session.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=1)
    top = session.query(
        "SELECT state, COUNT(*) AS n FROM df GROUP BY state ORDER BY n DESC LIMIT 2", epsilon=1
    )
    assert len(top) == 2
    assert session.budget.spent.epsilon == 1
    assert (
        session.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=1, nonnegative=True).df()[
            "n"
        ]
        >= 0
    ).all()
    assert session.budget.spent.epsilon == 1


def test_undeclared_keys_are_returned_again():
    session = privsql.connect(ROWS, {})
    one = session.query(
        "SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=2, delta=1e-3
    ).fetchall()
    two = session.query(
        "SELECT COUNT(*) AS people, state AS s FROM df GROUP BY s", epsilon=2, delta=1e-3
    ).fetchall()
    assert [(state, n) for n, state in two] == one
    assert session.budget.spent.epsilon == 2


def test_a_deeply_nested_query_does_not_break_the_next_one(session: privsql.Session) -> None:
    """Its stored form was once compared recursively with every later query."""
    sums = ", ".join(f"t{i} AS (SELECT a + a AS a FROM t{i - 1})" for i in range(1, 12))
    session.query(f"WITH t0 AS (SELECT age AS a FROM df), {sums} SELECT SUM(a) FROM t11", epsilon=1.0)
    assert len(session.query("SELECT COUNT(*) FROM df WHERE age > 3", epsilon=1.0).df()) == 1
