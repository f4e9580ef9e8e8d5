"""connect(time_quantum=...): the time of a query shows how many quanta it took, and nothing else. Real
time.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

import privsql
from privsql.engines import padding

QUANTUM = 0.6
QUESTION = f"SELECT COUNT(*) AS n FROM people WHERE levenshtein(long, '{'ab' * 50}') > 5"  # some 20 ms a row


def people(file: Path, rows: int) -> Path:
    """Of which so many are dear to ask about."""
    with duckdb.connect(str(file)) as owner:
        dear = f"CASE WHEN i < {rows} THEN repeat('ba', 100000) || i END"
        owner.execute(
            f"CREATE TABLE people AS SELECT {dear} AS long, CAST(i AS INTEGER) AS age FROM range(50) t(i)"
        )
    return file


def seconds(session: privsql.Session, sql: str = QUESTION) -> float:
    start = time.monotonic()
    session.query(sql, epsilon=1, fresh=True)
    return time.monotonic() - start


@pytest.mark.slow
def test_slow_and_fast_databases_take_equal_time(tmp_path):
    cheap, dear = people(tmp_path / "cheap.duckdb", 0), people(tmp_path / "dear.duckdb", 5)
    with privsql.connect(cheap) as one, privsql.connect(dear) as other:
        for each in (one, other):
            each.query("SELECT COUNT(*) FROM people", epsilon=1)  # whatever is slow the first time
        plain = [min(seconds(each) for _ in range(2)) for each in (one, other)]
        runs = [min(_run(each) for _ in range(tries)) for each, tries in ((one, 5), (other, 1))]
    assert runs[1] > 10 * runs[0], runs
    assert plain[1] > 1.5 * plain[0], plain
    with (
        privsql.connect(cheap, time_quantum=QUANTUM) as one,
        privsql.connect(dear, time_quantum=QUANTUM) as other,
    ):
        for each in (one, other):
            each.explain(QUESTION, epsilon=1)
            took: list[float] = []
            while len(took) < 5 and min(took, default=9) >= 1.6:  # a busy machine may need a second quantum
                took.append(seconds(each) / QUANTUM)
            assert 1 <= min(took) < 1.6, took


def _run(session: privsql.Session) -> float:
    plan = session.explain(QUESTION, epsilon=1)
    start = time.monotonic()
    session._pipeline.engine.run(plan.sql, plan.keys)
    return time.monotonic() - start


def test_errors_are_padded_to_whole_quanta(tmp_path, monkeypatch):
    """By a clock of our own: on a busy machine real ones show more quanta."""
    looks, ends = [], []

    def look() -> float:
        looks.append(0.4 * len(looks) ** 2)
        return looks[-1]

    with privsql.connect(people(tmp_path / "dear.duckdb", 5), deadline=600.0, time_quantum=1.5) as session:
        monkeypatch.setattr(padding, "time", SimpleNamespace(monotonic=look))
        monkeypatch.setattr(padding, "_sleep_until", ends.append)
        session.query("SELECT COUNT(*) FROM people", epsilon=1)
        session._pipeline.engine._engine._deadline = 1e-9
        with pytest.raises(privsql.EngineError):
            session.query(QUESTION, epsilon=1)
        assert session.budget.spent.epsilon == 2
    starts = looks[::2]
    assert [(end - start) / 1.5 for start, end in zip(starts, ends, strict=True)] == pytest.approx([1, 2])


def test_other_calls_wait_for_the_whole_quantum(tmp_path):
    """Otherwise a free EXPLAIN beside a query would show when the query was done."""
    with privsql.connect(people(tmp_path / "cheap.duckdb", 1), time_quantum=QUANTUM) as session:
        session.explain("SELECT COUNT(*) FROM people WHERE age > 3", epsilon=1)
        engine, start, waits = session._pipeline.engine, time.monotonic(), []
        asking = threading.Thread(target=seconds, args=(session,))
        asking.start()
        time.sleep(QUANTUM / 4)
        uses = (
            engine.schema,
            engine.version,
            lambda: engine.read_public("SELECT 1"),
            lambda: engine.run("SELECT 1 AS n", []),
        )
        threads = [
            threading.Thread(target=lambda use=use: (use(), waits.append(time.monotonic() - start)))
            for use in uses
        ]
        for each in threads:
            each.start()
        for each in [asking, *threads]:
            each.join()
    assert min(waits) >= QUANTUM and len(waits) == 4


def test_a_refusal_is_not_padded(tmp_path):
    """It is settled before any row is read."""
    with privsql.connect(
        people(tmp_path / "cheap.duckdb", 1), {"budget": {"epsilon": 1}}, time_quantum=60
    ) as session:
        start = time.monotonic()
        with pytest.raises(privsql.Refused):
            session.query("SELECT long FROM people", epsilon=1)
        with pytest.raises(privsql.BudgetError):
            session.query("SELECT COUNT(*) FROM people", epsilon=2)
        assert time.monotonic() - start < 30


class Timeout(BaseException):
    """As gevent and others raise from a signal's handler."""


