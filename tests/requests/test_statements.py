"""DESCRIBE, SHOW, PRAGMA table_info and SUMMARIZE as the text of a query."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import privsql
from privsql import PrivsqlError
from privsql.requests.statements import as_select


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(
            "CREATE TABLE visits AS SELECT i % 50 AS age, ['CA', 'NY'][1 + i % 2] AS state FROM range(2000) r(i)"
        )
        opened.execute('CREATE TABLE "odd ""name" (id INTEGER NOT NULL, tags INTEGER[])')
        opened.execute("CREATE SCHEMA other; CREATE TABLE other.things (thing VARCHAR)")
        yield opened


@pytest.fixture
def session(connection: duckdb.DuckDBPyConnection) -> privsql.Session:
    columns = {"age": {"range": [0, 49]}, "state": {"values": ["it's; DROP", "CA", "NY"]}}
    policy = {
        "neighbours": "add-remove",
        "budget": {"epsilon": 100},
        "tables": {"visits": {"columns": columns}},
    }
    return privsql.connect(connection, policy)


@pytest.mark.parametrize("text", [
    "DESCRIBE visits", "desc visits;", "SHOW visits", "-- of visits\n DESCRIBE TABLE visits ;",
    "PRAGMA table_info('visits')", 'DESCRIBE "visits"',
])  # fmt: skip
def test_describe_answers_from_schema_and_policy_at_no_cost(session: privsql.Session, text: str) -> None:
    answer = session.query(text)
    assert answer.fetchall() == [
        ("age", "BIGINT", "YES", "private", "range 0 to 49"),
        ("state", "VARCHAR", "YES", "private", "values it's; DROP, CA, NY"),
    ]
    assert answer.columns == ["column_name", "column_type", "null", "role", "declared"]
    assert session.budget.spent.epsilon == 0 and session.history().empty
    assert answer.receipt["epsilon"] == 0


def test_tables_are_listed(session: privsql.Session) -> None:
    names = [name for (name,) in session.query("SHOW TABLES", epsilon=3).fetchall()]
    assert sorted(names) == ['odd "name', "other.things", "visits"]
    listed = dict(row[:2] for row in session.query("SHOW ALL TABLES").fetchall())
    assert listed["visits"] == "age, state" and listed['odd "name'] == "id, tags"
    assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize(("text", "column"), [
    ('DESCRIBE "odd ""name"', "id"), ("DESCRIBE other.things", "thing"), ("DESCRIBE other . things", "thing"),
])  # fmt: skip
def test_names_are_quoted_and_qualified_as_in_sql(session: privsql.Session, text: str, column: str) -> None:
    assert session.query(text).fetchall()[0][0] == column


@pytest.mark.parametrize(("text", "code"), [
    ("DESCRIBE nothing", "name-table"), ("SUMMARIZE nothing", "name-table"),
    ("DESCRIBE SELECT COUNT(*) FROM visits", "refused-statement"),
    ("SUMMARIZE SELECT age FROM visits", "sql-syntax"), ("PRAGMA version", "refused-statement"),
    ("DESCRIBE visits; SELECT 1", "sql-statements"),
    ("SHOW visits state", "refused-statement"), ('DESCRIBE visits" FROM visits --', "sql-syntax"),
])  # fmt: skip
def test_other_statements_are_refused(session: privsql.Session, text: str, code: str) -> None:
    with pytest.raises(PrivsqlError) as error:
        session.query(text, epsilon=1)
    assert error.value.code == code
    assert session.budget.spent.epsilon == 0


def test_summarize_is_charged_as_what_it_asks(
    session: privsql.Session, connection: duckdb.DuckDBPyConnection
) -> None:
    plan = session.explain("SUMMARIZE visits", epsilon=60)
    assert len(plan.releases) == 2 and session.budget.spent.epsilon == 0
    answer = session.query("SUMMARIZE visits", epsilon=60)
    age, state = answer.df().to_dict("records")
    assert session.budget.spent.epsilon == pytest.approx(60, rel=1e-6)
    assert session.budget.spent.epsilon <= 60
    true = connection.execute(
        "SELECT count(age), avg(age), stddev(age), count(DISTINCT age) FROM visits"
    ).fetchone()
    assert true is not None
    assert (age["count"], age["avg"], age["std"], age["approx_unique"]) == pytest.approx(
        true, rel=0.05, abs=2
    )
    assert (age["q25"], age["q50"], age["q75"]) == pytest.approx((12, 24.5, 37), abs=2)
    assert (
        state["column_name"] == "state" and state["avg"] != state["avg"] and abs(state["count"] - 2000) < 20
    )
    assert "age_low" not in answer.intervals().columns and "count_low" in answer.intervals().columns


def test_summarize_needs_a_price(session: privsql.Session) -> None:
    with pytest.raises(PrivsqlError) as error:
        session.query("SUMMARIZE visits")
    assert error.value.code == "argument-epsilon"


def test_a_table_of_lists_alone_has_nothing_to_summarize() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (tags INTEGER[])")
        with pytest.raises(PrivsqlError) as error:
            privsql.connect(connection).query("SUMMARIZE t", epsilon=1)
    assert error.value.code == "refused-summarize"


@pytest.mark.parametrize("text", ["DESCRIBE a{}!", "SHOW TABLES{};;", "{}SELECTED", "SUMMARIZE a{}.{};;"])
def test_a_long_text_that_is_no_statement_is_recognised_in_no_time(session, text):
    request = privsql.Request(text.format(*2 * [" " * 50_000]), epsilon=1.0)
    assert as_select(request, session._pipeline) is request


@pytest.mark.parametrize("name", ["$1", "*", "{0}", "visits visits", "visits;", " "])
def test_pragma_of_what_is_no_name_finds_no_table(session, name):
    with pytest.raises(privsql.UnknownName, match="there is no table"):
        session.query(f"PRAGMA table_info('{name}')")
