"""connect(deadline=...): exact queries run in a process that is killed in time; the same comes back, or one sentence."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import privsql
from privsql.engines.worker import _Process
from privsql.engines.worker_process import from_json, pack, to_json, unpack
from privsql.tables import ExactTable
from tests.prepare.visits import BY_STATE, make, uses_copy
from tests.prepare.visits import POLICY as VISITS

EXACT = 10_000  # an epsilon at which the noise is 0 but for a chance of exp(-5000)
DEADLINE = 600.0  # more than any of these needs, however busy the machine is; `within` makes it shorter
FAR = " + ".join(f"levenshtein(long, '{'ab' * 48}{place:03}')" for place in range(60))
SLOW = f"SELECT COUNT(*) AS n FROM people WHERE {FAR} > 5"  # a minute, and a second in one call of a function
LONG = "CASE WHEN i < 2000 THEN repeat('ba', 2500) || i END"
PEOPLE = f"""
    CREATE TABLE people AS
    SELECT CAST(i % 90 AS INTEGER) AS age, (i % 11)::DOUBLE AS score, i % 3 = 0 AS member, {LONG} AS long,
           ['it''s', '\u00e4\U0001f600', '', NULL, 'odd'][1 + i % 5] AS who, DATE '2024-01-01' + CAST(i % 3 AS INTEGER) AS day
    FROM range(3000) t(i)
"""
PRICES = """
    CREATE TABLE prices AS SELECT * FROM (VALUES
        ('a', 12.50::DECIMAL(9,2), DATE '2024-05-01', TIMESTAMP '2024-05-01 10:00', TIME '10:11:12', INTERVAL 90 SECOND,
         0.1::DOUBLE, 'NaN'::DOUBLE, true, 170141183460469231731687303715884105727::HUGEINT),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    ) t(name, price, day, moment, clock, span, x, y, yes, huge)
