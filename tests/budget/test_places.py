"""A ledger is one: not under two names of its file, nor mounted without its log, nor copied by a fork, nor bound to a clock."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privsql
from privsql.budget.amount import Loss
from privsql.budget.ledger_file import create, file_ledger, mounts
from privsql.budget.ledger_file.file_ledger import FileLedger, open_ledger, renew
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.errors import BudgetError
from tests.budget.ledgers import VISITS, charge, policy, running
from tests.budget.refusals import code_of, refusal

SAME = {**os.environ, "PYTHONPATH": str(Path(privsql.__file__).parents[1])}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(path: Path) -> FileLedger:
    return open_ledger(path, policy(1), VISITS)


# -- names of its file -----------------------------------------------------------------------------------------
def test_a_ledger_with_two_names_is_refused(path: Path, ledger: FileLedger, tmp_path: Path) -> None:
    """Each name has a log of its own: two processes spent 1.3 of 1 so, and the ledger said 0.7."""
    charge(ledger, 0.1)
    other = tmp_path / "other.ledger"
    os.link(path, other)
    assert refusal(open_ledger, other, policy(1), VISITS).code == "budget-ledger"
    assert refusal(renew, other, Loss(1), "a new year").code == "budget-ledger"
    with pytest.raises(BudgetError, match="several names"):
        charge(ledger, 0.1)
    reader = open_reader(path)
    assert reader.budget.spent.epsilon == 0.1
    reader.close()
    other.unlink()
    charge(ledger, 0.1)
    assert ledger.budget.spent.epsilon == 0.2


def test_a_symbolic_link_is_the_same_ledger(path: Path, ledger: FileLedger, tmp_path: Path) -> None:
    other = tmp_path / "other.ledger"
    other.symlink_to(path)
    second = open_ledger(other, policy(1), VISITS)
    charge(ledger, 0.6)
    assert code_of(second, 0.6) == "budget-exhausted"
    assert not Path(f"{other}-wal").exists()


@pytest.mark.parametrize("name", ["clinic.ledger", "[a-c]*.ledger"])
def test_a_leftover_temporary_name_is_removed(tmp_path: Path, name: str, monkeypatch) -> None:
    """Killed between the two: the ledger is whole, and has both its names."""
    path = tmp_path / name
    with monkeypatch.context() as patch:
        patch.setattr(create.Path, "unlink", lambda *_: None)
        create.create(path, *_declared())
    assert path.stat().st_nlink == 2
    charge(open_ledger(path, policy(1), VISITS), 1)
    assert path.stat().st_nlink == 1
    assert not [each for each in tmp_path.iterdir() if each.name.endswith(".new")]


def _declared():
    return file_ledger.dataset_of(policy(1), VISITS), file_ledger.policy_caps(policy(1))


def test_a_file_mounted_without_its_folder_is_refused(path: Path, ledger: FileLedger, monkeypatch) -> None:
    """As containers do: the log lies in another folder for each."""
    mounted = f"1 1 8:1 /ledger {path.resolve()} rw - ext4 /dev/sda1 rw"
    monkeypatch.setattr(mounts, "_mounts", lambda: mounted)
    assert refusal(open_ledger, path, policy(1), VISITS).code == "budget-ledger"
    assert refusal(renew, path, Loss(1), "a new year").code == "budget-ledger"
    monkeypatch.setattr(
        mounts, "_mounts", lambda: mounted.replace(str(path.resolve()), str(path.parent.resolve()))
    )
    charge(open_ledger(path, policy(1), VISITS), 1)


# -- forks -----------------------------------------------------------------------------------------------------
FORK = """if True:
    import os, sys
    import pandas as pd
    import privsql
    path = sys.argv[1] or None
    session = privsql.connect(pd.DataFrame({"x": range(10)}), {"budget": {"epsilon": 1}}, ledger=path)
    def spends():
        try:
            session.query("SELECT COUNT(*) FROM df", epsilon=0.6)
        except privsql.BudgetError as error:
            return error.code
        return "spent"
    read, write = os.pipe()
    if not os.fork():
        os.write(write, spends().encode())
        os._exit(0)
    os.close(write)
    print(os.read(read, 100).decode(), spends())
    """


def forked(ledger: str) -> list[str]:
    """What becomes of a query for 0.6 of 1 in a fork, and then of one in its parent."""
    command = [sys.executable, "-c", FORK, ledger]
    return subprocess.run(command, env=SAME, capture_output=True, text=True, check=True).stdout.split()


def test_a_fork_cannot_spend_a_budget_in_memory() -> None:
    """Each process has a copy of it: both spent all there was."""
    child, parent = forked("")
    assert child == "budget-fork"
    assert parent == "spent"


def test_a_fork_shares_a_budget_in_a_file(path: Path) -> None:
    assert forked(str(path)) == ["spent", "budget-exhausted"]


# -- clocks ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seconds", [-60, 60])
def test_nobody_waits_for_the_clock(path: Path, seconds: int, monkeypatch) -> None:
    """What was killed before the clock was set back would seem to run until it has caught up."""
    killed, late = (open_ledger(path, policy(9, max_failures=1), VISITS) for _ in range(2))
    then = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    with monkeypatch.context() as patch:
        patch.setattr(file_ledger, "now", lambda: then)
        unfinished = running(killed, 1)
        unfinished.__enter__()
    late._store.patience = 0.1
    start = time.monotonic()
    assert code_of(late, 1) == "budget-failures"
    assert time.monotonic() - start < 30
