"""The fuse: what fails after its charge is recorded, however it ends, and few of one analyst's queries may."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.budget.fuse import Failures
from privsql.budget.ledger_file.file_ledger import forgive, open_ledger
from privsql.budget.ledger_file.format import FORMAT, OBJECTS, OBJECTS_BEFORE
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.budget.ledger_file.show import report, show
from privsql.budget.ledger_file.store import Store
from privsql.budget.ledger_file.verify import replay, verify
from privsql.cli import main
from privsql.errors import EngineError
from privsql.policy import load_policy
from tests.budget.ledgers import VISITS, DyingStore, FailingStore, charge, fail, opened, policy, running
from tests.budget.refusals import refusal
from tests.budget.test_ledger_faults import SAME

COUNT = "SELECT COUNT(*) AS n FROM visits"
FRAME = pd.DataFrame({"age": [i % 80 for i in range(200)], "pay": [float(i) for i in range(200)]})


# -- sessions --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuse") / "clinic.duckdb"
    with duckdb.connect(str(path)) as owner:
        owner.execute(
            "CREATE TABLE visits AS SELECT i AS id, i % 80 AS age, i / 7.0 AS pay FROM range(1000) t(i)"
        )
    return path


def broken(session: privsql.Session, error: type[BaseException] = EngineError) -> privsql.Session:
    """A session whose engine fails whenever it should read private rows."""

    def run(*_: object) -> None:
        raise error

    session._pipeline.engine.run = run  # type: ignore[method-assign,assignment]
    return session


ASKING: dict[str, Callable[[privsql.Session], Any]] = {
    "query": lambda session: session.query(COUNT, epsilon=0.1),
    "batch": lambda session: session.batch([COUNT, f"{COUNT} WHERE age > 3"], epsilon=0.2),
    "range search": lambda session: session.query("SELECT AVG(pay) AS pay FROM visits", epsilon=0.1),
}
POLICY = {"budget": {"epsilon": 10.0}, "tables": {"visits": {"columns": {"pay": {"range": "auto"}}}}}


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
@pytest.mark.parametrize("how", list(ASKING))
def test_three_failures_and_then_a_refusal(source, path, how, kept):
    ledger = path if kept == "in a file" else None
    with broken(privsql.connect(source, POLICY, ledger=ledger, analyst="ana")) as session:
        for number in range(3):
            assert session.budget.failures == Failures(number, 0, 3)
            assert refusal(ASKING[how], session).code == "engine-failed"
        spent = session.budget.spent
        for each in ASKING.values():  # whatever is asked now
            assert refusal(each, session).code == "budget-failures"
        assert session.budget.spent == spent
        assert "failed queries: 3 of at most 3" in str(session.budget)
        assert session.history()["failed"].all()


def test_the_refusal_comes_before_any_data_are_read(source, path):
    with broken(privsql.connect(source, POLICY, ledger=path)) as session:
        for _ in range(3):
            refusal(session.query, COUNT, epsilon=0.1)
        session._pipeline.engine.run = lambda *_: pytest.fail("the data were read")  # type: ignore[method-assign]
        assert refusal(session.query, COUNT, epsilon=0.1).code == "budget-failures"


def test_stored_answers_stay_free_after_the_fuse(source, path):
    with privsql.connect(source, POLICY, ledger=path) as session:
        known = session.query(COUNT, epsilon=0.5).fetchall()
        broken(session)
        for _ in range(3):
            refusal(session.query, f"{COUNT} WHERE age > 5", epsilon=0.1)
        assert session.query(COUNT, epsilon=0.5).fetchall() == known
        assert session.explain(f"{COUNT} WHERE age > 6", epsilon=0.1).epsilon == 0.1


def test_the_owners_command_renews_the_fuse(source, path, capsys):
    with privsql.connect(source, POLICY, ledger=path, analyst="ana o'hara") as session:
        run = session._pipeline.engine.run
        broken(session)
        for _ in range(3):
            refusal(session.query, COUNT, epsilon=0.1)
        caught = refusal(session.query, COUNT, epsilon=0.1)
        session._pipeline.engine.run = run  # type: ignore[method-assign]
        program, *arguments = shlex.split(caught.suggestion.partition("runs: ")[2])
        assert (program, main(arguments)) == ("privsql", 0)
        assert capsys.readouterr().out.startswith("the count of failed queries of ana o'hara was reset to 0")
        session.query(COUNT, epsilon=0.1)
        assert session.budget.failures == Failures(0, 0, 3)
        assert list(session.history()["failed"]) == [True, True, True, False]  # what failed has failed


def test_an_interrupted_query_counts(source, path):
    """Its charge stands; how long it ran is for the analyst to choose, and could depend on the data."""
    with broken(privsql.connect(source, POLICY, ledger=path), KeyboardInterrupt) as session:
        with pytest.raises(KeyboardInterrupt):
            session.query(COUNT, epsilon=0.1)
        assert session.budget.failures == Failures(1, 0, 3)


def test_a_deadline_counts(source, path):
    with privsql.connect(source, POLICY, ledger=path, deadline=1e-9) as session:
        assert refusal(session.query, COUNT, epsilon=0.1).code == "engine-failed"
        assert session.budget.failures == Failures(1, 0, 3)


def test_the_failures_of_a_frame_stay_with_it():
    frame = FRAME.copy()
    for number in range(3):
        if number == 2:
            frame.dp.protect(budget=5)  # which starts a ledger of its own, with what was before
        frame.dp.query("SELECT COUNT(*) AS n FROM df", epsilon=0.1, fresh=True)
        (session,) = list(frame.dp._state.sessions.values())[-1:]
        broken(session)
        assert (
            refusal(session.query, "SELECT COUNT(*) FROM df", epsilon=0.1, fresh=True).code == "engine-failed"
        )
        frame.dp._state.engine = None  # a new engine, that works
    assert (
        refusal(frame.dp.query, "SELECT COUNT(*) FROM df", epsilon=0.1, fresh=True).code == "budget-failures"
    )


def test_the_least_price_of_a_query(source):
    declared = {"budget": {"per_query_least": 0.1}, "tables": POLICY["tables"]}
    with privsql.connect(source, declared) as session:
        caught = refusal(session.query, COUNT, epsilon=0.09)
        assert caught.code == "budget-least"
        assert "epsilon=0.1 or more" in caught.suggestion
        session.query(COUNT, epsilon=0.1)
        questions = [f"{COUNT} WHERE age > {age}" for age in (1, 2, 3)]
        assert refusal(session.batch, questions, epsilon=0.29).code == "budget-least"
        session.batch(questions, epsilon=0.31)
        search = "SELECT AVG(pay) AS pay FROM visits"  # of which a fifth goes to the range
        assert refusal(session.query, search, epsilon=0.49).code == "budget-least"
        spent = session.budget.spent.epsilon
        session.query(search, epsilon=0.5)
        assert session.budget.spent.epsilon == pytest.approx(spent + 0.5)


# -- processes that end ----------------------------------------------------------------------------------------
KILLED = """if True:
    import os, signal, sys
    import privsql
    session = privsql.connect(sys.argv[1], ledger=sys.argv[2], analyst="ana")
    session._pipeline.engine.run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    session.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    """


@pytest.mark.slow
def test_a_killed_client_counts(source, path):
    for number in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED, str(source), str(path)], env=SAME, check=False)
        assert done.returncode == -signal.SIGKILL
        assert open_reader(path).failures("ana") == Failures(0, number + 1, 3)
    with privsql.connect(source, ledger=path, analyst="ana") as session:
        session._pipeline.ledger._store.patience = 0.0  # type: ignore[attr-defined]
        caught = refusal(session.query, COUNT, epsilon=0.1)
        assert caught.code == "budget-failures"
        assert "or did not finish (3 of them)" in str(caught)
        assert "wait for the queries that are still running" in caught.suggestion
        forgive(path, analyst="ana")
        session.query(COUNT, epsilon=0.1)


def in_child(work: Callable[[], None]) -> int:
    """How a forked process ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def left_by(path: Path, step: int) -> tuple[int, int]:
    """How many charges, and how many that are not finished, a process leaves that is killed at some step of one query."""
    file = path.with_name(f"{step}.ledger")
    opened(Store(file), policy(1)).close()
    assert in_child(lambda: charge(opened(DyingStore(file, step), policy(1)), 0.1)) in (7, -signal.SIGKILL)
    return sum(row.kind == "charge" for row in verify(file)), open_reader(file).failures("ana").unfinished


FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@FORKS
@pytest.mark.slow
def test_killed_at_every_step_of_a_query(path):
    """It is not charged yet, then charged and counted, then over: nowhere charged, not over, and not counted."""
    found = [left_by(path, step) for step in range(1, 90)]
    assert list(dict.fromkeys(found)) == [(0, 0), (1, 1), (1, 0)]
    assert found.count((1, 1)) > 3


def test_a_failure_that_cannot_be_recorded_counts(path):
    failing = FailingStore(path)
    ledger = opened(failing, policy(1))

    def ask(*, fails: bool) -> None:
        with running(ledger, 0.1):
            failing.fails_at, failing.error = failing.steps + 1, sqlite3.SQLITE_FULL
            if fails:
                raise EngineError

    for number, fails in enumerate((True, False)):
        with pytest.warns(UserWarning, match="it counts as a failure"), suppress(EngineError):
            ask(fails=fails)
        assert ledger.failures("ana") == Failures(0, number + 1, 3)
    assert len(verify(path)) == 3
    ledger.close()


def test_a_query_of_another_process_is_waited_for(path):
    ledger, other = (
        opened(Store(path, patience=60), policy(1, max_failures=1)),
        opened(Store(path), policy(1)),
    )
    held = running(other, 0.1)
    held.__enter__()
    threading.Timer(0.05, held.__exit__, (None, None, None)).start()
    charge(ledger, 0.1)
    assert len(ledger.entries()) == 2
    ledger.close()
    other.close()


