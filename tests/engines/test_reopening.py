"""A statement that fails leaves the session as it was: also after an error by which DuckDB shuts the database down."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privsql

EXACT = 10_000
COUNT = "SELECT COUNT(*) AS n FROM t"
FATAL = "SELECT CAST(ts AS VARCHAR) AS k FROM t"  # of a moment before all that DuckDB can write, which is fatal to DuckDB 2.0
PLAIN = "SELECT CAST('x' AS INTEGER) AS k FROM t"
OLDEST = pa.table({"ts": pa.array([-(2**63) + 2] * 10, pa.timestamp("us")), "x": range(10)})


def source(kind: str, folder: Path):
    parquet = folder / "t.parquet"
    pq.write_table(OLDEST, parquet)
    match kind:
        case "frame":
            return {"t": OLDEST}
        case "parquet":
            return parquet
        case "csv":
            (folder / "t.csv").write_text("x\n" + "1\n" * 10)
            return folder / "t.csv"
    file = folder / "t.duckdb"
    with duckdb.connect(str(file)) as owner:
        owner.execute(f"CREATE TABLE t AS FROM '{parquet}'")
    return file


def failed(session: privsql.Session, sql: str) -> None:
    with pytest.raises(privsql.EngineError) as caught:
        session._pipeline.engine.run(sql, ["k"])
    assert str(caught.value) == str(privsql.EngineError())


def is_answered(session: privsql.Session) -> None:
    assert session.query(COUNT, epsilon=EXACT, fresh=True).fetchall() == [(10,)]


def test_the_fatal_error_is_reproduced(tmp_path):
    with duckdb.connect(str(source("duckdb", tmp_path))) as owner:
        with pytest.raises(duckdb.InternalException):
            owner.execute(FATAL).fetchall()
        with pytest.raises(duckdb.FatalException):
            owner.execute("SELECT 1")


@pytest.mark.parametrize("kind", ["duckdb", "parquet", "frame", "csv"])
def test_the_next_query_after_a_fatal_error_is_answered(tmp_path, kind):
    with privsql.connect(source(kind, tmp_path)) as session:
        failed(session, PLAIN)
        is_answered(session)
        if kind == "csv":  # its reader takes no such moment
            session._pipeline.engine._source._dead = True
            session._pipeline.engine._connection.close()
        else:
            failed(session, FATAL)
        assert session.explain(COUNT, epsilon=1, fresh=True).measurements
        is_answered(session)


def test_a_worker_recovers_from_a_fatal_error(tmp_path):
    with privsql.connect(source("duckdb", tmp_path), deadline=600.0) as session:
        failed(session, FATAL)
        is_answered(session)


def test_prepared_copies_are_attached_again(tmp_path):
    file, policy = source("duckdb", tmp_path), {"tables": {"t": {"unit": "x", "max_rows": 10}}}
    with privsql.connect(file, policy) as session:
        session.prepare("t")
        copied = session.explain(COUNT, epsilon=1).sql
        assert "privsql_prepared" in copied
        failed(session, FATAL)
        assert session.explain(COUNT, epsilon=1).sql == copied
        is_answered(session)


def test_other_sessions_on_the_file_continue(tmp_path):
    file = source("duckdb", tmp_path)
    with privsql.connect(file) as one, privsql.connect(file) as two:
        failed(one, FATAL)
        is_answered(one)
        is_answered(two)
        failed(two, FATAL)
        is_answered(two)
        is_answered(one)


def test_a_changed_file_is_not_reopened(tmp_path):
    file = source("duckdb", tmp_path)
    with privsql.connect(file) as session:
        failed(session, FATAL)
        session._pipeline.engine._connection.close()  # DuckDB's lock on the file is gone
        with duckdb.connect(str(file)) as owner:
            owner.execute("INSERT INTO t SELECT * FROM t")
        for _ in range(2):
            with pytest.raises(privsql.SourceError) as caught:
                session.query(COUNT, epsilon=1)
            assert caught.value.suggestion == "connect again" and session.budget.spent.epsilon == 0
    with privsql.connect(file) as session:
        assert session.query(COUNT, epsilon=EXACT).fetchall() == [(20,)]


def test_a_dead_connection_of_the_caller_says_what_to_do(tmp_path):
    file = source("duckdb", tmp_path)
    caller = duckdb.connect(str(file))
    session = privsql.connect(caller)
    failed(session, PLAIN)
    is_answered(session)
    failed(session, FATAL)
    for ask in (session.query, session.explain):
        with pytest.raises(privsql.SourceError) as caught:
            ask(COUNT, epsilon=1)
        assert caught.value.code == "source-connection" and "open it again" in caught.value.suggestion
    session.close()
    caller.close()
    with duckdb.connect(str(file)) as again:
        is_answered(privsql.connect(again))


def test_failing_within_a_query_ends_its_transaction():
    caller = duckdb.connect()
    caller.execute("CREATE TABLE t AS SELECT range AS x FROM range(10)")
    session = privsql.connect(caller)
    with session._pipeline.engine.snapshot():
        session._pipeline.engine.schema()
        begun = session._pipeline.engine._source.transaction
        failed(session, PLAIN)
        assert session._pipeline.engine.read_public("SELECT 1") == [(1,)]
        assert session._pipeline.engine._source.transaction == begun + 1
        caller.execute("DROP TABLE t; CREATE TABLE t AS SELECT 1 AS x, 2 AS y")
        failed(
            session, "SELECT count(*) AS k FROM t"
        )  # what is there now is of another transaction, and another schema
    assert session.query(f"{COUNT} WHERE y = 2", epsilon=EXACT).fetchall() == [(1,)]
