"""Many processes charge one ledger and are killed: at random moments, and at every step of a charge.

    python -m tests.budget.kills [--kills 2000] [--writers 16] [--seed 1]

A writer charges, runs, and releases (writes a line to a file, as a caller prints an answer), again and again. Afterwards:
nothing was overspent, nothing was released that was not charged, no query was charged twice, what was charged and did not
come to its end counts as a failure, what was released does not, and the ledger holds. Prints
JSON; exits with 1 on any violation. A kill is the end of a process, not of the machine: what a power cut does rests on SQLite
and fsync.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from privsql.budget.ledger_file.file_ledger import FileLedger
from privsql.budget.ledger_file.ledger_reader import Run, open_reader
from privsql.budget.ledger_file.store import Store
from privsql.budget.ledger_file.verify import verify
from privsql.errors import BudgetError
from tests.budget.ledgers import DyingStore, opened, policy, running

ROUND = 250  # kills on one ledger; every round starts with writers that make the ledger
STEPS = 200  # from opening a ledger through about ten charges
CHARGES = 2000  # more than any writer lives to make
MANY = 10**6  # failures: nobody is to be refused for them here
PRICE, DELTA = Fraction(1, 100), Fraction(1, 10**9)


class Writer:
    """One child process: what it is to die of."""

    def __init__(self, folder: Path, name: str, cap: float, chance: random.Random) -> None:
        self.dies_at = chance.randrange(1, STEPS) if chance.random() < 0.6 else 0
        delay = chance.choice((0.003, 0.02, 0.1)) * chance.random()
        self.pid = os.fork()
        if self.pid == 0:
            status = 3
            try:
                status = write(folder, name, cap, self.dies_at)
            finally:
                os._exit(status)
        self.deadline = time.monotonic() + (delay if not self.dies_at else 60)

    def ended(self) -> int | None:
        """The signal or exit code, once it is over."""
        if time.monotonic() > self.deadline:
            os.kill(self.pid, signal.SIGKILL)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return None if pid == 0 else os.waitstatus_to_exitcode(status)


def write(folder: Path, name: str, cap: float, dies_at: int) -> int:
    """The life of a writer."""
    path = folder / "shared.ledger"
    store: Store = DyingStore(path, dies_at) if dies_at else Store(path)
    step = store.step if isinstance(store, DyingStore) else lambda _: None
    answers = os.open(folder / "released", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ended = os.open(folder / "ended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        ledger: FileLedger = opened(store, policy(cap, delta=1e-3, max_failures=MANY))
        for number in range(CHARGES):
            question = f"{name}-{number}"
            try:
                with running(ledger, PRICE, DELTA, f"analyst {int(name[1:]) % 5}", question):
                    step("charged")
                    time.sleep(0)  # the question is run
                    step("run")
                    os.write(ended, f"{question}\n".encode())
            except BudgetError as error:
                if error.code != "budget-exhausted":
                    raise
                continue  # and try again: a budget at its end is where a mistake would show
            step("over")
            os.write(answers, f"{question}\n".encode())
            step("released")
        ledger.close()
    except BudgetError as error:
        with (folder / "errors").open("a") as errors:
            errors.write(f"{name}: {error}\n")
        return 2
    return 0


def one_round(folder: Path, kills: int, writers: int, chance: random.Random) -> dict[str, int]:
    """Writers until so many were killed; then what they left behind."""
    cap = chance.choice((1.0, 10.0, 1000.0))  # often too little for all, so that the last charges compete
    running: list[Writer] = []
    killed = finished = started = 0
    while killed < kills or running:
        while killed + len(running) < kills + writers and len(running) < writers and killed < kills:
            running.append(Writer(folder, f"w{started}", cap, chance))
            started += 1
        for each in list(running):
            end = each.ended()
            if end is not None:
                running.remove(each)
                killed += end == -signal.SIGKILL
                finished += end == 0
        time.sleep(0.0005)
    return {"killed": killed, "finished": finished, "started": started, **left_behind(folder, cap)}


def unfinished_runs(path: Path) -> list[Run]:
    with closing(open_reader(path)) as reader:
        return reader.runs()


def left_behind(folder: Path, cap: float) -> dict[str, int]:
    rows = verify(folder / "shared.ledger") if (folder / "shared.ledger").exists() else []
    charged = [row.question for row in rows if row.kind == "charge"]
    released = (folder / "released").read_text().split() if (folder / "released").exists() else []
    errors = (folder / "errors").read_text().splitlines() if (folder / "errors").exists() else []
    for each in errors[:5]:
        print(each, file=sys.stderr)
    spent = rows[-1].total.nano if rows else 0
    ended = (folder / "ended").read_text().split() if (folder / "ended").exists() else []
    numbers = {row.number: row.question for row in rows}
    unfinished = [numbers[each.number] for each in unfinished_runs(folder / "shared.ledger")] if rows else []
    return {
        "unfinished": len(unfinished),
        "killed_and_not_counted": len(set(charged) - set(ended) - set(unfinished)),
        "released_and_counted": len(set(released) & set(unfinished)),
        "charged": len(charged),
        "released": len(released),
        "overspent": int(spent > cap * 10**9 or spent != len(charged) * PRICE * 10**9),
        "released_without_charge": len(set(released) - set(charged)),
        "charged_twice": len(charged) - len(set(charged)),
        "released_twice": len(released) - len(set(released)),
        "errors": len(errors),
        "full": int(spent + PRICE * 10**9 > cap * 10**9),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    gc.freeze()  # forks are cheaper so
    total: dict[str, int] = {}
    begin = time.monotonic()
    while total.get("killed", 0) < args.kills:
        kills = min(ROUND, args.kills - total.get("killed", 0))
        with tempfile.TemporaryDirectory() as folder:
            for name, count in one_round(Path(folder), kills, args.writers, chance).items():
                total[name] = total.get(name, 0) + count
        total["rounds"] = total.get("rounds", 0) + 1
    print(json.dumps({**total, "writers": args.writers, "seconds": round(time.monotonic() - begin, 1)}))
    not_counted = ("killed_and_not_counted", "released_and_counted")
    wrong = (
        *not_counted,
        "overspent",
        "released_without_charge",
        "charged_twice",
        "released_twice",
        "errors",
    )
    return int(any(total[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
