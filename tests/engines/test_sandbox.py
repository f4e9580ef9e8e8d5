"""The sandbox: statements over released values run in a process that is killed in time, and the next one works."""

from __future__ import annotations

import datetime as dt
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest

from privsql.engines.duckdb.sandbox import Sandbox, sandbox
from privsql.engines.worker_process import pack, unpack
from privsql.errors import PrivsqlError, SqlError
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TEXT,
    TIME,
    TIMESTAMP,
    Type,
    decimal,
    integer,
    list_of,
)
from tests.support.attacks_above import ATTACKS

HUGE = integer(-(2**127), 2**127 - 1)
ENDLESS = "SELECT count(*) FROM range(1000000000000) a, range(10) b"
ONE = "SELECT 1 AS x"


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def pid_of(box: Sandbox) -> int:
    assert box._child is not None
    return box._child._process.pid


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether it ends, and is not left as a zombie of ours."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def failed(box: Sandbox, sql: str, deadline: float = 60.0, **tables: dict) -> str:
    with pytest.raises(PrivsqlError) as caught:
        box.run(sql, tables, deadline=deadline)
    assert caught.value.code == "engine-post-processing"
    return caught.value.message


COLUMNS: dict[str, tuple[list, Type, str]] = {
    "text": (["x", None, "\u00e9'\"\n"], TEXT, "VARCHAR"),
    "empty": (["", None, ""], TEXT, "VARCHAR"),
    "whole": ([1, None, -(2**63)], BIGINT, "BIGINT"),
    "small": ([1, None, -5], integer(-(2**31), 2**31 - 1), "INTEGER"),
    "huge": ([2**52, None, -7], HUGE, "HUGEINT"),
    "real": ([1.5, None, float("inf")], DOUBLE, "DOUBLE"),
    "day": ([dt.date(2020, 2, 29), None, dt.date(1960, 1, 1)], DATE, "DATE"),
    "moment": ([dt.datetime(2020, 2, 29, 1, 2, 3), None, dt.datetime(1, 1, 1)], TIMESTAMP, "TIMESTAMP"),
    "clock": ([dt.time(1, 2, 3, 4), None, dt.time()], TIME, "TIME"),
    "span": ([dt.timedelta(days=3, seconds=1), None, dt.timedelta()], INTERVAL, "INTERVAL"),
    "price": ([Decimal("1.25"), None, Decimal("1E+3")], decimal(9, 2), "DECIMAL(9,2)"),
    "yes": ([True, None, False], BOOLEAN, "BOOLEAN"),
    "reals": ([[1.5, None], None, []], list_of(DOUBLE), "DOUBLE[]"),
    "texts": ([["a'", None], None, ['"']], list_of(TEXT), "VARCHAR[]"),
    "nothing": ([None, None, None], NULL, "VARCHAR"),
}


def test_columns_come_back_as_they_went_in(box: Sandbox) -> None:
    table = {name: (values, type_) for name, (values, type_, _) in COLUMNS.items()}
    checked = box.check("SELECT * FROM r0", {"r0": {name: type_ for name, (_, type_) in table.items()}})
    assert checked == [(name, kind) for name, (_, _, kind) in COLUMNS.items()]
    for rows in (slice(None), slice(0, 1), slice(0, 0), slice(1, 2)):
        given = {name: (values[rows], type_) for name, (values, type_) in table.items()}
        found = box.run("SELECT * FROM r0", {"r0": given})
        for (name, (values, kind)), column in zip(given.items(), found, strict=True):
            expected = [float(each) if isinstance(each, Decimal) else each for each in values]
            if kind is DATE:  # a DATE is the moment at which it begins
                expected = [each and dt.datetime.combine(each, dt.time()) for each in expected]
            assert column.tolist() == expected, name
            assert np.ma.isMaskedArray(column) == (None in values), name


def test_nan_is_not_null(box: Sandbox) -> None:
    values = np.ma.array([float("nan"), 1.0, 2.0], mask=[False, True, False])
    (isnan, isnull, x) = box.run("SELECT isnan(x), x IS NULL, x FROM r0", {"r0": {"x": (values, DOUBLE)}})
    assert isnan.tolist() == [True, None, False] and isnull.tolist() == [False, True, False]
    assert np.isnan(x[0]) and x[1] is np.ma.masked