"""
POLICY = {
    "budget": {"max_failures": 10**6},  # one session for many questions that fail
    "tables": {
        "people": {
            "columns": {
                "who": {"values": ["it's", "\u00e4\U0001f600", "", "z"]},
                "age": {"range": [0, 99]},
                "score": {"range": [0, 10]},
            }
        },
        "prices": {"public": True},
    },
}
QUESTIONS = [
    "SELECT COUNT(*) FROM people",
    "SELECT who, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY who",
    "SELECT member, COUNT(*) FROM people GROUP BY member",
    "SELECT age // 10 AS decade, AVG(score) FROM people GROUP BY decade",
    "SELECT day, COUNT(*) FROM people WHERE day IN (DATE '2024-01-01', DATE '2024-01-02') GROUP BY day",
    "SELECT MEDIAN(age), quantile_cont(score, 0.9) FROM people",
    "SELECT member, MEDIAN(score) FROM people GROUP BY member",
    "SELECT who FROM people GROUP BY who ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT COUNT(*) FROM people JOIN prices ON age = CAST(price AS INTEGER)",
]
KINDS = [
    "true", "1::TINYINT", "200::UTINYINT", "-5::BIGINT", "18446744073709551615::UBIGINT", "5::HUGEINT", "1.25::DECIMAL(9,2)",
    "2.5::FLOAT", "'NaN'::DOUBLE", "'-inf'::DOUBLE", "'\u00e4\U0001f600' || chr(0) || chr(39)", "left(chr(39), 0)",
    "DATE '2020-02-29'", "TIME '01:02:03'", "TIMESTAMP '1969-12-31 23:59:59.999999'", "INTERVAL 3 DAY",
]  # fmt: skip
PUBLIC = "SELECT * FROM prices ORDER BY name"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("engines") / "people.duckdb"
    with duckdb.connect(str(file)) as owner:
        owner.execute(PEOPLE)
        owner.execute(PRICES)
    return file


@pytest.fixture(scope="module")
def session(path: Path) -> Iterator[privsql.Session]:
    with privsql.connect(path, POLICY, deadline=DEADLINE, memory_limit="500MB") as made:
        yield made


@contextmanager
def within(session: privsql.Session, seconds: float) -> Iterator[None]:
    """A shorter deadline, for what takes far longer than that."""
    session._pipeline.engine._deadline = seconds
    try:
        yield
    finally:
        session._pipeline.engine._deadline = DEADLINE


def worker_of(session: privsql.Session) -> int:
    return session._pipeline.engine._keeper.process._process.pid


def kill(session: privsql.Session) -> None:
    """From outside, and until it is gone."""
    process = session._pipeline.engine._keeper.process._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)


def gone(pid: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def failed(session: privsql.Session, sql: str) -> float:
    """How long it took until the one fixed sentence came; the charge stands."""
    before, start = session.budget.spent.epsilon, time.monotonic()
    with pytest.raises(privsql.EngineError) as caught:
        session.query(sql, epsilon=0.5, fresh=True)
    assert str(caught.value) == str(privsql.EngineError()) and caught.value.code == "engine-failed"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert session.budget.spent.epsilon == pytest.approx(before + 0.5)
    return time.monotonic() - start


def answers(session: privsql.Session) -> list[tuple]:
    return session.query(
        "SELECT member, COUNT(*) FROM people GROUP BY member", epsilon=EXACT, fresh=True
    ).fetchall()


def rows_of(table: ExactTable) -> tuple[object, ...]:
    """Names, kinds and rows; the order of groups is not settled."""
    columns = {**table.exact_keys, **table.exact_columns}
    rows = sorted(map(repr, zip(*(each.tolist() for each in columns.values()), strict=True)))
    return list(columns), [(type(each), each.dtype) for each in columns.values()], rows


ANSWERS = [(False, 2000), (True, 1000), (None, 0)]


# -- the same answers ----------------------------------------------------------------------------------------
def test_answers_are_those_of_the_engine_in_this_process(session, path):
    with privsql.connect(path, POLICY) as plain:
        for sql in QUESTIONS:
            plan = plain.explain(sql, epsilon=1)
            for statement in plan.statements:
                there, here = (each._pipeline.engine.run(statement, plan.keys) for each in (session, plain))
                assert rows_of(there) == rows_of(here), sql
            assert session.query(sql, epsilon=EXACT).columns == plain.query(sql, epsilon=EXACT).columns
        there, here = session.query(PUBLIC, epsilon=1).fetchall(), plain.query(PUBLIC, epsilon=1).fetchall()
        assert repr(there) == repr(here)  # NaN among them


def test_exact_tables_arrive_unchanged():
    with duckdb.connect() as plain:
        for where in ("true", "false", "i > 0"):
            columns = ", ".join(f"{each} AS c{n}" for n, each in enumerate(KINDS))
            nulls = ", ".join(f"CASE WHEN i = 1 THEN NULL ELSE c{n} END AS d{n}" for n in range(len(KINDS)))
            exact = plain.execute(
                f"SELECT *, {nulls} FROM (SELECT i, {columns} FROM range(3) t(i)) WHERE {where} ORDER BY i"
            ).fetchnumpy()
            described, buffers = pack(exact)
            back = unpack(from_json(to_json(described)), bytearray(b"".join(buffers)))
            assert list(back) == list(exact)
            for name, values in exact.items():
                assert type(back[name]) is type(values) and back[name].dtype == values.dtype, name
                assert np.ma.getdata(back[name]).flags.writeable and np.ma.getdata(back[name]).flags.aligned
                assert repr(back[name].tolist()) == repr(values.tolist()), name
                assert repr(np.ma.getdata(back[name]).tolist()) == repr(np.ma.getdata(values).tolist()), name


@pytest.mark.slow
def test_frames_of_all_kinds():
    frame = pd.DataFrame(
        {"k": ["a", "b", None, "a"], "x": [1.5, None, 3.5, 99.0], "c": pd.Categorical(list("uvuv"))}
    )
    sources = {"one": frame, "Two": pl.from_pandas(frame), "privsql_frame": frame}
    columns = {"k": {"values": ["a", "b", "c"]}, "x": {"range": [0, 10]}, "c": {"values": ["u", "v"]}}
    policy = {"tables": {name: {"columns": columns} for name in sources}}
    with privsql.connect(sources, policy, deadline=30) as session:
        for name in sources:
            assert session.query(f"SELECT k, COUNT(*) FROM {name} GROUP BY k", epsilon=EXACT).fetchall() == [
                ("a", 2), ("b", 1), ("c", 0), (None, 1)
            ]  # fmt: skip
            labels = session.query(f"SELECT c, COUNT(*) FROM {name} GROUP BY c", epsilon=EXACT).fetchall()
            assert labels[:2] == [("u", 2), ("v", 2)]
        with pytest.raises(privsql.Refused):  # categories come from the data, here too
            privsql.connect(frame, deadline=30).explain("SELECT c, COUNT(*) FROM df GROUP BY c", epsilon=1)
        assert session._pipeline.engine.version() is None
        folder = session._pipeline.engine._keeper.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir() if each.is_file()} == {0o600}
    assert not folder.exists()


# -- the deadline --------------------------------------------------------------------------------------------
def test_a_deadline_stops_a_function_and_the_next_query_works(session):
    before = worker_of(session)
    with within(session, 0.5):
        assert failed(session, SLOW) >= 0.5
    assert gone(before) and worker_of(session) != before
    assert answers(session) == ANSWERS


@pytest.mark.slow
def test_one_deadline_covers_all_statements_of_a_query(session):
    engine = session._pipeline.engine
    few = "SELECT count(*) AS n FROM (SELECT long FROM people LIMIT 3) WHERE levenshtein(long, reverse(long)) > 5"
    engine.run(few, [])  # a sixth of a second

    def many() -> None:
        for _ in range(1000):
            engine.run(few, [])

    with within(session, 1.0), engine.one_query(), pytest.raises(privsql.EngineError):
        many()
    assert answers(session) == ANSWERS


@pytest.mark.slow
def test_public_queries_have_a_deadline_and_are_not_charged(session):
    assert session.query(
        "SELECT COUNT(*) FROM prices a, prices b WHERE a.price > 3", epsilon=1
    ).fetchall() == [(2,)]
    before = session.budget.spent.epsilon
    with within(session, 0.5), pytest.raises(privsql.SourceError) as caught:
        session._pipeline.engine.read_public("SELECT levenshtein(repeat('ab', 400000), repeat('ba', 400000))")
    assert caught.value.code == "source-deadline" and caught.value.suggestion
    with pytest.raises(privsql.SqlError):
        session._pipeline.engine.read_public("SELECT nothing FROM nowhere")
    assert session.budget.spent.epsilon == before
    assert answers(session) == ANSWERS


# -- whatever happens to the worker --------------------------------------------------------------------------
def test_a_worker_killed_between_queries_is_replaced(session):
    before = worker_of(session)
    kill(session)
    assert answers(session) == ANSWERS
    assert worker_of(session) != before


def test_a_worker_killed_during_a_query_fails_it(session, monkeypatch):
    before, reply = worker_of(session), _Process.reply

    def killed(process, until):
        os.kill(before, signal.SIGKILL)  # it has the statement, and is being waited for
        return reply(process, until)

    with monkeypatch.context() as patch:
        patch.setattr(_Process, "reply", killed)
        failed(session, SLOW)
    assert worker_of(session) != before
    assert answers(session) == ANSWERS


@pytest.mark.slow
def test_a_stopped_worker_is_replaced(session):
    before = worker_of(session)
    os.kill(before, signal.SIGSTOP)
    with within(session, 0.5):
        failed(session, "SELECT COUNT(*) AS still FROM people")
    assert gone(before)
    assert answers(session) == ANSWERS


@pytest.mark.slow
def test_an_interrupted_query_does_not_leak_its_answer_to_the_next(session):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            session.query(SLOW, epsilon=1, fresh=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert answers(session) == ANSWERS


@pytest.mark.slow
def test_running_out_of_memory_fails_one_query_only(session):
    limit = session._pipeline.engine._keeper.process.rows(
        "SELECT current_setting('memory_limit')", time.monotonic() + 9
    )
    assert limit == [("476.8 MiB",)]
    if sys.platform.startswith("linux"):
        limits = Path(f"/proc/{worker_of(session)}/limits").read_text()
        most = next(int(line.split()[3]) for line in limits.splitlines() if line.startswith("Max data size"))
        assert 500_000_000 < most < 4 << 30
        assert next(line.split()[4] for line in limits.splitlines() if line.startswith("Max core")) == "0"
    with pytest.raises(privsql.EngineError):
        session._pipeline.engine.run("SELECT len(list(i)) AS n FROM range(1000000000) t(i)", [])
    assert answers(session) == ANSWERS


def test_threads_take_turns(session):
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(answers(session))) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [ANSWERS] * 6


# -- what it may see -----------------------------------------------------------------------------------------
def test_the_worker_gets_no_secrets_and_reaches_nothing(session, path, monkeypatch):
    process = session._pipeline.engine._keeper.process
    for sql in (
        "SELECT * FROM read_text('/etc/hostname')",
        f"SELECT * FROM read_blob('{path}')",
        "COPY people TO '/tmp/privsql_never.csv'",
        "CREATE TABLE more AS SELECT 1",
        "SET threads = 1",
        "SET GLOBAL enable_external_access = true",
        "LOAD httpfs",
        "SELECT * FROM request",
        "ATTACH '/tmp/privsql_never.duckdb' AS x",
    ):
        message, _ = process.ask({"rows": sql}, time.monotonic() + 30)
        assert message == {"failed": True}, sql
    if sys.platform.startswith("linux"):
        pid = worker_of(session)
        names = {
            each.split(b"=")[0] for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if each
        }
        assert names <= {b"OPENBLAS_NUM_THREADS", b"LC_CTYPE"}
        opened = {os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd")}
        assert {each for each in opened if each.startswith("/") and not each.startswith("/dev/")} == {
            str(path)
        }
        assert len([each for each in opened if each.startswith(("socket", "pipe"))]) == 2


@pytest.mark.slow
def test_a_garbage_collected_session_leaves_nothing(path):
    forgotten = privsql.connect(path, POLICY, deadline=DEADLINE)
    folder, pid = forgotten._pipeline.engine._keeper.folder, worker_of(forgotten)
    del forgotten
    gc.collect()
    assert not folder.exists() and gone(pid)


@pytest.mark.slow
def test_the_worker_dies_with_its_parent_and_deletes_the_data(path):
    script = """
