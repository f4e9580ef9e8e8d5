"""One state from planning to the last statement: on the caller's connection, in files, with and without a process of its own."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.budget.ledger import MemoryLedger
from privsql.engines.duckdb.engine import DuckDBEngine
from privsql.engines.duckdb.fingerprints import sign_of
from tests.prepare.visits import BY_STATE, make, uses_copy
from tests.prepare.visits import POLICY as VISITS

EXACT = 10_000  # an epsilon at which the noise is 0 but for a chance of exp(-5000)
COUNT = "SELECT COUNT(*) AS n FROM t"
UNIT = {"tables": {"t": {"unit": "id"}}}
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER); INSERT INTO t SELECT i, i FROM range(100) r(i)"
HEAP = "CREATE OR REPLACE TABLE t AS SELECT 7 AS id, i AS x FROM range(100101) r(i)"  # one person, in 100,101 rows


class Meddling(MemoryLedger):
    """A ledger that lets the owner do something at the worst moment: a query is planned and charged, and not yet run."""

    meddle = staticmethod(lambda: None)

    @contextlib.contextmanager
    def running(self, *arguments):
        with super().running(*arguments) as charges:
            self.meddle()
            yield charges


def meddled(session: privsql.Session, meddle) -> None:
    session._pipeline.ledger.__class__ = Meddling
    session._pipeline.ledger.meddle = meddle


@pytest.fixture
def owner() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE)
    return connection


# -- a connection of the caller's ----------------------------------------------------------------------------
def test_a_key_that_is_dropped_between_planning_and_running_still_holds_for_the_query(owner):
    session = privsql.connect(owner, UNIT)
    meddled(session, lambda: owner.execute(HEAP))
    answer = session.query(COUNT, epsilon=EXACT)
    assert answer.plan.measurements[0].l1 == 1
    assert answer.fetchall() == [(100,)], "the state for which the bound was derived"
    meddled(session, lambda: None)
    assert session.query(COUNT, epsilon=EXACT, fresh=True, max_rows=10).fetchall() == [(10,)], (
        "the unit is not unique any more"
    )


def test_a_batch_reads_one_state(owner, monkeypatch):
    session, run, statements = privsql.connect(owner, UNIT), DuckDBEngine.run, []

    def then_drop(self, sql, keys):
        found = run(self, sql, keys)
        if not statements:
            owner.execute(HEAP)  # while the first query of the batch is being answered
        statements.append(sql)
        return found

    monkeypatch.setattr(DuckDBEngine, "run", then_drop)
    first, second = session.batch([f"{COUNT} WHERE x >= 0", f"{COUNT} WHERE x < 90"], epsilon=EXACT)
    assert len(statements) == 2
    assert (first.fetchall(), second.fetchall()) == ([(100,)], [(90,)])


def test_concurrent_writes_are_not_read(owner):
    session = privsql.connect(owner, UNIT)
    meddled(session, lambda: owner.execute("INSERT INTO t SELECT i, i FROM range(1000, 2000) r(i)"))
    assert session.query(COUNT, epsilon=EXACT).fetchall() == [(100,)]


def test_the_transaction_ends_with_the_query(owner):
    session = privsql.connect(owner, UNIT)
    session.query(COUNT, epsilon=1)
    with pytest.raises(privsql.PrivsqlError):
        session.query("SELECT nothing FROM t", epsilon=1)
    with pytest.raises(privsql.EngineError):
        session._pipeline.engine.run("SELECT CAST('x' AS INTEGER)", [])
    owner.execute("INSERT INTO t VALUES (1000, 0)")
    owner.execute("ALTER TABLE t ADD COLUMN y INTEGER; UPDATE t SET y = 1; CHECKPOINT")
    assert session.query("SELECT COUNT(*) FROM t WHERE y = 1", epsilon=EXACT).fetchall() == [(101,)]


def test_uncommitted_changes_of_the_caller_are_not_read_and_kept(owner):
    session = privsql.connect(owner, UNIT)
    owner.execute("BEGIN; INSERT INTO t VALUES (1000, 0)")
    assert session.query(COUNT, epsilon=EXACT).fetchall() == [(100,)]
    owner.execute("COMMIT")
    assert session.query(COUNT, epsilon=EXACT, fresh=True).fetchall() == [(101,)]


# -- the caller's own connection, where temporary tables are -------------------------------------------------
@pytest.fixture
def temporary() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE.replace("CREATE TABLE", "CREATE TEMP TABLE"))
    return connection


def test_an_open_transaction_of_the_caller_stays_open(temporary):
    session = privsql.connect(temporary, UNIT)
    temporary.execute("BEGIN; INSERT INTO t VALUES (1000, 0)")
    assert session.query(COUNT, epsilon=EXACT).fetchall() == [(101,)]
    temporary.execute("ROLLBACK")
    assert session.query(COUNT, epsilon=EXACT, fresh=True).fetchall() == [(100,)]
    temporary.execute("INSERT INTO t VALUES (1000, 0)")
    temporary.execute("BEGIN; COMMIT")  # none of ours is left open
    assert session.query(COUNT, epsilon=EXACT, fresh=True).fetchall() == [(101,)]


def test_writes_of_another_thread_on_the_same_connection_are_kept(temporary):
    session = privsql.connect(temporary, UNIT)
    meddled(session, lambda: temporary.execute("INSERT INTO t VALUES (1000, 0)"))
    session.query(COUNT, epsilon=1)
    assert temporary.execute("SELECT count(*) FROM t").fetchall() == [(101,)]


def test_a_schema_change_within_the_transaction_fails_the_query(temporary):
    session = privsql.connect(temporary, UNIT)
    meddled(session, lambda: temporary.execute(HEAP.replace("REPLACE TABLE", "REPLACE TEMP TABLE")))
    with pytest.raises(privsql.EngineError):
        session.query(COUNT, epsilon=EXACT)


def test_a_schema_that_changes_before_the_charge_is_refused(temporary, monkeypatch):
    session, check = privsql.connect(temporary, UNIT), DuckDBEngine.check

    def late(self, sql, schema):
        temporary.execute(HEAP.replace("REPLACE TABLE", "REPLACE TEMP TABLE"))
        check(self, sql, schema)

    monkeypatch.setattr(DuckDBEngine, "check", late)
    with pytest.raises(privsql.SourceError) as caught:
        session.query(COUNT, epsilon=1)
    assert caught.value.code == "source-changed" and session.budget.spent.epsilon == 0


def test_a_failed_transaction_of_the_caller_is_reported(temporary):
    session = privsql.connect(temporary, UNIT)
    with pytest.raises(duckdb.Error):
        temporary.execute("BEGIN; SELECT error('x')")
    with pytest.raises(privsql.SourceError, match="ROLLBACK") as caught:
        session.query(COUNT, epsilon=1)
    assert caught.value.code == "source-connection" and session.budget.spent.epsilon == 0
    temporary.execute("ROLLBACK")
    assert session.query(COUNT, epsilon=EXACT).fetchall() == [(100,)]


def test_threads_do_not_share_a_transaction(owner):
    session, found = privsql.connect(owner, UNIT), []

    def ask() -> None:
        for _ in range(3):
            found.append(session.query(COUNT, epsilon=EXACT, fresh=True).fetchall())
            session.explain(COUNT, epsilon=1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for _ in range(20):
        owner.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS x")
    for each in threads:
        each.join()
    assert found == [[(100,)]] * 12


def test_a_view_that_cannot_be_read_does_not_stop_queries_about_other_tables(tmp_path):
    """Looking at it ends the transaction in which the schema is read."""
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n")
    owner = duckdb.connect(str(tmp_path / "x.duckdb"))
    owner.execute(f"{TABLE}; CREATE VIEW broken AS FROM '{file}'")
    file.unlink()
    session = privsql.connect(owner, UNIT)
    assert session.query(COUNT, epsilon=EXACT).fetchall() == [(100,)]


# -- files that are no database ------------------------------------------------------------------------------
def write_parquet(file: Path, rows: int, text: bool = False) -> None:
    new = file.with_suffix(".new")
    value = "i::VARCHAR" if text else "i"
    duckdb.execute(f"COPY (SELECT {value} AS x FROM range({rows}) r(i)) TO '{new}' (FORMAT parquet)")
    os.replace(new, file)


@pytest.mark.parametrize("deadline", [None, pytest.param(600.0, marks=pytest.mark.slow)])
def test_a_parquet_file_replaced_between_queries_is_read_anew(tmp_path, deadline):
    file = tmp_path / "t.parquet"
    write_parquet(file, 100)
    with privsql.connect(file, deadline=deadline) as session:
        assert session.query(f"{COUNT} WHERE x < 50", epsilon=EXACT).fetchall() == [(50,)]
        write_parquet(file, 200, text=True)  # other types: the plan is another one
        assert session.query(f"{COUNT} WHERE x LIKE '1%'", epsilon=EXACT).fetchall() == [(111,)]
        file.write_bytes(b"no parquet at all")
        with pytest.raises(privsql.SourceError):
            session.query(COUNT, epsilon=1, fresh=True)
        file.unlink()
        with pytest.raises(privsql.SourceError):
            session.query(COUNT, epsilon=1, fresh=True)
        assert session.budget.spent.epsilon == 2 * EXACT


def test_a_parquet_file_replaced_during_a_query_fails_it(tmp_path, monkeypatch):
    file = tmp_path / "t.parquet"
    write_parquet(file, 100)
    with privsql.connect(file) as session:
        meddled(session, lambda: write_parquet(file, 200))
        with pytest.raises(privsql.EngineError):
            session.query(COUNT, epsilon=1)
        meddled(session, lambda: None)
        assert session.query(COUNT, epsilon=EXACT).fetchall() == [(200,)]
        check = DuckDBEngine.check

        def late(self, sql, schema):
            write_parquet(file, 300)
            check(self, sql, schema)

        monkeypatch.setattr(DuckDBEngine, "check", late)
        spent = session.budget.spent.epsilon
        with pytest.raises(privsql.SourceError) as caught:
            session.query(COUNT, epsilon=1, fresh=True)
        assert caught.value.code == "source-changed" and session.budget.spent.epsilon == spent


@pytest.mark.parametrize("deadline", [None, pytest.param(600.0, marks=pytest.mark.slow)])
def test_a_csv_file_is_read_once_at_connect(tmp_path, deadline):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(1000)))
    with privsql.connect(file, deadline=deadline) as session:
        with open(file, "a", encoding="utf-8") as more:
            more.write("not a number,1\n")
        assert session.query(f"{COUNT} WHERE x < 50", epsilon=EXACT).fetchall() == [(50,)]
        file.unlink()
        assert session.query(COUNT, epsilon=EXACT).fetchall() == [(1000,)]


def test_a_csv_file_that_is_written_to_while_it_is_read_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_text("x\n1\n")
    signs = iter(["one", "another"])
    monkeypatch.setattr("privsql.engines.duckdb.open_source.sign_of", lambda path: next(signs))
    with pytest.raises(privsql.SourceError) as caught:
        privsql.connect(file)
    assert caught.value.code == "source-file" and "written to" in str(caught.value)


def test_a_csv_file_has_the_version_of_its_last_write(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x\n1\n")
    for stored in (False, True):
        with privsql.connect(file, {"budget": {"epsilon": 9}}, ledger=tmp_path / "l") as session:
            assert session.query(COUNT, epsilon=1).stored == stored
    time.sleep(0.02)
    file.write_text("x\n1\n")  # whatever was written
    with privsql.connect(file, {"budget": {"epsilon": 9}}, ledger=tmp_path / "l") as session:
        assert not session.query(COUNT, epsilon=1).stored


# -- files that are replaced ---------------------------------------------------------------------------------
def table(file: Path, rows: int) -> Path:
    with duckdb.connect(str(file)) as owner:
        owner.execute(f"CREATE TABLE t AS SELECT i AS x FROM range({rows}) r(i)")
    return file


@pytest.mark.parametrize("given", ["path", "connection"])
def test_a_worker_does_not_restart_on_another_file(tmp_path, given):
    file = table(tmp_path / "t.duckdb", 1000)
    source = file if given == "path" else duckdb.connect(str(file), read_only=True)
    with privsql.connect(source, deadline=600.0) as session:
        assert session.query(COUNT, epsilon=EXACT).fetchall() == [(1000,)]
        os.replace(table(tmp_path / "new.duckdb", 9000), file)
        session._pipeline.engine._keeper.drop()
        with pytest.raises(privsql.SourceError) as caught:
            session.query(COUNT, epsilon=1, fresh=True)
        assert caught.value.code == "source-worker" and "connect again" in caught.value.suggestion
        assert session.budget.spent.epsilon == EXACT
    if given == "connection":
        source.close()
    with privsql.connect(file, deadline=600.0) as session:
        assert session.query(COUNT, epsilon=EXACT).fetchall() == [(9000,)]


def test_a_worker_needs_the_file_that_the_connection_has_open(tmp_path):
    file = table(tmp_path / "t.duckdb", 1000)
    with duckdb.connect(str(file), read_only=True) as caller:
        os.replace(table(tmp_path / "new.duckdb", 9000), file)
        with pytest.raises(privsql.SourceError) as caught:
            privsql.connect(caller, deadline=600.0)
        assert caught.value.code == "source-file" and caught.value.suggestion == "connect again"


def test_a_file_that_replaced_the_open_one_is_not_used(tmp_path):
    file = make(tmp_path / "x.duckdb", rows=300)
    new = make(tmp_path / "new.duckdb", rows=100)
    with privsql.connect(new, VISITS) as session:
        session.prepare("visits")
    with duckdb.connect(str(file), read_only=True) as caller:
        os.replace(f"{new}.prepared", f"{file}.prepared")
        os.replace(new, file)
        with duckdb.connect(
            f"{file}.prepared"
        ) as prepared:  # as if another process had prepared it in its new place
            prepared.execute("UPDATE privsql_signs SET sign = ?", [sign_of(file)])
        for source in (caller, file):  # by its path, too, DuckDB gives the one that is open
            with privsql.connect(source, VISITS) as session:
                assert not uses_copy(session.explain(BY_STATE, epsilon=1))
    with privsql.connect(file, VISITS) as session:
        assert uses_copy(session.explain(BY_STATE, epsilon=1))


def test_frames_are_snapshots():
    frame = pd.DataFrame({"x": range(100)})
    session = privsql.connect({"t": frame})
    meddled(session, lambda: frame.__setitem__("x", 0))
    assert session.query(f"{COUNT} WHERE x > 0", epsilon=EXACT).fetchall() == [(99,)]
