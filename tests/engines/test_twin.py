"""The twin: a copy of the schema without rows, on which every query runs before it is charged."""

from __future__ import annotations

import time

import duckdb
import pytest

import privsql
from privsql.engines.duckdb.twin import Twin
from privsql.render.duckdb_functions import FORMS

TOO_LARGE = (
    r"(?:" + r"\w" * 60 + r"){1000}"
)  # for RE2, once every letter stands for two  # for RE2, once every letter stands for two


def incomes(rows: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE patients (id INTEGER, name VARCHAR, income INTEGER)")
    connection.execute(f"INSERT INTO patients {rows}")
    return connection


@pytest.mark.parametrize("options", ["", ", 'i'", ", 'gi'", ", 'q'"])
@pytest.mark.parametrize("pattern", [TOO_LARGE, "[", "(a"])
def test_a_pattern_fails_before_the_charge_or_never(pattern: str, options: str) -> None:
    """Whether a pattern was compiled revealed whether statistics left rows to look at: a column's exact maximum, bit by bit."""
    sql = f"SELECT COUNT(*) AS n FROM patients WHERE income > 500 AND regexp_replace(name, '{pattern}', ''{options}) <> ''"
    said = []
    for rows in (
        "SELECT i, 'N' || i, i % 400 FROM range(500) r(i)",
        "SELECT i, 'N' || i, i FROM range(900) r(i)",
    ):
        policy = {"tables": {"patients": {"unit": "id", "max_rows": 10}}}
        session = privsql.connect(incomes(rows), policy=policy)
        try:
            session.query(sql, epsilon=1.0)
            said.append("answered")
        except privsql.PrivsqlError as error:
            said.append(error.code)
            assert session.budget.spent.epsilon == 0
    assert said[0] == said[1]
    refused = (
        "refused-pattern" if "q" in options else "sql-engine"
    )  # an option without a rule, before DuckDB is asked
    assert said[0] == ("answered" if pattern == TOO_LARGE and options == "" else refused)


@pytest.mark.parametrize(
    ("pattern", "options"), [(TOO_LARGE, ", 'i'"), (TOO_LARGE, ", 'gi'"), ("[", ""), ("[", ", 'g'")]
)
def test_duckdb_rejects_the_pattern_while_planning(pattern: str, options: str) -> None:
    connection = incomes("SELECT 1, 'a', 3")
    sql = f"SELECT COUNT(regexp_replace(name, '{pattern}', ''{options})) FROM patients"
    plan = privsql.connect(connection).explain(sql, epsilon=1.0)
    with pytest.raises(duckdb.Error):
        connection.execute(f"PREPARE question AS {plan.sql}")


def test_a_query_that_fails_at_start_fails_on_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin refuses even without the guard in the SQL: it executes the query, and statistics tell it nothing."""
    monkeypatch.setitem(FORMS, "regexp_replace", "TRY(regexp_replace({args}))")
    session = privsql.connect(incomes("SELECT 1, 'a', 3"))
    sql = f"SELECT COUNT(*) AS n FROM patients WHERE income > 500 AND regexp_replace(name, '{TOO_LARGE}', '', 'i') <> ''"
    assert TOO_LARGE in session.explain(sql, epsilon=1.0).sql
    with pytest.raises(privsql.PrivsqlError) as error:
        session.query(sql, epsilon=1.0)
    assert error.value.code == "sql-engine"


def test_a_query_that_is_slow_without_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privsql.engines.duckdb.twin._PATIENCE", 0.2)
    session = privsql.connect(incomes("SELECT 1, 'a', 3"))
    started = time.monotonic()
    with pytest.raises(privsql.PrivsqlError) as error:
        Twin(session._pipeline.engine.schema(), {}).check(
            "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c"
        )
    assert error.value.code == "sql-engine"
    assert time.monotonic() - started < 20