KEYS = "SELECT long, COUNT(*) AS n FROM people GROUP BY long"
TOTAL = "SELECT COUNT(*) AS n FROM people"


@pytest.mark.parametrize("deadline", [None, pytest.param(600.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("outcome", ["answered", "failed", "interrupted", "stopped", "failed later"])
def test_nothing_exact_is_left_when_the_padding_begins(tmp_path, monkeypatch, deadline, outcome):
    """To free one person's long key takes time: it is spent before the padding, not after it. By reference counts alone."""
    exact, alive = [], []
    raised = {"failed": ValueError, "interrupted": KeyboardInterrupt, "stopped": Timeout}
    with privsql.connect(people(tmp_path / "x.duckdb", 5), {"budget": {"epsilon": 9, "delta": 0.1}},
                         time_quantum=0.01, deadline=deadline) as session:  # fmt: skip
        engine = session._pipeline.engine._engine
        run, kept = engine.run, session._pipeline._stored.keep

        def watched(sql, keys):
            table = run(sql, keys)
            arrays = [*table.exact_keys.values(), *table.exact_columns.values()]
            exact.extend(map(weakref.ref, [table, *arrays]))
            if outcome in raised:
                raise raised[outcome]
            return table

        def keep(*arguments, **options):
            if outcome == "failed later":
                raise ValueError
            return kept(*arguments, **options)

        monkeypatch.setattr(engine, "run", watched)
        monkeypatch.setattr(session._pipeline._stored, "keep", keep)
        monkeypatch.setattr(
            "privsql.engines.padding._sleep_until", lambda end: alive.append([each() for each in exact])
        )
        expected = {"answered": None, "interrupted": KeyboardInterrupt, "stopped": Timeout}.get(
            outcome, privsql.EngineError
        )
        gc.disable()
        try:
            for sql in (TOTAL, KEYS):
                with contextlib.nullcontext() if expected is None else pytest.raises(expected) as caught:
                    session.query(sql, epsilon=1, delta=0.001 if sql == KEYS else 0, fresh=True)
        finally:
            gc.enable()
    assert len(exact) >= 4 and len(alive) == 2
    assert not any(each is not None for seen in alive for each in seen)
    if outcome == "interrupted":
        assert "its charge stands" in str(caught.value)


@pytest.mark.parametrize("deadline", [None, pytest.param(600.0, marks=pytest.mark.slow)])
def test_nothing_exact_is_left_when_the_engine_fails(tmp_path, monkeypatch, deadline):
    """An error holds the frames that it came through, and they what was read."""
    exact, alive = [], []

    def fails(columns, keys):
        exact.extend(map(weakref.ref, columns.values()))
        raise ValueError

    name = "privsql.engines.duckdb.engine" if deadline is None else "privsql.engines.worker"
    monkeypatch.setattr(f"{name}.exact_table", fails)
    monkeypatch.setattr(
        "privsql.engines.padding._sleep_until", lambda end: alive.append([each() for each in exact])
    )
    with privsql.connect(people(tmp_path / "x.duckdb", 5), time_quantum=0.01, deadline=deadline) as session:
        gc.disable()
        try:
            with pytest.raises(privsql.EngineError):
                session.query(TOTAL, epsilon=1)
        finally:
            gc.enable()
    assert exact and alive == [[None] * len(exact)]


def test_a_second_ctrl_c_keeps_no_exact_data(tmp_path, monkeypatch):
    """It comes while the first one, or a failure, is looked at."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with privsql.connect(people(tmp_path / "x.duckdb", 5)) as session:
        monkeypatch.setattr("privsql.requests.pipeline.finish", lambda *_: 1 / 0)
        monkeypatch.setattr("privsql.requests.pipeline.EngineError", interrupted)
        with pytest.raises(KeyboardInterrupt, match="its charge stands") as caught:
            session.query(TOTAL, epsilon=1)
    assert caught.value.__context__ is None
    functions = [each.name for each in caught.traceback]
    assert functions[-1] == "after_charge" and "_outcome" not in functions


@pytest.mark.parametrize("signalled", [KeyboardInterrupt, SystemExit, Timeout])
def test_no_signal_ends_the_padding(monkeypatch, signalled):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 1:
            raise signalled

    clock = iter([0.0, 1.0, 6.0])
    monkeypatch.setattr("privsql.engines.padding.time.sleep", sleep)
    monkeypatch.setattr("privsql.engines.padding.time.monotonic", lambda: next(clock))
    with pytest.raises(signalled):
        padding._sleep_until(5.0)
    assert slept == [5.0, 4.0]