import os, sys, threading, time
import pandas, privsql
session = privsql.connect(pandas.DataFrame({'long': ['ba' * 2500 + str(i) for i in range(2000)]}), deadline=600)
print(session._pipeline.engine._keeper.folder, session._pipeline.engine._keeper.process._process.pid, flush=True)
far = " + ".join(f"levenshtein(long, '{'ab' * 48}{place:03}')" for place in range(60))
question = f"SELECT COUNT(*) FROM df WHERE {far} > 5"
if sys.argv[1] == "busy":
    threading.Thread(target=session.query, args=(question, 1)).start()
time.sleep(1)
os.kill(os.getpid(), 9)
"""
    for state in ("idle", "busy"):
        command = [sys.executable, "-c", script, state]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        folder, pid = done.stdout.split()
        assert gone(int(pid)), state
        time.sleep(0.1)
        assert not Path(folder).exists(), state


# -- sources -------------------------------------------------------------------------------------------------
def refused(source: object, code: str, **options: object) -> None:
    with pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(source, POLICY, **{"deadline": DEADLINE, **options})
    assert caught.value.code == code and caught.value.suggestion


def test_a_connection_to_memory_is_refused():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE people AS SELECT 7 AS age")
        with pytest.raises(privsql.ArgumentError) as caught:
            privsql.connect(mine, deadline=DEADLINE)
        assert caught.value.code == "argument-deadline" and "give the path" in caught.value.suggestion
        with pytest.raises(privsql.ArgumentError) as caught:
            privsql.connect(mine, memory_limit="1GB")
        assert caught.value.code == "argument-memory" and caught.value.suggestion


@pytest.mark.slow
def test_only_read_only_connections_to_files_are_accepted(path, tmp_path):
    copy = tmp_path / "open.duckdb"
    copy.write_bytes(path.read_bytes())
    with duckdb.connect(str(copy), read_only=True) as mine:
        with privsql.connect(mine, POLICY, deadline=DEADLINE) as session:
            assert answers(session) == ANSWERS
            mine.execute(
                "CREATE TEMP TABLE people AS SELECT 7 AS age"
            )  # of this connection alone: not what is asked about
            assert answers(session) == ANSWERS
        refused(mine, "argument-deadline")  # people is now another table here
    with duckdb.connect(str(copy)) as mine:
        refused(copy, "source-worker")  # no other process can read what is being written
        refused(mine, "argument-deadline")
    with privsql.connect(copy, POLICY, deadline=DEADLINE) as session:
        assert answers(session) == ANSWERS


@pytest.mark.slow
def test_a_replaced_file_is_not_queried(path, tmp_path):
    copy = tmp_path / "clinic.duckdb"
    copy.write_bytes(path.read_bytes())
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as owner:
        owner.execute("CREATE TABLE people AS SELECT 1 AS age, 1 AS score, true AS member, 'a' AS who")
    with privsql.connect(copy, POLICY, deadline=DEADLINE) as session:
        other.replace(copy)
        kill(session)
        with pytest.raises(privsql.SourceError) as caught:
            answers(session)
        assert caught.value.code == "source-worker" and caught.value.suggestion
        assert session.budget.spent.epsilon == 0
        session._pipeline.engine._keeper._program += 1  # as in a fork of this program
        with pytest.raises(privsql.SourceError) as caught:
            answers(session)
        assert caught.value.code == "source-connection"
        session._pipeline.engine._keeper._program -= 1
    with pytest.raises(privsql.SourceError):
        answers(session)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duckdb", "parquet", "frame"])
def test_prepared_copies(kind, tmp_path):
    source: object = make(tmp_path / "clinic.duckdb")
    if kind != "duckdb":
        with duckdb.connect(str(source)) as owner:
            owner.execute(f"COPY visits TO '{tmp_path}/visits.parquet'")
        source = (
            tmp_path / "visits.parquet"
            if kind == "parquet"
            else {"visits": pd.read_parquet(tmp_path / "visits.parquet")}
        )
    with privsql.connect(source, VISITS, deadline=30) as session:
        before = session.query(BY_STATE, epsilon=EXACT).fetchall()
        session.prepare("visits")
        plan = session.explain(BY_STATE, epsilon=EXACT)
        assert uses_copy(plan)
        for _ in range(2):
            after = session.query(BY_STATE, epsilon=EXACT, fresh=True).fetchall()
            assert [row[0] for row in after] == [row[0] for row in before] and sum(
                row[1] for row in after
            ) > 0
            kill(session)
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"deadline": value}, "argument-deadline")
        for value in (0, -1, float("nan"), float("inf"), "30", True, 1e9)
    ]
    + [
        ({"memory_limit": value}, "argument-memory")
        for value in (0, "2", "2 GB or so", "1MB", True, 1.5, "9999999TB")
    ]
    + [({"time_quantum": value}, "argument-quantum") for value in (0, float("nan"), "1")],
    ids=str,
)
def test_invalid_resource_limits_are_refused(options, code):
    with pytest.raises(privsql.ArgumentError) as caught:
        privsql.connect(pd.DataFrame({"x": [1]}), **options)
    assert caught.value.code == code and caught.value.suggestion
    assert (caught.value.code == "argument-quantum") == ("time_quantum" in options)
