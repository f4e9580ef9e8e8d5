"""SELECT WITH DIFFERENTIAL_PRIVACY, as BigQuery writes it: what it is answered with, what it costs, what is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql

MANY = 9_999
POLICY = {
    "tables": {
        "professors": {
            "unit": "id",
            "max_groups": 3,
            "max_rows": 5,
            "columns": {
                "item": {"values": ["pencil", "pen", "scissors"], "nullable": False},
                "quantity": {"range": [0, 100]},
            },
        },
        "people": {
            "unit": "id",
            "unique": ["id"],
            "columns": {"state": {"values": ["CA", "NY"], "nullable": False}, "age": {"range": [0, 100]}},
        },
        "items": {"public": True},
    }
}
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9999, delta=1e-5, privacy_unit_column=id)"
ANON = "SELECT WITH ANONYMIZATION OPTIONS(epsilon=9999, delta=1e-5, kappa=3)"


@pytest.fixture(scope="module")
def tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE professors AS SELECT CAST(i % 211 AS INTEGER) AS id,"
        " ['pencil', 'pen', 'scissors'][1 + i % 3] AS item, CAST(i * 7 % 101 AS INTEGER) AS quantity"
        " FROM range(1000) t(i)"
    )
    connection.execute(
        "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN 'CA' ELSE 'NY' END AS state, "
        "CASE WHEN i % 11 > 0 THEN CAST(i % 101 AS INTEGER) END AS age, CAST(i % 7 - 3 AS INTEGER) AS x "
        "FROM range(2000) t(i)"
    )
    connection.execute("CREATE TABLE items (item VARCHAR PRIMARY KEY, kind VARCHAR)")
    connection.execute("INSERT INTO items VALUES ('pencil', 'a'), ('pen', 'a'), ('scissors', 'b')")
    return connection


@pytest.fixture(scope="module")
def session(tables: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(tables, policy=POLICY)


def _ask(session: privsql.Session, sql: str, **given: Any) -> Any:
    return session.query(sql, dialect="bigquery", **given)


PER_PERSON = (
    "SELECT item, SUM(LEAST(GREATEST(s, 0), 60)) AS s, SUM(LEAST(n, 2)) AS n, AVG(LEAST(GREATEST(a, 10), 40)) AS a "
    "FROM (SELECT id, item, SUM(quantity) AS s, COUNT(quantity) AS n, AVG(quantity) AS a FROM professors "
    "GROUP BY id, item) GROUP BY item"
)
ANSWERED = [
    (
        f"{DP} item, COUNT(*) AS n FROM professors GROUP BY item",
        "SELECT item, COUNT(*) FROM professors GROUP BY item",
    ),
    (
        f"{DP} item, SUM(quantity, contribution_bounds_per_group => (0, 60)) AS s, "
        "COUNT(quantity, contribution_bounds_per_group => (0, 2)) AS n, "
        "AVG(quantity, contribution_bounds_per_group => (10, 40)) AS a FROM professors GROUP BY item",
        PER_PERSON,
    ),
    (
        f"{ANON} item, ANON_SUM(quantity CLAMPED BETWEEN 0 AND 60) AS s, ANON_COUNT(quantity CLAMPED BETWEEN 0 AND 2), "
        "ANON_AVG(quantity CLAMPED BETWEEN 10 AND 40) AS a FROM professors GROUP BY item",
        PER_PERSON,
    ),
    (
        f"{ANON} item, ANON_AVG(quantity) AS a FROM professors GROUP BY item",
        "SELECT item, AVG(a) FROM (SELECT item, id, AVG(quantity) AS a FROM professors GROUP BY item, id) GROUP BY item",
    ),
    (
        f"{DP} AVG(quantity) AS a, SUM(quantity) AS s, COUNT(*) AS n FROM professors WHERE item <> 'pen'",
        "SELECT AVG(a), SUM(s), SUM(n) FROM (SELECT id, AVG(quantity) AS a, SUM(quantity) AS s, COUNT(*) AS n "
        "FROM professors WHERE item <> 'pen' GROUP BY id)",
    ),
    (
        f"{DP} state, SUM(age, contribution_bounds_per_group => (5, 50)) AS s, "
        "AVG(x, contribution_bounds_per_group => (-2, 2)) AS a, COUNT(*, contribution_bounds_per_group => (0, 1)) AS n "
        "FROM people GROUP BY state",
        "SELECT state, SUM(CASE WHEN age IS NOT NULL THEN LEAST(GREATEST(age, 5), 50) END), "
        "AVG(LEAST(GREATEST(x, -2), 2)), COUNT(*) FROM people GROUP BY state",
    ),
    (
        f"{DP} item, SUM(quantity, contribution_bounds_per_row => (20, 50)) AS s, "
        "VAR_POP(quantity, contribution_bounds_per_row => (0, 50)) AS v FROM professors GROUP BY item",
        "SELECT item, SUM(LEAST(GREATEST(quantity, 20), 50)), VAR_POP(LEAST(quantity, 50)) "
        "FROM professors GROUP BY item",
    ),
    (
        f"WITH a AS ({DP} item, COUNT(*) AS n FROM professors GROUP BY item) "
        "SELECT kind, SUM(n) AS n FROM a JOIN items USING (item) GROUP BY kind",
        "SELECT kind, COUNT(*) FROM professors JOIN items USING (item) GROUP BY kind",
    ),
    (
        f"{DP} item, AVG(quantity) AS a, SUM(COUNT(*)) OVER () AS total FROM professors GROUP BY item",
        "SELECT item, AVG(a), SUM(SUM(n)) OVER () FROM (SELECT item, id, AVG(quantity) AS a, COUNT(*) AS n "
        "FROM professors GROUP BY item, id) GROUP BY item",
    ),
    (
        f"{DP} p.item, COUNT(*) AS n FROM professors AS p GROUP BY 1 HAVING n > 100 ORDER BY n DESC LIMIT 1",
        "SELECT item, COUNT(*) FROM professors GROUP BY item ORDER BY COUNT(*) DESC LIMIT 1",
    ),
]


@pytest.mark.parametrize(("sql", "plain"), ANSWERED, ids=range(len(ANSWERED)))
def test_the_clause_is_answered_as_bigquery_defines_it(
    session: privsql.Session, tables: duckdb.DuckDBPyConnection, sql: str, plain: str
) -> None:
    ours, theirs = sorted(_ask(session, sql).fetchall()), sorted(tables.execute(plain).fetchall())
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for mine, exact in zip(one, other, strict=True):
            known = exact if isinstance(exact, str) else pytest.approx(float(exact), rel=0.02, abs=0.5)
            assert mine == known, (ours, theirs)


def test_quantiles_of_the_older_syntax_are_a_list_from_least_to_greatest(session: privsql.Session) -> None:
    answer = _ask(
        session,
        f"{ANON} ANON_QUANTILES(quantity, 4 CLAMPED BETWEEN 0 AND 60) AS q, "
        "ANON_PERCENTILE_CONT(quantity, 0.5 CLAMPED BETWEEN 0 AND 100) AS p FROM professors",
    )
    ((listed, median),) = answer.fetchall()
    assert listed == pytest.approx([0, 25, 50, 60, 60], abs=2)
    assert median == pytest.approx(50, abs=2)


def test_bounds_per_person_are_priced_as_the_subquery_that_says_the_same(session: privsql.Session) -> None:
    clause = session.explain(ANSWERED[1][0], dialect="bigquery")
    written = session.explain(PER_PERSON, epsilon=MANY)
    assert [(each.l1, each.linf) for each in clause.measurements] == [
        (each.l1, each.linf) for each in written.measurements
    ]


def test_bounds_in_the_text_never_widen_the_range_of_the_policy(session: privsql.Session) -> None:
    wide = session.explain(
        f"{DP} SUM(age, contribution_bounds_per_row => (-500, 500)) AS s FROM people", dialect="bigquery"
    )
    plain = session.explain("SELECT SUM(age) AS s FROM people", epsilon=1)
    assert (wide.measurements[0].l1, wide.measurements[0].linf) == (100, 100)
    assert wide.measurements[0].l1 == plain.measurements[0].l1


def test_the_text_says_price_and_limits(session: privsql.Session) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-6, max_groups_contributed=2, "
        "max_rows_contributed=1) item, COUNT(*) AS n FROM professors GROUP BY item"
    )
    plan = session.explain(sql, dialect="bigquery")
    assert plan.epsilon == 0.5
    plain = "SELECT item, COUNT(*) AS n FROM professors GROUP BY item"
    written = session.explain(plain, epsilon=0.5, delta=1e-6, max_groups=2, max_rows=1)
    policys = session.explain(plain, epsilon=0.5, delta=1e-6)
    assert plan.measurements[0].l1 == written.measurements[0].l1 == 3 < policys.measurements[0].l1
    assert _ask(session, sql, epsilon=0.5, delta=1e-6, max_groups=2, max_rows=1).receipt["epsilon"] == 0.5


AGREES = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=2) COUNT(*) AS n FROM people"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"epsilon": 2}, "argument-epsilon"),
        ({"delta": 1e-5}, "argument-delta"),
        ({"max_groups": 3}, "argument-limits"),
        ({"within": 20}, "argument-epsilon"),
        ({"max_groups": "auto"}, "argument-limits"),
    ],
)
def test_the_call_must_not_say_something_else(
    session: privsql.Session, given: dict[str, Any], code: str
) -> None:
    with pytest.raises(privsql.ArgumentError) as caught:
        _ask(session, AGREES, **given)
    assert caught.value.code == code
    assert caught.value.suggestion


ITEMS = "item, COUNT(*) AS n FROM professors GROUP BY item"
OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
REFUSED = [
    (f"{DP.replace('=id', '=item')} {ITEMS}", "refused-privacy-clause"),
    (f"{DP.replace('=id', '=age')} COUNT(*) FROM people", "refused-privacy-clause"),
    (f"{DP.replace('=id', '=nobody')} COUNT(*) FROM people", "name-column"),
    (f"{OPTIONS}(epsilon=1, max_groups_contributed=4) {ITEMS}", "argument-limits"),
    (f"{OPTIONS}(epsilon=1, max_rows_contributed=6) {ITEMS}", "argument-limits"),
    (f"{OPTIONS}(epsilon=1, max_groups_contributed=NULL) {ITEMS}", "sql-syntax"),
    (f"{OPTIONS}(epsilon=1, max_groups_contributed=0) {ITEMS}", "sql-syntax"),
    (f"{OPTIONS}(epsilon=1e20) {ITEMS}", "argument-epsilon"),
    (f"{OPTIONS}(epsilon=1, epsilon=2) {ITEMS}", "sql-syntax"),
    (f"{OPTIONS}(epsilon) {ITEMS}", "sql-syntax"),
    (f"{OPTIONS}(epsilon=1, privacy_unit_column=a.b.c) {ITEMS}", "sql-syntax"),
    (f"{OPTIONS}(epsilon=1, group_selection_strategy=PUBLIC_GROUPS) {ITEMS}", "refused-privacy-clause"),
    (f"{OPTIONS}(epsilon=1, k_threshold=10) {ITEMS}", "refused-privacy-clause"),
    (f"{OPTIONS}(epsilon=1, report_format=JSON) {ITEMS}", "refused-privacy-clause"),
    (f"{DP} COUNT(*, report_format => 'JSON') FROM people", "refused-privacy-clause"),
    (f"{DP} {ITEMS} UNION ALL {DP} {ITEMS}", "refused-privacy-clause"),
    (f"{DP} * FROM people", "refused-privacy-clause"),
    (f"{DP} COUNT(*) FROM items", "refused-privacy-clause"),
    (f"{DP} id, COUNT(*) FROM professors GROUP BY id", "refused-privacy-clause"),
    (f"{DP} AVG(quantity), VAR_POP(quantity) FROM professors", "refused-privacy-clause"),
    (f"{DP} MAX(age, contribution_bounds_per_row => (0, 3)) FROM people", "refused-privacy-clause"),
    (f"{DP} VAR_POP(age, contribution_bounds_per_group => (0, 3)) FROM people", "refused-privacy-clause"),
    (f"{DP} COUNT(*, contribution_bounds_per_group => (1, 3)) FROM people", "refused-privacy-clause"),
    (f"{DP} SUM(age, contribution_bounds_per_group => (9, 3)) FROM people", "sql-syntax"),
    (f"{DP} SUM(age, contribution_bounds_per_group => (0, age)) FROM people", "sql-syntax"),
    (f"{DP} SUM(age, contribution_bounds_per_group => (0, 3) + 1) FROM people", "sql-syntax"),
    (f"{DP} SUM(age CLAMPED BETWEEN 0 AND age) FROM people", "sql-syntax"),
    (f"{ANON} ANON_QUANTILES(age, 100000 CLAMPED BETWEEN 0 AND 9) FROM people", "sql-syntax"),
    (
        f"SELECT n FROM (SELECT ANON_COUNT(*) AS n FROM people), ({DP} COUNT(*) AS m FROM people)",
        "sql-syntax",
    ),
    ("SELECT ANON_COUNT(*) AS n FROM people", "sql-syntax"),
    ("SELECT SUM(age, contribution_bounds_per_group => (0, 5)) AS n FROM people", "sql-syntax"),
    (
        "SELECT WITH AGGREGATION_THRESHOLD OPTIONS(threshold=50) COUNT(*) FROM people",
        "refused-privacy-clause",
    ),
]


@pytest.mark.parametrize(("sql", "code"), REFUSED, ids=range(len(REFUSED)))
def test_anything_else_is_refused_and_says_what_to_write(
    session: privsql.Session, sql: str, code: str
) -> None:
    given = {} if "epsilon" in sql else {"epsilon": 1}
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.explain(sql, dialect="bigquery", **given)
    assert caught.value.code == code
    assert caught.value.suggestion


def test_other_dialects_say_whose_syntax_it_is(session: privsql.Session) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.explain(f"{DP} {ITEMS}", epsilon=1)
    assert caught.value.suggestion == 'ask with dialect="bigquery"'


def test_a_batch_has_one_price(session: privsql.Session) -> None:
    with pytest.raises(privsql.ArgumentError) as caught:
        session.batch([f"{DP} {ITEMS}"], epsilon=1, dialect="bigquery")
    assert caught.value.code == "argument-batch"


def test_no_text_can_name_the_marks_that_stand_for_the_clause(session: privsql.Session) -> None:
    for sql in ("SELECT privsql_mark(), COUNT(*) FROM people", "SELECT privsql_mark0(COUNT(*)) FROM people"):
        with pytest.raises(privsql.PrivsqlError):
            session.explain(sql, dialect="bigquery", epsilon=1)
        with pytest.raises(privsql.PrivsqlError):
            session.explain(sql.replace("SELECT", DP), dialect="bigquery")


def test_a_frame_without_a_unit_may_name_a_unique_column_only() -> None:
    frame = pd.DataFrame({"id": range(100), "state": ["CA", "NY"] * 50})
    sql = f"{DP} COUNT(*) AS n FROM df"
    with pytest.raises(privsql.Refused) as caught:
        frame.dp.query(sql, dialect="bigquery")
    assert 'unit="COLUMN"' in caught.value.suggestion
    assert frame.dp.query(sql, unit="id", dialect="bigquery", max_rows=1)["n"].tolist() == [100]
