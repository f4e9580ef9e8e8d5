"""python -m tests.mutation [N [SEED [PROCESSES]]]: N random mutants of the four rooms; how many the default tests catch.

Which mutants are drawn depends on SEED and the sources alone. A mutant counts as caught if a test that reaches its line
fails, hangs or cannot be imported; what caught one is then run on the unchanged code, where it must pass. Mutants that
change nothing anybody can see are listed in equivalent.txt, with a reason, and are not counted.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutation.mutate import Mutant, difference, mutants
from tests.mutation.reach import ROOMS, reach, rooms
from tests.mutation.trial import SURVIVED, Trial, try_all

SECONDS = 30.0  # of tests for one mutant, as they were recorded
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def equivalent() -> set[tuple[str, str]]:
    """Lines `file: what goes -> what comes  # reason`."""
    lines = [
        line.rsplit("  # ", 1)[0]
        for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()
        if "  # " in line
    ]
    return {tuple(line.split(": ", 1)) for line in lines}  # type: ignore[misc]


def named(mutant: Mutant, text: str) -> tuple[str, str]:
    return mutant.file, " -> ".join(difference(mutant, text))


def interval(caught: int, tried: int) -> tuple[float, float]:
    """Wilson's, at 95%."""
    z = 1.96
    share, spread = (
        caught / tried,
        z * math.sqrt(caught / tried * (1 - caught / tried) / tried + z * z / (4 * tried * tried)),
    )
    return tuple((share + z * z / (2 * tried) + sign * spread) / (1 + z * z / tried) for sign in (-1, 1))  # type: ignore[return-value]


def main(many: int, seed: int, processes: int) -> int:
    known = reach()
    sources = rooms()
    every = [mutant for file, text in sources.items() for mutant in mutants(file, text)]
    listed = equivalent()
    drawn = random.Random(seed).sample(every, min(many, len(every)))
    same = [each for each in drawn if named(each, sources[each.file]) in listed]
    trials = [trial(each, known) for each in drawn if each not in same]
    print(
        f"{len(every)} mutants, {len(drawn)} drawn (seed {seed}), {len(same)} of them listed as equivalent",
        flush=True,
    )
    started, caught = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="privsql_mutation_") as folder:
        for tried, by in try_all(trials, sources, Path(folder), processes):
            caught[tried.mutant] = by
            file, changed = named(tried.mutant, sources[tried.mutant.file])
            print(f"{len(caught):4} {file}:{tried.mutant.line} {tried.mutant.kind}: {by}" if by != SURVIVED else
                  f"{len(caught):4} SURVIVED {len(tried.tests)} tests, {file}:{tried.mutant.line} {tried.mutant.kind}\n"
                  f"     {file}: {changed}", flush=True)  # fmt: skip
        killers = tuple(dict.fromkeys(by for by in caught.values() if "::" in by))
        control = Trial(None, killers, sum(known.seconds[each] for each in killers if each in known.seconds))
        [(_, failed)] = (
            try_all([control], sources, Path(folder) / "control", 1) if killers else [(control, SURVIVED)]
        )
    if failed != SURVIVED:
        print(f"{failed} fails on the unchanged code too: the numbers mean nothing")
        return 1
    report(caught)
    print(f"{time.monotonic() - started:.0f} s")
    return 0


def trial(mutant: Mutant, known) -> Trial:
    tests = known.of(mutant, SECONDS)
    return Trial(mutant, tuple(tests), sum(known.seconds[each] for each in tests))


def report(caught: dict[Mutant, str]) -> None:
    print(f"\n{'':10}{'mutants':>8}{'killed':>8}{'survived':>9}{'score':>8}   95% interval")
    for room in (*ROOMS, "all"):
        of = Counter(by == SURVIVED for mutant, by in caught.items() if room in (mutant.room, "all"))
        if of:
            low, high = interval(of[False], of.total())
            print(
                f"{room:10}{of.total():8}{of[False]:8}{of[True]:9}{of[False] / of.total():8.1%}   {low:.1%} to {high:.1%}"
            )
    print(f"of the killed {sum(by == 'timeout' for by in caught.values())} by a timeout")


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in [*sys.argv[1:], *["60", "1", "2"][len(sys.argv) - 1 :]])))