def test_numpy_columns_of_all_widths(box: Sandbox) -> None:
    moments = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")
    columns = {
        "a": (np.array([1, 2], dtype=np.int8), BIGINT),
        "b": (np.array([1, 2]), DOUBLE),
        "c": (moments, DATE),
    }
    (a, b, c) = box.run("SELECT a, b, c FROM r0", {"r0": columns})
    assert (a.dtype, b.dtype) == (np.int64, np.float64)
    assert c.tolist() == [dt.datetime(2020, 1, 1), None]


def test_nested_results(box: Sandbox) -> None:
    table = {"k": ([1, 2], BIGINT), "a": (["x", None], TEXT)}
    sql = "SELECT {'k': k, 'a': a}, MAP {k: a}, [k, NULL], [[k]], row(k, a), [DATE '2020-01-01'] FROM r0"
    found = [column.tolist() for column in box.run(sql, {"r0": table})]
    day = dt.datetime(2020, 1, 1)
    assert found == [
        [{"k": 1, "a": "x"}, {"k": 2, "a": None}], [{1: "x"}, {2: None}], [[1, None], [2, None]],
        [[[1]], [[2]]], [[1, "x"], [2, None]], [[day], [day]],
    ]  # fmt: skip


def test_sums_of_whole_numbers_are_whole_while_nothing_is_lost(box: Sandbox) -> None:
    (small,) = box.run("SELECT sum(n) FROM r0", {"r0": {"n": ([3, 4], BIGINT)}})
    (large,) = box.run("SELECT sum(n) FROM r0", {"r0": {"n": ([2**62, 2**62], BIGINT)}})
    assert (small.dtype, small.tolist()) == (np.int64, [7])
    assert (large.dtype, large.tolist()) == (np.float64, [float(2**63)])


def test_columns_of_one_name_and_the_order_of_rows(box: Sandbox) -> None:
    first, second = box.run("SELECT n, -n AS n FROM r0 ORDER BY 1 DESC", {"r0": {"n": ([2, 3, 1], BIGINT)}})
    assert first.tolist() == [3, 2, 1] and second.tolist() == [-3, -2, -1]
    assert box.check("SELECT n, -n AS n FROM r0", {"r0": {"n": BIGINT}}) == [("n", "BIGINT"), ("n", "BIGINT")]


def test_odd_names_of_tables_and_columns(box: Sandbox) -> None:
    name, column = 'a "b".c', "x; '\""
    quoted = ['"' + each.replace('"', '""') + '"' for each in (name, column)]
    sql = f"SELECT max({quoted[1]}) AS m FROM {quoted[0]}"
    assert box.check(sql, {name: {column: BIGINT}}) == [("m", "BIGINT")]
    assert box.run(sql, {name: {column: ([1, 5], BIGINT)}})[0].tolist() == [5]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT missing FROM r0", "missing"),
        ("SELECT n FROM r9", "r9"),
        ("SELECT upper(n, n) FROM r0", "upper"),
        ("SELECT rowid FROM r0", "rowid"),
        ("SELECT regexp_matches('a', '(')", "missing"),
        ("SELECT FROM", "syntax"),
    ],
)
def test_what_duckdb_refuses_is_an_error_of_the_text_with_its_reason(
    box: Sandbox, sql: str, word: str
) -> None:
    with pytest.raises(SqlError, match=word) as caught:
        box.check(sql, {"r0": {"n": BIGINT}})
    assert caught.value.code == "sql-engine" and "\n" not in caught.value.message
    assert box.check(ONE, {}) == [("x", "INTEGER")]


def test_a_statement_that_never_ends_without_rows_is_refused_before_anything_is_paid(box: Sandbox) -> None:
    with pytest.raises(SqlError, match="took more than") as caught:
        box.check(ENDLESS, {}, deadline=0.5)
    assert caught.value.code == "sql-engine"


def test_a_failure_on_values_says_why_and_the_process_goes_on(box: Sandbox) -> None:
    box.run(ONE, {})
    pid = pid_of(box)
    assert "Could not convert" in failed(box, "SELECT CAST(a AS INT) FROM r0", r0={"a": (["x"], TEXT)})
    assert box.run(ONE, {})[0].tolist() == [1] and pid_of(box) == pid


def test_tables_of_one_call_are_gone_in_the_next(box: Sandbox) -> None:
    box.run("SELECT * FROM r0", {"r0": {"secret": ([1], BIGINT)}})
    assert "r0" in failed(box, "SELECT * FROM r0")
    assert "raw0" in failed(box, "SELECT * FROM raw0")
    assert box.run("SELECT count(*) FROM duckdb_tables()", {})[0].tolist() == [0]


