"""The ledger in trouble: killed writers, full disks, damaged files, old copies. It holds, or reports the
fault.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privsql
from privsql import BudgetError
from privsql.budget.caps import Loss
from privsql.budget.ledger_file import mounts
from privsql.budget.ledger_file.file_ledger import FileLedger, open_ledger, renew
from privsql.budget.ledger_file.format import INSERT, SELECT, Row
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.budget.ledger_file.store import Store
from privsql.budget.ledger_file.verify import anchor_of, read_anchor, replay, verify
from tests.budget.ledgers import VISITS, FailingStore, charge, copy, opened, policy
from tests.budget.refusals import refusal

ROOT = Path(__file__).resolve().parents[2]
SAME = {
    **os.environ,
    "PYTHONPATH": f"{Path(privsql.__file__).parents[1]}{os.pathsep}{ROOT}",
}  # the package under test


def run(*arguments: object, timeout: float = 900) -> dict[str, Any]:
    """A harness in a process of its own; it fails where anything is wrong, and says what it did."""
    command = [sys.executable, "-W", "error", "-m", *map(str, arguments)]
    done = subprocess.run(
        command, env=SAME, cwd="/", capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


# -- processes, threads, kills ---------------------------------------------------------------------------------
def test_concurrent_writers_survive_a_few_kills():
    found = run("tests.budget.kills", "--kills", 16, "--seed", 3)
    assert found["killed"] >= 16
    assert found["charged"] >= found["released"] > 0


@pytest.mark.slow
def test_concurrent_writers_survive_two_thousand_kills():
    found = run("tests.budget.kills", "--kills", 2000)
    assert found["killed"] >= 2000
    assert found["full"] >= 1  # some ledgers were spent to their end
    assert found["charged"] >= found["released"] > 1000


@pytest.mark.slow
def test_forks_while_the_ledger_is_in_use(tmp_path):
    found = run("tests.budget.faults", "fork", tmp_path)
    assert found["charged"] >= 128


def test_many_objects_in_one_process(path):
    ledgers = [open_ledger(path, policy(1), VISITS) for _ in range(4)]

    def spend(each: FileLedger) -> None:
        for _ in range(20):
            try:
                charge(each, 0.02)
            except BudgetError as error:
                assert error.code == "budget-exhausted"  # noqa: PT017

    threads = [threading.Thread(target=spend, args=(each,)) for each in ledgers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert ledgers[0].budget.remaining.epsilon == 0
    for each in ledgers:
        each.close()
    assert len(verify(path)) == 51


def test_concurrent_creation_makes_one_ledger(path):
    made, gate = [], threading.Barrier(8)

    def make() -> None:
        gate.wait()
        made.append(open_ledger(path, policy(1), VISITS))
        charge(made[-1], 0.1)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in made:
        each.close()
    assert len(verify(path)) == 9
    assert [each.name for each in path.parent.iterdir() if each.name.endswith(".new")] == []


# -- faults ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_file_size_limit_loses_no_charge(tmp_path):
    found = run("tests.budget.faults", "size", tmp_path, 12_000)
    assert found["budget-write"] >= 5
    assert found["none"] >= 5


@pytest.mark.slow
def test_a_file_size_limit_at_every_write_loses_no_charge(tmp_path):
    found = run("tests.budget.faults", "size", tmp_path, 1024)
    assert found["budget-write"] > 100
    assert set(found) <= {"budget-write", "budget-ledger", "none", "left behind"}
    assert found["left behind"] == 0


@pytest.mark.slow
def test_a_full_disk_loses_no_charge(tmp_path):
    mount = f"mount -t tmpfs -o size=400k none {tmp_path} && {sys.executable} -m tests.budget.faults full {tmp_path}"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command[:4], "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no right to mount a small file system here")
    done = subprocess.run(
        command, env=SAME, cwd="/", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["budget-write"] == 50


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (sqlite3.SQLITE_FULL, "budget-write"),
        (sqlite3.SQLITE_IOERR_FSYNC, "budget-write"),
        (sqlite3.SQLITE_READONLY, "budget-write"),
        (sqlite3.SQLITE_NOMEM, "budget-write"),
        (sqlite3.SQLITE_CANTOPEN, "budget-ledger"),
        (sqlite3.SQLITE_CORRUPT, "budget-corrupt"),
    ],
)
def test_a_failure_at_every_step_of_a_charge(path, error, code):
    failing = FailingStore(path)
    ledger = opened(failing, policy(100, max_failures=10**6))
    charge(ledger, 0.01)
    step, noted = 0, 0
    while True:
        step += 1
        before = len(ledger.entries())
        failing.steps, failing.fails_at, failing.error = 0, step, error
        try:
            with warnings.catch_warnings(record=True, action="always") as said:
                charge(ledger, 0.01)
            noted += len(
                said
            )  # its charge stands, and its end could not be written: that is no reason to take it back
        except BudgetError as caught:
            assert caught.code == code  # noqa: PT017
            failing.fails_at = 0
            after_commit = len(ledger.entries()) - before
            assert after_commit in (0, 1)  # 1: the disk has it, and the analyst has no answer
        else:
            failing.fails_at = 0
            if failing.steps < step:
                break  # all steps of a charge were tried
    assert step > 12
    assert noted >= 3
    assert (
        ledger.failures("ana").unfinished >= noted - 1
    )  # one is noted on the disk although SQLite said that it failed
    ledger.close()
    verify(path)


def test_a_ledger_that_stays_busy(path):
    other = Store(path)
    opened(other, policy(1))
    ledger = opened(Store(path, patience=0.05), policy(1))
    with other.writing():
        caught = refusal(charge, ledger, 0.5)
    assert caught.code == "budget-busy"
    assert "nothing was charged" in str(caught)
    charge(ledger, 0.5)
    ledger.close()
    other.close()


def test_an_interrupt_during_a_charge_is_safe(path):
    class Interrupted(FailingStore):
        def step(self, name: str) -> None:
            if self.fails_at and name.startswith("INSERT"):
                raise KeyboardInterrupt

    interrupted = Interrupted(path)
    ledger = opened(interrupted, policy(1))
    interrupted.fails_at = 1
    with pytest.raises(KeyboardInterrupt):
        charge(ledger, 0.5)
    interrupted.fails_at = 0
    assert ledger.entries() == []
    charge(ledger, 0.5)
    ledger.close()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 5000, b"hello", os.urandom(9000)])
def test_files_that_are_not_ledgers_are_refused(path, content):
    path.write_bytes(content)
    for call in (
        lambda: open_ledger(path, policy(1), VISITS),
        lambda: open_reader(path).rows(),
        lambda: verify(path),
    ):
        assert refusal(call).code == "budget-corrupt"
    assert path.read_bytes() == content


def test_invalid_ledger_locations_are_refused(tmp_path):
    assert refusal(open_ledger, tmp_path / "no" / "folder.ledger", policy(1), VISITS).code == "budget-ledger"
    assert refusal(open_ledger, tmp_path, policy(1), VISITS).code == "budget-ledger"
    missing = open_reader(tmp_path / "missing.ledger")
    assert refusal(lambda: missing.budget).code == "budget-ledger"
    assert not (tmp_path / "missing.ledger").exists()
    for bad in (5, "", "a\0b"):
        assert refusal(open_ledger, bad, policy(1), VISITS).code == "argument-shape"


def test_an_orphaned_log_is_not_replayed_into_a_new_ledger(path, ledger):
    charge(ledger, 1)
    copy(path, path.with_name("kept"))
    ledger.close()
    path.unlink()
    path.with_name("kept-wal").rename(f"{path}-wal")
    assert refusal(open_ledger, path, policy(10), VISITS).code == "budget-ledger"


def test_flipped_bits_are_detected_or_harmless(path, ledger):
    """Whatever is flipped: charges that are accepted go on from the right sums, and nothing but BudgetError is raised."""
    for number in range(12):
        charge(ledger, 0.1, question=f"SELECT {number}")
    ledger.close()
    whole, chance, refused = path.read_bytes(), random.Random(5), 0
    used = [place for place in range(len(whole)) if whole[place]]
    for trial in range(120):
        flipped = bytearray(whole)
        place = chance.choice(used)
        flipped[place] ^= 1 << chance.randrange(8)
        other = path.with_name(f"{trial}.ledger")
        other.write_bytes(flipped)
        try:
            again = open_ledger(other, policy(10, delta=1e-3), VISITS)
            charge(again, 0.1)
            assert again.budget.spent.epsilon == pytest.approx(1.3)
            again.close()
            verify(other)
        except BudgetError:
            refused += 1
    assert refused > 60


def test_read_only_users_can_look_but_not_spend():
    folder = Path("/tmp") / f"privsql-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        path = folder / "a.ledger"
        ledger = open_ledger(path, policy(1), VISITS)
        charge(ledger, 0.25)
        ledger.close()
        path.chmod(0o444)
        folder.chmod(0o555)
        code = """if True:
            import os, sys
            from tests.budget.test_ledger_faults import *
            path = sys.argv[1]
            if os.geteuid() == 0:  # root may do anything
                os.setgroups([]); os.setgid(65534); os.setuid(65534)
            assert open_reader(path).budget.spent.epsilon == 0.25
            assert len(verify(path)) == 2
            try:
                charge(open_ledger(path, policy(1), VISITS), 0.25)
            except BudgetError as error:
                print(error.code)
            """
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, env=SAME, cwd="/", capture_output=True, text=True, check=False)
        assert done.stdout.strip() in ("budget-write", "budget-ledger"), done.stderr
        assert open_reader(path).budget.spent.epsilon == 0.25
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_reader_has_no_way_to_spend(path, ledger):
    charge(ledger, 1)
    reader = open_reader(path)
    assert not hasattr(reader, "charge")
    with pytest.raises(BudgetError) as caught, reader._store.writing():
        reader._store.execute("DELETE FROM entries")
    assert caught.value.code == "budget-write"
    assert reader.budget.spent.epsilon == 1
    reader.close()


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw - nfs4 server:/home rw
31 30 0:31 / /home/ana/my\\040disk rw - ext4 /dev/sdb1 rw
32 22 0:32 / /mnt/share rw - cifs //server/share rw
33 22 0:33 / /data rw - ext4 /dev/sdc1 rw
34 33 0:34 / /data rw - fuse.sshfs me@server:/ rw
nonsense
"""


