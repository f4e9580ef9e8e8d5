"""What a private answer costs next to plain DuckDB: the same questions, measured in one run, as ratios.

    python benchmarks/run.py [--rows 1000 1000000 10000000] [--repeats 5]

Wall and CPU time of privsql (fresh answers: planning, charge, exact query, noise, finishing) over those of plain DuckDB
fetching the same result from the same file. Ratios of medians; absolute times only to show what they are ratios of.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import privsql

QUESTIONS = {
    "count": "SELECT COUNT(*) FROM t",
    "filtered count": "SELECT COUNT(*) FROM t WHERE age > 40",
    "group by 50 keys": "SELECT state, COUNT(*) FROM t GROUP BY state",
    "group by 100,000 keys": "SELECT k, COUNT(*) FROM t GROUP BY k",
    "sum": "SELECT SUM(age) FROM t",
    "sum (double)": "SELECT SUM(income) FROM t",
    "avg": "SELECT AVG(age) FROM t",
    "avg by 50 keys": "SELECT state, AVG(age) FROM t GROUP BY state",
}
POLICY = {
    "tables": {
        "t": {
            "columns": {
                "age": {"range": [0, 120]},
                "income": {"range": [0, 200_000]},
                "state": {"values": [f"s{index:02d}" for index in range(50)]},
                "k": {"range": [0, 99_999]},
            }
        }
    }
}
TABLE = """
CREATE TABLE t AS SELECT CAST(hash(i) % 121 AS INTEGER) AS age, (hash(i + 1) % 20000000) / 100.0::DOUBLE AS income,
    's' || lpad(CAST(hash(i + 2) % 50 AS VARCHAR), 2, '0') AS state, CAST(hash(i + 3) % 100000 AS INTEGER) AS k
FROM range({rows}) AS r(i)
"""


def measured(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median wall and CPU seconds."""
    run()
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def plain_times(path: Path, repeats: int) -> dict[str, tuple[float, float]]:
    with duckdb.connect(str(path), read_only=True) as plain:
        return {name: measured(lambda sql=sql: plain.execute(sql).df(), repeats) for name, sql in QUESTIONS.items()}


def private_times(path: Path, repeats: int) -> dict[str, tuple[float, float]]:
    session = privsql.connect(path, policy=POLICY)
    return {
        name: measured(lambda sql=sql: session.query(sql, epsilon=1, fresh=True).df(), repeats)
        for name, sql in QUESTIONS.items()
    }


def import_seconds(modules: str) -> float:
    """The fastest of several fresh interpreters."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 1_000_000, 10_000_000], help="table sizes")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    four = import_seconds("pandas, sqlglot, duckdb, numpy")
    print(
        f"import privsql: {import_seconds('privsql') / four:.2f} x importing its four packages ({four * 1e3:.0f} ms)\n"
    )
    print(
        f"{'rows':>12}  {'question':<22} {'duckdb ms':>10} {'privsql ms':>10} {'wall x':>7} {'CPU x':>7} {'extra ms':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in args.rows:
            path = Path(folder) / f"bench_{rows}.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.execute(TABLE.format(rows=rows))
            exact, noisy = plain_times(path, args.repeats), private_times(path, args.repeats)
            for name in QUESTIONS:
                (exact_wall, exact_cpu), (noisy_wall, noisy_cpu) = exact[name], noisy[name]
                print(
                    f"{rows:>12,}  {name:<22} {exact_wall * 1e3:>10.2f} {noisy_wall * 1e3:>10.2f} "
                    f"{noisy_wall / exact_wall:>7.2f} {noisy_cpu / max(exact_cpu, 1e-6):>7.2f} "
                    f"{(noisy_wall - exact_wall) * 1e3:>9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
