"""python -m tests.soundness [rows|units|windows|composed|joins] [cases] [first seed] [processes] [violations to stop at]: a long run; prints every violation, exits 1 if there is one."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.soundness.check import KINDS, Report, run


def main() -> int:
    named = [each for each in sys.argv[1:2] if each in KINDS]
    kind = named[0] if named else "rows"
    numbers = [int(each) for each in sys.argv[1 + len(named) :]]
    cases, first, processes, stop = (*numbers, *(200_000, 0, 2, 20)[len(numbers) :])
    started, total = time.monotonic(), Report()
    if processes == 1:
        total = run(first, cases, stop, 1, kind)
    else:
        with ProcessPoolExecutor(processes) as pool:
            for report in pool.map(
                run,
                [first + i for i in range(processes)],
                [cases // processes] * processes,
                [stop] * processes,
                [processes] * processes,
                [kind] * processes,
            ):
                total.add(report)
    for each in total.violations:
        print(each, end="\n\n")
    print(total, f"in {time.monotonic() - started:.0f} s")
    print("refused:", dict(total.refusals.most_common()))
    rare = [(name, count) for name, count in total.coverage.most_common() if count < 5]
    print("rare:", rare)
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
