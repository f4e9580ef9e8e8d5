"""Answers are kept under their charge, beside the ledger, before they are released: real files, real processes, real kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.answers import answer_file
from privsql.answers.answer_file import AnswerFile
from privsql.tables import NoisyTable

COLUMNS = {"age": {"range": [0, 99]}, "state": {"values": ["CA", "NY", "TX"]}, "income": {"range": "auto"}}
POLICY = {"tables": {"t": {"columns": COLUMNS}}, "budget": {"epsilon": 50, "delta": 1e-3}}
HISTOGRAM = "SELECT state, COUNT(*) AS n FROM t GROUP BY state"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i % 100 AS age, ['CA', 'NY', 'TX'][i % 3 + 1] AS state, 'city ' || (i % 4) AS city, "
            "i % 5000 + 0.5 AS income FROM range(20000) r(i)"
        )
    return path


def opened(
    data: Path, analyst: str = "ann", policy: object = POLICY, version: str | None = "2026-11"
) -> privsql.Session:
    return privsql.connect(
        data, policy, ledger=data.with_name("clinic.ledger"), analyst=analyst, version=version
    )


QUESTIONS = [
    (HISTOGRAM, {"epsilon": 1}),
    ("SELECT COUNT(*) FROM t WHERE age > 30", {"within": 20}),
    ("SELECT city, COUNT(*) FROM t GROUP BY city", {"epsilon": 1, "delta": 1e-6}),
    ("SELECT state FROM t GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", {"epsilon": 0.5}),
    ("SELECT state, AVG(age), MEDIAN(age), MAX(age) FROM t GROUP BY state", {"epsilon": 1}),
    ("SELECT AVG(income) FROM t", {"epsilon": 2}),
    (
        "SELECT state, COUNT(*) AS n, SUM(age) AS s FROM t GROUP BY state",
        {"epsilon": 1, "weights": {"n": 3.0, "s": 1.0}},
    ),
    ("SELECT state, COUNT(*) AS n FROM t GROUP BY ROLLUP (state)", {"epsilon": 1}),
    ("SELECT state, STDDEV(age) FROM t GROUP BY state", {"epsilon": 1, "nonnegative": True}),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_later_session_gets_the_same_answer_for_nothing(data, question):
    sql, arguments = question
    with opened(data) as session:
        first = session.query(sql, **arguments).fetchall()
        spent = session.budget.spent.epsilon
    with opened(data, "bob") as later:
        answer = later.query(sql.replace("FROM t", "FROM t AS u"), **arguments)
        assert answer.stored
        assert answer.fetchall() == first
        assert answer.receipt["charged"] == 0
        assert later.budget.spent.epsilon == spent


def test_a_derived_answer_is_free_in_a_later_session(data):
    with opened(data) as session:
        counts = dict(session.query(HISTOGRAM, epsilon=1).fetchall())
    with opened(data) as later:
        assert later.query("SELECT COUNT(*) FROM t WHERE state = 'CA'", epsilon=0.1).fetchall() == [
            (counts["CA"],)
        ]
        assert later.budget.spent.epsilon == 1


def test_cells_released_together_are_returned_together(data):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=0.4)
        shown = session.query(HISTOGRAM, epsilon=0.5)
        assert len(shown.receipt["from_answers"]) == 2
        session.query(HISTOGRAM, epsilon=0.6)
    with opened(data) as later:
        again = later.query(HISTOGRAM, epsilon=0.5)
        assert again.stored
        assert again.fetchall() == shown.fetchall()
        assert again.intervals().equals(shown.intervals())


def test_an_answer_under_another_policy_is_not_reused(data):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
    fewer = {**POLICY, "tables": {"t": {"columns": {**COLUMNS, "state": {"values": ["CA", "NY"]}}}}}
    with opened(data, policy=fewer) as later:
        assert not later.query(HISTOGRAM, epsilon=1).stored


def test_an_answer_of_another_version_is_not_reused(data):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
    with opened(data, version="2026-12") as later:
        assert not later.query(HISTOGRAM, epsilon=1).stored
        assert later.budget.spent.epsilon == 2
    with opened(data, policy={**POLICY, "version": "2026-12"}, version=None) as same:
        assert same.query(HISTOGRAM, epsilon=1).stored


@pytest.mark.parametrize("version", [None, "2026-11"])
@pytest.mark.parametrize("where", ["age >= 0", "age < 0"])
def test_reuse_does_not_reveal_whether_an_update_found_a_row(data, version, where):
    """DuckDB writes nothing when an UPDATE finds no row: what the file says of itself would tell, for nothing."""
    with opened(data, version=version) as session:
        session.query(HISTOGRAM, epsilon=1)
    with duckdb.connect(str(data)) as owner:
        owner.execute(f"UPDATE t SET age = 1 WHERE {where}")
    with opened(data, version=version) as later:
        said = str(later.explain(HISTOGRAM, epsilon=1))
        assert ("the answer is stored" in said) == (version is not None)


def test_a_declared_version_keeps_answers_about_frames_too(tmp_path):
    frame = pd.DataFrame({"age": range(100)})
    for stored in (False, True):
        with privsql.connect(
            frame, {"budget": {"epsilon": 9}}, ledger=tmp_path / "l", version="2026-11"
        ) as session:
            assert session.query("SELECT COUNT(*) FROM df", epsilon=1).stored == stored
    for wrong in ("", "a\nb", 5, "x" * 300):
        with pytest.raises(privsql.PrivsqlError) as caught:
            privsql.connect(frame, version=wrong)
        assert caught.value.code == "argument-version" and caught.value.suggestion


def test_a_parquet_file_has_a_version(tmp_path):
    path = tmp_path / "t.parquet"
    write = "COPY (SELECT i % 100 AS age FROM range({}) r(i)) TO '{}' (FORMAT parquet)"
    duckdb.execute(write.format(1000, path))
    policy = {"tables": {"t": {"columns": {"age": {"range": [0, 99]}}}}, "budget": {"epsilon": 9}}
    with privsql.connect(path, policy, ledger=tmp_path / "l") as session:
        first = session.query("SELECT COUNT(*) FROM t WHERE age > 5", epsilon=1).fetchall()
        assert session.query("SELECT COUNT(*) FROM t WHERE age > 5", epsilon=1).fetchall() == first
        path.unlink()
        duckdb.execute(write.format(900, path))
        assert not session.query("SELECT COUNT(*) FROM t WHERE age > 5", epsilon=1).stored


def test_answers_about_frames_are_not_stored_for_later_sessions(tmp_path, data):
    frame = duckdb.connect(str(data)).execute("SELECT age, state FROM t").df()
    policy = {"tables": {"df": {"columns": {"age": {"range": [0, 99]}}}}, "budget": {"epsilon": 9}}
    for _ in range(2):  # nobody can say whether a frame is the same as yesterday
        with privsql.connect(frame, policy, ledger=tmp_path / "l") as session:
            assert not session.query("SELECT COUNT(*) FROM df WHERE age > 5", epsilon=1).stored
            assert session.query("SELECT COUNT(*) FROM df WHERE age > 5", epsilon=1).stored
    assert not (tmp_path / "l.answers").exists()


CHILD = """
import os, signal, sys
import privsql, privsql.requests.pipeline as pipeline
from privsql.answers.answer_file import AnswerFile
moment = sys.argv[2]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "run":
    pipeline.add_noise = die
