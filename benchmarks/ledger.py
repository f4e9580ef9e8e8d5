"""How long a charge takes, and how many a second many processes make on one ledger.

    python benchmarks/ledger.py [--charges 3000] [--processes 8] [--folder DIR]

Every charge is on the disk before it returns, so that the disk sets the pace: the time of a bare write and fdatasync is printed
beside. One process: the latency of each charge. Many processes: all of them charge at once, as fast as they can.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from privsql.budget.ledger_file.file_ledger import FileLedger, open_ledger
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.budget.released import Released
from privsql.neighbours import Neighbours
from privsql.policy import Policy
from privsql.privacy.events import Keys
from privsql.schema import Schema, SchemaTable

SCHEMA = Schema((SchemaTable("visits", ()),))
POLICY = Policy(epsilon=Fraction(10_000), delta=Fraction(1, 2))
PRICE, DELTA = Fraction(1, 10**6), Fraction(1, 10**9)
RELEASED = [Released("some noise", "COUNT(*)", Keys(PRICE, DELTA, 1))]
QUESTION = "SELECT state, COUNT(*) AS n FROM visits WHERE age >= 65 GROUP BY state"


def charge(ledger: FileLedger, analyst: str) -> None:
    with ledger.running([(RELEASED, QUESTION)], Neighbours.REPLACE_ONE, analyst):
        pass


def percentiles(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=1000)
    return f"p50 {cuts[499] * 1e3:.2f} ms, p99 {cuts[989] * 1e3:.2f} ms, p99.9 {cuts[998] * 1e3:.2f} ms"


def bare(folder: Path, count: int) -> list[float]:
    """What the disk alone takes for as much as one charge writes."""
    times = []
    descriptor = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)
    try:
        for number in range(count):
            start = time.perf_counter()
            os.pwrite(descriptor, b"x" * 8_240, number % 500 * 8_240)  # over and over, as SQLite's log is
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
    return times


def one_process(path: Path, count: int) -> list[float]:
    ledger, times = open_ledger(path, POLICY, SCHEMA), []
    for _ in range(count):
        start = time.perf_counter()
        charge(ledger, "ana")
        times.append(time.perf_counter() - start)
    ledger.close()
    return times


def many_processes(path: Path, count: int, processes: int) -> tuple[float, list[float]]:
    """Charges a second of all, and the latency of each."""
    open_ledger(path, POLICY, SCHEMA).close()
    start_line, go = os.pipe()
    back, out = os.pipe()
    children = []
    for index in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            ledger, times = open_ledger(path, POLICY, SCHEMA), []
            os.read(start_line, 1)  # ends when the parent closes its end
            for _ in range(count // processes):
                start = time.perf_counter()
                charge(ledger, f"analyst {index}")
                times.append(time.perf_counter() - start)
            ledger.close()
            for begin in range(0, len(times), 100):  # writes this short are not mixed with those of others
                os.write(out, "".join(f"{each:.6f}\n" for each in times[begin : begin + 100]).encode())
            os._exit(0)
        children.append(child)
    os.close(out)
    time.sleep(0.5)
    begin = time.perf_counter()
    os.close(go)
    text = b""
    while block := os.read(back, 1 << 16):
        text += block
    for child in children:
        os.waitpid(child, 0)
    elapsed = time.perf_counter() - begin
    os.close(back)
    os.close(start_line)
    reader = open_reader(path)
    assert len(reader.entries()) == count // processes * processes
    reader.close()
    return count // processes * processes / elapsed, [float(each) for each in text.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--charges", type=int, default=3000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument(
        "--folder", type=Path, help="a folder on the disk to measure; default: a temporary one"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        print(f"disk alone        {percentiles(bare(folder, args.charges))}")
        print(f"1 process         {percentiles(one_process(folder / 'one.ledger', args.charges))}")
        sys.stdout.flush()  # or each child would print it again
        rate, times = many_processes(folder / "many.ledger", args.charges, args.processes)
        print(f"{args.processes} processes       {rate:,.0f} charges a second; each {percentiles(times)}")


if __name__ == "__main__":
    main()
