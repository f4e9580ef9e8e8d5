"""Windows within a unit beside the rest: prepared copies, PostgreSQL, stored answers, limits, EXPLAIN."""

# ruff: noqa: E501 -- queries read better in one line each
from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import privsql
from privsql.render.postgres import POSTGRES
from tests.prepare.visits import POLICY, make, uses_copy

ROWS = """CREATE TABLE visits AS SELECT (i % 50)::INTEGER AS user_id, ['CA', 'NY'][1 + i % 2] AS state, (i % 7)::INTEGER AS n,
    DATE '2024-01-01' + (i % 60)::INTEGER AS day FROM range(400) r(i)"""
COLUMNS = {"state": {"values": ["CA", "NY"]}, "n": {"range": [0, 6]}}


def _session(**limits: int) -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(ROWS)
    table = {"unit": "user_id", "columns": COLUMNS, **{"max_rows": 8, "max_groups": 2, **limits}}
    return privsql.connect(connection, policy={"tables": {"visits": table}})


def test_a_window_does_not_read_a_prepared_copy(tmp_path: Path) -> None:
    """A copy is read up to a rank, and a window sees all rows."""
    with privsql.connect(make(tmp_path / "visits.duckdb"), POLICY) as session:
        session.prepare("visits")
        for sql, reads in (
            ("SELECT COUNT(*) FROM visits WHERE amount > 3", True),
            (
                "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY user_id) AS c FROM visits) WHERE c > 3",
                False,
            ),
            (
                "SELECT COUNT(*) FROM (SELECT user_id FROM visits EXCEPT ALL SELECT user_id FROM visits)",
                False,
            ),
        ):
            assert uses_copy(session.explain(sql, epsilon=1)) == reads


@pytest.mark.parametrize(
    "call", ["ROW_NUMBER()", "RANK()", "LAG(n)", "FIRST_VALUE(n)", "SUM(n)", "NTILE(2)", "COUNT(*)"]
)
def test_postgres_refuses_a_window_by_name(call: str) -> None:
    session = _session()
    session._pipeline.engine.dialect = POSTGRES
    with pytest.raises(privsql.Refused, match=call.split("(")[0]) as found:
        session.explain(
            f"SELECT COUNT(v) FROM (SELECT {call} OVER (PARTITION BY user_id ORDER BY day) AS v FROM visits)",
            epsilon=1,
        )
    assert found.value.code == "refused-window"


def test_postgres_has_differences_within_a_unit() -> None:
    session = _session()
    session._pipeline.engine.dialect = POSTGRES
    plan = session.explain(
        "SELECT COUNT(*) FROM (SELECT user_id FROM visits EXCEPT SELECT user_id FROM visits WHERE n > 3)",
        epsilon=1,
    )
    assert "NOT EXISTS" in plan.sql


def test_differences_also_compare_the_unit() -> None:
    for word in ("EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"):
        plan = _session().explain(
            f"SELECT COUNT(*) FROM (SELECT user_id FROM visits {word} SELECT user_id FROM visits WHERE n > 3)",
            epsilon=1,
        )
        assert "(privsql_l.privsql_unit = privsql_r.privsql_unit)" in plan.sql


FIRST = "SELECT COUNT(*) AS n FROM (SELECT n, ROW_NUMBER() OVER ({}) AS k FROM visits) WHERE k <= 2"


@pytest.mark.parametrize(
    ("partition", "free"),
    [
        ("PARTITION BY user_id ORDER BY day", True),
        ("PARTITION BY user_id, user_id ORDER BY day", True),
        ("PARTITION BY user_id, 1 ORDER BY day", True),
        ("PARTITION BY user_id, n ORDER BY day", False),
        ("PARTITION BY user_id ORDER BY day DESC", False),
        ("PARTITION BY user_id ORDER BY n", False),
    ],
)
def test_equal_windows_share_an_answer_and_others_do_not(partition: str, free: bool) -> None:
    session = _session()
    session.query(FIRST.format("PARTITION BY user_id ORDER BY day"), epsilon=1)
    spent = session.budget.spent.epsilon
    session.query(FIRST.format(partition), epsilon=1)
    assert (session.budget.spent.epsilon == spent) == free


def test_explain_names_the_window_and_what_bounds_the_rows() -> None:
    text = str(_session().explain(FIRST.format("PARTITION BY user_id ORDER BY day"), epsilon=1))
    assert "Windows within each unit: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY day)" in text
    assert "ROW_NUMBER keeps at most 2 rows of each unit" in text


def test_a_rank_needs_the_limits_of_the_table() -> None:
    plan = _session(max_rows=5).explain(
        FIRST.format("PARTITION BY user_id ORDER BY day").replace("ROW_NUMBER", "RANK"), epsilon=1
    )
    assert (plan.measurements[0].l1, plan.limits.max_rows) == (5, 5)


def test_sums_over_windows_say_how_many_rows_they_are_assumed_to_cover() -> None:
    plan = _session(max_rows=5).explain(
        "SELECT SUM(s) AS t FROM (SELECT SUM(n) OVER (PARTITION BY user_id) AS s FROM visits)", epsilon=1
    )
    sentences = " ".join(sentence for each in plan.bounding for sentence in each.sentences)
    assert "Counts and sums within one user_id are assumed to cover at most 5 rows" in sentences


def test_limits_found_privately_count_all_rows() -> None:
    sql = "SELECT COUNT(*) FROM (SELECT n, LAG(n) OVER (PARTITION BY user_id ORDER BY day) AS p FROM visits) WHERE p < n"
    assert _session().query(sql, epsilon=1, max_rows="auto").df().shape == (1, 1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT state FROM (SELECT DISTINCT ON (user_id) user_id, state FROM visits ORDER BY day) GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1",
        "SELECT MEDIAN(k) FROM (SELECT RANK() OVER (PARTITION BY user_id ORDER BY day) AS k FROM visits) WHERE k <= 6",
        "SELECT COUNT(DISTINCT user_id) FROM (SELECT user_id, COUNT(*) OVER (PARTITION BY user_id, state) AS c FROM visits) WHERE c > 3",
        "SELECT s, COUNT(*) FROM (SELECT FIRST_VALUE(state) OVER (PARTITION BY user_id ORDER BY day) AS s FROM visits) GROUP BY ROLLUP (s)",
        "SELECT COUNT(*) FROM (SELECT n FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY n) = 1) WHERE n > (SELECT AVG(n) FROM visits)",
        "SELECT state, COUNT(*) FROM (SELECT user_id, state FROM visits UNION ALL SELECT user_id, LAG(state) OVER (PARTITION BY user_id ORDER BY day) FROM visits) GROUP BY state",
    ],
)
def test_windows_stand_below_every_kind_of_release(sql: str) -> None:
    assert len(_session().query(sql, epsilon=10).df())
