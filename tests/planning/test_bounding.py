"""What bounding may drop is said in plain sentences, by the plan alone; else nothing is said."""

from __future__ import annotations

import duckdb
import pytest

import privsql

SETUP = """
    CREATE TABLE users (id INTEGER PRIMARY KEY, city VARCHAR);
    CREATE TABLE visits (user_id INTEGER, day INTEGER, room INTEGER, cost INTEGER, UNIQUE (user_id, day));
    CREATE TABLE pairs (a INTEGER, b INTEGER, x INTEGER, y INTEGER);
    CREATE TABLE doctors (room INTEGER, name VARCHAR);
    INSERT INTO visits SELECT i % 50, i // 50, i % 7, i % 9 FROM range(500) r(i);
"""
VISITS = {
    "unit": "user_id -> users.id",
    "max_groups": 3,
    "max_rows": 5,
    "matches": {"room": 4},
    "columns": {"day": {"range": [1, 12]}, "room": {"range": [0, 1]}, "cost": {"range": [0, 9]}},
}
TABLES = {
    "users": {"unit": "id"},
    "visits": VISITS,
    "pairs": {"unit": ["a", "b"], "columns": {"x": {"range": [0, 9]}, "y": {"range": [0, 9]}}},
    "doctors": {"matches": {"room": 1}},
}
BY_USER = "SELECT user_id, COUNT(*) AS c, MAX(cost) AS top FROM visits GROUP BY user_id"
LOW = "so totals may be low."
ROWS = f"At most 5 rows per users.id are used; units with more are cut to 5, {LOW}"
KEYS = f"At most 3 keys per users.id are used; units with more keep 3 of them, {LOW}"
CLAMPED = (
    "Counts and sums within one users.id are assumed to cover at most 5 rows; larger ones are clamped, so totals "
    "and averages may be low."
)


@pytest.fixture(scope="module")
def session():
    connection = duckdb.connect()
    connection.execute(SETUP)
    return privsql.connect(connection, {"tables": TABLES})


SAID = {
    "SELECT COUNT(*) FROM visits": [ROWS],
    "SELECT SUM(cost) FROM visits WHERE day > 3": [ROWS],
    "SELECT AVG(cost) FROM visits": [ROWS.replace(LOW, "so the answer may be off.")],
    "SELECT MEDIAN(cost) FROM visits": [ROWS.replace(LOW, "so the answer may be off.")],
    "SELECT COUNT(DISTINCT room) FROM visits": [ROWS.replace("rows", "different values")],
    # one row a unit and day, by the schema: only keys can be too many
    "SELECT day, COUNT(*) FROM visits GROUP BY day": [KEYS],
    "SELECT room, COUNT(*) FROM visits GROUP BY room": [
        ROWS.replace("users.id are", "users.id in each key are")
    ],
    "SELECT day FROM visits GROUP BY day ORDER BY SUM(cost) DESC LIMIT 1": [KEYS],
    # nothing can be dropped
    "SELECT COUNT(DISTINCT user_id) FROM visits": [],
    "SELECT COUNT(*) FROM users": [],
    "SELECT room, COUNT(DISTINCT user_id) FROM visits GROUP BY room": [],
    f"SELECT COUNT(*) FROM ({BY_USER}) WHERE c > 2": [],
    f"SELECT COUNT(DISTINCT c) FROM ({BY_USER})": [],
    f"SELECT AVG(top) FROM ({BY_USER})": [],
    "SELECT COUNT(*) FROM doctors": [],
    "SELECT COUNT(*) FROM (VALUES (1), (2)) t(x)": [],
    f"SELECT COUNT(*), MAX(top) FROM ({BY_USER}) UNPIVOT (v FOR what IN (c))": [],
    # counts and sums within a unit, wherever they go
    f"SELECT AVG(c) FROM ({BY_USER})": [CLAMPED],
    f"SELECT SUM(d) FROM (SELECT c + 1 AS d FROM ({BY_USER}))": [CLAMPED],
    f"SELECT c, COUNT(*) FROM ({BY_USER}) GROUP BY c": [CLAMPED.replace("clamped", "left out")],
    f"SELECT AVG(c) FROM users JOIN ({BY_USER}) ON id = user_id": [CLAMPED.replace("users.id", "id")],
    f"SELECT AVG(c) FROM ({BY_USER}) JOIN users ON id = user_id": [CLAMPED],
    f"SELECT AVG(c) FROM ({BY_USER}) WHERE user_id IN (SELECT id FROM users)": [CLAMPED],
    f"SELECT AVG(c) FROM ({BY_USER} UNION ALL {BY_USER})": [CLAMPED],
    f"SELECT AVG(v) FROM ({BY_USER}) UNPIVOT (v FOR what IN (c))": [CLAMPED],
    f"SELECT AVG(m) FROM (SELECT user_id, MAX(c) AS m FROM ({BY_USER}) GROUP BY user_id)": [CLAMPED],
    # pairs of other people's rows
    "SELECT COUNT(*) FROM (SELECT room FROM doctors) JOIN (SELECT room AS r FROM doctors) ON room = r": [
        f"At most 1 row with the same room is joined; others are dropped, {LOW}",
        f"At most 1 row with the same r is joined; others are dropped, {LOW}",
    ],
}