def test_network_file_systems_are_refused(path, monkeypatch):
    kinds = {
        "/srv/a": "ext4",
        "/home/a": "nfs4",
        "/homes/a": "ext4",
        "/home/ana/my disk/a": "ext4",
        "/data/a": "fuse.sshfs",
    }
    assert {place: mounts.file_system(Path(place), MOUNTS) for place in kinds} == kinds
    assert mounts.file_system(Path("/a"), "") is None
    monkeypatch.setattr(mounts, "_mounts", lambda: f"1 1 0:1 / {path.parent.resolve()} rw - nfs4 server:/ rw")
    caught = refusal(open_ledger, path, policy(1), VISITS)
    assert caught.code == "budget-network"
    assert not path.exists()


def test_renewal_over_a_network_is_refused(path, ledger, monkeypatch):
    monkeypatch.setattr(mounts, "_mounts", lambda: f"1 1 0:1 / {path.parent.resolve()} rw - nfs4 server:/ rw")
    assert refusal(renew, path, Loss(1), "a new year").code == "budget-network"
    assert [row.kind for row in ledger.rows()] == ["open"]


# -- tampering, anchors ----------------------------------------------------------------------------------------
def tampered(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for each in statements:
            connection.execute(each)
    finally:
        connection.close()


def test_triggers_refuse_changes_that_no_ledger_makes(path, ledger):
    charge(ledger, 9)
    last = ledger.rows()[-1]
    ledger.close()
    fields = last.__dict__
    after = {"number": 3, "previous": last.hash, "hash": "1" * 64}
    forged = [
        {**fields, **after, "epsilon": 2 * 10**9, "total_epsilon": 11 * 10**9},  # over the cap
        {**fields, **after, "epsilon": 10**8, "total_epsilon": 9 * 10**9},  # a sum that does not grow
        {
            **fields,
            **after,
            "epsilon": 10**8,
            "total_epsilon": 9 * 10**9 + 10**8,
            "cap_epsilon": 99 * 10**9,
        },  # a cap that does
        {**fields, **after, "epsilon": 0.5, "total_epsilon": 9 * 10**9},
        {**fields, **after, "epsilon": -(10**9), "total_epsilon": 8 * 10**9},  # a refund
        {**fields, **after, "number": 4, "epsilon": 1, "total_epsilon": 9 * 10**9 + 1},
        {**fields, **after, "previous": "0" * 64, "epsilon": 1, "total_epsilon": 9 * 10**9 + 1},
    ]
    connection = sqlite3.connect(path, isolation_level=None)
    for each in forged:
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(INSERT, tuple(each.values()))
    for statement in (
        "UPDATE entries SET epsilon = 1",
        "DELETE FROM entries",
        f"REPLACE INTO entries {SELECT}",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()
    assert len(verify(path)) == 2


def test_manual_changes_are_detected(path, ledger):
    for number in range(5):
        charge(ledger, 0.5, question=f"SELECT {number}")
    ledger.close()
    triggers = dict(
        sqlite3.connect(path).execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    )
    off = [f"DROP TRIGGER {name}" for name in triggers]
    for number, change in enumerate(
        [
            "UPDATE entries SET question = 'SELECT 9' WHERE number = 3",
            "UPDATE entries SET epsilon = 1 WHERE number = 3",
            "UPDATE entries SET time = '2000-01-01T00:00:00+00:00' WHERE number = 6",
            "DELETE FROM entries WHERE number = 3",
            "DELETE FROM entries WHERE number = 1",
            "DELETE FROM entries",
            "UPDATE entries SET analyst = CAST('ana' AS BLOB) WHERE number = 4",
        ]
    ):
        other = copy(path, path.with_name(f"{number}.ledger"))
        tampered(other, *off, change)
        assert refusal(verify, other).code == "budget-corrupt"  # the triggers are gone
        tampered(other, *triggers.values())
        assert refusal(verify, other).code == "budget-corrupt"


def test_verify_recomputes_sums_and_caps(path, ledger):
    """Entries with right hashes and wrong contents, as only a mistake in privsql could write them."""
    for number in range(3):
        charge(ledger, 1, question=f"SELECT {number}")
    renew(path, Loss(10**9), "more")
    rows = ledger.rows()
    replay(rows)

    def chained(changed: list[Row]) -> list[Row]:
        found: list[Row] = []
        for row in changed:
            linked = replace(row, previous=found[-1].hash if found else "0" * 64)
            found.append(replace(linked, hash=linked.digest()))
        return found

    wrong = [
        [*rows[:2], replace(rows[2], total_epsilon=10**9), *rows[3:]],
        [*rows[:2], replace(rows[2], share_epsilon=10**9), *rows[3:]],
        [*rows[:4], replace(rows[4], cap_epsilon=99 * 10**9)],
        [*rows[:2], replace(rows[2], details="[{}]"), *rows[3:]],
        [replace(rows[0], details=rows[0].details.replace("10000000000", "2000000000")), *rows[1:]],
        [*rows[:4], replace(rows[4], details='{"scope": "nobody"}')],
        [rows[0], *rows[2:]],
    ]
    for each in wrong:
        assert refusal(replay, chained(each)).code == "budget-corrupt"


def test_anchors_show_that_an_old_copy_was_restored(path, ledger):
    charge(ledger, 1)
    ledger.close()
    copy(path, path.with_name("old"))
    charge(ledger, 1)
    anchor = read_anchor(str(anchor_of(verify(path))))
    charge(ledger, 1)
    ledger.close()
    verify(path, anchor)
    copy(path.with_name("old"), path)
    assert len(verify(path)) == 2  # it holds by itself
    assert refusal(verify, path, anchor).code == "budget-anchor"
    for _ in range(3):  # and so it does when it has grown again
        other = open_ledger(path, policy(10, delta=1e-3), VISITS)
        charge(other, 1)
        other.close()
    assert refusal(verify, path, anchor).code == "budget-anchor"


def test_a_session_notices_a_restored_old_copy(path, ledger):
    charge(ledger, 1)
    ledger.close()
    copy(path, path.with_name("old"))
    charge(ledger, 1)
    os.replace(path.with_name("old"), path)
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink()
    assert refusal(charge, ledger, 1).code == "budget-anchor"


def test_a_ledger_that_was_moved_away(path, ledger):
    charge(ledger, 1)
    path.rename(path.with_name("elsewhere"))
    assert refusal(charge, ledger, 1).code == "budget-ledger"


@pytest.mark.parametrize(
    "text", ["", "privsql-1:0:0:0:" + "0" * 32, "privsql-2:1:0:0:" + "0" * 32, "privsql-1:1:0:0:0", "hello"]
)
def test_malformed_anchors_are_refused(text):
    assert refusal(read_anchor, text).code == "argument-anchor"
