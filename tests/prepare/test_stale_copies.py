"""Whether a copy is up to date: every write to its source shows, no row is read to see it, and what shows nothing is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import privsql
from privsql.engines.duckdb.fingerprints import is_open, settle, sign_of
from tests.prepare.visits import (
    BY_STATE,
    POLICY,
    ROWS,
    VISITS,
    WRITTEN,
    change,
    change_elsewhere,
    copy_of,
    make,
    other,
    uses_copy,
)

ONE = "WHERE rowid = (SELECT min(rowid) FROM visits WHERE user_id = 4)"
WRITES = [
    f"INSERT INTO visits SELECT * FROM visits {ONE}",
    f"DELETE FROM visits {ONE}",
    f"UPDATE visits SET amount = amount + 1 {ONE}",
    f"UPDATE visits SET user_id = user_id + 1 {ONE}",
    "CREATE TABLE unrelated AS SELECT 1 AS x",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a copy of its visits beside it."""
    file = make(tmp_path / "clinic.duckdb")
    with privsql.connect(file, POLICY) as session:
        session.prepare("visits")
    return file


def explained(path: Path):
    with privsql.connect(path, POLICY) as session:
        return session.explain(BY_STATE, epsilon=1)


def refused(session: privsql.Session, code: str, word: str, table: str = "visits") -> None:
    with pytest.raises(privsql.PrivsqlError, match=word) as caught:
        session.prepare(table)
    assert caught.value.code == code and caught.value.suggestion
    assert not uses_copy(session.explain(BY_STATE, epsilon=1))


# -- files that privsql opened -------------------------------------------------------------------------------
def test_every_write_is_noticed(path):
    assert uses_copy(explained(path))
    for sql in WRITES:
        change(path, sql)
        with privsql.connect(path, POLICY) as session:
            plan = session.explain(BY_STATE, epsilon=1)
            assert not uses_copy(plan) and WRITTEN in str(plan), sql
            session.prepare("visits")
            plan = session.explain(BY_STATE, epsilon=1)
            assert uses_copy(plan) and WRITTEN not in str(plan), sql


def test_the_staleness_check_reads_no_row(path, monkeypatch):
    """What EXPLAIN says is free, so it must not come from rows: DuckDB's own log shows which texts it was given."""
    monkeypatch.setattr(
        "privsql.engines.duckdb.opening.CLOSE", "SELECT 1"
    )  # the log is a setting, and those are locked
    for written in (False, True):
        if written:
            change(path, WRITES[0])
        with privsql.connect(path, POLICY) as session:
            connection = session._pipeline.engine._connection
            connection.execute("CALL enable_logging('QueryLog')")
            plan = session.explain(BY_STATE, epsilon=1)
            texts = [
                text
                for (text,) in connection.execute(
                    "SELECT message FROM duckdb_logs WHERE type = 'QueryLog'"
                ).fetchall()
            ]
            assert uses_copy(plan) == (not written)
            assert texts and not any('"visits' in each for each in texts), texts
            connection.execute(plan.sql).fetchall()
            texts = connection.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
            assert any('"visits' in text for (text,) in texts), "it is in the log when rows are read"


@pytest.mark.slow
def test_the_message_is_the_same_for_all_writes(path):
    """Of two neighbours, each written to: the explanations agree to the letter, before and after."""
    second = make(path.parent / "other.duckdb")
    change(second, "DELETE FROM visits WHERE user_id = 4")
    with privsql.connect(second, POLICY) as session:
        session.prepare("visits")
    assert str(explained(path)) == str(explained(second))
    change(path, WRITES[0])
    change(second, WRITES[-1])
    assert str(explained(path)) == str(explained(second))


@pytest.mark.slow
def test_a_write_that_keeps_the_file_size_is_noticed(path):
    updates = [f"UPDATE visits SET amount = {amount} {ONE}" for amount in range(5)]
    change(path, updates[0])
    change(
        path, updates[1]
    )  # from here on DuckDB writes into the blocks that the last write but one has left
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    before = path.stat()
    change_elsewhere(path, *updates[2:4])
    assert path.stat().st_size == before.st_size
    assert WRITTEN in str(explained(path))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # nor does it help to set the time back
    assert WRITTEN in str(explained(path))


def test_a_write_in_the_log_is_noticed(path):
    """The writer was killed before DuckDB put its log into the file, which is as it was."""
    before = path.stat()
    change_elsewhere(
        path, f"UPDATE visits SET amount = 5 {ONE}", then="os._exit(0)"
    )  # nothing is tidied up: as if killed
    after = path.stat()
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    assert Path(f"{path}.wal").exists()
    with privsql.connect(path, POLICY) as session:
        assert WRITTEN in str(session.explain(BY_STATE, epsilon=1))
        session.prepare("visits")  # of the file and its log together
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        name = copy_of(session.explain(BY_STATE, epsilon=1))
        kept = session._pipeline.engine.read_public(f'SELECT sum(amount) FROM privsql_prepared.main."{name}"')
        assert kept == session._pipeline.engine.read_public(
            "SELECT sum(amount) FROM visits WHERE user_id IS NOT NULL"
        )