@pytest.mark.parametrize("sql", [ENDLESS, "SELECT sleep_ms(60000)"])
def test_a_statement_is_killed_at_its_deadline(box: Sandbox, sql: str) -> None:
    box.run(ONE, {})
    pid, start = pid_of(box), time.monotonic()
    assert failed(box, sql, deadline=0.5).endswith("it took more than 0.5 seconds.")
    assert time.monotonic() - start < 20 and gone(pid)
    assert box.run(ONE, {})[0].tolist() == [1]
    assert pid_of(box) != pid


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(repeat('x', 4000000000))",
        "SELECT list_sum(range(1000000000))",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                "SELECT list(repeat('x', 1000000) || i) FROM range(10000) t(i)",
                "SELECT i FROM range(1000000000) t(i)",
            )
        ),
        "SELECT i FROM range(100000000) t(i) ORDER BY hash(i)",
    ],
)
def test_memory_ends_before_the_machine_does(box: Sandbox, sql: str) -> None:
    """Whether DuckDB notices, the process is at its limit, or its time is up, it is over, and the next one works."""
    message = failed(box, sql, deadline=30.0)
    assert any(each in message for each in ("memory", "more than", "too large", "Error"))
    assert box.run(ONE, {})[0].tolist() == [1]


def test_the_memory_of_the_process_is_limited(box: Sandbox) -> None:
    box.run(ONE, {})
    limits = Path(f"/proc/{pid_of(box)}/limits").read_text()
    (data,) = [line.split()[3] for line in limits.splitlines() if line.startswith("Max data size")]
    (core,) = [line.split()[4] for line in limits.splitlines() if line.startswith("Max core file size")]
    (written,) = [line.split()[3] for line in limits.splitlines() if line.startswith("Max file size")]
    assert int(data) < 3 << 30 and (core, written) == ("0", "0")


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_died_is_replaced(box: Sandbox, way: signal.Signals) -> None:
    box.run(ONE, {})
    pid, child = pid_of(box), box._child
    os.kill(pid, way)
    assert child is not None and child._process.wait(20) == -way
    assert box.run(ONE, {})[0].tolist() == [1]
    assert pid_of(box) != pid and gone(pid)


def test_closing_ends_the_process_and_the_next_call_starts_another() -> None:
    box = Sandbox()
    box.run(ONE, {})
    pid = pid_of(box)
    box.close()
    assert gone(pid)
    assert box.run(ONE, {})[0].tolist() == [1]
    box.close()


def test_the_process_gets_no_environment_and_no_files_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    box = Sandbox()
    with open(tmp_path / "private", "w+") as private:
        os.set_inheritable(private.fileno(), True)
        box.run(ONE, {})
        process = Path(f"/proc/{pid_of(box)}")
        assert b"SECRET_OF_OURS" not in (process / "environ").read_bytes()
        opened = [os.readlink(each) for each in (process / "fd").iterdir()]
    assert opened and not any(str(tmp_path) in each for each in opened)
    assert all(each.startswith(("pipe:", "/dev/null", "anon_inode", "/dev/urandom")) for each in opened), (
        opened
    )
    box.close()


FILES = [each for each in ATTACKS if "/" in each and "ZONE" not in each]


@pytest.mark.parametrize("sql", FILES)
def test_files_are_out_of_reach_even_of_what_was_not_permitted(box: Sandbox, sql: str) -> None:
    failed(box, sql)


@pytest.mark.parametrize("sql", [each for each in ATTACKS if each not in FILES])
def test_an_attack_changes_nothing_even_if_it_was_not_permitted(box: Sandbox, sql: str) -> None:
    """What is read of the engine is what every empty DuckDB says; nothing of this program, and nothing stays."""
    with_table = {"r0": {"n": ([1, 2], BIGINT), "a": (["x", "y"], TEXT)}}
    try:
        shown = repr(box.run(sql, with_table, deadline=5.0))
    except PrivsqlError as error:
        shown = error.message
    for known in (os.environ.get("HOME", "/home"), str(Path.cwd()), sys.prefix, "privsql-"):
        assert known not in shown
    assert box.run("SELECT count(*) FROM duckdb_variables()", {})[0].tolist() == [0]
    assert box.run("SELECT current_setting('threads'), current_setting('TimeZone')", {})[1].tolist() == [
        "UTC"
    ]