def test_a_query_of_a_dead_process_is_not_waited_for(path):
    ledger, other = (
        opened(Store(path, patience=0.0), policy(1, max_failures=1)),
        opened(Store(path), policy(1)),
    )
    held = running(other, 0.1)
    held.__enter__()  # and never leaves
    assert refusal(charge, ledger, 0.1).code == "budget-failures"
    ledger.close()
    other.close()


def test_the_end_of_a_query_does_not_wait_for_the_disk(path):
    class Watched(FailingStore):
        said: list[str] = []

        def step(self, name: str) -> None:
            self.said.append(name)

    store = Watched(path)
    ledger = opened(store, policy(1))
    store.said.clear()
    charge(ledger, 0.1)
    told = [
        each for each in store.said if each.startswith(("PRAGMA synchronous", "INSERT", "DELETE", "COMMIT"))
    ]
    charging = ["PRAGMA synchronous = FULL", "INSERT INTO entries", "INSERT INTO runs VALUES", "COMMIT"]
    ending = ["PRAGMA synchronous = NORMAL", "DELETE FROM runs WHERE number = ?", "COMMIT"]
    assert [each.split(" (")[0] for each in told] == charging + ending
    store.said.clear()
    fail(ledger)
    assert store.said.count("PRAGMA synchronous = FULL") == 2  # a failure is on the disk before it is told
    ledger.close()


# -- the file --------------------------------------------------------------------------------------------------
def test_failures_are_entries_of_the_chain(path):
    ledger = open_ledger(path, policy(5), VISITS)
    charge(ledger, 1)
    fail(ledger)
    fail(ledger, analyst="ben")
    forgive(path, "the disk was full", "ana")
    forgive(path)
    rows = verify(path)
    kinds = ["open", "charge", "charge", "failure", "charge", "failure", "forgive", "forgive"]
    assert [row.kind for row in rows] == kinds
    assert [row.analyst for row in rows] == ["", "ana", "ana", "ana", "ben", "ben", "ana", ""]
    assert rows[3].read == {"charges": [3]}
    for wrong in ('{"charges": [2, 4]}', '{"charges": [5]}', '{"charges": [0]}', '{"charges": [9]}', "{}"):
        changed = [*rows[:3], type(rows[3])(*rows[3].values()[:-3], wrong, rows[3].previous)]
        changed[3] = type(rows[3])(*changed[3].values()[:-1], changed[3].digest())
        assert refusal(replay, changed).code == "budget-corrupt"
    ledger.close()


def test_renewing_one_analyst_leaves_the_others(path):
    ledger = open_ledger(path, policy(5), VISITS)
    for name in ("ana", "ben", "cleo"):
        for _ in range(3):
            fail(ledger, analyst=name)
    forgive(path, analyst="ana")
    assert [ledger.failures(name).failed for name in ("ana", "ben", "cleo")] == [0, 3, 3]
    fail(ledger)
    forgive(path)
    assert [ledger.failures(name).failed for name in ("ana", "ben", "cleo")] == [0, 0, 0]
    charge(ledger, 1, analyst="ben")
    ledger.close()


def test_a_policy_can_tighten_but_not_loosen_the_fuse(path):
    open_ledger(path, policy(5, max_failures=4, per_query_least=0.1), VISITS).close()
    for budget, found in (({}, (4, 0.1)), ({"max_failures": 2, "per_query_least": 0.5}, (2, 0.5))):
        ledger = open_ledger(path, policy(5, **budget), VISITS)
        assert ledger.failures("ana").most == found[0]
        assert refusal(charge, ledger, found[1] - 0.01).code == "budget-least"
        charge(ledger, found[1])
        ledger.close()
    for budget in ({"max_failures": 5}, {"per_query_least": 0.05}):
        caught = refusal(open_ledger, path, policy(5, **budget), VISITS)
        assert caught.code == "budget-caps"
        (name,) = budget
        assert f"{name} = {4 if name == 'max_failures' else 0.1}" in caught.suggestion
    assert open_ledger(path.with_name("other"), policy(5), VISITS).failures("ana").most == 3
    assert (
        refusal(open_ledger, path.with_name("other"), policy(5, max_failures=4), VISITS).code == "budget-caps"
    )