def test_a_file_replaced_while_open_is_noticed(path):
    """The session goes on reading the old file: it must not store that as a copy of the new one."""
    with privsql.connect(path, POLICY) as session, privsql.connect(path, POLICY) as second:
        new = make(path.parent / "new.duckdb", rows=100)
        os.replace(new, path)
        for each in (
            session,
            second,
            privsql.connect(path, POLICY),
        ):  # the last one gets the old file too, from DuckDB
            assert WRITTEN in str(each.explain(BY_STATE, epsilon=1))
            refused(each, "source-prepare", "replaced")
            each.close()
    assert WRITTEN in str(explained(path))


@pytest.mark.slow
def test_a_copy_of_the_replacing_file_is_not_used(path):
    """It is up to date, but not of what this session reads."""
    with privsql.connect(path, POLICY) as session:
        os.replace(make(path.parent / "new.duckdb", rows=100), path)
        program = f"import privsql; privsql.connect({str(path)!r}, {POLICY!r}).prepare('visits')"
        subprocess.run([sys.executable, "-c", program], check=True)
        assert WRITTEN in str(session.explain(BY_STATE, epsilon=1))
    assert uses_copy(explained(path))


@pytest.mark.skipif(os.name == "nt", reason="locks are of another kind")
def test_a_file_written_while_open_is_noticed(path):
    """A program that opens and closes the file, say to copy it, loosens DuckDB's lock: others can write then."""
    with privsql.connect(path, POLICY) as session:
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        path.read_bytes()
        change_elsewhere(path, WRITES[0])
        assert WRITTEN in str(session.explain(BY_STATE, epsilon=1))
        refused(session, "source-prepare", "written to")


# -- signs ---------------------------------------------------------------------------------------------------
def test_a_fingerprint_is_taken_once_later_writes_must_differ(tmp_path):
    file = tmp_path / "x"
    for number in range(20):  # each as soon as possible after the last, and of the same size
        file.write_bytes(bytes([number]))
        assert settle(file, shared=False)
        signs = [sign_of(file)]
        with open(file, "r+b") as again:
            again.write(b"y")
        signs.append(sign_of(file))
        assert len(set(signs)) == 2
    assert settle(file, shared=True) and time.time_ns() - file.stat().st_mtime_ns >= 500_000_000