elif moment == "store":
    AnswerFile.keep = die
elif moment == "release":
    share = pipeline.StoredAnswers.share
    pipeline.StoredAnswers.share = lambda *found: (share(*found), die())
session = privsql.connect(sys.argv[1], {policy!r}, ledger=sys.argv[1].replace(".duckdb", ".ledger"), version="2026-11")
print(session.query({sql!r}, epsilon=1).fetchall())
"""


def command(data: Path, moment: str) -> list[str]:
    text = CHILD.replace("{policy!r}", repr(POLICY)).replace("{sql!r}", repr(HISTOGRAM))
    return [sys.executable, "-c", text, str(data), moment]


def ask(data: Path, moment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(data, moment), capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "cost"), [("run", 2), ("store", 2), ("release", 1)])
def test_a_kill_between_charge_and_answer_stores_no_answer(data, moment, cost):
    """Before it is stored, the charge is lost with its draw; afterwards the same draw comes again: never two at one price."""
    assert ask(data, moment).returncode == -signal.SIGKILL
    with opened(data) as session:
        assert session.budget.spent.epsilon == 1
        session.query(HISTOGRAM, epsilon=1)
        assert session.budget.spent.epsilon == cost
    first, second = (ask(data, "").stdout for _ in range(2))
    assert first == second
    assert first.startswith("[('CA'")


@pytest.mark.parametrize("damage", ["garbage", "other bytes", "removed", "another table"])
def test_a_damaged_answer_file_is_ignored(data, damage):
    path = data.with_name("clinic.ledger.answers")
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    match damage:
        case "garbage":
            for each in path.parent.glob("clinic.ledger.answers*"):
                each.unlink()
            path.write_bytes(os.urandom(5000))
        case "removed":
            path.unlink()
        case "other bytes":
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE answers_1 SET noisy = zeroblob(100)")
        case "another table":
            with sqlite3.connect(path) as connection:
                connection.execute("DROP TABLE answers_1")
                connection.execute("CREATE TABLE answers_1 (number TEXT)")
    broken = damage in ("garbage", "another table")
    with opened(data) as later:
        if broken:
            with pytest.warns(UserWarning, match="could not be stored"):
                assert not later.query(HISTOGRAM, epsilon=1).stored
        else:
            assert not later.query(HISTOGRAM, epsilon=1).stored
        assert later.budget.spent.epsilon == 2


def test_answers_of_another_ledger_are_not_reused(data):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
    for each in data.parent.glob("clinic.ledger*"):
        if "answers" not in each.name:
            each.unlink()
    with opened(data) as later:
        assert not later.query("SELECT COUNT(*) FROM t", epsilon=1).stored
        assert not later.query(HISTOGRAM, epsilon=1).stored


@pytest.mark.slow
def test_many_processes_share_their_answers(data):
    found = [subprocess.Popen(command(data, ""), stdout=subprocess.PIPE, text=True) for _ in range(4)]
    texts = [each.communicate()[0] for each in found]
    assert all(text.startswith("[('CA'") for text in texts)
    with opened(data) as session:
        spent = session.budget.spent.epsilon
        assert spent == len(set(texts))
        assert session.query(HISTOGRAM, epsilon=1).stored


def rewritten(data: Path, change: dict[str, object]) -> None:
    """As whoever may write to the file could: with a digest that fits."""
    with sqlite3.connect(data.with_name("clinic.ledger.answers")) as connection:
        names = answer_file._NAMES.split(", ")
        row = (
            dict(
                zip(
                    names,
                    connection.execute(f"SELECT {answer_file._NAMES} FROM answers_1").fetchone(),
                    strict=True,
                )
            )
            | change
        )
        row["digest"] = answer_file.digest_of([row[name] for name in names[:-1]])
        settings = ", ".join(f"{name} = ?" for name in names)
        connection.execute(f"UPDATE answers_1 SET {settings}", [row[name] for name in names])


CELLS = np.arange(4)
FORGED = [
    {"asked": text}
    for text in ("[]", "5", "[" * 100_000, '{"sql": "SELECT 1", "epsilon": "1/0"}', '{"sql": 5, "epsilon": "1"}',
                 '{"sql": "DROP TABLE t", "epsilon": "1"}', '{"sql": "SELECT 1", "epsilon": "1", "dialect": []}')
] + [
    {"noisy": blob}
    for blob in (b"PK\x03\x04" + bytes(50), b"\x93NUMPY", b"", answer_file.packed(NoisyTable(CELLS, {})),
                 *(answer_file.packed(NoisyTable(CELLS, {"count_1": values}))
                   for values in (CELLS[:2], np.arange(9), np.ones((4, 4), dtype=np.int64), CELLS / 3, np.array(list("abcd")))))
]  # fmt: skip


@pytest.mark.parametrize("change", FORGED)
def test_a_forged_answer_is_ignored(data, change):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
    rewritten(data, change)
    with opened(data) as later:
        assert not later.explain("SELECT COUNT(*) FROM t", epsilon=0.1).free
        assert not later.query(HISTOGRAM, epsilon=1).stored


def test_one_damaged_answer_does_not_hide_others(data):
    with opened(data) as session:
        session.query(HISTOGRAM, epsilon=1)
        session.query("SELECT COUNT(*) FROM t WHERE age > 30", epsilon=1)
    with sqlite3.connect(data.with_name("clinic.ledger.answers")) as connection:
        connection.execute("UPDATE answers_1 SET beside = 'x' WHERE question = ?", (HISTOGRAM,))
    with opened(data) as later:
        assert later.query("SELECT COUNT(*) FROM t WHERE age > 30", epsilon=1).stored


def test_the_first_charge_may_be_stored_last(data, monkeypatch):
    """The answers of others are found in the order in which they are written."""
    first, second, third, late = opened(data), opened(data), opened(data), []
    with monkeypatch.context() as patch:
        patch.setattr(AnswerFile, "keep", lambda self, kept: late.append(kept))
        first.query(HISTOGRAM, epsilon=1)
    second.query("SELECT COUNT(*) FROM t WHERE age > 30", epsilon=1)
    assert third.query("SELECT COUNT(*) FROM t WHERE age > 30", epsilon=1).stored
    AnswerFile(
        data.with_name("clinic.ledger"), first._pipeline.ledger.charged, first._pipeline._plan_again
    ).keep(late[0])
    assert third.query(HISTOGRAM, epsilon=1).stored
    for each in (first, second, third):
        each.close()


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(np.float32(1), 0), (Fraction(1, 3), Fraction(1, 10**6)), (1, np.float32(1e-6))]
)
def test_all_number_types_are_stored_exactly(data, epsilon, delta):
    sql = "SELECT city, COUNT(*) FROM t GROUP BY city" if delta else HISTOGRAM
    with opened(data) as session:
        first = session.query(sql, epsilon=epsilon, delta=delta).fetchall()
    with opened(data) as later:
        assert later.query(sql, epsilon=epsilon, delta=delta).fetchall() == first
