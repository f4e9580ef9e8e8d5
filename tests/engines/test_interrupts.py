"""Ctrl-C: the statement ends, the charge stands, the session goes on; and how long a query has run is shown, nothing else."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, closing, redirect_stderr
from pathlib import Path

import pytest

import privsql
from privsql import progress
from privsql.engines.duckdb.connection import _Task
from tests.prepare.visits import make

ENDLESS = "SELECT count(*) AS n FROM range(10000000) a(i), range(10000000) b(j) WHERE (i * j) % 7 = 3"
SCRIPT = """
import sys, threading, time
import pandas as pd
import privsql, privsql.engines.duckdb.engine as engines, privsql.engines.worker as worker
from privsql.session import Session

def main():
    frame = pd.DataFrame({"x": range(10)})
    session = privsql.connect(frame, deadline=600.0 if sys.argv[1] == "worker" else None)
    statements = {}
    engine = session._pipeline.engine
    run = engine.run
    engine.run = lambda sql, keys: (print("running", flush=True), run(ENDLESS, keys))[1]
    try:
        session.query("SELECT COUNT(*) AS n FROM df", epsilon=1)
    except KeyboardInterrupt as interrupt:
        print("interrupted:", interrupt, session.budget.spent.epsilon, flush=True)
    engine.run = run
    print("then", session.query("SELECT COUNT(*) AS n FROM df WHERE x < 5", epsilon=10000).fetchall(), flush=True)

main()
""".replace("ENDLESS", repr(ENDLESS))


def line_from(process: subprocess.Popen[str], word: str) -> str:
    for line in process.stdout:
        if line.startswith(word):
            return line
    raise AssertionError(f"no line with {word}")


@pytest.mark.parametrize("where", ["here", pytest.param("worker", marks=pytest.mark.slow)])
def test_ctrl_c_interrupts_the_statement_and_the_session_goes_on(where):
    environment = {**os.environ, "PYTHONPATH": str(Path(privsql.__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, where],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        line_from(process, "running")
        process.send_signal(signal.SIGINT)
        assert (
            line_from(process, "interrupted")
            == "interrupted: the query was interrupted; its charge stands 1.0\n"
        )
        assert line_from(process, "then") == "then [(5,)]\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_statement_abandoned_before_its_start_never_runs():
    """Ctrl-C may come at any moment, also between handing a statement over and its start."""
    begun, interrupts = [], []
    task = _Task(lambda: begun.append(1))
    task.abandon(lambda: interrupts.append(1))
    task.run()
    assert not begun and not interrupts


def test_a_statement_that_has_not_reached_duckdb_yet_is_interrupted_again():
    asked = threading.Semaphore(0)

    def statement() -> None:
        assert asked.acquire(timeout=20) and asked.acquire(
            timeout=20
        )  # the first one found nothing to interrupt

    task = _Task(statement)
    thread = threading.Thread(target=task.run)
    thread.start()
    while not task._begun:
        time.sleep(0.001)
    task.abandon(asked.release)
    thread.join()


def test_an_interrupt_before_the_charge_costs_nothing(tmp_path, monkeypatch):
    session = privsql.connect(make(tmp_path / "x.duckdb", rows=50))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session._pipeline.engine, "check", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        session.query("SELECT COUNT(*) FROM visits", epsilon=1)
    assert not caught.value.args and session.budget.spent.epsilon == 0
    monkeypatch.undo()
    session.query("SELECT COUNT(*) FROM visits", epsilon=1)
    session.close()


# -- how long it takes ---------------------------------------------------------------------------------------
class Terminal:
    """A pseudo-terminal in the place of standard error, and what was written to it."""

    def __init__(self) -> None:
        self._screen, terminal = pty.openpty()
        self.stream = os.fdopen(terminal, "w")

    def shown(self) -> AbstractContextManager[object]:
        return redirect_stderr(self.stream)

    def read(self, pattern: str) -> str:
        """What is there once the pattern is."""
        text = ""
        while not re.search(pattern, text):
            ready, _, _ = select.select([self._screen], [], [], 60)
            assert ready, text
            text += os.read(self._screen, 1000).decode()
        return text

    def close(self) -> None:
        self.stream.close()
        os.close(self._screen)

    @property
    def empty(self) -> bool:
        return not select.select([self._screen], [], [], 0)[0]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_STEP", 0.01)
    with closing(Terminal()) as made:
        yield made


def test_a_long_query_shows_progress_and_clears_it(terminal):
    with terminal.shown(), progress.elapsed_time():
        terminal.read(r"\rquery running: \d+ s")
    assert re.fullmatch(r"(\rquery running: \d+ s)*\r +\r", terminal.read(r"\r +\r"))
    assert threading.active_count() == 1 or all(
        each.name != "privsql-progress" for each in threading.enumerate()
    )


def test_short_or_unattended_queries_show_no_progress(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    with terminal.shown(), progress.elapsed_time():
        pass
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "enabled", False)
    with terminal.shown(), progress.elapsed_time():
        time.sleep(0.02)
    monkeypatch.setattr(progress, "enabled", True)
    assert terminal.empty
    for stream in (None, open(os.devnull, "w", encoding="utf-8")):  # noqa: SIM115 -- closed below
        with redirect_stderr(stream), progress.elapsed_time():
            assert all(each.name != "privsql-progress" for each in threading.enumerate())
    stream.close()
    with redirect_stderr(stream), progress.elapsed_time():  # a closed stream is nobody's
        pass


def test_progress_is_shown_in_notebooks(monkeypatch):
    class Shell:
        kernel = object()

    class IPython:
        get_ipython = staticmethod(Shell)

    assert not progress._in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    assert progress._in_notebook()


def test_progress_continues_until_the_padding_ends(tmp_path, terminal, monkeypatch):
    """Else it would show when the query was really done."""
    shown = []
    sleep = time.sleep
    monkeypatch.setattr(
        "privsql.engines.padding.time.sleep",
        lambda seconds: (
            shown.append([each.name for each in threading.enumerate()]),
            sleep(min(seconds, 0.01)),
        ),
    )
    with terminal.shown(), privsql.connect(make(tmp_path / "x.duckdb", rows=50), time_quantum=0.1) as session:
        session.query("SELECT COUNT(*) FROM visits", epsilon=1)
    assert shown and all("privsql-progress" in each for each in shown)
