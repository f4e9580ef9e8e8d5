"""Sessions under one ledger see each other's stored answers: not before the quantum of the query that made them is over."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pandas as pd
import pytest

import privsql
from privsql.engines import padding

TOTAL = "SELECT COUNT(*) AS n FROM df WHERE x < 5"


def opened(folder: Path, quantum: float | None) -> privsql.Session:
    frame = pd.DataFrame({"x": range(10)})
    return privsql.connect(frame, ledger=folder / "ledger", version="2026-11", time_quantum=quantum)


def test_an_answer_is_not_stored_while_its_time_is_padded(tmp_path, monkeypatch):
    """A free EXPLAIN in another session would else tell when the query was really done."""
    seen = []
    with opened(tmp_path, 0.01) as asking, opened(tmp_path, None) as looking:
        monkeypatch.setattr(
            padding, "_sleep_until", lambda end: seen.append(looking.explain(TOTAL, epsilon=1).stored)
        )
        asking.query(TOTAL, epsilon=1)
        assert seen == [False]
        assert looking.explain(TOTAL, epsilon=1).stored


def test_an_answer_with_interrupted_padding_is_still_stored(tmp_path, monkeypatch):
    """It is paid for."""

    def interrupted(end: float) -> None:
        raise KeyboardInterrupt

    with opened(tmp_path, 0.01) as asking, opened(tmp_path, None) as looking:
        monkeypatch.setattr(padding, "_sleep_until", interrupted)
        with pytest.raises(KeyboardInterrupt, match="its charge stands"):
            asking.query(TOTAL, epsilon=1)
        assert looking.explain(TOTAL, epsilon=1).stored


@pytest.mark.slow
def test_another_session_sees_padded_times_only(tmp_path):
    with opened(tmp_path, 2.0) as asking, opened(tmp_path, None) as looking:
        looking.explain(TOTAL, epsilon=1)
        start = time.monotonic()
        thread = threading.Thread(target=asking.query, args=(TOTAL, 1))
        thread.start()
        while not looking.explain(TOTAL, epsilon=1).stored:
            time.sleep(0.05)
        assert time.monotonic() - start >= 2.0
        thread.join()
