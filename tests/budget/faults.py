"""Ledgers that run out of file size, of disk, or are forked in use; each in processes of its own.

    python -m tests.budget.faults size FOLDER [STEP]   # RLIMIT_FSIZE at every STEP bytes
    python -m tests.budget.faults full FOLDER          # FOLDER is on a small file system, which is filled
    python -m tests.budget.faults fork FOLDER          # a process with an open ledger, and threads that charge, forks

Prints JSON; whatever is refused must not be charged, whatever is charged must be there, and the ledger holds.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from privsql.budget.ledger_file.store import Store
from privsql.budget.ledger_file.verify import verify
from privsql.errors import BudgetError
from tests.budget.ledgers import charge, copy, opened, policy

POLICY = policy(1000.0, max_failures=10**6)  # nobody is to be refused for failures here
# a charge stands although its end cannot be noted
warnings.filterwarnings("ignore", "the ledger could not record how this query ended")


def in_child(work: Callable[[], str]) -> str:
    """What a forked process says, or how it ended."""
    back, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(out, work().encode())
        except BaseException as error:  # noqa: BLE001 -- whatever it is, the parent must know
            os.write(out, f"raised {error!r}".encode())
        os._exit(0)
    os.close(out)
    said = b""
    while block := os.read(back, 4096):
        said += block
    os.close(back)
    _, status = os.waitpid(child, 0)
    return said.decode() if status == 0 else f"ended with {status}"


def charges(path: Path) -> int:
    return sum(row.kind == "charge" for row in verify(path))


def attempt(path: Path, limit: int, count: int) -> str:
    """Some charges under a limit on the size of files: how many were made, and the code of the refusal."""

    def work() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        made = 0
        try:
            ledger = opened(Store(path, patience=1), POLICY)
            for _ in range(count):
                charge(ledger, 0.01, question="SELECT " + "x" * 500)
                made += 1
        except BudgetError as error:
            return f"{made} {error.code}"
        return f"{made} none"

    return in_child(work)


def size(folder: Path, step: int) -> dict[str, int]:
    """A ledger with a log, one without, and none yet; each at every limit."""
    outcomes: Counter[str] = Counter()
    (folder / "seed").mkdir()
    seed = folder / "seed" / "a.ledger"
    living = opened(Store(seed), POLICY)
    for _ in range(3):
        charge(living, 0.01)
    copy(seed, folder / "log.ledger")  # the log is not yet in the file
    living.close()
    copy(seed, folder / "clean.ledger")
    trials = [(kind, limit, 3) for kind in ("log", "clean", "none") for limit in range(0, 90_000, step)]
    if step < 10_000:
        trials += [
            ("clean", limit, 700) for limit in range(4_050_000, 4_250_000, step * 16)
        ]  # the log is written back there
    for number, (kind, limit, count) in enumerate(trials):
        path = folder / f"{number}.ledger"
        if kind != "none":
            copy(folder / f"{kind}.ledger", path)
        before = 0 if kind == "none" else 3
        said = attempt(path, limit, count)
        made, _, code = said.partition(" ")
        there = charges(path) if path.exists() else 0
        if not made.isdigit() or there != before * path.exists() + int(made):
            outcomes["wrong"] += 1
            print(kind, limit, said, there, file=sys.stderr)
        outcomes[code] += 1
        for each in folder.glob(f"{number}.ledger*"):
            each.unlink()
    outcomes["left behind"] = len(list(folder.glob(".*.new*")))
    return dict(outcomes)


def full(folder: Path) -> dict[str, int]:
    """Charges until the disk is full; then it holds, and goes on once there is room."""
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 150_000)
    path = folder / "a.ledger"
    ledger, made, outcomes = opened(Store(path, patience=1), POLICY), 0, Counter[str]()
    for _ in range(2000):
        try:
            charge(ledger, 0.01, question="SELECT " + "x" * 500)
            made += 1
        except BudgetError as error:
            outcomes[error.code] += 1
            if outcomes[error.code] == 50:
                break
    refused = dict(outcomes)
    ballast.unlink()
    there = charges(path)
    charge(ledger, 0.01)
    outcomes["wrong"] = int(there != made) + int(charges(path) != made + 1)
    ledger.close()
    return {"made": made, **refused, "wrong": outcomes["wrong"]}


def fork(folder: Path) -> dict[str, int]:
    """Children and their parent charge one ledger object, which all of them hold, while threads charge too."""
    path = folder / "a.ledger"
    ledger, each, stop = opened(Store(path), POLICY), 15, threading.Event()
    by_threads = []

    def keep_charging() -> None:
        while not stop.is_set():
            charge(ledger, 0.01, analyst="thread")
            by_threads.append(1)

    threads = [threading.Thread(target=keep_charging) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            for _ in range(each):
                charge(ledger, 0.01, analyst=f"child {number}")
            os._exit(0)
        children.append(child)
        charge(ledger, 0.01, analyst="parent")
    ends = [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    for thread in threads:
        thread.join()
    ledger.close()
    expected = 8 * each + 8 + len(by_threads)
    return {
        "charged": charges(path),
        "expected": expected,
        "wrong": sum(map(bool, ends)) + int(charges(path) != expected),
    }


def main() -> int:
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "size":
        found = size(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 1000)
    else:
        found = {"full": full, "fork": fork}[what](folder)
    print(json.dumps(found))
    return int(bool(found.get("wrong")))


if __name__ == "__main__":
    sys.exit(main())