@pytest.mark.parametrize("sql", SAID)
def test_explain_says_what_may_be_dropped(session, sql):
    plan = session.explain(sql, epsilon=1)
    assert list(plan.warnings) == SAID[sql]
    assert plan.to_dict()["warnings"] == SAID[sql]


def test_several_columns_make_one_unit(session):
    (said,) = session.explain("SELECT SUM(x) FROM pairs", epsilon=1).warnings
    assert said == f"At most 10 rows per (a, b) are used; units with more are cut to 10, {LOW}"
    union = "SELECT COUNT(DISTINCT {}) FROM (SELECT a, b FROM pairs UNION ALL SELECT a, b FROM pairs)"
    assert session.explain(union.format("(a, b)"), epsilon=1).warnings == ()
    assert session.explain(union.format("a + b"), epsilon=1).warnings  # not the unit: its values are cut


def test_explain_says_that_rare_keys_are_missing(session):
    plan = session.explain("SELECT city, COUNT(*) FROM users GROUP BY city", epsilon=1, delta=1e-6)
    assert plan.warnings == ("Keys that few units have are not shown.",)


def test_the_notice_is_independent_of_data_and_names_the_limits(session):
    plan = session.explain("SELECT COUNT(*) FROM visits", epsilon=1, max_rows=1)
    assert plan.warnings == (f"At most 1 row per users.id is used; units with more are cut to 1, {LOW}",)
    assert plan.bounding[0].undeclared == frozenset()


@pytest.mark.parametrize(
    ("sql", "undeclared"),
    [
        ("SELECT COUNT(*) FROM pairs", {"max_rows"}),
        ("SELECT x, COUNT(*) FROM pairs GROUP BY x", {"max_rows", "max_groups"}),
        ("SELECT COUNT(*) FROM visits", set()),
    ],
)
def test_default_limits_are_marked(session, sql, undeclared):
    (bounding,) = session.explain(sql, epsilon=1).bounding
    assert bounding.undeclared == undeclared


def test_the_larger_limit_of_two_tables_applies(session):
    """visits allows 5 and says so, pairs 10 by default: the union uses 10, which nobody declared."""
    tables = {"a": {"unit": "u", "max_rows": 20}, "b": {"unit": "u"}, "c": {"unit": "u", "max_rows": 4}}
    connection = duckdb.connect()
    for name in tables:
        connection.execute(f"CREATE TABLE {name} (u INTEGER)")
    opened = privsql.connect(connection, {"tables": tables})
    for other, undeclared in (("a", set()), ("c", {"max_rows"})):
        sql = f"SELECT COUNT(*) FROM (SELECT u FROM b UNION ALL SELECT u FROM {other})"
        assert opened.explain(sql, epsilon=1).bounding[0].undeclared == undeclared


def test_a_prepared_copy_says_what_it_keeps(tmp_path):
    file = tmp_path / "visits.duckdb"
    with duckdb.connect(str(file)) as owner:
        owner.execute("CREATE TABLE visits AS SELECT i % 50 AS u, i % 7 AS x FROM range(500) r(i)")
    policy = {"tables": {"visits": {"unit": "u", "max_rows": 5, "columns": {"x": {"range": [0, 6]}}}}}
    with privsql.connect(file, policy) as opened:
        opened.prepare("visits")
        said = opened.explain("SELECT COUNT(*) FROM visits WHERE x > 2", epsilon=1).warnings
        assert said == (
            f"At most 5 rows per u are used, chosen before WHERE; units with more are cut to 5, {LOW}",
        )
        assert opened.explain("SELECT COUNT(*) FROM visits", epsilon=1).warnings == (
            f"At most 5 rows per u are used; units with more are cut to 5, {LOW}",
        )
        assert opened.explain("SELECT COUNT(DISTINCT u) FROM visits", epsilon=1).warnings == ()