@pytest.mark.slow
def test_coarse_file_times_are_waited_for(tmp_path):
    file = tmp_path / "x"
    file.touch()
    second = (time.time_ns() // 1_000_000_000 + 1) * 1_000_000_000
    os.utime(file, ns=(second, second))
    start = time.time_ns()
    assert settle(file, shared=False) and time.time_ns() > second + 2_000_000_000 > start


def test_a_file_from_the_future_cannot_be_watched(path):
    ahead = time.time_ns() + 3600 * 10**9
    os.utime(path, ns=(ahead, ahead))
    with privsql.connect(path, POLICY) as session:
        refused(session, "source-prepare", "future")


def test_the_open_file_is_identified(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.touch()
    two.touch()
    with open(one, "rb"):
        assert is_open(one) and not is_open(two)
        os.replace(two, one)
        assert not is_open(one)


def test_logs_are_part_of_a_fingerprint(tmp_path):
    path = tmp_path / "x.duckdb"
    path.touch()
    before = sign_of(path)
    Path(f"{path}.wal").touch()
    assert sign_of(path) != before
    Path(f"{path}.wal").unlink()
    Path(f"{path}x").touch()
    Path(f"{path}.prepared").touch()
    assert sign_of(path) == before


# -- a connection of the caller's ----------------------------------------------------------------------------
def test_a_callers_database_in_a_file(tmp_path):
    file = make(tmp_path / "x.duckdb", rows=500)
    caller = duckdb.connect(str(file))
    with privsql.connect(caller, POLICY) as session:
        session.prepare("visits")
        assert not Path(f"{file}.prepared").exists(), "kept in memory"
        plan = session.explain(BY_STATE, epsilon=1)
        assert uses_copy(plan)
        exact = sorted(caller.execute(plan.sql).fetchall(), key=str)
        caller.execute("BEGIN; UPDATE visits SET amount = 7")  # not committed, and not seen
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        assert session.query(BY_STATE, epsilon=1).plan.sql == plan.sql
        caller.execute("ROLLBACK")
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        for sql in WRITES:
            caller.execute(sql)
            assert WRITTEN in str(session.explain(BY_STATE, epsilon=1))
        session.query(BY_STATE, epsilon=1)
        caller.execute("UPDATE visits SET amount = 7")
        session.prepare("visits")
        plan = session.explain(BY_STATE, epsilon=1)
        assert sorted(caller.execute(plan.sql).fetchall(), key=str) != exact
        caller.execute("CHECKPOINT")
        assert WRITTEN in str(session.explain(BY_STATE, epsilon=1)), "written, if only by DuckDB itself"
    left = caller.execute("SELECT path FROM duckdb_databases() WHERE NOT internal").fetchall()
    assert left == [(str(file),)], "and nothing else"


def test_sessions_with_different_units_do_not_share(tmp_path):
    caller = duckdb.connect(str(make(tmp_path / "x.duckdb", rows=500)))
    one, two = privsql.connect(caller, POLICY), privsql.connect(caller, other(unit="day"))
    one.prepare("visits")
    assert not uses_copy(two.explain(BY_STATE, epsilon=1))
    two.prepare("visits")
    names = [copy_of(each.explain(BY_STATE, epsilon=1)) for each in (one, two)]
    assert len(set(names)) == 2
    summed = "SELECT SUM(amount) FROM visits WHERE kind = 'a'"
    planned = one.explain(summed, epsilon=1)
    before = caller.execute(planned.sql).fetchall()
    third = privsql.connect(caller, other(columns={"amount": {"range": [0, 5]}}))
    third.prepare("visits")  # other values to add up: a copy of its own, for the other may be in use
    assert caller.execute(planned.sql).fetchall() == before
    assert len({copy_of(session.query(summed, epsilon=1).plan) for session in (one, third)}) == 2


def test_a_database_of_the_reserved_name_is_left_alone(tmp_path):
    caller = duckdb.connect(str(make(tmp_path / "x.duckdb", rows=50)))
    caller.execute(f"ATTACH '{tmp_path / 'y.duckdb'}' AS privsql_prepared")
    session = privsql.connect(caller, POLICY)
    session.query(BY_STATE, epsilon=1)
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.prepare("visits")
    assert caught.value.code == "source-prepare"
    assert caller.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'privsql_prepared'"
    ).fetchone() == (0,)


def test_a_connection_that_may_only_read_uses_what_is_there(path):
    caller = duckdb.connect(str(path), read_only=True)
    for source in (caller, path):  # by its path, too, the file is the one that the caller has opened
        session = privsql.connect(source, POLICY)
        assert uses_copy(session.query(BY_STATE, epsilon=1).plan)
        with pytest.raises(privsql.PrivsqlError, match="opened the file") as caught:
            session.prepare("visits")
        assert caught.value.code == "argument-prepare"
        session.close()


# -- what shows no writes ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("memory", "in memory"),
        ("temporary", "temporary"),
        ("use", "temporary"),
        ("registered", "a view"),
        ("view", "a view"),
    ],
)
def test_a_source_without_a_fingerprint_cannot_be_prepared(tmp_path, what, word):
    caller = duckdb.connect(":memory:" if what == "memory" else str(tmp_path / "x.duckdb"))
    match what:
        case "memory":
            caller.execute(f"CREATE TABLE visits AS {ROWS.format(rows=50)}")
        case "temporary":
            caller.execute(f"CREATE TEMP TABLE visits AS {ROWS.format(rows=50)}")
        case "use":
            caller.execute(
                f"ATTACH '{tmp_path / 'y.duckdb'}' AS y; USE y; CREATE TABLE visits AS {ROWS.format(rows=50)}"
            )
        case "registered":
            caller.register("visits", duckdb.sql(ROWS.format(rows=50)).df())
        case "view":
            caller.execute(f"CREATE TABLE rows AS {ROWS.format(rows=50)}; CREATE VIEW visits AS FROM rows")
    session = privsql.connect(caller, POLICY)
    refused(session, "argument-prepare", word)
    assert caller.execute(
        "SELECT count(*) FROM duckdb_databases() WHERE database_name = 'privsql_prepared'"
    ).fetchone() == (0,)


def test_a_view_on_the_way_to_the_unit(tmp_path):
    file = make(tmp_path / "x.duckdb", rows=50)
    change(file, "CREATE TABLE people (id INTEGER PRIMARY KEY); CREATE VIEW visitors AS FROM people")
    policy = {
        "tables": {
            "visits": {**VISITS, "unit": "user_id -> visitors.id"},
            "visitors": {"unit": "id", "unique": ["id"]},
        }
    }
    with (
        privsql.connect(file, policy) as session,
        pytest.raises(privsql.PrivsqlError, match="a view") as caught,
    ):
        session.prepare("visits")
    assert caught.value.code == "argument-prepare"
