"""What a deadline costs: the same questions with and without a process that can be killed, measured in one run, as ratios.

    python benchmarks/worker.py [--rows 1000000] [--repeats 15]

Wall time of privsql (fresh answers, as in run.py) with `deadline=` over that without, the milliseconds that it adds, and
once what it takes to start: connect() with a deadline less connect() without.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import duckdb
from run import POLICY, TABLE, asked_anew, measured

import privsql

QUESTIONS = {
    "count": "SELECT COUNT(*) FROM t",
    "group by 50 keys": "SELECT state, COUNT(*) FROM t GROUP BY state",
    "avg by 50 keys": "SELECT state, AVG(age) FROM t GROUP BY state",
    "median (double)": "SELECT MEDIAN(income) FROM t",
    "group by 100,000 keys": "SELECT k, COUNT(*) FROM t GROUP BY k",
}


def opening(path: Path, **options: float) -> float:
    """The fastest of several."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        privsql.connect(path, POLICY, **options).close()
        times.append(time.perf_counter() - start)
    return min(times)


def statement(session: privsql.Session) -> float:
    """The least that goes there and back: the fixed cost."""
    start = time.perf_counter()
    session._pipeline.engine.run("SELECT count(*) AS n FROM t", [])
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(TABLE.format(rows=args.rows))
        plain, worker = opening(path), opening(path, deadline=60.0)
        print(f"start of a worker: {(worker - plain) * 1e3:.0f} ms, once\n")
        print(
            f"{'rows':>12}  {'question':<22} {'plain ms':>10} {'deadline ms':>12} {'wall x':>7} {'extra ms':>9}"
        )
        number = itertools.count()
        with privsql.connect(path, POLICY) as here, privsql.connect(path, POLICY, deadline=60.0) as there:
            one, other = (min(statement(session) for _ in range(300)) for session in (here, there))
            print(f"{args.rows:>12,}  {'one statement':<22} {one * 1e3:>10.2f} {other * 1e3:>12.2f} {other / one:>7.2f} "
                  f"{(other - one) * 1e3:>9.2f}")  # fmt: skip
            for name, sql in QUESTIONS.items():
                runs = [
                    lambda sql=sql, session=session: session.query(
                        asked_anew(sql, next(number)), epsilon=1, fresh=True
                    ).df()
                    for session in (here, there)
                ]
                (one, _), (other, _) = measured(*runs, repeats=args.repeats)
                print(
                    f"{args.rows:>12,}  {name:<22} {one * 1e3:>10.2f} {other * 1e3:>12.2f} {other / one:>7.2f} "
                    f"{(other - one) * 1e3:>9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
