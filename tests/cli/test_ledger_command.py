"""The ledger on the command line: spending, looking, renewing, anchors; and real `privsql query` processes that are killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from privsql.budget.ledger_file.verify import verify
from privsql.cli import main

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= 40"
POLICY = """
[budget]
epsilon = 2.0
delta = 1e-6
per_query = 1.5
dataset = "clinic"
[budget.analysts]
ana = 1.75
"*" = { epsilon = 1.0, delta = 1e-7 }
[tables.visits.columns]
age = { range = [0, 120] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pd.DataFrame({"age": [index % 80 for index in range(400)]}).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "clinic.toml").write_text(POLICY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out if code == 0 else shown.err


def ask(epsilon: str, analyst: str, *more: str) -> list[str]:
    return ["query", "visits.csv", COUNT, "--epsilon", epsilon, "--policy", "clinic.toml", "--ledger", "clinic.ledger",
            "--analyst", analyst, "--fresh", *more]  # fmt: skip


def test_a_budget_over_many_runs(folder, capsys):
    assert main(ask("1.5", "ana")) == 0
    capsys.readouterr()
    for epsilon, analyst, code in (
        ("1.6", "ana", "budget-query"),
        ("0.5", "ana", "budget-analyst"),
        ("0.75", "ben", "budget-exhausted"),
    ):
        status, text = done(capsys, *ask(epsilon, analyst))
        assert status == 2
        assert f"[{code}]" in text
    status, text = done(capsys, "explain", *[each for each in ask("0.5", "ana")[1:] if each != "--fresh"])
    assert status == 0
    assert "0.25" in text  # of ana's share
    assert main(ask("0.5", "ben", "--format", "json")) == 0
    assert len(verify(folder / "clinic.ledger")) == 3


def test_showing_a_ledger(folder, capsys):
    assert main(ask("1.5", "ana")) == 0
    capsys.readouterr()
    status, text = done(capsys, "budget", "clinic.ledger", "--by", "analyst")
    assert status == 0
    assert "clinic.ledger: the ledger of clinic, replace-one neighbours, since 20" in text
    assert "private tables: visits (each row)" in text
    assert "answers: 1, each for at most epsilon 1.5" in text
    assert "epsilon  [######################........]  1.5 of 2 spent, 0.5 left" in text
    assert "delta    [..............................]  0 of 1e-06 spent, 1e-06 left" in text
    assert "ana            1      1.5  1.75  [##########################....]" in text
    status, text = done(capsys, "budget", "clinic.ledger", "--by", "day")
    assert "day (UTC)   answers  epsilon" in text
    assert "1      1.5  [##############################]" in text
    status, text = done(capsys, "budget", "clinic.ledger", "--by", "analyst", "--format", "json")
    found = json.loads(text)
    assert found["limit"] == {"epsilon": 2.0, "delta": 1e-6}
    assert found["remaining"]["epsilon"] == 0.5
    assert found["by_analyst"] == [
        {"analyst": "ana", "answers": 1, "epsilon": 1.5, "delta": 0.0, "cap": 1.75}
    ]
    assert (found["dataset"], found["neighbours"], found["per_query"]) == ("clinic", "replace-one", 1.5)


def test_showing_a_ledger_without_a_cap(folder, capsys):
    assert main(["query", "visits.csv", COUNT, "--epsilon", "1", "--ledger", "open.ledger"]) == 0
    capsys.readouterr()
    status, text = done(capsys, "budget", "open.ledger", "--by", "analyst")
    assert status == 0
    assert "epsilon  1 spent, no limit" in text
    assert "analyst        1        1  none" in text
    status, text = done(capsys, "budget", "open.ledger", "--format", "json")
    assert json.loads(text)["limit"]["epsilon"] is None


def test_renewing_a_budget(folder, capsys):
    assert main(ask("1.5", "ana")) == 0
    capsys.readouterr()
    renew = ["ledger", "renew", "clinic.ledger"]
    assert done(capsys, *renew, "--epsilon", "5", "--reason", "the board") == (
        0,
        "renewed, recorded as entry 3\n",
    )
    assert main([*renew, "--epsilon", "1", "--analyst", "ana", "--reason", "more"]) == 0
    assert main([*renew, "--epsilon", "1", "--delta", "1e-7", "--analyst", "ben", "--reason", "keys"]) == 0
    assert main([*renew, "--epsilon", "0.5", "--per-query", "--reason", "a large one"]) == 0
    assert main([*renew, "--delta", "1e-6", "--reason", "keys"]) == 0
    capsys.readouterr()
    assert main(ask("1", "ana")) == 0
    capsys.readouterr()
    _, text = done(capsys, "budget", "clinic.ledger")
    assert "2.5 of 7 spent, 4.5 left" in text
    assert "of 2e-06 spent" in text
    for line in (
        "epsilon +5: the board",
        "epsilon +1 for ana: more",
        "epsilon +1, delta +1e-07 for ben: keys",
        "epsilon +0.5 for one query: a large one",
    ):
        assert line in text
    for wrong, code in (
        (["--reason", "x"], "argument-epsilon"),
        (["--epsilon", "-1", "--reason", "x"], "argument-epsilon"),
        (["--epsilon", "nan", "--reason", "x"], "argument-epsilon"),
        (["--delta", "2", "--reason", "x"], "argument-delta"),
        (["--epsilon", "1", "--reason", ""], "argument-shape"),
        (["--delta", "1e-9", "--analyst", "ana", "--reason", "x"], "budget-caps"),  # ana's delta has no cap
    ):
        status, text = done(capsys, "ledger", "renew", "clinic.ledger", *wrong)
        assert (status, f"[{code}]" in text) == (2, True), text


def test_anchor_and_verify(folder, capsys):
    assert main(ask("0.5", "ana")) == 0
    capsys.readouterr()
    old = (folder / "clinic.ledger").read_bytes()
    assert main(ask("0.25", "ben")) == 0
    capsys.readouterr()
    _, anchor = done(capsys, "ledger", "anchor", "clinic.ledger")
    assert anchor.startswith("privsql-1:3:750000000:0:")
    assert main(ask("0.25", "ben")) == 0
    capsys.readouterr()
    status, text = done(capsys, "ledger", "verify", "clinic.ledger", "--anchor", anchor.strip())
    assert (status, text) == (
        0, "the ledger is valid: 4 entries, epsilon 1, delta 0 spent, and nothing was undone since the anchor\n",
    )  # fmt: skip
    (folder / "clinic.ledger").write_bytes(old)
    assert done(capsys, "ledger", "verify", "clinic.ledger")[0] == 0
    status, text = done(capsys, "ledger", "verify", "clinic.ledger", "--anchor", anchor.strip())
    assert status == 2
    assert "[budget-anchor]" in text


@pytest.mark.parametrize(
    "command",
    [
        ["budget"],
        ["ledger", "anchor"],
        ["ledger", "verify"],
        ["ledger", "renew", "--epsilon", "1", "--reason", "x"],
    ],
    ids=" ".join,
)
def test_files_that_are_not_ledgers_are_reported(folder, capsys, command):
    status, text = done(capsys, *command, "missing.ledger")
    assert status == 2
    assert "[budget-ledger]" in text
    status, text = done(capsys, *command, "visits.csv")
    assert status == 2
    assert "[budget-corrupt]" in text


@pytest.mark.slow
def test_killed_queries_count_as_failures(folder):
    """`privsql query` as people run it, from start to end, and the answer on standard output."""
    chance, shown, killed = random.Random(4), 0, 0
    (folder / "clinic.toml").write_text(
        POLICY.replace("2.0", "100.0").replace("1.75", "100.0"), encoding="utf-8"
    )
    for start in range(0, 24, 4):
        running = []
        for number in range(start, start + 4):
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE age >= {number}"
            arguments = ["query", "visits.csv", sql, *ask("0.5", "ana")[3:], "--format", "csv"]
            command = [sys.executable, "-m", "privsql", *arguments]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            running.append((process, sql, time.monotonic() + (chance.uniform(0.1, 3) if number else 60)))
        for process, sql, deadline in running:
            try:
                output, errors = process.communicate(timeout=max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                killed += 1
            if output:
                shown += 1
                assert sql in [row.question for row in verify(folder / "clinic.ledger")]
            assert process.returncode in (0, -9), errors
    assert shown >= 1
    rows = [row for row in verify(folder / "clinic.ledger") if row.kind == "charge"]
    assert len(rows) == len({row.question for row in rows}) >= shown
    assert killed >= 1