@pytest.fixture
def before(path: Path) -> Path:
    """A ledger as the format before had it: made by the newest, and put into the old tables."""
    ledger = open_ledger(path, policy(5), VISITS)
    for number in range(3):
        charge(ledger, 0.5, question=f"q{number}")
    ledger.close()
    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    for name in ("entries", "runs"):
        connection.execute(f"DROP TABLE {name}")
    for sql in OBJECTS_BEFORE.values():
        connection.execute(sql)
    for row in rows:
        connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    return path


def test_a_ledger_of_the_previous_format_still_works(before):
    assert open_reader(before).failures("ana") == Failures(0, 0, 3)
    assert len(verify(before)) == 4
    ledger = open_ledger(before, policy(5), VISITS)
    fail(ledger)
    assert ledger.failures("ana") == Failures(1, 0, 3)
    assert ledger.budget.spent.epsilon == 1.51
    ledger.close()
    assert len(verify(before)) == 6
    connection = sqlite3.connect(before)
    assert connection.execute("PRAGMA user_version").fetchall() == [(FORMAT,)]
    assert dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")) == OBJECTS
    connection.close()


@FORKS
@pytest.mark.slow
def test_a_killed_upgrade_leaves_the_old_ledger(before):
    whole = before.read_bytes()
    outcomes = set()
    for step in range(1, 140):
        other = before.with_name(f"{step}.ledger")
        other.write_bytes(whole)
        end = in_child(lambda other=other, step=step: charge(opened(DyingStore(other, step), policy(5)), 0.5))
        outcomes.add((end, len(verify(other))))
    assert outcomes == {(-signal.SIGKILL, 4), (-signal.SIGKILL, 5), (7, 5)}


# -- what is shown ---------------------------------------------------------------------------------------------
def test_failures_are_shown_by_analyst(path):
    ledger = open_ledger(path, policy(5, per_query_least=0.01), VISITS)
    fail(ledger)
    forgive(path, "the disk was full", "ana")
    fail(ledger)
    fail(ledger)
    fail(ledger, analyst="ben")
    with running(ledger, 0.1, analyst="ben"):
        text, document = (
            show("x", ledger.rows(), None, ledger.runs()),
            report(ledger.rows(), None, ledger.runs()),
        )
    assert "answers: 5, each for at least epsilon 0.01\n" in text
    assert (
        "queries that failed after they were charged\n  ana: 2 of at most 3\n  ben: 1 of at most 3, 1 not finished"
        in text
    )
    assert "failures of ana forgiven: the disk was full" in text
    assert (document["max_failures"], document["per_query_least"]) == (3, 0.01)
    assert document["failures"] == {
        "ana": {"failed": 2, "unfinished": 0},
        "ben": {"failed": 1, "unfinished": 1},
    }
    (forgiven,) = document["failures_forgiven"]
    assert (forgiven["analyst"], forgiven["unfinished"], forgiven["reason"]) == (
        "ana",
        0,
        "the disk was full",
    )
    ledger.close()


def test_renewing_on_the_command_line(path, capsys):
    ledger = open_ledger(path, policy(5), VISITS)
    fail(ledger)
    fail(ledger, analyst="ben")
    assert main(["ledger", "renew", str(path), "--failures", "--analyst", "ana"]) == 0
    assert (
        capsys.readouterr().out == "the count of failed queries of ana was reset to 0, recorded as entry 6\n"
    )
    assert main(["budget", str(path)]) == 0
    assert "  ben: 1 of at most 3\n" in capsys.readouterr().out
    assert main(["ledger", "renew", str(path), "--failures"]) == 0
    assert capsys.readouterr().out == "the count of failed queries was reset to 0, recorded as entry 7\n"
    assert main(["budget", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["failures"] == {}
    for wrong in (
        "--failures --epsilon 1",
        "--failures --per-query",
        "--failures --delta 0.1",
        "--epsilon 1",
    ):
        assert main(["ledger", "renew", str(path), *wrong.split()]) == 2
        assert "[argument-shape]" in capsys.readouterr().err
    ledger.close()


@pytest.mark.parametrize(
    "budget",
    [
        {"max_failures": 0},
        {"max_failures": 1.5},
        {"max_failures": True},
        {"per_query_least": 0},
        {"per_query": 1, "per_query_least": 2},
    ],
)
def test_invalid_fuse_policies_are_refused(budget):
    refusal(load_policy, {"budget": budget})