@pytest.mark.parametrize(
    "sql",
    ["SET threads = 4", "SET enable_external_access = true", "ATTACH '/tmp/privsql_attack.db' AS x", "LOAD httpfs",
     "COPY (SELECT 1) TO '/tmp/privsql_attack.csv'", "SET lock_configuration = false", "INSTALL httpfs",
     "SET memory_limit = '100GB'", "EXPORT DATABASE '/tmp/privsql_attack'"],
)  # fmt: skip
def test_the_engine_itself_is_closed(sql: str) -> None:
    """Without the sandbox's own protocol, which runs nothing but what can be described: the database as it opens it."""
    from privsql.engines.duckdb import sandbox as module

    opening = module._opening(256 << 20)
    connection = duckdb.connect(":memory:", config=opening["config"])
    for statement in opening["statements"]:
        connection.execute(statement)
    with pytest.raises(duckdb.Error):
        connection.execute(sql)
    connection.close()
    assert not list(Path("/tmp").glob("privsql_attack*"))


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE x AS SELECT 1", "SELECT 1; SELECT 2", "SET VARIABLE x = 1", "DROP TABLE r0", "CHECKPOINT"],
)
def test_only_one_statement_with_columns_is_run(box: Sandbox, sql: str) -> None:
    failed(box, sql, r0={"n": ([1], BIGINT)})


# -- many versions -------------------------------------------------------------------------------------------
def versions(number: int, rows: int = 50) -> list[dict]:
    names = np.array([f"k{each}" for each in range(rows)], dtype=object)
    return [
        {
            "r0": {
                "k": (np.arange(rows), BIGINT),
                "a": (np.ma.array(names, mask=np.arange(rows) == each), TEXT),
                "x": ((np.arange(rows) * (each + 3.5)) % 17, DOUBLE),
            }
        }
        for each in range(number)
    ]


PUBLIC = {"p": {"k": (list(range(50)), BIGINT), "region": ([f"r{each % 3}" for each in range(50)], TEXT)}}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, 100 * x / sum(x) OVER () AS share, rank() OVER (ORDER BY x) AS place FROM r0 ORDER BY k",
        "SELECT region, sum(x), list(a ORDER BY k)[1:2] AS l FROM r0 JOIN p USING (k) GROUP BY region ORDER BY region",
        "SELECT k, x FROM r0 WHERE x > (SELECT avg(x) FROM r0) ORDER BY k",
        "PIVOT (SELECT k // 25 AS half, k % 2 AS odd, x FROM r0) ON odd IN (0, 1) USING sum(x) GROUP BY half ORDER BY half",
        "WITH top AS (SELECT * FROM r0 ORDER BY x DESC, k LIMIT 5) SELECT max(x), min(k), count(a) FROM top",
        "SELECT region FROM p ORDER BY region LIMIT 1",
    ],
)  # fmt: skip
def test_many_versions_give_what_each_gives_alone(box: Sandbox, sql: str) -> None:
    changing = versions(7)
    together = box.run_many(sql, PUBLIC, changing)
    assert len(together) == 7
    for found, version in zip(together, changing, strict=True):
        alone = box.run(sql, {**PUBLIC, **version})
        assert [each.tolist() for each in found] == [each.tolist() for each in alone]
        assert [each.dtype for each in found] == [each.dtype for each in alone]


def test_versions_may_have_other_numbers_of_rows_and_none(box: Sandbox) -> None:
    changing = [{"r0": {"n": (list(range(rows)), BIGINT)}} for rows in (3, 0, 1)]
    found = box.run_many("SELECT n, sum(n) OVER () AS s FROM r0 ORDER BY n", {}, changing)
    assert [[each.tolist() for each in version] for version in found] == [
        [[0, 1, 2], [3, 3, 3]],
        [[], []],
        [[0], [0]],
    ]
    assert box.run_many(ONE, {}, []) == []
    found = box.run_many("SELECT count(*) AS n FROM r0", {}, changing)
    assert [version[0].tolist() for version in found] == [[3], [0], [1]]


def test_several_tables_change_together(box: Sandbox) -> None:
    changing = [{"a": {"n": ([each], BIGINT)}, "b": {"n": ([10 * each], BIGINT)}} for each in range(4)]
    found = box.run_many("SELECT a.n + b.n AS s FROM a, b", {}, changing)
    assert [version[0].tolist() for version in found] == [[0], [11], [22], [33]]


def test_versions_that_take_too_long_are_killed_and_those_that_fail_say_why(box: Sandbox) -> None:
    with pytest.raises(PrivsqlError, match="more than"):
        box.run_many("SELECT count(*) FROM r0, range(10000000000)", {}, versions(3), deadline=0.5)
    with pytest.raises(PrivsqlError, match="convert"):
        box.run_many("SELECT CAST(a AS INT) FROM r0", {}, versions(3))
    assert len(box.run_many("SELECT count(*) FROM r0", {}, versions(3))) == 3


