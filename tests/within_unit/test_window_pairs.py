"""One person's data, from none to very much, beside the same others: windows within a unit, on pairs made to break them.

See tests/soundness/test_unit_pairs.py, whose tables these are. The others' rows come in two physical orders, and one
thread or four; what the SQL returns must not depend on that, or a person whose rows did not change could move.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import privsql
from tests.soundness.check import Report, check_plan
from tests.soundness.test_unit_pairs import OTHERS, SCHEMA, STATES, TABLES

_NUMBERED = "SELECT k, n, x, y, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY {}) AS r FROM visits"
QUESTIONS = [
    # a number bounds the rows of a unit, in all or in each part
    f"SELECT COUNT(*) FROM ({_NUMBERED.format('n')}) WHERE r = 1",
    f"SELECT k, COUNT(*) FROM ({_NUMBERED.format('n')}) WHERE r <= 2 GROUP BY k",
    f"SELECT k, SUM(n) FROM ({_NUMBERED.format('n DESC')}) WHERE r IN (1, 3) GROUP BY k",
    f"SELECT r, COUNT(*) FROM ({_NUMBERED.format('n')}) WHERE r < 5 GROUP BY r",
    "SELECT k, COUNT(*) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY uid, k ORDER BY n) = 1) GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY uid, k ORDER BY n) = 1)",
    "SELECT k, COUNT(*) FROM (SELECT DISTINCT ON (uid) uid, k FROM visits ORDER BY n) GROUP BY k",
    "SELECT n, COUNT(*) FROM (SELECT DISTINCT ON (uid, k) * FROM visits ORDER BY n) GROUP BY n",
    "SELECT k, COUNT(*) FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY oid ORDER BY n) AS r FROM items) WHERE r = 1 GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY clinic, patient ORDER BY n) AS r FROM rooms) WHERE r <= 2",
    "SELECT k, COUNT(*) FROM (SELECT uid, k, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY uid, k) WHERE r = 1 GROUP BY k",
    # a rank bounds nothing
    "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY uid ORDER BY k = 'c') AS r FROM visits) WHERE r = 1",
    "SELECT k, COUNT(*) FROM (SELECT k, DENSE_RANK() OVER (PARTITION BY uid ORDER BY n) AS r FROM visits) WHERE r <= 2 GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY uid) AS c FROM visits) WHERE c > 5",
    # ties: of rows with the same n, any might come first
    f"SELECT COUNT(*) FROM ({_NUMBERED.format('n')}) WHERE r = 1 AND x > 0",
    f"SELECT COUNT(*) FROM ({_NUMBERED.format('n')}) WHERE r = 2 AND CAST(y AS VARCHAR) = '-0.0'",
    "SELECT COUNT(*) FROM (SELECT LAG(x) OVER (PARTITION BY uid ORDER BY n) AS p FROM visits) WHERE p > 0",
    "SELECT v, COUNT(*) FROM (SELECT LEAD(k, 2, 'a') OVER (PARTITION BY uid ORDER BY n) AS v FROM visits) GROUP BY v",
    "SELECT v, COUNT(*) FROM (SELECT FIRST_VALUE(k) OVER (PARTITION BY uid ORDER BY n) AS v FROM visits) GROUP BY v",
    "SELECT v, COUNT(*) FROM (SELECT LAST_VALUE(k) OVER (PARTITION BY uid ORDER BY n) AS v FROM visits) GROUP BY v",
    "SELECT v, COUNT(*) FROM (SELECT NTH_VALUE(k, 2) OVER (PARTITION BY uid ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM visits) GROUP BY v",
    "SELECT COUNT(*) FROM (SELECT NTILE(3) OVER (PARTITION BY uid ORDER BY n) AS t, x FROM visits) WHERE t = 1 AND x > 0",
    "SELECT COUNT(*) FROM (SELECT MAX(x) OVER (PARTITION BY uid ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS m FROM visits) WHERE m < 1",
    "SELECT COUNT(*) FROM (SELECT MIN(y) OVER (PARTITION BY uid) AS m FROM visits) WHERE CAST(m AS VARCHAR) = '0.0'",
    # sums in any order
    "SELECT COUNT(*) FROM (SELECT SUM(x) OVER (PARTITION BY uid ORDER BY n) AS s FROM visits) WHERE s > 0.05",
    "SELECT COUNT(*) FROM (SELECT AVG(x) OVER (PARTITION BY uid ORDER BY n ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM visits) WHERE s > 0.05",
    "SELECT SUM(s) FROM (SELECT SUM(n) OVER (PARTITION BY uid ORDER BY k) AS s FROM visits)",
    # all rows of a person are seen, before any are dropped
    "SELECT SUM(LEAST(c, 9)) FROM (SELECT COUNT(*) OVER (PARTITION BY uid) AS c FROM visits)",
    "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY uid ORDER BY n RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS c FROM visits) WHERE c >= 2",
    # sets of rows
    "SELECT COUNT(*) FROM (SELECT uid FROM visits WHERE n > 5 EXCEPT SELECT cid FROM orders)",
    "SELECT k, COUNT(*) FROM (SELECT uid, k FROM visits INTERSECT SELECT cid, k FROM orders) GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT uid, k FROM visits EXCEPT ALL SELECT uid, k FROM visits WHERE n > 5) GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT uid, k FROM visits INTERSECT ALL SELECT cid, k FROM orders) GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT uid FROM visits EXCEPT SELECT n FROM pub)",
]
REFUSED = [
    f"SELECT COUNT(*) FROM ({_NUMBERED.format('n').replace('PARTITION BY uid', 'PARTITION BY k')}) WHERE r = 1",
    f"SELECT COUNT(*) FROM ({_NUMBERED.format('n').replace('PARTITION BY uid', 'PARTITION BY uid + 0')}) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY clinic ORDER BY n) AS r FROM rooms) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT c.k, ROW_NUMBER() OVER (PARTITION BY c.id ORDER BY v.n) AS r FROM visits v LEFT JOIN customers c ON v.uid = c.id AND v.n > 3) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY code ORDER BY k) AS r FROM people) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT p.k, ROW_NUMBER() OVER (PARTITION BY p.code ORDER BY s.k) AS r FROM people p JOIN surveys s ON p.code = s.code) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT k FROM visits EXCEPT SELECT k FROM orders)",
    "SELECT COUNT(*) FROM (SELECT uid, k FROM visits INTERSECT SELECT oid, k FROM orders)",
    "SELECT COUNT(*) FROM (SELECT n FROM pub EXCEPT SELECT uid FROM visits)",
]


@pytest.fixture(scope="module")
def states() -> Iterator[list[duckdb.DuckDBPyConnection]]:
    opened = []
    for index, state in [*enumerate(STATES), (6, STATES[0]), (7, STATES[2])]:
        connection = duckdb.connect(":memory:", config={"threads": "1" if index < 6 else "4"})
        connection.execute(SCHEMA)
        connection.execute(OTHERS.format(turn="" if index < 6 else "hash(i),"))
        if state:
            connection.execute(state)
        opened.append(connection)
    yield opened
    for each in opened:
        each.close()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_state_of_a_person_exceeds_the_bound_of_a_window(
    states: list[duckdb.DuckDBPyConnection], sql: str
) -> None:
    for relation in ("replace-one", "add-remove"):
        session = privsql.connect(states[0], policy={"neighbours": relation, "tables": TABLES})
        plan = session.explain(sql, epsilon=1.0)
        pairs = (
            [states[:6], [states[6], states[2]]]
            if relation == "add-remove"
            else [[states[2], *states[1:6]], states[3:6]]
        )
        for variants in pairs:
            assert not check_plan(plan, variants, Report())
    for one, two in ((0, 6), (2, 7)):
        cells = [sorted(each.execute(plan.sql).fetchall(), key=str) for each in (states[one], states[two])]
        assert cells[0] == cells[1], "the same rows in another order"


@pytest.mark.parametrize("sql", REFUSED)
def test_what_mixes_people_is_refused(states: list[duckdb.DuckDBPyConnection], sql: str) -> None:
    with pytest.raises(privsql.Refused):
        privsql.connect(states[0], policy={"tables": TABLES}).explain(sql, epsilon=1.0)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_every_window_is_partitioned_by_the_unit(states: list[duckdb.DuckDBPyConnection], sql: str) -> None:
    """Whatever was believed of columns, a window sees the rows of one unit."""
    plan = privsql.connect(states[0], policy={"tables": TABLES}).explain(sql, epsilon=1.0)
    windows = plan.sql.count(" OVER (")
    own = plan.sql.count('OVER (PARTITION BY "privsql_unit"') + plan.sql.count(
        "OVER (PARTITION BY privsql_unit"
    )
    assert windows == own


def test_rows_without_a_unit_leave_before_the_window(states: list[duckdb.DuckDBPyConnection]) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v (uid INTEGER, n INTEGER)")
    connection.execute("INSERT INTO v SELECT NULL, i FROM range(50) r(i); INSERT INTO v VALUES (1, 7)")
    session = privsql.connect(connection, policy={"tables": {"v": {"unit": "uid", "max_rows": 3}}})
    plan = session.explain(
        "SELECT COUNT(*) FROM (SELECT n, COUNT(*) OVER (PARTITION BY uid) AS c FROM v)", epsilon=1.0
    )
    assert connection.execute(plan.sql).fetchall() == [(1,)]


def test_a_window_sees_all_rows_whatever_the_limits(states: list[duckdb.DuckDBPyConnection]) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v AS SELECT 1 AS uid, i AS n FROM range(50) r(i)")
    session = privsql.connect(connection, policy={"tables": {"v": {"unit": "uid", "max_rows": 3}}})
    plan = session.explain(
        "SELECT COUNT(*) FROM (SELECT n, COUNT(*) OVER (PARTITION BY uid) AS c FROM v) WHERE c = 50 AND n < 2",
        epsilon=1.0,
    )
    assert connection.execute(plan.sql).fetchall() == [(2,)]
