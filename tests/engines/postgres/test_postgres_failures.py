"""What can go wrong on a PostgreSQL server: the charge stands, nothing of the data comes out, the next query works."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import privsql
from tests.support import postgres

pytestmark = postgres.needs_server()
SCHEMA = "privsql_failures"
PLANTED = "ZQPLANTEDZQ"
SLOW = "SELECT COUNT(*) AS n FROM visits v JOIN numbers ON v.age < i AND v.note <> words"
QUICK = "SELECT COUNT(*) AS n FROM visits WHERE age > 30"
POLICY = {"tables": {"visits": {"columns": {"age": {"range": [0, 120]}}}, "numbers": {"public": True}}}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres.connect() as owner:
        owner.execute(
            f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}"
        )
        owner.execute(
            "CREATE TABLE visits (person integer NOT NULL, age integer, note text); "
            f"INSERT INTO visits SELECT i, i % 100, '{PLANTED}' || i FROM generate_series(1, 20000) AS r(i); "
            "CREATE TABLE numbers AS SELECT i, 'w' || i AS words FROM generate_series(1, 20000) AS r(i)"
        )
        yield owner


def connected(**limits: Any) -> privsql.Session:
    return privsql.connect(postgres.schema_address(SCHEMA), POLICY, **limits)


def when_it_runs(server: Any, act: str) -> threading.Thread:
    """Do something to the backend of privsql as soon as it computes."""

    def wait() -> None:
        with postgres.connect() as other:
            for _ in range(400):
                found = other.execute(
                    f"SELECT {act}(pid) FROM pg_stat_activity WHERE application_name = 'privsql' AND state = 'active' "
                    "AND query LIKE '%privsql_t%' AND query NOT LIKE 'EXPLAIN%'"
                ).fetchall()
                if found:
                    return
                time.sleep(0.02)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("act", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_backend_that_dies_in_a_query_costs_that_query_alone(
    server: Any, act: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with connected() as session:
        thread = when_it_runs(server, act)
        with pytest.raises(privsql.EngineError) as raised:
            session.query(SLOW, epsilon=1)
        thread.join()
        assert float(session.budget.spent.epsilon) == 1.0
        assert str(raised.value) == str(privsql.EngineError())
        assert session.query(QUICK, epsilon=1).df()["n"][0] > 0
        assert float(session.budget.spent.epsilon) == 2.0
    shown = caplog.text + "".join(capfd.readouterr())
    assert PLANTED not in shown
    assert "terminat" not in shown


def test_a_deadline_ends_the_query_on_the_server(server: Any) -> None:
    with connected(deadline=0.3) as session:
        start = time.monotonic()
        with pytest.raises(privsql.EngineError):
            session.query(SLOW, epsilon=1)
        assert time.monotonic() - start < 20
        assert float(session.budget.spent.epsilon) == 1.0
        running = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'privsql' AND state = 'active'"
        )
        assert server.execute(running).fetchone() == (0,)
        session.query(QUICK, epsilon=1)


def test_a_connection_that_was_cut_between_queries_is_made_anew(server: Any) -> None:
    with connected() as session:
        session.query(QUICK, epsilon=1)
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'privsql'"
        )
        session.query("SELECT COUNT(*) AS n FROM visits WHERE age < 30", epsilon=1)


def test_an_error_of_postgres_never_comes_out(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with connected() as session:
        engine = session._pipeline.engine
        failing = f"SELECT CAST(note AS integer) AS n FROM {SCHEMA}.visits"
        with pytest.raises(privsql.EngineError) as raised:
            engine.run(failing, [])
        assert PLANTED not in str(raised.value)
        with pytest.raises(privsql.SqlError) as refused:
            engine.read_public(failing)
        assert PLANTED not in str(refused.value) + caplog.text
        with pytest.raises(privsql.SqlError):
            engine.check(
                "SELECT CASE WHEN person > 0 THEN 1 / 0 END FROM privsql_failures.visits",
                session._pipeline.schema,
            )


def test_statements_of_one_query_see_one_state_and_cannot_write(server: Any) -> None:
    with connected() as session:
        engine = session._pipeline.engine
        count = f"SELECT count(*) AS n FROM {SCHEMA}.visits"
        with engine.snapshot():
            before = engine.run(count, []).exact_columns["n"].tolist()
            server.execute("INSERT INTO visits VALUES (1, 1, 'later')")
            assert engine.run(count, []).exact_columns["n"].tolist() == before
            with pytest.raises(privsql.EngineError):
                engine.run(f"DELETE FROM {SCHEMA}.visits RETURNING 1 AS n", [])
        assert engine.run(count, []).exact_columns["n"].tolist() == [before[0] + 1]


def test_an_address_is_shown_nowhere() -> None:
    secret = "postgresql://nobody:ZQSECRETZQ@127.0.0.1:1/none"
    with pytest.raises(privsql.PrivsqlError) as raised:
        privsql.connect(secret)
    assert "ZQSECRETZQ" not in str(raised.value)
    with connected() as session:
        assert "postgres@" not in repr(session._pipeline.engine._source)  # type: ignore[attr-defined]


def test_ctrl_c_cancels_the_query_on_the_server(server: Any) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    with connected() as session:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1.0)
            with pytest.raises(KeyboardInterrupt):
                session.query(SLOW, epsilon=1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        running = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'privsql' AND state = 'active'"
        )
        assert server.execute(running).fetchone() == (0,)
        assert float(session.budget.spent.epsilon) == 1.0
        session.query(QUICK, epsilon=1)


def test_time_is_padded(server: Any) -> None:
    with connected(time_quantum=0.5) as session:
        start = time.monotonic()
        session.query(QUICK, epsilon=1)
        assert time.monotonic() - start >= 0.5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INTEGER) = 1",
        "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
        "SELECT MAX(note) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'a\\'",
        "SELECT COUNT(*) AS n FROM visits WHERE age / (age - age) > 1",
        "SELECT COUNT(*) AS n FROM visits WHERE substring(note, age, -1) = 'x'",
        "SELECT SUM(age * 1e308 * 1e308) AS s FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE age + 9223372036854775807 > 0",
        "SELECT COUNT(*) AS n FROM visits WHERE DATE '2024-01-01' + age * 100000 > DATE '2025-01-01'",
    ],
)
def test_whatever_is_asked_no_value_comes_out(
    server: Any, sql: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said = ""
    with connected() as session:
        for arguments in ({}, {"delta": 1e-15}):  # keys of one person come out that rarely
            try:
                said += str(session.query(sql, epsilon=1, **arguments).df())
            except privsql.EngineError as error:
                pytest.fail(f"a form failed on a row: {error}")
            except privsql.PrivsqlError as error:
                said += f"{error} {error.suggestion}"
    assert PLANTED not in said + caplog.text + "".join(capfd.readouterr())