# -- what crosses the pipe ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "described",
    [
        {"name": "x", "rows": 1, "masked": False, "dtype": "V8"},
        {"name": "x", "rows": 1, "masked": False, "dtype": "O,O"},
        {"name": "x", "rows": 10**12, "masked": False, "dtype": "<i8"},
        {"name": "x", "rows": 1, "masked": False, "dtype": "S100"},
    ],
)
def test_columns_that_no_sandbox_sends_are_not_read(described: dict) -> None:
    """A process that was taken over can send anything: it must be numbers, moments or listed values."""
    with pytest.raises((ValueError, LookupError, TypeError)):
        unpack([described], bytearray(16))


def test_what_is_packed_cannot_run() -> None:
    described, buffers = pack({"x": np.array([1, 2])})
    assert [each for each in buffers if each] == [np.array([1, 2]).tobytes()]
    assert described == [{"name": "x", "rows": 2, "masked": False, "dtype": "<i8"}]


# -- the one sandbox of a program ------------------------------------------------------------------------------
def run_program(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=120, check=False
    )


def test_there_is_one_for_a_program_and_it_is_gone_with_it() -> None:
    done = run_program(
        "from privsql.engines.duckdb.sandbox import sandbox\n"
        "assert sandbox() is sandbox()\n"
        "assert sandbox()._child is None\n"  # until it is needed
        "sandbox().run('SELECT 1', {})\n"
        "print(sandbox()._child._process.pid)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert gone(int(done.stdout))


def test_a_program_that_is_killed_leaves_nothing_behind() -> None:
    done = run_program(
        "import os, signal\n"
        "from privsql.engines.duckdb.sandbox import sandbox\n"
        "sandbox().run('SELECT 1', {})\n"
        "print(sandbox()._child._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout))


def test_a_fork_starts_its_own_and_leaves_that_of_its_parent_alone() -> None:
    done = run_program(
        "import os, warnings\n"
        "from privsql.engines.duckdb.sandbox import sandbox\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"  # of forks with threads
        "sandbox().run('SELECT 1', {})\n"
        "ours = sandbox()._child._process.pid\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    found = sandbox().run('SELECT 2', {})[0].tolist()\n"
        "    other = sandbox()._child._process.pid\n"
        "    sandbox().close()\n"
        "    os._exit(0 if found == [2] and other != ours else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert sandbox().run('SELECT 3', {})[0].tolist() == [3]\n"
        "assert sandbox()._child._process.pid == ours\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sandbox_of_this_program_runs() -> None:
    assert sandbox().run("SELECT max(n) FROM r0", {"r0": {"n": ([3, 5], BIGINT)}})[0].tolist() == [5]
    sandbox().close()
    gc.collect()


# -- replies that no sandbox sends ---------------------------------------------------------------------------
class _Odd:
    """A process whose every reply is odd."""

    ended = False

    def __init__(self, message: object) -> None:
        self.message = message

    def ask(self, request: object, until: float, buffers: object) -> tuple[object, bytearray]:
        return self.message, bytearray()

    def kill(self) -> None:
        pass


ODD = [
    [],
    None,
    5,
    {},
    {"outputs": 3, "columns": [], "lengths": []},
    {"outputs": [["x"]], "columns": [], "lengths": [0]},
    {"outputs": [["x", "BIGINT"]], "columns": {}, "lengths": [0]},
    {"outputs": [["x", "BIGINT"]], "columns": [{"name": "x"}], "lengths": ["a"]},
    {"outputs": [["x", "BIGINT"]], "columns": [5], "lengths": None},
    {"outputs": [], "columns": [], "lengths": [0, 0, 0]},
    {"error": None, "kind": []},
    {"failed": {}},
]


@pytest.mark.parametrize("message", ODD)
def test_an_odd_reply_is_an_error_of_ours(message: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sandbox()
    monkeypatch.setattr(made, "_started", lambda: _Odd(message))
    with pytest.raises(PrivsqlError):
        made.run(ONE, {})
    made.close()


@pytest.mark.parametrize("message", [[], {}, {"outputs": 3}, {"outputs": [["x"]]}, {"outputs": [None]}])
def test_an_odd_description_is_an_error_of_ours(message: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sandbox()
    monkeypatch.setattr(made, "_started", lambda: _Odd(message))
    with pytest.raises(PrivsqlError):
        made.check(ONE, {"r0": {"x": BIGINT}})
    made.close()
