"""The command line of a fuzzer: [N [SEED [PROCESSES]]]. Findings are printed as they come: a run may be stopped at any time."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol, TypeVar


class Report(Protocol):
    """What a run did."""

    refused: Counter[str]

    def add(self, other: Report) -> None: ...


Some = TypeVar("Some", bound=Report)


def _leave_alone() -> None:
    """Exclude everything loaded so far from garbage collection, which took a fifth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def in_slices(run: Callable[[int, int], Some], total: Some, findings: Callable[[Some], list[str]]) -> int:
    """Slices of a thousand, each with a seed of its own; the exit code is 1 if there is a finding."""
    numbers = [int(each) for each in sys.argv[1:]]
    count, seed, processes = (*numbers, *(20_000, 1, 1)[len(numbers) :])
    started = time.monotonic()
    slices = max(processes, math.ceil(count / 1_000))
    with ProcessPoolExecutor(processes, initializer=_leave_alone) as pool:
        for report in pool.map(run, [math.ceil(count / slices)] * slices, range(seed, seed + slices)):
            total.add(report)
            for each in findings(report):
                print(each, end="\n\n", flush=True)
            print(total, f"after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(total, f"in {time.monotonic() - started:.0f} s")
    print("refused:", dict(total.refused.most_common()))
    return 1 if findings(total) else 0
